//! A response as it comes, read once.

use crate::message::{field, find};

/// What has come of one response.
#[derive(Debug, Default)]
pub struct Response {
    left: Left,
    /// Its body so far, without the framing of chunks.
    pub body: Vec<u8>,
}

/// What is still to come.
#[derive(Debug, Default, PartialEq, Eq)]
enum Left {
    /// The head, and all that follows it.
    #[default]
    Head,
    /// Bytes of the body.
    Bytes(usize),
    /// Chunks, after so many bytes of the present one and of its line end.
    Chunks(usize),
    Nothing,
}

impl Response {
    /// Takes what `raw` holds of it, in order; what remains there is not complete yet.
    ///
    /// # Errors
    /// When the response is not 200, or is no HTTP/1.1 of the kind that is sent here.
    pub fn take(&mut self, raw: &mut Vec<u8>) -> Result<(), String> {
        let mut at = 0;
        loop {
            let rest = raw.get(at..).unwrap_or_default();
            let taken = match self.left {
                Left::Head => self.head(rest)?,
                Left::Bytes(left) => {
                    let taken = left.min(rest.len());
                    self.body.extend_from_slice(rest.get(..taken).unwrap_or_default());
                    self.left = if taken == left { Left::Nothing } else { Left::Bytes(left - taken) };
                    taken
                }
                Left::Chunks(left) => self.chunk(rest, left)?,
                Left::Nothing => 0,
            };
            at += taken;
            if taken == 0 || self.is_over() {
                raw.drain(..at);
                return Ok(());
            }
        }
    }

    /// Forgets it; the next one is due.
    pub fn clear(&mut self) {
        self.left = Left::Head;
        self.body.clear();
    }

    /// Whether all of it has come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left == Left::Nothing
    }

    fn head(&mut self, rest: &[u8]) -> Result<usize, String> {
        let Some(end) = find(rest, b"\r\n\r\n") else { return Ok(0) };
        if !rest.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(rest).into());
        }
        let fields = rest.get(..end + 4).unwrap_or_default().to_ascii_lowercase();
        self.left = match field(&fields, b"\r\ncontent-length:") {
            Some(value) => Left::Bytes(number(value, 10)?),
            None if field(&fields, b"\r\ntransfer-encoding:").is_some() => Left::Chunks(0),
            None => return Err("a response without an end".to_owned()),
        };
        Ok(end + 4)
    }

    /// `left` counts the two bytes that follow a chunk; they are no part of the body.
    fn chunk(&mut self, rest: &[u8], left: usize) -> Result<usize, String> {
        if left > 0 {
            let taken = left.min(rest.len());
            let data = taken.min(left.saturating_sub(2));
            self.body.extend_from_slice(rest.get(..data).unwrap_or_default());
            self.left = Left::Chunks(left - taken);
            return Ok(taken);
        }
        let Some(line) = find(rest.get(..rest.len().min(20)).unwrap_or_default(), b"\r\n") else { return Ok(0) };
        match number(rest.get(..line).unwrap_or_default(), 16)? {
            0 if rest.len() < line + 4 => return Ok(0),
            0 => self.left = Left::Nothing,
            size => self.left = Left::Chunks(size + 2),
        }
        Ok(if self.is_over() { line + 4 } else { line + 2 })
    }
}

fn number(text: &[u8], radix: u32) -> Result<usize, String> {
    let read = std::str::from_utf8(text).ok().and_then(|text| usize::from_str_radix(text.trim(), radix).ok());
    read.ok_or_else(|| format!("no number: {}", String::from_utf8_lossy(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n";

    #[test]
    fn a_chunked_body_is_read_however_it_is_split() {
        for split in 0..=CHUNKED.len() {
            let (mut response, mut raw) = (Response::default(), CHUNKED[..split].to_vec());
            response.take(&mut raw).unwrap();
            assert_eq!(response.is_over(), split == CHUNKED.len(), "at {split}");
            raw.extend_from_slice(&CHUNKED[split..]);
            response.take(&mut raw).unwrap();
            assert!(response.is_over() && raw.is_empty(), "at {split}");
            assert_eq!(response.body, b"abc0123456789", "at {split}");
        }
    }

    #[test]
    fn a_body_ends_where_its_length_says() {
        let mut raw = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP".to_vec();
        let mut response = Response::default();
        response.take(&mut raw).unwrap();
        assert!(response.is_over());
        assert_eq!((&*response.body, &*raw), (&b"ab"[..], &b"HTTP"[..]));
    }

    #[test]
    fn a_refusal_is_an_error() {
        let mut raw = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n".to_vec();
        assert!(Response::default().take(&mut raw).unwrap_err().contains("503"));
    }
}
