//! Texts: where they are told, and what becomes of what speaks of them.

use bytes::Bytes;
use gatehook_inference::{Fault, Relay, Route, TrackId, TrackKind};
use serde_json::json;

use crate::client::{Gathered, gather};
use crate::{Stream, allow_all, blocks, came, events, items, left, stream, text, track};

/// A stream with `old` replaced by `new` in its text, and all of it let go.
fn with(stream: &Stream, kind: TrackKind, old: &str, new: &str) -> (String, Gathered) {
    let mut relay = came(stream);
    let start = text(&relay, kind).find(old).unwrap();
    let id = track(&relay, kind).unwrap();
    relay.replace(id, start..start + old.len(), new).unwrap();
    allow_all(&mut relay);
    let out = left(&mut relay);
    let gathered = gather(stream.route, &out);
    (out, gathered)
}

#[test]
fn nothing_of_a_text_leaves_before_it_is_allowed_and_nothing_behind_it() {
    for name in ["responses/stream-openai-text", "messages/stream-anthropic-text"] {
        let stream = stream(name);
        let mut relay = came(&stream);
        assert_eq!(gather(stream.route, &left(&mut relay)).said(), "", "{name}");
        relay.allow(TrackId(0), 5);
        let out = left(&mut relay);
        assert!(!out.contains("is ") && !out.contains(".done") && !out.contains("_stop"), "{name}: {out}");
    }
}

#[test]
fn a_secret_over_many_deltas_is_nowhere_in_what_leaves() {
    for (name, secret) in [
        ("responses/stream-openai-text", "555-0199"),
        ("responses/stream-ollama-text", "123-45-6789"),
        ("responses/stream-llamacpp-text", "123-45-6789"),
        ("messages/stream-anthropic-text", "4111 1111 1111 1111"),
        ("messages/stream-llamacpp-text", "123-45-6789"),
    ] {
        let (out, gathered) = with(&stream(name), TrackKind::Text, secret, "[GONE]");
        assert!(gathered.said().contains("[GONE]") && gathered.over, "{name}: {out}");
        for start in 0..secret.len() - 3 {
            assert!(!out.contains(&secret[start..start + 4]), "{name}: {out}");
        }
    }
}

