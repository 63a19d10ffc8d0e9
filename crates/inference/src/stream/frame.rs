//! One frame: its bytes, what it holds, and what it waits for.

use bytes::Bytes;

use super::lines::{Fields, Framing, Raw, fields, lines};
use super::messages;
use super::responses;
use super::said::{Said, Span};
use super::{CallId, TrackKind};
use crate::json::{At, Document, Edits};

/// What a frame must not overtake. Accumulators keep choices apart, and within a choice text, thinking and calls: what
/// waits in one of them need not hold the others up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Lane {
    /// It says nothing, as a comment does: it overtakes nothing, and anything may overtake it.
    #[default]
    Free,
    /// Text or thinking of a choice.
    Track(u32, TrackKind),
    /// Tool calls of a choice.
    Calls(u32),
    /// A choice as a whole, as its role and its stop reason.
    Choice(u32),
    /// Everything: usage, the end, what is unknown, and all frames of formats in which places are numbered.
    All,
}

impl Lane {
    fn choice(self) -> Option<u32> {
        match self {
            Lane::Track(choice, _) | Lane::Calls(choice) | Lane::Choice(choice) => Some(choice),
            Lane::Free | Lane::All => None,
        }
    }

    /// Whether one of them must not overtake the other.
    pub(super) fn crosses(self, other: Self) -> bool {
        match (self, other) {
            (Lane::Free, _) | (_, Lane::Free) => false,
            (Lane::All, _) | (_, Lane::All) => true,
            (Lane::Choice(_), _) | (_, Lane::Choice(_)) => self.choice() == other.choice(),
            _ => self == other,
        }
    }

    /// The lanes that a choice's lane crosses, itself among them.
    pub(super) fn crossing(self) -> impl Iterator<Item = Self> {
        let choice = self.choice().unwrap_or_default();
        let of_choice = [Lane::Track(choice, TrackKind::Text), Lane::Track(choice, TrackKind::Thinking)];
        let all = [Lane::Calls(choice), Lane::Choice(choice), Lane::All];
        of_choice.into_iter().chain(all).filter(move |lane| lane.crosses(self))
    }

    /// The lane of a frame that belongs to both.
    pub(super) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Lane::Free, lane) | (lane, Lane::Free) => lane,
            (one, two) if one == two => one,
            (one, two) => match (one.choice(), two.choice()) {
                (Some(one), Some(two)) if one == two => Lane::Choice(one),
                _ => Lane::All,
            },
        }
    }
}

/// Something in a frame that what was decided may change.
#[derive(Debug)]
pub(super) enum Part {
    /// A string that brings new text.
    Piece { span: Span, at: At },
    /// New text that the format itself puts into its place.
    Text(Span),
    /// A string that says again what a span says. It waits as a piece does.
    Copy { span: Span, at: At },
    /// A member (object and value) that tells of the tokens of a span: it leaves only with the span unchanged.
    Echo { span: Span, member: (At, At) },
    /// A member that tells of the whole stream in tokens: it leaves while nothing of the stream was changed.
    Tokens { member: (At, At) },
    /// A part of a call.
    Call(Box<CallPart>),
    /// A call that it belongs to: the format itself puts what was decided into its place.
    Of(CallId),
    /// The end of a choice, and its stop reason.
    Stop { choice: u32, at: Option<At> },
    /// The first word of a choice: who speaks.
    Role { choice: u32 },
}

/// Where a part of a call stands.
#[derive(Debug)]
pub(super) struct CallPart {
    pub(super) call: CallId,
    /// The object that holds it, and the value under that object's key: a list, or the call itself.
    pub(super) within: (At, At),
    /// The call in the list; the same as the value where there is no list.
    pub(super) at: At,
    /// The object with name and arguments.
    pub(super) body: At,
    pub(super) id: Option<At>,
    pub(super) name: Option<At>,
    pub(super) arguments: Option<At>,
    /// The key of the arguments.
    pub(super) key: &'static str,
    /// A number that must leave no gap.
    pub(super) number: Option<At>,
    /// The first frame of the call.
    pub(super) first: bool,
}

/// A frame that is held.
#[derive(Debug)]
pub(super) struct Frame {
    framing: Framing,
    raw: Raw,
    /// Its JSON. The table of its nodes is not kept: places are the same whenever it is read again.
    data: Bytes,
    pub(super) lane: Lane,
    pub(super) parts: Vec<Part>,
    /// What it tells, in the terms of a format that knows its own places.
    pub(super) told: Told,
    /// What changes whatever is decided.
    pub(super) changes: Option<Box<Edits>>,
    /// It bears words of the model, a call, or an end: enough to begin an answer with.
    pub(super) speaks: bool,
    /// It may free frames that wait before it.
    pub(super) wakes: bool,
    /// It ends a choice, or all.
    pub(super) closes: bool,
    /// It has nothing beside its calls: without them it need not leave.
    pub(super) only_calls: bool,
}

