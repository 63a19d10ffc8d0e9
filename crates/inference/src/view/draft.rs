//! A message of the view while a route reads it.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use gatehook_events::Message;
use serde_json::Value;

use super::{Calls, Images, Place, Slot, address, image, outline, read_calls, single_call};
use crate::error::ReadError;
use crate::json::{At, Document, Kind, mistaken};

/// A message and its places.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub(crate) message: Message,
    pub(crate) slot: Slot,
}

/// Keys and values of an object that hooks see into. A key that a lenient reader takes for a known one is refused.
pub(crate) fn fields<'d>(
    document: &'d Document,
    object: At,
    known: &[&str],
) -> Result<Vec<(Cow<'d, str>, At)>, ReadError> {
    if document.kind(object) != Kind::Object {
        return Err(document.shape(object, "an object is expected"));
    }
    document
        .members(object)
        .map(|(at, value)| {
            let key = document.text(at).unwrap_or_default();
            match mistaken(&key, known) {
                Some(word) => Err(document.ambiguous(at, format!("a lenient server reads the key as `{word}`"))),
                None => Ok((key, value)),
            }
        })
        .collect()
}

/// The members of an object beside those in `shown`; none where there are no others.
pub(crate) fn rest(document: &Document, object: At, shown: &[&str]) -> Option<Value> {
    let mut members = document.map(object);
    members.retain(|key, _| !shown.contains(&key.as_str()));
    (!members.is_empty()).then_some(Value::Object(members))
}

/// The word of a string that names a kind: `known` words must be spelled exactly.
pub(crate) fn literal<'d>(document: &'d Document, at: At, known: &[&str]) -> Result<Cow<'d, str>, ReadError> {
    let word = document.text(at).ok_or_else(|| document.shape(at, "a string is expected"))?;
    match mistaken(&word, known) {
        Some(exact) => Err(document.ambiguous(at, format!("a lenient server reads this as `{exact}`"))),
        None => Ok(word),
    }
}

/// The one text that is meant where a value may stand under several keys: they must not differ.
pub(crate) fn chosen(document: &Document, found: &[At]) -> Result<(Option<Arc<str>>, Place), ReadError> {
    let mut text: Option<Arc<str>> = None;
    let mut place = found.first().map_or(Place::Nowhere, |at| Place::In(*at));
    for at in found.iter().copied().filter(|at| document.kind(*at) != Kind::Null) {
        let this = document.text(at).ok_or_else(|| document.shape(at, "a string is expected"))?;
        place = match &text {
            Some(other) if **other != *this => {
                return Err(document.ambiguous(at, "another field says the same thing differently"));
            }
            Some(_) => Place::Repeated(place.values().iter().copied().chain([at]).collect()),
            None => Place::In(at),
        };
        text.get_or_insert_with(|| this.into());
    }
    Ok((text, place))
}

/// The fields of a [`Message`], and what marks a part that is not text.
const NAMED: &[&str] =
    &["role", "content", "thinking", "tool_calls", "tool_call_id", "name", "images", "part", "value", "message"];

const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function", "model", "human"];

/// What a hook is told in `extra` without its standing there as such.
const NOTES: &[&str] = &["part", "value", "message", "signature", "encrypted_content"];
/// The same, of images: what is said of them beside their fingerprint.
const IMAGE_NOTES: &[&str] = &["url", "image_url", "source"];

/// Whether no message can be given such a field.
pub(crate) fn is_note(key: &str) -> bool {
    NOTES.contains(&key) || key.starts_with("field:")
}

/// Whether it says something of an image.
pub(crate) fn is_image_note(key: &str) -> bool {
    IMAGE_NOTES.contains(&key)
}

/// The few roles there are, one allocation each.
static SHARED: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| ROLES.iter().map(|role| Arc::from(*role)).collect());

fn shared(role: &str) -> Arc<str> {
    SHARED.iter().find(|known| ***known == *role).map_or_else(|| role.into(), Arc::clone)
}

impl Draft {
    /// A message of `role`, at `path`.
    pub(crate) fn new(role: &str, path: &[(At, At)]) -> Self {
        Self {
            message: Message { role: shared(role), ..Message::default() },
            slot: Slot { path: path.to_vec(), ..Slot::default() },
        }
    }

