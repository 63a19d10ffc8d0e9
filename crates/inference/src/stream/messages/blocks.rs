//! The blocks of a message: what came of them, and what of that has left.

use std::ops::Range;

use crate::stream::said::{Decided, Said, Span};
use crate::stream::{CallId, TrackKind};

/// What a block is to a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Said(TrackKind),
    Call(CallId),
    /// The result of a call that the server made itself: it leaves with the call.
    Result(CallId),
    /// It holds nothing that a hook reads.
    Other,
}

/// A block of the message.
#[derive(Debug)]
pub(super) struct Block {
    /// Its `index` as the upstream gives it.
    pub(super) number: Option<u64>,
    pub(super) kind: BlockKind,
    /// What came of its text.
    spans: Vec<Span>,
    /// Its thinking is signed: it leaves as a whole and as it came, or not at all.
    pub(super) sealed: bool,
    /// Its signature has begun.
    pub(super) signed: bool,
    /// Arguments of its call came in deltas.
    pub(super) argued: bool,
    /// All of it has come.
    pub(super) over: bool,
    /// The `index` with which it left.
    pub(super) left: Option<u64>,
    /// It does not leave.
    pub(super) gone: bool,
    /// What left is not what came.
    pub(super) changed: bool,
    /// Other arguments have left.
    pub(super) told: bool,
    /// Its end has left.
    pub(super) closed: bool,
}

impl Block {
    pub(super) fn new(number: Option<u64>, kind: BlockKind) -> Self {
        Self {
            number,
            kind,
            spans: Vec::new(),
            sealed: false,
            signed: false,
            argued: false,
            over: false,
            left: None,
            gone: false,
            changed: false,
            told: false,
            closed: false,
        }
    }

    /// More of its text has come.
    pub(super) fn push(&mut self, span: &Span) {
        match self.spans.last_mut() {
            Some(last) if last.track == span.track && last.range.end == span.range.start => {
                last.range.end = span.range.end;
            }
            _ => self.spans.push(span.clone()),
        }
    }

    /// Where its text stands in its track.
    pub(super) fn text(&self) -> Range<usize> {
        let (first, last) = (self.spans.first(), self.spans.last());
        first.zip(last).map_or(0..0, |(first, last)| first.range.start..last.range.end)
    }

    /// The call that it makes, or whose result it is.
    pub(super) fn call(&self) -> Option<CallId> {
        match self.kind {
            BlockKind::Call(id) | BlockKind::Result(id) => Some(id),
            BlockKind::Said(_) | BlockKind::Other => None,
        }
    }

    /// Where its text ends in its track; none while nothing has come.
    pub(super) fn end(&self) -> Option<&Span> {
        self.spans.last()
    }

    /// It stands open at the client.
    pub(super) fn is_open(&self) -> bool {
        self.left.is_some() && !self.closed
    }

    /// Whether it is known that it leaves, or that it does not.
    pub(super) fn is_ready(&self, said: &mut Said) -> bool {
        let BlockKind::Said(_) = self.kind else { return true };
        self.speaks(said)
            || (self.over || said.over) && self.spans.iter().all(|span| span.range.end <= said.allowed(span.track))
    }

    /// Whether something of its text may leave.
    fn speaks(&self, said: &mut Said) -> bool {
        self.spans.iter().any(|span| {
            let end = span.range.end.min(said.allowed(span.track));
            let allowed = Span { track: span.track, range: span.range.start..end };
            span.range.start < end && !said.shown(&allowed).is_empty()
        })
    }

    /// Nothing of it is to leave: its call was removed, or all of its text.
    pub(super) fn is_emptied(&self, said: &mut Said) -> bool {
        match self.call() {
            Some(id) => said.call_states.get(id.0).is_some_and(|state| state.fate == Decided::Removed),
            None => self.spans.iter().any(|span| !span.range.is_empty()) && !self.speaks(said),
        }
    }

    /// Whether all of its text lies in a span.
    pub(super) fn is_within(&self, outer: &Span) -> bool {
        let within = |span: &Span| outer.range.start <= span.range.start && span.range.end <= outer.range.end;
        self.spans.iter().all(|span| span.track == outer.track && within(span))
    }

    /// Whether none of its text touches a span.
    pub(super) fn is_beside(&self, other: &Span) -> bool {
        let beside = |span: &Span| match other.range.is_empty() {
            true => other.range.start < span.range.start || span.range.end < other.range.start,
            false => other.range.end <= span.range.start || span.range.end <= other.range.start,
        };
        self.spans.iter().all(|span| span.track != other.track || beside(span))
    }
}
