//! Answers of `/v1/responses`: items of messages, reasoning and calls.

use gatehook_events::{FunctionCall, ToolCall};
use serde_json::json;

use super::chat::stop;
use super::texts::{Absent, Left, Piece, Texts};
use super::{Answer, echoes};
use crate::error::{ReadError, Unheld};
use crate::json::{At, Document, Kind};
use crate::view::{CallSlot, Calls, Draft, fields, is_cipher};

const ITEM: &[&str] =
    &["type", "role", "content", "call_id", "name", "arguments", "input", "summary", "encrypted_content"];
const PART: &[&str] = &["type", "text", "refusal", "annotations", "logprobs", "transcript"];

/// Items that hold nothing of what the model said.
const NO_WORDS: &[&str] = &["mcp_list_tools", "compaction"];

pub(super) fn read(document: &Document) -> Result<Vec<Answer>, ReadError> {
    fields(document, Document::ROOT, &["output", "status", "output_text"])?;
    let output = document.get(Document::ROOT, "output").filter(|at| document.kind(*at) == Kind::Array);
    let output = output.ok_or_else(|| document.shape(Document::ROOT, "no list of `output`"))?;
    let mut answer = Answer {
        stop: stop(document, Document::ROOT, "status")?,
        text: Texts {
            absent: Absent::Element(output, document.elements(output).last(), message_item),
            ..Texts::default()
        },
        calls: Calls { list: Some((Document::ROOT, output)), slots: Vec::new(), among: Some(call_item) },
        ..Answer::default()
    };
    for item in document.elements(output) {
        fields(document, item, ITEM)?;
        match document.string(item, "type").as_deref() {
            Some("message") => read_message(document, item, &mut answer)?,
            Some("reasoning") => read_reasoning(document, output, item, &mut answer)?,
            Some("function_call") => read_call(document, item, "function", "arguments", &mut answer)?,
            Some("custom_tool_call") => read_call(document, item, "custom", "input", &mut answer)?,
            Some(kind) if NO_WORDS.contains(&kind) => {}
            None if document.some(item, "content").is_some() => read_message(document, item, &mut answer)?,
            kind => other_call(document, item, kind.unwrap_or("unknown"), &mut answer),
        }
    }
    read_whole(document, &mut answer)?;
    Ok(vec![answer])
}

/// The text once more as a whole; where it says something else it is a text of its own.
fn read_whole(document: &Document, answer: &mut Answer) -> Result<(), ReadError> {
    let Some(at) = document.some(Document::ROOT, "output_text") else { return Ok(()) };
    let whole = piece(document, at)?;
    match whole.text.is_empty() || answer.text.text().is_some_and(|text| text == whole.text) {
        true => answer.text.repeats.push(at),
        false => answer.text.pieces.push(whole),
    }
    Ok(())
}

fn piece(document: &Document, at: At) -> Result<Piece, ReadError> {
    Piece::new(document, at).ok_or_else(|| document.shape(at, "a string is expected"))
}

/// Parts of text and refusal. Emptied, the first one stays as an empty text.
fn read_message(document: &Document, item: At, answer: &mut Answer) -> Result<(), ReadError> {
    let Some(content) = document.some(item, "content") else { return Ok(()) };
    if document.kind(content) == Kind::String {
        answer.text.pieces.push(piece(document, content)?);
        return Ok(());
    }
    for part in document.elements(content) {
        fields(document, part, PART)?;
        let left = Left::Out(content, part);
        if let Some(at) = document.some(part, "transcript") {
            let sealed = Some("spoken words can be dropped, not rewritten");
            answer.text.pieces.push(Piece { left, emptied: left, sealed, ..piece(document, at)? });
        }
        let Some(at) = document.some(part, "text").or_else(|| document.some(part, "refusal")) else { continue };
        let emptied = if answer.text.pieces.is_empty() { Left::Blank } else { left };
        answer.text.pieces.push(Piece { left, emptied, ..piece(document, at)? });
        // Annotations quote the text, by place and by word; both lists must stay lists.
        for key in ["annotations", "logprobs"] {
            if let Some(list) = document.some(part, key) {
                answer.text.echoes.extend(document.elements(list).map(|element| (list, element)));
            }
        }
        answer.echoes.extend(echoes(document, part).into_iter().filter(|(_, at)| document.kind(*at) != Kind::Array));
    }
    Ok(())
}

/// Emptied reasoning leaves as a whole.
fn read_reasoning(document: &Document, output: At, item: At, answer: &mut Answer) -> Result<(), ReadError> {
    let whole = Left::Out(output, item);
    let encrypted =
        document.some(item, "encrypted_content").filter(|at| document.text(*at).is_none_or(|text| !text.is_empty()));
    let cipher = encrypted.and_then(|at| document.text(at)).is_some_and(|text| is_cipher(&text));
    let sealed = cipher.then_some("encrypted reasoning can be dropped, not rewritten");
    let before = answer.thinking.pieces.len();
    for list in ["summary", "content"].iter().filter_map(|key| document.some(item, key)) {
        for part in document.elements(list) {
            fields(document, part, PART)?;
            let Some(at) = document.some(part, "text") else { continue };
            let found = Piece { left: Left::Out(list, part), emptied: whole, sealed, ..piece(document, at)? };
            answer.thinking.pieces.push(found);
        }
    }
    if let Some(at) = encrypted.filter(|_| !cipher) {
        let found = piece(document, at)?;
        let said: String = answer.thinking.pieces.iter().skip(before).map(|piece| &*piece.text).collect();
        match said == *found.text {
            true => answer.thinking.echoes.push((item, at)),
            false => answer.thinking.pieces.push(Piece { left: Left::Out(item, at), emptied: whole, ..found }),
        }
    }
    if answer.thinking.pieces.len() == before {
        answer.thinking.echoes.push((output, item));
    }
    Ok(())
}

fn read_call(
    document: &Document,
    item: At,
    kind: &str,
    arguments: &'static str,
    answer: &mut Answer,
) -> Result<(), ReadError> {
    let mut draft = Draft::default();
    draft.call(document, item, kind, arguments, "call_id")?;
    answer.shown.extend(draft.message.tool_calls.into_iter().flatten());
    answer.calls.slots.extend(draft.slot.calls.slots);
    Ok(())
}

/// A call with a form of its own, as `local_shell_call`, or what is not known: shown whole, so that a guard can judge
/// it; it can be taken out, not rewritten.
pub(super) fn other_call(document: &Document, item: At, kind: &str, answer: &mut Answer) {
    answer.shown.push(shown_whole(document, item, kind));
    answer.calls.slots.push(CallSlot::new(item));
}

/// What it is shown as.
pub(crate) fn shown_whole(document: &Document, item: At, kind: &str) -> ToolCall {
    let id = ["call_id", "id"].iter().find_map(|key| document.string(item, key));
    ToolCall {
        id: id.map(Into::into),
        kind: kind.into(),
        function: FunctionCall { name: kind.trim_end_matches("_call").into(), arguments: document.raw(item).into() },
        ..ToolCall::default()
    }
}

fn message_item(text: &str) -> String {
    json!({
        "type": "message",
        "id": "msg_gatehook",
        "status": "completed",
        "role": "assistant",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }],
    })
    .to_string()
}

fn call_item(call: &ToolCall) -> Result<String, Unheld> {
    let call_id = call.id.as_deref().unwrap_or_default();
    let (name, arguments) = (&*call.function.name, &*call.function.arguments);
    Ok(json!({
        "type": "function_call",
        "id": format!("fc_{call_id}"),
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    })
    .to_string())
}
