//! Streams of `/v1/chat/completions` and `/v1/completions`: chunks with choices, each with a delta
//! (<https://platform.openai.com/docs/api-reference/chat/streaming>).

use serde_json::{Map, Value, json};

use super::calls::{CallPiece, accumulate};
use super::format::{Format, event, members};
use super::frame::{CallPart, Data, Event, Frame, Lane, Part};
use super::said::{Said, Span};
use super::{Block, Ending, Fault, TrackKind};
use crate::json::{At, Document, Kind};
use crate::refusal::{ErrorKind, refusal_body};
use crate::response::ECHOES;
use crate::route::{Route, Wire};

const ROOT: &[&str] = &["choices", "usage", "error"];
const CHOICE: &[&str] = &["index", "delta", "text", "finish_reason", "logprobs"];
const DELTA: &[&str] = &[
    "role",
    "content",
    "thinking",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "tool_calls",
    "function_call",
    "refusal",
    "audio",
];
const CALL: &[&str] = &["id", "type", "function", "custom", "index"];
const BODY: &[&str] = &["name", "arguments", "input"];

/// What every chunk says of its stream.
const HEAD: &[&str] = &["id", "created", "model", "system_fingerprint"];

/// Reads and writes chunks.
#[derive(Debug, Default)]
pub(super) struct Chat {
    /// Completions: text stands in the choice, and there is nothing else.
    texts: bool,
    head: Map<String, Value>,
    /// Usage came in a chunk of its own.
    usage_apart: bool,
}

impl Chat {
    pub(super) fn completions() -> Self {
        Self { texts: true, ..Self::default() }
    }

