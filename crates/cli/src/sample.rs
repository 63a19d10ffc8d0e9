//! The caller's changes to an input.

use gatehook_events::Event;
use gatehook_events::dialect::PayloadError;
use gatehook_events::input::{FIELDS, UnreadableField};
use serde_json::{Map, Value, json};

/// Why an input cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SampleError {
    /// `--set` without `=`.
    #[error("`--set {0}` has no `=`: write KEY=VALUE")]
    NoValue(String),
    /// A field holds what it cannot hold.
    #[error("the input's {0}")]
    Field(#[from] UnreadableField),
    /// It is no payload of its dialect.
    #[error("this is no input of an event: {0}")]
    Payload(PayloadError),
    /// It cannot be written as a native one.
    #[error("the input has no JSON: {0}")]
    Unwritable(String),
}

/// Sets `key=value`: a payload's field by its name, else an argument of the tool on tool events. A prompt on an event
/// that has messages is their last one.
pub(crate) fn set(input: &mut Map<String, Value>, event: Event, assignment: &str) -> Result<(), SampleError> {
    let (key, text) = assignment.split_once('=').ok_or_else(|| SampleError::NoValue(assignment.to_owned()))?;
    let value =
        serde_json::from_str(text).ok().filter(|value: &Value| !value.is_number()).unwrap_or_else(|| json!(text));
    let known = FIELDS.iter().find(|row| row.name == key && row.is_on(event));
    match known {
        Some(row) if row.json == "string" => input.insert(key.to_owned(), json!(text)),
        Some(row) if row.json == "integer" || row.json == "number" => {
            input.insert(key.to_owned(), serde_json::from_str(text).unwrap_or(value))
        }
        Some(_) => input.insert(key.to_owned(), value),
        None if key == "prompt" && input.contains_key("messages") => {
            input.insert("messages".to_owned(), json!([{"role": "user", "content": text}]))
        }
        None => match input.get_mut("tool_input").and_then(Value::as_object_mut) {
            Some(arguments) => arguments.insert(key.to_owned(), value),
            None => input.insert(key.to_owned(), value),
        },
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use gatehook_events::sample::sample;

    use super::*;

    #[test]
    fn an_unknown_key_is_an_argument_of_the_tool() {
        let mut input = sample(Event::PreToolUse);
        set(&mut input, Event::PreToolUse, "path=/etc/passwd").unwrap();
        assert_eq!(input["tool_input"]["path"], "/etc/passwd");
    }

    #[test]
    fn a_prompt_on_an_inference_event_is_its_message() {
        let mut input = sample(Event::PreInference);
        set(&mut input, Event::PreInference, "prompt=hi").unwrap();
        assert_eq!(input["messages"], json!([{"role": "user", "content": "hi"}]));
    }
}
