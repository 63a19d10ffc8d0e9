//! Regular expressions over a text that still grows.

use std::ops::Range;
use std::sync::Arc;

use regex_automata::nfa::thompson::{BuildError, NFA, State, WhichCaptures};
use regex_automata::util::primitives::PatternID;

use crate::apart::{join, outside};
use crate::growth::{Growth, View, Watch};
use crate::settled::{HOLD_LIMIT, Settled};

/// What is kept before the first byte that is not settled, at least: assertions look back by one character.
const KEPT: usize = 8;

/// What is settled is thrown away when it is more than this.
const KEPT_MOST: usize = 2048;

/// The most memory that all patterns may take together, in bytes; as the `regex` crate has it.
const SIZE: usize = 10 << 20;

/// Patterns that are no regular expressions, or too large.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(#[from] Box<BuildError>);

/// Regular expressions to be looked for in growing texts, in the syntax of the `regex` crate.
#[derive(Debug)]
pub struct Patterns {
    nfa: NFA,
    /// By byte, whether a match may begin with it.
    first: [bool; 256],
}

impl Patterns {
    /// Compiles `patterns`.
    ///
    /// # Errors
    ///
    /// If one is not a regular expression.
    pub fn new<P: AsRef<str>>(patterns: &[P]) -> Result<Arc<Self>, PatternError> {
        let config = NFA::config().which_captures(WhichCaptures::None).nfa_size_limit(Some(SIZE));
        let nfa = NFA::compiler().configure(config).build_many(patterns).map_err(Box::new)?;
        let first = first_bytes(&nfa);
        Ok(Arc::new(Self { nfa, first }))
    }
}

/// The bytes that a match may begin with; all, if one may be empty.
fn first_bytes(nfa: &NFA) -> [bool; 256] {
    let mut first = [false; 256];
    let mut seen = vec![false; nfa.states().len()];
    let mut stack = vec![nfa.start_anchored()];
    while let Some(state) = stack.pop() {
        if seen.get_mut(state.as_usize()).is_none_or(|seen| std::mem::replace(seen, true)) {
            continue;
        }
        match nfa.state(state) {
            State::Union { alternates } => stack.extend(alternates.iter()),
            State::BinaryUnion { alt1, alt2 } => stack.extend([*alt1, *alt2]),
            State::Capture { next, .. } | State::Look { next, .. } => stack.push(*next),
            State::Fail => {}
            State::Match { .. } => return [true; 256],
            consuming => {
                for (byte, first) in (0..=u8::MAX).zip(&mut first) {
                    *first |= crate::growth::target(consuming, byte).is_some();
                }
            }
        }
    }
    first
}

/// A match in a growing text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Which pattern matched, from 0.
    pub pattern: usize,
    /// Where the match begins.
    pub start: usize,
    /// Where it ends, as far as is known.
    pub end: usize,
}

/// Tells of a growing text how far it is settled what [`Patterns`] match in it.
///
/// Held back is what a match has begun to fit, from where the earliest began. What no pattern fits leaves at once.
/// Lookarounds see what they would in the whole text: `^` and `\A` its beginning, `$` and `\z` its end, `\b` the characters
/// on both sides, of any script. A pattern whose match has no end of its own (`(?s)draft.*`) holds the text until it ends;
/// that it matches [`Growing::found`] tells at once.
#[derive(Debug)]
pub struct Growing {
    patterns: Arc<Patterns>,
    /// What is held, and at least [`KEPT`] bytes before it.
    text: String,
    /// The offset of its first byte. All offsets are absolute.
    base: usize,
    upto: usize,
    too_long: bool,
    /// Matches have been begun everywhere before.
    at: usize,
    growth: Growth,
    matches: Matches,
}

/// What matched.
#[derive(Debug, Default)]
struct Matches {
    /// The match that begins first, and of those the one that ends last.
    first: Option<Found>,
    /// Where matches are; what overlaps is one.
    ranges: Vec<Range<usize>>,
    /// How far a match may look beyond its end, in bytes.
    ahead: usize,
}

impl Watch for Matches {
    fn matched(&mut self, pattern: PatternID, start: usize, end: usize) {
        if self.first.is_none_or(|first| (start, first.end) < (first.start, end)) {
            self.first = Some(Found { pattern: pattern.as_usize(), start, end });
        }
        join(&mut self.ranges, start..end + self.ahead);
    }

    fn hinges(&mut self, _: usize) {}
}

impl Growing {
    /// The beginning of a text.
    #[must_use]
    pub fn new(patterns: Arc<Patterns>) -> Self {
        let ahead = usize::from(!patterns.nfa.look_set_any().is_empty());
        let matches = Matches { ahead, ..Matches::default() };
        Self {
            patterns,
            text: String::new(),
            base: 0,
            upto: 0,
            too_long: false,
            at: 0,
            growth: Growth::new(0),
            matches,
        }
    }

    /// Takes what follows; `ended` if nothing follows on that. If something does after all, it is a new text that has the
    /// old one before it.
    pub fn push(&mut self, more: &str, ended: bool) -> Settled {
        if self.too_long {
            return Settled { upto: self.upto, clean: false, too_long: true };
        }
        self.text.push_str(more);
        self.advance(ended);
        if ended {
            self.growth.restart(self.at);
            return self.settle(self.at, ended);
        }
        let begun = self.growth.earliest().unwrap_or(self.at);
        self.settle(outside(&self.matches.ranges, begun), ended)
    }

    /// The match that begins first in what is not settled, or was settled by the last push; as long as it is by now.
    #[must_use]
    pub fn found(&self) -> Option<Found> {
        self.matches.first
    }

    /// Begins matches at each character that has come, and steps all on.
    fn advance(&mut self, ended: bool) {
        if self.matches.first.is_some_and(|first| first.start < self.upto) {
            self.matches.first = None;
        }
        let Patterns { nfa, first } = &*self.patterns;
        let view = View { text: self.text.as_bytes(), base: self.base, ended };
        self.growth.resolve(nfa, view, &mut self.matches);
        for &byte in view.from(self.at) {
            let begins = first.get(usize::from(byte)).is_some_and(|&first| first);
            if begins && !is_continuation(byte) {
                self.growth.stand(self.at);
                self.growth.begin(nfa, view, self.at, &mut self.matches);
            }
            if !self.growth.is_over() {
                self.growth.step(nfa, view, byte, &mut self.matches);
            }
            self.at += 1;
        }
        if ended {
            self.growth.stand(self.at);
            self.growth.begin(nfa, view, self.at, &mut self.matches);
        }
    }

    /// Moves on to `upto`, and says what that means; `all` if nothing follows.
    fn settle(&mut self, upto: usize, all: bool) -> Settled {
        self.upto = self.upto.max(upto);
        let open = |range: &Range<usize>| range.start >= self.upto && !all; // an empty match may begin at the end
        let clean = self.matches.ranges.iter().all(open);
        self.matches.ranges.retain(open);
        self.too_long = self.at - self.upto > HOLD_LIMIT;
        if self.upto - self.base > KEPT_MOST {
            let away = self.text.floor_char_boundary(self.upto - self.base - KEPT);
            self.text.drain(..away);
            self.base += away;
        }
        Settled { upto: self.upto, clean, too_long: self.too_long }
    }
}

/// Whether `byte` is inside of a character.
const fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}
