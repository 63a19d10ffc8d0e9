//! Which rules are worth trying where.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError, Match, MatchKind};
use regex::bytes::{Regex, RegexBuilder};
use regex_automata::nfa::thompson::{NFA, WhichCaptures};
use regex_automata::util::syntax;

use crate::rule::{Place, Rule};
use crate::rules::rules;
use crate::run::is_token;

/// The literals of the whole table, built at first use.
pub(crate) static PREFILTER: LazyLock<Prefilter> = LazyLock::new(Prefilter::new);

/// The literals by the place where they count, and the patterns, each compiled when it is first needed.
pub(crate) struct Prefilter {
    pub(crate) prefixes: Literals,
    pub(crate) anchors: Literals,
    /// The same, for few bytes: by their last byte, and whether there are any of it.
    by_end: Openings,
    ends: Bytes,
    ending: Pairs,
    pub(crate) keywords: Literals,
    /// How anchors begin: every proper beginning of one, those of token characters alone apart.
    pub(crate) openings: Openings,
    pub(crate) openings_in_runs: Openings,
    /// The last two bytes of those of both kinds.
    opening: Pairs,
    patterns: Vec<OnceLock<Option<Regex>>>,
    automata: Vec<OnceLock<Option<NFA>>>,
}

/// Anchors, or beginnings of them, by their last byte: nearly no text ends like one.
pub(crate) struct Openings(Vec<Vec<Opening>>);

impl Openings {
    fn new(all: Vec<Opening>) -> Self {
        let mut by_last: Vec<_> = std::iter::repeat_with(Vec::new).take(256).collect();
        for opening in all {
            let last = opening.bytes.last().and_then(|&last| by_last.get_mut(usize::from(last)));
            if let Some(openings) = last {
                openings.push(opening);
            }
        }
        Self(by_last)
    }

    /// Those that end as `text` does.
    pub(crate) fn at_end(&self, text: &[u8]) -> impl Iterator<Item = &Opening> {
        let of = text.last().and_then(|&last| self.0.get(usize::from(last)));
        of.map_or(&[][..], Vec::as_slice).iter().filter(|opening| text.ends_with(opening.bytes))
    }
}

/// An anchor of `rule`, or a proper beginning of one.
pub(crate) struct Opening {
    pub(crate) bytes: &'static [u8],
    pub(crate) rule: &'static Rule,
}

/// A set of bytes.
struct Bytes([u64; 4]);

impl Bytes {
    fn of(all: impl Iterator<Item = u8>) -> Self {
        let mut words = [0; 4];
        for byte in all {
            words.iter_mut().skip(usize::from(byte >> 6)).take(1).for_each(|word| *word |= 1 << (byte & 63));
        }
        Self(words)
    }

    fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte >> 6)).is_some_and(|word| word & (1 << (byte & 63)) != 0)
    }
}

/// Pairs of bytes. Looked up before anything else is: most ends of texts need no more memory than one of its words.
struct Pairs(Vec<u64>);

impl Pairs {
    /// The last two bytes of each of these; before a single one anything may stand.
    fn ends(all: impl Iterator<Item = &'static [u8]>) -> Self {
        let mut pairs = Self(vec![0; 1 << 10]);
        for end in all {
            match *end {
                [.., before, last] => pairs.add(before, last),
                [last] => (0..=u8::MAX).for_each(|before| pairs.add(before, last)),
                [] => {}
            }
        }
        pairs
    }

    /// Those of one last byte stand apart, those of letters before it together.
    fn place(before: u8, last: u8) -> (usize, u64) {
        (usize::from(last) << 2 | usize::from(before >> 6), 1 << (before & 63))
    }

    fn add(&mut self, before: u8, last: u8) {
        let (place, bit) = Self::place(before, last);
        self.0.iter_mut().skip(place).take(1).for_each(|word| *word |= bit);
    }

    /// Whether `text` may end as one of them.
    fn may_end(&self, text: &[u8]) -> bool {
        let [.., before, last] = *text else { return true };
        let (place, bit) = Self::place(before, last);
        self.0.get(place).is_none_or(|word| word & bit != 0)
    }
}

impl Prefilter {
    fn new() -> Self {
        let (openings_in_runs, openings): (Vec<_>, Vec<_>) =
            openings().partition(|one| one.bytes.iter().all(|&byte| is_token(byte)));
        Self {
            prefixes: Literals::new(Place::Run),
            anchors: Literals::new(Place::Text),
            by_end: Openings::new(anchors().map(|(rule, bytes)| Opening { bytes, rule }).collect()),
            ends: Bytes::of(anchors().filter_map(|(_, anchor)| anchor.last().copied())),
            ending: Pairs::ends(anchors().map(|(_, anchor)| anchor)),
            keywords: Literals::new(Place::Name),
            openings: Openings::new(openings),
            openings_in_runs: Openings::new(openings_in_runs),
            opening: Pairs::ends(self::openings().map(|opening| opening.bytes)),
            patterns: rules().map(|_| OnceLock::new()).collect(),
            automata: rules().map(|_| OnceLock::new()).collect(),
        }
    }

    /// Whether an anchor ends in `text` behind `before`, which is asked of a few bytes.
    pub(crate) fn ends_anchor(&self, text: &[u8], before: usize) -> bool {
        let stands = |text: &[u8]| self.ending.may_end(text) && self.by_end.at_end(text).next().is_some();
        let mut new = text.iter().enumerate().skip(before);
        new.any(|(at, &byte)| self.ends.has(byte) && stands(text.get(..=at).unwrap_or(text)))
    }

