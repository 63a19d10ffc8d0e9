//! What a segment of a text is to be seen with.

use crate::find::find;

/// The most of a text that is shown before a segment of it, in bytes.
pub const CONTEXT: usize = 256;

/// The least that a search looks back, if there is so much.
const NEEDED: usize = 96;

/// The end of what has left of a text that is shown before the next segment, so that [`redact`](crate::redact()) does
/// with both what it does with the whole text: at most [`CONTEXT`] bytes.
///
/// Names of values are looked for that far back. It begins with a word, and in it alone nothing is found: a text cut in
/// the middle of a word may show what the whole does not. (A context that is cut anywhere, is longer, or is not redacted
/// costs no more than that: something may be redacted that is no secret; none is missed.)
#[must_use]
pub fn context(left: &str) -> &str {
    let first = left.ceil_char_boundary(left.len().saturating_sub(CONTEXT));
    let last = left.floor_char_boundary(left.len().saturating_sub(NEEDED));
    let chars = || left.get(first..last).into_iter().flat_map(str::char_indices).map(|(at, char)| (first + at, char));
    let words = chars().filter(|(_, char)| char.is_whitespace()).map(|(at, char)| at + char.len_utf8());
    let starts = (first == 0).then_some(0).into_iter().chain(words).chain(chars().map(|(at, _)| at));
    let mut contexts = starts.filter_map(|at| left.get(at..));
    contexts.find(|context| find(context).is_empty()).or_else(|| left.get(last..)).unwrap_or_default()
}
