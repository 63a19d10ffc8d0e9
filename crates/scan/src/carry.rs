//! Secrets in a text that still grows.

use std::ops::Range;

use crate::assignment::{PlainName, REACH, joins, name_before};
use crate::attempts::Attempts;
use crate::find::{find, lead_start, starts_well};
use crate::growth::View;
use crate::prefilter::{Hit, PREFILTER};
use crate::rule::{Place, Rule};
use crate::rules::rules;
use crate::run::{MIN_RUN, Runs, is_token};
use crate::settled::{HOLD_LIMIT, Settled, is_closed, is_plain};

/// What is kept before the first byte that is not settled, at least: no search looks farther back.
const KEPT: usize = 128;

/// What is settled is thrown away when it is more than this.
const KEPT_MOST: usize = 2048;

/// How much of a token stands, at most, before its literal does: what its rule wants before the literal, and the literal.
/// A test holds the table to it.
pub(crate) const LEAD: usize = 80;

/// The longest literal. A test holds the table to it.
pub(crate) const LITERAL: usize = 32;

/// Tells of a growing text how far it is settled what [`find`](crate::find()) finds in it and
/// [`redact`](crate::redact()) replaces.
///
/// Text leaves in segments, each up to [`Settled::upto`]. One that is not clean is redacted first, behind the
/// [`context`](crate::context()) that what has left gives it. Then all that leaves is what redacting the whole text gives,
/// however it was split, and no byte of a secret leaves before the secret is known.
///
/// Held back is the last word; what the pattern of a rule has begun to fit, from where it began; and a secret for up to
/// 80 bytes, as long as it may be part of the name of a value. A private key is held from `-----BEGIN` on. Memory is what
/// is held, at most [`HOLD_LIMIT`] bytes and one push, and some 2 KiB before it.
#[derive(Debug, Default)]
pub struct Carry {
    /// What is held, and at least [`KEPT`] bytes before it.
    text: String,
    /// The offset of its first byte. All offsets are absolute.
    base: usize,
    upto: usize,
    too_long: bool,
    /// Where the token characters begin at the end of the text.
    run: usize,
    /// The runs before have been looked at.
    seen: usize,
    /// The first place in the last [`LEAD`] bytes of that run where a token may begin.
    word: usize,
    attempts: Attempts,
    /// What was found and may not leave yet.
    found: Vec<Range<usize>>,
    /// What patterns have read before has been searched.
    searched: usize,
}

impl Carry {
    /// The beginning of a text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what follows; `ended` if nothing follows on that. If something does after all, it is a new text that has the
    /// old one before it.
    pub fn push(&mut self, more: &str, ended: bool) -> Settled {
        if !self.too_long {
            let before = self.end();
            self.text.push_str(more);
            self.begin(before);
            let upto = if ended { self.finish() } else { self.settled() };
            return self.settle(upto);
        }
        Settled { upto: self.upto, clean: false, too_long: true }
    }

    /// Whether `held`, what is not settled, is more than a last word that may be anything: a prefix stands in it, or it is
    /// the beginning of one, or a name stands before it that is a secret's.
    #[must_use]
    pub fn has_begun(&self, held: &str) -> bool {
        let is_named = || {
            let name = name_before(self.text.as_bytes(), self.run.saturating_sub(self.base));
            name.is_some_and(|name| PREFILTER.keywords.overlapping(PlainName::new(name).as_bytes()).next().is_some())
        };
        !is_plain(held)
            || !self.attempts.is_idle()
            || !self.found.is_empty()
            || self.is_prefixed()
            || self.is_opened()
            || (self.run < self.end() && is_named())
    }

    /// Whether a secret may begin with `held`, what is not settled: unless it is a word that ends a sentence.
    #[must_use]
    pub fn may_begin(&self, held: &str) -> bool {
        !is_closed(held) || self.has_begun(held)
    }

