//! What stands on both sides of a tool call, or of text of another kind: the first half does not leave before the second
//! has come.

use gatehook_engine::events::Event;
use gatehook_inference::{ErrorKind, Route};

use super::stream;
use crate::streams::{ROUTES, Say, call, has_more, text, thinking};
use crate::world::World;

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

#[tokio::test]
async fn what_thinking_cuts_in_two_does_not_leave_but_for_a_first_word() {
    for (name, value, word) in FOUND {
        for route in routes() {
            for at in 1..value.len() {
                let (first, second) = (format!("So: {}", &value[..at]), format!("{} – ja.", &value[at..]));
                for says in [
                    [text(&first), thinking("Hm. "), text(&second)],
                    [thinking(&first), text("Hm. "), thinking(&second)],
                ] {
                    let (_, came, gathered) = stream(world(name), route, &says).await;
                    let parted = if matches!(says[0], Say::Text(_)) { &gathered.text } else { &gathered.thinking };
                    let begun =
                        parted.strip_prefix("So: ").and_then(|rest| rest.split_once(word)).map(|(begun, _)| begun);
                    let begun = begun.unwrap_or_else(|| panic!("{route:?} {value} at {at}: {}", came.text()));
                    assert!(
                        begun.len() <= 5 && begun.trim_end_matches(['.', ':', ' ']).chars().all(char::is_alphanumeric),
                        "{route:?} {value} at {at}: {begun:?} has left in {}",
                        came.text()
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn a_text_does_not_wait_because_of_the_last_word_of_the_thinking() {
    for last in ["It is fine.", "That makes 42.", "Well-known, so", "(see 2024)", "a pattern?", "the key: yes"] {
        for route in [Route::Messages, Route::Responses] {
            let world = world("redact_secrets").builtin(Event::PostInference, "redact_pii", &[]);
            let says = [thinking(last), text("All is "), text("fine, "), text("really.")];
            let (_, came, gathered) = stream(world, route, &says).await;
            let frames = crate::streams::frames(route, &says);
            let at = frames.iter().position(|frame| frame.contains("fine, ")).unwrap();
            let text = crate::streams::gather(route, &came.bytes[..came.after[at]]).text;
            assert!(text.starts_with("All is "), "{route:?} {last:?}: {text:?} of {gathered:?}");
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
