//! Halves of surrogate pairs.
//!
//! A server that counts in UTF-16 may cut a character in two: one frame ends a string with `\ud83d`, the next one begins
//! its string with `\ude00`. Neither is text, and what readers make of them differs. The first half is taken out of its
//! frame and joined with the second one, so that the later frame brings the whole character. A half without its other
//! half becomes U+FFFD, or nothing at the end of a string.

use std::collections::VecDeque;

use bytes::Bytes;
use memchr::memchr;

/// First halves that wait for their second.
#[derive(Debug, Default)]
pub(super) struct Mender {
    waiting: VecDeque<[u8; 6]>,
}

/// Halves that wait at most; there is one for each choice that is being cut.
const MOST: usize = 64;

impl Mender {
    /// JSON without halves.
    pub(super) fn mend(&mut self, data: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(data.len() + 6);
        let mut rest = data;
        while let Some(at) = memchr(b'\\', rest) {
            let (plain, escape) = rest.split_at(at);
            out.extend_from_slice(plain);
            let length = self.escape(escape, out.last() == Some(&b'"'), &mut out);
            rest = escape.get(length..).unwrap_or_default();
        }
        out.extend_from_slice(rest);
        out.into()
    }

    /// Writes the escape that `text` begins with, and says how long it is. `first`: it follows the opening quote.
    fn escape(&mut self, text: &[u8], first: bool, out: &mut Vec<u8>) -> usize {
        let half = |at: usize| text.get(at..at + 6).and_then(|escape| escape.try_into().ok()).and_then(Half::of);
        match (half(0), half(6)) {
            (Some(Half::First(_)), Some(Half::Second(_))) => {
                out.extend_from_slice(text.get(..12).unwrap_or_default());
                12
            }
            (Some(Half::First(escape)), _) if text.get(6) == Some(&b'"') => {
                self.waiting.push_back(escape);
                if self.waiting.len() > MOST {
                    self.waiting.pop_front();
                }
                6
            }
            (Some(Half::Second(escape)), _) if first && !self.waiting.is_empty() => {
                self.waiting.pop_front().into_iter().for_each(|half| out.extend_from_slice(&half));
                out.extend_from_slice(&escape);
                6
            }
            (Some(_), _) => {
                out.extend_from_slice(b"\\ufffd");
                6
            }
            (None, _) => {
                let length = text.len().min(2);
                out.extend_from_slice(text.get(..length).unwrap_or_default());
                length
            }
        }
    }
}

/// Half of a pair, as it is spelled.
enum Half {
    First([u8; 6]),
    Second([u8; 6]),
}

impl Half {
    fn of(escape: [u8; 6]) -> Option<Self> {
        match escape.map(|byte| byte.to_ascii_lowercase()) {
            [b'\\', b'u', b'd', b'8'..=b'9' | b'a'..=b'b', _, _] if escape[1] == b'u' => Some(Half::First(escape)),
            [b'\\', b'u', b'd', b'c'..=b'f', _, _] if escape[1] == b'u' => Some(Half::Second(escape)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_joined_where_the_second_one_stands() {
        for (frames, expected) in [
            (vec![r#"["a\ud83d"]"#, r#"["\ude00b"]"#], vec![r#"["a"]"#, r#"["\ud83d\ude00b"]"#]),
            (
                vec![r#"["\uD83D"]"#, r#"{"x":[]}"#, r#"["\uDE00"]"#],
                vec![r#"[""]"#, r#"{"x":[]}"#, r#"["\uD83D\uDE00"]"#],
            ),
            (vec![r#"["\ude00"]"#], vec![r#"["\ufffd"]"#]),
            (vec![r#"["\ud83dx\ude00"]"#], vec![r#"["\ufffdx\ufffd"]"#]),
            (vec![r#"["\ud83d\ude00","\\ud83d","\"\\"]"#], vec![r#"["\ud83d\ude00","\\ud83d","\"\\"]"#]),
            (vec![r#"["\ud83d\n"]"#, r#"["\"#], vec![r#"["\ufffd\n"]"#, r#"["\"#]),
        ] {
            let mut mender = Mender::default();
            let mended: Vec<Bytes> = frames.iter().map(|frame| mender.mend(frame.as_bytes())).collect();
            assert_eq!(mended, expected, "{frames:?}");
        }
    }
}
