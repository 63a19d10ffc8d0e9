//! Changed texts and tool calls, into their places.

use std::sync::Arc;

use bytes::Bytes;
use gatehook_events::{FunctionCall, ToolCall};
use serde_json::{Map, Value, json};

use crate::error::Unheld;
use crate::json::{At, Document, Edits, Kind, quote};
use crate::view::{CallSlot, Calls, Place};

/// What became of the part that carries the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Stays,
    /// It was emptied and nothing of it may stay.
    Goes,
}

/// Puts `new` where `old` stands. Absent is unchanged, empty is emptied.
pub(crate) fn edit_text(
    document: &Document,
    place: &Place,
    what: &str,
    old: Option<&Arc<str>>,
    new: Option<&Arc<str>>,
    edits: &mut Edits,
) -> Result<Fate, Unheld> {
    let Some(new) = new.filter(|new| old.map_or("", |old| old) != &***new) else {
        return Ok(Fate::Stays);
    };
    match place {
        Place::In(_) | Place::Repeated(_) => place.values().iter().for_each(|at| edits.set_text(*at, new)),
        Place::Under(object, key) => edits.add_member(document, *object, key, &quote(new)),
        Place::Sealed(_) if new.is_empty() => return Ok(Fate::Goes),
        Place::Sealed(why) => return Err(Unheld::new(*why)),
        Place::Nowhere => return Err(Unheld::new(format!("this message has no place for {what}"))),
    }
    Ok(Fate::Stays)
}

/// Whether `new` changes nothing of `old`: what a call does not name stays.
pub(crate) fn same_calls(old: &[ToolCall], new: &[ToolCall]) -> bool {
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| {
            (new.id.is_none() || old.id == new.id)
                && old.kind == new.kind
                && old.function == new.function
                && new.extra.iter().all(|(key, value)| old.extra.get(key) == Some(value))
        })
}

/// Puts the calls `new` where `old` stand: as many are taken one by one, otherwise they are found again by id.
pub(crate) fn edit_calls(
    document: &Document,
    calls: &Calls,
    old: &[ToolCall],
    new: &[ToolCall],
    edits: &mut Edits,
) -> Result<Fate, Unheld> {
    if same_calls(old, new) {
        return Ok(Fate::Stays);
    }
    if old.len() == new.len() {
        for ((slot, old), new) in calls.slots.iter().zip(old).zip(new) {
            edit_call(document, slot, old, new, edits)?;
        }
        return Ok(Fate::Stays);
    }
    let Some((object, array)) = calls.list else {
        return match (new.is_empty(), old.is_empty()) {
            (true, _) => Ok(Fate::Goes),
            (_, true) => Err(Unheld::new("this message has no place for tool calls")),
            _ => Err(Unheld::new("this part holds one tool call, not several")),
        };
    };
    if new.is_empty() && calls.among.is_none() {
        edits.remove(object, array);
        return Ok(Fate::Stays);
    }
    edit_list(document, calls, array, old, new, edits)?;
    Ok(Fate::Stays)
}

/// A list that grows or shrinks.
fn edit_list(
    document: &Document,
    calls: &Calls,
    array: At,
    old: &[ToolCall],
    new: &[ToolCall],
    edits: &mut Edits,
) -> Result<(), Unheld> {
    if document.kind(array) != Kind::Array {
        return Err(Unheld::new("this message holds one call, not several"));
    }
    let mut from = 0;
    let mut after = calls.among.and_then(|_| document.elements(array).last());
    let mut kept = Vec::new();
    for call in new {
        let same = |shown: &ToolCall| shown == call || (call.id.is_some() && shown.id == call.id);
        match old.iter().zip(&calls.slots).enumerate().skip(from).find(|(_, (shown, _))| same(shown)) {
            Some((index, (shown, slot))) => {
                edit_call(document, slot, shown, call, edits)?;
                from = index + 1;
                after = Some(slot.at);
                kept.push(slot.at);
            }
            None => edits.insert(array, after, fresh_call(document, calls, call)?),
        }
    }
    for slot in calls.slots.iter().filter(|slot| !kept.contains(&slot.at)) {
        edits.remove(array, slot.at);
        slot.with.iter().for_each(|(container, child)| edits.remove(*container, *child));
    }
    kept.iter().enumerate().for_each(|(index, at)| renumber(document, *at, index, edits));
    Ok(())
}

/// The `index` of a call that stays, in the call or in its function.
fn renumber(document: &Document, at: At, index: usize, edits: &mut Edits) {
    for object in [Some(at), document.get(at, "function")].into_iter().flatten() {
        if let Some(number) = document.get(object, "index").filter(|at| document.kind(*at) == Kind::Number)
            && document.raw(number) != index.to_string()
        {
            edits.replace(number, index.to_string());
        }
    }
}

/// A call that was not there before, its arguments spelled as those beside it.
fn fresh_call(document: &Document, calls: &Calls, call: &ToolCall) -> Result<String, Unheld> {
    if let Some(write) = calls.among {
        return write(call);
    }
    let is_object = |at: &At| document.kind(*at) == Kind::Object;
    let objects = calls.slots.iter().any(|slot| slot.arguments.values().iter().any(is_object));
    Ok(call_value(call, objects)?.to_string())
}

