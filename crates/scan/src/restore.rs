//! Putting values back in the place of their placeholders.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use crate::Settled;

/// Placeholders, and the values that they stand for.
///
/// ```
/// use gatehook_scan::Restore;
///
/// let restore = Restore::new([("<EMAIL_1>".into(), "jane@example.com".into())]);
/// assert_eq!(restore.restore("I wrote to <EMAIL_1>, not to <EMAIL_2>."), "I wrote to jane@example.com, not to <EMAIL_2>.");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Restore {
    /// By placeholder, each once.
    pairs: Vec<(Arc<str>, Arc<str>)>,
    /// What placeholders begin with.
    first: Vec<char>,
}

impl Restore {
    /// Of these pairs of placeholder and value. Of a placeholder that comes twice, the first stands; no placeholder may
    /// begin with another.
    pub fn new(pairs: impl IntoIterator<Item = (Arc<str>, Arc<str>)>) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().filter(|(placeholder, _)| !placeholder.is_empty()).collect();
        pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        pairs.dedup_by(|(later, _), (earlier, _)| later == earlier);
        let mut first: Vec<char> = pairs.iter().filter_map(|(placeholder, _)| placeholder.chars().next()).collect();
        first.dedup();
        Self { pairs, first }
    }

    /// Whether there is nothing to restore.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Where placeholders stand in `text`, in bytes, and what they stand for; in order, apart from each other.
    pub fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (Range<usize>, &'a str)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (start, Known::Whole(placeholder, value)) = self.next(text, at, true)? else { return None };
            at = start + placeholder.len();
            Some((start..at, value))
        })
    }

    /// `text` with its values; borrowed where it has no placeholder.
    #[must_use]
    pub fn restore<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found = self.find(text).peekable();
        if found.peek().is_none() {
            return Cow::Borrowed(text);
        }
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        for (range, value) in found {
            out.push_str(text.get(done..range.start).unwrap_or_default());
            out.push_str(value);
            done = range.end;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// `json`, the text of a JSON value whose strings hold placeholders, with its values. JSON stays JSON.
    ///
    /// ```
    /// use gatehook_scan::Restore;
    ///
    /// let restore = Restore::new([("<NAME_1>".into(), "\"Jane\"".into())]);
    /// assert_eq!(restore.restore_json(r#"{"to":"<NAME_1>","cc":"\u003cNAME_1\u003e"}"#), r#"{"to":"\"Jane\"","cc":"\"Jane\""}"#);
    /// ```
    #[must_use]
    pub fn restore_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        if self.is_empty() { Cow::Borrowed(json) } else { self.in_json().restore(json) }
    }

    /// The same pairs as they are written in strings of JSON: some encoders escape `<`, `>` and `&`.
    fn in_json(&self) -> Self {
        let forms = self.pairs.iter().flat_map(|(placeholder, value)| {
            let value: Arc<str> = escaped(value).into();
            let lower = placeholder.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
            let upper = lower.replace("003c", "003C").replace("003e", "003E");
            [placeholder.clone(), lower.into(), upper.into()].map(|form| (form, value.clone()))
        });
        Self::new(forms)
    }

    /// How far `text` is settled, in bytes, while more may follow: what stands behind can still become a placeholder. No
    /// placeholder stands on both sides.
    #[must_use]
    pub fn settled(&self, text: &str) -> usize {
        let mut at = 0;
        loop {
            match self.next(text, at, false) {
                Some((start, Known::Whole(placeholder, _))) => at = start + placeholder.len(),
                Some((start, Known::Begun)) => return start,
                None => return text.len(),
            }
        }
    }

    /// The first place from `at` on where a placeholder stands or, in a text that goes on, may begin.
    fn next<'a>(&'a self, text: &str, at: usize, ended: bool) -> Option<(usize, Known<'a>)> {
        let starts = text.get(at..)?.match_indices(&*self.first).map(|(place, _)| at + place);
        let mut known = starts.filter_map(|start| {
            let rest = text.get(start..)?;
            let known = self.known(rest).filter(|known| !(ended && matches!(known, Known::Begun)))?;
            let is_escaped = rest.starts_with('\\') && backslashes_before(text, start) % 2 == 1;
            (!is_escaped).then_some((start, known))
        });
        known.next()
    }

    /// What `text` begins with.
    fn known(&self, text: &str) -> Option<Known<'_>> {
        // The last that is not greater than `text` is the one that it may begin with; the one behind it may begin with
        // `text`.
        let behind = self.pairs.partition_point(|(placeholder, _)| **placeholder <= *text);
        let whole = self.pairs.get(..behind)?.last().filter(|(placeholder, _)| text.starts_with(&**placeholder));
        match whole {
            Some((placeholder, value)) => Some(Known::Whole(placeholder, value)),
            None => {
                self.pairs.get(behind).filter(|(placeholder, _)| placeholder.starts_with(text)).map(|_| Known::Begun)
            }
        }
    }
}

/// What a text begins with.
enum Known<'a> {
    /// A placeholder, and its value.
    Whole(&'a str, &'a str),
    /// The beginning of one; the text ends in it.
    Begun,
}

fn backslashes_before(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().bytes().rev().take_while(|&byte| byte == b'\\').count()
}

/// A text as it is written in a string of JSON (RFC 8259, section 7).
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0}'..='\u{1f}' => drop(write!(out, "\\u{:04x}", u32::from(char))),
            char => out.push(char),
        }
    }
    out
}

