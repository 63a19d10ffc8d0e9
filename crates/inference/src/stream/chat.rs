//! Streams of `/v1/chat/completions` and `/v1/completions`: chunks with choices, each with a delta
//! (<https://platform.openai.com/docs/api-reference/chat/streaming>).

use serde_json::{Map, Value, json};

use super::delta::{Reader, number};
use super::format::{Format, check_own, event, is_echo, members, set};
use super::frame::{Data, Event, Frame, Lane, Part};
use super::said::{Said, Span};
use super::{Block, Ending, Fault, TrackKind};
use crate::error::Unheld;
use crate::json::{At, Document, Kind};
use crate::refusal::{ErrorKind, refusal_body};
use crate::route::{Route, Wire};

const ROOT: &[&str] = &["choices", "usage", "error"];
const CHOICE: &[&str] =
    &["index", "delta", "text", "thinking", "reasoning", "reasoning_content", "finish_reason", "logprobs"];
/// The last event.
pub(super) const DONE: &[u8] = b"[DONE]";

/// What every chunk says of its stream.
const HEAD: &[&str] = &["id", "created", "model", "system_fingerprint"];

/// Reads and writes chunks.
#[derive(Debug, Default)]
pub(super) struct Chat {
    /// Completions: text stands in the choice, and there is nothing else.
    texts: bool,
    /// The members of [`HEAD`] as the first chunk spells them, each with a comma behind it. They are read when a chunk is
    /// made, which seldom is.
    head: String,
    /// Usage came in a chunk of its own.
    usage_apart: bool,
}

impl Chat {
    pub(super) fn completions() -> Self {
        Self { texts: true, ..Self::default() }
    }

    fn root(
        &mut self,
        event: &Event<'_>,
        document: &Document,
        said: &mut Said,
        frame: &mut Frame,
    ) -> Result<(), Fault> {
        if document.kind(Document::ROOT) != Kind::Object {
            return Err(document.shape(Document::ROOT, "an object is expected").into());
        }
        let (mut choices, mut usage, mut error) = (None, None, event.name == Some("error"));
        let first = self.head.is_empty();
        members(document, Document::ROOT, ROOT, |key, value| {
            let some = document.kind(value) != Kind::Null;
            match key {
                b"choices" => choices = Some(value),
                b"usage" if some => usage = Some(value),
                b"error" if some => error = true,
                b"__verbose" => frame.changes().remove(Document::ROOT, value),
                _ if first && HEAD.iter().any(|name| name.as_bytes() == key) => {
                    for part in ["\"", &*String::from_utf8_lossy(key), "\":", document.raw(value), ","] {
                        self.head.push_str(part);
                    }
                }
                _ if some && is_echo(key) => frame.parts.push(Part::Tokens { member: (Document::ROOT, value) }),
                _ => {}
            }
            Ok(())
        })?;
        let choices = choices.filter(|at| document.kind(*at) == Kind::Array);
        let mut count = 0;
        for choice in choices.into_iter().flat_map(|choices| document.elements(choices)) {
            count += 1;
            self.choice(document, choice, said, frame)?;
        }
        if count == 0 && !error {
            check_own(document, "choices")?;
        }
        frame.only_calls &= count == 1;
        if let Some(usage) = usage {
            said.usage = Some(document.value(usage));
            self.usage_apart |= count == 0;
            frame.only_calls = false;
        }
        if error {
            said.end(true);
            frame.speaks = true;
        }
        if error || count == 0 {
            frame.lane = Lane::All;
        }
        Ok(())
    }

    fn choice(&self, document: &Document, choice: At, said: &mut Said, frame: &mut Frame) -> Result<(), Fault> {
        let index = number(document, document.get(choice, "index"))?.unwrap_or(0);
        let index = u32::try_from(index).map_err(|_| document.shape(choice, "a small `index` is expected"))?;
        said.begin_choice(index)?;
        let mut reader = Reader { document, choice: index, said, frame, lane: Lane::Free };
        let mut found = Found::default();
        members(document, choice, CHOICE, |key, value| {
            let some = document.kind(value) != Kind::Null;
            match key {
                b"delta" if some => found.delta = Some(value),
                b"text" if some => found.text = Some(value),
                b"thinking" | b"reasoning" | b"reasoning_content" if some => found.thinking.push(value),
                // A whole answer in a stream: no reader looks at it, and no hook has seen it.
                b"message" | b"__verbose" => reader.frame.changes().remove(choice, value),
                b"finish_reason" if some => found.stop = Some(value),
                b"logprobs" if some => found.logprobs = Some(value),
                _ if some && is_echo(key) => reader.frame.parts.push(Part::Tokens { member: (choice, value) }),
                _ => {}
            }
            Ok(())
        })?;
        let mut thoughts = Vec::new();
        found.thinking.into_iter().try_for_each(|at| reader.thought(at, &mut thoughts))?;
        if let Some(text) = found.text {
            reader.text(text, TrackKind::Text)?;
        }
        if let Some(delta) = found.delta {
            reader.delta(delta)?;
        }
        if let Some(logprobs) = found.logprobs {
            reader.logprobs(choice, logprobs);
        }
        if let Some(at) = found.stop {
            let word = document.text(at).ok_or_else(|| document.shape(at, "a string is expected"))?;
            reader.said.end_choice(index, Some(&word));
            reader.frame.parts.push(Part::Stop { choice: index, at: Some(at) });
            (reader.frame.speaks, reader.frame.only_calls) = (true, false);
            reader.lane = Lane::Choice(index);
        }
        let lane = if reader.lane == Lane::Free { Lane::Choice(index) } else { reader.lane };
        frame.lane = frame.lane.with(lane);
        Ok(())
    }