/// A call as chat completions write it, or as native chat does: with arguments as an object.
pub(crate) fn call_value(call: &ToolCall, objects: bool) -> Result<Value, Unheld> {
    let arguments = match objects {
        true => object_of(&call.function.arguments)?,
        false => Value::String(call.function.arguments.to_string()),
    };
    let name = &*call.function.name;
    let mut value = match &*call.kind {
        "custom" if !objects => json!({ "type": "custom", "custom": { "name": name, "input": arguments } }),
        kind => json!({ "type": kind, "function": { "name": name, "arguments": arguments } }),
    };
    if let (Some(id), Some(map)) = (&call.id, value.as_object_mut()) {
        map.insert("id".into(), Value::String(id.to_string()));
    }
    Ok(value)
}

/// The arguments of a call as every reader reads them: an object, no key twice. No text at all is an empty object; the
/// free text of a custom call is its `input`.
pub fn arguments_of(call: &ToolCall) -> Result<Map<String, Value>, Unheld> {
    let arguments = call.function.arguments.trim();
    match &*call.kind {
        "custom" => Ok(Map::from_iter([("input".to_owned(), Value::String(call.function.arguments.to_string()))])),
        _ if arguments.is_empty() => Ok(Map::new()),
        _ => checked_object(arguments).map(|document| document.map(Document::ROOT)),
    }
}

/// The call with other arguments, spelled as [`arguments_of`] reads them.
pub fn with_arguments(call: &ToolCall, arguments: &Map<String, Value>) -> Result<ToolCall, Unheld> {
    let text: Arc<str> = match &*call.kind {
        "custom" => match (arguments.get("input"), arguments.len()) {
            (Some(Value::String(input)), 1) => input.as_str().into(),
            _ => return Err(Unheld::new("a custom call takes one text, its `input`")),
        },
        _ => serde_json::to_string(arguments).map_err(|error| Unheld::new(error.to_string()))?.into(),
    };
    let function = FunctionCall { arguments: text, ..call.function.clone() };
    Ok(ToolCall { function, ..call.clone() })
}

/// Arguments as the object that they must be.
pub(crate) fn object_of(arguments: &str) -> Result<Value, Unheld> {
    checked_object(arguments).map(|document| document.value(Document::ROOT))
}

fn checked_object(arguments: &str) -> Result<Document, Unheld> {
    Document::read(Bytes::copy_from_slice(arguments.as_bytes()))
        .ok()
        .filter(|document| document.kind(Document::ROOT) == Kind::Object)
        .ok_or_else(|| Unheld::new("the arguments of a tool call must stay a JSON object here"))
}

fn edit_call(
    document: &Document,
    slot: &CallSlot,
    old: &ToolCall,
    new: &ToolCall,
    edits: &mut Edits,
) -> Result<(), Unheld> {
    edit_text(document, &slot.id, "the id of a tool call", old.id.as_ref(), new.id.as_ref(), edits)?;
    let name = (!new.function.name.is_empty()).then_some(&new.function.name);
    edit_text(document, &slot.name, "the name of a tool call", Some(&old.function.name), name, edits)?;
    if old.kind != new.kind || new.extra.iter().any(|(key, value)| old.extra.get(key) != Some(value)) {
        return Err(Unheld::new("of a tool call, only id, name and arguments can be rewritten"));
    }
    match old.function.arguments == new.function.arguments {
        true => Ok(()),
        false => set_arguments(document, slot, &new.function.arguments, edits),
    }
}

/// Arguments into their place: a string takes any text, an object stays an object.
pub(crate) fn set_arguments(
    document: &Document,
    slot: &CallSlot,
    arguments: &str,
    edits: &mut Edits,
) -> Result<(), Unheld> {
    match &slot.arguments {
        Place::In(_) | Place::Repeated(_) => {
            for at in slot.arguments.values() {
                match document.kind(*at) {
                    Kind::Object => edits.replace(*at, checked_object(arguments)?.raw(Document::ROOT).to_owned()),
                    _ => edits.set_text(*at, arguments),
                }
            }
            Ok(())
        }
        Place::Under(object, key) => {
            let text = match *key {
                "input" => checked_object(arguments)?.raw(Document::ROOT).to_owned(),
                _ => quote(arguments),
            };
            edits.add_member(document, *object, key, &text);
            Ok(())
        }
        Place::Sealed(why) => Err(Unheld::new(*why)),
        Place::Nowhere => Err(Unheld::new("this tool call has no place for arguments")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: &str, arguments: &str) -> ToolCall {
        let function = FunctionCall { name: "f".into(), arguments: arguments.into() };
        ToolCall { kind: kind.into(), function, ..ToolCall::default() }
    }

    #[test]
    fn arguments_are_an_object_that_all_readers_read_alike() {
        for (kind, arguments, read) in [
            ("function", r#"{"a": 1}"#, Some(json!({"a": 1}))),
            ("function", " ", Some(json!({}))),
            ("custom", "*** Begin", Some(json!({"input": "*** Begin"}))),
            ("function", r#"{"a": 1, "a": 2}"#, None),
            ("function", r#"{"a": 1"#, None),
            ("function", "[1]", None),
        ] {
            assert_eq!(arguments_of(&call(kind, arguments)).ok().map(Value::Object), read, "{kind} {arguments}");
        }
    }

    #[test]
    fn arguments_are_written_as_they_are_read() {
        for (kind, written) in [("function", r#"{"input":"x"}"#), ("custom", "x")] {
            let arguments = Map::from_iter([("input".to_owned(), json!("x"))]);
            let rewritten = with_arguments(&call(kind, "{}"), &arguments).unwrap();
            assert_eq!(&*rewritten.function.arguments, written);
        }
        assert!(with_arguments(&call("custom", ""), &Map::new()).is_err());
    }
}
