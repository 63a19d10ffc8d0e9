//! Events that the upstream did not send: the beginnings and ends of items and parts, and texts that a hook adds.

use bytes::Bytes;
use serde_json::{Value, json};

use super::events::{Event, PartKind, TEXT};
use super::items::{Item, ItemKind, Part};
use super::leave::edit_item;
use super::{Responses, Told};
use crate::json::{Document, Edits};
use crate::stream::TrackId;
use crate::stream::format::{event, set};
use crate::stream::said::Said;

impl Responses {
    /// Adds an event that the upstream did not send.
    pub(super) fn make(&mut self, name: &str, mut data: Value, out: &mut Vec<u8>) {
        let number = self.numbered(None);
        set(&mut data, "type", name);
        set(&mut data, "sequence_number", number);
        event(Some(name), &data, out);
    }

    /// Puts in what must stand before an event.
    pub(super) fn complete(&mut self, told: &Told, said: &mut Said, out: &mut Vec<u8>) {
        let Some(index) = told.item else { return };
        if self.items.get(index).is_some_and(|item| item.left.is_none()) {
            self.announce(index, told, said, out);
        }
        // To what has ended at the client nothing is added, though the upstream goes on.
        if self.items.get(index).is_some_and(|item| item.done.is_some()) {
            return;
        }
        match told.event {
            Event::TextDelta(_) | Event::Annotation => self.open_part(index, told.part, out),
            Event::TextDone(_) => {
                self.open_part(index, told.part, out);
                self.add_loose(index, said, out);
            }
            Event::PartDone(_) => {
                self.open_part(index, told.part, out);
                self.add_loose(index, said, out);
                self.tell_part(index, told.part, said, out);
            }
            Event::ItemDone => self.close_parts(index, said, out),
            _ => {}
        }
    }

    /// An item takes its place; where its event does not say so, one is made.
    fn announce(&mut self, index: usize, told: &Told, said: &mut Said, out: &mut Vec<u8>) {
        let place = self.placed();
        let Some(item) = self.items.get_mut(index) else { return };
        item.left = Some(place);
        if let Some(state) = item.call().and_then(|id| said.call_states.get_mut(id.0)) {
            state.begun = true;
        }
        if told.event != Event::ItemAdded {
            let item = item.begun(said);
            self.make("response.output_item.added", json!({ "output_index": place, "item": item }), out);
        }
    }

    /// What events say of the item and part that they are about.
    fn at(&self, index: usize, part: Option<usize>) -> Value {
        let Some(item) = self.items.get(index) else { return json!({}) };
        let mut at = json!({ "output_index": item.left });
        if let Some(id) = item.name() {
            set(&mut at, "item_id", id);
        }
        if let Some(part) = part.and_then(|part| item.parts.get(part)) {
            set(&mut at, part.kind.list.index(), part.index);
        }
        at
    }

    fn part_mut(&mut self, index: usize, part: Option<usize>) -> Option<&mut Part> {
        self.items.get_mut(index)?.parts.get_mut(part?)
    }

    fn open_part(&mut self, index: usize, part: Option<usize>, out: &mut Vec<u8>) {
        let Some(kind) = self.part_mut(index, part).filter(|part| !part.opened).map(|part| {
            part.opened = true;
            part.kind
        }) else {
            return;
        };
        let mut data = self.at(index, part);
        set(&mut data, "part", part_json(kind, ""));
        self.make(&format!("{}.added", kind.list.event()), data, out);
    }

    fn tell_part(&mut self, index: usize, part: Option<usize>, said: &Said, out: &mut Vec<u8>) {
        let Some((kind, text)) = self.part_mut(index, part).filter(|part| part.opened && !part.told).map(|part| {
            part.told = true;
            (part.kind, part.released(said))
        }) else {
            return;
        };
        let mut data = self.at(index, part);
        set(&mut data, kind.key, text);
        with_logprobs(kind, &mut data);
        self.make(&format!("{}.done", kind.event), data, out);
    }

