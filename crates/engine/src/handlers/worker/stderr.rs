//! What a long-lived process writes to stderr: lines for the log, within bounds, and the last of it for a failure.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf as _, BytesMut};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;

use crate::text::plain;

/// Bytes that go with a failure: the last ones.
const TAIL: usize = 8 << 10;
/// Bytes of a line; what is longer is cut into lines.
const LINE: usize = 2 << 10;
/// Lines that the log gets of one process, in one period.
const LINES: u32 = 200;
const PERIOD: Duration = Duration::from_secs(10);
/// Bytes that are read before others get their turn.
const TURN: usize = 64 << 10;

/// The pipe, and what came of it.
pub(super) struct Stderr {
    pipe: Option<Arc<OwnedFd>>,
    tail: BytesMut,
    /// A line that has not ended.
    begun: BytesMut,
    period: Instant,
    lines: u32,
    left_out: u32,
}

impl Stderr {
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        let (tail, begun, period) = (BytesMut::new(), BytesMut::new(), Instant::now());
        Ok(Self { pipe: Some(Arc::new(pipe)), tail, begun, period, lines: 0, left_out: 0 })
    }

    /// `None` once nobody writes any more.
    pub(super) fn pipe(&self) -> Option<Arc<OwnedFd>> {
        self.pipe.clone()
    }

    /// Takes what is there, and gives the lines for the log. Does not block.
    pub(super) fn read(&mut self, now: Instant) -> Vec<String> {
        let mut lines = Vec::new();
        let (mut buffer, mut taken) = ([0; 4096], 0);
        while let Some(pipe) = self.pipe.as_ref().filter(|_| taken < TURN) {
            match rustix::io::read(pipe, &mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(read) => {
                    taken += read;
                    self.take(buffer.get(..read).unwrap_or_default(), now, &mut lines);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.pipe = None,
            }
        }
        if self.pipe.is_none() && !self.begun.is_empty() {
            let line = self.begun.split();
            self.log(&line, now, &mut lines);
        }
        lines
    }

    /// What was written since [`forget`](Self::forget), as far as it is kept.
    pub(super) fn tail(&self) -> String {
        String::from_utf8_lossy(&self.tail).into_owned()
    }

    pub(super) fn forget(&mut self) {
        self.tail.clear();
    }

    fn take(&mut self, bytes: &[u8], now: Instant, lines: &mut Vec<String>) {
        self.tail.extend_from_slice(bytes);
        self.tail.advance(self.tail.len().saturating_sub(TAIL));
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.begun.extend_from_slice(piece);
            while self.begun.last() == Some(&b'\n') || self.begun.len() >= LINE {
                let line = self.begun.split_to(self.begun.len().min(LINE));
                self.log(&line, now, lines);
            }
        }
    }

    fn log(&mut self, line: &[u8], now: Instant, lines: &mut Vec<String>) {
        if now.saturating_duration_since(self.period) >= PERIOD {
            if self.left_out > 0 {
                lines.push(format!("({} lines were left out)", self.left_out));
            }
            (self.period, self.lines, self.left_out) = (now, 0, 0);
        }
        let text = String::from_utf8_lossy(line);
        let text = plain(text.trim_end());
        if text.is_empty() {
            return;
        }
        self.lines += 1;
        if self.lines <= LINES {
            lines.push(text.into_owned());
        } else {
            self.left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use super::*;

    fn written(bytes: &[u8]) -> (Vec<String>, String) {
        let (reader, writer) = io::pipe().unwrap();
        File::from(OwnedFd::from(writer)).write_all(bytes).unwrap();
        let mut stderr = Stderr::new(reader.into()).unwrap();
        (stderr.read(Instant::now()), stderr.tail())
    }

    #[test]
    fn lines_go_to_the_log_and_the_end_to_a_failure() {
        assert_eq!(
            written(b"one\n\ntwo\x1b[31m\nthr\xff"),
            (
                vec!["one".to_owned(), "two".to_owned(), "thr\u{fffd}".to_owned()],
                "one\n\ntwo\u{1b}[31m\nthr\u{fffd}".to_owned()
            )
        );
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let (lines, _) = written("x".repeat(5000).as_bytes());
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [2048, 2048, 904]);
    }

    #[test]
    fn a_flood_is_kept_within_bounds_and_its_size_is_told_later() {
        let (lines, tail) = written("0123456789\n".repeat(5000).as_bytes());
        assert_eq!((lines.len(), tail.len()), (200, TAIL));
        let (reader, mut writer) = io::pipe().unwrap();
        let mut stderr = Stderr::new(reader.into()).unwrap();
        writer.write_all("flood\n".repeat(300).as_bytes()).unwrap();
        let begin = Instant::now();
        stderr.read(begin);
        writer.write_all(b"later\n").unwrap();
        assert_eq!(stderr.read(begin + PERIOD), ["(100 lines were left out)", "later"]);
    }
}
