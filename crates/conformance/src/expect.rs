//! Compares what was expected with what happened.

use std::fmt;

use serde_json::{Map, Value};

use crate::actual::Actual;
use crate::builtin;
use crate::reader::Diagnosis;

/// One expectation that does not hold.
#[derive(Debug)]
pub(crate) struct Difference {
    /// Its key.
    pub(crate) key: String,
    expected: Value,
    actual: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.key, self.expected, self.actual)
    }
}

/// All expectations that do not hold.
pub(crate) fn compare(expected: &Map<String, Value>, actual: &Actual) -> Vec<Difference> {
    let differs = |(key, expected): (&String, &Value)| {
        let (holds, found) = check(key, expected, actual);
        (!holds).then(|| Difference { key: key.clone(), expected: expected.clone(), actual: found })
    };
    expected.iter().filter_map(differs).collect()
}

fn check(key: &str, expected: &Value, actual: &Actual) -> (bool, Value) {
    let exact = |found: &Value| (same(expected, found), found.clone());
    match key {
        "elapsed_ms" => {
            let found = actual.get(key);
            let limit = |name| expected.get(name).and_then(Value::as_u64);
            let elapsed = found.as_u64().unwrap_or_default();
            let holds = limit("min").is_none_or(|min| elapsed >= min) && limit("max").is_none_or(|max| elapsed <= max);
            (holds, found.clone())
        }
        "message_kinds" | "system_message_kinds" => exact_kinds(expected, actual.get(key)),
        "max_ms" => (actual.get("elapsed_ms").as_u64() <= expected.as_u64(), actual.get("elapsed_ms").clone()),
        "min_ms" => (actual.get("elapsed_ms").as_u64() >= expected.as_u64(), actual.get("elapsed_ms").clone()),
        "results" | "payload" | "payloads" => (covers(expected, actual.get(key)), actual.get(key).clone()),
        "files" => of_files(expected, actual, same),
        "files_contain" => of_files(expected, actual, contains),
        "updated_messages_unchanged_index" => {
            let found = actual.get(key);
            let has = |place: &Value| found.as_array().is_some_and(|found| found.contains(place));
            (expected.as_array().into_iter().flatten().all(has), found.clone())
        }
        "http_requests" => (all_within(expected, actual.get(key)), actual.get(key).clone()),
        key => {
            let ending = ENDINGS.iter().find_map(|(ending, holds)| Some((key.strip_suffix(ending)?, holds)));
            match ending.filter(|_| actual.get(key).is_null()) {
                Some((name, holds)) => (holds(expected, actual.get(name)), actual.get(name).clone()),
                None => exact(actual.get(key)),
            }
        }
    }
}

/// The reference's own name for a builtin that said it failed is `builtin_error`.
fn exact_kinds(expected: &Value, found: &Value) -> (bool, Value) {
    let named = |kind: &Value| if kind == "builtin_error" { "handler_error".into() } else { kind.clone() };
    let expected = expected.as_array().map_or_else(|| expected.clone(), |kinds| kinds.iter().map(named).collect());
    (same(&expected, found), found.clone())
}

type Holds = fn(&Value, &Value) -> bool;

/// What may stand behind the name of a fact, and what it says of it. A longer ending stands before one that ends it.
const ENDINGS: &[(&str, Holds)] = &[
    ("_not_contains", |expected, found| {
        let found = text(found);
        parts(expected).into_iter().all(|part| !found.contains(part))
    }),
    ("_contains", |expected, found| match expected {
        Value::Object(fields) => fields.iter().all(|(path, part)| contains(part, at(found, path))),
        expected => contains(expected, found),
    }),
    ("_keeps", |expected, found| {
        expected.as_object().is_some_and(|fields| fields.iter().all(|(path, value)| same(value, at(found, path))))
    }),
    ("_regex", |expected, found| {
        let pattern = expected.as_str().and_then(|pattern| regex::Regex::new(pattern).ok());
        pattern.is_some_and(|pattern| pattern.is_match(&text(found)))
    }),
    ("_count", |expected, found| expected.as_u64() == Some(found.as_array().map_or(0, Vec::len) as u64)),
];

/// Facts that any verdict has, before their endings.
const VERDICT: &[&str] = &[
    "allowed",
    "exit_code",
    "permission_allowed",
    "decision",
    "decision_reason",
    "modified_input",
    "summary",
    "updated_messages",
    "updated_tool_response",
    "metadata",
    "additional_context",
    "additional_context_len",
    "instruction_context",
    "stderr",
    "message",
    "message_kinds",
    "system_message",
    "system_message_kinds",
    "elapsed_ms",
    "files",
];

/// Whether there is anything to compare under this expectation.
pub(crate) fn knows(key: &str) -> bool {
    let is_fact = |name: &str| VERDICT.contains(&name) || builtin::FACTS.contains(&name);
    is_fact(key) || ENDINGS.iter().any(|(ending, _)| key.strip_suffix(ending).is_some_and(is_fact))
}

