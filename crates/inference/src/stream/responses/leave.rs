//! What leaves of a Responses stream: texts, calls and numbers as they are for the client.

use std::borrow::Cow;
use std::cell::LazyCell;

use bytes::Bytes;

use super::calls::arguments_key;
use super::events::{Event, List, OTHER};
use super::items::{Item, ItemKind};
use super::{Responses, Told};
use crate::json::{At, Document, Edits, Kind, quote};
use crate::refusal::ErrorKind;
use crate::stream::frame::Frame;
use crate::stream::leave::Leaving;
use crate::stream::said::Said;
use crate::stream::tokens::spell;
use crate::view::is_cipher;

/// What quotes a text, by place or by token.
const QUOTES: &[&str] = &["annotations", "logprobs"];

impl Responses {
    /// What leaves in place of a frame.
    pub(super) fn let_go(&mut self, frame: &Frame, told: &Told, said: &mut Said) -> Leaving {
        if self.stays_away(told, said) {
            return Leaving::Dropped;
        }
        let texts = self.speak(told, said);
        let document = LazyCell::new(|| frame.document());
        let mut out = Vec::new();
        match told.event {
            Event::End { failed } => {
                self.settle_rest(said);
                if !failed {
                    self.close_all(document.as_ref(), said, &mut out);
                }
            }
            _ => self.complete(told, said, &mut out),
        }
        // What is unknown and has no number needs none.
        let counts = told.number.is_some() || told.event != Event::Other;
        let number = counts.then(|| self.numbered(told.number));
        let edits = match self.is_odd(told, number, said) {
            true => document.as_ref().and_then(|document| self.edits(told, document, number, &texts, said)),
            false => None,
        };
        let data = edits.zip(document.as_ref()).map(|(edits, document)| edits.apply(document));
        self.has_left(told, data.as_ref().unwrap_or(frame.data()));
        match data {
            Some(data) => out.extend(frame.with_data(&data)),
            None if out.is_empty() => return Leaving::AsCame,
            None => out.extend_from_slice(frame.bytes()),
        }
        Leaving::Made(out)
    }

    /// Whether a frame belongs to what does not leave.
    fn stays_away(&mut self, told: &Told, said: &mut Said) -> bool {
        let Some(item) = told.item.and_then(|at| self.items.get_mut(at)) else { return false };
        if item.left.is_none() && !item.gone && item.is_emptied(said) {
            item.gone = true;
        }
        let part = told.part.and_then(|at| item.parts.get(at));
        item.gone || told.event == Event::Annotation && part.is_some_and(|part| part.left.is_some())
    }

    /// Items that no event has announced before the last one.
    fn settle_rest(&mut self, said: &mut Said) {
        for item in self.items.iter_mut().filter(|item| item.left.is_none() && !item.gone) {
            item.gone = item.is_emptied(said);
        }
        said.choice(0).stop_left = true;
    }

    /// The new texts of a frame leave: what they are where they are not what came.
    fn speak(&mut self, told: &Told, said: &mut Said) -> Vec<Option<String>> {
        let mut texts = Vec::new();
        for piece in &told.pieces {
            let text = said.rendered(&piece.span, true);
            if let Some(part) = self.items.get_mut(piece.item).and_then(|item| item.parts.get_mut(piece.part)) {
                part.leave(said, &piece.span, text.as_deref());
            }
            texts.push(text);
        }
        texts
    }

    /// The number of an event that leaves: one more than the last one's; of the first one its own.
    pub(super) fn numbered(&mut self, own: Option<u64>) -> u64 {
        let number = self.next.or(own).unwrap_or_default();
        self.next = Some(number.saturating_add(1));
        number
    }

    /// The place of an item that leaves.
    pub(super) fn placed(&mut self) -> u64 {
        self.places += 1;
        self.places - 1
    }

    /// Whether a frame is to leave as anything but what it came as.
    fn is_odd(&self, told: &Told, number: Option<u64>, said: &Said) -> bool {
        let item = told.item.and_then(|at| self.items.get(at));
        told.odd
            || told.number != number
            || item.is_some_and(|item| told.place != item.left || item.changed() || item.rewritten(said).is_some())
            || matches!(told.event, Event::End { .. }) && (said.changed || said.note.is_some())
    }

    fn edits(
        &mut self,
        told: &Told,
        document: &Document,
        number: Option<u64>,
        texts: &[Option<String>],
        said: &mut Said,
    ) -> Option<Edits> {
        let mut edits = Edits::default();
        let mut set = |key: &str, value: String| match document.get(Document::ROOT, key) {
            Some(at) if document.raw(at) == value => {}
            _ => edits.add_member(document, Document::ROOT, key, &value),
        };
        if let Some(number) = number {
            set("sequence_number", number.to_string());
        }
        let item = told.item.and_then(|at| self.items.get(at));
        if let Some((item, place)) = item.and_then(|item| Some((item, item.left?))) {
            set("output_index", place.to_string());
            let named = matches!(told.event, Event::ItemAdded | Event::ItemDone | Event::Other);
            let other = |id: &Cow<'_, str>| document.string(Document::ROOT, "item_id").as_ref() != Some(id);
            if let Some(id) = item.name().filter(|id| !named && other(id)) {
                set("item_id", quote(&id));
            }
            if let Some(part) = told.part.and_then(|part| item.parts.get(part)) {
                set(part.kind.list.index(), part.index.to_string());
            }
        }
        self.edit(told, document, texts, said, &mut edits);
        (!edits.is_empty()).then_some(edits)
    }

