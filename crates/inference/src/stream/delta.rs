//! A part of an answer that one frame brings: text, thinking and pieces of calls, as chat completions, completions and
//! the native routes write them.

use super::calls::{CallPiece, accumulate};
use super::format::members;
use super::frame::{CallPart, Frame, Lane, Part};
use super::said::{Said, Span};
use super::tokens::spell;
use super::{Fault, TrackKind};
use crate::json::{At, Document, Kind};

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

/// A whole number, where there is one.
pub(super) fn number(document: &Document, at: Option<At>) -> Result<Option<u64>, Fault> {
    match at.filter(|at| document.kind(*at) != Kind::Null) {
        None => Ok(None),
        Some(at) => match document.raw(at).parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(document.shape(at, "a whole number is expected").into()),
        },
    }
}

/// One choice of a chunk while it is read.
pub(super) struct Reader<'r> {
    pub(super) document: &'r Document,
    pub(super) choice: u32,
    pub(super) said: &'r mut Said,
    pub(super) frame: &'r mut Frame,
    pub(super) lane: Lane,
}

impl Reader<'_> {
    pub(super) fn touch(&mut self, lane: Lane) {
        self.lane = self.lane.with(lane);
    }

    pub(super) fn delta(&mut self, delta: At) -> Result<(), Fault> {
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
                b"annotations" => self.frame.parts.push(Part::Tokens { member: (delta, value) }),
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

    pub(super) fn text(&mut self, at: At, kind: TrackKind) -> Result<(), Fault> {
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
        self.said.turn(self.choice, Some(kind));
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
        self.said.choice(self.choice).spoken = true;
        match self.document.some(audio, "transcript") {
            Some(at) => self.text(at, TrackKind::Text),
            None => Ok(()),
        }
    }

    /// Thinking under any of its keys; what says the same as another key is one with it.
    pub(super) fn thought(&mut self, at: At, known: &mut Vec<(Span, At)>) -> Result<(), Fault> {
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
    pub(super) fn logprobs(&mut self, choice: At, logprobs: At) {
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
        match (spans.as_slice(), spell(self.document, logprobs, &text)) {
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
