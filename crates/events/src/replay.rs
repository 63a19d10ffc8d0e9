//! Recorded events as JSON, to be raised once more: what `gatehook hooks trace --json` prints, or what somebody wrote by
//! hand, `{"event": …, "input": {…}, "verdict": …}`.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::catalogue::Event;
use crate::input::{Input, UnreadableField};
use crate::profile::Profile;
use crate::verdict::{Verb, Verdict};

/// One recorded event.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// As in `trace 12` or `record 3`.
    pub name: String,
    /// What happened.
    pub event: Event,
    /// What hooks are told.
    pub input: Input,
    /// What came of it, where that is known.
    pub then: Option<Answer>,
    /// Its input is what the hooks saw then: nothing was cut from it, and no secret taken out.
    pub is_whole: bool,
}

/// What a verdict came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The verdict in one word.
    pub verb: Verb,
    /// What was rewritten, by the names of the payload's fields.
    pub rewritten: Vec<String>,
}

/// Why there are no records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordError {
    /// It is no JSON.
    Text(String),
    /// A record, by its name, is none.
    Record(String, Fault),
}

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It does not say what happened.
    NoEvent,
    /// There is no such event.
    UnknownEvent(String),
    /// Its input is no object.
    Input,
    /// A field of its input holds what it cannot hold.
    Field(UnreadableField),
    /// What it says came of it is no verdict.
    Verdict,
    /// It does not say in numbers and truths what its input has lost.
    Loss(String),
}

/// What a trace says of what its input has lost.
#[derive(Deserialize)]
struct Loss {
    cut: Option<bool>,
    secrets: Option<u64>,
}

/// Reads records: JSON values, each a record or a list of records. The first that is wrong ends it.
///
/// ```
/// use gatehook_events::{Event, Verb, replay};
///
/// let text = r#"{"event": "stop", "verdict": "deny"} [{"id": 7, "event": "stop", "input": {"cwd": "/"}}]"#;
/// let values = serde_json::Deserializer::from_str(text).into_iter();
/// let records = replay::read(values).unwrap();
/// assert_eq!((&*records[0].name, records[0].event), ("record 1", Event::Stop));
/// assert_eq!(records[0].then.as_ref().map(|then| then.verb), Some(Verb::Deny));
/// assert_eq!((&*records[1].name, records[1].input.cwd.as_deref()), ("trace 7", Some("/")));
/// ```
pub fn read(values: impl IntoIterator<Item = serde_json::Result<Value>>) -> Result<Vec<Record>, RecordError> {
    let mut records = Vec::new();
    for value in values {
        let values = match value.map_err(|error| RecordError::Text(error.to_string()))? {
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in &values {
            let name = match value.get("id").and_then(Value::as_i64) {
                Some(id) => format!("trace {id}"),
                None => format!("record {}", records.len() + 1),
            };
            records.push(Record::read(value, name)?);
        }
    }
    Ok(records)
}

impl Record {
    /// Reads one record, which messages call by `name`.
    pub fn read(value: &Value, name: String) -> Result<Self, RecordError> {
        match parts(value) {
            Ok((event, input, then, is_whole)) => Ok(Self { name, event, input, then, is_whole }),
            Err(fault) => Err(RecordError::Record(name, fault)),
        }
    }
}

fn parts(value: &Value) -> Result<(Event, Input, Option<Answer>, bool), Fault> {
    let event = value.get("event").and_then(Value::as_str).ok_or(Fault::NoEvent)?;
    let event = Event::from_name_in(Profile::Native, event).ok_or_else(|| Fault::UnknownEvent(event.to_owned()))?;
    let input = match value.get("input") {
        None => Map::new(),
        Some(Value::Object(input)) => input.clone(),
        Some(_) => return Err(Fault::Input),
    };
    let input = Input::read(input).map_err(Fault::Field)?;
    let then = match value.get("verdict") {
        None | Some(Value::Null) => None,
        Some(verdict) => Some(Answer::read(verdict).ok_or(Fault::Verdict)?),
    };
    let Loss { cut, secrets } = Loss::deserialize(value).map_err(|error| Fault::Loss(error.to_string()))?;
    Ok((event, input, then, !cut.unwrap_or(false) && secrets.unwrap_or(0) == 0))
}

impl Answer {
    /// What a verdict comes to.
    pub fn of(verdict: &Verdict) -> Self {
        Self { verb: verdict.verb, rewritten: verdict.rewritten.names().into_iter().map(str::to_owned).collect() }
    }

    /// From `{"verb": …, "rewritten": […]}`, or the verb alone.
    fn read(value: &Value) -> Option<Self> {
        let verb = value.as_str().or_else(|| value.get("verb")?.as_str())?;
        let rewritten = match value.get("rewritten") {
            None | Some(Value::Null) => Vec::new(),
            Some(rewritten) => Vec::deserialize(rewritten).ok()?,
        };
        Some(Self { verb: Verb::from_name(verb)?, rewritten })
    }

    /// As it is read.
    pub fn json(&self) -> Value {
        json!({"verb": self.verb.name(), "rewritten": self.rewritten})
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(cause) => f.write_str(cause),
            Self::Record(name, Fault::NoEvent) => write!(f, "{name} has no `event`"),
            Self::Record(_, Fault::UnknownEvent(event)) => write!(f, "there is no event `{}`", event.escape_debug()),
            Self::Record(name, Fault::Input) => write!(f, "the input of {name} is no object"),
            Self::Record(name, Fault::Field(field)) => write!(f, "{name}: the input's {field}"),
            Self::Record(name, Fault::Verdict) => {
                write!(f, "the verdict of {name} is none: it is a verb, or {{\"verb\": …, \"rewritten\": […]}}")
            }
            Self::Record(name, Fault::Loss(cause)) => write!(f, "{name}: `cut` or `secrets` cannot be read: {cause}"),
        }
    }
}

