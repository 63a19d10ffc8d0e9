//! Bytes, split anywhere, into frames: events of a server-sent stream
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>), or lines of NDJSON.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::{memchr, memchr2};

use super::Fault;
use crate::route::{Route, Wire};

/// The longest frame, in bytes: what it holds is seen only when it is there as a whole.
pub const FRAME_LIMIT: usize = 16 << 20;

/// How the frames of a stream are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events: they end with a blank line; lines end with LF, CRLF or CR.
    Events,
    /// JSON in lines, which end with LF.
    Lines,
}

/// The types of streams.
const TYPES: [(&str, Framing); 4] = [
    ("text/event-stream", Framing::Events),
    ("application/x-ndjson", Framing::Lines),
    ("application/ndjson", Framing::Lines),
    ("application/jsonl", Framing::Lines),
];

impl Framing {
    /// That of a route's streams.
    pub fn of(route: Route) -> Self {
        if route.wire() == Wire::Ollama { Self::Lines } else { Self::Events }
    }

    /// Whether an answer of this `Content-Type` comes in pieces, and how they are told apart.
    pub fn named(content_type: &str) -> Option<Self> {
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        TYPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(kind)).map(|(_, framing)| *framing)
    }
}

/// The bytes of one frame, its end of line or blank line included: a part of one read.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    read: Bytes,
    /// Which read: frames of one read can leave in one piece.
    number: u64,
    range: Range<usize>,
}

impl Raw {
    /// A frame that came otherwise.
    pub(super) fn made(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self { read: bytes.into(), number: u64::MAX, range }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.read.get(self.range.clone()).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.range.len()
    }

    /// A part of it, without a copy.
    pub(super) fn slice(&self, part: Range<usize>) -> Bytes {
        let end = (self.range.start + part.end).min(self.range.end);
        self.read.slice((self.range.start + part.start).min(end)..end)
    }

    /// Takes in what stands right behind it; false where it stands elsewhere.
    pub(super) fn join(&mut self, next: &Self) -> bool {
        let neighbours = self.number == next.number && self.range.end == next.range.start;
        if neighbours {
            self.range.end = next.range.end;
        }
        neighbours
    }

    pub(super) fn into_bytes(self) -> Bytes {
        if self.range == (0..self.read.len()) { self.read } else { self.read.slice(self.range) }
    }
}

/// Cuts reads into frames. Nothing is copied but a frame that spans two reads (and what follows it in the second).
#[derive(Debug)]
pub(super) struct Splitter {
    framing: Framing,
    limit: usize,
    /// A read, as far as frames have been taken from it.
    read: Bytes,
    start: usize,
    number: u64,
    /// The beginning of a frame whose end has not come.
    rest: BytesMut,
    /// Of the unfinished frame: how much has been looked at, where its last line begins, and what those before it say.
    seen: usize,
    line: usize,
    fields: Fields,
}

impl Splitter {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            limit: FRAME_LIMIT,
            read: Bytes::new(),
            start: 0,
            number: 0,
            rest: BytesMut::new(),
            seen: 0,
            line: 0,
            fields: Fields::default(),
        }
    }

    /// The last read, where nothing has been taken of it and nothing comes before it.
    pub(super) fn whole_read(&self) -> Option<&[u8]> {
        let is_whole = self.start == 0 && self.rest.is_empty() && self.read.len() <= self.limit;
        is_whole.then_some(&*self.read)
    }

    /// All that came has been taken.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty() && self.ahead() == 0
    }

    /// That read, as one frame.
    pub(super) fn take_read(&mut self) -> Raw {
        let read = std::mem::take(&mut self.read);
        let range = 0..read.len();
        Raw { read, number: self.number, range }
    }

    /// Bytes of a frame that is not there as a whole.
    pub(super) fn held(&self) -> usize {
        self.rest.len()
    }

    /// Bytes of the last read that have not been looked at.
    pub(super) fn ahead(&self) -> usize {
        self.read.len() - self.start.min(self.read.len())
    }

    /// Takes a read. What has not been looked at of the one before comes first, at the price of a copy.
    pub(super) fn push(&mut self, bytes: Bytes) {
        if self.ahead() > 0 {
            self.rest.extend_from_slice(self.read.get(self.start..).unwrap_or_default());
        }
        self.number += 1;
        self.start = 0;
        self.read = if self.rest.is_empty() {
            bytes
        } else {
            self.rest.extend_from_slice(&bytes);
            Bytes::new()
        };
    }

    /// The next frame that is there as a whole, and what its lines say.
    pub(super) fn next(&mut self) -> Result<Option<(Raw, Fields)>, Fault> {
        let bytes = if self.rest.is_empty() { self.read.get(self.start..) } else { self.rest.get(..) };
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { return Ok(None) };
        let end = match self.framing {
            Framing::Events => event_end(bytes, &mut self.seen, &mut self.line, &mut self.fields),
            Framing::Lines => line_end(bytes, &mut self.seen, &mut self.fields),
        };
        if end.unwrap_or(bytes.len()) > self.limit {
            return Err(Fault::TooLarge);
        }
        if end.is_none() && self.rest.is_empty() {
            self.rest.extend_from_slice(self.read.get(self.start..).unwrap_or_default());
            self.read = Bytes::new();
            self.start = 0;
        }
        Ok(end.map(|end| self.cut(end)))
    }

    /// What came behind the last whole frame, once nothing more comes.
    pub(super) fn finish(&mut self) -> Option<(Raw, Fields)> {
        (!self.rest.is_empty()).then(|| {
            self.fields = fields(self.framing, &self.rest);
            self.cut(self.rest.len())
        })
    }

    /// What no frame was taken from.
    pub(super) fn unread(&mut self) -> Bytes {
        let mut unread = self.rest.split();
        unread.extend_from_slice(self.read.get(self.start..).unwrap_or_default());
        self.read = Bytes::new();
        self.start = 0;
        unread.freeze()
    }

    fn cut(&mut self, length: usize) -> (Raw, Fields) {
        if !self.rest.is_empty() {
            self.read = self.rest.split().freeze();
            self.start = 0;
        }
        let range = self.start..self.start + length;
        (self.start, self.seen, self.line) = (range.end, 0, 0);
        // The last of a read takes it along: most reads are of one frame.
        let read = if range.end == self.read.len() { std::mem::take(&mut self.read) } else { self.read.clone() };
        (Raw { read, number: self.number, range }, std::mem::take(&mut self.fields))
    }
}

