//! What stands on both sides of a tool call, or of text of another kind: the first half does not leave before the second
//! has come.

use bytes::Bytes;
use gatehook_engine::events::Event;
use gatehook_inference::{ErrorKind, Route};
use proptest::prelude::*;

use super::{gate, send, stream};
use crate::streams::{ROUTES, Say, call, has_more, text, thinking};
use crate::world::{Exchange, World};

/// A builtin, what it finds, and what stands in its place.
const FOUND: [(&str, &str, &str); 8] = [
    ("redact_secrets", "AKIAQ3EGRF5XYNB7TW2P", "[REDACTED]"),
    ("redact_secrets", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "[REDACTED]"),
    ("redact_pii", "jane.doe@example.com", "<EMAIL>"),
    ("redact_pii", "4111 1111 1111 1111", "<CARD>"),
    ("redact_pii", "DE89 3704 0044 0532 0130 00", "<IBAN>"),
    ("redact_pii", "123-45-6789", "<SSN>"),
    ("redact_pii", "+49 151 12345678", "<PHONE>"),
    ("redact_pii", "2001:db8::8a2e:370:7334", "<IP>"),
];

fn world(name: &str) -> World {
    World::new().builtin(Event::PostInference, name, &[])
}

fn routes() -> impl Iterator<Item = Route> {
    ROUTES.iter().copied().filter(|route| has_more(*route))
}

#[tokio::test]
async fn what_a_tool_call_cuts_in_two_leaves_as_from_the_whole() {
    for (name, value, word) in FOUND {
        for route in routes() {
            for at in 0..=value.len() {
                let (first, second) = (format!("So: {}", &value[..at]), format!("{} – ja.", &value[at..]));
                let says = [text(&first), call("c1", "ls", "{}"), call("c2", "ls", "{}"), text(&second)];
                let (_, came, gathered) = stream(world(name), route, &says).await;
                assert_eq!(gathered.text, format!("So: {word} – ja."), "{route:?} {value} at {at}: {}", came.text());
                assert_eq!(gathered.calls.len(), 2, "{route:?} {value} at {at}: {}", came.text());
                assert!(gathered.over, "{route:?} {value} at {at}: {}", came.text());
            }
        }
    }
}

#[tokio::test]
async fn a_phrase_that_a_tool_call_cuts_in_two_does_not_begin_to_leave() {
    for route in routes() {
        for at in 1.."red falcon".len() {
            let world = World::new().builtin(Event::PostInference, "block_patterns", &["red falcon"]);
            let (first, second) = "red falcon".split_at(at);
            let says = [text(&format!("It is {first}")), call("c1", "ls", "{}"), text(&format!("{second}, yes."))];
            let (_, came, gathered) = stream(world, route, &says).await;
            assert_eq!(came.refusal.as_ref().unwrap().kind, ErrorKind::Denied, "{route:?} at {at}");
            assert!("It is ".starts_with(&gathered.text), "{route:?} at {at}: {}", came.text());
        }
    }
}

/// Whether a route has one order for all: then what is held delays what follows it.
fn has_one_order(route: Route) -> bool {
    matches!(route, Route::Messages | Route::Responses)
}

