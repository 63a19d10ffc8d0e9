//! Finding secrets.

use std::cmp::Reverse;
use std::ops::Range;

use crate::assignment::{PlainName, name_before};
use crate::prefilter::{Hit, PREFILTER, Prefilter, RuleRef};
use crate::rule::{Lead, Place};
use crate::run::Runs;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The identifier of the rule that knows it; of several rules the first of the longest.
    pub rule: &'static str,
    /// Where it stands, in bytes, on character boundaries.
    pub range: Range<usize>,
}

/// The secrets in `text`, in order, apart from each other: what overlaps or touches is one finding.
///
/// A text without secrets costs no allocation.
#[must_use]
pub fn find(text: &str) -> Vec<Finding> {
    let mut search = Search::new(text);
    for run in Runs::new(text.as_bytes()) {
        search.tokens(&run);
        search.value(run.start);
    }
    for hit in search.filter.anchors.apart(text.as_bytes()) {
        search.confirm(hit);
    }
    search.finish()
}

/// What a rule matched, before merging. Ordered by place, the longer first, then by the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Match {
    start: usize,
    end: Reverse<usize>,
    rule: usize,
    id: &'static str,
}

/// One text being searched.
pub(crate) struct Search<'t> {
    whole: &'t str,
    /// The same as bytes.
    text: &'t [u8],
    filter: &'static Prefilter,
    found: Vec<Match>,
    /// By rule, [`NAME`] before where its pattern last ended; empty until one fitted. What a pattern fitted before
    /// there it does not see again, which keeps the search linear where patterns have no upper length.
    done: Vec<usize>,
}

/// How far before its value a literal stands at most, in bytes: what looks like a value may end in the name of the next.
const NAME: usize = 64;

impl<'t> Search<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { whole: text, text: text.as_bytes(), filter: &PREFILTER, found: Vec::new(), done: Vec::new() }
    }

    pub(crate) fn finish(self) -> Vec<Finding> {
        merge(self.whole, self.found)
    }

    /// Tries the rules whose prefix stands in `run`.
    fn tokens(&mut self, run: &Range<usize>) {
        for hit in self.filter.prefixes.overlapping(self.text.get(run.clone()).unwrap_or_default()) {
            self.confirm(Hit { start: hit.start + run.start, end: hit.end + run.start, ..hit });
        }
    }

    /// Tries the rules whose keyword is in the name that the value at `at` is given to.
    fn value(&mut self, at: usize) {
        let Some(name) = name_before(self.text, at) else {
            return;
        };
        for hit in self.filter.keywords.overlapping(PlainName::new(name).as_bytes()) {
            self.confirm(Hit { start: at, end: at, ..hit });
        }
    }

    /// Keeps what `hit`'s rule matches around `hit`.
    pub(crate) fn confirm(&mut self, hit: Hit) {
        let RuleRef { index, rule } = hit.rule;
        let Some(start) = lead_start(self.text, rule.lead.as_ref(), hit.start) else {
            return;
        };
        if start < self.done.get(index).copied().unwrap_or(0) {
            return;
        }
        let Some((secret, end)) = self.apply(hit, start) else {
            return;
        };
        self.done.resize(self.done.len().max(index + 1), 0);
        if let Some(done) = self.done.get_mut(index) {
            *done = end.saturating_sub(NAME).max(*done);
        }
        let passes = self.text.get(secret.clone()).is_some_and(|bytes| rule.check.passes(bytes));
        if passes && ends_well(self.text, rule.place, end) {
            self.found.push(Match { start: secret.start, end: Reverse(secret.end), rule: index, id: rule.id() });
        }
    }

    /// The secret, and the end of the match, if the pattern of `hit`'s rule fits behind `hit`.
    fn apply(&self, hit: Hit, start: usize) -> Option<(Range<usize>, usize)> {
        let pattern = self.filter.pattern(hit.rule)?;
        let rest = self.text.get(hit.end..)?;
        if pattern.captures_len() == 1 {
            let end = hit.end + starts_well(self.text, start).then(|| pattern.find(rest))??.end();
            return Some((start..end, end));
        }
        if !pattern.is_match(rest) {
            return None; // most hits; asking for groups would cost three times as much
        }
        let groups = pattern.captures(rest)?;
        let secret = groups.iter().skip(1).flatten().next()?;
        Some((hit.end + secret.start()..hit.end + secret.end(), hit.end + groups.get_match().end()))
    }
}

/// Where the secret begins whose literal is at `at`: before what the rule wants there.
pub(crate) fn lead_start(text: &[u8], lead: Option<&Lead>, at: usize) -> Option<usize> {
    let Some(lead) = lead else { return Some(at) };
    let before = text.get(..at)?.iter().rev().take(lead.max);
    let len = before.take_while(|&&byte| (lead.class)(byte)).count();
    (len >= lead.min).then(|| at - len)
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn ends_in_word(text: &[u8]) -> bool {
    text.last().is_some_and(|&last| is_word(last))
}

/// Whether a secret may begin at `at`: not inside a word, except that an escape before it (`\n`, `%3D`) is no word.
pub(crate) fn starts_well(text: &[u8], at: usize) -> bool {
    match text.get(..at).unwrap_or_default() {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        before => !ends_in_word(before) || !text.get(at).is_some_and(|&first| is_word(first)),
    }
}

/// Whether a secret may end at `at`: a named value not before more of the same. (A token's pattern sees to its end.)
fn ends_well(text: &[u8], place: Place, at: usize) -> bool {
    let more = |next: &u8| is_word(*next) || b"+/".contains(next);
    place != Place::Name || !text.get(..at).is_some_and(ends_in_word) || !text.get(at).is_some_and(more)
}

/// Sorts, joins what overlaps or touches, and widens to whole characters.
fn merge(text: &str, mut found: Vec<Match>) -> Vec<Finding> {
    found.sort_unstable();
    let mut findings: Vec<Finding> = Vec::new();
    for one in found {
        let (start, end) = (text.floor_char_boundary(one.start), text.ceil_char_boundary(one.end.0));
        match findings.last_mut() {
            Some(last) if start <= last.range.end => last.range.end = last.range.end.max(end),
            _ => findings.push(Finding { rule: one.id, range: start..end }),
        }
    }
    findings
}