    /// What an event says, as it is for the client.
    fn edit(&mut self, told: &Told, document: &Document, texts: &[Option<String>], said: &mut Said, edits: &mut Edits) {
        let root = Document::ROOT;
        if let Event::End { .. } = told.event {
            return self.edit_end(document, said, edits);
        }
        if let Event::Opening = told.event {
            let response = document.some(root, "response");
            if let Some(response) = response.filter(|at| document.some(*at, "output").is_none()) {
                edits.add_member(document, response, "output", "[]");
            }
        }
        let Some(item) = told.item.and_then(|at| self.items.get_mut(at)) else { return };
        let part = told.part.and_then(|at| item.parts.get(at));
        match (told.event, part) {
            (Event::TextDelta(_), Some(part)) => {
                let text = texts.first().and_then(Option::as_deref);
                if let (Some(at), Some(text)) = (document.get(root, "delta"), text) {
                    edits.set_text(at, text);
                }
                let came = text.is_none().then(|| document.string(root, "delta")).flatten();
                quotes(document, root, came.as_deref(), part.left.is_some(), edits);
            }
            (Event::TextDone(kind), Some(part)) => restate(document, root, kind.key, &part.released(said), edits),
            (Event::PartAdded(_) | Event::PartDone(_), Some(part)) => {
                let Some(at) = document.get(root, "part") else { return };
                // Where a part is announced, it has only what came with it.
                restate(document, at, part.kind.key, &part.released(said), edits);
                if part.kind.name == "output_text" && document.some(at, "annotations").is_none() {
                    edits.add_member(document, at, "annotations", "[]");
                }
            }
            (Event::CallDelta, _) => {
                if let (Some(new), Some(at)) = (item.rewritten(said), document.get(root, "delta")) {
                    edits.set_text(at, if item.argued { "" } else { new });
                    item.argued = true;
                }
            }
            (Event::CallDone(key), _) => set_string(document, root, key, &item.arguments(said), edits),
            (Event::ItemAdded | Event::ItemDone, _) => {
                if let Some(at) = document.get(root, "item") {
                    edit_item(document, at, item, told.event == Event::ItemDone, said, edits);
                }
            }
            _ => {}
        }
    }

    /// The response as a whole holds what has left, and nothing else.
    fn edit_end(&mut self, document: &Document, said: &mut Said, edits: &mut Edits) {
        let Some(response) = document.some(Document::ROOT, "response") else { return };
        let output = document.some(response, "output").filter(|at| document.kind(*at) == Kind::Array);
        if let Some(output) = output {
            let mut shown = Vec::new();
            for (place, at) in document.elements(output).enumerate() {
                let index = self.listed(document, at, place);
                let Some(item) = index.and_then(|index| self.items.get_mut(index)) else { continue };
                shown.extend(index.map(|index| (index, at)));
                match item.gone {
                    true => edits.remove(output, at),
                    false => edit_item(document, at, item, true, said, edits),
                }
            }
            self.insert_missing(output, &shown, edits);
        }
        if let Some(at) = document.some(response, "output_text") {
            set_text(document, at, &self.words(said), edits);
        }
        if let Some(note) = said.note.take() {
            let note = note.told(ErrorKind::Denied).to_string();
            edits.add_member(document, response, "hook", &note);
            edits.add_member(document, Document::ROOT, "hook", &note);
        }
    }

    /// Items that left and that the whole output does not show, each behind the one that left before it.
    fn insert_missing(&self, output: At, shown: &[(usize, At)], edits: &mut Edits) {
        let left = |index: usize| self.items.get(index).and_then(|item| item.left);
        let mut missing: Vec<(usize, &Item, &Bytes)> = Vec::new();
        for (index, item) in self.items.iter().enumerate() {
            if let Some(done) = item.done.as_ref().filter(|_| shown.iter().all(|(at, _)| *at != index)) {
                missing.push((index, item, done));
            }
        }
        missing.sort_by_key(|(_, item, _)| item.left);
        for (_, item, done) in missing {
            let before = shown.iter().filter(|(index, _)| left(*index).is_some_and(|place| Some(place) < item.left));
            let before = before.max_by_key(|(index, _)| left(*index)).map(|(_, at)| *at);
            edits.insert(output, before, String::from_utf8_lossy(done).into_owned());
        }
    }

    /// The text of all messages.
    fn words(&self, said: &Said) -> String {
        let parts = self.items.iter().filter(|item| !item.gone).flat_map(|item| &item.parts);
        parts.filter(|part| part.kind.name == "output_text").map(|part| part.released(said)).collect()
    }

