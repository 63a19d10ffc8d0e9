//! Lines of files of any length, in bounded memory.

use std::io::{self, BufRead};

/// Reads a file line by line.
pub(super) struct Lines<R> {
    from: R,
}

/// What was read of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    /// Bytes that it has, without its end.
    pub(super) size: u64,
    /// Whether it ends in `\r\n`.
    pub(super) has_return: bool,
    /// Whether it ends at all; the last one of a file may not.
    pub(super) is_ended: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from }
    }

    /// Reads the next line into `line`, at most `keep` bytes of it, without its end. `None` at the end of the file.
    pub(super) fn next(&mut self, line: &mut Vec<u8>, keep: usize) -> io::Result<Option<Line>> {
        line.clear();
        let (mut size, mut last, mut is_ended) = (0_u64, None, false);
        while !is_ended {
            let there = match self.from.fill_buf() {
                Ok(there) => there,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if there.is_empty() {
                break;
            }
            let end = memchr::memchr(b'\n', there);
            let taken = there.get(..end.unwrap_or(there.len())).unwrap_or_default();
            line.extend(taken.iter().take(keep.saturating_sub(line.len())));
            size += taken.len() as u64;
            last = taken.last().copied().or(last);
            is_ended = end.is_some();
            let used = taken.len() + usize::from(is_ended);
            self.from.consume(used);
        }
        if size == 0 && !is_ended {
            return Ok(None);
        }
        let has_return = is_ended && last == Some(b'\r');
        if has_return {
            size -= 1;
            line.truncate(usize::try_from(size).unwrap_or(usize::MAX).min(line.len()));
        }
        Ok(Some(Line { size, has_return, is_ended }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8], buffer: usize, keep: usize) -> Vec<(Vec<u8>, Line)> {
        let mut lines = Lines::new(BufReader::with_capacity(buffer, bytes));
        let (mut all, mut line) = (Vec::new(), Vec::new());
        while let Some(found) = lines.next(&mut line, keep).unwrap() {
            all.push((line.clone(), found));
        }
        all
    }

    #[test]
    fn a_line_is_kept_as_far_as_is_wanted() {
        let line = |size, has_return, is_ended| Line { size, has_return, is_ended };
        let read = all(b"ab\r\n\nlonger", 3, 4);
        let expected: [(&[u8], Line); 3] =
            [(b"ab", line(2, true, true)), (b"", line(0, false, true)), (b"long", line(6, false, false))];
        assert_eq!(read.iter().map(|(text, line)| (text.as_slice(), *line)).collect::<Vec<_>>(), expected);
        assert!(all(b"", 3, 4).is_empty());
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_text(text in "[ab\n\r]{0,30}", buffer in 1_usize..8) {
            let read: Vec<String> =
                all(text.as_bytes(), buffer, 100).into_iter().map(|(line, _)| String::from_utf8(line).unwrap()).collect();
            prop_assert_eq!(read, text.lines().map(str::to_owned).collect::<Vec<_>>());
        }
    }
}
