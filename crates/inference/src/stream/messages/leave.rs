//! What leaves of a Messages stream: texts, calls and numbers as they are for the client.

use std::cell::LazyCell;

use serde_json::{Value, json};

use super::blocks::{Block, BlockKind};
use super::read::is_clients;
use super::{Event, Messages, Told};
use crate::json::{At, Document, Edits, quote};
use crate::refusal::ErrorKind;
use crate::response::STOPS;
use crate::route::Route;
use crate::stream::format::{event, set};
use crate::stream::frame::Frame;
use crate::stream::leave::Leaving;
use crate::stream::said::{Decided, Said};
use crate::stream::{TrackId, TrackKind};

impl Messages {
    /// What leaves in place of a frame.
    pub(super) fn let_go(&mut self, frame: &Frame, told: &Told, said: &mut Said) -> Leaving {
        if self.stays_away(told, said) {
            return Leaving::Dropped;
        }
        let document = LazyCell::new(|| frame.document());
        let mut out = Vec::new();
        match told.event {
            Event::BlockStart => {
                if let Some(block) = told.block.and_then(|at| self.blocks.get_mut(at)) {
                    block.left = Some(self.next);
                    self.next += 1;
                    block
                        .call()
                        .and_then(|id| said.call_states.get_mut(id.0))
                        .into_iter()
                        .for_each(|state| state.begun = true);
                }
            }
            Event::BlockStop => self.end_blocks(told.block, said, &mut out),
            Event::MessageDelta => {
                // Calls end with the answer, whether their blocks have or not.
                let open = if frame.closes { 0..self.blocks.len() } else { 0..0 };
                self.end_blocks(open, said, &mut out);
                self.add_blocks(said, &mut out);
            }
            _ => {}
        }
        let mut edits = Edits::default();
        self.edit(told, || document.as_ref(), said, &mut edits);
        let data = document_edits(&edits, &document);
        self.has_left(told, said);
        match data {
            Some(data) => out.extend(frame.with_data(&data)),
            None if out.is_empty() => return Leaving::AsCame,
            None => out.extend_from_slice(frame.bytes()),
        }
        Leaving::Made(out)
    }

    /// Whether a frame belongs to what does not leave.
    fn stays_away(&mut self, told: &Told, said: &mut Said) -> bool {
        let Some(block) = told.block.and_then(|at| self.blocks.get_mut(at)) else { return false };
        if told.event == Event::BlockStart {
            block.gone = block.is_emptied(said);
        }
        // A signature or a quote is of what came.
        block.gone || block.changed && matches!(told.event, Event::Signature | Event::Citation)
    }

    fn edit<'d>(
        &mut self,
        told: &Told,
        document: impl Fn() -> Option<&'d Document>,
        said: &mut Said,
        edits: &mut Edits,
    ) {
        if let Some(block) = told.block.and_then(|at| self.blocks.get_mut(at)) {
            edit_block(block, told, &document, said, edits);
        }
        if told.event == Event::MessageDelta
            && has_lost_calls(said)
            && let Some(document) = document()
        {
            correct_stop(document, edits);
        }
        let note = match told.event {
            Event::MessageDelta => said.note.clone(),
            Event::MessageStop => said.note.take(),
            _ => None,
        };
        if let (Some(note), Some(document)) = (note, document()) {
            edits.add_member(document, Document::ROOT, "hook", &note.told(ErrorKind::Denied).to_string());
        }
    }

    fn end_blocks(&mut self, blocks: impl IntoIterator<Item = usize>, said: &mut Said, out: &mut Vec<u8>) {
        blocks.into_iter().for_each(|at| self.end_block(at, said, out));
    }

    /// What a hook adds behind the text of a block, and the arguments of a call that came without any.
    fn end_block(&mut self, at: usize, said: &mut Said, out: &mut Vec<u8>) {
        let Some(block) = self.blocks.get_mut(at) else { return };
        // Behind an end that comes once more nothing can be added.
        let Some(place) = block.left.filter(|_| !block.closed) else { return };
        if let Some(Decided::Rewritten(new)) =
            block.call().and_then(|id| said.call_states.get(id.0)).map(|state| &state.fate)
            && matches!(block.kind, BlockKind::Call(_))
            && !block.told
        {
            block.told = true;
            make_delta(place, json!({ "type": "input_json_delta", "partial_json": &*new.function.arguments }), out);
        }
        let (Some(end), BlockKind::Said(kind)) = (block.end().cloned(), block.kind) else { return };
        while said.loose(end.track) == Some(end.range.end)
            && let Some(text) = said.take_loose(end.track, end.range.end, true)
        {
            block.changed = true;
            make_delta(place, text_delta(kind, &text), out);
        }
    }

    /// What a hook adds where no block is left that could carry it.
    fn add_blocks(&mut self, said: &mut Said, out: &mut Vec<u8>) {
        for track in (0..said.tracks.len()).map(TrackId) {
            let Some(kind) = said.tracks.get(track.0).map(|track| track.kind) else { continue };
            while let Some(offset) = said.loose(track)
                && let Some(text) = said.take_loose(track, offset, false)
            {
                let place = self.next;
                self.next += 1;
                let start = match kind {
                    TrackKind::Text => json!({ "type": "text", "text": "" }),
                    TrackKind::Thinking => json!({ "type": "thinking", "thinking": "", "signature": "" }),
                };
                make("content_block_start", json!({ "index": place, "content_block": start }), out);
                make_delta(place, text_delta(kind, &text), out);
                make("content_block_stop", json!({ "index": place }), out);
            }
        }
    }

    /// What the client has now.
    fn has_left(&mut self, told: &Told, said: &mut Said) {
        match told.event {
            Event::MessageStart => self.begun = true,
            Event::MessageStop | Event::Error => self.ended = true,
            Event::MessageDelta => {
                self.stopped |= said.choice(0).over;
                said.choice(0).stop_left |= self.stopped;
            }
            Event::BlockStop => {
                if let Some(block) = told.block.and_then(|at| self.blocks.get_mut(at)) {
                    block.closed = true;
                }
            }
            _ => {}
        }
    }
}