/// Equal, or the JSON text of what is expected.
fn is(expected: &Value, found: Option<&Value>) -> bool {
    let read = || serde_json::from_str::<Value>(found?.as_str()?).ok();
    found == Some(expected) || (!expected.is_string() && read().as_ref() == Some(expected))
}

/// As many, and each has at least what is expected of it.
fn all_within(expected: &Value, found: &Value) -> bool {
    let (Value::Array(expected), Value::Array(found)) = (expected, found) else { return false };
    let within = |(expected, found): (&Value, &Value)| {
        expected.as_object().is_some_and(|fields| fields.iter().all(|(key, value)| is(value, found.get(key))))
    };
    expected.len() == found.len() && expected.iter().zip(found).all(within)
}

/// What stands in a value at `a.b.0`.
fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    let step = |value: &'v Value, key: &str| match value {
        Value::Array(items) => key.parse().ok().and_then(|place: usize| items.get(place)),
        value => value.get(key),
    };
    path.split('.').try_fold(value, step).unwrap_or(&Value::Null)
}

/// A text as it is, everything else as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn parts(expected: &Value) -> Vec<&str> {
    match expected {
        Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect(),
        part => part.as_str().into_iter().collect(),
    }
}

/// Lists of the same length, objects with at least what is expected: contracts leave room for more.
fn covers(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            expected.iter().all(|(key, expected)| match key.strip_suffix("_contains") {
                Some(text) if !found.contains_key(key) => contains(expected, found.get(text).unwrap_or(&Value::Null)),
                _ => covers(expected, found.get(key).unwrap_or(&Value::Null)),
            })
        }
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len() && expected.iter().zip(found).all(|(expected, found)| covers(expected, found))
        }
        (expected, found) => same(expected, found),
    }
}

/// Equal; nothing is equal to an empty text, and numbers by their value.
fn same(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Null, Value::String(text)) | (Value::String(text), Value::Null) => text.is_empty(),
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (expected, found) => expected == found,
    }
}

/// A text, or all of several in this order.
fn contains(expected: &Value, found: &Value) -> bool {
    let Value::String(found) = found else { return false };
    let mut rest = found.as_str();
    parts(expected).into_iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

fn of_files(expected: &Value, actual: &Actual, holds: impl Fn(&Value, &Value) -> bool) -> (bool, Value) {
    let found = actual.get("files");
    let expected = expected.as_object();
    let all = expected.into_iter().flatten().all(|(name, text)| holds(text, found.get(name).unwrap_or(&Value::Null)));
    (all, found.clone())
}

/// What the loader found, against what it should have found.
pub(crate) fn compare_config(expected: &Map<String, Value>, found: &Diagnosis) -> Vec<String> {
    let actual = Map::from_iter([
        ("valid".to_owned(), Value::Bool(found.kind.is_none())),
        ("error_kind".to_owned(), found.kind.clone().map_or(Value::Null, Value::String)),
        ("error_path".to_owned(), found.path.clone().map_or(Value::Null, Value::String)),
    ]);
    let found = |key: &str| actual.get(key).cloned().unwrap_or_default();
    let wrong = expected.iter().filter(|(key, value)| actual.get(*key) != Some(value));
    wrong.map(|(key, value)| format!("{key}: expected {value}, got {}", found(key))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_of_a_text_must_stand_in_their_order() {
        for (parts, holds) in [(json!(["a", "b"]), true), (json!(["b", "a"]), false), (json!("ab"), false)] {
            assert_eq!(contains(&parts, &json!("a-b")), holds, "{parts}");
        }
        assert!(!contains(&json!(["a", "a"]), &json!("a")), "each part stands for itself");
        assert!(!contains(&json!(["a"]), &Value::Null));
    }

    #[test]
    fn an_object_may_say_more_than_is_expected_and_a_list_may_not() {
        for (expected, found, holds) in [
            (json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": 2}, "d": 3}), true),
            (json!({"a": 1}), json!({"a": 2}), false),
            (json!({"a": null}), json!({}), true),
            (json!([{"a": 1}]), json!([{"a": 1, "b": 2}]), true),
            (json!([{}]), json!([{}, {}]), false),
            (json!({"stdout_contains": "b"}), json!({"stdout": "abc"}), true),
            (json!({"stdout_contains": "x"}), json!({"stdout": "abc"}), false),
        ] {
            assert_eq!(covers(&expected, &found), holds, "{expected} {found}");
        }
    }

    #[test]
    fn nothing_and_an_empty_text_are_the_same_and_an_empty_object_is_not() {
        assert!(same(&json!(""), &Value::Null));
        assert!(same(&json!(1), &json!(1.0)));
        assert!(!same(&Value::Null, &json!({})));
    }
}