    /// A chunk with these choices.
    fn chunk(&self, choices: Value) -> Value {
        let head = format!("{{{}}}", self.head.trim_end_matches(','));
        let mut chunk = Document::read(head.into()).map_or_else(|_| Map::new(), |head| head.map(Document::ROOT));
        chunk.entry("id").or_insert_with(|| "chatcmpl-gatehook".into());
        chunk.entry("created").or_insert_with(|| 0.into());
        chunk.entry("model").or_insert_with(|| "".into());
        let object = if self.texts { "text_completion" } else { "chat.completion.chunk" };
        chunk.insert("object".into(), object.into());
        chunk.insert("choices".into(), choices);
        Value::Object(chunk)
    }

    /// A choice of a chunk: with a delta, or with a text.
    fn piece(&self, choice: u32, mut delta: Value, role: bool, stop: Option<&str>) -> Value {
        if self.texts {
            let text = delta.get("content").cloned().unwrap_or_else(|| "".into());
            return json!({ "index": choice, "text": text, "logprobs": null, "finish_reason": stop });
        }
        if let (true, Some(delta)) = (role, delta.as_object_mut()) {
            delta.insert("role".into(), "assistant".into());
        }
        json!({ "index": choice, "delta": delta, "logprobs": null, "finish_reason": stop })
    }
}

/// Members of a choice.
#[derive(Default)]
struct Found {
    delta: Option<At>,
    text: Option<At>,
    /// Beside the text, as some servers of completions tell it.
    thinking: Vec<At>,
    stop: Option<At>,
    logprobs: Option<At>,
}

impl Format for Chat {
    fn route(&self) -> Route {
        if self.texts { Route::Completions } else { Route::ChatCompletions }
    }

    fn read(&mut self, event: &Event<'_>, said: &mut Said, frame: &mut Frame) -> Result<(), Fault> {
        match event.data {
            Data::None => Ok(()),
            Data::Word(word) if word.trim_ascii().starts_with(DONE) => {
                said.end(false);
                (frame.lane, frame.speaks) = (Lane::All, true);
                Ok(())
            }
            Data::Word(_) => Err(crate::ReadError::Malformed { offset: 0, what: "a chunk is no JSON object" }.into()),
            Data::Json(document) => self.root(event, document, said, frame),
        }
    }

    fn reads_alike(&self) -> bool {
        true
    }

    fn is_whole(&self, said: &Said) -> bool {
        !said.choices.is_empty() && said.choices.values().all(|choice| choice.over)
    }

    fn can_replace(&self, said: &Said, span: &Span, _text: &str) -> Result<(), Unheld> {
        let track = said.tracks.get(span.track.0).filter(|track| track.kind == TrackKind::Text);
        match track.and_then(|track| said.choices.get(&track.choice)) {
            Some(choice) if choice.spoken => Err(Unheld::new("spoken words cannot be rewritten in a stream")),
            _ => Ok(()),
        }
    }

    fn insertion(&mut self, said: &mut Said, span: &Span) -> Vec<u8> {
        let Some(track) = said.tracks.get(span.track.0) else { return Vec::new() };
        let (choice, kind) = (track.choice, track.kind);
        let Some(text) = said.take_loose(span.track, span.range.start, true) else { return Vec::new() };
        let key = if kind == TrackKind::Text { "content" } else { "reasoning_content" };
        let role = !std::mem::replace(&mut said.choice(choice).role_left, true);
        let mut out = Vec::new();
        event(None, &self.chunk(json!([self.piece(choice, json!({ key: text }), role, None)])), &mut out);
        out
    }

    fn block(&mut self, said: &Said, block: &Block<'_>) -> Vec<u8> {
        let mut open: Vec<(u32, bool)> = said
            .choices
            .iter()
            .filter(|(_, state)| !state.stop_left)
            .map(|(index, state)| (*index, state.role_left))
            .collect();
        if said.choices.is_empty() {
            open.push((0, false));
        }
        let refuses = block.ending == Ending::Refusal;
        let mut chunks = Vec::new();
        for (choice, role) in open.iter().filter(|_| refuses && !self.texts) {
            let delta = json!({ "refusal": block.message });
            chunks.push(self.chunk(json!([self.piece(*choice, delta, !role, None)])));
        }
        for (choice, role) in &open {
            let stop = if refuses { "stop" } else { "content_filter" };
            chunks.push(self.chunk(json!([self.piece(*choice, json!({}), !role && !refuses, Some(stop))])));
        }
        let usage = said.usage.as_ref().filter(|_| self.usage_apart);
        if usage.is_some() || chunks.is_empty() {
            let mut last = self.chunk(json!([]));
            set(&mut last, "usage", usage.cloned().unwrap_or_default());
            chunks.push(last);
        }
        if let Some(last) = chunks.last_mut() {
            set(last, "hook", block.hook.told(ErrorKind::Denied));
        }
        let mut out = Vec::new();
        chunks.iter().for_each(|chunk| event(None, chunk, &mut out));
        out.extend_from_slice(b"data: [DONE]\n\n");
        out
    }

    fn fail(&mut self, _said: &Said, kind: ErrorKind, message: &str, request_id: &str) -> Vec<u8> {
        let body = refusal_body(Wire::OpenAi, kind, message, request_id, None);
        [b"data: ", &*body, b"\n\n"].concat()
    }
}
