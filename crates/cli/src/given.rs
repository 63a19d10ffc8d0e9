//! What a caller says of an event: its name, its input, changes to it.

use std::io::Read;
use std::path::Path;

use gatehook_events::dialect::PayloadError;
use gatehook_events::input::{FIELDS, UnreadableField};
use gatehook_events::{Event, Profile};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::policy;

/// Why an input cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GivenError {
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

/// The event of a name, the dialect's own or the native one.
pub(crate) fn event(name: &str, profile: Profile) -> Result<Event, Failure> {
    let native = Event::from_name(name).filter(|event| !event.is_lane());
    Event::from_name_in(profile, name).or(native).ok_or_else(|| {
        let known = Event::all().filter_map(|event| event.name_in(profile)).chain(Event::all().map(Event::name));
        Failure::usage(format!("there is no event `{name}`"), gatehook_engine::config::did_you_mean(name, known))
    })
}

/// A payload of a foreign contract as a native one.
pub(crate) fn spoken(
    payload: Map<String, Value>,
    event: Event,
    profile: Profile,
) -> Result<Map<String, Value>, Failure> {
    let Some(dialect) = policy::registry().dialect(profile) else { return Ok(payload) };
    let (_, input) = dialect.read_payload(Some(event), Value::Object(payload)).map_err(GivenError::Payload)?;
    match input.to_json().map_err(|error| GivenError::Unwritable(error.to_string()))? {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

/// What a file or standard input says of an event; `-` is standard input.
pub(crate) fn from_file(path: &Path) -> Result<Map<String, Value>, Failure> {
    let (name, text) = text(path)?;
    from_text(&name, &text)
}

/// What a text of this name says of an event.
pub(crate) fn from_text(name: &str, text: &str) -> Result<Map<String, Value>, Failure> {
    serde_json::from_str(text).map_err(|error| {
        let help = "an input is one JSON object; `gatehook schema EVENT` says what may be in it".to_owned();
        Failure::usage(format!("{name} is no input of an event: {error}"), Some(help))
    })
}

/// A file's name and text; `-` is standard input.
pub(crate) fn text(path: &Path) -> Result<(String, String), Failure> {
    let stdin = path == Path::new("-");
    let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let read = if stdin {
        std::io::stdin().lock().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| Failure::usage(format!("{name} cannot be read: {error}"), None))?;
    Ok((name, text))
}

/// Sets `key=value`: a payload's field by its name, else an argument of the tool on tool events. A prompt on an event
/// that has messages is their last one.
pub(crate) fn set(input: &mut Map<String, Value>, event: Event, assignment: &str) -> Result<(), GivenError> {
    let (key, text) = assignment.split_once('=').ok_or_else(|| GivenError::NoValue(assignment.to_owned()))?;
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
