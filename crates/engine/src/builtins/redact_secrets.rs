//! `redact_secrets`: keys and tokens never reach the model, a tool or the reader.

mod json;

use std::borrow::Cow;
use std::sync::Arc;

use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Event, FunctionCall, Input, Message, Output, Permission, ToolCall};

use super::{Arguments, Judge, Judging};
use crate::definition::Patch;
use crate::event_class::is_inference;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;

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

    fn judge(&self, event: Event, input: &Input) -> BuiltinResult {
        Ok(match event {
            Event::ToolInputTransform | Event::PreToolUse => tool_input(input),
            Event::BeforeLlmCall | Event::PreInference => messages(event, input),
            Event::ToolResponseTransform | Event::PostToolUse => tool_response(input),
            Event::PostInference => answer(input),
            _ => {
                tracing::debug!(event = event.name(), "redact_secrets has nothing to rewrite here");
                None
            }
        })
    }
}

/// A text without its secrets; `None` where there is none in it.
fn redact(text: &str) -> Option<String> {
    match gatehook_scan::redact(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}

fn tool_input(input: &Input) -> Option<Output> {
    let arguments = input.tool_input.as_deref()?;
    let changed = arguments.iter().filter_map(|(key, value)| Some((key.clone(), json::value(Some(key), value)?)));
    let changed: serde_json::Map<_, _> = changed.collect();
    if changed.is_empty() {
        return None;
    }
    let tool = input.tool_name.as_deref().unwrap_or("a tool");
    Some(Output {
        system_message: Some(format!("secrets were redacted in the arguments of {tool}")),
        ..Output::specific(HookSpecificOutput { updated_input: Some(changed), ..HookSpecificOutput::default() })
    })
}

fn tool_response(input: &Input) -> Option<Output> {
    let updated_tool_response = Some(json::value(None, input.tool_response.as_deref()?)?);
    Some(Output::specific(HookSpecificOutput { updated_tool_response, ..HookSpecificOutput::default() }))
}

fn messages(event: Event, input: &Input) -> Option<Output> {
    let messages = each(input.messages.as_deref()?, message);
    let permission = is_inference(event).then_some(Permission::Modify);
    Some(Output { permission, messages: Some(messages?), ..Output::default() })
}

fn answer(input: &Input) -> Option<Output> {
    let text = |text: &Option<Arc<str>>| text.as_deref().and_then(redact).map(Arc::from);
    let output = Output {
        output_text: text(&input.output_text),
        output_thinking: text(&input.output_thinking),
        tool_calls: input.tool_calls.as_deref().and_then(|calls| each(calls, tool_call)),
        ..Output::default()
    };
    let changed = output != Output::default();
    changed.then_some(Output { permission: Some(Permission::Modify), ..output })
}

/// All items, the changed ones in their places; `None` where none is changed.
fn each<T: Clone>(items: &[T], change: impl Fn(&T) -> Option<T>) -> Option<Vec<T>> {
    let first = items.iter().enumerate().find_map(|(place, item)| Some((place, change(item)?)));
    let (place, changed) = first?;
    let (before, rest) = items.split_at(place);
    let after = rest.iter().skip(1).map(|item| change(item).unwrap_or_else(|| item.clone()));
    Some(before.iter().cloned().chain([changed]).chain(after).collect())
}

/// A message without its secrets.
fn message(message: &Message) -> Option<Message> {
    let text = |text: &Option<Arc<str>>| text.as_deref().and_then(redact).map(Arc::<str>::from);
    let (content, thinking, name) = (text(&message.content), text(&message.thinking), text(&message.name));
    let tool_calls = message.tool_calls.as_deref().and_then(|calls| each(calls, tool_call));
    let extra = json::object(&message.extra);
    if content.is_none() && thinking.is_none() && name.is_none() && tool_calls.is_none() && extra.is_none() {
        return None;
    }
    let old = message.clone();
    Some(Message {
        content: content.or(old.content),
        thinking: thinking.or(old.thinking),
        name: name.or(old.name),
        tool_calls: tool_calls.or(old.tool_calls),
        extra: extra.unwrap_or(old.extra),
        ..old
    })
}

/// A tool call without its secrets.
fn tool_call(call: &ToolCall) -> Option<ToolCall> {
    let (arguments, extra) = (json::text(&call.function.arguments), json::object(&call.extra));
    if arguments.is_none() && extra.is_none() {
        return None;
    }
    let old = call.clone();
    let arguments = arguments.map_or(old.function.arguments, Arc::from);
    Some(ToolCall { function: FunctionCall { arguments, ..old.function }, extra: extra.unwrap_or(old.extra), ..old })
}

#[cfg(test)]
mod tests;