    /// The role of a message object.
    pub(crate) fn role<'d>(document: &'d Document, object: At) -> Result<Cow<'d, str>, ReadError> {
        match document.get(object, "role") {
            Some(at) => literal(document, at, ROLES),
            None => Err(document.shape(object, "it has no role")),
        }
    }

    /// Its text: a string, or null.
    pub(crate) fn content(&mut self, document: &Document, at: At) -> Result<(), ReadError> {
        (self.message.content, self.slot.content) = chosen(document, &[at])?;
        Ok(())
    }

    /// Its thinking, under any of several keys.
    pub(crate) fn thinking(&mut self, document: &Document, found: &[At]) -> Result<(), ReadError> {
        (self.message.thinking, self.slot.thinking) = chosen(document, found)?;
        Ok(())
    }

    /// Which call it answers.
    pub(crate) fn tool_call_id(&mut self, document: &Document, at: At) -> Result<(), ReadError> {
        (self.message.tool_call_id, self.slot.tool_call_id) = chosen(document, &[at])?;
        Ok(())
    }

    /// The tool or speaker, under any of several keys.
    pub(crate) fn names(&mut self, document: &Document, found: &[At]) -> Result<(), ReadError> {
        (self.message.name, self.slot.name) = chosen(document, found)?;
        Ok(())
    }

    /// The one call that this part is, its arguments under `arguments` and its identity at `id`.
    pub(crate) fn call(
        &mut self,
        document: &Document,
        object: At,
        kind: &str,
        arguments: &'static str,
        id: &str,
    ) -> Result<(), ReadError> {
        let (mut call, mut slot) = single_call(document, object, kind, arguments, &["type", id])?;
        if let Some(at) = document.get(object, id) {
            (call.id, slot.id) = chosen(document, &[at])?;
        }
        self.message.tool_calls = Some(vec![call]);
        self.slot.calls = Calls { list: None, slots: vec![slot], among: None };
        Ok(())
    }

    /// The calls of a list under `object`.
    pub(crate) fn calls(&mut self, document: &Document, object: At, array: At) -> Result<(), ReadError> {
        if document.kind(array) == Kind::Null {
            return Ok(());
        }
        let (calls, slots) = read_calls(document, array)?;
        self.message.tool_calls = Some(calls);
        self.slot.calls = Calls { list: Some((object, array)), slots, among: None };
        Ok(())
    }

    /// Images in a list of base64 strings under `object`.
    pub(crate) fn images(&mut self, document: &Document, object: At, array: At) -> Result<(), ReadError> {
        if document.kind(array) == Kind::Null {
            return Ok(());
        }
        if document.kind(array) != Kind::Array {
            return Err(document.shape(array, "a list of images is expected"));
        }
        let data: Vec<At> = document.elements(array).collect();
        let images = data.iter().map(|at| match document.text(*at) {
            Some(text) => Ok(image(&text, "")),
            None => Err(document.shape(*at, "an image as base64 is expected")),
        });
        self.message.images = Some(images.collect::<Result<_, _>>()?);
        self.slot.images = Images::List { object, array, data };
        Ok(())
    }

    /// The one image that `part` is, its data or address at `data`.
    pub(crate) fn image(&mut self, document: &Document, part: At, data: At, media_type: &str) -> Result<(), ReadError> {
        let text = document.text(data).ok_or_else(|| document.shape(data, "a string is expected"))?;
        self.message.images = Some(vec![image(&text, media_type)]);
        if let Some(address) = address(&text) {
            self.note("url", address.into());
        }
        self.slot.images = Images::Part { part, data };
        Ok(())
    }

    /// A field without a name of its own in the view; a hook may change it. One that bears the name of another
    /// field is shown as `field:name` and stays.
    pub(crate) fn extra(&mut self, document: &Document, key: &str, at: At) {
        if NAMED.contains(&key) {
            return self.note(&format!("field:{key}"), document.value(at));
        }
        self.message.extra.insert(key.to_owned(), document.value(at));
        self.slot.extra.push((key.to_owned(), at));
    }

    /// Something that a hook sees but cannot change.
    pub(crate) fn note(&mut self, key: &str, value: Value) {
        self.message.extra.insert(key.to_owned(), value);
    }

    /// A part that is shown as it is (its data by fingerprint) and can only be kept or dropped.
    pub(crate) fn opaque(&mut self, document: &Document, part: At) {
        let kind = document.string(part, "type").unwrap_or_default().into_owned();
        self.note("part", Value::String(kind));
        self.note("value", outline(document, part));
        self.slot.sealed = Some("a part that is not text can be kept or dropped, not changed");
    }
}
