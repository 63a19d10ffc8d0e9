//! Laws of searching whole texts, and texts that come in pieces.

use proptest::prelude::*;

use super::examples::{NONE, VALUES};
use crate::Settled;
use crate::pii::{Growing, Kinds, find, redact};

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(VALUES).prop_map(|(_, value)| value.to_owned()),
        2 => prop::sample::select(VALUES).prop_flat_map(|(_, value)| (0..=value.len()).prop_map(|at| value[value.floor_char_boundary(at)..].to_owned())),
        2 => prop::sample::select(VALUES).prop_flat_map(|(_, value)| (0..=value.len()).prop_map(|at| value[..value.floor_char_boundary(at)].to_owned())),
        1 => prop::sample::select(NONE).prop_map(str::to_owned),
        6 => prop::sample::select(["", " ", "  ", "\n", ".", ",", "-", "_", "/", "+", "(", ")", ":", "@", "\\n", "é", "日本", "\u{a0}", "0", "7", "49", "call ", "version ", "<EMAIL_1>", "x", "de", "..."].as_slice()).prop_map(str::to_owned),
        1 => "[a-f0-9:.@+() -]{0,20}",
        1 => "\\PC{0,12}",
        1 => "[a-z0-9]{100,200}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..9).prop_map(|pieces| pieces.concat())
}

fn kinds() -> impl Strategy<Value = Kinds> {
    prop_oneof![
        3 => Just(Kinds::ALL),
        1 => prop::sample::subsequence(vec!["email", "card", "iban", "ssn", "phone", "ip"], 0..6)
            .prop_map(|names| names.into_iter().fold(Kinds::NONE, |kinds, name| kinds.with(name).unwrap())),
    ]
}

/// Pushes `text` in pieces that end at `cuts`, and holds every answer against the whole.
fn follow(text: &str, kinds: Kinds, cuts: &[usize]) {
    let whole = find(text, kinds);
    let mut growing = Growing::new(kinds);
    let (mut done, mut before) = (0, 0);
    for &cut in cuts.iter().chain([&text.len()]) {
        let cut = text.floor_char_boundary(cut.min(text.len())).max(done);
        let ended = cut == text.len();
        let Settled { upto, clean, too_long } = growing.push(&text[done..cut], ended);
        assert!(
            text.is_char_boundary(upto) && before <= upto && upto <= cut && !too_long,
            "{upto} of {cut} in {text:?}"
        );
        let across = whole.iter().find(|found| found.range.start < upto && upto < found.range.end);
        assert_eq!(across, None, "settled to {upto} after {cut} of {text:?}");
        let new = whole.iter().filter(|found| (before..upto).contains(&found.range.start)).count();
        assert_eq!(clean, new == 0, "from {before} to {upto} after {cut} of {text:?}");
        (done, before) = (cut, upto);
        if ended {
            assert_eq!(upto, text.len(), "{text:?}");
            break;
        }
    }
}

/// What of a text that comes in pieces leaves as it is: what is settled and clean, and what is not found in what is
/// settled and not clean, looked at behind what has left.
fn leaves(text: &str, kinds: Kinds, cuts: &[usize]) -> Vec<bool> {
    let mut growing = Growing::new(kinds);
    let mut leaves = vec![true; text.len()];
    let mut left = String::new();
    let (mut done, mut before) = (0, 0);
    for &cut in cuts.iter().chain([&text.len()]) {
        let cut = text.floor_char_boundary(cut.min(text.len())).max(done);
        let Settled { upto, clean, .. } = growing.push(&text[done..cut], cut == text.len());
        let segment = &text[before..upto];
        if clean {
            left.push_str(segment);
        } else {
            let context = left[left.ceil_char_boundary(left.len().saturating_sub(256))..].to_owned();
            let mut rest = 0;
            for found in find(&[&context, segment].concat(), kinds).into_iter().map(|found| found.range) {
                // What has left stays as it is, whatever it looks like without what stood there.
                let start = found.start.saturating_sub(context.len());
                let end = found.end.saturating_sub(context.len());
                leaves[before + start..before + end].fill(false);
                left.extend([&segment[rest..start], if end > start { "<X>" } else { "" }]);
                rest = end;
            }
            left.push_str(&segment[rest..]);
        }
        (done, before) = (cut, upto);
        if cut == text.len() {
            break;
        }
    }
    leaves
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn findings_are_in_order_apart_and_on_character_boundaries(text in text()) {
        let mut behind = 0;
        for found in find(&text, Kinds::ALL) {
            prop_assert!(behind <= found.range.start && found.range.start < found.range.end);
            prop_assert!(text.get(found.range.clone()).is_some());
            behind = found.range.end;
        }
    }

    #[test]
    fn a_text_in_pieces_is_settled_as_the_whole_says(text in text(), kinds in kinds(), mut cuts in prop::collection::vec(0..400_usize, 0..30)) {
        cuts.sort_unstable();
        follow(&text, kinds, &cuts);
    }

    #[test]
    fn what_is_put_in_the_place_of_a_value_is_none(text in text(), kinds in kinds()) {
        let once = redact(&text, kinds, |kind, _| format!("<{}_1>", kind.word()));
        let findings = find(&once, kinds);
        prop_assert!(findings.iter().all(|found| !once[found.range.clone()].contains(['<', '>'])), "{once:?}");
    }

    #[test]
    fn no_byte_of_a_value_leaves_however_the_text_is_cut(
        text in text(),
        kinds in kinds(),
        mut cuts in prop::collection::vec(0..400_usize, 0..30),
    ) {
        cuts.sort_unstable();
        let leaves = leaves(&text, kinds, &cuts);
        for found in find(&text, kinds) {
            prop_assert!(!leaves[found.range.clone()].contains(&true), "{} of {text:?}", &text[found.range]);
        }
    }

    #[test]
    fn little_is_held(text in text()) {
        let settled = Growing::new(Kinds::ALL).push(&text, false);
        prop_assert!(text.len() - settled.upto <= 512, "{} of {text:?}", settled.upto);
    }
}

