//! A text with something else in the place of what was found in it, and where the rest of it stands now.

use std::ops::Range;

use crate::find::Found;

/// An edited text.
pub(super) struct Edited {
    pub(super) text: String,
    /// Where each edit ended, and where it does now.
    ends: Vec<(usize, usize)>,
}

impl Edited {
    /// `text` with what `instead` says in the place of what was found, which is in order and apart.
    pub(super) fn new(text: &str, edits: &[Found], mut instead: impl FnMut(&Found, &str) -> String) -> Self {
        let (mut new, mut done, mut ends) = (String::with_capacity(text.len()), 0, Vec::with_capacity(edits.len()));
        for found in edits {
            new.push_str(text.get(done..found.range.start).unwrap_or_default());
            new.push_str(&instead(found, text.get(found.range.clone()).unwrap_or_default()));
            done = found.range.end;
            ends.push((done, new.len()));
        }
        new.push_str(text.get(done..).unwrap_or_default());
        Self { text: new, ends }
    }

    /// What no edit took of something that was found before, where it stands now.
    pub(super) fn left_of<'a>(&'a self, found: &'a Found, edits: &'a [Found]) -> impl Iterator<Item = Found> + 'a {
        let starts = [0].into_iter().chain(edits.iter().map(|edit| edit.range.end));
        let ends = edits.iter().map(|edit| edit.range.start).chain([usize::MAX]);
        let left = starts.zip(ends).map(|(start, end)| start.max(found.range.start)..end.min(found.range.end));
        let left = left.filter(|left| left.start < left.end);
        left.map(|left| Found { range: self.moved(left), word: found.word.clone() })
    }

    /// Where a part stands now that no edit touches.
    fn moved(&self, part: Range<usize>) -> Range<usize> {
        let before = self.ends.partition_point(|(was, _)| *was <= part.start);
        let (was, is) = before.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or_default();
        part.start - was + is..part.end - was + is
    }
}

/// What was found, in order and apart: of what overlaps, the first gives its word.
pub(super) fn merged(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|found| found.range.start);
    let mut merged: Vec<Found> = Vec::with_capacity(found.len());
    for one in found {
        match merged.last_mut() {
            Some(last) if one.range.start < last.range.end => last.range.end = last.range.end.max(one.range.end),
            _ => merged.push(one),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(range: Range<usize>) -> Found {
        Found { range, word: "#".into() }
    }

    #[test]
    fn what_is_left_of_something_stands_where_the_edited_text_has_it() {
        let text = "0123456789abcdef";
        let edits = [found(2..4), found(4..5), found(10..12)];
        let edited = Edited::new(text, &edits, |found, value| format!("<{}{}>", found.word, value.len()));
        assert_eq!(edited.text, "01<#2><#1>56789<#2>cdef");
        for (range, want) in
            [(0..16, vec!["01", "56789", "cdef"]), (3..11, vec!["56789"]), (2..5, vec![]), (1..3, vec!["1"])]
        {
            let whole = found(range);
            let left: Vec<&str> = edited.left_of(&whole, &edits).map(|left| &edited.text[left.range]).collect();
            assert_eq!(left, want, "{whole:?}");
        }
    }

    #[test]
    fn what_overlaps_is_one_and_what_touches_is_two() {
        let merged = merged(vec![found(8..9), found(0..4), found(3..6), found(6..7)]);
        assert_eq!(merged, [found(0..6), found(6..7), found(8..9)]);
    }
}
