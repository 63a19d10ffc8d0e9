//! What leaves of a stream, and in what order.

use std::collections::VecDeque;

use bytes::Bytes;

use super::Relay;
use crate::stream::TrackId;
use crate::stream::alike::Run;
use crate::stream::frame::{Frame, Lane, Part};
use crate::stream::leave::Leaving;
use crate::stream::lines::Raw;
use crate::stream::said::Span;

/// What may leave.
#[derive(Debug)]
pub(super) enum Out {
    Came(Raw),
    Made(Vec<u8>),
}

impl Relay {
    pub(super) fn next_out(&mut self) -> Option<Bytes> {
        self.out.pop_front().map(|out| match out {
            Out::Came(raw) => raw.into_bytes(),
            Out::Made(bytes) => bytes.into(),
        })
    }

    /// What leaves where only frames that are like the last one could: most often it is one.
    pub(super) fn take_of_run(&mut self) -> Option<Bytes> {
        let run = self.run.as_mut()?;
        let next = run.next(&self.said)?;
        self.spoke = true;
        if !run.is_next(&self.said) {
            self.has_left();
            return Some(next.into_bytes());
        }
        came(&mut self.out, next);
        self.settle_run();
        self.next_out()
    }

    /// What was decided about a text may free frames.
    pub(super) fn look_at(&mut self, track: TrackId) {
        if let Some(track) = self.said.tracks.get(track.0) {
            self.held.look_at(Lane::Track(track.choice, track.kind));
        }
    }

    /// Lets go what is decided.
    pub(super) fn settle(&mut self) {
        if self.closed {
            return;
        }
        if self.said.changed {
            self.weave();
        }
        if self.said.changed || !self.held.is_empty() {
            self.settle_held();
        }
        if self.run.as_ref().is_some_and(|run| !run.is_empty()) {
            if !self.held.is_empty() {
                self.weave();
                self.settle_held();
            }
            self.settle_run();
        }
    }

    /// What is like the last frame follows what is held.
    pub(super) fn weave(&mut self) {
        let Some(run) = &mut self.run else { return };
        while let Some(frame) = run.next_frame(self.framing) {
            self.held.push(frame);
        }
    }

    fn settle_run(&mut self) {
        let Self { run: Some(run), said, .. } = self else { return };
        while let Some(raw) = run.next(said) {
            self.spoke = true;
            came(&mut self.out, raw);
        }
        self.has_left();
    }

    /// What is like the last frame has left, and nothing is held before it.
    fn has_left(&mut self) {
        self.held.release();
        if self.said.has_long() {
            self.forget();
        }
    }

    fn settle_held(&mut self) {
        loop {
            let Self { held, said, format, end_held, .. } = self;
            let may_end = |frame: &Frame| !(*end_held && frame.closes);
            let ready = |frame: &Frame| may_end(frame) && frame.is_ready(said) && format.is_ready(frame, said);
            let Some(frame) = held.next(ready) else { break };
            if self.said.changed && frame.ends(None) {
                self.insert(Some(&frame));
            }
            self.spoke |= frame.speaks;
            self.leave(frame);
        }
        if self.said.changed {
            self.insert(None);
        }
        self.forget();
    }

    fn leave(&mut self, frame: Frame) {
        match self.format.leave(&frame, &mut self.said) {
            Leaving::AsCame => came(&mut self.out, frame.into_raw()),
            Leaving::Made(bytes) => self.made(bytes),
            Leaving::Dropped => {}
        }
    }

    fn made(&mut self, bytes: Vec<u8>) {
        match self.out.back_mut() {
            Some(Out::Made(last)) => last.extend_from_slice(&bytes),
            _ => self.out.push_back(Out::Made(bytes)),
        }
    }

    /// Makes frames for insertions where none is left that could carry them.
    /// `leaving`: the frame before which they are to stand.
    fn insert(&mut self, leaving: Option<&Frame>) {
        for id in (0..self.said.tracks.len()).map(TrackId) {
            while let Some(offset) = self.said.loose(id) {
                if !self.can_insert(id, offset, leaving) {
                    break;
                }
                let made = self.format.insertion(&mut self.said, &Span { track: id, range: offset..offset });
                if made.is_empty() {
                    break;
                }
                self.spoke = true;
                self.made(made);
            }
        }
    }

    /// Whether no frame is left that carries an insertion, and none that must stand before it.
    fn can_insert(&self, id: TrackId, offset: usize, leaving: Option<&Frame>) -> bool {
        let Some(track) = self.said.tracks.get(id.0) else { return false };
        let lane = Lane::Track(track.choice, track.kind);
        let next = leaving.into_iter().chain(self.held.iter()).find(|frame| frame.lane.crosses(lane));
        let carries = |part: &Part| match part {
            Part::Piece { span, .. } => span.track == id && span.range.end >= offset,
            _ => false,
        };
        next.is_none_or(|frame| frame.ends(Some(track.choice)))
            && !self.held.iter().any(|frame| frame.parts.iter().any(carries))
    }

    fn forget(&mut self) {
        for id in (0..self.said.tracks.len()).map(TrackId) {
            if !self.said.is_long(id) {
                continue;
            }
            let of_run = self.run.as_ref().and_then(Run::start).filter(|(track, _)| *track == id);
            let start = self.held.iter().flat_map(|frame| &frame.parts).find_map(|part| match part {
                Part::Piece { span, .. } | Part::Text(span) | Part::Copy { span, .. } | Part::Echo { span, .. }
                    if span.track == id =>
                {
                    Some(span.range.start)
                }
                _ => None,
            });
            self.said.forget(id, start.or(of_run.map(|(_, start)| start)).unwrap_or(usize::MAX));
        }
    }
}

/// A frame leaves as it came, with those before it where it stands right behind them.
fn came(out: &mut VecDeque<Out>, raw: Raw) {
    let joined = match out.back_mut() {
        Some(Out::Came(last)) => last.join(&raw),
        _ => false,
    };
    if !joined {
        out.push_back(Out::Came(raw));
    }
}
