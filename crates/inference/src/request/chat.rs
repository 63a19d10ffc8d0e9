//! `/api/chat` and `/v1/chat/completions`: a list of messages, the latter with content in parts.
//! (<https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion>,
//! <https://platform.openai.com/docs/api-reference/chat/create>)

use std::borrow::Cow;

use gatehook_events::Message;
use serde_json::{Map, Value, json};

use super::fields::Top;
use crate::error::{ReadError, Unheld};
use crate::json::{At, Document, Kind};
use crate::rewrite::call_value;
use crate::view::{
    Calls, Chat, Draft, Form, Pictures, Place, fields, is_image_note, is_note, literal, rest, single_call,
};

/// What differs between the two.
pub(super) struct Flavour {
    form: &'static Form,
    /// Content may be a list of parts.
    parts: bool,
    /// Keys of the thinking, in the order of the view.
    thinking: &'static [&'static str],
    /// Keys of the tool's or speaker's name.
    name: &'static [&'static str],
}

pub(super) const NATIVE: Flavour = Flavour {
    form: &Form { takes: |_| true, lone: "", wrap: None, text_part, build: build_native, fixed: false, required: true },
    parts: false,
    thinking: &["thinking"],
    name: &["tool_name", "name"],
};

pub(super) const COMPLETIONS: Flavour = Flavour {
    form: &Form {
        takes: |_| true,
        lone: "",
        wrap: None,
        text_part,
        build: build_completions,
        fixed: false,
        required: true,
    },
    parts: true,
    thinking: &["reasoning_content", "reasoning", "thinking"],
    name: &["name"],
};

const MESSAGE: &[&str] = &[
    "role",
    "content",
    "thinking",
    "reasoning",
    "reasoning_content",
    "name",
    "tool_name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "images",
    "refusal",
];

pub(super) fn read(top: &Top<'_>, flavour: &Flavour) -> Result<Chat, ReadError> {
    let mut chat = Chat::default();
    let list = top.get("messages");
    chat.region("messages", list, flavour.form);
    let Some(list) = list else { return Ok(chat) };
    if top.document.kind(list) != Kind::Array {
        return Err(top.document.shape(list, "a list of messages is expected"));
    }
    chat.expect(top.document.elements(list).count());
    for unit in top.document.elements(list) {
        read_message(top.document, flavour, (list, unit), &mut chat)?;
    }
    Ok(chat)
}

fn read_message(document: &Document, flavour: &Flavour, path: (At, At), chat: &mut Chat) -> Result<(), ReadError> {
    let unit = path.1;
    let members = fields(document, unit, MESSAGE)?;
    let mut draft = Draft::new(&Draft::role(document, unit)?, &[path]);
    draft.slot.object = Some(unit);
    draft.slot.content = Place::Under(unit, "content");
    let find = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, at)| *at);
    let all = |keys: &[&str]| keys.iter().filter_map(|key| find(key)).collect::<Vec<At>>();
    draft.thinking(document, &all(flavour.thinking))?;
    draft.names(document, &all(flavour.name))?;
    if let Some(at) = find("tool_call_id") {
        draft.tool_call_id(document, at)?;
    }
    read_calls(document, &mut draft, unit, find("tool_calls"), find("function_call"))?;
    let images = find("images").filter(|_| !flavour.parts);
    if let Some(at) = images {
        draft.images(document, unit, at)?;
    }
    for (key, at) in &members {
        let named = matches!(&**key, "role" | "content" | "tool_calls" | "tool_call_id" | "function_call")
            || flavour.thinking.contains(&&**key)
            || flavour.name.contains(&&**key)
            || images == Some(*at);
        if !named {
            draft.extra(document, key, *at);
        }
    }
    match find("content") {
        Some(at) if flavour.parts && document.kind(at) == Kind::Array => read_parts(document, draft, path, at, chat),
        found => {
            found.map_or(Ok(()), |at| draft.content(document, at))?;
            chat.push(draft);
            Ok(())
        }
    }
}

/// The calls in their list, or the one call of the form before it.
fn read_calls(
    document: &Document,
    draft: &mut Draft,
    unit: At,
    list: Option<At>,
    legacy: Option<At>,
) -> Result<(), ReadError> {
    if let Some(at) = list {
        draft.calls(document, unit, at)?;
    }
    let Some(at) = legacy.filter(|at| document.kind(*at) != Kind::Null) else { return Ok(()) };
    if draft.message.tool_calls.is_some() {
        return Err(document.ambiguous(at, "it stands beside `tool_calls`"));
    }
    let (call, slot) = single_call(document, at, "function", "arguments", &[])?;
    draft.message.tool_calls = Some(vec![call]);
    draft.slot.calls = Calls { list: Some((unit, at)), slots: vec![slot], among: None };
    Ok(())
}

/// One message for each part. What belongs to the message as a whole goes with its first part, the calls with its last.
fn read_parts(document: &Document, whole: Draft, path: (At, At), list: At, chat: &mut Chat) -> Result<(), ReadError> {
    let parts: Vec<At> = document.elements(list).collect();
    if parts.is_empty() {
        let mut draft = whole;
        draft.slot.content = Place::Sealed("a list without parts has no place for a text");
        chat.push(draft);
        return Ok(());
    }
    let calls = (whole.message.tool_calls.clone(), whole.slot.calls.clone());
    for (index, part) in parts.iter().copied().enumerate() {
        let mut draft = Draft::new(&whole.message.role, &[path, (list, part)]);
        draft.message.name.clone_from(&whole.message.name);
        draft.slot.name.clone_from(&whole.slot.name);
        draft.message.tool_call_id.clone_from(&whole.message.tool_call_id);
        draft.slot.tool_call_id.clone_from(&whole.slot.tool_call_id);
        read_part(document, &mut draft, part)?;
        if index == 0 {
            first_part(&whole, path.1, &mut draft);
        }
        if index + 1 == parts.len() {
            (draft.message.tool_calls, draft.slot.calls) = calls.clone();
            draft.slot.members.extend(draft.slot.calls.list);
        }
        chat.push(draft);
    }
    Ok(())
}

