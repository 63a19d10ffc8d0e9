//! Patterns of rules that have begun to fit a text that still grows.

use std::ops::Range;

use regex_automata::nfa::thompson::NFA;
use regex_automata::util::primitives::PatternID;

use crate::apart::{join, outside};
use crate::find::{lead_start, starts_well};
use crate::growth::{Growth, View, Watch};
use crate::prefilter::{Hit, PREFILTER, RuleRef};

/// The patterns under way, and what those have read that came close.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// Each rule once.
    live: Vec<Attempt>,
    /// In order and apart.
    read: Vec<Range<usize>>,
}

/// The attempts at one rule that overlap.
#[derive(Debug)]
struct Attempt {
    rule: RuleRef,
    growth: Growth,
    /// Where the first begins.
    start: usize,
    close: Close,
}

/// Up to where a pattern came so close that it fitted, or would have if the text had ended there; what stands there
/// included, which it looked at.
#[derive(Debug, Default, Clone, Copy)]
struct Close(Option<usize>);

impl Watch for Close {
    fn matched(&mut self, _: PatternID, _: usize, end: usize) {
        self.0 = self.0.max(Some(end));
    }

    fn hinges(&mut self, at: usize) {
        self.0 = self.0.max(Some(at + 1));
    }
}

impl Attempts {
    /// Whether nothing is under way or read.
    pub(crate) fn is_idle(&self) -> bool {
        self.live.is_empty() && self.read.is_empty()
    }

    /// Begins the pattern of `hit`'s rule behind `hit`, unless no secret may begin there, or only one before `floor`.
    pub(crate) fn begin(&mut self, view: View<'_>, floor: usize, hit: Hit) {
        let Some(start) = hit.start.checked_sub(view.base) else { return };
        let Some(start) = lead_start(view.text, hit.rule.rule.lead.as_ref(), start) else { return };
        let (Some(pattern), Some(nfa)) = (PREFILTER.pattern(hit.rule), PREFILTER.automaton(hit.rule)) else { return };
        if start + view.base < floor || (pattern.captures_len() == 1 && !starts_well(view.text, start)) {
            return;
        }
        let start = start + view.base;
        if let Some(attempt) = self.live.iter_mut().find(|attempt| attempt.rule.index == hit.rule.index) {
            if attempt.growth.at() > hit.end {
                attempt.join(nfa, view, start, hit.end);
                return;
            }
            attempt.growth.advance(nfa, view, hit.end, &mut attempt.close);
            if attempt.growth.is_over() {
                attempt.note(&mut self.read);
                attempt.renew(start, hit.end);
            }
            attempt.growth.begin(nfa, view, start, &mut attempt.close);
            return;
        }
        let mut attempt = Attempt { rule: hit.rule, growth: Growth::new(hit.end), start, close: Close(None) };
        attempt.growth.begin(nfa, view, start, &mut attempt.close);
        self.live.push(attempt);
    }

    /// Steps all on to the end of the text.
    pub(crate) fn advance(&mut self, view: View<'_>) {
        let read = &mut self.read;
        self.live.retain_mut(|attempt| {
            let Some(nfa) = PREFILTER.automaton(attempt.rule) else { return false };
            attempt.growth.advance(nfa, view, view.end(), &mut attempt.close);
            let over = attempt.growth.is_over();
            if over {
                attempt.note(read);
            }
            !over
        });
    }

    /// Gives up what is under way at `end`, as what has read up to there.
    pub(crate) fn end(&mut self, end: usize) {
        for attempt in self.live.drain(..) {
            join(&mut self.read, attempt.start..end);
        }
    }

    /// The last place up to `at` that is not inside of what is under way, or has been read.
    pub(crate) fn outside(&self, at: usize) -> usize {
        let at = self.live.iter().fold(at, |at, attempt| at.min(attempt.start));
        outside(&self.read, at)
    }

    /// Where what has been read begins that ends behind `from` and not behind `to`.
    pub(crate) fn read_within(&self, from: usize, to: usize) -> Option<usize> {
        let place = self.read.partition_point(|read| read.end <= from);
        self.read.get(place).filter(|read| read.end <= to).map(|read| read.start)
    }

    /// Forgets what was read before `upto`.
    pub(crate) fn forget(&mut self, upto: usize) {
        if !self.read.is_empty() {
            self.read.retain(|read| read.end > upto);
        }
    }
}

impl Attempt {
    /// Adds an attempt that began earlier than this stands now.
    fn join(&mut self, nfa: &NFA, view: View<'_>, start: usize, at: usize) {
        let mut growth = Growth::new(at);
        growth.begin(nfa, view, start, &mut self.close);
        growth.advance(nfa, view, self.growth.at(), &mut self.close);
        self.start = self.start.min(start);
        self.growth.absorb(growth);
    }

    /// Begins anew.
    fn renew(&mut self, start: usize, at: usize) {
        self.growth.restart(at);
        self.start = start;
        self.close = Close(None);
    }

    /// Notes what has been read, if it came close.
    fn note(&self, read: &mut Vec<Range<usize>>) {
        if let Close(Some(close)) = self.close {
            join(read, self.start..self.growth.at().max(close));
        }
    }
}
