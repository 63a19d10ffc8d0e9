//! What one builtin finds, glued to what another finds: in a stream too, neither hides anything from the other.

use gatehook_engine::events::Event;
use gatehook_inference::Route;
use gatehook_scan::pii::{self, Kinds};
use proptest::prelude::*;

use super::stream;
use crate::streams::{ROUTES, Say, text};
use crate::world::World;

const SECRETS: [&str; 9] = [
    "AKIAQ3EGRF5XYNB7TW2P",
    "api_key: \"Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0A\"",
    "datadog_api_key=3f9a1c5e7b2d4f60891a2b3c4d5e6f70",
    "password = hunter2!hunter2",
    "Bearer Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0A",
    "https://bob:hunter2x9!pw@db.example.com/x",
    "-----BEGIN PRIVATE KEY-----\nMIIEow7AbCdEfGhIjKlMnOp\n-----END PRIVATE KEY-----",
    "123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc",
    "0123456789abcdef0123456789abcdef-us12",
];

const VALUES: [&str; 8] = [
    "jane.doe@example.com",
    "j@x.io",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "123-45-6789",
    "+49 151 12345678",
    "8.8.8.8",
    "2001:db8::8a2e:370:7334",
];

const SEPARATORS: [&str; 14] = ["", " ", "\n", "_", "-", ".", ",", ":", "=", "\"", "@", "é", "x", " and so on, "];

const ORDERS: [[&str; 2]; 2] = [["redact_secrets", "redact_pii"], ["redact_pii", "redact_secrets"]];

/// What a client has of a text that comes in these pieces.
async fn left_of(names: [&str; 2], route: Route, pieces: &[&str]) -> String {
    let world = names.iter().fold(World::new(), |world, name| world.builtin(Event::PostInference, name, &[]));
    let says: Vec<Say> = pieces.iter().map(|piece| text(piece)).collect();
    let (_, came, gathered) = stream(world, route, &says).await;
    assert!(gathered.over && gathered.error.is_none(), "{pieces:?}: {}", came.text());
    gathered.text
}

/// The parts of what is found in a text, six bytes each, that stand nowhere else in it.
fn parts(text: &str) -> Vec<&str> {
    let secrets = gatehook_scan::find(text).into_iter().map(|found| found.range);
    let found: Vec<_> = secrets.chain(pii::find(text, Kinds::ALL).into_iter().map(|found| found.range)).collect();
    let hides = |at: usize| found.iter().any(|range| range.contains(&at));
    let rest: String = text.char_indices().map(|(at, char)| if hides(at) { '\u{0}' } else { char }).collect();
    let windows =
        found.iter().flat_map(|range| (range.start..range.end.saturating_sub(5)).filter_map(|at| text.get(at..at + 6)));
    windows.filter(|window| !rest.contains(window)).collect()
}

fn cut(text: &str, mut cuts: Vec<usize>) -> Vec<&str> {
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect()
}

#[tokio::test]
async fn a_name_that_is_taken_for_the_end_of_an_address_names_its_value_all_the_same() {
    let text = "So j@x.ioapi_key: \"Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0A\", ja.";
    for names in ORDERS {
        for &route in ROUTES {
            for at in 0..=text.len() {
                let left = left_of(names, route, &cut(text, vec![at])).await;
                assert_eq!(left, "So <EMAIL>_key: \"[REDACTED]\", ja.", "{names:?} {route:?} at {at}");
            }
            let left = left_of(names, route, &cut(text, (1..text.len()).collect())).await;
            assert_eq!(left, "So <EMAIL>_key: \"[REDACTED]\", ja.", "{names:?} {route:?} by characters");
        }
    }
}

/// Fails where a part of what is found in a text is in what a client has.
fn is_clean(names: [&str; 2], text: &str, left: &str) {
    for part in parts(text).into_iter().filter(|part| !"[REDACTED]".contains(part)) {
        assert!(!left.contains(part), "{names:?}: {part:?} of\n{text:?} is left in\n{left:?}");
    }
}

#[tokio::test]
async fn nothing_leaves_of_any_two_that_are_glued_together() {
    for (secret, value) in SECRETS.iter().flat_map(|secret| VALUES.map(|value| (secret, value))) {
        for text in ["", "_"].iter().flat_map(|glue| [[value, glue, secret].concat(), [secret, glue, value].concat()]) {
            let cuts = text.char_indices().map(|(at, _)| at).collect();
            let pieces = cut(&text, cuts);
            for names in ORDERS {
                is_clean(names, &text, &left_of(names, Route::ChatCompletions, &pieces).await);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_leaves_of_what_is_glued_together_however_it_is_cut(
        pieces in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()), 1..5),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        by_characters in any::<bool>(),
    ) {
        let piece = |(which, separator, secret): &(prop::sample::Index, prop::sample::Index, bool)| {
            let piece = if *secret { which.get(&SECRETS) } else { which.get(&VALUES) };
            [*piece, *separator.get(&SEPARATORS)].concat()
        };
        let text: String = pieces.iter().map(piece).collect();
        let cuts: Vec<usize> = if by_characters {
            text.char_indices().map(|(at, _)| at).collect()
        } else {
            cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for names in ORDERS {
            let left = runtime.block_on(left_of(names, Route::ChatCompletions, &cut(&text, cuts.clone())));
            is_clean(names, &text, &left);
        }
    }
}
