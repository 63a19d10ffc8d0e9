//! Answers of `/v1/messages`: blocks of text, thinking and calls.

use gatehook_events::ToolCall;
use serde_json::{Value, json};

use super::chat::stop;
use super::responses::other_call;
use super::texts::{Absent, Left, Piece, Texts};
use super::{Answer, echoes};
use crate::error::{ReadError, Unheld};
use crate::json::{At, Document, Kind};
use crate::rewrite::object_of;
use crate::view::{Calls, Draft, fields};

const BLOCK: &[&str] =
    &["type", "text", "thinking", "signature", "data", "id", "name", "input", "tool_use_id", "content", "citations"];

pub(super) fn read(document: &Document) -> Result<Vec<Answer>, ReadError> {
    fields(document, Document::ROOT, &["content", "stop_reason", "role", "type"])?;
    let content = document.get(Document::ROOT, "content").filter(|at| document.kind(*at) == Kind::Array);
    let content = content.ok_or_else(|| document.shape(Document::ROOT, "no list of `content`"))?;
    let mut answer = Answer {
        stop: stop(document, Document::ROOT, "stop_reason")?,
        text: Texts { absent: Absent::Element(content, None, text_block), ..Texts::default() },
        calls: Calls { list: Some((Document::ROOT, content)), slots: Vec::new(), among: Some(call_block) },
        ..Answer::default()
    };
    for block in document.elements(content) {
        read_block(document, content, block, &mut answer)?;
    }
    pair_results(document, content, &mut answer);
    Ok(vec![answer])
}

fn read_block(document: &Document, content: At, block: At, answer: &mut Answer) -> Result<(), ReadError> {
    fields(document, block, BLOCK)?;
    let out = Left::Out(content, block);
    let string = |key: &str| match document.some(block, key) {
        Some(at) => Piece::new(document, at)
            .map(|piece| Some(Piece { left: out, emptied: out, ..piece }))
            .ok_or_else(|| document.shape(at, "a string is expected")),
        None => Ok(None),
    };
    match document.string(block, "type").as_deref() {
        Some("text") => {
            answer.text.pieces.extend(string("text")?);
            answer.text.echoes.extend(document.some(block, "citations").map(|at| (block, at)));
            answer.echoes.extend(echoes(document, block));
        }
        Some("thinking") => {
            let signed = document.string(block, "signature").is_some_and(|signature| !signature.is_empty());
            let sealed = signed.then_some("a signed thinking block can be dropped, not rewritten");
            answer.thinking.pieces.extend(string("thinking")?.map(|piece| Piece { sealed, ..piece }));
            // Text of an answer stands after its thinking.
            if answer.shown.is_empty() {
                answer.text.absent = Absent::Element(content, Some(block), text_block);
            }
        }
        Some("redacted_thinking") => answer.thinking.echoes.push((content, block)),
        Some(kind @ ("tool_use" | "server_tool_use" | "mcp_tool_use")) => {
            let mut draft = Draft::default();
            draft.call(document, block, "function", "input", "id")?;
            answer.shown.extend(draft.message.tool_calls.into_iter().flatten().map(|mut call| {
                if kind != "tool_use" {
                    call.extra.insert("part".into(), kind.into());
                }
                call
            }));
            answer.calls.slots.extend(draft.slot.calls.slots);
        }
        Some(kind) if kind.ends_with("_tool_result") => {}
        kind => {
            let kind = kind.unwrap_or("unknown");
            other_call(document, block, kind, answer);
            if let Some(call) = answer.shown.last_mut() {
                call.extra.insert("part".into(), kind.into());
            }
        }
    }
    Ok(())
}

/// The result of a call that the server made itself leaves with the call.
fn pair_results(document: &Document, content: At, answer: &mut Answer) {
    for block in document.elements(content) {
        let Some(id) = document.string(block, "tool_use_id") else { continue };
        for (call, slot) in answer.shown.iter().zip(&mut answer.calls.slots) {
            if call.id.as_deref() == Some(&id) {
                slot.with.push((content, block));
            }
        }
    }
}

fn text_block(text: &str) -> String {
    json!({ "type": "text", "text": text }).to_string()
}

fn call_block(call: &ToolCall) -> Result<String, Unheld> {
    let id = call.id.as_deref().map_or(Value::Null, Value::from);
    let input = object_of(&call.function.arguments)?;
    Ok(json!({ "type": "tool_use", "id": id, "name": &*call.function.name, "input": input }).to_string())
}
