//! The items of an answer and their parts: what came of them, and what of that has left.

use std::borrow::Cow;

use bytes::Bytes;
use gatehook_events::ToolCall;
use serde_json::Value;

use super::events::{List, OTHER, PartKind};
use crate::stream::said::{Decided, Said, Span};
use crate::stream::{CallId, TrackId};

/// What an item is to a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    Call(CallId),
    /// It holds nothing of what the model said.
    Silent,
}

/// An item of the output.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: Option<String>,
    /// Its `output_index` as the upstream gives it.
    pub(super) number: Option<u64>,
    pub(super) kind: ItemKind,
    pub(super) parts: Vec<Part>,
    /// Its text is signed by ciphertext beside it: it can leave or stay away as a whole.
    pub(super) sealed: bool,
    /// The arguments of its call have come as a whole; all of it has come.
    pub(super) stated: bool,
    pub(super) over: bool,
    /// The `output_index` with which it left.
    pub(super) left: Option<u64>,
    /// It does not leave.
    pub(super) gone: bool,
    /// The `.done` of its arguments has left.
    pub(super) told: bool,
    /// It left as a whole, and like this.
    pub(super) done: Option<Bytes>,
    /// How much of a call's arguments has left as it came, and whether other arguments have.
    pub(super) sent: usize,
    pub(super) argued: bool,
    /// It ends before its time: with what has left.
    pub(super) cut: bool,
}

impl Item {
    pub(super) fn new(id: Option<String>, number: Option<u64>, kind: ItemKind) -> Self {
        Self {
            id,
            number,
            kind,
            parts: Vec::new(),
            sealed: false,
            stated: false,
            over: false,
            left: None,
            gone: false,
            told: false,
            done: None,
            sent: 0,
            argued: false,
            cut: false,
        }
    }

    /// It stands open at the client.
    pub(super) fn is_open(&self) -> bool {
        self.left.is_some() && self.done.is_none()
    }

    pub(super) fn call(&self) -> Option<CallId> {
        match self.kind {
            ItemKind::Call(id) => Some(id),
            _ => None,
        }
    }

    /// The id by which the client knows it: of one that came without, a name made of its place.
    pub(super) fn name(&self) -> Option<Cow<'_, str>> {
        match &self.id {
            Some(id) => Some(id.into()),
            None => self.left.map(|place| format!("item_gatehook_{place}").into()),
        }
    }

    /// Where a part stands in `parts`.
    pub(super) fn find(&self, list: List, index: u64) -> Option<usize> {
        self.parts.iter().position(|part| part.kind.list == list && part.index == index)
    }

    /// The index of the next part of a list.
    pub(super) fn next(&self, list: List) -> u64 {
        let last = self.parts.iter().filter(|part| part.kind.list == list).map(|part| part.index).max();
        last.map_or(0, |last| last.saturating_add(1))
    }

    /// The last part of a list.
    pub(super) fn last(&self, list: List) -> Option<usize> {
        self.parts.iter().rposition(|part| part.kind.list == list)
    }

    /// Something of its text is not what came.
    pub(super) fn changed(&self) -> bool {
        self.parts.iter().any(|part| part.left.is_some())
    }

    fn spans(&self) -> impl Iterator<Item = &Span> {
        self.parts.iter().flat_map(|part| &part.spans)
    }

    /// Nothing of it is to leave: its call was removed, or all of its sealed text.
    pub(super) fn is_emptied(&self, said: &mut Said) -> bool {
        match self.call().map(|id| said.call_states.get(id.0)) {
            Some(state) => state.is_some_and(|state| state.fate == Decided::Removed),
            None => {
                let mut spans = self.spans().filter(|span| !span.range.is_empty()).peekable();
                self.sealed && spans.peek().is_some() && spans.all(|span| said.shown(span).is_empty())
            }
        }
    }

    /// Whether it is known that it leaves, or that it does not.
    pub(super) fn is_ready(&self, said: &mut Said) -> bool {
        let begun =
            self.spans().any(|span| said.allowed(span.track) > span.range.start && !said.shown(span).is_empty());
        !self.sealed
            || begun
            || (self.over || said.over) && self.spans().all(|span| span.range.end <= said.allowed(span.track))
    }

    /// Whether all of its text lies in a span.
    pub(super) fn is_within(&self, outer: &Span) -> bool {
        self.spans().all(|span| {
            span.track == outer.track && outer.range.start <= span.range.start && span.range.end <= outer.range.end
        })
    }

    /// Whether none of its text touches a span.
    pub(super) fn is_beside(&self, other: &Span) -> bool {
        let beside = |span: &Span| match other.range.is_empty() {
            true => other.range.start < span.range.start || span.range.end < other.range.start,
            false => other.range.end <= span.range.start || span.range.end <= other.range.start,
        };
        self.spans().all(|span| span.track != other.track || beside(span))
    }

    /// Its call as it is for the client.
    pub(super) fn told_call<'s>(&self, said: &'s Said) -> Option<&'s ToolCall> {
        let id = self.call()?;
        match said.call_states.get(id.0).map(|state| &state.fate) {
            Some(Decided::Rewritten(new)) => Some(new),
            _ => said.calls.get(id.0).map(|call| &call.call),
        }
    }

    /// The arguments of a call that was rewritten.
    pub(super) fn rewritten<'s>(&self, said: &'s Said) -> Option<&'s str> {
        match &said.call_states.get(self.call()?.0)?.fate {
            Decided::Rewritten(new) => Some(&new.function.arguments),
            _ => None,
        }
    }

    /// The arguments of its call: in the end, or as far as they have left.
    pub(super) fn arguments(&self, said: &Said) -> String {
        if let Some(new) = self.rewritten(said) {
            return if self.cut && !self.argued { String::new() } else { new.to_owned() };
        }
        let Some((call, state)) = self.call().and_then(|id| Some((said.calls.get(id.0)?, said.call_states.get(id.0)?)))
        else {
            return String::new();
        };
        let came = if call.complete { &*call.call.function.arguments } else { &*state.arguments };
        came.get(..if self.cut { self.sent.min(came.len()) } else { came.len() }).unwrap_or_default().to_owned()
    }
}