    fn close_part(&mut self, index: usize, part: Option<usize>, said: &Said, out: &mut Vec<u8>) {
        self.tell_part(index, part, said, out);
        let Some((kind, text)) = self.part_mut(index, part).filter(|part| part.opened && !part.closed).map(|part| {
            part.closed = true;
            (part.kind, part.released(said))
        }) else {
            return;
        };
        let mut data = self.at(index, part);
        set(&mut data, "part", part_json(kind, &text));
        self.make(&format!("{}.done", kind.list.event()), data, out);
    }

    /// Ends all that an item has begun, so that the item itself can end.
    pub(super) fn close_parts(&mut self, index: usize, said: &mut Said, out: &mut Vec<u8>) {
        self.add_loose(index, said, out);
        self.end_parts(index, said, out);
    }

    pub(super) fn end_parts(&mut self, index: usize, said: &Said, out: &mut Vec<u8>) {
        let parts = self.items.get(index).map_or(0, |item| item.parts.len());
        (0..parts).for_each(|part| self.close_part(index, Some(part), said, out));
        let Some(item) = self.items.get_mut(index).filter(|item| !item.told) else { return };
        let Some((event, key)) =
            item.call().and_then(|id| said.calls.get(id.0)).and_then(|call| match &*call.call.kind {
                "function" => Some(("response.function_call_arguments.done", "arguments")),
                "custom" => Some(("response.custom_tool_call_input.done", "input")),
                _ => None,
            })
        else {
            return;
        };
        item.told = true;
        let arguments = item.arguments(said);
        let mut data = self.at(index, None);
        set(&mut data, key, arguments);
        self.make(event, data, out);
    }

    /// All items that stand open, once the response as a whole has come; then what a hook adds behind them.
    pub(super) fn close_all(&mut self, document: Option<&Document>, said: &mut Said, out: &mut Vec<u8>) {
        for index in self.open_items() {
            self.close_parts(index, said, out);
            let whole = document.and_then(|document| self.whole(document, index, said));
            let Some(item) = self.items.get(index) else { continue };
            let whole = whole.unwrap_or_else(|| item.ended(said, "completed"));
            self.end_item(index, whole, out);
        }
        for track in (0..said.tracks.len()).map(TrackId) {
            while let Some(offset) = said.loose(track)
                && let Some(text) = said.take_loose(track, offset, false)
            {
                self.add_message(&TEXT, &text, "completed", said, out);
            }
        }
    }

    /// The items that the client has not seen the end of, in the order of the output.
    pub(super) fn open_items(&self) -> Vec<usize> {
        let mut open: Vec<usize> =
            (0..self.items.len()).filter(|at| self.items.get(*at).is_some_and(Item::is_open)).collect();
        open.sort_by_key(|at| self.items.get(*at).and_then(|item| item.left));
        open
    }

    pub(super) fn end_item(&mut self, index: usize, whole: Value, out: &mut Vec<u8>) {
        let Some(item) = self.items.get_mut(index) else { return };
        item.done = Some(Bytes::from(whole.to_string()));
        let place = item.left;
        self.make("response.output_item.done", json!({ "output_index": place, "item": whole }), out);
    }

    /// An item as the response as a whole shows it.
    fn whole(&mut self, document: &Document, index: usize, said: &mut Said) -> Option<Value> {
        let output = document.some(document.some(Document::ROOT, "response")?, "output")?;
        let mut elements = document.elements(output).enumerate();
        let (_, at) = elements.find(|(place, at)| self.listed(document, *at, *place) == Some(index))?;
        let element = Document::read(document.slice(at)).ok()?;
        let mut edits = Edits::default();
        edit_item(&element, Document::ROOT, self.items.get_mut(index)?, true, said, &mut edits);
        serde_json::from_slice(&edits.apply(&element)).ok()
    }

    /// Text that a hook adds where a part of an item ends.
    fn add_loose(&mut self, index: usize, said: &mut Said, out: &mut Vec<u8>) {
        let parts = self.items.get(index).map_or(0, |item| item.parts.len());
        for at in 0..parts {
            let Some(part) = self.part_mut(index, Some(at)).filter(|part| part.opened && !part.told) else { continue };
            let (kind, Some((track, end))) = (part.kind, part.end()) else { continue };
            while said.loose(track) == Some(end)
                && let Some(text) = said.take_loose(track, end, false)
            {
                if let Some(part) = self.part_mut(index, Some(at)) {
                    part.insert(said, &text);
                }
                let mut data = self.at(index, Some(at));
                set(&mut data, "delta", text);
                with_logprobs(kind, &mut data);
                self.make(&format!("{}.delta", kind.event), data, out);
            }
        }
    }

