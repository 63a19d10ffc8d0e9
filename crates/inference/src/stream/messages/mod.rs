//! Streams of `/v1/messages`: blocks of text, thinking and calls, each begun, grown and ended by events of its own
//! (<https://docs.anthropic.com/en/docs/build-with-claude/streaming>).
//!
//! Blocks are numbered, so nothing overtakes. A block of text does not begin at the client before it is known that it
//! will not be empty: a later request could not hold it.
//!
//! - `blocks`: what came of a block, and what of that has left.
//! - `read`: what an event tells.
//! - `leave`: what leaves in its place.
//! - `ending`: the last events of a stream that is cut.

mod blocks;
mod ending;
mod leave;
mod read;

use super::format::Format;
use super::frame::{self, Data, Frame, Lane};
use super::leave::Leaving;
use super::said::{Said, Span};
use super::{Fault, TrackKind};
use crate::error::Unheld;
use crate::refusal::ErrorKind;
use crate::route::Route;
use blocks::Block;

/// Reads and writes events.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// In the order in which they began.
    blocks: Vec<Block>,
    /// The number of the next block that leaves.
    next: u64,
    /// The client has the beginning of the message, its stop reason, and its end or an error.
    begun: bool,
    stopped: bool,
    ended: bool,
}

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    MessageStart,
    BlockStart,
    /// `content_block_delta`, which says by the type of its delta what it is.
    Delta,
    Text,
    Thinking,
    Signature,
    Arguments,
    Citation,
    BlockStop,
    /// `message_delta`: the stop reason, and usage.
    MessageDelta,
    MessageStop,
    Error,
    Other,
}

/// What a frame tells.
#[derive(Debug)]
pub(super) struct Told {
    event: Event,
    /// Its `index`.
    place: Option<u64>,
    /// The block it is about.
    block: Option<usize>,
    /// What it brings of a text.
    piece: Option<Span>,
}

impl Format for Messages {
    fn route(&self) -> Route {
        Route::Messages
    }

    fn read(&mut self, event: &frame::Event<'_>, said: &mut Said, frame: &mut Frame) -> Result<(), Fault> {
        frame.lane = Lane::All;
        let Data::Json(document) = event.data else { return Ok(()) };
        let told = self.told(event.name, document, said)?;
        let block = told.block.and_then(|at| self.blocks.get(at));
        let call = block.and_then(Block::call);
        frame.parts.extend(told.piece.clone().map(frame::Part::Text));
        frame.parts.extend(call.map(frame::Part::Of));
        frame.speaks = block.is_some() || !matches!(told.event, Event::MessageStart | Event::Other);
        frame.wakes = !matches!(told.event, Event::Text | Event::Thinking | Event::Arguments);
        frame.told = frame::Told::Messages(Box::new(told));
        Ok(())
    }

    fn is_whole(&self, said: &Said) -> bool {
        said.choices.get(&0).is_some_and(|choice| choice.over)
    }

    fn is_ready(&self, frame: &Frame, said: &mut Said) -> bool {
        match &frame.told {
            frame::Told::Messages(told) if told.event == Event::BlockStart => {
                told.block.and_then(|at| self.blocks.get(at)).is_none_or(|block| block.is_ready(said))
            }
            _ => true,
        }
    }

    fn leave(&mut self, frame: &Frame, said: &mut Said) -> Leaving {
        match &frame.told {
            frame::Told::Messages(told) => self.let_go(frame, told, said),
            _ => Leaving::AsCame,
        }
    }

    fn can_replace(&self, _said: &Said, span: &Span, text: &str) -> Result<(), Unheld> {
        let whole = |block: &Block| block.left.is_none() && block.over && text.is_empty() && block.is_within(span);
        match self.blocks.iter().filter(|block| block.sealed).all(|block| block.is_beside(span) || whole(block)) {
            true => Ok(()),
            false => Err(Unheld::new("a signed thinking block can be dropped, not rewritten")),
        }
    }

    fn can_add(&self, _said: &Said, choice: u32, kind: TrackKind) -> Result<(), Unheld> {
        match kind {
            TrackKind::Thinking => Err(Unheld::new("this answer has no place for such a text")),
            TrackKind::Text if choice != 0 => Err(Unheld::new("there is no such choice")),
            TrackKind::Text if self.stopped => Err(Unheld::new("the answer has ended")),
            TrackKind::Text => Ok(()),
        }
    }

    fn block(&mut self, said: &Said, block: &super::Block<'_>) -> Vec<u8> {
        if self.ended { Vec::new() } else { self.blocked(said, block) }
    }

    fn fail(&mut self, _said: &Said, kind: ErrorKind, message: &str, request_id: &str) -> Vec<u8> {
        if self.ended { Vec::new() } else { ending::failed(kind, message, request_id) }
    }
}
