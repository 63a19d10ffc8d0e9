//! One text being searched: where something may begin, and what is undecided at its end.

use std::cmp::Reverse;
use std::ops::Range;

use super::text::Text;
use super::{Finding, KINDS, Kinds};

/// What one finder says of one place.
pub(super) struct Attempt {
    /// Where a value would begin.
    pub(super) start: usize,
    /// Where it ends, if there is one.
    pub(super) end: Option<usize>,
}

/// Tells whether a value stands around a place, reading no more than it needs. `None`: none can begin here, and what
/// follows does not matter.
pub(super) type Finder = fn(&Text<'_>, usize) -> Option<Attempt>;

/// Where a finder is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At the first of a run of digits.
    Digits,
    /// At this byte.
    Byte(u8),
}

/// What a search found.
pub(super) struct Found {
    /// In order, apart from each other.
    pub(super) findings: Vec<Finding>,
    /// Where the first value may begin that more text could make, end or undo; the end of the text where there is none.
    pub(super) open: usize,
}

/// Searches `text` for values of `kinds` that begin at `from` or behind it.
pub(super) fn search(text: &Text<'_>, from: usize, kinds: Kinds) -> Found {
    let bytes = text.whole().as_bytes();
    let mut matches = Vec::new();
    let mut open = bytes.len();
    let mut was_digit = text.before(from).is_some_and(|byte| byte.is_ascii_digit());
    for (at, &byte) in bytes.iter().enumerate().skip(from) {
        let is_digit = byte.is_ascii_digit();
        let is_start = is_digit && !was_digit;
        was_digit = is_digit;
        if !is_start && !matches!(byte, b'@' | b':') {
            continue;
        }
        let place = if is_start { Place::Digits } else { Place::Byte(byte) };
        for (index, kind) in KINDS.iter().enumerate().filter(|(index, _)| kinds.has(*index)) {
            for (_, find) in kind.finders.iter().filter(|(known, _)| *known == place) {
                let (attempt, is_open) = text.reads(|| find(text, at));
                let Some(Attempt { start, end }) = attempt.filter(|attempt| attempt.start >= from) else { continue };
                if is_open {
                    open = open.min(start);
                } else if let Some(end) = end {
                    matches.push((start, Reverse(end), index));
                }
            }
        }
    }
    Found { findings: merge(matches), open }
}

/// Sorts, and joins what overlaps: it is of the kind that begins first, the longest of these.
fn merge(mut matches: Vec<(usize, Reverse<usize>, usize)>) -> Vec<Finding> {
    matches.sort_unstable();
    let mut findings: Vec<Finding> = Vec::new();
    for (start, Reverse(end), index) in matches {
        match findings.last_mut() {
            Some(last) if start < last.range.end => last.range.end = last.range.end.max(end),
            _ => findings.extend(KINDS.get(index).map(|kind| Finding { kind, range: Range { start, end } })),
        }
    }
    findings
}
