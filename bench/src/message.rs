//! Where an HTTP/1.1 message ends; no more of HTTP than these benches send.

/// One message at the start of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// Bytes up to the end of the empty line.
    pub head: usize,
    /// Bytes of the whole message, once all of it is there.
    pub length: Option<usize>,
}

impl Message {
    /// Reads the message at the start of `buffer`; nothing while its head is not complete.
    #[must_use]
    pub fn at_start(buffer: &[u8]) -> Option<Self> {
        let head = find(buffer, b"\r\n\r\n")? + 4;
        let fields = buffer.get(..head)?.to_ascii_lowercase();
        if let Some(value) = field(&fields, b"\r\ncontent-length:") {
            let length = head + std::str::from_utf8(value).ok()?.trim().parse::<usize>().ok()?;
            return Some(Self { head, length: (buffer.len() >= length).then_some(length) });
        }
        if field(&fields, b"\r\ntransfer-encoding:").is_some() {
            return Some(Self { head, length: chunked(buffer, head) });
        }
        Some(Self { head, length: Some(head) })
    }
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

fn field<'a>(fields: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = fields.get(find(fields, name)? + name.len()..)?;
    rest.get(..find(rest, b"\r\n")?)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_ends_where_its_length_or_its_last_chunk_says() {
        let length = |text: &str| Message::at_start(text.as_bytes()).map(|message| message.length);
        assert_eq!(length("GET / HTTP/1.1\r\nHost: a\r\n"), None);
        assert_eq!(length("GET / HTTP/1.1\r\nHost: a\r\n\r\nrest"), Some(Some(27)));
        assert_eq!(length("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"), Some(None));
        assert_eq!(length("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"), Some(Some(40)));
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        assert_eq!(length(chunks), Some(Some(chunks.len())));
        assert_eq!(length(&chunks[..chunks.len() - 1]), Some(None));
    }
}
