//! `/v1/messages` and its token count: a system prompt and messages, both of blocks
//! (<https://docs.anthropic.com/en/api/messages>).

use std::borrow::Cow;

use gatehook_events::Message;
use serde_json::{Map, Value, json};

use super::chat::{found_images, made_extra, text_part};
use super::fields::Top;
use crate::error::{ReadError, Unheld};
use crate::json::{At, Document, Kind};
use crate::rewrite::object_of;
use crate::view::{Chat, Draft, Form, Pictures, Place, fields, literal, rest};

const SYSTEM: Form = Form {
    takes: |role| matches!(role, "system" | "developer"),
    lone: "system",
    wrap: Some(|text| format!("{{\"type\":\"text\",\"text\":{text}}}")),
    text_part,
    build: build_system,
    fixed: false,
    required: false,
};

const MESSAGES: Form = Form {
    takes: |role| matches!(role, "user" | "assistant" | "tool"),
    lone: "",
    wrap: None,
    text_part,
    build: build_messages,
    fixed: false,
    required: true,
};

pub(super) fn read(top: &Top<'_>) -> Result<Chat, ReadError> {
    let document = top.document;
    let mut chat = Chat::default();
    let system = top.get("system");
    chat.region("system", system, &SYSTEM);
    if let Some(at) = system {
        read_content(document, &Draft::new("system", &[]), at, &mut chat)?;
    }
    let list = top.get("messages");
    chat.region("messages", list, &MESSAGES);
    let Some(list) = list else { return Ok(chat) };
    if document.kind(list) != Kind::Array {
        return Err(document.shape(list, "a list of messages is expected"));
    }
    chat.expect(document.elements(list).count());
    for unit in document.elements(list) {
        let members = fields(document, unit, &["role", "content"])?;
        let mut whole = Draft::new(&Draft::role(document, unit)?, &[(list, unit)]);
        whole.slot.object = Some(unit);
        whole.slot.content = Place::Under(unit, "content");
        for (key, at) in members.iter().filter(|(key, _)| key != "role" && key != "content") {
            whole.extra(document, key, *at);
        }
        match document.some(unit, "content") {
            Some(content) => read_content(document, &whole, content, &mut chat)?,
            None => chat.push(whole),
        }
    }
    Ok(chat)
}

/// A string, or a list of blocks. `whole` is what all of them share: the role, the place, the call they answer; its
/// unnamed fields go with the first block.
fn read_content(document: &Document, whole: &Draft, content: At, chat: &mut Chat) -> Result<(), ReadError> {
    if document.kind(content) != Kind::Array {
        let mut draft = whole.clone();
        draft.content(document, content)?;
        chat.push(draft);
        return Ok(());
    }
    let mut empty = true;
    for block in document.elements(content) {
        let mut draft = Draft::new(&whole.message.role, &whole.slot.path);
        draft.slot.path.push((content, block));
        draft.message.tool_call_id.clone_from(&whole.message.tool_call_id);
        draft.slot.tool_call_id.clone_from(&whole.slot.tool_call_id);
        if empty && !whole.message.extra.is_empty() {
            draft.note("message", Value::Object(whole.message.extra.clone()));
        }
        empty = false;
        read_block(document, draft, block, chat)?;
    }
    if empty {
        let mut draft = whole.clone();
        draft.slot.content = Place::Sealed("a list without blocks has no place for a text");
        chat.push(draft);
    }
    Ok(())
}

const BLOCK: &[&str] = &[
    "type",
    "text",
    "source",
    "id",
    "name",
    "input",
    "tool_use_id",
    "content",
    "thinking",
    "signature",
    "data",
    "title",
    "context",
    "cache_control",
    "citations",
    "is_error",
];
const TYPES: &[&str] = &[
    "text",
    "image",
    "document",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "tool_result",
    "mcp_tool_result",
    "thinking",
    "redacted_thinking",
    "search_result",
];

fn read_block(document: &Document, mut draft: Draft, block: At, chat: &mut Chat) -> Result<(), ReadError> {
    if document.kind(block) != Kind::Object {
        return Err(document.shape(block, "a block is expected"));
    }
    let members = fields(document, block, BLOCK)?;
    let find = |key: &str| document.some(block, key);
    let kind = find("type").map(|at| literal(document, at, TYPES)).transpose()?.unwrap_or(Cow::Borrowed(""));
    draft.slot.object = Some(block);
    let shown: &[&str] = match &*kind {
        "text" if find("text").is_some() => &["text"],
        "image" if find("source").is_some() => &["source"],
        "document" if find("source").is_some() => &["source"],
        "thinking" => &["thinking", "signature"],
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            &["id", "name", "input", "caller", "server_name", "cache_control"]
        }
        "tool_result" | "mcp_tool_result" => &["tool_use_id", "content"],
        "search_result" => &["content"],
        _ => {
            draft.opaque(document, block);
            chat.push(draft);
            return Ok(());
        }
    };
    for (key, at) in members.iter().filter(|(key, _)| key != "type" && !shown.contains(&&**key)) {
        draft.extra(document, key, *at);
    }
    if !matches!(&*kind, "text" | "image" | "thinking" | "tool_use" | "tool_result") {
        draft.note("part", Value::String(kind.clone().into_owned()));
    }
    match &*kind {
        "text" => draft.content(document, find("text").unwrap_or(block))?,
        "thinking" => read_thinking(document, &mut draft, block)?,
        "image" => read_image(document, &mut draft, block)?,
        "document" => return read_document(document, draft, block, chat),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => draft.call(document, block, "function", "input", "id")?,
        "search_result" => return read_inner(document, draft, block, chat),
        _ => return read_result(document, draft, block, chat),
    }
    chat.push(draft);
    Ok(())
}

