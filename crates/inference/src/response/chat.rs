//! Answers of the native routes, chat completions and completions: one object with its text under a key.

use serde_json::{Map, Value};

use super::texts::{Absent, Left, Piece, Texts};
use super::{Answer, echoes};
use crate::error::ReadError;
use crate::json::{At, Document, Kind};
use crate::view::{Calls, fields, read_calls, single_call};

const MESSAGE: &[&str] = &[
    "role",
    "content",
    "thinking",
    "reasoning",
    "reasoning_content",
    "tool_calls",
    "function_call",
    "refusal",
    "audio",
];
const CHOICE: &[&str] = &["message", "text", "finish_reason", "logprobs", "index"];
const ROOT: &[&str] = &["choices", "message", "response", "thinking", "tool_calls", "done_reason", "context", "usage"];

/// Keys of the thinking on one wire or another.
const THINKING: &[&str] = &["thinking", "reasoning_content", "reasoning"];

/// What quotes the text, or speaks it.
const QUOTES: &[&str] = &["annotations", "audio"];

/// The thinking once more, in steps.
const STEPS: &str = "reasoning_details";

/// `/api/chat`, its text in `message`, and `/api/generate`, its text beside everything else.
pub(super) fn native(document: &Document, message: Option<&str>) -> Result<Vec<Answer>, ReadError> {
    fields(document, Document::ROOT, ROOT)?;
    let (object, key) = match message {
        Some(key) => {
            let found = document.some(Document::ROOT, key);
            (found.ok_or_else(|| document.shape(Document::ROOT, format!("no `{key}`")))?, "content")
        }
        None => (Document::ROOT, "response"),
    };
    let mut answer = read_object(document, object, key)?;
    answer.stop = stop(document, Document::ROOT, "done_reason")?;
    Ok(vec![answer])
}

/// The counters of a native answer.
pub(crate) fn native_usage(document: &Document) -> Option<Value> {
    let counters: Map<String, Value> = ["prompt_eval_count", "eval_count"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), document.value(document.some(Document::ROOT, key)?))))
        .collect();
    (!counters.is_empty()).then_some(Value::Object(counters))
}

/// `/v1/chat/completions`.
pub(super) fn completions(document: &Document) -> Result<Vec<Answer>, ReadError> {
    each_choice(document, |choice| {
        let message = document.some(choice, "message");
        read_object(document, message.ok_or_else(|| document.shape(choice, "no `message`"))?, "content")
    })
}

/// `/v1/completions`.
pub(super) fn texts(document: &Document) -> Result<Vec<Answer>, ReadError> {
    each_choice(document, |choice| read_object(document, choice, "text"))
}

fn each_choice(document: &Document, read: impl Fn(At) -> Result<Answer, ReadError>) -> Result<Vec<Answer>, ReadError> {
    fields(document, Document::ROOT, ROOT)?;
    let choices = document.get(Document::ROOT, "choices").filter(|at| document.kind(*at) == Kind::Array);
    let choices = choices.ok_or_else(|| document.shape(Document::ROOT, "no list of `choices`"))?;
    document
        .elements(choices)
        .map(|choice| {
            fields(document, choice, CHOICE)?;
            let mut answer = read(choice)?;
            answer.stop = stop(document, choice, "finish_reason")?;
            answer.echoes.extend(echoes(document, choice));
            Ok(answer)
        })
        .collect()
}

pub(super) fn stop(document: &Document, object: At, key: &str) -> Result<Option<At>, ReadError> {
    match document.some(object, key) {
        Some(at) if document.kind(at) != Kind::String => Err(document.shape(at, "a string is expected")),
        found => Ok(found),
    }
}

