//! Regular expressions over a text that comes in pieces, against the same over the whole.

use proptest::prelude::*;
use regex_automata::meta::Regex;

use crate::{Growing, Patterns};

/// Pushes `text` cut at `cuts`; checks that no match is ever cut, and tells whether one was found.
fn found(patterns: &[&str], text: &str, cuts: &[usize]) -> bool {
    let mut growing = Growing::new(Patterns::new(patterns).unwrap());
    let (mut came, mut upto, mut clean) = (0, 0, true);
    let first = Regex::new_many(patterns).unwrap().find(text);
    for &cut in cuts.iter().chain([&text.len()]) {
        let ended = cut == text.len();
        let settled = growing.push(&text[came..cut], ended);
        came = cut;
        assert!(upto <= settled.upto && settled.upto <= came && text.is_char_boundary(settled.upto), "{settled:?}");
        if clean && settled.clean {
            let out = first.as_ref().is_none_or(|first| first.start() >= settled.upto || first.is_empty());
            assert!(out, "{first:?} has left at {settled:?}: {patterns:?} in {text:?} cut at {cuts:?}");
        } else if clean {
            let whole = first.as_ref().is_some_and(|first| upto <= first.start() && first.start() <= settled.upto);
            assert!(whole, "{first:?} is not in {upto}..{settled:?}: {patterns:?} in {text:?} cut at {cuts:?}");
        }
        clean &= settled.clean;
        upto = settled.upto;
        if ended {
            assert_eq!(upto, text.len());
            break;
        }
    }
    assert_eq!(clean, first.is_none(), "{patterns:?} in {text:?} cut at {cuts:?}");
    !clean
}

fn everywhere(text: &str) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).skip(1).collect()
}

const PATTERNS: [&str; 22] = [
    "(?i)internal use only",
    r"\bfalcon\b",
    r"falcon\B",
    "^a",
    "b$",
    "(?m)^ab",
    "(?m)ab$",
    r"\Aab|ba\z",
    "a+b",
    "a*b+?c",
    "ab(?:ab)*",
    "[a-c]{2,4}é",
    r"\w+@\w+",
    r"(?i)größe\b",
    "日本",
    "(?s)a.*c",
    "a.{0,5}c",
    "(?-u:\\b)ab",
    "c|bc|abc",
    r"\d{3}-\d{2}",
    "[^a]b",
    "(?:)x",
];

/// A regular expression of any form.
fn pattern() -> impl Strategy<Value = String> {
    let atoms = [
        "a",
        "b",
        "c",
        "ab",
        "é",
        " ",
        r"\n",
        ".",
        "[ab]",
        "[^a]",
        r"\w",
        r"\b",
        r"\B",
        "^",
        "$",
        "(?m:^)",
        "(?m:$)",
        r"\A",
        r"\z",
        r"\b{start-half}",
        r"\b{end}",
        r"(?-u:\b)",
        "(?i:A)",
        "",
    ];
    let atom = prop::sample::select(atoms.to_vec()).prop_map(str::to_owned);
    atom.prop_recursive(4, 12, 3, |inner| {
        let counts = prop::sample::select(vec!["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,3}?"]);
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
            1 => prop::collection::vec(inner.clone(), 2..3).prop_map(|ways| format!("(?:{})", ways.join("|"))),
            1 => (inner, counts).prop_map(|(inner, count)| format!("(?:{inner}){count}")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_any_pattern_matches_is_found_in_pieces(
        patterns in prop::collection::vec(pattern(), 1..3),
        text in "[abcé \nx]{0,12}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let patterns: Vec<_> = patterns.iter().map(String::as_str).collect();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        cuts.sort_unstable();
        cuts.retain(|&cut| cut < text.len());
        let some = found(&patterns, &text, &cuts);
        prop_assert_eq!(found(&patterns, &text, &everywhere(&text)), some);
    }

    #[test]
    fn what_matches_the_whole_is_found_in_pieces(
        patterns in prop::collection::vec(prop::sample::select(PATTERNS.as_slice()), 1..4),
        text in prop_oneof!["[abc é@\\n日本x1-]{0,24}", "(?:falcon|Größe|INTERNAL use only|[ab ]|12|-3|é){0,6}"],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        cuts.sort_unstable();
        cuts.retain(|&cut| cut < text.len());
        let some = found(&patterns, &text, &cuts);
        prop_assert_eq!(found(&patterns, &text, &everywhere(&text)), some);
    }
}

#[test]
fn only_what_may_still_match_is_held() {
    let text = "It is an international story, used internally; INTERNAL use is not only for internals.";
    let mut growing = Growing::new(Patterns::new(&["(?i)internal use only", r"\bfalcon\b"]).unwrap());
    for (at, char) in text.char_indices() {
        let settled = growing.push(char.encode_utf8(&mut [0; 4]), false);
        let held = &text[settled.upto..=at];
        let may = "internal use only".starts_with(&held.to_lowercase()) || "falcon".starts_with(held);
        assert!(settled.clean && may, "{held:?} is held");
    }
}

#[test]
fn a_match_is_told_as_soon_as_it_is_one() {
    let mut growing = Growing::new(Patterns::new(&["x", "(?s)draft.*"]).unwrap());
    let settled = growing.push("a draft of", false);
    assert!(settled.clean && settled.upto == 2, "{settled:?}");
    let found = growing.found().unwrap();
    assert_eq!((found.pattern, found.start, found.end), (1, 2, 10));
    let settled = growing.push("", true);
    assert!(!settled.clean && settled.upto == 10, "{settled:?}");
}