fn first_part(whole: &Draft, unit: At, draft: &mut Draft) {
    draft.message.thinking.clone_from(&whole.message.thinking);
    draft.slot.thinking.clone_from(&whole.slot.thinking);
    draft.slot.members.extend(whole.slot.thinking.values().iter().map(|at| (unit, *at)));
    if !whole.message.extra.is_empty() {
        draft.note("message", Value::Object(whole.message.extra.clone()));
    }
}

const PART: &[&str] = &["type", "text", "refusal", "image_url", "input_audio", "file", "thinking"];
const PART_TYPES: &[&str] = &["text", "refusal", "image_url", "input_audio", "file"];

fn read_part(document: &Document, draft: &mut Draft, part: At) -> Result<(), ReadError> {
    if document.kind(part) == Kind::String {
        return draft.content(document, part);
    }
    let members = fields(document, part, PART)?;
    let find = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, at)| *at);
    let kind = find("type").map(|at| literal(document, at, PART_TYPES)).transpose()?.unwrap_or(Cow::Borrowed(""));
    draft.slot.object = Some(part);
    let read = match (&*kind, find(&kind)) {
        ("text" | "refusal", Some(at)) => {
            draft.content(document, at)?;
            at
        }
        ("image_url", Some(at)) => {
            read_image(document, draft, part, at)?;
            at
        }
        _ => {
            draft.opaque(document, part);
            return Ok(());
        }
    };
    for (key, at) in members.iter().filter(|(key, at)| key != "type" && *at != read) {
        draft.extra(document, key, *at);
    }
    if kind == "refusal" {
        draft.note("part", "refusal".into());
    }
    Ok(())
}

/// `{"url", "detail"}`, or the address alone.
fn read_image(document: &Document, draft: &mut Draft, part: At, at: At) -> Result<(), ReadError> {
    if document.kind(at) == Kind::String {
        return draft.image(document, part, at, "");
    }
    fields(document, at, &["url", "detail"])?;
    let url = document.get(at, "url").ok_or_else(|| document.shape(at, "an image without an address"))?;
    draft.image(document, part, url, "")?;
    if let Some(others) = rest(document, at, &["url"]) {
        draft.note("image_url", others);
    }
    Ok(())
}

/// As chat completions and Anthropic write it.
pub(super) fn text_part(text: &str) -> String {
    json!({ "type": "text", "text": text }).to_string()
}

fn build_native(messages: &[&Message], pictures: Pictures<'_>) -> Result<Vec<String>, Unheld> {
    messages
        .iter()
        .map(|message| {
            let mut object = common(message, "thinking", "tool_name", true)?;
            let images = found_images(message, pictures)?;
            if !images.is_empty() {
                object.insert("images".into(), Value::Array(images));
            }
            object.insert("content".into(), message.content.as_deref().unwrap_or_default().into());
            Ok(Value::Object(object).to_string())
        })
        .collect()
}

fn build_completions(messages: &[&Message], pictures: Pictures<'_>) -> Result<Vec<String>, Unheld> {
    messages
        .iter()
        .map(|message| {
            let mut object = common(message, "reasoning_content", "name", false)?;
            let mut parts = found_images(message, pictures)?;
            let content = match &message.content {
                Some(text) if parts.is_empty() => text.as_ref().into(),
                None if parts.is_empty() => match object.contains_key("tool_calls") {
                    true => Value::Null,
                    false => "".into(),
                },
                text => {
                    parts.extend(text.iter().map(|text| json!({ "type": "text", "text": &**text })));
                    Value::Array(parts)
                }
            };
            object.insert("content".into(), content);
            Ok(Value::Object(object).to_string())
        })
        .collect()
}

fn common(message: &Message, thinking: &str, name: &str, objects: bool) -> Result<Map<String, Value>, Unheld> {
    let mut object = Map::new();
    object.insert("role".into(), (&*message.role).into());
    let texts = [(thinking, &message.thinking), ("tool_call_id", &message.tool_call_id), (name, &message.name)];
    for (key, text) in texts {
        if let Some(text) = text {
            object.insert(key.into(), (&**text).into());
        }
    }
    let calls = message.tool_calls.iter().flatten().map(|call| call_value(call, objects));
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    if !calls.is_empty() {
        object.insert("tool_calls".into(), Value::Array(calls));
    }
    object.extend(made_extra(message)?);
    Ok(object)
}

/// The fields without a name of their own, where a new message may carry them.
pub(super) fn made_extra(message: &Message) -> Result<Map<String, Value>, Unheld> {
    if message.extra.keys().any(|key| is_note(key)) {
        return Err(Unheld::new("a part that is not text can be kept or dropped, not changed"));
    }
    let mut extra = message.extra.clone();
    extra.retain(|key, _| message.images.is_none() || !is_image_note(key));
    Ok(extra)
}

/// The images of a new message, as they stood in the request.
pub(super) fn found_images(message: &Message, pictures: Pictures<'_>) -> Result<Vec<Value>, Unheld> {
    message
        .images
        .iter()
        .flatten()
        .map(|image| {
            pictures(&image.sha256).ok_or_else(|| Unheld::new("an image of a new message must stand in the request"))
        })
        .collect()
}
