//! What a word before a number says of it.

use super::text::Text;

/// How far before a number its words are looked at, in bytes.
pub(super) const NEAR: usize = 32;

/// Whether one of `words` (lower case) stands in the [`NEAR`] bytes before `at`, on the same line.
pub(super) fn stand_before(text: &Text<'_>, at: usize, words: &[&str]) -> bool {
    let head = text.head(at);
    // A word that is cut at the edge is none.
    let edge = head.floor_char_boundary(at.saturating_sub(NEAR));
    let near = head.get(edge..).unwrap_or_default();
    let near = near.rsplit('\n').next().unwrap_or_default();
    let is_cut = near.len() == head.len() - edge
        && head.get(..edge).is_some_and(|before| before.ends_with(char::is_alphanumeric));
    let mut parts = near.split(|c: char| !c.is_alphanumeric());
    if is_cut {
        parts.next();
    }
    parts.any(|part| words.iter().any(|word| part.eq_ignore_ascii_case(word)))
}