/// The number of a block, and what was decided about its text or call.
fn edit_block<'d>(
    block: &mut Block,
    told: &Told,
    document: impl Fn() -> Option<&'d Document>,
    said: &mut Said,
    edits: &mut Edits,
) {
    if let Some(place) = block.left.filter(|place| told.place != Some(*place))
        && let Some(document) = document()
    {
        edits.add_member(document, Document::ROOT, "index", &place.to_string());
    }
    let text = told.piece.as_ref().and_then(|piece| said.rendered(piece, true));
    if let (Some(text), Some(document)) = (text, document()) {
        block.changed = true;
        let (within, key) = match (told.event, block.kind) {
            (Event::Text, _) => ("delta", "text"),
            (Event::Thinking, _) => ("delta", "thinking"),
            (_, BlockKind::Said(TrackKind::Thinking)) => ("content_block", "thinking"),
            _ => ("content_block", "text"),
        };
        set_text(document, within, key, &text, edits);
    }
    let state = block.call().and_then(|id| said.call_states.get(id.0));
    if let (Some(Decided::Rewritten(new)), BlockKind::Call(_)) = (state.map(|state| &state.fate), block.kind)
        && let Some(document) = document()
    {
        match told.event {
            Event::BlockStart => begin_call(document, block, new, edits),
            Event::Arguments => {
                let arguments = if block.told { "" } else { &*new.function.arguments };
                set_text(document, "delta", "partial_json", arguments, edits);
                block.told = true;
            }
            _ => {}
        }
    }
}

fn document_edits(edits: &Edits, document: &Option<Document>) -> Option<bytes::Bytes> {
    match edits.is_empty() {
        true => None,
        false => document.as_ref().map(|document| edits.apply(document)),
    }
}

/// Puts a string into an object of the event.
fn set_text(document: &Document, within: &str, key: &str, text: &str, edits: &mut Edits) {
    let at = document.some(Document::ROOT, within).and_then(|object| document.get(object, key));
    at.into_iter().for_each(|at| edits.set_text(at, text));
}

/// A rewritten call where it begins. Arguments stand here only where no delta brings them.
fn begin_call(document: &Document, block: &mut Block, new: &gatehook_events::ToolCall, edits: &mut Edits) {
    let Some(at) = document.some(Document::ROOT, "content_block") else { return };
    let name = Some(&*new.function.name).filter(|name| !name.is_empty());
    for (key, text) in [("id", new.id.as_deref()), ("name", name)] {
        if let Some(text) = text.filter(|text| document.string(at, key).as_deref() != Some(*text)) {
            edits.add_member(document, at, key, &quote(text));
        }
    }
    let input: Option<At> = document.some(at, "input").filter(|input| document.members(*input).next().is_some());
    if let Some(input) = input {
        block.told |= !block.argued;
        let new = if block.argued { "{}" } else { &*new.function.arguments };
        edits.replace(input, new.to_owned());
    }
}

/// Whether the client had calls to make and has none any more.
fn has_lost_calls(said: &Said) -> bool {
    let calls = || said.calls.iter().zip(&said.call_states).filter(|(call, _)| is_clients(&call.call));
    calls().next().is_some() && calls().all(|(_, state)| state.fate == Decided::Removed)
}

fn correct_stop(document: &Document, edits: &mut Edits) {
    let Some(delta) = document.some(Document::ROOT, "delta") else { return };
    let Some(at) = document.some(delta, "stop_reason") else { return };
    let word = document.text(at).unwrap_or_default();
    let row = STOPS.iter().find(|(route, with, _)| *route == Route::Messages && *with == word);
    row.into_iter().for_each(|(_, _, without)| edits.set_text(at, without));
}

fn text_delta(kind: TrackKind, text: &str) -> Value {
    match kind {
        TrackKind::Text => json!({ "type": "text_delta", "text": text }),
        TrackKind::Thinking => json!({ "type": "thinking_delta", "thinking": text }),
    }
}

fn make_delta(place: u64, delta: Value, out: &mut Vec<u8>) {
    make("content_block_delta", json!({ "index": place, "delta": delta }), out);
}

/// Adds an event that the upstream did not send.
pub(super) fn make(name: &str, mut data: Value, out: &mut Vec<u8>) {
    set(&mut data, "type", name);
    event(Some(name), &data, out);
}
