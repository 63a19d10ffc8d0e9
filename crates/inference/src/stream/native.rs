//! Streams of `/api/chat` and `/api/generate`: a line of JSON for each piece, the last one with `done: true`
//! (<https://github.com/ollama/ollama/blob/main/docs/api.md>).

use serde_json::{Map, Value};

use super::delta::Reader;
use super::format::{Format, check_own, is_echo, members};
use super::frame::{CallPart, Data, Event, Frame, Lane, Part};
use super::said::{CallState, MOST, Said, Span};
use super::{Block, Call, CallId, Fault, TrackKind};
use crate::error::ReadError;
use crate::json::{At, Document, Kind};
use crate::refusal::{ErrorKind, refusal_body};
use crate::response::native_usage;
use crate::route::{Route, Wire};
use crate::view::read_calls;

const ROOT: &[&str] = &["message", "response", "thinking", "tool_calls", "done", "done_reason", "error", "logprobs"];
const MESSAGE: &[&str] = &["content", "thinking", "reasoning", "reasoning_content", "tool_calls"];

/// What every line says of its stream.
const HEAD: &[&str] = &["model", "created_at", "remote_model", "remote_host"];

/// Reads and writes lines.
#[derive(Debug)]
pub(super) struct Native {
    route: Route,
    head: Map<String, Value>,
}

/// Members of a line, or of its message.
#[derive(Default)]
struct Found {
    message: Option<At>,
    reason: Option<At>,
    done: bool,
    error: bool,
    logprobs: Option<At>,
    calls: Option<At>,
}

impl Native {
    pub(super) fn new(route: Route) -> Self {
        Self { route, head: Map::new() }
    }

    fn line(&mut self, document: &Document, said: &mut Said, frame: &mut Frame) -> Result<(), Fault> {
        if document.kind(Document::ROOT) != Kind::Object {
            return Err(document.shape(Document::ROOT, "an object is expected").into());
        }
        let first = self.head.is_empty();
        let mut found = Found::default();
        let mut reader = Reader { document, choice: 0, said, frame, lane: Lane::Free };
        reader.said.choice(0);
        let mut thoughts = Vec::new();
        let generates = self.route == Route::Generate;
        members(document, Document::ROOT, ROOT, |key, value| {
            let some = document.kind(value) != Kind::Null;
            match key {
                b"message" if some && !generates => found.message = Some(value),
                b"response" if some && generates => reader.text(value, TrackKind::Text)?,
                b"thinking" if some && generates => reader.thought(value, &mut thoughts)?,
                b"tool_calls" if some && generates => found.calls = Some(value),
                b"done" => found.done = document.kind(value) == Kind::True,
                b"done_reason" if some => found.reason = Some(value),
                b"error" if some => found.error = true,
                b"logprobs" if some => found.logprobs = Some(value),
                b"__verbose" => reader.frame.changes().remove(Document::ROOT, value),
                _ if first && HEAD.iter().any(|name| name.as_bytes() == key) => {
                    self.head.insert(String::from_utf8_lossy(key).into_owned(), document.value(value));
                }
                _ if some && is_echo(key) => {
                    reader.frame.parts.push(Part::Tokens { member: (Document::ROOT, value) });
                }
                _ => {}
            }
            Ok(())
        })?;
        let own = if generates { "response" } else { "message" };
        if !found.error && document.some(Document::ROOT, own).is_none() {
            check_own(document, own)?;
        }
        let mut holder = Document::ROOT;
        if let Some(message) = found.message {
            holder = message;
            found.calls = message_of(document, message, &mut reader)?;
        }
        if let Some(calls) = found.calls {
            add_calls(document, (holder, calls), &mut reader)?;
        }
        if let Some(logprobs) = found.logprobs {
            reader.logprobs(Document::ROOT, logprobs);
        }
        frame.lane = if reader.lane == Lane::Free { Lane::Choice(0) } else { reader.lane };
        self.end(document, &found, said, frame)
    }

    fn end(&self, document: &Document, found: &Found, said: &mut Said, frame: &mut Frame) -> Result<(), Fault> {
        if found.error {
            said.end(true);
        } else if found.done {
            let reason =
                found.reason.map(|at| document.text(at).ok_or_else(|| document.shape(at, "a string is expected")));
            said.end_choice(0, reason.transpose()?.as_deref());
            said.usage = native_usage(document);
            said.end(false);
            frame.parts.push(Part::Stop { choice: 0, at: found.reason });
        }
        if found.error || found.done {
            frame.lane = Lane::All;
            frame.speaks = true;
            frame.only_calls = false;
        }
        Ok(())
    }