/// What a frame tells, in a format's own terms.
#[derive(Debug, Default)]
pub(super) enum Told {
    #[default]
    Nothing,
    Messages(Box<messages::Told>),
    Responses(Box<responses::Told>),
}

/// What a frame says, for a format to read.
#[derive(Debug)]
pub(super) enum Data<'f> {
    /// Nothing: a comment or a blank line.
    None,
    /// The value of its `data:` lines, which is no JSON object or array.
    Word(&'f [u8]),
    /// JSON.
    Json(&'f Document),
}

/// An event as a format reads it.
#[derive(Debug)]
pub(super) struct Event<'f> {
    /// The name of an SSE event.
    pub(super) name: Option<&'f str>,
    pub(super) data: Data<'f>,
}

impl Frame {
    /// A frame, and the name of its event.
    pub(super) fn new(framing: Framing, (raw, fields): (Raw, Fields)) -> (Self, Option<String>) {
        let name = fields.event.and_then(|name| raw.bytes().get(name));
        let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
        let data = match fields.data {
            None => Bytes::new(),
            Some(line) if fields.more.is_empty() => raw.slice(line),
            Some(line) => {
                let lines: Vec<&[u8]> =
                    [line].into_iter().chain(fields.more).filter_map(|line| raw.bytes().get(line)).collect();
                lines.join(&b'\n').into()
            }
        };
        let frame = Self {
            framing,
            raw,
            data,
            lane: Lane::Free,
            parts: Vec::new(),
            told: Told::default(),
            changes: None,
            speaks: false,
            wakes: false,
            closes: false,
            only_calls: false,
        };
        (frame, name)
    }

    /// Puts other JSON into it, before it is read.
    pub(super) fn remake(&mut self, data: Bytes) {
        self.raw = Raw::made(self.with_data(&data));
        self.data = data;
    }

    /// All of it, as it came.
    pub(super) fn bytes(&self) -> &[u8] {
        self.raw.bytes()
    }

    pub(super) fn data(&self) -> &Bytes {
        &self.data
    }

    /// Its JSON, read once more.
    pub(super) fn document(&self) -> Option<Document> {
        Document::read(self.data.clone()).ok()
    }

    /// What it costs to keep it, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.raw.len() + size_of::<Self>() + self.parts.len() * size_of::<Part>()
    }

    pub(super) fn into_raw(self) -> Raw {
        self.raw
    }

    pub(super) fn changes(&mut self) -> &mut Edits {
        self.changes.get_or_insert_default()
    }

    /// Whether all that it holds is decided.
    pub(super) fn is_ready(&self, said: &Said) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Piece { span, .. } | Part::Text(span) | Part::Copy { span, .. } => {
                span.range.end <= said.allowed(span.track)
            }
            Part::Call(part) => said.calls.get(part.call.0).is_none_or(|call| call.decided),
            Part::Of(call) => said.calls.get(call.0).is_none_or(|call| call.decided),
            _ => true,
        })
    }

    /// Whether behind it a choice, or any, has no place for more.
    pub(super) fn ends(&self, of: Option<u32>) -> bool {
        let stops = |part: &Part| matches!(part, Part::Stop { choice, .. } if of.is_none_or(|of| of == *choice));
        self.lane == Lane::All || self.parts.iter().any(stops)
    }

    /// The frame with other JSON in it; its other lines stay.
    pub(super) fn with_data(&self, data: &[u8]) -> Vec<u8> {
        let raw = self.raw.bytes();
        let fields = fields(self.framing, raw);
        let mut out = Vec::with_capacity(raw.len() + data.len());
        match fields.data {
            Some(line) if fields.more.is_empty() => {
                out.extend_from_slice(raw.get(..line.start).unwrap_or_default());
                out.extend_from_slice(data);
                out.extend_from_slice(raw.get(line.end..).unwrap_or_default());
            }
            first => {
                let is_data = |line: &[u8]| line.starts_with(b"data:") || line == b"data";
                lines(raw, |line| {
                    let text = raw.get(line.clone()).unwrap_or_default();
                    match is_data(text) {
                        true if first.as_ref().is_some_and(|first| first.end == line.end) => {
                            data.split(|byte| *byte == b'\n').for_each(|line| {
                                out.extend_from_slice(b"data: ");
                                out.extend_from_slice(line);
                                out.push(b'\n');
                            });
                        }
                        true => {}
                        false => {
                            out.extend_from_slice(text);
                            out.push(b'\n');
                        }
                    }
                });
            }
        }
        out
    }
}
