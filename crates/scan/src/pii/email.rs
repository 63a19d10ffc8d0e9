//! Email addresses.

use super::search::Attempt;
use super::text::Text;

/// Bytes of the part before the `@` (RFC 5321 says 64; addresses for replies have more). Of a longer one the end.
const LOCAL: usize = 128;
/// Bytes of a label, and of a whole name (RFC 1035).
const LABEL: usize = 63;
const DOMAIN: usize = 253;

/// Ends of file and unit names that have an `@` in them: `icon@2x.png`, `getty@tty1.service`.
const FILES: [&str; 12] =
    ["png", "jpg", "jpeg", "gif", "svg", "webp", "tgz", "service", "socket", "timer", "mount", "slice"];

/// The address around the `@` at `at`.
pub(super) fn find(text: &Text<'_>, at: usize) -> Option<Attempt> {
    let run = local_start(text, at);
    let start = text.head(at).get(run..)?.find(|c: char| is_letter(c) || c == '_').map(|skip| run + skip)?;
    // `git@` is how one signs in to a forge, and nobody's address.
    let is_login = text.head(at).get(start..) == Some("git");
    let end = if is_login { None } else { domain_end(text, at + 1) };
    Some(Attempt { start, end })
}

/// Where the part that may stand before an `@` at `at` begins, if one came.
pub(super) fn local_start(text: &Text<'_>, at: usize) -> usize {
    let (mut start, mut behind) = (at, '@');
    for char in text.head(at).chars().rev() {
        let from = start - char.len_utf8();
        if !is_local(char) || (char == '.' && behind == '.') || at - from > LOCAL {
            break;
        }
        (start, behind) = (from, char);
    }
    // The letter of an escape, as in `\n`, is none of the address.
    let escape = text.before(start) == Some(b'\\') && text.head(at).get(start..).is_some_and(begins_as_escape);
    if escape && start + 1 < at { start + 1 } else { start }
}

fn begins_as_escape(text: &str) -> bool {
    text.starts_with(['n', 'r', 't'])
}

/// The end of the name of a host that has mail, from `start`: the longest whose last label can be a top-level domain.
fn domain_end(text: &Text<'_>, start: usize) -> Option<usize> {
    let (mut end, mut at) = (None, start);
    let (mut first, mut was_number) = (true, false);
    loop {
        let label = Label::read(text, at);
        if label.end == at || label.end - at > LABEL || label.end - start > DOMAIN || (was_number && label.is_number) {
            break;
        }
        if !first && label.letters_end > at && is_top_level(text.head(label.letters_end).get(at..).unwrap_or_default())
        {
            end = Some(label.letters_end);
        }
        // Two numbers in a row are a version: `package@1.2.3-beta.next`.
        if was_number && label.is_number {
            return None;
        }
        (first, was_number) = (false, label.is_number);
        if text.byte(label.end) != Some(b'.') {
            break;
        }
        at = label.end + 1;
    }
    end
}

/// A part of a host's name.
struct Label {
    end: usize,
    /// The end of the letters it begins with: a number that stands directly behind an address is none of it.
    letters_end: usize,
    is_number: bool,
}

impl Label {
    fn read(text: &Text<'_>, start: usize) -> Self {
        let (mut end, mut letters_end, mut only_letters, mut is_number) = (start, start, true, true);
        while let Some(char) = text.char(end).filter(|&c| is_letter(c) || (c == '-' && end > start)) {
            if end - start > LABEL {
                break;
            }
            only_letters &= char.is_alphabetic();
            is_number &= char.is_ascii_digit();
            end += char.len_utf8();
            if only_letters {
                letters_end = end;
            }
        }
        if text.head(end).get(start..).is_some_and(|label| label.starts_with("xn--") && !label.ends_with('-')) {
            letters_end = end;
        }
        Self { end, letters_end, is_number }
    }
}

fn is_top_level(label: &str) -> bool {
    label.chars().count() >= 2 && !FILES.iter().any(|file| label.eq_ignore_ascii_case(file))
}

/// Letters and digits of the scripts that put spaces between words. Others stand directly beside an address that is
/// none of theirs, as in `请联系me@example.com。`
fn is_letter(char: char) -> bool {
    char.is_ascii_alphanumeric() || (matches!(char, '\u{c0}'..='\u{52f}') && char.is_alphabetic())
}

fn is_local(char: char) -> bool {
    is_letter(char) || "._%+-'".contains(char)
}
