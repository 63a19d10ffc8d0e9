//! The texts of an input, one after another.

use gatehook_events::{Event, Input, Message, ToolCall};
use serde_json::Value;

/// Looks at the texts of an input until one is what is looked for; says whether any was. After a model call that is its
/// answer alone: what was asked has been looked at before.
pub(super) fn any(event: Event, input: &Input, look: &mut dyn FnMut(&str) -> bool) -> bool {
    let texts = [&input.output_text, &input.output_thinking, &input.stop_response];
    if texts.into_iter().flatten().any(|text| look(text)) || input.tool_calls.iter().any(|calls| in_calls(calls, look))
    {
        return true;
    }
    if matches!(event, Event::PostInference | Event::AfterLlmCall) {
        return false;
    }
    let texts = [&input.prompt, &input.suffix, &input.template, &input.skill_args, &input.message, &input.file];
    let values = [&input.tools, &input.format, &input.tool_response];
    texts.into_iter().flatten().any(|text| look(text))
        || input.messages.iter().flat_map(|messages| messages.iter()).any(|message| in_message(message, look))
        || input.tool_input.iter().flat_map(|map| map.iter()).any(|(key, value)| look(key) || in_value(value, look))
        || values.into_iter().flatten().any(|value| in_value(value, look))
        || input.steering_messages.iter().chain(&input.files).flatten().any(|text| look(text))
        || [&input.details, &input.data].into_iter().flatten().any(|value| in_value(value, look))
}

fn in_message(message: &Message, look: &mut dyn FnMut(&str) -> bool) -> bool {
    [&message.content, &message.thinking, &message.name].into_iter().flatten().any(|text| look(text))
        || message.tool_calls.iter().any(|calls| in_calls(calls, look))
        || message.extra.values().any(|value| in_value(value, look))
}

fn in_calls(calls: &[ToolCall], look: &mut dyn FnMut(&str) -> bool) -> bool {
    calls.iter().any(|call| {
        // Escapes hide nothing: arguments are looked at as what they mean, and as they stand.
        let arguments = &*call.function.arguments;
        look(&call.function.name)
            || look(arguments)
            || serde_json::from_str(arguments).is_ok_and(|value| in_value(&value, look))
            || call.extra.values().any(|value| in_value(value, look))
    })
}

fn in_value(value: &Value, look: &mut dyn FnMut(&str) -> bool) -> bool {
    match value {
        Value::String(text) => look(text),
        Value::Array(list) => list.iter().any(|value| in_value(value, look)),
        Value::Object(map) => map.iter().any(|(key, value)| look(key) || in_value(value, look)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// About how many bytes of text there are.
pub(super) fn size(input: &Input) -> usize {
    let messages = input.messages.iter().flat_map(|messages| messages.iter());
    let of_messages: usize = messages.map(|message| message.content.as_deref().map_or(16, str::len)).sum();
    let texts = [&input.output_text, &input.output_thinking, &input.prompt];
    let of_texts: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
    let of_values: usize = input.tool_response.iter().map(|value| length(value)).sum();
    let of_arguments: usize = input.tool_input.iter().flat_map(|map| map.values()).map(length).sum();
    of_messages + of_texts + of_values + of_arguments
}

fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(length).sum(),
        Value::Object(map) => map.values().map(length).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}
