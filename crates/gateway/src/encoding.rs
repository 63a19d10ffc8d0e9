//! Compressed bodies: what hooks are to see must be read, within a bound.

use std::io::Read;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::bufread::{GzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use hyper::body::Bytes;
use ruzstd::decoding::StreamingDecoder;

use crate::headers::single;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Names and encodings (RFC 9110, 8.4.1; RFC 7932; RFC 8878).
const NAMES: [(&str, Encoding); 7] = [
    ("", Encoding::Identity),
    ("identity", Encoding::Identity),
    ("gzip", Encoding::Gzip),
    ("x-gzip", Encoding::Gzip),
    ("deflate", Encoding::Deflate),
    ("br", Encoding::Brotli),
    ("zstd", Encoding::Zstd),
];

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EncodingError {
    #[error("The body's Content-Encoding is none of gzip, deflate, br, zstd, or more than one of them.")]
    Unknown,
    #[error("The body does not follow its Content-Encoding.")]
    Broken,
    #[error("The body is too large once it is decompressed.")]
    TooLarge,
    #[error("There is no room for the body once it is decompressed.")]
    NoRoom,
}

impl Encoding {
    /// What the headers say. Two encodings, one within the other, are not read.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, EncodingError> {
        let value = single(headers, CONTENT_ENCODING).map_err(|_| EncodingError::Unknown)?;
        let name = value.map_or(Ok(""), |value| value.to_str()).map_err(|_| EncodingError::Unknown)?.trim();
        let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map(|(_, encoding)| *encoding).ok_or(EncodingError::Unknown)
    }

    /// The body itself, if it is not more than `limit` bytes. Takes its time: up to 100 ms for 32 MiB.
    ///
    /// What follows the end of the compressed data is an error: two readers could make two bodies of it. `room` is asked
    /// for the bytes of each piece before it is kept.
    pub(crate) fn decode(self, body: Bytes, limit: usize, room: Room<'_>) -> Result<Bytes, EncodingError> {
        let mut plain = Plain { bytes: Vec::new(), limit, room };
        match self {
            Encoding::Identity => Ok(body),
            Encoding::Gzip => {
                let mut decoder = GzDecoder::new(&*body);
                plain.read(&mut decoder)?;
                plain.ended(decoder.into_inner())
            }
            Encoding::Deflate => {
                let mut decoder = ZlibDecoder::new(&*body);
                plain.read(&mut decoder)?;
                plain.ended(decoder.into_inner())
            }
            // Brotli has no signature. A server that does not unpack it would read such a body as it came.
            Encoding::Brotli if matches!(body.first(), Some(b' ' | b'\t' | b'\n' | b'\r' | b'{')) => {
                Err(EncodingError::Broken)
            }
            Encoding::Brotli => brotli(&body, plain),
            Encoding::Zstd => {
                let mut decoder = StreamingDecoder::new(&*body).map_err(|_| EncodingError::Broken)?;
                plain.read(&mut decoder)?;
                plain.ended(decoder.into_inner())
            }
        }
    }
}

/// Says whether so many more bytes may be held.
pub(crate) type Room<'r> = &'r mut dyn FnMut(usize) -> bool;

/// What is decompressed so far.
struct Plain<'r> {
    bytes: Vec<u8>,
    limit: usize,
    room: Room<'r>,
}

/// Bytes that are decompressed at a time.
const PIECE: usize = 64 * 1024;

