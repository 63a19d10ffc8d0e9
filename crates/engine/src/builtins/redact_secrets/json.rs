//! Secrets inside JSON, as a value and as text. Text stays the JSON it was: all but the strings with secrets in them
//! keeps its bytes.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::redact;

/// How long a value may be for its name to tell that it is a secret.
const NAMED: std::ops::RangeInclusive<usize> = 8..=4096;

/// A value without its secrets; `None` where there is none in it. `name` is the key it stands under.
pub(super) fn value(name: Option<&str>, value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => string(name, text).map(Value::String),
        Value::Array(list) => super::each(list, |item| self::value(name, item)).map(Value::Array),
        Value::Object(map) => object(map).map(Value::Object),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// An object without its secrets, those in its keys included.
pub(super) fn object(map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let changed: Vec<_> = map.iter().map(|(key, item)| (key, redact(key), value(Some(key), item), item)).collect();
    if changed.iter().all(|(_, key, value, _)| key.is_none() && value.is_none()) {
        return None;
    }
    let mut redacted = Map::new();
    for (old_key, key, value, old_value) in changed {
        let mut key = key.unwrap_or_else(|| old_key.clone());
        // Two secrets as keys of one object must not become one entry.
        while redacted.contains_key(&key) {
            key.push('_');
        }
        redacted.insert(key, value.unwrap_or_else(|| old_value.clone()));
    }
    Some(redacted)
}

/// A string without its secrets. What is no secret by itself may be one by its name, as in `"password": "…"`.
fn string(name: Option<&str>, text: &str) -> Option<String> {
    redact(text).or_else(|| {
        let name = name.filter(|_| NAMED.contains(&text.len()) && !text.contains(char::is_whitespace))?;
        let redacted = redact(&format!("{name}={text}"))?;
        redacted.strip_prefix(name)?.strip_prefix('=').filter(|redacted| *redacted != text).map(str::to_owned)
    })
}

/// JSON text without its secrets; text that is no JSON is taken as it stands.
pub(super) fn text(json: &str) -> Option<String> {
    if serde_json::from_str::<IgnoredAny>(json).is_err() {
        return redact(json);
    }
    let mut redacted = String::new();
    let (mut rest, mut name, mut changed) = (json, None, false);
    while let Some((before, literal, after)) = next_string(rest) {
        let decoded: String = serde_json::from_str(literal).ok()?;
        let is_key = after.trim_start().starts_with(':');
        let clean = if is_key { redact(&decoded) } else { string(name.as_deref(), &decoded) };
        redacted.push_str(before);
        match clean.and_then(|clean| serde_json::to_string(&clean).ok()) {
            Some(clean) => {
                redacted.push_str(&clean);
                changed = true;
            }
            None => redacted.push_str(literal),
        }
        if is_key {
            name = Some(decoded);
        }
        rest = after;
    }
    redacted.push_str(rest);
    changed.then_some(redacted)
}

/// What stands before the next string literal, the literal with its quotes, and what follows.
fn next_string(json: &str) -> Option<(&str, &str, &str)> {
    let start = json.find('"')?;
    let mut escaped = false;
    let end = json.bytes().enumerate().skip(start + 1).find_map(|(place, byte)| match byte {
        _ if std::mem::take(&mut escaped) => None,
        b'\\' => {
            escaped = true;
            None
        }
        b'"' => Some(place + 1),
        _ => None,
    })?;
    let (before, rest) = json.split_at(start);
    let (literal, after) = rest.split_at(end - start);
    Some((before, literal, after))
}