    fn root(&mut self, document: &Document, said: &mut Said, frame: &mut Frame) -> Result<(), Fault> {
        if document.kind(Document::ROOT) != Kind::Object {
            return Err(document.shape(Document::ROOT, "an object is expected").into());
        }
        let (mut choices, mut usage, mut error) = (None, None, false);
        let first = self.head.is_empty();
        members(document, Document::ROOT, ROOT, |key, value| {
            let some = document.kind(value) != Kind::Null;
            match key {
                b"choices" => choices = Some(value),
                b"usage" if some => usage = Some(value),
                b"error" if some => error = true,
                b"__verbose" => frame.changes().remove(Document::ROOT, value),
                _ if first && HEAD.iter().any(|name| name.as_bytes() == key) => {
                    self.head.insert(String::from_utf8_lossy(key).into_owned(), document.value(value));
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
        said.choice(index);
        let mut reader = Reader { document, choice: index, said, frame, lane: Lane::Free };
        let mut found = Found::default();
        members(document, choice, CHOICE, |key, value| {
            let some = document.kind(value) != Kind::Null;
            match key {
                b"delta" if some => found.delta = Some(value),
                b"text" if some && self.texts => found.text = Some(value),
                // A whole answer in a stream: no reader looks at it, and no hook has seen it.
                b"message" | b"__verbose" => reader.frame.changes().remove(choice, value),
                b"finish_reason" if some => found.stop = Some(value),
                b"logprobs" if some => found.logprobs = Some(value),
                _ if some && is_echo(key) => reader.frame.parts.push(Part::Tokens { member: (choice, value) }),
                _ => {}
            }
            Ok(())
        })?;
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
        let mut chunk = self.head.clone();
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

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

/// Members of a choice.
#[derive(Default)]
struct Found {
    delta: Option<At>,
    text: Option<At>,
    stop: Option<At>,
    logprobs: Option<At>,
}

fn is_echo(key: &[u8]) -> bool {
    ECHOES.iter().any(|echo| echo.as_bytes() == key)
}

/// A whole number, where there is one.
fn number(document: &Document, at: Option<At>) -> Result<Option<u64>, Fault> {
    match at.filter(|at| document.kind(*at) != Kind::Null) {
        None => Ok(None),
        Some(at) => match document.raw(at).parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(document.shape(at, "a whole number is expected").into()),
        },
    }
}

impl Format for Chat {
    fn route(&self) -> Route {
        if self.texts { Route::Completions } else { Route::ChatCompletions }
    }

    fn read(&mut self, event: &Event<'_>, said: &mut Said, frame: &mut Frame) -> Result<(), Fault> {
        match event.data {
            Data::None => Ok(()),
            Data::Word(b"[DONE]") => {
                said.end(false);
                (frame.lane, frame.speaks) = (Lane::All, true);
                Ok(())
            }
            Data::Word(_) => Err(crate::ReadError::Malformed { offset: 0, what: "a chunk is no JSON object" }.into()),
            Data::Json(document) => self.root(document, said, frame),
        }
    }

    fn is_whole(&self, said: &Said) -> bool {
        !said.choices.is_empty() && said.choices.values().all(|choice| choice.over)
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

/// One choice of a chunk while it is read.
struct Reader<'r> {
    document: &'r Document,
    choice: u32,
    said: &'r mut Said,
    frame: &'r mut Frame,
    lane: Lane,
}

impl Reader<'_> {
    fn touch(&mut self, lane: Lane) {
        self.lane = self.lane.with(lane);
    }

    fn delta(&mut self, delta: At) -> Result<(), Fault> {
        let document = self.document;
        if document.kind(delta) != Kind::Object {
            return Err(document.shape(delta, "an object is expected").into());
        }
        let (mut list, mut single, mut steps, mut bare) = (None, None, None, true);
        let mut thinking: Vec<(Span, At)> = Vec::new();
        members(document, delta, DELTA, |key, value| {
            if document.kind(value) == Kind::Null {
                return Ok(());
            }
            match key {
                b"role" => self.role(),
                b"content" => self.content(value)?,
                b"refusal" => self.text(value, TrackKind::Text)?,
                b"audio" => self.audio(value)?,
                b"reasoning" | b"reasoning_content" | b"thinking" => self.thought(value, &mut thinking)?,
                b"reasoning_details" => steps = Some(value),
                b"tool_calls" => list = Some(value),
                b"function_call" => single = Some(value),
                _ => bare = false,
            }
            Ok(())
        })?;
        if let Some(steps) = steps {
            self.steps(delta, steps, thinking.first().map(|(span, _)| span))?;
        }
        let is_bare = bare && self.lane == Lane::Free;
        if let Some(list) = list {
            self.calls(delta, list)?;
        }
        if let Some(call) = single {
            self.call(CallPlace { within: (delta, call), at: call, legacy: true })?;
        }
        self.frame.only_calls = is_bare && (list.is_some() || single.is_some());
        Ok(())
    }

    /// Only the first role matters: some servers name it in each chunk.
    fn role(&mut self) {
        let choice = self.choice;
        let known = |part: &Part| matches!(part, Part::Role { choice: of } if *of == choice);
        if !std::mem::replace(&mut self.said.choice(choice).role_came, true) && !self.frame.parts.iter().any(known) {
            self.frame.parts.push(Part::Role { choice });
            self.touch(Lane::Choice(choice));
        }
    }

    fn text(&mut self, at: At, kind: TrackKind) -> Result<(), Fault> {
        self.read_text(at, kind).map(drop)
    }

    fn read_text(&mut self, at: At, kind: TrackKind) -> Result<Option<Span>, Fault> {
        let text = match self.document.kind(at) {
            Kind::Null => return Ok(None),
            _ => self.document.text(at).ok_or_else(|| self.document.shape(at, "a string is expected"))?,
        };
        self.touch(Lane::Track(self.choice, kind));
        if text.is_empty() {
            return Ok(None);
        }
        let span = self.said.append(self.choice, kind, &text)?;
        self.frame.speaks = true;
        self.frame.parts.push(Part::Piece { span: span.clone(), at });
        Ok(Some(span))
    }

    /// A string, or parts: `{"type": "text", "text"}`, `{"type": "thinking", "thinking": [parts]}`.
    fn content(&mut self, at: At) -> Result<(), Fault> {
        if self.document.kind(at) != Kind::Array {
            return self.text(at, TrackKind::Text);
        }
        for part in self.document.elements(at) {
            for key in ["text", "refusal"] {
                if let Some(text) = self.document.some(part, key) {
                    self.text(text, TrackKind::Text)?;
                }
            }
            match self.document.some(part, "thinking") {
                Some(list) if self.document.kind(list) == Kind::Array => {
                    for step in self.document.elements(list) {
                        if let Some(text) = self.document.some(step, "text") {
                            self.text(text, TrackKind::Thinking)?;
                        }
                    }
                }
                Some(text) => self.text(text, TrackKind::Thinking)?,
                None => {}
            }
        }
        Ok(())
    }

    /// What spoken words say.
    fn audio(&mut self, audio: At) -> Result<(), Fault> {
        self.touch(Lane::Track(self.choice, TrackKind::Text));
        match self.document.some(audio, "transcript") {
            Some(at) => self.text(at, TrackKind::Text),
            None => Ok(()),
        }
    }

    /// Thinking under any of its keys; what says the same as another key is one with it.
    fn thought(&mut self, at: At, known: &mut Vec<(Span, At)>) -> Result<(), Fault> {
        let same = |(_, other): &&(Span, At)| self.document.text(*other) == self.document.text(at);
        if let Some((span, _)) = known.iter().find(same) {
            self.frame.parts.push(Part::Copy { span: span.clone(), at });
        } else if let Some(span) = self.read_text(at, TrackKind::Thinking)? {
            known.push((span, at));
        }
        Ok(())
    }

    /// The thinking once more, in steps; or only there.
    fn steps(&mut self, delta: At, steps: At, thinking: Option<&Span>) -> Result<(), Fault> {
        let texts: Vec<At> = self
            .document
            .elements(steps)
            .flat_map(|step| ["text", "summary"].map(|key| self.document.some(step, key)))
            .flatten()
            .collect();
        let Some(span) = thinking else {
            return texts.into_iter().try_for_each(|at| self.text(at, TrackKind::Thinking));
        };
        let whole: String = texts.iter().filter_map(|at| self.document.text(*at)).collect();
        if whole.is_empty() || whole == self.said.shown(span) {
            self.frame.parts.push(Part::Echo { span: span.clone(), member: (delta, steps) });
        } else {
            self.frame.changes().remove(delta, steps);
        }
        Ok(())
    }

    /// Log probabilities stay where their tokens spell the text beside them, and nothing else.
    fn logprobs(&mut self, choice: At, logprobs: At) {
        let pieces = |part: &Part| match part {
            Part::Piece { span, .. } => Some(span.clone()),
            _ => None,
        };
        let text_of = |span: &Span| {
            let track = self.said.tracks.get(span.track.0)?;
            (track.kind == TrackKind::Text && track.choice == self.choice).then(|| track.part(span.range.clone()))?
        };
        let spans: Vec<Span> =
            self.frame.parts.iter().filter_map(pieces).filter(|span| text_of(span).is_some()).collect();
        let text: String = spans.iter().filter_map(text_of).collect();
        match (spans.as_slice(), super::tokens::spell(self.document, logprobs, &text)) {
            ([], true) => {}
            ([span], true) => {
                self.frame.parts.push(Part::Echo { span: span.clone(), member: (choice, logprobs) });
            }
            _ => self.frame.changes().replace(logprobs, "null".to_owned()),
        }
    }

    fn calls(&mut self, delta: At, list: At) -> Result<(), Fault> {
        if self.document.kind(list) != Kind::Array {
            return Err(self.document.shape(list, "a list of calls is expected").into());
        }
        for at in self.document.elements(list) {
            self.call(CallPlace { within: (delta, list), at, legacy: false })?;
        }
        Ok(())
    }

    fn call(&mut self, place: CallPlace) -> Result<(), Fault> {
        let document = self.document;
        let mut piece = CallPiece::default();
        let mut body = place.legacy.then_some(place.at);
        if !place.legacy {
            members(document, place.at, CALL, |key, value| {
                match key {
                    b"id" => piece.id = Some(value),
                    b"type" => piece.kind = Some(value),
                    b"index" => piece.number = Some(value),
                    b"function" | b"custom" => {
                        piece.custom = key == b"custom";
                        body = Some(value);
                    }
                    _ => piece.extra.push((String::from_utf8_lossy(key).into_owned(), value)),
                }
                Ok(())
            })?;
        }
        if let Some(body) = body {
            members(document, body, BODY, |key, value| {
                match key {
                    b"name" => piece.name = Some(value),
                    b"arguments" | b"input" => piece.arguments = Some(value),
                    _ => {}
                }
                Ok(())
            })?;
        }
        self.touch(Lane::Calls(self.choice));
        self.frame.speaks = true;
        let number = number(document, piece.number)?;
        let (call, first) = accumulate(self.said, document, self.choice, number, &piece, place.legacy)?;
        self.frame.parts.push(Part::Call(Box::new(CallPart {
            call,
            within: place.within,
            at: place.at,
            body: body.unwrap_or(place.at),
            id: piece.id,
            name: piece.name,
            arguments: piece.arguments,
            key: if piece.custom { "input" } else { "arguments" },
            number: piece.number,
            first,
        })));
        Ok(())
    }
}

/// Where a call of a delta stands.
struct CallPlace {
    within: (At, At),
    at: At,
    legacy: bool,
}