    /// Whether a token has begun in the last run, which need not be long enough for one yet. A word that happens to begin
    /// like one, as `pattern`, is a word.
    fn is_prefixed(&self) -> bool {
        let run = self.view().from(self.run);
        let mut hits = PREFILTER.prefixes.overlapping(run);
        hits.any(|Hit { start, end, .. }| {
            let (literal, rest) = (run.get(start..end).unwrap_or_default(), run.get(end..).unwrap_or_default());
            let is_word =
                !rest.is_empty() && rest.iter().all(|byte| byte.is_ascii_lowercase() || b".!?".contains(byte));
            starts_well(run, start) && !(is_word && literal.iter().all(u8::is_ascii_alphabetic))
        })
    }

    /// Whether the last word is the beginning of a prefix.
    fn is_opened(&self) -> bool {
        let run = self.view().from(self.run);
        let words = (run.len().saturating_sub(LITERAL)..run.len()).filter(|&at| starts_well(run, at));
        words.filter_map(|at| run.get(at..)).any(|word| {
            let first = |rule: &&Rule| rule.place == Place::Run && rule.lead.is_none();
            let prefixes = rules().filter(first).flat_map(|rule| rule.literals);
            prefixes.map(|prefix| prefix.as_bytes()).any(|prefix| prefix.len() > word.len() && prefix.starts_with(word))
        })
    }

    fn end(&self) -> usize {
        self.base + self.text.len()
    }

