//! Escapes of JSON strings, both ways.

use std::borrow::Cow;
use std::fmt::Write;

use super::reader::plain_run;

/// The character of a `\u` escape and the bytes it takes; `text` begins with the `u`. None for half of a surrogate
/// pair and for what is no escape.
pub(super) fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let first = hex(text.get(1..5)?)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, 5));
    }
    let rest = text.get(5..11)?;
    let second = hex(rest.strip_prefix(b"\\u")?)?;
    if !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?, 11))
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}

/// The text of a string's inside, which the reader has checked.
pub(super) fn unescape(inside: &str) -> Cow<'_, str> {
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    loop {
        // Of what ends a run, only a backslash stands here: the reader has seen to that.
        let run = plain_run(rest.as_bytes());
        text.push_str(rest.get(..run).unwrap_or_default());
        let Some(escape) = rest.get(run + 1..) else { return Cow::Owned(text) };
        let (character, length) = match escape.as_bytes().first() {
            Some(b'b') => ('\u{8}', 1),
            Some(b'f') => ('\u{c}', 1),
            Some(b'n') => ('\n', 1),
            Some(b'r') => ('\r', 1),
            Some(b't') => ('\t', 1),
            Some(b'u') => unicode(escape.as_bytes()).unwrap_or((char::REPLACEMENT_CHARACTER, 1)),
            Some(other) => (char::from(*other), 1),
            None => return Cow::Owned(text),
        };
        text.push(character);
        rest = escape.get(length..).unwrap_or_default();
    }
}

/// `text` as a JSON string, escaping only what must be.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