    /// Whether `text` may end in the beginning of an anchor.
    pub(crate) fn may_open(&self, text: &[u8]) -> bool {
        self.opening.may_end(text)
    }

    /// The pattern of `rule`, anchored at its beginning. That there is one for every rule is tested, not checked here.
    pub(crate) fn pattern(&self, rule: RuleRef) -> Option<&Regex> {
        self.patterns.get(rule.index)?.get_or_init(|| compile(rule.rule).ok()).as_ref()
    }

    /// The same pattern as an automaton, to be stepped.
    pub(crate) fn automaton(&self, rule: RuleRef) -> Option<&NFA> {
        self.automata.get(rule.index)?.get_or_init(|| automaton(rule.rule)).as_ref()
    }
}

fn anchors() -> impl Iterator<Item = (&'static Rule, &'static [u8])> {
    let anchors = rules().filter(|rule| rule.place == Place::Text);
    anchors.flat_map(|rule| rule.literals.iter().map(move |anchor| (rule, anchor.as_bytes())))
}

fn openings() -> impl Iterator<Item = Opening> {
    anchors().flat_map(|(rule, anchor)| {
        (1..anchor.len()).filter_map(move |len| Some(Opening { bytes: anchor.get(..len)?, rule }))
    })
}

/// Compiles the pattern of `rule`: bytes, ASCII classes, anchored; that of a token not to end inside a word.
pub(crate) fn compile(rule: &Rule) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&format!(r"\A{}", expression(rule))).unicode(false).build()
}

fn automaton(rule: &Rule) -> Option<NFA> {
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    let config = NFA::config().utf8(false).which_captures(WhichCaptures::None);
    NFA::compiler().syntax(syntax).configure(config).build(&expression(rule)).ok()
}

fn expression(rule: &Rule) -> String {
    let end = if rule.place == Place::Run { r"(?:\b{end-half}|\b{start})" } else { "" };
    format!("(?:{}){end}", rule.pattern)
}

/// A rule and its index in the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuleRef {
    pub(crate) index: usize,
    pub(crate) rule: &'static Rule,
}

/// An occurrence of a rule's literal, in bytes of what was searched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub(crate) rule: RuleRef,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// All literals of one place as one automaton.
pub(crate) struct Literals {
    /// There always is one: the table is constant, and its tests find every rule by it.
    automaton: Option<AhoCorasick>,
    /// By pattern number of the automaton: the rules that have this literal.
    rules: Vec<Vec<RuleRef>>,
}

impl Literals {
    fn new(place: Place) -> Self {
        let mut by_literal: BTreeMap<&str, Vec<RuleRef>> = BTreeMap::new();
        for (index, rule) in rules().enumerate().filter(|(_, rule)| rule.place == place) {
            for literal in rule.literals {
                by_literal.entry(literal).or_default().push(RuleRef { index, rule });
            }
        }
        let literals: Vec<&str> = by_literal.keys().copied().collect();
        Self { automaton: build(place, &literals).ok(), rules: by_literal.into_values().collect() }
    }

    /// Every occurrence in `text`, overlapping ones too, in the order of their ends.
    pub(crate) fn overlapping<'s>(&'s self, text: &'s [u8]) -> impl Iterator<Item = Hit> + 's {
        let hits = self.automaton.iter().flat_map(move |automaton| automaton.find_overlapping_iter(text));
        hits.flat_map(|hit| self.hits(hit))
    }

    /// Whether there is any in `text`, as there seldom is.
    pub(crate) fn stand_in(&self, text: &[u8]) -> bool {
        self.automaton.as_ref().is_some_and(|automaton| automaton.is_match(text))
    }

    /// Every occurrence in `text` from left to right.
    pub(crate) fn apart<'s>(&'s self, text: &'s [u8]) -> impl Iterator<Item = Hit> + 's {
        let hits = self.automaton.iter().flat_map(move |automaton| automaton.find_iter(text));
        hits.flat_map(|hit| self.hits(hit))
    }

    fn hits(&self, hit: Match) -> impl Iterator<Item = Hit> + '_ {
        let rules = self.rules.get(hit.pattern().as_usize()).map_or(&[][..], Vec::as_slice);
        rules.iter().map(move |&rule| Hit { rule, start: hit.start(), end: hit.end() })
    }
}

/// Anchors never overlap and are searched for in everything: a leftmost search may skip with vector instructions.
/// Prefixes and keywords may overlap, and are searched for in little.
fn build(place: Place, literals: &[&str]) -> Result<AhoCorasick, BuildError> {
    let kind = if place == Place::Text { MatchKind::LeftmostFirst } else { MatchKind::Standard };
    AhoCorasick::builder().match_kind(kind).kind(Some(AhoCorasickKind::DFA)).build(literals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_anchor_and_no_beginning_of_one_is_passed_over_whatever_stands_before_it() {
        for before in 0..=u8::MAX {
            for (_, anchor) in anchors() {
                let text = [&[before], anchor].concat();
                assert!(PREFILTER.ends_anchor(&text, text.len() - 1), "{anchor:?} behind {before}");
            }
            for Opening { bytes, .. } in openings() {
                assert!(PREFILTER.may_open(&[&[before], bytes].concat()), "{bytes:?} behind {before}");
            }
        }
        assert!(!PREFILTER.may_open(b"the river") && !PREFILTER.ends_anchor(b"the river", 4));
    }
}
