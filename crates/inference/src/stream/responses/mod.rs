//! Streams of `/v1/responses`: typed events that build items of parts, each text of them told several times
//! (<https://platform.openai.com/docs/api-reference/responses-streaming>).
//!
//! Items and events are numbered, so nothing overtakes. What an upstream leaves out, as llama.cpp and Ollama do (numbers,
//! the beginning or end of parts and items), is put in when it leaves: the `openai` packages' own `responses.stream()`
//! stumbles over each of these. A stream that lacks nothing leaves byte for byte.
//!
//! - `events`: the events by name, and the kinds of parts.
//! - `items`: items and parts, what came of them and what has left.
//! - `read`, `calls`: what an event tells.
//! - `leave`: what leaves in its place.
//! - `complete`: events that the upstream did not send.
//! - `ending`: the last events of a stream that is cut.

mod calls;
mod complete;
mod ending;
mod events;
mod items;
mod leave;
mod read;

use bytes::Bytes;

use super::format::Format;
use super::frame::{self, Data, Frame, Lane};
use super::leave::Leaving;
use super::said::{Said, Span};
use super::{Block, Fault, TrackKind};
use crate::error::Unheld;
use crate::refusal::ErrorKind;
use crate::route::Route;
use events::Event;
use items::Item;

/// Reads and writes events.
#[derive(Debug, Default)]
pub(super) struct Responses {
    /// In the order in which they were announced.
    items: Vec<Item>,
    /// The response as it began.
    opening: Option<Bytes>,
    /// The client has it, and its end or an error.
    opened: bool,
    ended: bool,
    /// The number of the next event, once the first one has left.
    next: Option<u64>,
    /// The place of the next item.
    places: u64,
}

/// What a frame tells.
#[derive(Debug)]
pub(super) struct Told {
    event: Event,
    /// Its `sequence_number` and `output_index`, where it has them.
    number: Option<u64>,
    place: Option<u64>,
    /// The item it is about, and its part.
    item: Option<usize>,
    part: Option<usize>,
    /// What it brings of texts that no event before it brought.
    pieces: Vec<Piece>,
    /// How much of a call's arguments had come with it.
    argued: usize,
    /// It lacks something, or says again something else than was said.
    odd: bool,
}

/// New text in a frame.
#[derive(Debug)]
struct Piece {
    item: usize,
    part: usize,
    span: Span,
}

impl Format for Responses {
    fn route(&self) -> Route {
        Route::Responses
    }

    fn read(&mut self, event: &frame::Event<'_>, said: &mut Said, frame: &mut Frame) -> Result<(), Fault> {
        said.keeps = true;
        frame.lane = Lane::All;
        let Data::Json(document) = event.data else { return Ok(()) };
        let told = self.told(event.name, document, said)?;
        frame.parts = told.pieces.iter().map(|piece| frame::Part::Text(piece.span.clone())).collect();
        let calls = match told.event {
            Event::End { .. } => self.items.iter().filter_map(Item::call).collect(),
            _ => Vec::from_iter(told.item.and_then(|at| self.items.get(at)).and_then(Item::call)),
        };
        frame.speaks =
            !told.pieces.is_empty() || !calls.is_empty() || matches!(told.event, Event::End { .. } | Event::Error);
        frame.parts.extend(calls.into_iter().map(frame::Part::Of));
        frame.wakes = matches!(told.event, Event::ItemDone | Event::End { .. } | Event::Error);
        frame.told = frame::Told::Responses(Box::new(told));
        Ok(())
    }

    fn is_whole(&self, _said: &Said) -> bool {
        false
    }

    /// Reasoning that is sealed leaves as a whole or not at all: it does not begin before that is known.
    fn is_ready(&self, frame: &Frame, said: &mut Said) -> bool {
        match &frame.told {
            frame::Told::Responses(told) if told.event == Event::ItemAdded => {
                told.item.and_then(|at| self.items.get(at)).is_none_or(|item| item.is_ready(said))
            }
            _ => true,
        }
    }

    fn leave(&mut self, frame: &Frame, said: &mut Said) -> Leaving {
        match &frame.told {
            frame::Told::Responses(told) => self.let_go(frame, told, said),
            _ => Leaving::AsCame,
        }
    }

    fn can_replace(&self, _said: &Said, span: &Span, text: &str) -> Result<(), Unheld> {
        let sealed = self.items.iter().filter(|item| item.sealed);
        match sealed.clone().all(|item| {
            item.left.is_none() && item.over && text.is_empty() && item.is_within(span) || item.is_beside(span)
        }) {
            true => Ok(()),
            false => Err(Unheld::new("encrypted reasoning can be dropped, not rewritten")),
        }
    }

    fn can_add(&self, said: &Said, choice: u32, kind: TrackKind) -> Result<(), Unheld> {
        match kind {
            TrackKind::Thinking => Err(Unheld::new("this answer has no place for such a text")),
            TrackKind::Text if choice != 0 => Err(Unheld::new("there is no such choice")),
            TrackKind::Text if said.choices.get(&0).is_some_and(|choice| choice.stop_left) => {
                Err(Unheld::new("the answer has ended"))
            }
            TrackKind::Text => Ok(()),
        }
    }

    fn block(&mut self, said: &Said, block: &Block<'_>) -> Vec<u8> {
        if self.ended { Vec::new() } else { self.blocked(said, block) }
    }

    fn fail(&mut self, said: &Said, kind: ErrorKind, message: &str, request_id: &str) -> Vec<u8> {
        if self.ended { Vec::new() } else { self.failed(said, kind, message, request_id) }
    }
}
