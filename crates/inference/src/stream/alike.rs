//! Frames that are like the one before but for their text, as nearly all of a stream are: they need not be read anew, and
//! wait for their text alone.

use std::collections::VecDeque;
use std::ops::Range;

use super::frame::{Frame, Lane, Part};
use super::lines::{Fields, Framing, Raw, after_comments, fields};
use super::said::{Said, Span};
use super::{TrackId, TrackKind};
use crate::json::{At, Document, plain_run};

/// The frames that are like one which brought text to a track and did nothing else, and that have not left.
///
/// JSON that differs from it only inside of that string, and has no escape there, has the same nodes in the same places.
/// So a format finds the same in it that it has just found, if it goes by the frame alone.
#[derive(Debug)]
pub(super) struct Run {
    /// Its JSON before the text and behind it.
    before: Vec<u8>,
    behind: Vec<u8>,
    at: At,
    track: TrackId,
    choice: u32,
    kind: TrackKind,
    only_calls: bool,
    held: VecDeque<Alike>,
    weight: usize,
}

/// One of them.
#[derive(Debug)]
struct Alike {
    raw: Raw,
    /// Its text, as the track has it.
    range: Range<usize>,
}

impl Run {
    /// That of a frame which has been read; none where it is of another kind.
    pub(super) fn of(frame: &Frame, document: &Document) -> Option<Self> {
        let ([Part::Piece { at, span }], Lane::Track(choice, kind)) = (&*frame.parts, frame.lane) else { return None };
        // A line's end in it was one of the event's.
        if frame.changes.is_some() || frame.wakes || frame.closes || document.bytes().contains(&b'\n') {
            return None;
        }
        let (start, end) = document.range(*at);
        let (before, rest) = document.bytes().split_at_checked(start + 1)?;
        let behind = rest.get(end.checked_sub(start + 2)?..)?;
        Some(Self {
            before: before.to_vec(),
            behind: behind.to_vec(),
            at: *at,
            track: span.track,
            choice,
            kind,
            only_calls: frame.only_calls,
            held: VecDeque::new(),
            weight: 0,
        })
    }

    /// Takes the frame that follows, if it is like this one; gives it back otherwise.
    pub(super) fn take(&mut self, came: (Raw, Fields), said: &mut Said) -> Option<(Raw, Fields)> {
        let (raw, fields) = &came;
        let data = fields.data.clone().filter(|_| fields.event.is_none() && fields.more.is_empty());
        let Some(text) = data.and_then(|data| self.text(raw.bytes().get(data)?)) else { return Some(came) };
        let range = self.say(text, said);
        self.hold(came.0, range);
        None
    }

    /// Takes in the text of a frame. Nothing has come since the last one that could have ended its choice.
    pub(super) fn say(&self, text: &str, said: &mut Said) -> Range<usize> {
        if said.tracks.len() > 1 {
            said.turn(self.choice, Some(self.kind));
        }
        said.go_on(self.track, text)
    }

    /// Holds that frame.
    pub(super) fn hold(&mut self, raw: Raw, range: Range<usize>) {
        self.weight += weight(&raw);
        self.held.push_back(Alike { raw, range });
    }

