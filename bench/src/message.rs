//! Where a request ends; no more of HTTP than these benches send.

/// The length of the request at the start of `buffer`; nothing while it is not complete.
#[must_use]
pub fn request(buffer: &[u8]) -> Option<usize> {
    let head = find(buffer, b"\r\n\r\n")? + 4;
    let fields = buffer.get(..head)?.to_ascii_lowercase();
    let length = match field(&fields, b"\r\ncontent-length:") {
        Some(value) => head + std::str::from_utf8(value).ok()?.trim().parse::<usize>().ok()?,
        None if field(&fields, b"\r\ntransfer-encoding:").is_some() => chunked(buffer, head)?,
        None => head,
    };
    (buffer.len() >= length).then_some(length)
}

/// The end of a chunked body that starts at `at`.
fn chunked(buffer: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let line = buffer.get(at..)?;
        let digits = find(line, b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(line.get(..digits)?).ok()?.trim(), 16).ok()?;
        at += digits + 2 + size + 2;
        if size == 0 {
            return (buffer.len() >= at).then_some(at);
        }
    }
}

/// The value of a field, whose name stands between a line's end and a colon.
pub(crate) fn field<'a>(fields: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = fields.get(find(fields, name)? + name.len()..)?;
    rest.get(..find(rest, b"\r\n")?)
}

pub(crate) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_ends_where_its_length_or_its_last_chunk_says() {
        let length = |text: &str| request(text.as_bytes());
        assert_eq!(length("GET / HTTP/1.1\r\nHost: a\r\n"), None);
        assert_eq!(length("GET / HTTP/1.1\r\nHost: a\r\n\r\nrest"), Some(27));
        assert_eq!(length("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\na"), None);
        assert_eq!(length("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"), Some(40));
        let chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        assert_eq!(length(chunks), Some(chunks.len()));
        assert_eq!(length(&chunks[..chunks.len() - 1]), None);
    }
}
