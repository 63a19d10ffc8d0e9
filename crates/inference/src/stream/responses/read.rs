//! What each event of a Responses stream tells.

use std::borrow::Cow;

use bytes::Bytes;

use super::calls::grow;
use super::events::{Event, List, OTHER, PartKind, REASONING, REFUSAL, SUMMARY, TEXT};
use super::items::{Item, ItemKind, Part};
use super::{Piece, Responses, Told};
use crate::json::{At, Document, Kind};
use crate::stream::format::{members, named};
use crate::stream::said::Said;
use crate::stream::tokens::spell;
use crate::stream::{Fault, TrackKind};
use crate::view::is_cipher;

const EVENT: &[&str] = &[
    "type",
    "response",
    "item",
    "item_id",
    "output_index",
    "content_index",
    "summary_index",
    "part",
    "delta",
    "text",
    "refusal",
    "arguments",
    "input",
];
const RESPONSE: &[&str] = &["output", "status", "output_text", "usage"];
const ITEM: &[&str] =
    &["type", "id", "role", "content", "call_id", "name", "arguments", "input", "summary", "encrypted_content"];
const PART: &[&str] = &["type", "text", "refusal", "annotations", "logprobs"];

/// Items that hold nothing of what the model said.
const SILENT: &[&str] = &["mcp_list_tools", "compaction"];

fn number(document: &Document, key: &str) -> Option<u64> {
    document.raw(document.get(Document::ROOT, key)?).parse().ok()
}

fn text<'d>(document: &'d Document, object: At, key: &str) -> Result<Cow<'d, str>, Fault> {
    let missing = || document.shape(object, format!("a text is expected under `{key}`"));
    Ok(document.string(object, key).ok_or_else(missing)?)
}

/// Refuses keys of an object that a lenient reader takes for others.
fn check(document: &Document, object: At, known: &[&str]) -> Result<(), Fault> {
    members(document, object, known, |_, _| Ok(()))
}

/// Reads one event; what it finds goes into `told`.
pub(super) struct Reader<'r> {
    pub(super) items: &'r mut Vec<Item>,
    pub(super) document: &'r Document,
    pub(super) said: &'r mut Said,
    pub(super) told: Told,
}

impl Responses {
    /// Reads one event.
    pub(super) fn told(&mut self, name: Option<&str>, document: &Document, said: &mut Said) -> Result<Told, Fault> {
        check(document, Document::ROOT, EVENT)?;
        let event = named(document, name, Event::of, Event::Other)?;
        let told = Told {
            event,
            number: number(document, "sequence_number"),
            place: number(document, "output_index"),
            item: None,
            part: None,
            pieces: Vec::new(),
            argued: 0,
            odd: false,
        };
        let mut reader = Reader { items: &mut self.items, document, said, told };
        reader.read()?;
        let told = reader.told;
        // What is not read as it should be is not sent on in other events either.
        if told.event == Event::Opening && self.opening.is_none() {
            let response = document.some(Document::ROOT, "response");
            self.opening = response.map(|at| Bytes::copy_from_slice(document.raw(at).as_bytes()));
        }
        Ok(told)
    }

    /// The item that an element of the whole output shows.
    pub(super) fn listed(&self, document: &Document, at: At, place: usize) -> Option<usize> {
        listed(&self.items, document, at, place)
    }
}

/// The same: by its id, else by its place where the kind is the same.
fn listed(items: &[Item], document: &Document, at: At, place: usize) -> Option<usize> {
    let id = document.string(at, "id");
    id.and_then(|id| with_id(items, &id, Some(place as u64))).or_else(|| {
        let item = items.get(place)?;
        let same = match document.string(at, "type").as_deref() {
            Some("message") => item.kind == ItemKind::Message,
            Some("reasoning") => item.kind == ItemKind::Reasoning,
            Some(kind) if SILENT.contains(&kind) => item.kind == ItemKind::Silent,
            _ => item.call().is_some(),
        };
        same.then_some(place)
    })
}