    /// A line with a text.
    fn written(&self, key: &str, text: &str) -> Map<String, Value> {
        let mut line = self.head.clone();
        line.entry("model").or_insert_with(|| "".into());
        line.entry("created_at").or_insert_with(|| "1970-01-01T00:00:00Z".into());
        let mut object = Map::new();
        let own = if self.route == Route::Generate { "response" } else { "content" };
        object.insert(own.into(), "".into());
        object.insert(if key == "thinking" { key } else { own }.into(), text.into());
        if self.route == Route::Generate {
            line.extend(object);
        } else {
            object.insert("role".into(), "assistant".into());
            line.insert("message".into(), Value::Object(object));
        }
        line.insert("done".into(), false.into());
        line
    }
}

/// Texts of the message; gives its calls.
fn message_of(document: &Document, message: At, reader: &mut Reader<'_>) -> Result<Option<At>, Fault> {
    if document.kind(message) != Kind::Object {
        return Err(document.shape(message, "an object is expected").into());
    }
    let mut calls = None;
    let mut thoughts = Vec::new();
    members(document, message, MESSAGE, |key, value| {
        match key {
            _ if document.kind(value) == Kind::Null => {}
            b"content" => reader.text(value, TrackKind::Text)?,
            b"thinking" | b"reasoning" | b"reasoning_content" => reader.thought(value, &mut thoughts)?,
            b"tool_calls" => calls = Some(value),
            _ => {}
        }
        Ok(())
    })?;
    Ok(calls)
}

/// Calls come as wholes.
fn add_calls(document: &Document, within: (At, At), reader: &mut Reader<'_>) -> Result<(), Fault> {
    let (calls, slots) = read_calls(document, within.1)?;
    if reader.said.choice(0).over && !calls.is_empty() {
        return Err(Fault::WentOn("a tool call came after the stop reason"));
    }
    if reader.said.calls.len() + calls.len() > MOST {
        return Err(Fault::TooMany);
    }
    let silent = !reader.frame.speaks;
    for (call, slot) in calls.into_iter().zip(slots) {
        let body = ["function", "custom"].iter().find_map(|key| document.some(slot.at, key)).unwrap_or(slot.at);
        let member = |object: At, key: &str| document.some(object, key);
        let number = member(body, "index").or_else(|| member(slot.at, "index"));
        let number = number.filter(|at| document.kind(*at) == Kind::Number);
        let told = number.and_then(|at| document.raw(at).parse().ok());
        let arguments = member(body, "arguments");
        let id = CallId(reader.said.calls.len());
        reader.said.call_states.push(CallState {
            number: told.unwrap_or(id.0 as u64),
            objects: arguments.is_none_or(|at| document.kind(at) == Kind::Object),
            ..CallState::default()
        });
        reader.said.turn(0, None);
        reader.said.calls.push(Call { choice: 0, call, complete: true, decided: false });
        reader.frame.parts.push(Part::Call(Box::new(CallPart {
            call: id,
            within,
            at: slot.at,
            body,
            id: member(slot.at, "id"),
            name: member(body, "name"),
            arguments,
            key: "arguments",
            number: number.filter(|_| told.is_some()),
            first: true,
        })));
        reader.touch(Lane::Calls(0));
        reader.frame.speaks = true;
    }
    reader.frame.only_calls = silent;
    Ok(())
}

impl Format for Native {
    fn route(&self) -> Route {
        self.route
    }

    fn read(&mut self, event: &Event<'_>, said: &mut Said, frame: &mut Frame) -> Result<(), Fault> {
        match event.data {
            Data::None => Ok(()),
            Data::Word(_) => Err(ReadError::Malformed { offset: 0, what: "a line is no JSON object" }.into()),
            Data::Json(document) => self.line(document, said, frame),
        }
    }

    fn is_whole(&self, _said: &Said) -> bool {
        false
    }

    fn insertion(&mut self, said: &mut Said, span: &Span) -> Vec<u8> {
        let kind = said.tracks.get(span.track.0).map(|track| track.kind);
        let key = if kind == Some(TrackKind::Thinking) { "thinking" } else { "content" };
        match said.take_loose(span.track, span.range.start, true) {
            Some(text) => line(&Value::Object(self.written(key, &text))),
            None => Vec::new(),
        }
    }

    fn block(&mut self, said: &Said, block: &Block<'_>) -> Vec<u8> {
        let mut last = self.written("content", "");
        last.extend(said.usage.as_ref().and_then(Value::as_object).cloned().unwrap_or_default());
        last.insert("done".into(), true.into());
        last.insert("done_reason".into(), "content_filter".into());
        last.insert("hook".into(), block.hook.told(ErrorKind::Denied));
        line(&Value::Object(last))
    }

    fn fail(&mut self, _said: &Said, kind: ErrorKind, message: &str, request_id: &str) -> Vec<u8> {
        let mut body = refusal_body(Wire::Ollama, kind, message, request_id, None);
        body.push(b'\n');
        body
    }
}

fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}