    fn view(&self) -> View<'_> {
        View { text: self.text.as_bytes(), base: self.base, ended: false }
    }

    /// Begins patterns where their literals stand, as `find` does, and steps all on. From `before` on the text is new.
    ///
    /// A few words bring nothing: what they need is in one place, and all else is called.
    fn begin(&mut self, before: usize) {
        let from = self.seen.saturating_sub(LITERAL).max(self.run);
        if self.end() - from >= MIN_RUN {
            self.tokens(from);
        }
        if self.end() - before >= LITERAL || PREFILTER.ends_anchor(self.text.as_bytes(), before - self.base) {
            self.anchors(before);
        }
        let view = View { text: self.text.as_bytes(), base: self.base, ended: false };
        if !self.attempts.is_idle() {
            self.attempts.advance(view);
        }
        if let Some(at) = view.from(before).iter().rposition(|&byte| !is_token(byte)) {
            self.run = before + at + 1;
        }
        self.seen = if view.end() - self.run >= MIN_RUN { view.end() } else { self.run };
    }

    /// The rules of the runs that are new or have grown.
    #[inline(never)]
    fn tokens(&mut self, from: usize) {
        let view = View { text: self.text.as_bytes(), base: self.base, ended: false };
        for run in Runs::new(view.from(from)) {
            let start = from + run.start;
            for hit in PREFILTER.prefixes.overlapping(view.from(from).get(run).unwrap_or_default()) {
                let hit = Hit { start: hit.start + start, end: hit.end + start, ..hit };
                if hit.end > self.seen {
                    self.attempts.begin(view, self.upto, hit);
                }
            }
            if start < self.seen {
                continue; // it has grown; what it is the value of is known
            }
            let Some(name) = name_before(view.text, start - view.base) else { continue };
            for hit in PREFILTER.keywords.overlapping(PlainName::new(name).as_bytes()) {
                self.attempts.begin(view, self.upto, Hit { start, end: start, ..hit });
            }
        }
    }

    /// The rules of the anchors that the text from `before` on completes.
    #[inline(never)]
    fn anchors(&mut self, before: usize) {
        let view = View { text: self.text.as_bytes(), base: self.base, ended: false };
        let from = before.saturating_sub(LITERAL).max(self.base);
        if !PREFILTER.anchors.stand_in(view.from(from)) {
            return;
        }
        for hit in PREFILTER.anchors.apart(view.from(from)) {
            let hit = Hit { start: hit.start + from, end: hit.end + from, ..hit };
            if hit.end > before {
                self.attempts.begin(view, self.upto, hit);
            }
        }
    }

    /// Up to where the text is settled while more may come.
    fn settled(&mut self) -> usize {
        let at = self.begun();
        if self.attempts.is_idle() && self.found.is_empty() { at } else { self.attempted(at) }
    }

    /// The same of a text in which patterns have begun.
    #[inline(never)]
    fn attempted(&mut self, at: usize) -> usize {
        let mut at = self.attempts.outside(at);
        self.search(at);
        loop {
            let joined = self.found.iter().find(|found| found.start < at && self.names(found.end, at));
            let next = self.attempts.outside(joined.map_or(at, |found| found.start));
            if next == at {
                return at;
            }
            at = next;
        }
    }

    /// Where the first token or anchor may have begun whose literal does not stand yet.
    fn begun(&mut self) -> usize {
        let view = View { text: self.text.as_bytes(), base: self.base, ended: false };
        let end = view.end();
        self.word = self.word.max(self.run).max(end.saturating_sub(LEAD));
        while self.word < end && !starts_well(view.text, self.word - self.base) {
            self.word += 1;
        }
        if PREFILTER.may_open(view.text) { self.opened() } else { self.word }
    }

    /// The same where the text ends as the beginning of an anchor may.
    #[inline(never)]
    fn opened(&self) -> usize {
        let view = self.view();
        // Where the whole run is held, so is what has opened in it.
        let in_run = (self.word > self.run).then_some(&PREFILTER.openings_in_runs);
        let mut begun = self.word;
        for openings in [Some(&PREFILTER.openings), in_run].into_iter().flatten() {
            for opening in openings.at_end(view.text) {
                let anchor = view.text.len() - opening.bytes.len();
                let start = lead_start(view.text, opening.rule.lead.as_ref(), anchor);
                begun = start.map_or(begun, |start| begun.min(start + view.base));
            }
        }
        begun
    }

    /// Whether what ends at `end` may be part of the name of a value that begins at `at` or behind it.
    fn names(&self, end: usize, at: usize) -> bool {
        let Some(between) = at.checked_sub(end) else { return true };
        between < REACH && self.view().from(end).iter().take(between).all(|&byte| joins(byte))
    }

    /// All is settled, for nothing follows.
    #[cold]
    fn finish(&mut self) -> usize {
        let end = self.end();
        self.attempts.end(end);
        self.search(end);
        (self.run, self.seen) = (end, end);
        end
    }

    /// Finds what is in the part up to `at` that patterns have read.
    fn search(&mut self, at: usize) {
        let Some(from) = self.attempts.read_within(self.searched, at) else { return };
        self.searched = at;
        self.found.retain(|found| found.end <= from);
        let text = self.text.get(..at.saturating_sub(self.base)).unwrap_or(&self.text);
        let found = find(text).into_iter().map(|found| found.range.start + self.base..found.range.end + self.base);
        self.found.extend(found.filter(|found| found.end > from));
    }

    /// Moves on to `upto`, and says what that means.
    fn settle(&mut self, upto: usize) -> Settled {
        let upto = self.base + self.text.floor_char_boundary(upto.saturating_sub(self.base));
        self.upto = self.upto.max(upto);
        let clean = self.found.is_empty() || self.leave();
        self.attempts.forget(self.upto);
        self.too_long = self.end() - self.upto > HOLD_LIMIT;
        if self.upto - self.base > KEPT_MOST {
            self.throw_away();
        }
        Settled { upto: self.upto, clean, too_long: self.too_long }
    }

    /// What was found and is settled leaves; says whether there is none.
    #[cold]
    fn leave(&mut self) -> bool {
        let found = self.found.len();
        self.found.retain(|found| found.start >= self.upto);
        self.found.len() == found
    }

    #[cold]
    fn throw_away(&mut self) {
        let away = self.text.floor_char_boundary(self.upto - self.base - KEPT);
        self.text.drain(..away);
        self.base += away;
    }
}
