//! What a hook's text changes of what it was shown, where the beginning of that has left already.

use std::ops::Range;

/// The least that must be the same on both sides of a border for it to be found again, in bytes.
const ANCHOR: usize = 4;

/// Other text for a part of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// In bytes of the segment.
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

/// A hook was shown `left` and `segment` as one text, and put `new` in its place: what changes in the segment. What has
/// left stays as it is; of a change across the border, the part in the segment is replaced.
pub(super) fn change(left: &str, segment: &str, new: &str) -> Option<Change> {
    let shown = [left, segment].concat();
    if shown == new {
        return None;
    }
    let before = common(shown.chars(), new.chars());
    let rest = (shown.get(before..)?, new.get(before..)?);
    let after = common(rest.0.chars().rev(), rest.1.chars().rev());
    let end = (shown.len() - after).checked_sub(left.len()).filter(|end| *end > 0 || before >= left.len())?;
    let text = new.get(before..new.len() - after)?;
    let Some(start) = before.checked_sub(left.len()) else {
        return Some(Change { range: 0..end, text: behind(left.get(before..)?, text).to_owned() });
    };
    Some(Change { range: start..end, text: text.to_owned() })
}

/// How many bytes two texts have in common, from where they are walked.
fn common(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum()
}

/// What stands in `text` behind the longest end of `left` that is found in it again; all of it where none is.
fn behind<'t>(left: &str, text: &'t str) -> &'t str {
    let ends = left.char_indices().map_while(|(at, _)| left.get(at..).filter(|end| end.len() >= ANCHOR));
    ends.filter_map(|end| text.get(text.rfind(end)? + end.len()..)).next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_has_not_left_is_changed() {
        for (left, segment, new, want) in [
            ("so ", "the key is AKIA1 ok", "so the key is [X] ok", Some((11..16, "[X]"))),
            // Across the border: its part in the segment.
            ("my AK", "IA1 ok", "my [X] ok", Some((0..3, "[X]"))),
            ("my AK", "IA1 ok", "my  ok", Some((0..3, ""))),
            // Only before the border: too late.
            ("my AKIA1", " ok", "my [X] ok", None),
            ("my AKIA1", " ok", " ok", None),
            // On both sides of it: what is the same on both is found again.
            ("card 4111 is mine", " and 4222 too", "card [1] is mine and [2] too", Some((0..9, " and [2]"))),
            ("", "all", "", Some((0..3, ""))),
            ("ab", "ab", "ab", Some((0..2, ""))),
            ("a", "b", "ab!", Some((1..1, "!"))),
            ("a", "b", "a!b", Some((0..0, "!"))),
            ("é", "é", "éè", Some((0..2, "è"))),
            ("same", "", "same", None),
        ] {
            let want = want.map(|(range, text): (Range<usize>, &str)| Change { range, text: text.into() });
            assert_eq!(change(left, segment, new), want, "{left:?} {segment:?} {new:?}");
        }
    }

    proptest! {
        #[test]
        fn what_a_hook_changes_in_a_segment_alone_is_what_comes_out(left in ".{0,20}", segment in ".{0,20}", new in ".{0,20}") {
            let mut out = segment.clone();
            if let Some(change) = change(&left, &segment, &format!("{left}{new}")) {
                out.replace_range(change.range, &change.text);
            }
            prop_assert_eq!(out, new);
        }

        #[test]
        fn any_answer_changes_a_segment_at_its_characters(left in "[ab]{0,8}", segment in "[abé]{0,8}", new in "[abé]{0,16}") {
            if let Some(change) = change(&left, &segment, &new) {
                prop_assert!(segment.get(change.range.clone()).is_some());
                prop_assert!(new.contains(&change.text));
            }
        }
    }
}