    /// The text of a read that is one such frame, as nearly all are where a stream leaves as it is made.
    pub(super) fn text_of_event<'d>(&self, read: &'d [u8]) -> Option<&'d str> {
        self.text(after_comments(read)?.strip_prefix(b"data: ")?.strip_suffix(b"\n\n")?)
    }

    /// What stands in the place of the text, where all else is the same.
    pub(super) fn text<'d>(&self, data: &'d [u8]) -> Option<&'d str> {
        let text = data.strip_prefix(&*self.before)?.strip_suffix(&*self.behind)?;
        let is_plain = !text.is_empty() && (is_short_and_plain(text) || plain_run(text) == text.len());
        is_plain.then(|| std::str::from_utf8(text).ok()).flatten()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The track that they bring text to.
    pub(super) fn track(&self) -> TrackId {
        self.track
    }

    /// What they weigh.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Where the text of the first begins.
    pub(super) fn start(&self) -> Option<(TrackId, usize)> {
        self.held.front().map(|first| (self.track, first.range.start))
    }

    /// Whether the text of the next one may leave as it came.
    pub(super) fn is_next(&self, said: &Said) -> bool {
        self.held.front().is_some_and(|next| next.range.end <= said.allowed(self.track))
    }

    /// The next one, if it may leave.
    pub(super) fn next(&mut self, said: &Said) -> Option<Raw> {
        if !self.is_next(said) {
            return None;
        }
        let next = self.held.pop_front()?;
        self.weight -= weight(&next.raw);
        Some(next.raw)
    }

    /// The next one as a frame like any other.
    pub(super) fn next_frame(&mut self, framing: Framing) -> Option<Frame> {
        let Alike { raw, range } = self.held.pop_front()?;
        self.weight -= weight(&raw);
        let fields = fields(framing, raw.bytes());
        let (mut frame, _) = Frame::new(framing, (raw, fields));
        frame.parts.push(Part::Piece { span: Span { track: self.track, range }, at: self.at });
        frame.lane = Lane::Track(self.choice, self.kind);
        (frame.speaks, frame.only_calls) = (true, self.only_calls);
        Some(frame)
    }
}

/// Whether this is a token's text without an escape: a longer one is looked at by those who do that faster.
fn is_short_and_plain(text: &[u8]) -> bool {
    text.len() <= 16 && text.iter().all(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20))
}