#[tokio::test]
async fn what_text_of_the_other_kind_cuts_in_two_leaves_as_from_the_whole() {
    for (name, value, word) in FOUND {
        for route in routes().chain([Route::Generate]) {
            for at in 1..value.len() {
                let (first, second) = (format!("So: {}", &value[..at]), format!("{} – ja.", &value[at..]));
                let whole = format!("So: {word} – ja.");
                let (_, came, gathered) =
                    stream(world(name), route, &[text(&first), thinking("Hm. "), text(&second)]).await;
                let what = format!("{route:?} {value} at {at}: {}", came.text());
                assert_eq!((&*gathered.text, &*gathered.thinking, gathered.over), (&*whole, "Hm. ", true), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn nor_does_any_of_it_leave_where_kinds_take_turns_with_every_character() {
    for (name, value, word) in FOUND {
        for route in routes().chain([Route::Generate]) {
            let said = format!("So: {value} – ja.");
            let whole = format!("So: {word} – ja.");
            let chars = || said.chars().map(|char| char.to_string());
            let says: Vec<Say> = chars().flat_map(|char| [text(&char), thinking(". ")]).collect();
            let (_, came, gathered) = stream(world(name), route, &says).await;
            assert_eq!(gathered.text, whole, "{route:?} {value}: {}", came.text());
            if has_one_order(route) {
                continue;
            }
            let says: Vec<Say> = chars().flat_map(|char| [thinking(&char), text(". ")]).collect();
            let (_, came, gathered) = stream(world(name), route, &says).await;
            assert_eq!(gathered.thinking, whole, "{route:?} {value}: {}", came.text());
            // Both at once: each is a text of its own.
            let says: Vec<Say> = chars().flat_map(|char| [thinking(&char), text(&char)]).collect();
            let (_, came, gathered) = stream(world(name), route, &says).await;
            assert_eq!((&gathered.thinking, &gathered.text), (&whole, &whole), "{route:?} {value}: {}", came.text());
        }
    }
}

/// The answer does not wait for the last word of the thinking before it.
#[tokio::test]
async fn of_what_text_cuts_in_two_in_thinking_no_more_leaves_than_a_word_at_the_end_of_the_first() {
    let address = ("redact_pii", "8.8.4.200", "<IP>");
    for (name, value, word) in FOUND.into_iter().chain([address]) {
        for route in routes().chain([Route::Generate]) {
            for at in 1..value.len() {
                let (first, second) = (format!("So: {}", &value[..at]), format!("{} – ja.", &value[at..]));
                let says = [thinking(&first), text("Hm. "), thinking(&second)];
                let (_, came, gathered) = stream(world(name), route, &says).await;
                let begun = gathered.thinking.strip_prefix("So: ").and_then(|rest| rest.split_once(word));
                let (begun, _) = begun.unwrap_or_else(|| panic!("{route:?} {value} at {at}: {}", came.text()));
                let is_word = begun.trim_end_matches('.').chars().all(char::is_alphabetic);
                let may = match word {
                    "<EMAIL>" => is_word,
                    "<IP>" => begun.is_empty() || begun == "8." || begun == "8.8.",
                    _ => begun.is_empty(),
                };
                assert!(may, "{route:?} {value} at {at}: {begun:?} has left in {}", came.text());
            }
        }
    }
}

#[tokio::test]
async fn a_phrase_that_text_of_the_other_kind_cuts_in_two_does_not_begin_to_leave() {
    for route in routes().chain([Route::Generate]) {
        for at in 1.."red falcon".len() {
            let (first, second) = "red falcon".split_at(at);
            let (first, second) = (format!("It is {first}"), format!("{second}, yes."));
            for says in
                [[text(&first), thinking("Hm."), text(&second)], [thinking(&first), text("Hm."), thinking(&second)]]
            {
                let world = World::new().builtin(Event::PostInference, "block_patterns", &["red falcon"]);
                let (_, came, gathered) = stream(world, route, &says).await;
                assert_eq!(came.refusal.as_ref().unwrap().kind, ErrorKind::Denied, "{route:?} at {at}");
                let said = if matches!(says[0], Say::Text(_)) { &gathered.text } else { &gathered.thinking };
                assert!("It is ".starts_with(&**said), "{route:?} at {at}: {}", came.text());
            }
        }
    }
}

/// A server may go on with a block of thinking though text has followed: what goes on then is the same text.
#[tokio::test]
async fn thinking_that_goes_on_in_its_block_behind_text_is_waited_for() {
    let value = "jane.doe@example.com";
    let says = [thinking("So: "), text("Hm. ")];
    let frames = crate::streams::frames(Route::Messages, &says);
    let delta = |index: usize, kind: &str, text: &str| {
        let delta = serde_json::json!({"type": format!("{kind}_delta"), kind: text});
        let event = serde_json::json!({"type": "content_block_delta", "index": index, "delta": delta});
        format!("event: content_block_delta\ndata: {event}\n\n")
    };
    let is_stop = |frame: &&String| frame.contains("content_block_stop");
    let (stops, open): (Vec<&String>, Vec<&String>) = frames.iter().partition(is_stop);
    let (begun, ended) = open.split_at(open.len() - 2);
    let mut stream: Vec<String> = begun.iter().map(|frame| (*frame).clone()).collect();
    let turns = value.chars().flat_map(|char| [delta(0, "thinking", &char.to_string()), delta(1, "text", ". ")]);
    stream.extend(turns.chain([delta(0, "thinking", ", ja.")]));
    stream.extend(stops.into_iter().chain(ended.iter().copied()).cloned());
    let exchange = Exchange::from(world("redact_pii"));
    let mut gate = gate(&exchange, Route::Messages).await.unwrap();
    let came = send(&mut gate, stream.into_iter().map(Bytes::from)).await;
    let thoughts = came.text().split("\n\n").filter_map(|event| event.split_once("\ndata: "));
    let thoughts = thoughts.map(|(_, data)| serde_json::from_str::<serde_json::Value>(data).unwrap());
    let thought: String = thoughts.filter_map(|event| Some(event["delta"]["thinking"].as_str()?.to_owned())).collect();
    assert!(thought.strip_suffix("<EMAIL>, ja.").is_some_and(|begun| begun.len() <= "So: j".len()), "{thought:?}");
}

#[tokio::test]
async fn a_text_does_not_wait_because_of_the_last_word_of_the_thinking() {
    for last in ["It is fine.", "That makes 42.", "Well-known, so", "(see 2024)", "a pattern?", "the key: yes"] {
        for route in routes().chain([Route::Generate]) {
            let world = world("redact_secrets").builtin(Event::PostInference, "redact_pii", &[]);
            let says = [thinking(last), text("All is "), text("fine, "), text("really.")];
            let (_, came, gathered) = stream(world, route, &says).await;
            let frames = crate::streams::frames(route, &says);
            let at = frames.iter().position(|frame| frame.contains("fine, ")).unwrap();
            let text = crate::streams::gather(route, &came.bytes[..came.after[at]]).text;
            assert!(text.starts_with("All is "), "{route:?} {last:?}: {text:?} of {gathered:?}");
            assert_eq!(came.text(), frames.concat(), "{route:?} {last:?}");
        }
    }
}

#[tokio::test]
async fn the_last_word_before_a_call_leaves_at_the_end() {
    for route in routes() {
        let says = [text("Let me look."), call("c1", "ls", "{}")];
        let (_, _, gathered) = stream(world("redact_secrets"), route, &says).await;
        assert_eq!((&*gathered.text, gathered.calls.len(), gathered.over), ("Let me look.", 1, true), "{route:?}");
    }
}

#[tokio::test]
async fn what_goes_on_with_nothing_at_first_is_seen_with_what_has_left() {
    for route in routes().filter(|route| has_one_order(*route)) {
        let says = [thinking("So jane."), text("Hm. "), thinking(""), thinking("doe@example.com, ja.")];
        let (_, came, gathered) = stream(world("redact_pii"), route, &says).await;
        assert_eq!(gathered.thinking, "So jane.<EMAIL>, ja.", "{route:?}: {}", came.text());
    }
}

/// What texts are made of that kinds say in turns.
const WORDS: [&str; 20] = [
    "So ",
    "it is ",
    "fine. ",
    "Well",
    "-known",
    ", ",
    "42",
    ".",
    " ",
    "wörtlich",
    "jane.doe@example.com",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "+49 151 12345678",
    "8.8.4.200",
    "AKIAQ3EGRF5XYNB7TW2P",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "api_key = ",
    "Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0A",
    "https://jane:hunter2hunter2@example.com/",
];

/// A text, in pieces.
fn pieces() -> impl Strategy<Value = Vec<String>> {
    let words = prop::collection::vec(prop::sample::select(&WORDS[..]), 0..8);
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..6);
    (words, cuts).prop_map(|(words, cuts)| {
        let whole = words.concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len() + 1)).chain([0, whole.len()]).collect();
        cuts.iter_mut().for_each(|cut| *cut = whole.floor_char_boundary(*cut));
        cuts.sort_unstable();
        cuts.windows(2).map(|cut| whole[cut[0]..cut[1]].to_owned()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn however_kinds_take_turns_each_leaves_as_one_after_the_other(
        said in pieces(),
        thought in pieces(),
        thinks_first in any::<bool>(),
        both in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let world = || match both {
            true => world("redact_secrets").builtin(Event::PostInference, "redact_pii", &[]),
            false => world("redact_secrets"),
        };
        let count = said.len().max(thought.len());
        let turns = (0..count).flat_map(|turn| {
            let turn = [thought.get(turn).map(|piece| thinking(piece)), said.get(turn).map(|piece| text(piece))];
            let [first, second] = turn;
            if thinks_first { [first, second] } else { [second, first] }
        });
        let says: Vec<Say> = turns.flatten().collect();
        for route in routes().chain([Route::Generate]) {
            runtime.block_on(async {
                let apart = thought.iter().map(|piece| thinking(piece)).chain(said.iter().map(|piece| text(piece)));
                let (_, _, whole) = stream(world(), route, &apart.collect::<Vec<_>>()).await;
                let (_, came, parted) = stream(world(), route, &says).await;
                let what = format!("{route:?} {both} {says:?}: {}", came.text());
                assert_eq!((&parted.text, parted.over), (&whole.text, true), "{what}");
                // A word may have left with which an address begins, but no secret.
                if has_one_order(route) || both {
                    let mut alone = String::new(); // a block may end so that something in it is no value
                    for piece in &thought {
                        alone += &stream(world(), route, &[thinking(piece)]).await.2.thinking;
                    }
                    let may = |word: &str| whole.thinking.contains(word) || alone.contains(word);
                    let leaks = |word: &&&str| parted.thinking.contains(**word) && !may(word);
                    assert_eq!(WORDS.iter().filter(|word| word.len() > 10).find(leaks), None, "{what}");
                } else {
                    assert_eq!(parted.thinking, whole.thinking, "{what}");
                }
            });
        }
    }
}