/// A part of an item that holds text.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) kind: &'static PartKind,
    /// Its `content_index` or `summary_index`.
    pub(super) index: u64,
    /// All of it, where it holds no text.
    pub(super) other: Option<Value>,
    /// What came of it.
    spans: Vec<Span>,
    /// How many bytes of that have left, as they are or changed.
    sent: usize,
    /// What left, where that is not what came.
    pub(super) left: Option<String>,
    /// The client has its beginning, its text as a whole, and its end.
    pub(super) opened: bool,
    pub(super) told: bool,
    pub(super) closed: bool,
}

impl Part {
    pub(super) fn new(kind: &'static PartKind, index: u64) -> Self {
        // What holds no text is nobody's business here.
        let done = *kind == OTHER;
        let (opened, told, closed) = (done, done, done);
        let other = None;
        Self { kind, index, other, spans: Vec::new(), sent: 0, left: None, opened, told, closed }
    }

    /// More has come.
    pub(super) fn push(&mut self, span: &Span) {
        match self.spans.last_mut() {
            Some(last) if last.track == span.track && last.range.end == span.range.start => {
                last.range.end = span.range.end;
            }
            _ => self.spans.push(span.clone()),
        }
    }

    /// All that came, piece by piece.
    pub(super) fn pieces<'s>(&'s self, said: &'s Said) -> impl Iterator<Item = &'s str> {
        self.spans.iter().filter_map(|span| said.tracks.get(span.track.0)?.part(span.range.clone()))
    }

    /// What of `text` goes on where this part ends; none where it says something else.
    pub(super) fn rest<'t>(&self, said: &Said, text: &'t str) -> Option<&'t str> {
        self.pieces(said).try_fold(text, |rest, piece| rest.strip_prefix(piece))
    }

    /// Where it ends in its track; none while nothing has come.
    pub(super) fn end(&self) -> Option<(TrackId, usize)> {
        self.spans.last().map(|span| (span.track, span.range.end))
    }

    /// A piece has left: as `text`, or as it came.
    pub(super) fn leave(&mut self, said: &Said, span: &Span, text: Option<&str>) {
        let came = said.tracks.get(span.track.0).and_then(|track| track.part(span.range.clone())).unwrap_or_default();
        if text.is_some() && self.left.is_none() {
            self.left = Some(self.released(said));
        }
        if let Some(left) = &mut self.left {
            left.push_str(text.unwrap_or(came));
        }
        self.sent += came.len();
    }

    /// A text has left that never came.
    pub(super) fn insert(&mut self, said: &Said, text: &str) {
        let mut left = self.released(said);
        left.push_str(text);
        self.left = Some(left);
    }

    /// What the client has of it.
    pub(super) fn released(&self, said: &Said) -> String {
        if let Some(left) = &self.left {
            return left.clone();
        }
        let mut text = String::with_capacity(self.sent);
        for piece in self.pieces(said) {
            let more = piece.len().min(self.sent - text.len());
            text.push_str(piece.get(..more).unwrap_or_default());
        }
        text
    }
}
