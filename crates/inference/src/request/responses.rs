//! `/v1/responses`: instructions, and a string or a list of items
//! (<https://platform.openai.com/docs/api-reference/responses/create>).

use std::borrow::Cow;

use gatehook_events::Message;
use serde_json::{Value, json};

use super::chat::{found_images, made_extra};
use super::fields::Top;
use crate::error::{ReadError, Unheld};
use crate::json::{At, Document, Kind};
use crate::view::{Chat, Draft, Form, Pictures, Place, fields, is_cipher, literal};

const INSTRUCTIONS: Form = Form {
    takes: |role| role == "system",
    lone: "system",
    wrap: None,
    text_part: |text| json!({ "type": "input_text", "text": text }).to_string(),
    build: build_items,
    fixed: false,
    required: false,
};

const INPUT: Form = Form {
    takes: |role| matches!(role, "system" | "developer" | "user" | "assistant" | "tool"),
    lone: "user",
    wrap: Some(|text| format!("{{\"role\":\"user\",\"content\":{text}}}")),
    text_part: |text| json!({ "type": "input_text", "text": text }).to_string(),
    build: build_items,
    fixed: false,
    required: true,
};

pub(super) fn read(top: &Top<'_>) -> Result<Chat, ReadError> {
    let document = top.document;
    let mut chat = Chat::default();
    let instructions = top.get("instructions");
    chat.region("instructions", instructions, &INSTRUCTIONS);
    if let Some(at) = instructions {
        let mut draft = Draft::new("system", &[]);
        draft.content(document, at)?;
        chat.push(draft);
    }
    let input = top.get("input");
    chat.region("input", input, &INPUT);
    let Some(input) = input else { return Ok(chat) };
    if document.kind(input) != Kind::Array {
        let mut draft = Draft::new("user", &[]);
        draft.content(document, input)?;
        chat.push(draft);
        return Ok(chat);
    }
    chat.expect(document.elements(input).count());
    for item in document.elements(input) {
        read_item(document, (input, item), &mut chat)?;
    }
    Ok(chat)
}

const ITEM: &[&str] = &[
    "type",
    "role",
    "content",
    "call_id",
    "name",
    "arguments",
    "input",
    "output",
    "summary",
    "encrypted_content",
    "id",
];
const TYPES: &[&str] = &[
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
    "item_reference",
];

fn read_item(document: &Document, path: (At, At), chat: &mut Chat) -> Result<(), ReadError> {
    let item = path.1;
    let members = fields(document, item, ITEM)?;
    let find = |key: &str| document.some(item, key);
    let kind = find("type").map(|at| literal(document, at, TYPES)).transpose()?;
    let kind = kind.unwrap_or(Cow::Borrowed("message"));
    let mut whole = Draft::new(role(document, item, &kind)?.as_ref(), &[path]);
    whole.slot.object = Some(item);
    let shown: &[&str] = match &*kind {
        "message" => &["type", "role", "content"],
        "function_call" | "custom_tool_call" => &["type", "call_id", "name", "arguments", "input", "id", "status"],
        "function_call_output" | "custom_tool_call_output" => &["type", "call_id", "output"],
        "reasoning" => &["type", "summary", "content", "encrypted_content"],
        _ => {
            whole.opaque(document, item);
            chat.push(whole);
            return Ok(());
        }
    };
    for (key, at) in members.iter().filter(|(key, _)| !shown.contains(&&**key)) {
        whole.extra(document, key, *at);
    }
    let content = match &*kind {
        "message" => "content",
        "function_call" => return read_call(document, whole, "function", "arguments", chat),
        "custom_tool_call" => return read_call(document, whole, "custom", "input", chat),
        "reasoning" => return read_reasoning(document, whole, item, chat),
        _ => "output",
    };
    if content == "output"
        && let Some(at) = find("call_id")
    {
        whole.tool_call_id(document, at)?;
    }
    whole.slot.content = Place::Under(item, content);
    match find(content) {
        Some(at) => read_content(document, &whole, at, chat),
        None => {
            chat.push(whole);
            Ok(())
        }
    }
}

/// Of a message its own; of what a tool answered `tool`; else the model spoke.
fn role<'d>(document: &'d Document, item: At, kind: &str) -> Result<Cow<'d, str>, ReadError> {
    match kind {
        "message" => Draft::role(document, item),
        _ if kind.ends_with("_output") => Ok(Cow::Borrowed("tool")),
        _ => Ok(Cow::Borrowed("assistant")),
    }
}

fn read_call(
    document: &Document,
    mut draft: Draft,
    kind: &str,
    arguments: &'static str,
    chat: &mut Chat,
) -> Result<(), ReadError> {
    if let Some(item) = draft.slot.object {
        draft.call(document, item, kind, arguments, "call_id")?;
    }
    chat.push(draft);
    Ok(())
}

/// A string, or one message for each part.
fn read_content(document: &Document, whole: &Draft, content: At, chat: &mut Chat) -> Result<(), ReadError> {
    if document.kind(content) != Kind::Array {
        let mut draft = whole.clone();
        draft.content(document, content)?;
        chat.push(draft);
        return Ok(());
    }
    let mut empty = true;
    for part in document.elements(content) {
        let mut draft = Draft::new(&whole.message.role, &whole.slot.path);
        draft.slot.path.push((content, part));
        draft.slot.object = Some(part);
        draft.message.tool_call_id.clone_from(&whole.message.tool_call_id);
        draft.slot.tool_call_id.clone_from(&whole.slot.tool_call_id);
        read_part(document, &mut draft, part)?;
        if empty && !whole.message.extra.is_empty() {
            draft.note("message", Value::Object(whole.message.extra.clone()));
        }
        empty = false;
        chat.push(draft);
    }
    if empty {
        let mut draft = whole.clone();
        draft.slot.content = Place::Sealed("a list without parts has no place for a text");
        chat.push(draft);
    }
    Ok(())
}

