//! Bytes to nodes: strict RFC 8259, no recursion, no allocation per node.

use memchr::memchr2;

use super::unescape;
use crate::error::ReadError;

/// How deep containers may nest; what servers and SDKs read is far below.
pub(crate) const MAX_DEPTH: usize = 128;

/// How many values and keys a document may hold: a table of them takes many times the bytes of `[0,0,0,…]`.
pub(crate) const MAX_NODES: usize = 1 << 21;

/// What is wrong with a `\u` escape that is half a surrogate pair, or no escape at all.
pub(crate) const NO_CHARACTER: &str = "a \\u escape is no character";

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    True,
    False,
    Number,
    String,
    Array,
    Object,
}

/// A value or key in the flat table. Children follow their container; an object's are keys and values in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// Its first byte; of a string, the quote.
    pub(crate) start: u32,
    /// After its last byte.
    pub(crate) end: u32,
    /// The node after it and all it holds.
    pub(crate) next: u32,
    pub(crate) kind: Kind,
    /// A string with escapes.
    pub(crate) escaped: bool,
}

/// Reads the one value of `bytes`.
pub(crate) fn scan(bytes: &[u8]) -> Result<Vec<Node>, ReadError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(malformed(0, "it begins with a byte order mark"));
    }
    if u32::try_from(bytes.len()).is_err() {
        return Err(malformed(0, "it is larger than 4 GiB"));
    }
    if let Err(error) = std::str::from_utf8(bytes) {
        return Err(malformed(error.valid_up_to(), "it is not UTF-8"));
    }
    let nodes = Vec::with_capacity(usual(bytes.len()));
    let mut scanner = Scanner { bytes, at: 0, nodes, open: OUTSIDE, depth: 0 };
    scanner.document()?;
    Ok(scanner.nodes)
}

/// How many nodes a document of so many bytes usually has: frames of a stream one in eight bytes, texts fewer.
fn usual(bytes: usize) -> usize {
    bytes.min(1024) / 8 + bytes / 64 + 8
}

fn malformed(offset: usize, what: &'static str) -> ReadError {
    ReadError::Malformed { offset, what }
}

