//! The frames of a streamed chat: some 230 bytes each, one token of English text in all but the first and the last.
//!
//! Frames that leave one by one say in a comment when they left, so that whoever reads them knows how long they took.

use std::time::{SystemTime, UNIX_EPOCH};

use memchr::memmem;

/// What the model says, again and again.
const TEXT: &str = "The old mill at the bend of the river had been grinding corn for two hundred years when the \
railway came through the valley in 1874. Nobody in the village believed that the bridge would hold, and the \
miller, who had seen three floods carry off better timber, said so to anyone that would listen. The engineers \
measured, nodded politely and went on building; by the following spring a small green locomotive pulled eleven \
wagons across without spilling a drop of water. It took another decade until the corn itself travelled by train, \
and one more until the wheel stood still. Today its stones lie in the grass behind the station, where children \
use them as tables and the stationmaster keeps geraniums in the old hopper. ";

/// How many bytes a word may have and still be one token.
const LONGEST: usize = 8;

/// The head of a streamed response.
pub const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// What follows the last chunk.
pub const END: &str = "0\r\n\r\n";
/// The stream's own end.
const DONE: &str = "data: [DONE]\n\n";

/// Where a frame says when it left, in microseconds since 1970, with 16 digits: in a comment before its data.
const STAMP: &str = ": ";
/// Where the token begins.
const CONTENT: &str = r#""content":""#;

/// A token as a model gives them: a word with the space before it, a part of a long word.
fn token(number: usize) -> &'static str {
    use std::sync::LazyLock;
    static TOKENS: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let begins =
            std::iter::once(0).chain(TEXT.match_indices(' ').map(|(at, _)| at).filter(|at| at + 1 < TEXT.len()));
        let ends = begins.clone().skip(1).chain([TEXT.len()]);
        let words = begins.zip(ends).filter_map(|(begin, end)| TEXT.get(begin..end));
        let tokens = words.flat_map(|word| match word.split_at_checked(LONGEST) {
            Some((begin, rest)) if !rest.is_empty() => vec![begin, rest],
            _ => vec![word],
        });
        tokens.collect()
    });
    TOKENS.get(number % TOKENS.len()).copied().unwrap_or_default()
}

/// The token that frame `number` of so many brings.
fn content(number: usize, frames: usize) -> Option<&'static str> {
    (0 < number && number + 1 < frames).then(|| token(number - 1))
}

/// All that the model says in so many frames.
#[must_use]
pub fn text(frames: usize) -> String {
    (0..frames).filter_map(|number| content(number, frames)).collect()
}

/// Frame `number` of so many, as one chunk; the last one with the stream's end behind it. With a stamp other than 0 it says
/// when it left.
#[must_use]
pub fn chunk(number: usize, frames: usize, stamp: u64) -> String {
    let delta = match content(number, frames) {
        Some(token) => format!(r#"{{"content":"{token}"}}"#),
        None if number == 0 => r#"{"role":"assistant","content":""}"#.to_owned(),
        None => "{}".to_owned(),
    };
    let last = number + 1 == frames;
    let finish = if last { r#""stop""# } else { "null" };
    let comment = if stamp > 0 { format!("{STAMP}{stamp:016}\n") } else { String::new() };
    let frame = format!(
        "{comment}data: {{\"id\":\"chatcmpl-1760000000000000\",\"object\":\"chat.completion.chunk\",\
         \"created\":1760000000,\"model\":\"bench\",\"system_fingerprint\":\"fp_44709d6fcb\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n"
    );
    let chunk = |data: &str| format!("{:x}\r\n{data}\r\n", data.len());
    if last { chunk(&frame) + &chunk(DONE) + END } else { chunk(&frame) }
}

/// A whole response of so many frames, unstamped.
#[must_use]
pub fn at_once(frames: usize) -> Vec<u8> {
    let chunks: String = (0..frames).map(|number| chunk(number, frames, 0)).collect();
    format!("{HEAD}{chunks}").into_bytes()
}

/// Microseconds since 1970.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// One frame as it came.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When it left, if it says so.
    pub stamp: Option<u64>,
    /// Its text, if it has any.
    pub text: &'a str,
}

impl<'a> Frame<'a> {
    /// Reads the frame at the start of `body`, and says where the next one begins; nothing while it is not complete.
    /// Comments and events of other names are frames without text.
    #[must_use]
    pub fn first(body: &'a [u8]) -> Option<(Self, usize)> {
        let end = memmem::find(body, b"\n\n")? + 2;
        let frame = body.get(..end).unwrap_or_default();
        let after = |mark: &str| memmem::find(frame, mark.as_bytes()).and_then(|at| frame.get(at + mark.len()..));
        let stamp = frame.strip_prefix(STAMP.as_bytes());
        let stamp = stamp.and_then(|rest| std::str::from_utf8(rest.get(..16)?).ok()?.parse().ok());
        let text = after(CONTENT).and_then(|rest| std::str::from_utf8(rest.get(..memchr::memchr(b'"', rest)?)?).ok());
        Some((Self { stamp, text: text.unwrap_or_default() }, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let chunk = chunk(3, 9, 1_760_000_000_123_456);
        let (size, frame) = chunk.split_once("\r\n").unwrap();
        assert_eq!(usize::from_str_radix(size, 16).unwrap() + 2, frame.len());
        assert!((200..260).contains(&frame.len()), "{}", frame.len());
        let (read, end) = Frame::first(frame.as_bytes()).unwrap();
        assert_eq!((read, end), (Frame { stamp: Some(1_760_000_000_123_456), text: token(2) }, frame.len() - 2));
        assert_eq!(Frame::first(b"data: {}\n"), None);
        assert_eq!(Frame::first(b": ping\n\nda"), Some((Frame { stamp: None, text: "" }, 8)));
    }

    #[test]
    fn the_text_stands_in_its_tokens() {
        assert_eq!(text(2), "");
        assert!(text(1000).starts_with(TEXT) && text(1000).get(TEXT.len()..).unwrap().starts_with("The old"));
        assert!((0..500).all(|number| !token(number).contains(['"', '\\'])));
    }
}