    /// A message of its own, from its beginning to its end.
    pub(super) fn add_message(
        &mut self,
        kind: &'static PartKind,
        text: &str,
        status: &str,
        said: &Said,
        out: &mut Vec<u8>,
    ) {
        let place = self.placed();
        let mut item = Item::new(Some(format!("msg_gatehook_{place}")), None, ItemKind::Message);
        item.left = Some(place);
        self.items.push(item);
        let index = self.items.len() - 1;
        let begun = self.items.get(index).map(|item| item.begun(said));
        self.make("response.output_item.added", json!({ "output_index": place, "item": begun }), out);
        self.add_part(index, kind, text, out);
        self.end_parts(index, said, out);
        let whole = self.items.get(index).map(|item| item.ended(said, status)).unwrap_or_default();
        self.end_item(index, whole, out);
    }

    /// A part with its text, at the end of an open message.
    pub(super) fn add_part(&mut self, index: usize, kind: &'static PartKind, text: &str, out: &mut Vec<u8>) {
        let Some(item) = self.items.get_mut(index) else { return };
        let number = item.next(kind.list);
        let mut part = Part::new(kind, number);
        part.left = Some(text.to_owned());
        item.parts.push(part);
        let part = Some(item.parts.len() - 1);
        self.open_part(index, part, out);
        let mut data = self.at(index, part);
        set(&mut data, "delta", text);
        with_logprobs(kind, &mut data);
        self.make(&format!("{}.delta", kind.event), data, out);
    }
}

/// A part with this text.
pub(super) fn part_json(kind: &PartKind, text: &str) -> Value {
    let mut part = json!({ "type": kind.name });
    set(&mut part, kind.key, text);
    if *kind == TEXT {
        set(&mut part, "annotations", json!([]));
        set(&mut part, "logprobs", json!([]));
    }
    part
}

fn with_logprobs(kind: &PartKind, data: &mut Value) {
    if *kind == TEXT {
        set(data, "logprobs", json!([]));
    }
}

impl Item {
    /// It as it begins.
    fn begun(&self, said: &Said) -> Value {
        self.json(said, "in_progress", false)
    }

    /// It as it ends.
    pub(super) fn ended(&self, said: &Said, status: &str) -> Value {
        self.json(said, status, true)
    }

    fn json(&self, said: &Said, status: &str, whole: bool) -> Value {
        let mut item = match self.kind {
            ItemKind::Message => json!({ "type": "message", "role": "assistant", "status": status, "content": [] }),
            ItemKind::Reasoning => json!({ "type": "reasoning", "summary": [], "content": [] }),
            ItemKind::Silent => json!({}),
            ItemKind::Call(_) => return self.call_json(said, status, whole),
        };
        if let Some(id) = self.name() {
            set(&mut item, "id", id);
        }
        for part in self.parts.iter().filter(|_| whole) {
            if let Some(list) = item.get_mut(part.kind.list.key()).and_then(Value::as_array_mut) {
                list.push(match &part.other {
                    Some(other) => other.clone(),
                    None => part_json(part.kind, &part.released(said)),
                });
            }
        }
        item
    }

    fn call_json(&self, said: &Said, status: &str, whole: bool) -> Value {
        let Some(call) = self.told_call(said) else { return json!({}) };
        let (kind, key) = match &*call.kind {
            "function" => ("function_call", "arguments"),
            "custom" => ("custom_tool_call", "input"),
            // It is shown as it stands.
            _ => return serde_json::from_str(&call.function.arguments).unwrap_or_default(),
        };
        let mut item = json!({ "type": kind, "status": status, "call_id": call.id, "name": &*call.function.name });
        if let Some(id) = self.name() {
            set(&mut item, "id", id);
        }
        set(&mut item, key, if whole { self.arguments(said) } else { String::new() });
        item
    }
}
