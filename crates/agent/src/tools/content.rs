//! What a file holds, by its first bytes.

/// Bytes that are looked at.
pub(super) const LOOKED: usize = 8 << 10;

/// How files of a kind begin, and what they are. The first that fits says it.
const KINDS: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF8", "a GIF image"),
    (8, b"WEBP", "a WebP image"),
    (4, b"ftypavif", "an AVIF image"),
    (0, b"BM", "a BMP image"),
    (0, b"II*\0", "a TIFF image"),
    (0, b"MM\0*", "a TIFF image"),
    (0, b"\0\0\x01\0", "an icon"),
    (0, b"%PDF-", "a PDF document"),
    (0, b"PK\x03\x04", "a ZIP archive, or a document that is one"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\0", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "zstd data"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x7fELF", "an ELF program or library"),
    (0, b"MZ", "a Windows program"),
    (0, b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (0, b"\0asm", "a WebAssembly module"),
    (0, b"\xca\xfe\xba\xbe", "Java or Mach-O code"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"GGUF", "a GGUF model"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"OggS", "Ogg media"),
    (0, b"ID3", "MP3 audio"),
    (0, b"RIFF", "RIFF media"),
    (4, b"ftyp", "MP4 media"),
    (0, b"\xff\xfe", "UTF-16 text"),
    (0, b"\xfe\xff", "UTF-16 text"),
];

/// What a file that begins with these bytes is, if it is no text that can be read by lines.
pub(super) fn binary(start: &[u8]) -> Option<&'static str> {
    let start = start.get(..LOOKED).unwrap_or(start);
    if !start.contains(&0) && !is_known_text_free(start) {
        return None;
    }
    let fits = |(at, magic, _): &&(usize, &[u8], &str)| start.get(*at..).is_some_and(|rest| rest.starts_with(magic));
    Some(KINDS.iter().find(fits).map_or("binary data", |(_, _, name)| *name))
}

/// Whether it is an image.
pub(super) fn is_image(kind: &str) -> bool {
    kind.ends_with("image") || kind == "an icon"
}

/// A file that begins so is none of text, even where no NUL is among its first bytes.
fn is_known_text_free(start: &[u8]) -> bool {
    const SURE: &[&[u8]] = &[b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"%PDF-", b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff"];
    SURE.iter().any(|magic| start.starts_with(magic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_what_is_none() {
        for text in ["", "fn main() {}", "BM is two letters", "grüße", "\u{feff}bom"] {
            assert_eq!(binary(text.as_bytes()), None, "{text}");
        }
        assert_eq!(binary(b"caf\xe9 in Latin-1"), None);
        assert_eq!(binary(b"\x89PNG\r\n\x1a\n"), Some("a PNG image"));
        assert_eq!(binary(b"RIFF\0\0\0\0WEBP"), Some("a WebP image"));
        assert_eq!(binary(b"\xff\xfea\0b\0"), Some("UTF-16 text"));
        assert_eq!(binary(b"a\0b"), Some("binary data"));
        assert!(is_image("a WebP image") && is_image("an icon") && !is_image("a PDF document"));
    }
}
