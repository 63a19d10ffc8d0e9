//! The bodies that travel, chosen by a word on the command line.

/// Which request goes up and which reply comes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// A 181-byte chat, a 330-byte answer.
    Small,
    /// A chat and an answer of 4 KiB each, clean prose.
    Large,
    /// The small chat, streamed back as 23 SSE frames in as many chunks, all there at once.
    Stream,
    /// A webhook that allows everything.
    Hook,
}

impl Exchange {
    /// Reads the word of the command line.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Some(match word {
            "small" => Self::Small,
            "large" => Self::Large,
            "stream" => Self::Stream,
            "hook" => Self::Hook,
            _ => return None,
        })
    }

    /// The body of the request.
    #[must_use]
    pub fn request(self) -> String {
        let length = if self == Self::Large { 4096 } else { 181 };
        let stream = if self == Self::Stream { r#","stream":true"# } else { "" };
        let open = r#"{"model":"bench","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":""#;
        filled(open, &format!(r#""}}],"temperature":0.7{stream}}}"#), length)
    }

    /// The whole response, head included.
    #[must_use]
    pub fn response(self) -> Vec<u8> {
        let open = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1760000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":""#;
        let close =
            r#""},"finish_reason":"stop"}],"usage":{"prompt_tokens":24,"completion_tokens":17,"total_tokens":41}}"#;
        match self {
            Self::Small => whole(&filled(open, close, 330)),
            Self::Large => whole(&filled(open, close, 4096)),
            Self::Hook => whole(r#"{"permission":"allow"}"#),
            Self::Stream => stream(),
        }
    }
}

const WORDS: &[&str] = &["the", "river", "runs", "past", "old", "mills", "and", "under", "seven", "bridges", "slowly"];

/// `open`, prose, `close`: `length` bytes together.
fn filled(open: &str, close: &str, length: usize) -> String {
    let room = length.saturating_sub(open.len() + close.len());
    let mut prose: String = WORDS.iter().cycle().flat_map(|word| [word, " "]).flat_map(str::chars).take(room).collect();
    if prose.ends_with(' ') {
        prose.pop();
        prose.push('.');
    }
    format!("{open}{prose}{close}")
}

fn whole(body: &str) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    (head + body).into_bytes()
}

/// The frames of the streamed answer, without the empty lines between them.
fn frames() -> Vec<String> {
    let delta = |content: &str| {
        format!(
            r#"data: {{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"bench","choices":[{{"index":0,"delta":{content},"finish_reason":null}}]}}"#
        )
    };
    let mut frames = vec![delta(r#"{"role":"assistant"}"#)];
    frames.extend(WORDS.iter().cycle().take(21).map(|word| delta(&format!(r#"{{"content":"{word} "}}"#))));
    frames.push("data: [DONE]".to_owned());
    frames
}

fn stream() -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunks: String = frames().iter().map(|frame| format!("{:x}\r\n{frame}\n\n\r\n", frame.len() + 2)).collect();
    format!("{head}{chunks}0\r\n\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_sizes_that_the_table_names() {
        assert_eq!(Exchange::Small.request().len(), 181);
        assert_eq!(Exchange::Large.request().len(), 4096);
        let answer = String::from_utf8(Exchange::Small.response()).unwrap();
        assert!(answer.ends_with("\"total_tokens\":41}}") && answer.contains("content-length: 330"));
        assert_eq!(frames().len(), 23);
    }
}
