//! What became of a scenario, held against what must become of it.

use serde_json::Value;

use super::play::Played;
use super::table::Row;

/// What differs, each in a sentence.
pub(super) fn differences(row: &Row, played: &Played) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut is = |what: &str, expected: &str, actual: &str| {
        if expected != actual {
            wrong.push(format!("{what} is {actual:?}, not {expected:?}"));
        }
    };
    is("the exit code", &row.code.to_string(), &played.ran.code.to_string());
    row.reason.iter().for_each(|reason| is("the reason", reason, played.done("reason")));
    row.text.iter().for_each(|text| is("the text", text, played.done("text")));
    if let Some(order) = &row.order {
        is("the order", &order.join(" "), &played.events().join(" "));
    }
    for (event, times) in &row.times {
        let came = played.counts().get(event.as_str()).copied().unwrap_or_default();
        is(&format!("the number of {event}"), &times.to_string(), &came.to_string());
    }
    for (event, expected) in &row.told {
        told(event, expected, played, &mut wrong);
    }
    let last = played.asked.last().map(|asked| asked["messages"].to_string()).unwrap_or_default();
    let ever: String = played.asked.iter().map(|asked| asked["messages"].to_string()).collect();
    let printed = format!("{}{}", played.ran.out, played.ran.err);
    for (what, words, text, wanted) in [
        ("the last question", &row.asked, &last, true),
        ("the last question", &row.unasked, &last, false),
        ("any question", &row.once_asked, &ever, true),
        ("the results", &row.results, &played.results(), true),
        ("the results", &row.no_results, &played.results(), false),
        ("what the person was told", &row.noticed, &played.noticed(), true),
        ("what is printed", &row.unprinted, &printed, false),
    ] {
        for word in words.iter().filter(|word| text.contains(word.as_str()) != wanted) {
            let not = if wanted { "is not" } else { "is" };
            wrong.push(format!("{word:?} {not} in {what}: {text}"));
        }
    }
    for (name, expected) in &row.left {
        let left = std::fs::read_to_string(played.home.path().join(name)).ok();
        let fits = match (expected, &left) {
            (Some(expected), Some(left)) => left.contains(&resolved(expected, played)),
            (None, None) => true,
            _ => false,
        };
        if !fits {
            wrong.push(format!("{name} holds {left:?}, not {expected:?}"));
        }
    }
    wrong
}

/// Payloads of an event: one of this form, or exactly these.
fn told(event: &str, expected: &Value, played: &Played, wrong: &mut Vec<String>) {
    let came = played.of(event);
    let misses = |expected: &Value, actual: &Value| {
        let mut misses = Vec::new();
        differ("", expected, actual, played, &mut misses);
        misses
    };
    if let Value::Array(all) = expected {
        if all.len() != came.len() {
            wrong.push(format!("{event} came {} times, not {}: {came:?}", came.len(), all.len()));
        }
        for (expected, actual) in all.iter().zip(&came) {
            wrong.extend(misses(expected, actual).into_iter().map(|miss| format!("{event}{miss} in {actual}")));
        }
        return;
    }
    // The one that fits best is the one that is meant.
    match came.iter().map(|actual| (misses(expected, actual), actual)).min_by_key(|(misses, _)| misses.len()) {
        None => wrong.push(format!("{event} did not come")),
        Some((misses, actual)) => {
            wrong.extend(misses.into_iter().map(|miss| format!("{event}{miss} in {actual}")));
        }
    }
}

/// Where a value is not of a form. Of an object only what is expected counts.
fn differ(place: &str, expected: &Value, actual: &Value, played: &Played, misses: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (key, expected) in expected {
                let actual = actual.get(key).unwrap_or(&Value::Null);
                differ(&format!("{place}.{key}"), expected, actual, played, misses);
            }
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            for (at, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                differ(&format!("{place}[{at}]"), expected, actual, played, misses);
            }
        }
        (Value::String(form), actual) if has_form(form, actual, played) => {}
        (expected, actual) if expected == actual => {}
        _ => misses.push(format!("{place} is {actual}, not {expected}")),
    }
}

/// `<text>` (which is not empty), `<any text>`, `<number>`, `<time>`, `<list>`, `<none>`, `<has WORDS>`; `<here>` and `<session>` stand
/// for themselves.
fn has_form(form: &str, actual: &Value, played: &Played) -> bool {
    let text = actual.as_str().unwrap_or_default();
    let is_time = || text.ends_with('Z') && text.get(10..11) == Some("T") && text.get(4..5) == Some("-");
    match form {
        "<text>" => !text.is_empty(),
        "<number>" => actual.is_number(),
        "<list>" => actual.as_array().is_some_and(|list| !list.is_empty()),
        "<any text>" => actual.is_string(),
        "<time>" => is_time(),
        "<none>" => actual.is_null(),
        form => match form.strip_prefix("<has ").and_then(|words| words.strip_suffix('>')) {
            Some(words) => actual.to_string().contains(words),
            None => actual.is_string() && text == resolved(form, played),
        },
    }
}

fn resolved(form: &str, played: &Played) -> String {
    form.replace("<here>", &played.here.display().to_string()).replace("<session>", played.session())
}
