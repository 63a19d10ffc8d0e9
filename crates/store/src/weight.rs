//! How much memory what waits holds, roughly: what can be large is counted, what is small is a constant.

use gatehook_events::{Entry, Message, ToolCall, Trace};
use serde_json::{Map, Value};

/// A trace without anything in it.
const EMPTY: usize = 4096;

/// In bytes. Texts are not read, only measured.
pub(crate) fn of(trace: &Trace) -> usize {
    let input = &trace.input;
    let texts = [&input.output_text, &input.output_thinking, &input.prompt, &input.stop_response, &input.suffix];
    let values = [&input.tool_response, &input.tools, &input.options, &input.context];
    EMPTY
        + trace.message.len()
        + trace.outcomes.iter().map(|outcome| 256 + outcome.reason.len() + outcome.stderr.len()).sum::<usize>()
        + texts.into_iter().flatten().map(|text| text.len()).sum::<usize>()
        + values.into_iter().flatten().map(|value| value_of(value)).sum::<usize>()
        + input.messages.iter().flat_map(|messages| messages.iter()).map(message).sum::<usize>()
        + input.tool_calls.iter().flat_map(|calls| calls.iter()).map(call).sum::<usize>()
        + input.tool_input.as_deref().map_or(0, object)
        + [&input.data, &input.details, &input.error, &input.summary].into_iter().flatten().map(value_of).sum::<usize>()
        + input.extra.iter().map(|(name, value)| name.len() + value_of(value)).sum::<usize>()
}

/// The same of an entry.
pub(crate) fn of_entry(entry: &Entry) -> usize {
    128 + match entry {
        Entry::Message { message: it } => message(it),
        Entry::Said { text, .. } | Entry::Notice { text, .. } => text.len(),
        Entry::Compacted { summary, .. } => summary.len(),
        Entry::Granted { rule, mode } => [rule, mode].into_iter().flatten().map(|text| text.len()).sum(),
        Entry::Other { data } => value_of(data),
        Entry::Turn { .. }
        | Entry::Switched { .. }
        | Entry::Model { .. }
        | Entry::Spent { .. }
        | Entry::Undone { .. }
        | Entry::TurnEnd { .. } => 0,
    }
}

fn message(message: &Message) -> usize {
    let texts = [&message.content, &message.thinking].into_iter().flatten().map(|text| text.len());
    let images = message.images.iter().flatten().filter_map(|image| image.data.as_ref()).map(|data| data.len());
    128 + texts.sum::<usize>()
        + images.sum::<usize>()
        + message.tool_calls.iter().flatten().map(call).sum::<usize>()
        + object(&message.extra)
}

fn call(call: &ToolCall) -> usize {
    128 + call.function.arguments.len() + object(&call.extra)
}

fn object(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(name, value)| 64 + name.len() + value_of(value)).sum()
}

fn value_of(value: &Value) -> usize {
    match value {
        Value::String(text) => 32 + text.len(),
        Value::Array(items) => items.iter().map(value_of).sum::<usize>() + 32,
        Value::Object(fields) => 32 + object(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
    }
}
