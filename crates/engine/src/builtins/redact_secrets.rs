//! `redact_secrets`: keys and tokens never reach the model, a tool or the reader.

use std::ops::RangeInclusive;
use std::sync::Arc;

use gatehook_events::{Event, Input};
use gatehook_scan::{Carry, MARKER};

use super::redaction::{self, Redaction};
use super::{Arguments, Judge, Judging};
use crate::definition::Patch;
use crate::find::{Find, Found, Others};
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;
use crate::streaming::{Scan, Streaming};

struct RedactSecrets;

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    if !arguments.args.is_empty() && arguments.is_native() {
        return Err(Arguments::wrong("`redact_secrets` takes no arguments", "remove `args`"));
    }
    if arguments.definition.patch == Patch::MergePatch {
        let message = "`redact_secrets` gives whole values, which a merge patch would thin out".to_owned();
        return Err(DefinitionError { field: "patch", message, help: Some("remove `patch`".to_owned()) });
    }
    arguments.warn_if_concurrent("redact_secrets");
    Ok(Judging::handler(RedactSecrets))
}

impl Judge for RedactSecrets {
    const BY_CONTENT: bool = true;
    const STREAMS: Streaming = Streaming::Scan;

    fn scan(&self) -> Option<Box<dyn Scan>> {
        Some(Box::new(Carry::new()))
    }

    fn finds(&self) -> Option<Arc<dyn Find>> {
        Some(Arc::new(Secrets))
    }

    fn judge(&self, event: Event, input: &Input, others: &Others) -> BuiltinResult {
        let mut redact = Redaction::new(&Secrets, others);
        Ok(match event {
            Event::ToolInputTransform | Event::PreToolUse => redaction::tool_input(input, &mut redact, "secrets were"),
            Event::BeforeLlmCall | Event::PreInference => redaction::messages(event, input, &mut redact),
            Event::ToolResponseTransform | Event::PostToolUse => redaction::tool_response(input, &mut redact),
            Event::PostInference => redaction::answer(input, &mut redact),
            _ => {
                tracing::debug!(event = event.name(), "redact_secrets has nothing to rewrite here");
                None
            }
        })
    }
}

/// Finds secrets.
struct Secrets;

/// How long a value may be for its name to tell that it is a secret.
const NAMED: RangeInclusive<usize> = 8..=4096;

impl Find for Secrets {
    /// What is no secret by itself may be one by its name, as in `"password": "…"`.
    fn find(&self, name: Option<&str>, text: &str) -> Vec<Found> {
        let found = secrets(text, 0);
        let name = name.filter(|_| NAMED.contains(&text.len()) && !text.contains(char::is_whitespace));
        match name.filter(|_| found.is_empty()) {
            Some(name) => secrets(&format!("{name}={text}"), name.len() + 1),
            None => found,
        }
    }
}

/// The secrets of a text behind `from`, counted from there; none where one stands before it.
fn secrets(text: &str, from: usize) -> Vec<Found> {
    let found = gatehook_scan::find(text).into_iter().map(|found| {
        let range = found.range.start.checked_sub(from)?..found.range.end.checked_sub(from)?;
        Some(Found { range, word: MARKER.into() })
    });
    found.collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests;
