//! What travels, chosen by a word on the command line.

use std::time::Duration;

use crate::stream;

/// Which request goes up and which reply comes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// A 181-byte chat, a 330-byte answer.
    Small,
    /// A chat and an answer of 4 KiB each, clean prose.
    Large,
    /// The small chat, streamed back as 23 SSE frames in as many chunks, all there at once.
    Stream,
    /// The same with 1,000 frames.
    Frames,
    /// The same with 100 frames, 10 ms apart.
    Paced,
    /// The same with a frame each second, for an hour: streams that stand open.
    Slow,
    /// A webhook that allows everything.
    Hook,
}

/// The words of the command line.
const WORDS: [(&str, Exchange); 7] = [
    ("small", Exchange::Small),
    ("large", Exchange::Large),
    ("stream", Exchange::Stream),
    ("frames", Exchange::Frames),
    ("paced", Exchange::Paced),
    ("slow", Exchange::Slow),
    ("hook", Exchange::Hook),
];

/// What an upstream answers, head included.
#[derive(Debug)]
pub enum Answer {
    /// All of it at once.
    Whole(Vec<u8>),
    /// One frame after the other.
    Paced(Pace),
}

/// A stream's frames, the first at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How many, `[DONE]` not counted: it leaves with the last.
    pub frames: usize,
    /// How far they are apart.
    pub every: Duration,
}

impl Exchange {
    /// Reads the word of the command line.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        WORDS.iter().find(|(name, _)| *name == word).map(|(_, exchange)| *exchange)
    }

    /// All words, as a usage line has them.
    #[must_use]
    pub fn words() -> String {
        WORDS.map(|(name, _)| name).join("|")
    }

    /// The body of the request.
    #[must_use]
    pub fn request(self) -> String {
        let length = if self == Self::Large { 4096 } else { 181 };
        let stream = if self.frames().is_some() { r#","stream":true"# } else { "" };
        let open = r#"{"model":"bench","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":""#;
        filled(open, &format!(r#""}}],"temperature":0.7{stream}}}"#), length)
    }

    /// What is answered.
    #[must_use]
    pub fn answer(self) -> Answer {
        let open = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1760000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":""#;
        let close =
            r#""},"finish_reason":"stop"}],"usage":{"prompt_tokens":24,"completion_tokens":17,"total_tokens":41}}"#;
        if let Some(pace) = self.pace() {
            return Answer::Paced(pace);
        }
        Answer::Whole(match self {
            Self::Large => whole(&filled(open, close, 4096)),
            Self::Hook => whole(r#"{"permission":"allow"}"#),
            _ => match self.frames() {
                Some(frames) => stream::at_once(frames),
                None => whole(&filled(open, close, 330)),
            },
        })
    }

    /// How many frames a streamed answer has, `[DONE]` not counted.
    #[must_use]
    pub fn frames(self) -> Option<usize> {
        match self {
            Self::Stream => Some(22),
            Self::Frames => Some(999),
            _ => self.pace().map(|pace| pace.frames),
        }
    }

    /// How the frames of a streamed answer follow each other, where they are not there at once.
    #[must_use]
    pub fn pace(self) -> Option<Pace> {
        match self {
            Self::Paced => Some(Pace { frames: 100, every: Duration::from_millis(10) }),
            Self::Slow => Some(Pace { frames: 3600, every: Duration::from_secs(1) }),
            _ => None,
        }
    }
}

const PROSE: [&str; 11] =
    ["the", "river", "runs", "past", "old", "mills", "and", "under", "seven", "bridges", "slowly"];

/// `open`, prose, `close`: `length` bytes together.
fn filled(open: &str, close: &str, length: usize) -> String {
    let room = length.saturating_sub(open.len() + close.len());
    let mut prose: String = PROSE.iter().cycle().flat_map(|word| [word, " "]).flat_map(str::chars).take(room).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_sizes_that_the_table_names() {
        assert_eq!(Exchange::Small.request().len(), 181);
        assert_eq!(Exchange::Stream.request().len(), 181);
        assert_eq!(Exchange::Large.request().len(), 4096);
        let Answer::Whole(answer) = Exchange::Small.answer() else { panic!("a small answer is there at once") };
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.ends_with("\"total_tokens\":41}}") && answer.contains("content-length: 330"));
    }

    #[test]
    fn streams_have_the_frames_that_the_table_names() {
        for (exchange, count) in [(Exchange::Stream, 23), (Exchange::Frames, 1000)] {
            let Answer::Whole(answer) = exchange.answer() else { panic!("{exchange:?} is there at once") };
            let frames = String::from_utf8(answer).unwrap().matches("data: ").count();
            assert_eq!(frames, count, "{exchange:?}");
        }
    }
}