    /// What the client has now.
    fn has_left(&mut self, told: &Told, data: &Bytes) {
        self.opened |= told.event == Event::Opening;
        self.ended |= matches!(told.event, Event::End { .. } | Event::Error);
        let Some(item) = told.item.and_then(|at| self.items.get_mut(at)) else { return };
        if let Some(part) = told.part.and_then(|part| item.parts.get_mut(part)) {
            match told.event {
                Event::PartAdded(_) => part.opened = true,
                Event::TextDone(_) => part.told = true,
                Event::PartDone(_) => part.closed = true,
                _ => {}
            }
        }
        match told.event {
            Event::CallDelta => item.sent = told.argued,
            Event::CallDone(_) => item.told = true,
            Event::ItemDone => item.done = item_of(data),
            _ => {}
        }
    }
}

/// The `item` of an event.
fn item_of(data: &Bytes) -> Option<Bytes> {
    let document = Document::read(data.clone()).ok()?;
    Some(Bytes::copy_from_slice(document.raw(document.some(Document::ROOT, "item")?).as_bytes()))
}

fn set_text(document: &Document, at: At, text: &str, edits: &mut Edits) {
    if document.text(at).is_none_or(|came| came != text) {
        edits.set_text(at, text);
    }
}

fn set_string(document: &Document, object: At, key: &str, text: &str, edits: &mut Edits) {
    if let Some(at) = document.get(object, key) {
        set_text(document, at, text, edits);
    }
}

/// A text that says again what has left.
fn restate(document: &Document, object: At, key: &str, text: &str, edits: &mut Edits) {
    let same = document.string(object, key).is_some_and(|came| came == text);
    set_string(document, object, key, text, edits);
    quotes(document, object, same.then_some(text), !same, edits);
}

/// What quotes a text: tokens stay where they spell it, notes where nothing of it was changed.
fn quotes(document: &Document, object: At, came: Option<&str>, changed: bool, edits: &mut Edits) {
    for key in QUOTES {
        let Some(list) = document.some(object, key).filter(|list| document.elements(*list).next().is_some()) else {
            continue;
        };
        let stays = match *key {
            "logprobs" => came.is_some_and(|text| spell(document, list, text)),
            _ => !changed,
        };
        if !stays {
            edits.replace(list, "[]".to_owned());
        }
    }
}

/// An item where it is shown: when it begins, or as a whole.
pub(super) fn edit_item(document: &Document, at: At, item: &mut Item, whole: bool, said: &mut Said, edits: &mut Edits) {
    // What was found by its place is known to the client by the id with which it was announced.
    if let Some(id) = item.name().filter(|id| document.string(at, "id").as_ref() != Some(id)) {
        edits.add_member(document, at, "id", &quote(&id));
    }
    if item.call().is_some() {
        return edit_call(document, at, item, whole, said, edits);
    }
    for list in [List::Content, List::Summary] {
        let parts = document.some(at, list.key());
        for (place, object) in parts.into_iter().flat_map(|parts| document.elements(parts)).enumerate() {
            let part = item.find(list, place as u64).and_then(|part| item.parts.get(part));
            if let Some(part) = part.filter(|part| *part.kind != OTHER) {
                restate(document, object, part.kind.key, &part.released(said), edits);
            }
        }
    }
    let sealed = document.some(at, "encrypted_content").filter(|_| item.kind == ItemKind::Reasoning);
    match sealed.and_then(|at| document.text(at)) {
        // What is sealed is not what the client has.
        Some(text) if is_cipher(&text) && item.changed() => {
            sealed.into_iter().for_each(|sealed| edits.remove(at, sealed));
        }
        // Servers without encryption put the plain text there.
        Some(text) if !is_cipher(&text) && !text.is_empty() => {
            let left: String = item.parts.iter().map(|part| part.released(said)).collect();
            sealed.into_iter().for_each(|sealed| set_text(document, sealed, &left, edits));
        }
        _ => {}
    }
}

/// A call where its item is shown.
fn edit_call(document: &Document, at: At, item: &mut Item, whole: bool, said: &mut Said, edits: &mut Edits) {
    let (Some(key), Some(call)) = (arguments_key(document, at), item.told_call(said)) else { return };
    let name = Some(&*call.function.name).filter(|name| !name.is_empty());
    for (key, text) in [("call_id", call.id.as_deref()), ("name", name)] {
        if let Some(text) = text.filter(|text| document.string(at, key).as_deref() != Some(*text)) {
            edits.add_member(document, at, key, &quote(text));
        }
    }
    if whole {
        let arguments = item.arguments(said);
        if document.string(at, key).as_deref() != Some(&*arguments) {
            edits.add_member(document, at, key, &quote(&arguments));
        }
    } else if let (Some(new), Some(came)) = (item.rewritten(said), document.some(at, key))
        && document.text(came).is_some_and(|came| !came.is_empty())
    {
        edits.set_text(came, new);
        item.argued = true;
    }
}