#[test]
fn citations_and_log_probabilities_leave_with_an_unchanged_text_alone() {
    let noted = stream("responses/stream-openai-annotations");
    let (out, _) = with(&noted, TrackKind::Text, "sunny", "fine");
    assert!(!out.contains("url_citation"), "{out}");
    let (out, gathered) = with(&stream("responses/stream-openai-logprobs"), TrackKind::Text, " wor", "!");
    assert_eq!(gathered.said(), "Hello!ld.");
    assert!(out.contains(r#""token":"Hello""#) && !out.contains(r#""token":" wor""#), "{out}");
    // Itself and among its alternatives: what repeats the whole text has no tokens.
    assert_eq!(out.matches(r#""token":"Hello""#).count(), 2, "{out}");
    let cited = stream("messages/stream-anthropic-citations");
    let (out, gathered) = with(&cited, TrackKind::Text, "grass", "lawn");
    assert_eq!(gathered.said(), "the lawn is green and that is that.", "{out}");
}

#[test]
fn tokens_that_spell_something_else_do_not_leave() {
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let message = |content| json!({"id": "m", "type": "message", "role": "assistant", "content": content});
    let at = json!({"item_id": "m", "output_index": 0, "content_index": 0});
    let event = |name: &str, more: serde_json::Value| {
        let mut event = at.clone();
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event["type"] = name.into();
        event
    };
    let logprobs = json!([{"token": "secret", "logprob": -1}]);
    let whole = message(json!([part("ok")]));
    let stream = items(
        &[
            json!({"type": "response.output_item.added", "output_index": 0, "item": message(json!([]))}),
            event("response.content_part.added", json!({"part": part("")})),
            event("response.output_text.delta", json!({"delta": "ok", "logprobs": logprobs})),
            event("response.output_text.done", json!({"text": "ok", "logprobs": logprobs})),
            event("response.content_part.done", json!({"part": part("ok")})),
            json!({"type": "response.output_item.done", "output_index": 0, "item": whole}),
        ],
        json!([whole]),
    );
    let mut relay = came(&stream);
    allow_all(&mut relay);
    let out = left(&mut relay);
    assert_eq!(gather(stream.route, &out).said(), "ok");
    assert!(!out.contains("secret"), "{out}");
}

#[test]
fn what_repeats_a_text_says_what_left_even_where_it_said_something_else() {
    let done = |text: &str| json!([{"type": "output_text", "text": text, "annotations": []}]);
    let message = |content| json!({"id": "m", "type": "message", "role": "assistant", "content": content});
    let delta = |text: &str| json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": text});
    let stream = items(
        &[
            json!({"type": "response.output_item.added", "output_index": 0, "item": message(json!([]))}),
            json!({"type": "response.content_part.added", "item_id": "m", "output_index": 0, "content_index": 0, "part": done("")[0]}),
            delta("said"),
            json!({"type": "response.output_text.done", "item_id": "m", "output_index": 0, "content_index": 0, "text": "unsaid"}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": message(done("hidden"))}),
        ],
        json!([message(done("covert"))]),
    );
    let mut relay = came(&stream);
    assert_eq!(text(&relay, TrackKind::Text), "said");
    allow_all(&mut relay);
    let out = left(&mut relay);
    assert_eq!(gather(stream.route, &out).said(), "said");
    for word in ["unsaid", "hidden", "covert"] {
        assert!(!out.contains(word), "{out}");
    }
}

#[test]
fn what_says_more_than_its_deltas_brings_text_and_waits_as_text_does() {
    let whole = stream("responses/stream-openai-whole");
    let mut relay = came(&whole);
    assert_eq!(text(&relay, TrackKind::Text), "All at once.");
    assert!(!left(&mut relay).contains("once"));
    let (_, gathered) = with(&whole, TrackKind::Text, "once", "last");
    assert_eq!(gathered.said(), "All at last.");
    // Only the last event has it.
    let message = json!({"id": "m", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "late"}]});
    let late = items(
        &[],
        json!([message, {"id": "f", "type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}]),
    );
    let mut relay = came(&late);
    assert_eq!(text(&relay, TrackKind::Text), "late");
    assert_eq!(relay.calls().len(), 1);
    assert!(!left(&mut relay).contains("late"));
    relay.allow(TrackId(0), usize::MAX);
    assert!(!left(&mut relay).contains("late"), "a call beside it is not decided");
}

#[test]
fn signed_thinking_leaves_as_a_whole_or_not_at_all() {
    for (name, thinking) in [
        ("messages/stream-anthropic-thinking", "Let me solve"),
        ("responses/stream-openai-reasoning-summary", "**Planning**"),
    ] {
        let stream = stream(name);
        let mut relay = came(&stream);
        let id = track(&relay, TrackKind::Thinking).unwrap();
        let total = relay.tracks()[id.0].len_total();
        assert!(relay.replace(id, 0..4, "").is_err(), "{name}");
        assert!(relay.replace(id, 0..total, "other").is_err(), "{name}");
        relay.replace(id, 0..total, "").unwrap();
        allow_all(&mut relay);
        let out = left(&mut relay);
        let gathered = gather(stream.route, &out);
        assert_eq!((gathered.thinking(), gathered.content.len()), (String::new(), 1), "{name}: {out}");
        assert!(!out.contains(thinking) && !out.contains("signature") && !out.contains("encrypted"), "{name}: {out}");
    }
}

#[test]
fn a_signature_that_nobody_announced_leaves_with_an_unchanged_thinking_alone() {
    let stream = blocks(
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "I think"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}}),
            json!({"type": "content_block_stop", "index": 0}),
        ],
        "end_turn",
    );
    let body = std::str::from_utf8(&stream.body).unwrap();
    let (before, after) =
        body.split_at(body.find("event: content_block_delta\ndata: {\"delta\":{\"signature").unwrap());
    let mut relay = Relay::new(stream.route);
    relay.push(Bytes::copy_from_slice(before.as_bytes())).unwrap();
    relay.allow(TrackId(0), 2);
    let mut out = left(&mut relay);
    relay.replace(TrackId(0), 2..7, "hink").unwrap();
    relay.push(Bytes::copy_from_slice(after.as_bytes())).unwrap();
    relay.finish().unwrap();
    allow_all(&mut relay);
    out += &left(&mut relay);
    assert_eq!(gather(stream.route, &out).thinking(), "I hink");
    assert!(!out.contains("c2ln"), "{out}");
}

#[test]
fn a_text_is_held_and_changed_in_a_block_of_another_kind_and_in_a_delta_or_part_of_no_known_one() {
    for (block, delta) in [
        (json!({"type": "thinking", "thinking": ""}), json!({"type": "text_delta", "text": "secret"})),
        (json!({"type": "text", "text": ""}), json!({"type": "new_delta", "text": "secret"})),
    ] {
        let stream = blocks(
            &[
                json!({"type": "content_block_start", "index": 0, "content_block": block}),
                json!({"type": "content_block_delta", "index": 0, "delta": delta}),
                json!({"type": "content_block_stop", "index": 0}),
            ],
            "end_turn",
        );
        let mut relay = came(&stream);
        assert!(!left(&mut relay).contains("secret"), "{delta}");
        relay.replace(track(&relay, TrackKind::Text).unwrap(), 0..6, "[GONE]").unwrap();
        allow_all(&mut relay);
        let out = left(&mut relay);
        assert!(out.contains("[GONE]") && !out.contains("secret"), "{out}");
    }
    let message = json!({"id": "m", "type": "message", "role": "assistant", "content": [{"type": "new", "text": "secret"}, {"type": "image"}]});
    let whole =
        items(&[json!({"type": "response.output_item.done", "output_index": 0, "item": message})], json!([message]));
    let (out, _) = with(&whole, TrackKind::Text, "secret", "[GONE]");
    assert!(!out.contains("secret"), "{out}");
}

#[test]
fn plain_reasoning_in_the_place_of_ciphertext_says_what_left() {
    let (out, gathered) = with(&stream("responses/stream-ollama-thinking"), TrackKind::Thinking, " think", "");
    assert_eq!(gathered.thinking(), "Let me.");
    assert!(!out.contains("think."), "{out}");
}

#[test]
fn a_block_of_text_that_is_emptied_does_not_leave() {
    let tools = stream("messages/stream-anthropic-tool-use");
    let (out, gathered) = with(&tools, TrackKind::Text, "Okay, let's check the weather:", "");
    assert_eq!(gathered.kinds(), ["tool_use"], "{out}");
    // One that was empty from the beginning is none of ours.
    let empty = blocks(
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_stop", "index": 0}),
        ],
        "end_turn",
    );
    let mut relay = came(&empty);
    assert_eq!(left(&mut relay).as_bytes(), empty.body);
}

#[test]
fn text_can_be_added_to_an_answer_that_has_none_and_behind_one_that_has() {
    for name in ["responses/stream-openai-function-call", "messages/stream-llamacpp-call"] {
        let stream = stream(name);
        let mut relay = came(&stream);
        let id = relay.add_track(0, TrackKind::Text).unwrap();
        assert!(relay.add_track(0, TrackKind::Thinking).is_err() && relay.add_track(1, TrackKind::Text).is_err());
        relay.replace(id, 0..0, "Mind you.").unwrap();
        allow_all(&mut relay);
        let out = left(&mut relay);
        let gathered = gather(stream.route, &out);
        assert_eq!((gathered.said().as_str(), gathered.calls().len()), ("Mind you.", 1), "{name}: {out}");
        assert!(relay.replace(id, 0..0, "Late.").is_err(), "{name}");
    }
    for name in [
        "responses/stream-openai-parallel-calls",
        "responses/stream-llamacpp-thinking-call",
        "messages/stream-anthropic-tool-use",
    ] {
        let stream = stream(name);
        let mut relay = came(&stream);
        let id = track(&relay, TrackKind::Text).unwrap();
        let end = relay.tracks()[id.0].len_total();
        let expected = format!("{}P.S.", relay.tracks()[id.0].text);
        // The text has left, the call has not; the insertion stands behind the text.
        (0..relay.tracks().len()).for_each(|id| relay.allow(TrackId(id), usize::MAX));
        let mut out = left(&mut relay);
        relay.replace(id, end..end, "P.S.").unwrap();
        allow_all(&mut relay);
        out += &left(&mut relay);
        assert_eq!(gather(stream.route, &out).said(), expected, "{name}: {out}");
    }
}

#[test]
fn a_track_has_ended_while_something_else_follows_it() {
    for name in ["messages/stream-anthropic-interleaved", "responses/stream-openai-reasoning-summary"] {
        let stream = stream(name);
        let mut relay = Relay::new(stream.route);
        let mut ended = Vec::new();
        for byte in stream.body.chunks(1) {
            relay.push(Bytes::copy_from_slice(byte)).unwrap();
            if let Some(id) = track(&relay, TrackKind::Thinking)
                && ended.last() != Some(&relay.tracks()[id.0].ended)
            {
                ended.push(relay.tracks()[id.0].ended);
            }
        }
        let turns = if stream.route == Route::Messages { vec![false, true, false, true] } else { vec![false, true] };
        assert_eq!(ended, turns, "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_a_fault() {
    let delta = |delta| json!({"type": "content_block_delta", "index": 3, "delta": delta});
    for (name, stream) in [
        ("a delta of no block", blocks(&[delta(json!({"type": "text_delta", "text": "x"}))], "end_turn")),
        (
            "a message that does not begin empty",
            events(
                Route::Messages,
                &[json!({"type": "message_start", "message": {"content": [{"type": "text", "text": "x"}]}})],
            ),
        ),
        (
            "arguments of no call",
            items(
                &[json!({"type": "response.function_call_arguments.delta", "item_id": "f", "delta": "{"})],
                json!([]),
            ),
        ),
        (
            "a text that is none",
            items(&[json!({"type": "response.output_text.delta", "item_id": "m", "delta": 1})], json!([])),
        ),
        (
            "a key that a lenient reader takes for another",
            items(
                &[json!({"type": "response.output_text.delta", "item_id": "m", "Delta": "x", "delta": "y"})],
                json!([]),
            ),
        ),
    ] {
        let fault = Relay::new(stream.route).push(stream.body.clone()).unwrap_err();
        assert!(matches!(fault, Fault::Read(_)), "{name}: {fault}");
    }
}

#[test]
fn a_stream_without_its_end_is_cut() {
    for name in ["responses/stream-openai-text", "messages/stream-anthropic-text"] {
        let stream = stream(name);
        let mut relay = Relay::new(stream.route);
        relay.push(stream.body.slice(..stream.body.len() / 2)).unwrap();
        assert_eq!(relay.finish(), Err(Fault::Cut), "{name}");
    }
}
