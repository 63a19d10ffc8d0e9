//! What a stream tells beside the model's words.

use gatehook_inference::{Relay, Route, Seal};
use serde_json::json;

fn noted(route: Route, file: &str) -> Relay {
    let path = format!("{}/tests/bodies/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut relay = Relay::new(route).noting();
    for byte in std::fs::read(path).unwrap() {
        relay.push(vec![byte].into()).unwrap();
    }
    relay
}

#[test]
fn signatures_are_kept_with_the_thinking_that_they_sign() {
    let relay = noted(Route::Messages, "messages/stream-anthropic-redacted-thinking.txt");
    let seals = &relay.notes().unwrap().seals;
    let Seal::Signed(range, signature) = &seals[0] else { panic!("{seals:?}") };
    assert_eq!(&relay.tracks()[0].text[range.clone()], "Hm.");
    assert!(signature.starts_with("EqQBCgIYAhIM1gbc") && signature.ends_with("=="), "{signature}");
    assert!(matches!(&seals[1], Seal::Hidden(data) if data.starts_with("EmwKAhgBEgy3va3")), "{seals:?}");
}

#[test]
fn a_signature_may_come_in_pieces_and_belongs_to_its_block_alone() {
    let event = |data: serde_json::Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let start = |index| json!({"type": "content_block_start", "index": index, "content_block": {"type": "thinking", "thinking": ""}});
    let signs = |index, signature| json!({"type": "content_block_delta", "index": index, "delta": {"type": "signature_delta", "signature": signature}});
    let mut relay = Relay::new(Route::Messages).noting();
    for data in [start(0), signs(0, "a"), signs(0, "b"), start(1), signs(1, "c"), signs(1, "")] {
        relay.push(event(data).into()).unwrap();
    }
    let seals = &relay.notes().unwrap().seals;
    assert_eq!(*seals, [Seal::Signed(0..0, "ab".into()), Seal::Signed(0..0, "c".into())]);
}

#[test]
fn the_error_that_ends_a_stream_is_told_as_it_is_spelled() {
    let error = |route, file| noted(route, file).notes().unwrap().error.clone().unwrap();
    assert_eq!(
        error(Route::Messages, "messages/stream-anthropic-error.txt"),
        json!({"type": "overloaded_error", "message": "Overloaded"})
    );
    assert_eq!(
        error(Route::ChatCompletions, "chat-completions/stream-error.txt")["message"],
        "context shift is disabled"
    );
    assert!(error(Route::Chat, "api-chat/stream-error.txt").as_str().unwrap().contains("unexpected EOF"));
}

#[test]
fn who_does_not_ask_keeps_nothing() {
    assert_eq!(Relay::new(Route::Messages).notes(), None);
}
