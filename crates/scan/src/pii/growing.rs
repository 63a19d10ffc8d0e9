//! Following a text that is still being written.

use super::search::{Found, search};
use super::text::Text;
use super::{KINDS, Kinds};
use crate::{Settled, is_plain};

/// How much of what is settled is kept: finders look back so far, in bytes.
const BACK: usize = 64;

/// A growing text, and how far it is settled.
///
/// Nothing is ever too long: the longest value has some four hundred bytes.
///
/// ```
/// use gatehook_scan::pii::{Growing, Kinds};
///
/// let mut growing = Growing::new(Kinds::ALL);
/// assert_eq!(growing.push("write to jane@exam", false).upto, 9);
/// let settled = growing.push("ple.com, please", true);
/// assert_eq!((settled.upto, settled.clean), (33, false));
/// ```
#[derive(Debug)]
pub struct Growing {
    kinds: Kinds,
    /// The last of what is settled, and all that is not.
    text: String,
    /// Where `text` begins in all that came.
    base: usize,
    /// Where what is not settled begins in `text`.
    settled: usize,
    /// Where values end in what is settled and kept.
    borders: Vec<usize>,
}

impl Growing {
    /// Nothing has come yet.
    #[must_use]
    pub fn new(kinds: Kinds) -> Self {
        Self { kinds, text: String::new(), base: 0, settled: 0, borders: Vec::new() }
    }

    /// More of the text; `ended`: nothing follows.
    pub fn push(&mut self, more: &str, ended: bool) -> Settled {
        self.text.push_str(more);
        let text = Text::new(&self.text, ended);
        let Found { findings, open } = search(&text, self.settled, &self.borders, self.kinds);
        let mut upto = if ended { open } else { open.min(self.begun(&text)) };
        // No value stands on both sides.
        let across = findings.iter().find(|found| found.range.start < upto && upto < found.range.end);
        upto = across.map_or(upto, |found| found.range.start).max(self.settled);
        let ends: Vec<usize> = findings.iter().map(|found| found.range.end).take_while(|&end| end <= upto).collect();
        let clean = ends.is_empty();
        self.borders.extend(ends);
        self.forget(upto);
        Settled { upto: self.base + self.settled, clean, too_long: false }
    }

    /// Whether `held`, what is not settled, is more than a last word that may be anything: it may be the first group of a
    /// number or of an IP address, or a country's letters. Any word may be the beginning of an e-mail address.
    #[must_use]
    pub fn has_begun(&self, held: &str) -> bool {
        !is_plain(held) || self.has_opened()
    }

    fn has_opened(&self) -> bool {
        let text = Text::new(&self.text, false);
        let (text, end) = (text.with_borders(&self.borders), self.text.len());
        let mut kinds = KINDS.iter().enumerate().filter(|(index, kind)| self.kinds.has(*index) && kind.name != "email");
        kinds.any(|(_, kind)| {
            let begun = (kind.begun)(&text, end);
            let held = self.text.get(begun..).unwrap_or_default();
            let is_word = kind.name == "iban" && held.contains(|char: char| char.is_ascii_lowercase()); // `so`, `it`
            !held.is_empty() && !is_word && !text.is_after_word(begun)
        })
    }

    /// Where a value may have begun that nothing shows yet.
    fn begun(&self, text: &Text<'_>) -> usize {
        let end = self.text.len();
        let kinds = KINDS.iter().enumerate().filter(|(index, _)| self.kinds.has(*index));
        kinds.map(|(_, kind)| (kind.begun)(text, end)).min().unwrap_or(end)
    }

    /// Everything up to `upto` is settled, and little of it is still needed.
    fn forget(&mut self, upto: usize) {
        let gone = self.text.floor_char_boundary(upto.saturating_sub(BACK));
        self.text.drain(..gone);
        self.borders.retain(|&border| border > gone);
        self.borders.iter_mut().for_each(|border| *border -= gone);
        self.base += gone;
        self.settled = upto - gone;
    }
}
