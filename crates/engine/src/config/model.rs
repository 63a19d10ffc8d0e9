//! A model hook judged: its prompt, and what becomes of the reply.

use gatehook_events::{Decides, Event};

use super::DiagnosticKind as Kind;
use super::draft::Draft;
use super::hook::{is_ours, required};
use super::hooks::{ReadOptions, place_in_lines};
use super::suggest;
use crate::definition::{HandlerDefinition, ModelDefinition};
use crate::handlers::model::PRE_TOOL_USE_DECISION;
use crate::template::Template;

/// The judge, unless something is wrong with it, which is reported.
pub(super) fn read(event: Event, draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<HandlerDefinition> {
    let model = required(draft, "model", draft.model, Kind::ModelRequired, "a model hook needs a `model`");
    let prompt = required(draft, "prompt", draft.prompt, Kind::PromptRequired, "a model hook needs a `prompt`");
    let schema = draft.schema.unwrap_or_default();
    // docker-agent finds out at dispatch.
    if let Some(prompt) = prompt.filter(|_| is_ours(draft.profile)) {
        check_prompt(draft, prompt);
        check_schema(event, draft, schema, options);
    }
    let (model, prompt, schema) = (model?.to_owned(), prompt?.to_owned(), schema.to_owned());
    Some(HandlerDefinition::Model(ModelDefinition { model, prompt, schema }))
}

fn check_prompt(draft: &Draft<'_>, prompt: &str) {
    let section = &draft.section;
    if let Err(error) = Template::parse(prompt) {
        let place = place_in_lines(section.context.document, &section.place("prompt"), prompt, error.offset);
        let problem = section.problem(Kind::InvalidTemplate, format!("the prompt cannot be read: {error}"));
        section.report(problem.at(place));
    }
}

/// A reply that nothing would come of is a guard that never guards.
fn check_schema(event: Event, draft: &Draft<'_>, schema: &str, options: &ReadOptions<'_>) {
    let section = &draft.section;
    if let Some(known) = options.schemas.filter(|known| !schema.is_empty() && !known.contains(&schema)) {
        let problem = section.problem(Kind::UnknownSchema, format!("there is no schema `{schema}`"));
        section.report(problem.at(section.place("schema")).help(suggest::one_of(schema, known)));
        return;
    }
    let Some(able) = event.capabilities(draft.profile) else { return };
    let decides = able.decides != Decides::No;
    let (applies, lacks) = match schema {
        "" => (!able.context, "context"),
        PRE_TOOL_USE_DECISION => (!decides, "permission decision"),
        _ => (false, ""),
    };
    if applies {
        let problem = section.problem(Kind::MisplacedField, format!("`{}` takes no {lacks}", event.name()));
        let help = if schema.is_empty() && decides {
            format!("add `schema: {PRE_TOOL_USE_DECISION}` for a verdict")
        } else {
            "nothing would come of the reply".to_owned()
        };
        let place = if schema.is_empty() { section.place("type") } else { section.place("schema") };
        section.report(problem.at(place).help(help));
    }
}