/// The item of an id. Where a server gives one id to several, their places tell them apart.
fn with_id(items: &[Item], id: &str, place: Option<u64>) -> Option<usize> {
    let own = |item: &Item| item.id.as_deref() == Some(id);
    let there = items.iter().rposition(|item| own(item) && place.is_some() && item.number == place);
    there.or_else(|| items.iter().rposition(own))
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Fault> {
        let document = self.document;
        let root = Document::ROOT;
        match self.told.event {
            Event::Opening => {
                let Some(response) = document.some(root, "response") else { return Ok(()) };
                check(document, response, RESPONSE)?;
                let output = document.some(response, "output");
                if let Some(output) = output.filter(|output| document.elements(*output).next().is_some()) {
                    return Err(document.shape(output, "a response begins without output").into());
                }
                self.told.odd = output.is_none();
            }
            Event::ItemAdded => self.item_added()?,
            Event::ItemDone => self.item_done()?,
            Event::PartAdded(list) | Event::PartDone(list) => self.part_shown(list)?,
            Event::TextDelta(kind) => {
                let (item, part) = self.about_part(kind)?;
                let delta = text(document, root, "delta")?;
                if !delta.is_empty() && self.items.get(item).is_some_and(|item| item.over) {
                    return Err(Fault::WentOn("text came after its item's end"));
                }
                self.append(item, part, &delta)?;
                self.told.odd |= document.some(root, "logprobs").is_some_and(|at| !spell_or_none(document, at, &delta));
            }
            Event::TextDone(kind) => {
                let (item, part) = self.about_part(kind)?;
                self.reconcile(item, part, root, kind)?;
            }
            Event::Annotation => self.annotated(),
            Event::CallDelta => {
                let delta = text(document, root, "delta")?;
                self.argue(|arguments| arguments.push_str(&delta))?;
            }
            Event::CallDone(key) => {
                let whole = text(document, root, key)?;
                self.argue(|arguments| grow(arguments, &whole))?;
                let call = self.told.item.and_then(|at| self.items.get(at)).and_then(Item::call);
                let state = call.and_then(|call| self.said.call_states.get(call.0));
                self.told.odd |= state.is_some_and(|state| state.arguments != *whole);
            }
            Event::End { failed } => self.end(failed)?,
            Event::Error => self.said.end(true),
            Event::Other => self.told.item = self.about(),
        }
        Ok(())
    }

    /// An annotation is about a part of an item's content: the last one, where it does not say which.
    fn annotated(&mut self) {
        self.told.item = self.about();
        let index = number(self.document, "content_index");
        let item = self.told.item.and_then(|at| self.items.get(at));
        self.told.part = item.and_then(|item| match index {
            Some(index) => item.find(List::Content, index),
            None => item.last(List::Content),
        });
        self.lacks("content_index");
    }

    /// Notes that a field of the event is missing.
    fn lacks(&mut self, key: &str) {
        self.told.odd |= self.document.get(Document::ROOT, key).is_none();
    }

    /// Notes that the event does not name its item, or names one that came without a name.
    pub(super) fn names(&mut self) {
        let id = self.document.string(Document::ROOT, "item_id");
        let item = self.told.item.and_then(|at| self.items.get(at));
        self.told.odd |= id.is_none() || item.is_some_and(|item| item.id.is_none());
    }

    /// The item that the event is about: by its id, else by its place in the output.
    pub(super) fn about(&self) -> Option<usize> {
        let id = self.document.string(Document::ROOT, "item_id");
        match (id, self.told.place) {
            (Some(id), place) if self.items.iter().any(|item| item.id.is_some()) => with_id(self.items, &id, place),
            (_, Some(place)) => self.items.iter().rposition(|item| item.number == Some(place)),
            (Some(_), None) => self.items.len().checked_sub(1),
            (None, None) => None,
        }
    }

    /// The item and part of a text; they are made where nobody has announced them.
    fn about_part(&mut self, kind: &'static PartKind) -> Result<(usize, usize), Fault> {
        let index = number(self.document, kind.list.index());
        let item = self.about_or_new(kind);
        let part = self.part(item, kind, index)?;
        (self.told.item, self.told.part) = (Some(item), Some(part));
        self.names();
        self.lacks(kind.list.index());
        Ok((item, part))
    }

    fn about_or_new(&mut self, kind: &PartKind) -> usize {
        self.about().unwrap_or_else(|| {
            let id = self.document.string(Document::ROOT, "item_id").map(Into::into);
            let of = match kind.track {
                TrackKind::Text => ItemKind::Message,
                TrackKind::Thinking => ItemKind::Reasoning,
            };
            self.items.push(Item::new(id, self.told.place, of));
            self.items.len() - 1
        })
    }

    fn item_added(&mut self) -> Result<(), Fault> {
        let Some(at) = self.document.some(Document::ROOT, "item") else { return Ok(()) };
        let item = self.add(at, self.told.place)?;
        self.told.item = Some(item);
        self.show(at, item, false)
    }

    fn item_done(&mut self) -> Result<(), Fault> {
        let Some(at) = self.document.some(Document::ROOT, "item") else { return Ok(()) };
        let id = self.document.string(at, "id");
        let by_id = id.and_then(|id| with_id(self.items, &id, self.told.place));
        let item = match by_id.or_else(|| self.about()) {
            Some(item) => item,
            None => self.add(at, self.told.place)?,
        };
        self.told.item = Some(item);
        self.show(at, item, true)
    }

    fn part_shown(&mut self, list: List) -> Result<(), Fault> {
        self.told.item = self.about();
        let Some(at) = self.document.some(Document::ROOT, "part") else { return Ok(()) };
        let Some(kind) = self.part_kind(at, list, self.told.item)? else {
            let index = number(self.document, list.index());
            if let (Some(item), Some(index), List::Content) = (self.told.item, index, list) {
                self.other_part(item, index, at)?;
            }
            return Ok(());
        };
        let item = self.about_or_new(kind);
        let index = number(self.document, list.index()).or_else(|| {
            // A new part without a number stands behind those that are there.
            let added = matches!(self.told.event, Event::PartAdded(_));
            added.then(|| self.items.get(item).map_or(0, |item| item.next(list)))
        });
        let part = self.part(item, kind, index)?;
        (self.told.item, self.told.part) = (Some(item), Some(part));
        self.names();
        self.lacks(list.index());
        self.told.odd |= kind.name == "output_text" && self.document.some(at, "annotations").is_none();
        self.reconcile(item, part, at, kind)
    }

    /// By its type; where that is unknown, by the text that it has nevertheless.
    fn part_kind(&self, part: At, list: List, item: Option<usize>) -> Result<Option<&'static PartKind>, Fault> {
        check(self.document, part, PART)?;
        let known = PartKind::of(&self.document.string(part, "type").unwrap_or_default());
        if let Some(kind) = known.filter(|kind| kind.list == list) {
            return Ok(Some(kind));
        }
        let has = |key| self.document.string(part, key).is_some();
        let item = item.and_then(|at| self.items.get(at)).map(|item| item.kind);
        Ok(match (list, item) {
            (List::Summary, _) if has("text") => Some(&SUMMARY),
            (List::Content, Some(ItemKind::Reasoning)) if has("text") => Some(&REASONING),
            (List::Content, _) if has("text") => Some(&TEXT),
            (List::Content, _) if has("refusal") => Some(&REFUSAL),
            _ => None,
        })
    }

    fn add(&mut self, at: At, place: Option<u64>) -> Result<usize, Fault> {
        check(self.document, at, ITEM)?;
        let kind = match self.document.string(at, "type").as_deref() {
            Some("message") => ItemKind::Message,
            Some("reasoning") => ItemKind::Reasoning,
            Some(kind) if SILENT.contains(&kind) => ItemKind::Silent,
            None if self.document.some(at, "content").is_some() => ItemKind::Message,
            _ => ItemKind::Call(self.begin_call(at)?),
        };
        let follows = match kind {
            ItemKind::Message => Some(TrackKind::Text),
            ItemKind::Reasoning => Some(TrackKind::Thinking),
            ItemKind::Call(_) | ItemKind::Silent => None,
        };
        self.said.turn(0, follows);
        let item = Item::new(self.document.string(at, "id").map(Into::into), place, kind);
        let same = |other: &Item| match (&item.id, place) {
            (id, Some(place)) => other.id == *id && other.number == Some(place),
            (id, None) => id.is_some() && other.id == *id,
        };
        if self.items.iter().any(same) {
            return Err(self.document.ambiguous(at, "the item was announced before").into());
        }
        self.items.push(item);
        Ok(self.items.len() - 1)
    }

    /// What an item holds where it is shown: when it is announced, when it is done, and in the end.
    fn show(&mut self, at: At, index: usize, over: bool) -> Result<(), Fault> {
        check(self.document, at, ITEM)?;
        let Some(item) = self.items.get_mut(index) else { return Ok(()) };
        item.over |= over;
        let kind = item.kind;
        match kind {
            ItemKind::Call(call) if over => return self.finish_call(at, call),
            ItemKind::Call(_) | ItemKind::Silent => return Ok(()),
            ItemKind::Message | ItemKind::Reasoning => {}
        }
        for list in [List::Content, List::Summary] {
            self.show_parts(at, index, list)?;
        }
        if let Some(item) = self.items.get(index).filter(|_| over) {
            item.parts.iter().filter_map(Part::end).for_each(|(track, end)| self.said.close(track, end));
        }
        self.show_sealed(at, index)
    }

    fn show_parts(&mut self, item: At, index: usize, list: List) -> Result<(), Fault> {
        let Some(parts) = self.document.some(item, list.key()) else { return Ok(()) };
        if self.document.kind(parts) != Kind::Array {
            return Err(self.document.shape(parts, "a list of parts is expected").into());
        }
        for (place, at) in self.document.elements(parts).enumerate() {
            match self.part_kind(at, list, Some(index))? {
                Some(kind) => {
                    let part = self.part(index, kind, Some(place as u64))?;
                    self.reconcile(index, part, at, kind)?;
                }
                None if list == List::Content => self.other_part(index, place as u64, at)?,
                None => {}
            }
        }
        Ok(())
    }

    /// Ciphertext seals the reasoning beside it; where it is plain text, it must say what the reasoning says.
    fn show_sealed(&mut self, at: At, index: usize) -> Result<(), Fault> {
        let sealed = self.document.string(at, "encrypted_content").filter(|text| !text.is_empty());
        let (Some(sealed), Some(item)) = (sealed, self.items.get_mut(index)) else { return Ok(()) };
        match is_cipher(&sealed) {
            // What has begun to leave can be sealed no more; then the seal goes where anything was changed.
            true => item.sealed |= item.left.is_none(),
            false => {
                let rest = item.parts.iter().try_fold(&*sealed, |rest, part| part.rest(self.said, rest));
                self.told.odd |= rest != Some("");
            }
        }
        Ok(())
    }

    /// The part of an item that is meant: at `index`, else the last one of its list.
    fn part(&mut self, item: usize, kind: &'static PartKind, index: Option<u64>) -> Result<usize, Fault> {
        let Some(item) = self.items.get_mut(item) else { return Ok(0) };
        let found = match index {
            Some(index) => item.find(kind.list, index),
            None => item.last(kind.list),
        };
        if found.and_then(|at| item.parts.get(at)).is_some_and(|part| part.kind != kind) {
            return Err(self.document.ambiguous(Document::ROOT, "a part of an item is of two kinds").into());
        }
        if found.is_none() && index.is_some_and(|index| index > item.next(kind.list)) {
            return Err(self.document.shape(Document::ROOT, "a part of an item leaves a gap").into());
        }
        Ok(found.unwrap_or_else(|| {
            item.parts.push(Part::new(kind, index.unwrap_or_default()));
            item.parts.len() - 1
        }))
    }

    /// A part that holds no text keeps its place.
    fn other_part(&mut self, item: usize, index: u64, at: At) -> Result<(), Fault> {
        let part = self.part(item, &OTHER, Some(index))?;
        if let Some(part) = self.items.get_mut(item).and_then(|item| item.parts.get_mut(part)) {
            part.other = Some(self.document.value(at));
        }
        Ok(())
    }

    fn append(&mut self, item: usize, part: usize, more: &str) -> Result<(), Fault> {
        let Some(place) = self.items.get_mut(item).and_then(|item| item.parts.get_mut(part)) else { return Ok(()) };
        let kind = place.kind.track;
        let span = self.said.append(0, kind, more)?;
        place.push(&span);
        self.said.turn(0, Some(kind));
        self.told.pieces.push(Piece { item, part, span });
        Ok(())
    }

    /// A text that repeats what came as deltas, or says more; where it says something else, that is not what was said.
    fn reconcile(&mut self, item: usize, part: usize, at: At, kind: &PartKind) -> Result<(), Fault> {
        let whole = text(self.document, at, kind.key)?;
        let Some(place) = self.items.get(item).and_then(|item| item.parts.get(part)) else { return Ok(()) };
        let added = matches!(self.told.event, Event::PartAdded(_) | Event::ItemAdded);
        match place.rest(self.said, &whole) {
            Some("") => {}
            Some(more) => self.append(item, part, more)?,
            // Before its text, an empty one is nothing else.
            None if added && whole.is_empty() => {}
            None => self.told.odd = true,
        }
        let logprobs = self.document.some(at, "logprobs");
        self.told.odd |= logprobs.is_some_and(|at| !spell_or_none(self.document, at, &whole));
        Ok(())
    }

    /// The response as a whole: what it repeats, and what came in no other event.
    fn end(&mut self, failed: bool) -> Result<(), Fault> {
        if let Some(response) = self.document.some(Document::ROOT, "response") {
            check(self.document, response, RESPONSE)?;
            self.whole_output(response)?;
            let usage = self.document.some(response, "usage").map(|at| self.document.value(at));
            self.said.usage = usage.or(self.said.usage.take());
            if !failed {
                self.said.end_choice(0, self.document.string(response, "status").as_deref());
            }
        }
        self.said.end(failed);
        Ok(())
    }

    fn whole_output(&mut self, response: At) -> Result<(), Fault> {
        let Some(output) = self.document.some(response, "output") else { return Ok(()) };
        let known = self.items.len();
        let mut shown = 0;
        for (place, at) in self.document.elements(output).enumerate() {
            let item = match listed(self.items, self.document, at, place) {
                Some(item) => item,
                None => self.add(at, Some(place as u64))?,
            };
            shown += usize::from(item < known);
            self.show(at, item, true)?;
        }
        self.told.odd |= shown != known && self.told.event == Event::End { failed: false };
        if let Some(whole) = self.document.string(response, "output_text") {
            let texts = self.items.iter().flat_map(|item| &item.parts).filter(|part| part.kind.name == "output_text");
            let mut texts = texts.flat_map(|part| part.pieces(self.said));
            self.told.odd |= texts.try_fold(&*whole, |rest, piece| rest.strip_prefix(piece)) != Some("");
        }
        Ok(())
    }
}

/// Whether log probabilities spell a text, or say nothing.
fn spell_or_none(document: &Document, logprobs: At, text: &str) -> bool {
    document.elements(logprobs).next().is_none() || spell(document, logprobs, text)
}