/// Text under `key`, refusal, thinking and calls of one object.
fn read_object(document: &Document, object: At, key: &'static str) -> Result<Answer, ReadError> {
    fields(document, object, MESSAGE)?;
    let mut answer = Answer { text: read_text(document, object, key)?, ..Answer::default() };
    answer.thinking = read_thinking(document, object)?;
    answer.text.echoes = QUOTES.iter().filter_map(|key| Some((object, document.some(object, key)?))).collect();
    if let Some(list) = document.some(object, "tool_calls") {
        let (shown, slots) = read_calls(document, list)?;
        answer.shown = shown;
        answer.calls = Calls { list: Some((object, list)), slots, among: None };
    }
    match document.some(object, "function_call") {
        Some(at) if answer.calls.list.is_none() => {
            let (call, slot) = single_call(document, at, "function", "arguments", &[])?;
            answer.shown = vec![call];
            answer.calls = Calls { list: Some((object, at)), slots: vec![slot], among: None };
        }
        Some(at) => return Err(document.ambiguous(at, "it stands beside `tool_calls`")),
        None => {}
    }
    Ok(answer)
}

/// The content (a string, or parts of text), a refusal beside it, and what spoken words say.
fn read_text(document: &Document, object: At, key: &'static str) -> Result<Texts, ReadError> {
    let content = document.get(object, key);
    let mut texts = Texts {
        absent: match content {
            Some(at) if document.kind(at) == Kind::Null => Absent::Null(at),
            _ => Absent::Member(object, key),
        },
        ..Texts::default()
    };
    match content {
        Some(at) if document.kind(at) == Kind::Array => {
            texts.absent = Absent::Nowhere;
            for part in document.elements(at) {
                texts.pieces.extend(read_part(document, at, part)?);
            }
        }
        Some(at) => texts.pieces.extend(piece(document, at)?),
        None => {}
    }
    if let Some(at) = document.some(object, "refusal") {
        let refusal = piece(document, at)?;
        texts.pieces.extend(refusal.map(|piece| Piece { left: Left::Null, emptied: Left::Null, ..piece }));
    }
    let spoken = document.some(object, "audio").and_then(|audio| Some((audio, document.some(audio, "transcript")?)));
    if let Some((audio, transcript)) = spoken {
        let out = Left::Out(object, audio);
        let sealed = Some("spoken words can be dropped, not rewritten");
        let transcript = piece(document, transcript)?;
        texts.pieces.extend(transcript.map(|piece| Piece { left: out, emptied: out, sealed, ..piece }));
    }
    Ok(texts)
}

/// A string; null is none.
fn piece(document: &Document, at: At) -> Result<Option<Piece>, ReadError> {
    match document.kind(at) {
        Kind::Null => Ok(None),
        Kind::String => Ok(Piece::new(document, at)),
        _ => Err(document.shape(at, "a string is expected")),
    }
}

/// `{"type", "text"}` of a content in parts.
fn read_part(document: &Document, list: At, part: At) -> Result<Option<Piece>, ReadError> {
    let text = ["text", "refusal", "thinking", "summary"].iter().find_map(|key| document.some(part, key));
    let piece = text.map(|at| piece(document, at)).transpose()?.flatten();
    Ok(piece.map(|piece| Piece { left: Left::Out(list, part), ..piece }))
}

/// Thinking under any of its keys. One that repeats another is rewritten with it.
fn read_thinking(document: &Document, object: At) -> Result<Texts, ReadError> {
    let found: Vec<At> = THINKING.iter().filter_map(|key| document.get(object, key)).collect();
    let mut texts = Texts::default();
    for at in &found {
        match piece(document, *at)? {
            Some(piece) if texts.pieces.iter().any(|other| other.text == piece.text) => texts.repeats.push(piece.at),
            found => texts.pieces.extend(found),
        }
    }
    texts.absent = match found.first() {
        Some(at) => Absent::Null(*at),
        None => Absent::Nowhere,
    };
    let Some(steps) = document.some(object, STEPS) else { return Ok(texts) };
    if texts.pieces.is_empty() {
        for step in document.elements(steps) {
            texts.pieces.extend(read_part(document, steps, step)?);
        }
    } else {
        texts.echoes.push((object, steps));
    }
    Ok(texts)
}
