//! Anthropic's inference hooks: <https://platform.claude.com/docs/en/manage-claude/inference-hooks-endpoint>.
//!
//! The transcript is the one a user sees: no system prompt, no tool definitions, no thinking, no bytes of files. Only
//! 200 carries a verdict; a denial is never lost over its form, so an over-long reason is cut and an odd reference
//! dropped.

use std::collections::BTreeMap;

use gatehook_events::{Message, Output};
use serde_json::{Map, Value, json};

use super::texts::spoken;
use super::{Asked, put, text, unreadable};
use crate::handler::HandlerError;

/// Characters of a reason.
const REASON: usize = 500;
/// Characters of a reference.
const REFERENCE: usize = 50;

pub(super) fn question(asked: &Asked<'_>) -> Option<Value> {
    let input = asked.input;
    let user = input.user.as_deref();
    let mail = user.filter(|user| user.contains('@'));
    let prompt = input.prompt.as_deref().map(|prompt| Message::new("user", prompt));
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in input.messages.as_deref().unwrap_or_default().iter().chain(&prompt) {
        let role = match &*message.role {
            "system" | "developer" => continue,
            "assistant" => "assistant",
            _ => "user",
        };
        let blocks = blocks(asked, message);
        match messages.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, earlier)) if *last == role => earlier.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    let messages = messages.into_iter().map(|(role, content)| json!({"role": role, "content": content}));
    Some(json!({
        "type": "prompt",
        "request_id": asked.id,
        "tenant_id": asked.word("tenant_id"),
        "actor": {"type": "user", "id": user, "email_address": mail},
        "source": {"application": asked.word("application").unwrap_or("gatehook")},
        "session_id": input.session_id.as_deref().filter(|id| !id.is_empty()),
        "model": asked.model(),
        "messages": messages.collect::<Value>(),
        "metadata": {},
    }))
}

fn blocks(asked: &Asked<'_>, message: &Message) -> Vec<Value> {
    let content = message.content.as_deref().unwrap_or_default();
    if &*message.role == "tool" {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let name = message.name.as_deref().or_else(|| tool_of(asked, id)).unwrap_or_default();
        return vec![
            json!({"type": "tool_result", "tool_use_id": id, "tool_name": name, "content": content, "is_error": false}),
        ];
    }
    let mut blocks = Vec::new();
    if !content.is_empty() {
        blocks.push(json!({"type": "text", "text": content}));
    }
    for call in message.tool_calls.iter().flatten() {
        // Arguments that are no JSON are shown as they stand.
        let input = serde_json::from_str::<Value>(&call.function.arguments);
        let input = input.unwrap_or_else(|_| Value::from(&*call.function.arguments));
        let id = call.id.as_deref().unwrap_or_default();
        blocks.push(json!({"type": "tool_use", "id": id, "tool_name": call.function.name, "input": input}));
    }
    let images = message.images.iter().flatten();
    blocks.extend(images.map(|image| attachment("", &image.media_type, image.bytes, None)));
    let texts = spoken(&message.extra);
    if !texts.is_empty() {
        let text = texts.join("\n");
        let value = message.extra.get("value");
        let name = value.and_then(|value| value.get("title").or(value.get("filename"))?.as_str());
        let kind = value.and_then(|value| value.pointer("/source/media_type")?.as_str());
        blocks.push(attachment(name.unwrap_or_default(), kind.unwrap_or_default(), text.len() as u64, Some(&text)));
    }
    blocks
}

/// A document or an image: never its bytes.
fn attachment(file_name: &str, media_type: &str, size: u64, text: Option<&str>) -> Value {
    let mut block = Map::new();
    put(&mut block, "type", Some("attachment"));
    put(&mut block, "file_name", Some(file_name));
    put(&mut block, "media_type", Some(media_type));
    put(&mut block, "size_bytes", Some(size));
    put(&mut block, "text", text);
    Value::Object(block)
}

/// The tool of the call that a result answers.
fn tool_of<'a>(asked: &Asked<'a>, id: &str) -> Option<&'a str> {
    let calls = asked.input.messages.as_deref()?.iter().flat_map(|message| message.tool_calls.iter().flatten());
    let mut calls = calls.filter(|call| call.id.as_deref() == Some(id));
    calls.next().map(|call| &*call.function.name)
}

pub(super) fn answer(asked: &Asked<'_>, reply: &Map<String, Value>) -> Result<Output, HandlerError> {
    match text(reply, "action")? {
        Some("allow") => Ok(asked.allow()),
        Some("deny") => {
            let said = reply.get("deny_reason").and_then(Value::as_str).filter(|said| !said.is_empty());
            let said: Option<String> = said.map(|said| said.chars().take(REASON).collect());
            let mut output = asked.deny(said.as_deref(), "");
            if let Some(reference) = reply.get("reference_id").and_then(Value::as_str).filter(|id| is_reference(id)) {
                let metadata = BTreeMap::from([("reference_id".to_owned(), reference.to_owned())]);
                output.hook_specific_output.get_or_insert_default().metadata = Some(metadata);
            }
            Ok(output)
        }
        _ => Err(unreadable("`action` of its reply is neither `allow` nor `deny`")),
    }
}

fn is_reference(id: &str) -> bool {
    (1..=REFERENCE).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:/-".contains(&b))
}
