//! Frames that are like the one before but for their text, as nearly all of a stream are: they need not be read anew.

use super::frame::{Frame, Lane, Part};
use super::said::Said;
use super::{Fault, TrackKind};
use crate::json::{At, Document, plain_run};

/// A frame that brought text to one track and did nothing else.
///
/// JSON that differs from it only inside of that string, and has no escape there, has the same nodes in the same places.
/// So a format finds the same in it that it has just found, if it goes by the frame alone.
#[derive(Debug)]
pub(super) struct Pattern {
    /// Its JSON before the text and behind it.
    before: Vec<u8>,
    behind: Vec<u8>,
    at: At,
    choice: u32,
    kind: TrackKind,
    only_calls: bool,
}

impl Pattern {
    /// That of a frame which has been read; none where it is of another kind.
    pub(super) fn of(frame: &Frame, document: &Document) -> Option<Self> {
        let ([Part::Piece { at, .. }], Lane::Track(choice, kind)) = (&*frame.parts, frame.lane) else { return None };
        if frame.changes.is_some() || frame.wakes || frame.closes {
            return None;
        }
        let (start, end) = document.range(*at);
        let (before, rest) = document.bytes().split_at_checked(start + 1)?;
        let behind = rest.get(end.checked_sub(start + 2)?..)?;
        let (before, behind) = (before.to_vec(), behind.to_vec());
        Some(Self { before, behind, at: *at, choice, kind, only_calls: frame.only_calls })
    }

    /// Reads the frame that follows, if it is like this one; says whether it is.
    pub(super) fn read(&self, frame: &mut Frame, said: &mut Said) -> Result<bool, Fault> {
        let data = frame.data().clone();
        let Some(text) = self.text(&data) else { return Ok(false) };
        let span = said.append(self.choice, self.kind, text)?;
        said.turn(self.choice, Some(self.kind));
        frame.parts.push(Part::Piece { span, at: self.at });
        frame.lane = Lane::Track(self.choice, self.kind);
        (frame.speaks, frame.only_calls) = (true, self.only_calls);
        Ok(true)
    }

    /// What stands in the place of the text, where all else is the same.
    pub(super) fn text<'d>(&self, data: &'d [u8]) -> Option<&'d str> {
        let text = data.strip_prefix(&*self.before)?.strip_suffix(&*self.behind)?;
        let is_plain = !text.is_empty() && plain_run(text) == text.len();
        is_plain.then(|| std::str::from_utf8(text).ok()).flatten()
    }
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

    /// What comes of them, a text replaced. `between` stands between two.
    fn relayed(frames: &[String], between: &str, replaced: usize) -> (String, String) {
        let mut relay = Relay::new(Route::ChatCompletions).without_alternatives();
        let ends: String = (0..2).map(finish).collect();
        let body = frames.iter().map(|frame| format!("data: {frame}\n\n{between}")).collect::<String>() + &ends;
        let read = relay.push(body.into()).and_then(|()| relay.finish());
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
        (said, left.replace(": -\n\n", ""))
    }

    fn finish(index: u32) -> String {
        format!("data: {{\"choices\":[{{\"index\":{index},\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n")
    }

    proptest! {
        #[test]
        fn a_frame_that_is_like_the_one_before_is_read_as_it_would_be_anew(frames in frames(), replaced in 0_usize..20) {
            // Behind a comment a frame is read anew.
            prop_assert_eq!(relayed(&frames, "", replaced), relayed(&frames, ": -\n\n", replaced));
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
