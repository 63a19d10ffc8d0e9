//! What the replies of all contracts have in common: one JSON object, read field by field.

use std::collections::BTreeMap;

use gatehook_events::FailureKind;
use gatehook_events::dialect::Said;
use gatehook_events::unique;
use serde_json::{Map, Value};

/// Why a reply cannot be read: in one word, and in a sentence fragment without the reply's own text.
pub(crate) type Fault = (FailureKind, String);

/// Without blank characters and a byte order mark.
pub(crate) fn trimmed(stdout: &[u8]) -> &[u8] {
    let text = stdout.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stdout);
    std::str::from_utf8(text).map_or_else(|_| text.trim_ascii(), |text| text.trim().as_bytes())
}

/// Exactly one object, no key of which stands twice.
pub(crate) fn object(text: &[u8]) -> Result<Map<String, Value>, Fault> {
    let message = |kind| match kind {
        FailureKind::TrailingData => "something follows its JSON reply",
        FailureKind::DuplicateKey => "a key stands twice in its reply",
        _ => "its reply is no JSON",
    };
    match unique::parse(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err((FailureKind::MalformedJson, "its reply is no JSON object".to_owned())),
        Err(kind) => Err((kind, message(kind).to_owned())),
    }
}

/// Takes a text out; null is none.
pub(crate) fn text(reply: &mut Map<String, Value>, key: &str) -> Result<Option<String>, Fault> {
    match reply.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong_type(key)),
    }
}

/// Takes an object out; null is none.
pub(crate) fn nested(reply: &mut Map<String, Value>, key: &str) -> Result<Option<Map<String, Value>>, Fault> {
    match reply.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(wrong_type(key)),
    }
}

/// Takes a truth value out; null is none.
pub(crate) fn truth(reply: &mut Map<String, Value>, key: &str) -> Result<Option<bool>, Fault> {
    match reply.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(truth)) => Ok(Some(truth)),
        Some(_) => Err(wrong_type(key)),
    }
}

pub(crate) fn wrong_type(key: &str) -> Fault {
    (FailureKind::MalformedJson, format!("`{key}` of its reply is of the wrong type"))
}

/// Facts for whoever reads the verdict: texts as they are, anything else as its JSON.
pub(crate) fn metadata(facts: Map<String, Value>) -> Option<BTreeMap<String, String>> {
    let text = |value| match value {
        Value::String(text) => text,
        value => value.to_string(),
    };
    let facts: BTreeMap<_, _> = facts.into_iter().map(|(key, value)| (key, text(value))).collect();
    Some(facts).filter(|facts| !facts.is_empty())
}

/// A fault as what was said.
pub(crate) fn failed((kind, message): Fault) -> Said {
    Said::Failed(kind, message)
}

/// How a hook ended whose code says neither yes nor no.
pub(crate) fn ending(code: i32) -> String {
    if code < 0 { "it was ended by a signal".to_owned() } else { format!("it exited with code {code}") }
}
