//! `add_context`: texts with fields of the event in them.

use std::sync::Arc;

use gatehook_events::{FailureKind, Output};

use super::Arguments;
use crate::handler::{DefinitionError, Handler, HandlerError, HookCall, Reply, Run};
use crate::template::{Missing, Template, TemplateError};

/// The templates, or what is wrong with one: docker-agent finds out when the hook runs.
struct AddContext(Result<Vec<Template>, String>);

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let help = "as in `args: [\"The tool is {{ .ToolName }}\"]`";
    if arguments.args.is_empty() && arguments.is_native() {
        return Err(Arguments::wrong("`add_context` takes templates", help));
    }
    let parsed = arguments
        .args
        .iter()
        .enumerate()
        .map(|(place, text)| Template::parse(text).map_err(|error| wrong(place, &error)));
    match parsed.collect() {
        Err(message) if arguments.is_native() => Err(Arguments::wrong(message, help)),
        templates => Ok(Arc::new(AddContext(templates))),
    }
}

fn wrong(place: usize, error: &TemplateError) -> String {
    format!("template {}, byte {}: {error}", place + 1, error.offset)
}

impl Handler for AddContext {
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(async move { self.render(call).map(Reply::Direct) })
    }
}

impl AddContext {
    /// All texts that are not blank. One that cannot be written takes all others with it.
    fn render(&self, call: HookCall<'_>) -> Result<Option<Output>, HandlerError> {
        let failed = |message: String| HandlerError::new(FailureKind::HandlerError, message);
        let templates = self.0.as_ref().map_err(|message| failed(message.clone()))?;
        let input = call.payload.value(call.input)?;
        let texts = templates.iter().enumerate().map(|(place, template)| {
            template.render(&input, Missing::Error).map_err(|error| failed(wrong(place, &error)))
        });
        let mut texts = texts.collect::<Result<Vec<_>, _>>()?;
        texts.retain(|text| !text.trim().is_empty());
        Ok((!texts.is_empty()).then(|| Output::additional_context(call.event, texts.join("\n"))))
    }
}
