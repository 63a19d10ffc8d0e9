//! Redacting inside JSON, as a value and as text. Text stays the JSON it was: what is not redacted keeps its bytes.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::{Redaction, each};

/// A redacted value; `None` where there is nothing to redact. `name` is the key it stands under, `renamed` what has become
/// of it.
pub(in super::super) fn value(
    name: Option<&str>,
    renamed: Option<&str>,
    value: &Value,
    redact: &mut Redaction<'_>,
) -> Option<Value> {
    match value {
        Value::String(text) => redact.named(name, renamed, text).map(Value::String),
        Value::Number(number) => redact.number(&number.to_string()).map(Value::String),
        Value::Array(list) => each(list, |item| self::value(name, renamed, item, redact)).map(Value::Array),
        Value::Object(map) => object(map, redact).map(Value::Object),
        Value::Null | Value::Bool(_) => None,
    }
}

/// A redacted object, its keys included.
pub(in super::super) fn object(map: &Map<String, Value>, redact: &mut Redaction<'_>) -> Option<Map<String, Value>> {
    let changed = map.iter().map(|(key, item)| {
        let new_key = redact.text(key);
        let new_item = value(Some(key), new_key.as_deref(), item, redact);
        (key, new_key, new_item, item)
    });
    let changed: Vec<_> = changed.collect();
    if changed.iter().all(|(_, key, value, _)| key.is_none() && value.is_none()) {
        return None;
    }
    let mut redacted = Map::new();
    for (old_key, key, value, old_value) in changed {
        let mut key = key.unwrap_or_else(|| old_key.clone());
        // Two that are redacted as keys of one object must not become one entry.
        while redacted.contains_key(&key) {
            key.push('_');
        }
        redacted.insert(key, value.unwrap_or_else(|| old_value.clone()));
    }
    Some(redacted)
}

/// Redacted JSON text; text that is no JSON is taken as it stands.
pub(in super::super) fn text(json: &str, redact: &mut Redaction<'_>) -> Option<String> {
    if serde_json::from_str::<IgnoredAny>(json).is_err() {
        return redact.text(json);
    }
    let mut redacted = String::new();
    let (mut rest, mut name, mut renamed, mut changed) = (json, None, None, false);
    while let Some((before, literal, after)) = next_string(rest) {
        let decoded: String = serde_json::from_str(literal).ok()?;
        let is_key = after.trim_start().starts_with(':');
        changed |= numbers(before, &mut redacted, redact);
        let clean = match is_key {
            true => redact.text(&decoded),
            false => redact.named(name.as_deref(), renamed.as_deref(), &decoded),
        };
        match clean.as_ref().and_then(|clean| serde_json::to_string(clean).ok()) {
            Some(clean) => {
                redacted.push_str(&clean);
                changed = true;
            }
            None => redacted.push_str(literal),
        }
        if is_key {
            (name, renamed) = (Some(decoded), clean);
        }
        rest = after;
    }
    changed |= numbers(rest, &mut redacted, redact);
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

/// Writes JSON without strings, its numbers redacted; says whether any was.
fn numbers(json: &str, out: &mut String, redact: &mut Redaction<'_>) -> bool {
    let is_number = |char: char| char.is_ascii_digit() || "+-.eE".contains(char);
    let (mut rest, mut changed) = (json, false);
    while let Some(start) = rest.find(|char: char| char.is_ascii_digit() || char == '-') {
        let (before, number) = rest.split_at(start);
        let (number, after) = number.split_at(number.find(|char| !is_number(char)).unwrap_or(number.len()));
        let clean = redact.number(number).and_then(|clean| serde_json::to_string(&clean).ok());
        changed |= clean.is_some();
        out.push_str(before);
        out.push_str(clean.as_deref().unwrap_or(number));
        rest = after;
    }
    out.push_str(rest);
    changed
}
