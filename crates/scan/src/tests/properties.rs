//! Laws of [`find`] and [`redact`](crate::redact) on texts with secrets, and pieces of secrets, at every kind of border.

use std::borrow::Cow;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::examples::examples;
use crate::assignment::{PlainName, name_before};
use crate::find::Search;
use crate::prefilter::{Hit, RuleRef};
use crate::rule::Place;
use crate::run::is_token;
use crate::{Finding, MARKER, find, redact, redact_in_place, rules};

static SAMPLES: LazyLock<Vec<String>> =
    LazyLock::new(|| examples().into_iter().flat_map(|example| [example.hit, example.miss]).collect());

const BORDERS: [&str; 34] = [
    "",
    " ",
    "\n",
    "\t",
    "\"",
    "'",
    "`",
    "=",
    ":",
    ": \"",
    " = '",
    "\\n",
    "\\\"",
    "%3D",
    ".",
    ",",
    "-",
    "_",
    "/",
    "+",
    "~",
    "%",
    "é",
    "日本",
    "\u{0}",
    "&",
    ";",
    "@",
    "://",
    "://a:",
    "-----BEGIN",
    "[",
    "]",
    MARKER,
];

const NAMES: [&str; 15] = [
    "api_key = ",
    "\"apiKey\": \"",
    "--client-secret ",
    "Bearer ",
    "password=",
    "db_password = ",
    "PASSWORD: \"",
    "datadog_api_key=",
    "https://x:",
    "aws secret access key: ",
    "Authorization: Basic ",
    "sig=",
    "123456789:AA",
    "-----BEGIN PRIVATE KEY-----\n",
    "token,",
];

fn piece() -> impl Strategy<Value = String> {
    let sample = || any::<prop::sample::Index>().prop_map(|index| index.get(&SAMPLES).clone());
    let part = (sample(), any::<prop::sample::Index>()).prop_map(|(text, index)| {
        let at = text.floor_char_boundary(index.index(text.len()));
        text[at..].to_owned()
    });
    prop_oneof![
        4 => sample(),
        2 => part,
        6 => prop::sample::select(BORDERS.as_slice()).prop_map(str::to_owned),
        2 => prop::sample::select(NAMES.as_slice()).prop_map(str::to_owned),
        2 => "[a-zA-Z0-9_./+~-]{0,40}",
        1 => "\\PC{0,12}",
    ]
}

pub(super) fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..9).prop_map(|pieces| pieces.concat())
}

/// Every rule tried at every byte: no runs, no automata.
fn find_plainly(text: &str) -> Vec<Finding> {
    let bytes = text.as_bytes();
    let mut search = Search::new(text);
    for at in 0..bytes.len() {
        let value = at == 0 || !is_token(bytes[at - 1]);
        let name = name_before(bytes, at).filter(|_| value).map(|name| {
            let plain = PlainName::new(name);
            String::from_utf8(plain.as_bytes().to_vec()).unwrap()
        });
        for (index, rule) in rules().enumerate() {
            for literal in rule.literals {
                let end = match (rule.place, &name) {
                    (Place::Name, Some(name)) if name.contains(literal) => at,
                    (Place::Run | Place::Text, _) if bytes[at..].starts_with(literal.as_bytes()) => at + literal.len(),
                    _ => continue,
                };
                search.confirm(Hit { rule: RuleRef { index, rule }, start: at, end });
            }
        }
    }
    search.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_prefilter_loses_nothing_and_adds_nothing(text in text()) {
        prop_assert_eq!(find(&text), find_plainly(&text));
    }

    #[test]
    fn redacting_twice_is_redacting_once(text in text()) {
        let once = redact(&text).into_owned();
        prop_assert_eq!(redact(&once), once.as_str());
    }

    #[test]
    fn findings_are_in_order_apart_and_on_character_boundaries(text in text()) {
        let mut behind = None;
        for Finding { range, .. } in find(&text) {
            prop_assert!(behind < Some(range.start) && range.start < range.end);
            prop_assert!(text.get(range.clone()).is_some());
            prop_assert!(!text[range.clone()].contains(MARKER));
            behind = Some(range.end);
        }
    }

    #[test]
    fn only_the_findings_change(text in text()) {
        let (mut expected, mut count) = (text.clone(), 0);
        loop {
            let found = find(&expected);
            count += found.len();
            for Finding { range, .. } in found.iter().rev() {
                expected.replace_range(range.clone(), MARKER);
            }
            if found.is_empty() {
                break;
            }
        }
        prop_assert_eq!(redact(&text), expected.as_str());
        let mut in_place = text.clone();
        prop_assert_eq!(redact_in_place(&mut in_place), count);
        prop_assert_eq!(in_place, expected);
    }
}

#[test]
fn a_text_without_secrets_is_borrowed() {
    let text = "nothing to see here, not even in a_rather_long_identifier_of_no_meaning";
    assert!(matches!(redact(text), Cow::Borrowed(same) if std::ptr::eq(same, text)));
}

#[test]
fn the_marker_is_never_found() {
    for example in examples() {
        let text = redact(&example.hit).into_owned();
        assert_eq!(find(&text), [], "{text}");
    }
    for name in NAMES {
        let text = format!("{name}{MARKER}@host\" ");
        assert_eq!(redact(&text), text.as_str());
    }
}