#[test]
fn nothing_of_a_value_is_settled_before_all_of_it_is() {
    for (kind, value) in VALUES {
        for (before, after) in
            [("", ""), ("it is ", " as I said"), ("日本", "。"), ("\\n", "\\n"), ("call 12 ", ", 12")]
        {
            let text = format!("{before}{value}{after}");
            let pairs = (0..=text.len()).flat_map(|one| [one, (one + 3).min(text.len())].map(|two| [one, two]));
            for cuts in pairs {
                follow(&text, Kinds::ALL, &cuts);
            }
            let each: Vec<usize> = (0..text.len()).collect();
            follow(&text, Kinds::ALL, &each);
        }
        // At every place of the value itself nothing of it has left.
        for (at, _) in value.char_indices().skip(1) {
            let upto = Growing::new(Kinds::ALL).push(&value[..at], false).upto;
            assert_eq!(upto, 0, "{kind}: {:?}", &value[..at]);
        }
    }
}

#[test]
fn values_that_touch_are_told_apart_however_they_come() {
    for (text, count) in [
        ("jane@example.co.uk+49 151 12345678", 2),
        ("4222222222222::ffff:192.0.2.128", 2),
        ("415-555-2671::ffff:19", 1),
        ("a@mail.my-site.com::ffff:192.0.2.128+49-151-1234-5678", 3),
        ("jane@example.com4111 1111 1111 1111", 2),
        ("123-45-6789-123-45-6789", 0),
        ("a@b.com@c.org", 1),
        ("+1 415 555 2671\\n4111 1111 1111 1111+4915+49 (30) 12345678", 3),
    ] {
        assert_eq!(find(text, Kinds::ALL).len(), count, "{text}");
        for one in 0..=text.len() {
            (one..=text.len()).for_each(|two| follow(text, Kinds::ALL, &[one, two]));
        }
        follow(text, Kinds::ALL, &(0..text.len()).collect::<Vec<_>>());
    }
}

#[test]
fn prose_and_numbers_are_hardly_held() {
    let text = "In 2024 the company sold 1,250,000 units (12.5% more than in 2023), at an average price of 19.99 each. \
                Call us: the year 1999 was good; see chapter 3.2.1, pages 120-125, or https://example.com/a/b?c=1. \
                Version 1.2.3 of std::fmt::Display works at 10:30:00 on 2024-01-15; x = y + 3 * (4 - 2). \
                Es waren 12 Leute da, und 3 davon (aus 4 Ländern) kamen um 8 Uhr; 2 + 2 = 4.";
    let mut growing = Growing::new(Kinds::ALL);
    let (mut worst, mut sum) = (0, 0);
    for (at, char) in text.char_indices() {
        let end = at + char.len_utf8();
        let held = end - growing.push(&text[at..end], false).upto;
        (worst, sum) = (worst.max(held), sum + held);
    }
    assert!(worst <= 24, "{worst}");
    assert!(sum / text.len() <= 5, "{}", sum / text.len());
    assert!(growing.push("", true).clean);
}

#[test]
fn the_time_is_linear() {
    for seed in ["@", "a@", "1 ", "12-", "0", ":", "f:", "(", "+1 ", "a", "4111 ", "de12 ", "1.", "::", "01 "] {
        let text = seed.repeat(200_000 / seed.len());
        let _ = find(&text, Kinds::ALL);
        let mut growing = Growing::new(Kinds::ALL);
        for start in (0..text.len().min(20_000)).step_by(20) {
            growing.push(&text[start..start + 20], false);
        }
    }
}
