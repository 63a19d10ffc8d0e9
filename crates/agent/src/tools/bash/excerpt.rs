//! What is kept of an output of any length, and how it is told while it comes.

use std::collections::VecDeque;

/// Bytes that are kept of its front, and of its end: together less than `limit_large_tool_results` cuts.
const FRONT: usize = 16 << 10;
const END: usize = 32 << 10;

/// The front and the end of an output.
#[derive(Debug, Default)]
pub(super) struct Excerpt {
    front: Vec<u8>,
    end: VecDeque<u8>,
    left_out: u64,
}

impl Excerpt {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let (front, rest) = bytes.split_at(bytes.len().min(FRONT - self.front.len()));
        self.front.extend_from_slice(front);
        // Of more than the end holds only the last bytes are looked at.
        let (skipped, rest) = rest.split_at(rest.len().saturating_sub(END));
        self.end.extend(rest);
        let excess = self.end.len().saturating_sub(END);
        self.end.drain(..excess);
        self.left_out += (skipped.len() + excess) as u64;
    }

    /// As text, cut at lines where that is possible.
    pub(super) fn text(mut self) -> String {
        let end: &[u8] = self.end.make_contiguous();
        if self.left_out == 0 {
            self.front.extend_from_slice(end);
            return String::from_utf8_lossy(&self.front).into_owned();
        }
        let front_ends = self.front.iter().rposition(|byte| *byte == b'\n').map_or(self.front.len(), |at| at + 1);
        let end_begins = end.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let left_out = self.left_out + (self.front.len() - front_ends + end_begins) as u64;
        let front = String::from_utf8_lossy(self.front.get(..front_ends).unwrap_or_default());
        let end = String::from_utf8_lossy(end.get(end_begins..).unwrap_or_default());
        let line = if front.ends_with('\n') { "" } else { "\n" };
        format!("{front}{line}(… {left_out} bytes left out …)\n{end}")
    }
}

/// Bytes that come in pieces, as text: a character that is cut in two waits for its rest.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    rest: Vec<u8>,
}

impl Pieces {
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<String> {
        self.rest.extend_from_slice(bytes);
        let cut = match self.rest.utf8_chunks().last() {
            Some(chunk) if is_begun(chunk.invalid()) => self.rest.len() - chunk.invalid().len(),
            _ => self.rest.len(),
        };
        let behind = self.rest.split_off(cut);
        let whole = std::mem::replace(&mut self.rest, behind);
        (!whole.is_empty()).then(|| String::from_utf8_lossy(&whole).into_owned())
    }

    pub(super) fn last(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.rest);
        (!rest.is_empty()).then(|| String::from_utf8_lossy(&rest).into_owned())
    }
}

/// Whether this may be the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_a_long_output_front_and_end_are_kept() {
        let mut excerpt = Excerpt::default();
        for number in 0..20_000 {
            excerpt.add(format!("line {number}\n").as_bytes());
        }
        let text = excerpt.text();
        assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("line 19998\nline 19999\n"));
        assert!(text.contains("bytes left out …)\nline ") && text.len() < FRONT + END + 100);
    }

    proptest! {
        #[test]
        fn an_output_is_the_same_in_any_pieces(text in "[aü€😀\n]{0,40}", at in 0_usize..40, bad in 0_u8..2) {
            let mut bytes = text.clone().into_bytes();
            if bad > 0 {
                bytes.insert(at.min(bytes.len()), 0xff);
            }
            for size in 1..5 {
                let (mut excerpt, mut pieces, mut said) = (Excerpt::default(), Pieces::default(), String::new());
                for piece in bytes.chunks(size) {
                    excerpt.add(piece);
                    said.extend(pieces.next(piece));
                }
                said.extend(pieces.last());
                prop_assert_eq!(&said, &String::from_utf8_lossy(&bytes));
                prop_assert_eq!(excerpt.text(), String::from_utf8_lossy(&bytes));
            }
        }

        #[test]
        fn what_is_left_out_is_counted(sizes in prop::collection::vec(0_usize..60_000, 0..6)) {
            let mut excerpt = Excerpt::default();
            let total: usize = sizes.iter().sum();
            for size in sizes {
                excerpt.add(&vec![b'x'; size]);
            }
            let left_out = usize::try_from(excerpt.left_out).unwrap();
            prop_assert_eq!(left_out, total.saturating_sub(FRONT + END));
            prop_assert_eq!(excerpt.front.len() + excerpt.end.len() + left_out, total);
        }
    }
}