/// Follows a growing text in which placeholders stand: nothing is held but what can still become one.
///
/// ```
/// use std::sync::Arc;
///
/// use gatehook_scan::{Restore, Restoring};
///
/// let restore = Arc::new(Restore::new([("<EMAIL_1>".into(), "jane@example.com".into())]));
/// let mut restoring = Restoring::new(restore);
/// assert_eq!(restoring.push("if a < b, write <EMA", false).upto, 16);
/// let settled = restoring.push("IL_1> today", false);
/// assert_eq!((settled.upto, settled.clean), (31, false));
/// ```
#[derive(Debug)]
pub struct Restoring {
    restore: Arc<Restore>,
    /// What is not settled.
    held: String,
    settled: usize,
}

impl Restoring {
    /// Nothing has come yet.
    #[must_use]
    pub fn new(restore: Arc<Restore>) -> Self {
        Self { restore, held: String::new(), settled: 0 }
    }

    /// More of the text; `ended`: nothing follows. What is settled holds whole placeholders: [`Restore::restore`] of it
    /// is what it stands for.
    pub fn push(&mut self, more: &str, ended: bool) -> Settled {
        self.held.push_str(more);
        let open = if ended { self.held.len() } else { self.restore.settled(&self.held) };
        let clean = self.restore.find(self.held.get(..open).unwrap_or_default()).next().is_none();
        self.held.drain(..open);
        self.settled += open;
        Settled { upto: self.settled, clean, too_long: false }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn restore() -> Restore {
        let pairs = [
            ("<EMAIL_1>", "jane@example.com"),
            ("<EMAIL_10>", "\"j\\n\"@x.org"),
            ("<CARD_2>", "4111 1111 1111 1111"),
            ("<PHONE_3>", ""),
            ("<NAME_4>", "<EMAIL_1>"),
        ];
        Restore::new(pairs.map(|(placeholder, value)| (placeholder.into(), value.into())))
    }

    #[test]
    fn only_what_is_known_is_restored_and_once() {
        for (text, want) in [
            ("", ""),
            ("to <EMAIL_1> and <EMAIL_10>.", "to jane@example.com and \"j\\n\"@x.org."),
            ("<EMAIL_1><EMAIL_1>", "jane@example.comjane@example.com"),
            ("<<EMAIL_1>>", "<jane@example.com>"),
            ("<EMAIL_<CARD_2>", "<EMAIL_4111 1111 1111 1111"),
            ("<PHONE_3>", ""),
            ("<NAME_4>", "<EMAIL_1>"),
            ("<EMAIL_2> <email_1> <EMAIL_1 > <EMAIL_", "<EMAIL_2> <email_1> <EMAIL_1 > <EMAIL_"),
        ] {
            assert_eq!(restore().restore(text), want, "{text:?}");
        }
        assert!(matches!(restore().restore("<b>nothing</b>"), Cow::Borrowed(_)));
    }

    #[test]
    fn in_json_a_value_is_escaped_and_a_placeholder_may_be() {
        for (json, want) in [
            (r#"{"a":"<EMAIL_10>"}"#, r#"{"a":"\"j\\n\"@x.org"}"#),
            (r#"["\u003cCARD_2\u003e"]"#, r#"["4111 1111 1111 1111"]"#),
            (r#"["\u003CCARD_2\u003E"]"#, r#"["4111 1111 1111 1111"]"#),
            (r#"["\\u003cCARD_2\u003e"]"#, r#"["\\u003cCARD_2\u003e"]"#),
            (r#"["\\\u003cCARD_2\u003e"]"#, r#"["\\4111 1111 1111 1111"]"#),
            (r#"{"<EMAIL_1>":1}"#, r#"{"jane@example.com":1}"#),
        ] {
            assert_eq!(restore().restore_json(json), want, "{json}");
        }
    }

    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            3 => prop::sample::select(["<EMAIL_1>", "<EMAIL_10>", "<CARD_2>", "<PHONE_3>", "<NAME_4>", "<EMAIL_2>"].as_slice()).prop_map(str::to_owned),
            3 => prop::sample::select(["<", ">", "<E", "<EMAIL_1", "CARD_2>", "é", "日", " ", "\\"].as_slice()).prop_map(str::to_owned),
            1 => "\\PC{0,6}",
        ];
        prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_text_in_pieces_is_restored_as_the_whole_is(text in text(), mut cuts in prop::collection::vec(0..80_usize, 0..12)) {
            let restore = Arc::new(restore());
            let mut restoring = Restoring::new(restore.clone());
            cuts.retain(|&cut| text.is_char_boundary(cut) && cut < text.len());
            cuts.sort_unstable();
            cuts.push(text.len());
            let (mut out, mut done, mut before) = (String::new(), 0, 0);
            for cut in cuts {
                let Settled { upto, clean, .. } = restoring.push(&text[done..cut], cut == text.len());
                let restored = restore.restore(&text[before..upto]);
                prop_assert_eq!(clean, restore.find(&text[before..upto]).next().is_none());
                out.push_str(&restored);
                prop_assert!(cut - upto < "<EMAIL_10>".len());
                (done, before) = (cut, upto);
            }
            prop_assert_eq!(out, restore.restore(&text));
        }

        #[test]
        fn restored_json_is_json_of_the_restored_string(text in text()) {
            let json = format!("[\"{}\"]", escaped(&text));
            prop_assert_eq!(restore().restore_json(&json), format!("[\"{}\"]", escaped(&restore().restore(&text))));
        }
    }
}
