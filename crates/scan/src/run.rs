//! Long runs of token characters, the places where secrets can be.

use std::ops::Range;

/// The shortest run that is looked at. No rule matches in a shorter one; a test holds the table to it.
pub(crate) const MIN_RUN: usize = 16;

/// Bytes that are classified at a time, one bit each.
const BLOCK: usize = 64;

/// Whether `byte` is one that tokens are made of: a letter, a digit or one of `_-./+~`.
///
/// `=` is not: it ends names and pads values, so a value starts a run of its own. Written without branches, so that
/// the compiler makes vector code of [`classify`].
#[inline]
pub(crate) const fn is_token(byte: u8) -> bool {
    let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
    let dash_to_nine = byte.wrapping_sub(b'-') < 13; // - . / 0-9
    letter | dash_to_nine | (byte == b'_') | (byte == b'+') | (byte == b'~')
}

/// The maximal runs of at least [`MIN_RUN`] token characters, from left to right.
pub(crate) struct Runs<'t> {
    text: &'t [u8],
    /// Everything before is done.
    at: usize,
    /// Token characters directly before `at` that may begin a run; always fewer than [`MIN_RUN`].
    carry: usize,
}

impl<'t> Runs<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0, carry: 0 }
    }

    /// The whole run that begins at `start`; the search goes on behind it.
    fn take(&mut self, start: usize) -> Range<usize> {
        let tail = self.text.get(start..).unwrap_or_default();
        let len = tail.iter().position(|&byte| !is_token(byte)).unwrap_or(tail.len());
        self.at = start + len;
        self.carry = 0;
        start..self.at
    }
}

impl Iterator for Runs<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        while self.at < self.text.len() {
            let mask = mask_at(self.text, self.at);
            if self.carry + mask.trailing_ones() as usize >= MIN_RUN {
                return Some(self.take(self.at - self.carry));
            }
            let starts = long_run_starts(mask);
            if starts != 0 {
                return Some(self.take(self.at + starts.trailing_zeros() as usize));
            }
            self.carry = mask.leading_ones() as usize;
            self.at += BLOCK;
        }
        None
    }
}

/// The token characters among the [`BLOCK`] bytes from `at`, as bits, lowest first; bytes past the end are none.
#[inline]
fn mask_at(text: &[u8], at: usize) -> u64 {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first_chunk::<BLOCK>() {
        Some(block) => classify(block),
        None => {
            let mut block = [0; BLOCK];
            block.iter_mut().zip(rest).for_each(|(to, &from)| *to = from);
            classify(&block)
        }
    }
}

/// One bit per byte of `block`, set for token characters.
#[inline]
fn classify(block: &[u8; BLOCK]) -> u64 {
    // Each byte's lowest bit moves into the product's highest byte, byte i's to bit i.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let flags = block.map(|byte| u8::from(is_token(byte)));
    let (eights, _) = flags.as_chunks::<8>();
    eights.iter().rev().fold(0, |mask, &eight| (mask << 8) | (u64::from_le_bytes(eight).wrapping_mul(GATHER) >> 56))
}

/// The bits of `mask` at which [`MIN_RUN`] set bits begin.
#[inline]
const fn long_run_starts(mask: u64) -> u64 {
    let two = mask & (mask >> 1);
    let four = two & (two >> 2);
    let eight = four & (four >> 4);
    eight & (eight >> 8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain_runs(text: &[u8]) -> Vec<Range<usize>> {
        let mut runs = Vec::new();
        let mut start = 0;
        for at in 0..=text.len() {
            if text.get(at).is_none_or(|&byte| !is_token(byte)) {
                if at - start >= MIN_RUN {
                    runs.push(start..at);
                }
                start = at + 1;
            }
        }
        runs
    }

    #[test]
    fn token_characters_are_exactly_these() {
        let tokens: Vec<u8> = (0..=255).filter(|&byte| is_token(byte)).collect();
        assert_eq!(tokens, b"+-./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~");
    }

    proptest! {
        #[test]
        fn blocks_and_bytes_find_the_same_runs(pieces in prop::collection::vec((0_usize..90, 1_usize..3), 0..12)) {
            let mut text = Vec::new();
            for (token, blank) in pieces {
                text.extend(std::iter::repeat_n(b'x', token));
                text.extend(std::iter::repeat_n(b' ', blank));
            }
            text.pop();
            prop_assert_eq!(Runs::new(&text).collect::<Vec<_>>(), plain_runs(&text));
        }
    }
}
