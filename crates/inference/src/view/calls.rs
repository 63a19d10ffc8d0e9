//! Tool calls: what is shown of them, and where it stands.

use std::borrow::Cow;
use std::sync::Arc;

use gatehook_events::ToolCall;
use serde_json::Value;

use super::{Place, fields, literal};
use crate::error::{ReadError, Unheld};
use crate::json::{At, Document, Kind};

/// How a call is written that was not there before.
pub(crate) type WriteCall = fn(&ToolCall) -> Result<String, Unheld>;

/// Where the calls of a message stand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls {
    /// The object and the array in it; none where the part itself is the only call.
    pub(crate) list: Option<(At, At)>,
    pub(crate) slots: Vec<CallSlot>,
    /// The array holds other things too, and this is how a call is written there.
    pub(crate) among: Option<WriteCall>,
}

/// Where one call stands.
#[derive(Debug, Clone)]
pub(crate) struct CallSlot {
    /// The whole of it.
    pub(crate) at: At,
    pub(crate) id: Place,
    pub(crate) name: Place,
    /// A string that holds JSON, an object, or a place for one of them.
    pub(crate) arguments: Place,
    /// What leaves with it (container and child), as the result of a call that the server made itself.
    pub(crate) with: Vec<(At, At)>,
}

impl CallSlot {
    /// A call that can be taken out, not changed.
    pub(crate) fn new(at: At) -> Self {
        let sealed = || Place::Sealed("a call of this kind can be taken out, not rewritten");
        Self { at, id: sealed(), name: sealed(), arguments: sealed(), with: Vec::new() }
    }
}

/// The text of arguments: of a string what it holds, of an object its JSON as it is spelled.
pub(crate) fn argument_text<'d>(document: &'d Document, at: At) -> Result<Cow<'d, str>, ReadError> {
    match document.kind(at) {
        Kind::String => Ok(document.text(at).unwrap_or_default()),
        Kind::Object => Ok(Cow::Borrowed(document.raw(at))),
        Kind::Null => Ok(Cow::Borrowed("")),
        _ => Err(document.shape(at, "arguments are an object, or JSON in a string")),
    }
}

const CALL: &[&str] = &["id", "type", "function", "custom", "index"];
const FUNCTION: &[&str] = &["name", "arguments", "input", "index"];

/// Reads a list of calls as chat completions and native chat write them.
pub(crate) fn read_calls(document: &Document, array: At) -> Result<(Vec<ToolCall>, Vec<CallSlot>), ReadError> {
    if document.kind(array) != Kind::Array {
        return Err(document.shape(array, "a list of calls is expected"));
    }
    let mut calls = Vec::new();
    let mut slots = Vec::new();
    for at in document.elements(array) {
        let (call, slot) = read_call(document, at)?;
        calls.push(call);
        slots.push(slot);
    }
    Ok((calls, slots))
}

/// `{"id", "type": "function", "function": {…}}`, or `{"id", "type": "custom", "custom": {…}}`.
fn read_call(document: &Document, at: At) -> Result<(ToolCall, CallSlot), ReadError> {
    let fields = fields(document, at, CALL)?;
    let find = |key: &str| fields.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
    let kind = match find("type").filter(|kind| document.kind(*kind) != Kind::Null) {
        Some(kind) => literal(document, kind, &["function", "custom"])?,
        None => Cow::Borrowed("function"),
    };
    let body = if kind == "custom" { "custom" } else { "function" };
    let function = find(body).ok_or_else(|| document.shape(at, format!("a call without `{body}`")))?;
    let (mut call, mut slot) =
        single_call(document, function, &kind, if body == "custom" { "input" } else { "arguments" }, &[])?;
    slot.at = at;
    if let Some(id) = find("id") {
        (call.id, slot.id) = super::chosen(document, &[id])?;
    }
    for (key, value) in fields.iter().filter(|(key, _)| !matches!(&**key, "id" | "type") && key != body) {
        note(&mut call, key, document.value(*value));
    }
    Ok((call, slot))
}

/// Shows a field that has no name of its own in a call.
fn note(call: &mut ToolCall, key: &str, value: Value) {
    let taken = matches!(key, "id" | "type" | "function") || call.extra.contains_key(key);
    call.extra.insert(if taken { format!("field:{key}") } else { key.to_owned() }, value);
}

/// A call whose name and arguments are members of one object. Its other members, `except` those, are shown in `extra`.
pub(crate) fn single_call(
    document: &Document,
    object: At,
    kind: &str,
    arguments: &'static str,
    except: &[&str],
) -> Result<(ToolCall, CallSlot), ReadError> {
    let mut call = ToolCall { kind: kind.into(), ..ToolCall::default() };
    let mut slot = CallSlot { at: object, arguments: Place::Under(object, arguments), ..CallSlot::new(object) };
    for (key, value) in fields(document, object, FUNCTION)? {
        match &*key {
            "name" => {
                let name = document.text(value).ok_or_else(|| document.shape(value, "a string is expected"))?;
                call.function.name = name.into();
                slot.name = Place::In(value);
            }
            key if key == arguments => {
                call.function.arguments = Arc::from(argument_text(document, value)?);
                slot.arguments = Place::In(value);
            }
            key if except.contains(&key) => {}
            _ => {
                note(&mut call, &key, document.value(value));
            }
        }
    }
    Ok((call, slot))
}
