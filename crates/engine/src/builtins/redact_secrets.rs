//! `redact_secrets`: keys and tokens never reach the model, a tool or the reader.

use std::borrow::Cow;
use std::sync::Arc;

use gatehook_events::{Event, Input};
use gatehook_scan::Carry;

use super::redaction::{self, Redact};
use super::{Arguments, Judge, Judging};
use crate::definition::Patch;
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

    fn judge(&self, event: Event, input: &Input) -> BuiltinResult {
        Ok(match event {
            Event::ToolInputTransform | Event::PreToolUse => redaction::tool_input(input, &mut Secrets, "secrets were"),
            Event::BeforeLlmCall | Event::PreInference => redaction::messages(event, input, &mut Secrets),
            Event::ToolResponseTransform | Event::PostToolUse => redaction::tool_response(input, &mut Secrets),
            Event::PostInference => redaction::answer(input, &mut Secrets),
            _ => {
                tracing::debug!(event = event.name(), "redact_secrets has nothing to rewrite here");
                None
            }
        })
    }
}

/// Puts the marker in the place of secrets.
struct Secrets;

/// How long a value may be for its name to tell that it is a secret.
const NAMED: std::ops::RangeInclusive<usize> = 8..=4096;

impl Redact for Secrets {
    fn text(&mut self, text: &str) -> Option<String> {
        match gatehook_scan::redact(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        }
    }

    /// What is no secret by itself may be one by its name, as in `"password": "…"`.
    fn named(&mut self, name: Option<&str>, text: &str) -> Option<String> {
        self.text(text).or_else(|| {
            let name = name.filter(|_| NAMED.contains(&text.len()) && !text.contains(char::is_whitespace))?;
            let redacted = self.text(&format!("{name}={text}"))?;
            redacted.strip_prefix(name)?.strip_prefix('=').filter(|redacted| *redacted != text).map(str::to_owned)
        })
    }
}

#[cfg(test)]
mod tests;
