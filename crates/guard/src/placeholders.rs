//! Values in the place of placeholders that a hook has put into the request.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use gatehook_engine::events::{ModelOutput, ToolCall};
use gatehook_inference::Choice;

/// Placeholders, and what each stands for.
pub(crate) type Placeholders = Arc<[(Arc<str>, Arc<str>)]>;

/// The placeholders in a text, each with its value; of two at one place the longer one.
pub(crate) fn found<'p>(text: &str, placeholders: &'p [(Arc<str>, Arc<str>)]) -> Vec<(Range<usize>, &'p str)> {
    let mut found: Vec<(Range<usize>, &str)> = Vec::new();
    if placeholders.is_empty() {
        return found;
    }
    let all = placeholders.iter().flat_map(|(placeholder, value)| {
        let places = text.match_indices(&**placeholder).filter(|(_, placeholder)| !placeholder.is_empty());
        places.map(move |(at, placeholder)| (at..at + placeholder.len(), &**value))
    });
    found.extend(all);
    found.sort_by_key(|(place, _)| (place.start, std::cmp::Reverse(place.end)));
    let mut end = 0;
    found.retain(|(place, _)| {
        let free = place.start >= end;
        end = if free { place.end } else { end };
        free
    });
    found
}

/// A text with the values in it; `None` where it has no placeholder.
fn restored(text: &str, placeholders: &[(Arc<str>, Arc<str>)], spell: fn(&str) -> Cow<'_, str>) -> Option<Arc<str>> {
    let found = found(text, placeholders);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (place, value) in &found {
        out.push_str(text.get(at..place.start)?);
        out.push_str(&spell(value));
        at = place.end;
    }
    out.push_str(text.get(at..)?);
    (!found.is_empty()).then(|| out.into())
}

/// A call with the values in its arguments; `None` where they have no placeholder.
pub(crate) fn restored_call(call: &ToolCall, placeholders: &[(Arc<str>, Arc<str>)]) -> Option<ToolCall> {
    let spell = if &*call.kind == "custom" { as_it_is } else { in_json };
    let arguments = restored(&call.function.arguments, placeholders, spell)?;
    let mut call = call.clone();
    call.function.arguments = arguments;
    Some(call)
}

fn as_it_is(value: &str) -> Cow<'_, str> {
    Cow::Borrowed(value)
}

/// A value as it stands inside of a string of JSON.
fn in_json(value: &str) -> Cow<'_, str> {
    let quoted = serde_json::Value::from(value).to_string();
    Cow::Owned(quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned())
}

/// Puts the values into what is handed out of a choice.
pub(crate) fn restore(choice: &Choice, output: &mut ModelOutput, placeholders: &[(Arc<str>, Arc<str>)]) {
    let text = |new: &Option<Arc<str>>, old: &Option<Arc<str>>| {
        restored(new.as_deref().or(old.as_deref())?, placeholders, as_it_is)
    };
    let (shown, thinking) = (text(&output.text, &choice.output.text), text(&output.thinking, &choice.output.thinking));
    output.text = shown.or(output.text.take());
    output.thinking = thinking.or(output.thinking.take());
    let Some(calls) = output.tool_calls.as_deref().or(choice.output.tool_calls.as_deref()) else { return };
    let restored: Vec<Option<ToolCall>> = calls.iter().map(|call| restored_call(call, placeholders)).collect();
    if restored.iter().any(Option::is_some) {
        let calls = restored.into_iter().zip(calls).map(|(new, old)| new.unwrap_or_else(|| old.clone()));
        output.tool_calls = Some(calls.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Placeholders {
        [("[EMAIL_1]", "a\"b@x.org"), ("[EMAIL_10]", "c@x.org"), ("[EMAIL", "never")]
            .map(|(placeholder, value)| (placeholder.into(), value.into()))
            .into()
    }

    #[test]
    fn each_placeholder_becomes_its_own_value() {
        let restore = |text| restored(text, &table()[..2], as_it_is);
        assert_eq!(restore("to [EMAIL_10], [EMAIL_1].").as_deref(), Some("to c@x.org, a\"b@x.org."));
        assert_eq!(restore("to [EMAIL_2]"), None);
    }

    #[test]
    fn of_two_at_one_place_the_longer_one_counts() {
        assert_eq!(restored("[EMAIL_1]", &table(), as_it_is).as_deref(), Some("a\"b@x.org"));
    }

    #[test]
    fn values_in_arguments_stay_json() {
        let mut call = ToolCall { kind: "function".into(), ..ToolCall::default() };
        call.function.arguments = r#"{"to":"[EMAIL_1]"}"#.into();
        let restored = restored_call(&call, &table()).unwrap();
        let arguments: serde_json::Value = serde_json::from_str(&restored.function.arguments).unwrap();
        assert_eq!(arguments, serde_json::json!({"to": "a\"b@x.org"}));
    }
}