impl std::error::Error for RecordError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<Record>, RecordError> {
        super::read(serde_json::Deserializer::from_str(text).into_iter())
    }

    #[test]
    fn a_verdict_is_a_verb_or_says_what_was_rewritten_too() {
        for (verdict, rewritten) in [
            (r#""modify""#, &[] as &[&str]),
            (r#"{"verb": "modify"}"#, &[]),
            (r#"{"verb": "modify", "rewritten": ["messages"], "message": "m"}"#, &["messages"]),
        ] {
            let records = read(&format!(r#"{{"event": "stop", "verdict": {verdict}}}"#)).unwrap();
            let then = records[0].then.clone().unwrap();
            assert_eq!(
                (then.verb, &*then.rewritten),
                (Verb::Modify, &*rewritten.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>())
            );
        }
        for verdict in ["null", "1", r#""no""#, "{}", r#"{"verb": "deny", "rewritten": "messages"}"#, r#"["deny"]"#] {
            let records = read(&format!(r#"{{"event": "stop", "verdict": {verdict}}}"#));
            match verdict {
                "null" => assert_eq!(records.unwrap()[0].then, None),
                _ => assert_eq!(records, Err(RecordError::Record("record 1".to_owned(), Fault::Verdict)), "{verdict}"),
            }
        }
    }

    #[test]
    fn an_input_that_has_lost_something_is_not_whole() {
        for (loss, is_whole) in [
            ("", true),
            (r#", "cut": false, "secrets": 0"#, true),
            (r#", "cut": true"#, false),
            (r#", "secrets": 1"#, false),
        ] {
            assert_eq!(read(&format!(r#"{{"event": "stop"{loss}}}"#)).unwrap()[0].is_whole, is_whole, "{loss}");
        }
        for loss in [r#""cut": "yes""#, r#""secrets": -1"#] {
            let records = read(&format!(r#"{{"event": "stop", {loss}}}"#));
            assert!(matches!(records, Err(RecordError::Record(_, Fault::Loss(_)))), "{loss}");
        }
    }

    #[test]
    fn a_lane_of_the_engine_is_no_event_that_happened() {
        let unknown = Fault::UnknownEvent("pre_tool_use_pre_yolo".to_owned());
        let records = read(r#"{"event": "pre_tool_use_pre_yolo"}"#);
        assert_eq!(records, Err(RecordError::Record("record 1".to_owned(), unknown)));
    }

    proptest! {
        #[test]
        fn any_text_is_records_or_says_why_not(text in r#"([\[\]{},:" 0-9]|"event"|"stop"|"input"|"verdict"){0,24}"#) {
            if let Err(error) = read(&text) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
