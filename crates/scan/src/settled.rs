//! How far a text that still grows is settled, and what may go on behind what interrupts it.

/// Bytes of a match that still grows, beyond which it is not waited for.
pub const HOLD_LIMIT: usize = 256 * 1024;

/// What is known of a text after more of it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settled {
    /// Everything before this offset is settled: no continuation changes what is found in it, or lets a match begin in it
    /// and end behind it. In bytes of all that was pushed, on a character boundary; it never falls.
    pub upto: usize,
    /// Nothing was found in what has newly been settled.
    pub clean: bool,
    /// A match has grown over [`HOLD_LIMIT`] and is not waited for: whoever holds the text for it refuses.
    pub too_long: bool,
}

/// The longest word that is taken for one, in bytes.
const WORD: usize = 24;

/// How many digits a word or number may have: with more it may be half of something longer.
const DIGITS: usize = 4;

/// Whether `held`, the end of a text, is no more than what any text may end in: a word, or a short number that a sentence
/// ends with.
///
/// ```
/// use gatehook_scan::is_plain;
///
/// assert!(is_plain("well-known.\n") && is_plain("3.14.") && is_plain("naïve”") && is_plain("so"));
/// assert!(!is_plain("4111") && !is_plain("4111 11.") && !is_plain("jane.doe") && !is_plain("the golden"));
/// ```
#[must_use]
pub fn is_plain(held: &str) -> bool {
    let (word, is_closed) = word(held);
    let is_number = !word.contains(char::is_alphabetic);
    let joins: &[char] = if is_number { &['.', ','] } else { &['-', '\'', '’'] };
    let is_chain = is_number && word.matches(joins).count() > 1; // as in `192.168.0`
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let is_short = word.len() <= WORD && !is_chain && (digits == 0 || (is_closed && digits <= DIGITS));
    let is_word = |part: &str| !part.is_empty() && part.chars().all(char::is_alphanumeric);
    word.is_empty() || (is_short && word.split(joins).all(is_word))
}

/// Whether `held`, the end of a text, ends a sentence or a part of one.
pub(crate) fn is_closed(held: &str) -> bool {
    word(held).1
}

/// What stands before the signs that a text may end in, and whether one of them ends a sentence or a part of one.
fn word(held: &str) -> (&str, bool) {
    let closes = |char: char| char.is_whitespace() || ".,;:!?…)]}\"'*`”’»。！？".contains(char);
    let word = held.trim_end_matches(closes);
    let ends = |char: char| !char.is_whitespace() && char != ':'; // as in `2001:db8::`
    (word, held.get(word.len()..).is_some_and(|rest| rest.contains(ends)))
}