/// How many bytes stand before the next quote, backslash or control character.
pub(crate) fn plain_run(text: &[u8]) -> usize {
    // Keys, and texts with an escape in each line, are short: a call would cost more than the bytes.
    const SHORT: usize = 8;
    let mut length = 0;
    for word in text.chunks_exact(8).take(SHORT) {
        let found = special(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        if found != 0 {
            return length + found.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let rest = text.get(length..).unwrap_or_default();
    let run = memchr2(b'"', b'\\', rest).and_then(|run| rest.get(..run)).unwrap_or(rest);
    // Branch-free, so that the compiler makes vector code of it.
    match run.iter().fold(false, |bad, byte| bad | (*byte < 0x20)) {
        true => length + run.iter().position(is_special).unwrap_or(run.len()),
        false => length + run.len(),
    }
}

/// The high bit of each byte that is special; exact for the lowest one.
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES * 0x80;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | equal(b'"') | equal(b'\\')
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    /// The innermost container around `at`. Until it is closed its `next` is the one around it.
    open: u32,
    /// How many containers are around `at`.
    depth: usize,
}

/// Where there is no container around.
const OUTSIDE: u32 = u32::MAX;

/// What stands next.
enum Expect {
    Value,
    Rest,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), ReadError> {
        let mut expect = Expect::Value;
        loop {
            expect = match expect {
                Expect::Value => self.value()?,
                Expect::Rest => match self.nodes.get(self.open as usize).map(|node| node.kind) {
                    Some(kind) => self.rest(kind)?,
                    None => break,
                },
            };
        }
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(malformed(self.at, "something follows the value")),
        }
    }

    /// The next byte that is no whitespace.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Expect, ReadError> {
        if self.nodes.len() >= MAX_NODES {
            return Err(malformed(self.at, "it holds more than two million values"));
        }
        match self.peek() {
            Some(b'"') => self.string()?,
            Some(b'{') => return self.open(Kind::Object, b'}'),
            Some(b'[') => return self.open(Kind::Array, b']'),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word(b"true", Kind::True)?,
            Some(b'f') => self.word(b"false", Kind::False)?,
            Some(b'n') => self.word(b"null", Kind::Null)?,
            Some(_) => return Err(malformed(self.at, "a value is expected")),
            None => return Err(malformed(self.at, "it ends where a value is expected")),
        }
        Ok(Expect::Rest)
    }

    fn open(&mut self, kind: Kind, closing: u8) -> Result<Expect, ReadError> {
        if self.depth >= MAX_DEPTH {
            return Err(malformed(self.at, "it nests more than 128 levels"));
        }
        let (place, start) = (self.nodes.len() as u32, self.at as u32);
        self.nodes.push(Node { start, end: start, next: self.open, kind, escaped: false });
        (self.open, self.depth) = (place, self.depth + 1);
        self.at += 1;
        if self.peek() == Some(closing) {
            return self.close();
        }
        if kind == Kind::Object {
            self.key()?;
        }
        Ok(Expect::Value)
    }

    /// After a value inside of a container.
    fn rest(&mut self, kind: Kind) -> Result<Expect, ReadError> {
        match (kind, self.peek()) {
            (Kind::Object, Some(b',')) => {
                self.at += 1;
                self.peek();
                self.key()?;
                Ok(Expect::Value)
            }
            (_, Some(b',')) => {
                self.at += 1;
                Ok(Expect::Value)
            }
            (Kind::Object, Some(b'}')) | (Kind::Array, Some(b']')) => self.close(),
            (_, Some(_)) => Err(malformed(self.at, "a comma or the end of the object or array is expected")),
            (_, None) => Err(malformed(self.at, "it ends inside of an object or array")),
        }
    }

    fn close(&mut self) -> Result<Expect, ReadError> {
        self.at += 1;
        let next = self.nodes.len() as u32;
        if let Some(node) = self.nodes.get_mut(self.open as usize) {
            node.end = self.at as u32;
            self.open = std::mem::replace(&mut node.next, next);
            self.depth -= 1;
        }
        Ok(Expect::Rest)
    }

    fn key(&mut self) -> Result<(), ReadError> {
        if self.peek() != Some(b'"') {
            return Err(malformed(self.at, "a key is expected"));
        }
        self.string()?;
        if self.peek() != Some(b':') {
            return Err(malformed(self.at, "a colon is expected"));
        }
        self.at += 1;
        Ok(())
    }

    /// From the opening quote.
    fn string(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        let mut escaped = false;
        self.at += 1;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let length = plain_run(rest);
            self.at += length;
            match rest.get(length) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 1;
                    self.escape()?;
                }
                Some(_) => return Err(malformed(self.at, "a string holds a bare control character")),
                None => return Err(malformed(start, "a string has no end")),
            }
        }
        self.at += 1;
        self.push(Kind::String, start, escaped);
        Ok(())
    }

    /// After the backslash.
    fn escape(&mut self) -> Result<(), ReadError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = match rest.first() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 1,
            Some(b'u') => unescape::unicode(rest).ok_or(malformed(self.at, NO_CHARACTER))?.1,
            _ => return Err(malformed(self.at, "an escape is unknown")),
        };
        self.at += length;
        Ok(())
    }

    fn number(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        self.skip(b'-');
        if !self.skip(b'0') && self.digits() == 0 {
            return Err(malformed(self.at, "a digit is expected"));
        }
        if self.skip(b'.') && self.digits() == 0 {
            return Err(malformed(self.at, "a digit is expected"));
        }
        if self.skip(b'e') || self.skip(b'E') {
            let _ = self.skip(b'+') || self.skip(b'-');
            if self.digits() == 0 {
                return Err(malformed(self.at, "a digit is expected"));
            }
        }
        self.push(Kind::Number, start, false);
        Ok(())
    }

    fn skip(&mut self, byte: u8) -> bool {
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn digits(&mut self) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn word(&mut self, word: &'static [u8], kind: Kind) -> Result<(), ReadError> {
        let start = self.at;
        if !self.bytes.get(start..).unwrap_or_default().starts_with(word) {
            return Err(malformed(start, "a value is expected"));
        }
        self.at += word.len();
        self.push(kind, start, false);
        Ok(())
    }

    /// Offsets fit: [`scan`] has checked the length, and there are fewer nodes than bytes.
    fn push(&mut self, kind: Kind, start: usize, escaped: bool) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { start: start as u32, end: self.at as u32, next, kind, escaped });
    }
}