const PART: &[&str] = &["type", "text", "refusal", "image_url", "file_id", "file_data", "input_audio", "annotations"];
const PART_TYPES: &[&str] =
    &["input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal", "input_image"];

fn read_part(document: &Document, draft: &mut Draft, part: At) -> Result<(), ReadError> {
    let members = fields(document, part, PART)?;
    let find = |key: &str| document.some(part, key);
    let kind = find("type").map(|at| literal(document, at, PART_TYPES)).transpose()?.unwrap_or(Cow::Borrowed(""));
    let read = match (&*kind, find("text"), find("refusal"), find("image_url")) {
        ("input_text" | "output_text" | "text" | "summary_text" | "reasoning_text", Some(at), _, _)
        | ("refusal", _, Some(at), _) => {
            draft.content(document, at)?;
            at
        }
        ("input_image", _, _, Some(at)) => {
            draft.image(document, part, at, "")?;
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

/// One message for each text. Where the item is encrypted, all of them in one, that can only be kept or dropped; what
/// servers without encryption put in `encrypted_content` is plain text, and is treated as such.
fn read_reasoning(document: &Document, whole: Draft, item: At, chat: &mut Chat) -> Result<(), ReadError> {
    let mut texts = Vec::new();
    for key in ["summary", "content"] {
        let Some(list) = document.some(item, key) else { continue };
        if document.kind(list) != Kind::Array {
            return Err(document.shape(list, "a list of texts is expected"));
        }
        for part in document.elements(list) {
            fields(document, part, PART)?;
            let text = document.some(part, "text").filter(|at| document.kind(*at) == Kind::String);
            texts.push((list, part, text.ok_or_else(|| document.shape(part, "a text is expected"))?));
        }
    }
    let encrypted =
        document.some(item, "encrypted_content").filter(|at| document.text(*at).is_none_or(|text| !text.is_empty()));
    if let Some(at) = encrypted {
        let text = document.text(at).ok_or_else(|| document.shape(at, "a string is expected"))?;
        if is_cipher(&text) {
            return read_encrypted(document, whole, &texts, at, chat);
        }
    }
    let plain = texts.iter().map(|(list, part, text)| (Some((*list, *part)), *text));
    let mut any = false;
    for (part, text) in plain.chain(encrypted.map(|at| (None, at))) {
        let mut draft = if any { Draft::new("assistant", &whole.slot.path) } else { whole.clone() };
        any = true;
        draft.slot.path.extend(part);
        draft.slot.members.extend(part.is_none().then_some((item, text)));
        draft.thinking(document, &[text])?;
        chat.push(draft);
    }
    if !any {
        chat.push(whole);
    }
    Ok(())
}

fn read_encrypted(
    document: &Document,
    mut draft: Draft,
    texts: &[(At, At, At)],
    encrypted: At,
    chat: &mut Chat,
) -> Result<(), ReadError> {
    let texts: Vec<_> = texts.iter().filter_map(|(_, _, text)| document.text(*text)).collect();
    draft.message.thinking = (!texts.is_empty()).then(|| texts.join("\n\n").into());
    draft.slot.thinking = Place::Sealed("encrypted reasoning can be dropped, not rewritten");
    draft.slot.object = None;
    draft.slot.extra.clear();
    draft.note("encrypted_content", document.value(encrypted));
    chat.push(draft);
    Ok(())
}

fn build_items(messages: &[&Message], pictures: Pictures<'_>) -> Result<Vec<String>, Unheld> {
    let mut items = Vec::new();
    for message in messages {
        if message.thinking.as_ref().is_some_and(|thinking| !thinking.is_empty()) {
            return Err(Unheld::new("reasoning can be kept or dropped, not made anew"));
        }
        let text = message.content.as_deref().unwrap_or_default();
        if &*message.role == "tool" {
            let call_id = message.tool_call_id.as_deref().unwrap_or_default();
            items.push(json!({ "type": "function_call_output", "call_id": call_id, "output": text }).to_string());
            continue;
        }
        let mut content = found_images(message, pictures)?;
        let calls = message.tool_calls.as_deref().unwrap_or_default();
        if !text.is_empty() || !content.is_empty() || calls.is_empty() {
            let kind = if &*message.role == "assistant" { "output_text" } else { "input_text" };
            content.push(json!({ "type": kind, "text": text }));
            let mut item = made_extra(message)?;
            item.insert("type".into(), "message".into());
            item.insert("role".into(), (&*message.role).into());
            item.insert("content".into(), Value::Array(content));
            items.push(Value::Object(item).to_string());
        }
        items.extend(calls.iter().map(|call| {
            let call_id = call.id.as_deref().unwrap_or_default();
            let (name, arguments) = (&*call.function.name, &*call.function.arguments);
            match &*call.kind {
                "custom" => json!({ "type": "custom_tool_call", "call_id": call_id, "name": name, "input": arguments }),
                _ => json!({ "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments }),
            }
            .to_string()
        }));
    }
    Ok(items)
}
