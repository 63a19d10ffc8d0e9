//! Putting something else in the place of what must not pass, wherever texts stand in an input.

pub(super) mod json;

use std::sync::Arc;

use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Event, FunctionCall, Input, Message, Output, Permission, ToolCall};

use crate::event_class::is_inference;

/// What finds it, and what is put in its place. Asked for one text after another, in the order of the conversation.
pub(super) trait Redact {
    /// A text without it; `None` where there is none in it.
    fn text(&mut self, text: &str) -> Option<String>;

    /// The same for a string that stands in JSON under the key `name`.
    fn named(&mut self, _name: Option<&str>, text: &str) -> Option<String> {
        self.text(text)
    }

    /// The text to stand in the place of a number in JSON, which is given as it is written.
    fn number(&mut self, _number: &str) -> Option<String> {
        None
    }
}

/// The arguments of a tool, those that change; `what` was redacted.
pub(super) fn tool_input(input: &Input, redact: &mut dyn Redact, what: &str) -> Option<Output> {
    let arguments = input.tool_input.as_deref()?;
    let changed =
        arguments.iter().filter_map(|(key, value)| Some((key.clone(), json::value(Some(key), value, redact)?)));
    let changed: serde_json::Map<_, _> = changed.collect();
    if changed.is_empty() {
        return None;
    }
    let tool = input.tool_name.as_deref().unwrap_or("a tool");
    Some(Output {
        system_message: Some(format!("{what} redacted in the arguments of {tool}")),
        ..Output::specific(HookSpecificOutput { updated_input: Some(changed), ..HookSpecificOutput::default() })
    })
}

/// What a tool answered.
pub(super) fn tool_response(input: &Input, redact: &mut dyn Redact) -> Option<Output> {
    let updated_tool_response = Some(json::value(None, input.tool_response.as_deref()?, redact)?);
    Some(Output::specific(HookSpecificOutput { updated_tool_response, ..HookSpecificOutput::default() }))
}

/// The conversation.
pub(super) fn messages(event: Event, input: &Input, redact: &mut dyn Redact) -> Option<Output> {
    let messages = each(input.messages.as_deref()?, |one| message(one, redact));
    let permission = is_inference(event).then_some(Permission::Modify);
    Some(Output { permission, messages: Some(messages?), ..Output::default() })
}

/// What the model answered.
pub(super) fn answer(input: &Input, redact: &mut dyn Redact) -> Option<Output> {
    let output = Output {
        output_text: shared(&input.output_text, redact),
        output_thinking: shared(&input.output_thinking, redact),
        tool_calls: input.tool_calls.as_deref().and_then(|calls| each(calls, |call| tool_call(call, redact))),
        ..Output::default()
    };
    let changed = output != Output::default();
    changed.then_some(Output { permission: Some(Permission::Modify), ..output })
}

fn shared(text: &Option<Arc<str>>, redact: &mut dyn Redact) -> Option<Arc<str>> {
    redact.text(text.as_deref()?).map(Arc::from)
}

/// All items, the changed ones in their places; `None` where none is changed.
pub(super) fn each<T: Clone>(items: &[T], mut change: impl FnMut(&T) -> Option<T>) -> Option<Vec<T>> {
    let first = items.iter().enumerate().find_map(|(place, item)| Some((place, change(item)?)));
    let (place, changed) = first?;
    let (before, rest) = items.split_at(place);
    let after = rest.iter().skip(1).map(|item| change(item).unwrap_or_else(|| item.clone()));
    Some(before.iter().cloned().chain([changed]).chain(after).collect())
}

/// A message without it.
pub(super) fn message(message: &Message, redact: &mut dyn Redact) -> Option<Message> {
    let (content, thinking) = (shared(&message.content, redact), shared(&message.thinking, redact));
    let name = shared(&message.name, redact);
    let tool_calls = message.tool_calls.as_deref().and_then(|calls| each(calls, |call| tool_call(call, redact)));
    let extra = json::object(&message.extra, redact);
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

/// A tool call without it.
fn tool_call(call: &ToolCall, redact: &mut dyn Redact) -> Option<ToolCall> {
    let (arguments, extra) = (json::text(&call.function.arguments, redact), json::object(&call.extra, redact));
    if arguments.is_none() && extra.is_none() {
        return None;
    }
    let old = call.clone();
    let arguments = arguments.map_or(old.function.arguments, Arc::from);
    Some(ToolCall { function: FunctionCall { arguments, ..old.function }, extra: extra.unwrap_or(old.extra), ..old })
}