/// Behind the blank line that ends an event. A CR at the very end may be half of a CRLF: the next read tells.
fn event_end(bytes: &[u8], seen: &mut usize, line: &mut usize, fields: &mut Fields) -> Option<usize> {
    loop {
        let Some(found) = memchr2(b'\n', b'\r', bytes.get(*seen..)?) else {
            *seen = bytes.len();
            return None;
        };
        let at = *seen + found;
        let next = match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'\r'), Some(b'\n')) => at + 2,
            (Some(b'\r'), None) => {
                *seen = at;
                return None;
            }
            _ => at + 1,
        };
        let blank = at == *line;
        field(bytes, *line..at, fields);
        (*seen, *line) = (next, next);
        if blank {
            return Some(next);
        }
    }
}

fn line_end(bytes: &[u8], seen: &mut usize, fields: &mut Fields) -> Option<usize> {
    let found = memchr(b'\n', bytes.get(*seen..)?).map(|found| *seen + found + 1);
    *seen = bytes.len();
    if let Some(end) = found {
        *fields = line_field(bytes.get(..end)?);
    }
    found
}

/// Where a frame says what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Fields {
    /// The name of an event (its last `event:` line).
    pub(super) event: Option<Range<usize>>,
    /// The value of the first `data:` line, or the line of NDJSON; none where the frame is a comment or blank.
    pub(super) data: Option<Range<usize>>,
    /// Those of further `data:` lines.
    pub(super) more: Vec<Range<usize>>,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads the lines of a frame.
pub(super) fn fields(framing: Framing, frame: &[u8]) -> Fields {
    match framing {
        Framing::Lines => line_field(frame),
        Framing::Events => {
            let mut fields = Fields::default();
            lines(frame, |line| field(frame, line, &mut fields));
            fields
        }
    }
}

fn line_field(frame: &[u8]) -> Fields {
    let end = frame.trim_ascii_end().len();
    let start = end - frame.get(..end).unwrap_or_default().trim_ascii_start().len();
    Fields { data: (start < end).then_some(start..end), ..Fields::default() }
}

/// Each line of an event, without its end.
pub(super) fn lines(frame: &[u8], mut each: impl FnMut(Range<usize>)) {
    let mut start = if frame.starts_with(BOM) { BOM.len() } else { 0 };
    while let Some(rest) = frame.get(start..).filter(|rest| !rest.is_empty()) {
        let end = start + memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        each(start..end);
        let crlf = frame.get(end..end + 2) == Some(b"\r\n");
        start = end + 1 + usize::from(crlf);
    }
}

/// What follows the comments that an event begins with; none where their lines end otherwise than with LF.
pub(super) fn after_comments(mut event: &[u8]) -> Option<&[u8]> {
    while event.first() == Some(&b':') {
        // Short, where there are any.
        let end = event.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
        event = event.get(end..)?.strip_prefix(b"\n")?;
    }
    Some(event)
}

/// The longest name that means something, and its colon.
const LONGEST: usize = "event:".len();