/// Signed thinking is the model's own: it can be dropped, not changed.
fn read_thinking(document: &Document, draft: &mut Draft, block: At) -> Result<(), ReadError> {
    let found: Vec<At> = document.get(block, "thinking").into_iter().collect();
    draft.thinking(document, &found)?;
    if let Some(signature) = document.some(block, "signature") {
        draft.note("signature", document.value(signature));
        if document.text(signature).is_none_or(|text| !text.is_empty()) {
            draft.slot.thinking = Place::Sealed("a signed thinking block can be dropped, not rewritten");
        }
    }
    Ok(())
}

fn read_image(document: &Document, draft: &mut Draft, block: At) -> Result<(), ReadError> {
    let Some(source) = document.some(block, "source") else { return Ok(()) };
    fields(document, source, &["type", "media_type", "data", "url", "file_id"])?;
    let media_type = document.string(source, "media_type").unwrap_or_default();
    if let Some(others) = rest(document, source, &["type", "media_type", "data", "url"]) {
        draft.note("source", others);
    }
    let found = ["data", "url"].map(|key| document.some(source, key));
    match found {
        [Some(_), Some(at)] => Err(document.ambiguous(at, "it stands beside `data`")),
        [Some(at), None] | [None, Some(at)] => draft.image(document, block, at, &media_type),
        [None, None] => {
            draft.opaque(document, block);
            Ok(())
        }
    }
}

/// A document of text is shown as text, one of blocks as its blocks; any other by its fingerprint.
fn read_document(document: &Document, mut draft: Draft, block: At, chat: &mut Chat) -> Result<(), ReadError> {
    let Some(source) = document.some(block, "source") else { return Ok(()) };
    fields(document, source, &["type", "media_type", "data", "url", "content", "file_id"])?;
    if let Some(others) = rest(document, source, &["type", "media_type", "data", "content"]) {
        draft.note("source", others);
    }
    match (document.string(source, "type").as_deref(), document.some(source, "data"), document.some(source, "content"))
    {
        (Some("text"), Some(data), None) => draft.content(document, data)?,
        (Some("content"), None, Some(content)) => return read_content(document, &draft, content, chat),
        _ => {
            // What belongs to the block is in its outline; what belongs to its message is not.
            draft.message.extra.retain(|key, _| key == "message");
            draft.opaque(document, block);
        }
    }
    chat.push(draft);
    Ok(())
}

fn read_result(document: &Document, mut draft: Draft, block: At, chat: &mut Chat) -> Result<(), ReadError> {
    draft.message.role = "tool".into();
    if let Some(at) = document.get(block, "tool_use_id") {
        draft.tool_call_id(document, at)?;
    }
    read_inner(document, draft, block, chat)
}

fn read_inner(document: &Document, mut draft: Draft, block: At, chat: &mut Chat) -> Result<(), ReadError> {
    draft.slot.content = Place::Under(block, "content");
    match document.some(block, "content") {
        Some(content) => read_content(document, &draft, content, chat),
        None => {
            chat.push(draft);
            Ok(())
        }
    }
}

fn build_system(messages: &[&Message], _: Pictures<'_>) -> Result<Vec<String>, Unheld> {
    messages
        .iter()
        .map(|message| {
            let mut block = made_extra(message)?;
            block.insert("type".into(), "text".into());
            block.insert("text".into(), message.content.as_deref().unwrap_or_default().into());
            Ok(Value::Object(block).to_string())
        })
        .collect()
}

/// Messages in a row of one side become one message of several blocks.
fn build_messages(messages: &[&Message], pictures: Pictures<'_>) -> Result<Vec<String>, Unheld> {
    let side = |message: &Message| if &*message.role == "assistant" { "assistant" } else { "user" };
    messages
        .chunk_by(|one, two| side(one) == side(two))
        .map(|row| {
            let mut blocks = Vec::new();
            for message in row {
                blocks.extend(build_blocks(message, pictures)?);
            }
            let role = row.first().map_or("user", |message| side(message));
            Ok(json!({ "role": role, "content": blocks }).to_string())
        })
        .collect()
}

fn build_blocks(message: &Message, pictures: Pictures<'_>) -> Result<Vec<Value>, Unheld> {
    if message.thinking.as_ref().is_some_and(|thinking| !thinking.is_empty()) {
        return Err(Unheld::new("thinking can be kept or dropped, not made anew"));
    }
    let mut blocks = found_images(message, pictures)?;
    let text = message.content.as_deref().unwrap_or_default();
    if &*message.role == "tool" {
        let mut content = blocks;
        if !text.is_empty() {
            content.push(json!({ "type": "text", "text": text }));
        }
        let mut block = made_extra(message)?;
        block.insert("type".into(), "tool_result".into());
        block.insert("tool_use_id".into(), message.tool_call_id.as_deref().unwrap_or_default().into());
        block.insert("content".into(), Value::Array(content));
        return Ok(vec![Value::Object(block)]);
    }
    let extra = made_extra(message)?;
    if !text.is_empty() || (blocks.is_empty() && message.tool_calls.iter().flatten().next().is_none()) {
        let mut block: Map<String, Value> = extra;
        block.insert("type".into(), "text".into());
        block.insert("text".into(), text.into());
        blocks.push(Value::Object(block));
    }
    for call in message.tool_calls.iter().flatten() {
        blocks.push(json!({
            "type": "tool_use",
            "id": call.id.as_deref().unwrap_or_default(),
            "name": &*call.function.name,
            "input": object_of(&call.function.arguments)?,
        }));
    }
    Ok(blocks)
}