impl Plain<'_> {
    fn push(&mut self, piece: &[u8]) -> Result<(), EncodingError> {
        if self.bytes.len() + piece.len() > self.limit {
            return Err(EncodingError::TooLarge);
        }
        if !(self.room)(piece.len()) {
            return Err(EncodingError::NoRoom);
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    fn read(&mut self, reader: &mut impl Read) -> Result<(), EncodingError> {
        let mut piece = vec![0; PIECE];
        loop {
            match reader.read(&mut piece).map_err(|_| EncodingError::Broken)? {
                0 => return Ok(()),
                filled => self.push(piece.get(..filled).unwrap_or_default())?,
            }
        }
    }

    /// All of it, if nothing is left of the compressed data.
    fn ended(self, rest: &[u8]) -> Result<Bytes, EncodingError> {
        if rest.is_empty() { Ok(self.bytes.into()) } else { Err(EncodingError::Broken) }
    }
}

fn brotli(body: &[u8], mut plain: Plain<'_>) -> Result<Bytes, EncodingError> {
    let mut state =
        BrotliState::new_strict(StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
    let (mut left, mut read, mut written) = (body.len(), 0, 0);
    let mut piece = vec![0; PIECE];
    loop {
        let (mut room, mut filled) = (piece.len(), 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut read,
            body,
            &mut room,
            &mut filled,
            &mut piece,
            &mut written,
            &mut state,
        );
        plain.push(piece.get(..filled).unwrap_or_default())?;
        match result {
            BrotliResult::ResultSuccess => return plain.ended(body.get(read..).unwrap_or_default()),
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::NeedsMoreInput | BrotliResult::ResultFailure => return Err(EncodingError::Broken),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn plain(encoding: Encoding, body: Bytes, limit: usize) -> Result<Bytes, EncodingError> {
        encoding.decode(body, limit, &mut |_| true)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Uncompressed)
    }

    /// "hello" by the reference encoder.
    const HELLO_BROTLI: &[u8] = &[0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03];

    fn each(text: &[u8]) -> Vec<(Encoding, Vec<u8>)> {
        vec![(Encoding::Gzip, gzip(text)), (Encoding::Deflate, zlib(text)), (Encoding::Zstd, zstd(text))]
    }

    #[test]
    fn every_encoding_is_read() {
        let mut all = each(b"hello");
        all.push((Encoding::Brotli, HELLO_BROTLI.to_vec()));
        for (encoding, body) in all {
            assert_eq!(plain(encoding, body.into(), 100).unwrap(), "hello", "{encoding:?}");
        }
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        for (encoding, body) in each(&vec![0; 1 << 20]) {
            let result = plain(encoding, body.into(), 1000);
            assert!(matches!(result, Err(EncodingError::TooLarge)), "{encoding:?}");
        }
    }

    #[test]
    fn room_is_asked_for_before_anything_is_kept() {
        for (encoding, body) in each(&vec![0; 1 << 20]) {
            let mut room = 100 * 1024;
            let mut take = |bytes: usize| {
                room -= bytes.min(room);
                room > 0
            };
            let result = encoding.decode(body.into(), 1 << 20, &mut take);
            assert!(matches!(result, Err(EncodingError::NoRoom)), "{encoding:?}");
        }
    }

    #[test]
    fn nothing_may_follow_the_end() {
        let mut all = each(b"hello");
        all.push((Encoding::Brotli, HELLO_BROTLI.to_vec()));
        for (encoding, mut body) in all {
            body.extend(body.clone());
            let result = plain(encoding, body.into(), 100);
            assert!(matches!(result, Err(EncodingError::Broken)), "{encoding:?} {result:?}");
        }
    }

    #[test]
    fn what_begins_as_json_is_not_taken_for_brotli() {
        // A window of 16 bits, one uncompressed block of 19 bytes, the end: and three blanks before a JSON object.
        let text = b"{\"model\":\"hidden\"} ";
        let whole = |first: u8| [&[first, 0x01, 0x10], &text[..], &[0x03]].concat();
        assert_eq!(
            brotli(&whole(0x20), Plain { bytes: Vec::new(), limit: 100, room: &mut |_| true }).unwrap(),
            &text[..],
            "it is brotli"
        );
        assert!(matches!(plain(Encoding::Brotli, whole(0x20).into(), 100), Err(EncodingError::Broken)));
    }

    #[test]
    fn two_encodings_and_unknown_ones_are_refused() {
        for value in ["gzip, br", "compress", "gzip,identity"] {
            let headers = HeaderMap::from_iter([(CONTENT_ENCODING, http::HeaderValue::from_static(value))]);
            assert!(Encoding::of(&headers).is_err(), "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_a_reader_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            for encoding in [Encoding::Gzip, Encoding::Deflate, Encoding::Brotli, Encoding::Zstd] {
                let _ = plain(encoding, body.clone().into(), 10_000);
            }
        }
    }
}