fn field(frame: &[u8], mut line: Range<usize>, fields: &mut Fields) {
    if line.start == 0 && frame.starts_with(BOM) {
        line.start = BOM.len().min(line.end);
    }
    let text = frame.get(line.clone()).unwrap_or_default();
    let colon = text.iter().take(LONGEST).position(|byte| *byte == b':');
    let name = colon.unwrap_or(text.len());
    let value = match text.get(name + 1) {
        Some(b' ') => line.start + name + 2,
        _ => (line.start + name + 1).min(line.end),
    };
    match text.get(..name) {
        Some(b"data") if fields.data.is_some() => fields.more.push(value..line.end),
        Some(b"data") => fields.data = Some(value..line.end),
        Some(b"event") => fields.event = Some(value..line.end),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(framing: Framing, reads: &[&[u8]]) -> Vec<String> {
        let mut splitter = Splitter::new(framing);
        let mut frames = Vec::new();
        let shown = |(raw, read): (Raw, Fields)| {
            assert_eq!(read, fields(framing, raw.bytes()));
            String::from_utf8_lossy(raw.bytes()).into_owned()
        };
        for read in reads {
            splitter.push(Bytes::copy_from_slice(read));
            while let Some(raw) = splitter.next().unwrap() {
                frames.push(shown(raw));
            }
        }
        frames.extend(splitter.finish().map(shown));
        frames
    }

    fn data(frame: &str) -> Vec<&str> {
        let fields = fields(Framing::Events, frame.as_bytes());
        fields.data.into_iter().chain(fields.more).map(|range| &frame[range]).collect()
    }

    #[test]
    fn frames_that_were_not_taken_of_a_read_come_before_those_of_the_next() {
        let mut splitter = Splitter::new(Framing::Lines);
        splitter.push(Bytes::from_static(b"a\nb\nc"));
        assert_eq!(splitter.next().unwrap().unwrap().0.bytes(), b"a\n");
        assert_eq!(splitter.ahead(), 3);
        splitter.push(Bytes::from_static(b"\nd\n"));
        let rest: Vec<Bytes> =
            std::iter::from_fn(|| splitter.next().unwrap()).map(|(raw, _)| raw.into_bytes()).collect();
        assert_eq!(rest, ["b\n", "c\n", "d\n"]);
    }

    #[test]
    fn events_end_with_a_blank_line_of_any_kind() {
        for (stream, expected) in [
            ("data: a\n\ndata: b\n\n", vec!["data: a\n\n", "data: b\n\n"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", vec!["data: a\r\n\r\n", "data: b\r\n\r\n"]),
            ("data: a\r\rdata: b\r\r", vec!["data: a\r\r", "data: b\r\r"]),
            ("data: a\n\r\n: ping\n\r", vec!["data: a\n\r\n", ": ping\n\r"]),
            ("\n\ndata: a", vec!["\n", "\n", "data: a"]),
        ] {
            assert_eq!(frames(Framing::Events, &[stream.as_bytes()]), expected, "{stream:?}");
            let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
            assert_eq!(frames(Framing::Events, &bytes), expected, "{stream:?}, byte by byte");
        }
    }

    #[test]
    fn lines_end_with_a_line_feed() {
        let expected = ["{\"a\":1}\r\n", "\n", "{}\n", "{\"rest"];
        let stream = expected.concat();
        assert_eq!(frames(Framing::Lines, &[stream.as_bytes()]), expected);
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(frames(Framing::Lines, &bytes), expected);
    }

    #[test]
    fn the_fields_of_an_event_are_those_of_the_standard() {
        for (frame, expected) in [
            ("data: a\n\n", vec!["a"]),
            ("data:a\n\n", vec!["a"]),
            ("data:  a \n\n", vec![" a "]),
            ("\u{feff}data: a\r\ndata\rdata: b\n\n", vec!["a", "", "b"]),
            (": data: c\nid: 1\ndatas: x\n Data: y\n\n", vec![]),
        ] {
            assert_eq!(data(frame), expected, "{frame:?}");
        }
        let named = "event: x\nevent: delta\ndata: {}\n\n";
        assert_eq!(fields(Framing::Events, named.as_bytes()).event.map(|range| &named[range]), Some("delta"));
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_before_all_of_it_has_come() {
        let mut splitter = Splitter { limit: 8, ..Splitter::new(Framing::Lines) };
        splitter.push(Bytes::from_static(b"12345678"));
        assert!(splitter.next().unwrap().is_none());
        splitter.push(Bytes::from_static(b"9"));
        assert_eq!(splitter.next().unwrap_err(), Fault::TooLarge);
    }

    #[test]
    fn neighbours_of_one_read_are_joined_and_others_are_not() {
        let mut splitter = Splitter::new(Framing::Lines);
        splitter.push(Bytes::from_static(b"a\nb\nc"));
        let (mut first, _) = splitter.next().unwrap().unwrap();
        let (second, _) = splitter.next().unwrap().unwrap();
        assert!(splitter.next().unwrap().is_none());
        assert!(first.join(&second));
        splitter.push(Bytes::from_static(b"\n"));
        assert!(!first.join(&splitter.next().unwrap().unwrap().0));
        assert_eq!(first.into_bytes(), "a\nb\n");
    }
}