fn weight(raw: &Raw) -> usize {
    raw.len() + size_of::<Alike>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{Relay, Route, TrackId};

    /// What the shapes are filled with: as it stands in JSON.
    const TEXTS: [&str; 9] = ["a", " river", "", "é🙂", "\\n", "\\u00e9", "top_logprobs", "{}[]:,", "]}"];

    /// Frames of which some are alike, some nearly, and some are not.
    const SHAPES: [&str; 10] = [
        r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT"}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT"},"logprobs":null,"finish_reason":null}]}"#,
        r#"{"id":"c","choices":[{"index":1,"delta":{"content":"TEXT"}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{"reasoning":"TEXT"}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{"reasoning":"TEXT","reasoning_content":"a"}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"TEXT"}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{"content":"TEXT"}},{"index":1,"delta":{"content":"a"}}]}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"TEXT"}]}}]}"#,
        r#"{"id":"TEXT","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"total_tokens":3}}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"TEXT"}}]}}]}"#,
    ];

    /// Each shape several times, with a text each time.
    fn frames() -> impl Strategy<Value = Vec<String>> {
        let run = (prop::sample::select(&SHAPES[..]), prop::collection::vec(prop::sample::select(&TEXTS[..]), 1..5));
        let run = run.prop_map(|(shape, texts)| texts.iter().map(|text| shape.replace("TEXT", text)).collect());
        prop::collection::vec(run, 1..6).prop_map(|runs: Vec<Vec<String>>| runs.concat())
    }

    /// How they come.
    #[derive(Debug, Clone, Copy)]
    enum Come {
        /// In one read.
        Together,
        /// Each in a read of its own, with this in its first line.
        Alone(&'static str),
        /// With a comment between two: each is read anew.
        Apart,
    }

    /// What comes of them, a text replaced.
    fn relayed(frames: &[String], come: Come, replaced: usize) -> (String, String) {
        let mut relay = Relay::new(Route::ChatCompletions).without_alternatives();
        let (before, behind) = match come {
            Come::Together => ("", ""),
            Come::Alone(line) => (line, ""),
            Come::Apart => ("", ": -\n\n"),
        };
        let mut reads: Vec<String> = frames.iter().map(|frame| format!("{before}data: {frame}\n\n{behind}")).collect();
        reads.extend((0..2).map(finish));
        if !matches!(come, Come::Alone(_)) {
            reads = vec![reads.concat()];
        }
        let read = reads.into_iter().try_for_each(|read| relay.push(read.into())).and_then(|()| relay.finish());
        let said = format!("{read:?} {:?} {:?} {:?}", relay.tracks(), relay.calls(), relay.usage());
        for id in (0..relay.tracks().len()).map(TrackId) {
            let total = relay.tracks()[id.0].len_total();
            let start = relay.tracks()[id.0].text.floor_char_boundary(replaced % (total + 1));
            let _ = relay.replace(id, start..total, "X");
            relay.allow(id, total);
        }
        let mut left = String::new();
        while let Some(bytes) = relay.take() {
            left += &String::from_utf8_lossy(&bytes);
        }
        (said, left.replace(": -\n\n", "").replace(": -\n", ""))
    }

    fn finish(index: u32) -> String {
        format!("data: {{\"choices\":[{{\"index\":{index},\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n")
    }

    proptest! {
        #[test]
        fn a_frame_that_is_like_the_one_before_is_read_as_it_would_be_anew(frames in frames(), replaced in 0_usize..20) {
            let anew = relayed(&frames, Come::Apart, replaced);
            for come in [Come::Together, Come::Alone(""), Come::Alone(": -\n"), Come::Alone(": -\n: -\n")] {
                prop_assert_eq!(&relayed(&frames, come, replaced), &anew, "{:?}", come);
            }
        }
    }

    /// Half of what came may leave at each read, so that frames of both kinds are held together.
    fn let_go_by_halves(frames: &[String], between: &str) -> String {
        let mut relay = Relay::new(Route::ChatCompletions);
        let mut left = String::new();
        for (number, frame) in frames.iter().enumerate() {
            if relay.push(format!("data: {frame}\n\n{between}").into()).is_err() {
                break;
            }
            for id in (0..relay.tracks().len()).map(TrackId).filter(|id| (id.0 + number) % 3 > 0) {
                relay.allow(id, relay.tracks()[id.0].len_total() / 2);
            }
            while let Some(bytes) = relay.take() {
                left += &String::from_utf8_lossy(&bytes);
            }
            left += "|";
        }
        left.replace(": -\n\n", "")
    }

    proptest! {
        #[test]
        fn what_is_held_leaves_when_it_would_if_each_frame_were_read_anew(frames in frames()) {
            prop_assert_eq!(let_go_by_halves(&frames, ""), let_go_by_halves(&frames, ": -\n\n"));
        }
    }

    #[test]
    fn a_comment_whose_line_ends_otherwise_is_no_comment_of_a_frame_like_the_one_before() {
        let first = format!("data: {}\n\n", SHAPES[0].replace("TEXT", "a"));
        for (read, expected) in [(": -\n", "ab"), (": -\r", "ab"), (": -\rdata: 1\n", "a")] {
            let mut relay = Relay::new(Route::ChatCompletions);
            relay.push(first.clone().into()).unwrap();
            let _ = relay.push(format!("{read}{}", first.replace("\"a\"", "\"b\"")).into());
            assert_eq!(relay.tracks()[0].text, expected, "{read:?}");
        }
    }

    #[test]
    fn a_read_that_is_like_the_last_frame_is_a_step_of_its_own() {
        let mut relay = Relay::new(Route::ChatCompletions);
        for (text, said) in [("a", "a"), ("b", "ab"), ("c", "abc")] {
            relay.put(format!("data: {}\n\n", SHAPES[0].replace("TEXT", text)).into());
            assert_eq!((relay.advance().unwrap(), &*relay.tracks()[0].text), (true, said));
            assert!(!relay.advance().unwrap(), "{said}");
        }
    }

    #[test]
    fn a_frame_is_like_another_whose_text_alone_is_other_plain_text() {
        let first = SHAPES[0].replace("TEXT", "a");
        for (next, alike) in [
            (SHAPES[0].replace("TEXT", "é🙂]}"), true),
            (SHAPES[0].replace("TEXT", ""), false),
            (SHAPES[0].replace("TEXT", "\\n"), false),
            (SHAPES[0].replace("TEXT", "b\"}}],\"error\":{\"message\":\"c"), false),
            (SHAPES[0].replace("\"c\"", "\"d\""), false),
            (SHAPES[2].replace("TEXT", "b"), false),
        ] {
            let mut relay = Relay::new(Route::ChatCompletions);
            relay.push(format!("data: {first}\n\n").into()).unwrap();
            assert_eq!(relay.is_like_last(next.as_bytes()), alike, "{next}");
        }
    }
}
