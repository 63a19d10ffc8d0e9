//! Edits: what is to change in a document, applied once.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{At, Document, Kind, quote};

/// What is to change in the bytes of a document. Everything else keeps them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Edits {
    replaced: BTreeMap<At, String>,
    spliced: BTreeMap<At, Splice>,
}

/// What leaves an array or object, and what comes in.
#[derive(Debug, Clone, Default)]
struct Splice {
    /// Elements, or the values of members.
    removed: BTreeSet<At>,
    /// After which child (none is the beginning), and the text: an element, or `"key":value`.
    fresh: BTreeMap<Option<At>, Vec<String>>,
}

/// A byte range and what stands there instead.
type Patch = (usize, usize, String);

impl Edits {
    /// Whether nothing is to change.
    pub(crate) fn is_empty(&self) -> bool {
        self.replaced.is_empty() && self.spliced.is_empty()
    }

    /// Puts `text` in place of a value. The last one wins.
    pub(crate) fn replace(&mut self, at: At, text: String) {
        self.replaced.insert(at, text);
    }

    /// Puts a string in place of a value.
    pub(crate) fn set_text(&mut self, at: At, text: &str) {
        self.replace(at, quote(text));
    }

    /// Takes a child out of an array or object; of a member, `child` is the value.
    pub(crate) fn remove(&mut self, container: At, child: At) {
        self.spliced.entry(container).or_default().removed.insert(child);
    }

    /// Puts a new element into an array, after a child or at the beginning.
    pub(crate) fn insert(&mut self, array: At, after: Option<At>, text: String) {
        self.spliced.entry(array).or_default().fresh.entry(after).or_default().push(text);
    }

    /// Puts a member into an object: at its end, or in place of the value that stands there, as a null.
    pub(crate) fn add_member(&mut self, document: &Document, object: At, key: &str, value: &str) {
        match document.get(object, key) {
            Some(at) => self.replace(at, value.to_owned()),
            // A server may send anything in an object's place.
            None if document.kind(object) != Kind::Object => {}
            None => {
                let last = document.members(object).last().map(|(_, value)| value);
                self.insert(object, last, format!("{}:{value}", quote(key)));
            }
        }
    }

    /// The document with these edits; the very same bytes where there are none.
    pub(crate) fn apply(&self, document: &Document) -> Bytes {
        let bytes = document.bytes();
        let mut patches = self.patches(document);
        if patches.is_empty() {
            return bytes.clone();
        }
        patches.sort_by_key(|(start, end, _)| (*start, *end));
        let added: usize = patches.iter().map(|(_, _, text)| text.len()).sum();
        let mut out = Vec::with_capacity(bytes.len() + added);
        let mut at = 0;
        for (start, end, text) in &patches {
            debug_assert!(at <= *start, "edits overlap at byte {start}");
            out.extend_from_slice(bytes.get(at..*start).unwrap_or_default());
            out.extend_from_slice(text.as_bytes());
            at = (*end).max(at);
        }
        out.extend_from_slice(bytes.get(at..).unwrap_or_default());
        out.into()
    }

    /// The edits as byte ranges, without those inside of what is taken out.
    fn patches(&self, document: &Document) -> Vec<Patch> {
        let mut gone: Vec<(usize, usize)> =
            self.spliced.values().flat_map(|splice| &splice.removed).map(|at| document.range(*at)).collect();
        gone.sort_unstable_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
        // Of ranges in one another the outermost is enough.
        gone.dedup_by(|inner, outer| inner.1 <= outer.1);
        let stays = |at: &At| {
            let (start, end) = document.range(*at);
            let before = gone.partition_point(|(from, _)| *from <= start);
            before.checked_sub(1).and_then(|last| gone.get(last)).is_none_or(|(_, to)| *to < end)
        };
        let mut patches = Vec::new();
        for (at, text) in self.replaced.iter().filter(|(at, _)| stays(at)) {
            let (start, end) = document.range(*at);
            patches.push((start, end, text.clone()));
        }
        for (container, splice) in self.spliced.iter().filter(|(container, _)| stays(container)) {
            splice.patches(document, *container, &mut patches);
        }
        patches
    }
}

impl Splice {
    fn patches(&self, document: &Document, container: At, patches: &mut Vec<Patch>) {
        let (open, close) = document.range(container);
        let children: Vec<(At, usize, usize)> = match document.kind(container) {
            Kind::Object => document
                .members(container)
                .map(|(key, value)| (value, document.range(key).0, document.range(value).1))
                .collect(),
            _ => document.elements(container).map(|at| (at, document.range(at).0, document.range(at).1)).collect(),
        };
        let mut gap = Gap { start: open + 1, after_kept: false, changed: false, texts: Vec::new() };
        gap.add(&self.fresh, None);
        for (child, start, end) in children {
            if self.removed.contains(&child) {
                gap.changed = true;
            } else {
                patches.extend(gap.close(start, true));
                gap = Gap { start: end, after_kept: true, changed: false, texts: Vec::new() };
            }
            gap.add(&self.fresh, Some(child));
        }
        patches.extend(gap.close(close.saturating_sub(1), false));
    }
}

/// The bytes between two children that stay.
struct Gap<'f> {
    start: usize,
    after_kept: bool,
    changed: bool,
    texts: Vec<&'f str>,
}

impl<'f> Gap<'f> {
    fn add(&mut self, fresh: &'f BTreeMap<Option<At>, Vec<String>>, after: Option<At>) {
        self.texts.extend(fresh.get(&after).into_iter().flatten().map(String::as_str));
        self.changed |= !self.texts.is_empty();
    }

    /// What stands here now, up to `end`, where a child that stays or the container's end follows.
    fn close(&self, end: usize, before_kept: bool) -> Option<Patch> {
        if !self.changed {
            return None;
        }
        let mut text = self.texts.join(",");
        if self.after_kept && (before_kept || !self.texts.is_empty()) {
            text.insert(0, ',');
        }
        if before_kept && !self.texts.is_empty() {
            text.push(',');
        }
        Some((self.start, end, text))
    }
}
