//! How a stream ends that is blocked, or that fails.

use bytes::Bytes;
use gatehook_inference::{Block, CallId, Ending, ErrorKind, Fate, Relay, Route, TrackId};
use serde_json::{Value, json};

use crate::client::gather;
use crate::{Stream, allow_all, blocks, came, events, items, left, note, stream};

const ROUTES: [Route; 2] = [Route::Responses, Route::Messages];

fn block(relay: &mut Relay, ending: Ending) -> String {
    let note = note();
    let bytes = relay.block(&Block { message: "Not allowed.", hook: &note, ending });
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_block_before_anything_has_come_is_a_whole_answer() {
    for route in ROUTES {
        for ending in [Ending::Refusal, Ending::ContentFilter] {
            let out = block(&mut Relay::new(route), ending);
            let gathered = gather(route, &out);
            assert!(gathered.over && gathered.hook.is_some(), "{out}");
            let start = if route == Route::Responses { "event: response.created" } else { "event: message_start" };
            assert!(out.starts_with(start), "{out}");
        }
    }
}

#[test]
fn a_refusal_stands_behind_what_was_let_go_in_the_same_message() {
    let stream = stream("responses/stream-openai-text");
    let mut relay = came(&stream);
    relay.allow(TrackId(0), 2);
    let mut out = left(&mut relay);
    out += &block(&mut relay, Ending::Refusal);
    let gathered = gather(stream.route, &out);
    assert_eq!((gathered.text().as_str(), gathered.refusal().as_str()), ("Hi", "Not allowed."));
    assert_eq!((gathered.content.len(), gathered.stop.as_deref()), (1, Some("completed")));
    assert_eq!(gathered.usage["total_tokens"], 123, "usage that was counted is reported");
}

#[test]
fn a_filter_ends_with_its_own_word() {
    let stream = stream("responses/stream-openai-text");
    let mut relay = came(&stream);
    relay.allow(TrackId(0), 2);
    let mut out = left(&mut relay);
    out += &block(&mut relay, Ending::ContentFilter);
    let gathered = gather(stream.route, &out);
    assert_eq!((gathered.said().as_str(), gathered.stop.as_deref()), ("Hi", Some("incomplete")));
    assert!(out.contains(r#""incomplete_details":{"reason":"content_filter"}"#), "{out}");
}

#[test]
fn a_block_of_a_message_says_why_beside_its_stop_reason() {
    let stream = stream("messages/stream-anthropic-text");
    let mut relay = came(&stream);
    relay.allow(TrackId(0), 5);
    let mut out = left(&mut relay);
    out += &block(&mut relay, Ending::Refusal);
    let gathered = gather(stream.route, &out);
    assert_eq!((gathered.said().as_str(), gathered.stop.as_deref()), ("Hello", Some("refusal")));
    assert_eq!(gathered.usage["output_tokens"], 89);
    assert!(out.contains(r#""explanation":"Not allowed.""#), "{out}");
}

#[test]
fn a_call_that_is_cut_is_not_taken_for_a_whole_one() {
    let stream = stream("responses/stream-openai-function-call");
    let mut relay = Relay::new(stream.route);
    let half = stream.body.windows(6).position(|at| at == b"\"Par\",").unwrap_or(stream.body.len() * 2 / 3);
    relay.push(stream.body.slice(..half)).unwrap();
    relay.decide(CallId(0), Fate::Keep).unwrap();
    let mut out = left(&mut relay);
    let sent = gather(stream.route, &out).calls()[0].2.clone();
    out += &block(&mut relay, Ending::Refusal);
    let gathered = gather(stream.route, &out);
    assert_eq!(gathered.calls()[0].2, sent);
    assert_eq!(gathered.content[0]["status"], "incomplete");
    assert_eq!(gathered.refusal(), "Not allowed.");
}

#[test]
fn nothing_is_put_behind_an_end() {
    for name in ["responses/stream-openai-text", "messages/stream-anthropic-text", "responses/stream-openai-failed"] {
        let stream = stream(name);
        let mut relay = came(&stream);
        allow_all(&mut relay);
        assert_eq!(left(&mut relay).as_bytes(), stream.body, "{name}");
        assert_eq!(block(&mut relay, Ending::Refusal), "", "{name}");
        let mut relay = came(&stream);
        allow_all(&mut relay);
        left(&mut relay);
        assert_eq!(relay.fail(ErrorKind::BadUpstream, "", "r"), Bytes::new(), "{name}");
    }
}

#[test]
fn a_failure_before_anything_has_come_is_an_error_event() {
    for route in ROUTES {
        let out = Relay::new(route).fail(ErrorKind::UpstreamTimeout, "Too slow.", "req_1");
        let gathered = gather(route, std::str::from_utf8(&out).unwrap());
        assert_eq!(gathered.error.unwrap()["message"], "Too slow.");
        assert!(out.starts_with(b"event: error\n"), "{out:?}");
    }
}

#[test]
fn a_failed_response_tells_so_in_its_last_event() {
    let stream = stream("responses/stream-openai-text");
    let mut relay = Relay::new(stream.route);
    relay.push(stream.body.slice(..stream.body.len() / 2)).unwrap();
    allow_all(&mut relay);
    let mut out = left(&mut relay);
    out += std::str::from_utf8(&relay.fail(ErrorKind::BadUpstream, "It broke.", "req_1")).unwrap();
    let gathered = gather(stream.route, &out);
    assert_eq!((gathered.stop.as_deref(), gathered.over), (Some("failed"), true));
    assert!(out.contains("\"error\":{\"code\":\"upstream_failed\""), "SDKs raise on a nested error: {out}");
}

#[test]
fn the_upstreams_own_error_leaves_behind_what_came_before_it() {
    for (name, text) in [
        ("responses/stream-openai-error", "Once"),
        ("responses/stream-openai-failed", "Once"),
        ("messages/stream-anthropic-error", "Once"),
    ] {
        let stream = stream(name);
        let mut relay = came(&stream);
        assert!(relay.upstream_error() && relay.is_over(), "{name}");
        let held = gather(stream.route, &left(&mut relay));
        assert!(held.error.is_none(), "{name}: it waits behind a text that is held");
        allow_all(&mut relay);
        let mut relay = came(&stream);
        allow_all(&mut relay);
        let gathered = gather(stream.route, &left(&mut relay));
        assert_eq!(gathered.said(), text, "{name}");
        assert!(gathered.error.is_some(), "{name}");
    }
}

#[test]
fn a_beginning_that_two_readers_read_differently_is_refused_and_nowhere_repeated() {
    let response = json!({"id": "resp_1", "Output": [{"type": "message"}], "output": []});
    let opening = events(Route::Responses, &[json!({"type": "response.created", "response": response})]);
    let mut relay = Relay::new(Route::Responses);
    assert!(relay.push(opening.body).is_err());
    let out = block(&mut relay, Ending::Refusal);
    assert!(gather(Route::Responses, &out).over && !out.contains("Output"), "{out}");
}

#[test]
fn what_is_no_object_is_given_no_members() {
    let opening = events(Route::Responses, &[json!({"type": "response.created", "response": ""})]);
    let mut relay = Relay::new(Route::Responses);
    relay.push(opening.body.clone()).unwrap();
    let out = left(&mut relay);
    let data = out.split_once("data: ").unwrap().1;
    let told: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {out}"));
    assert_eq!(told["response"], "", "{out}");
}

/// What leaves where a hook adds to a text between its two ends, the second of which is the last that comes.
fn added_between_two_ends(stream: &Stream, first_end: &str) -> String {
    let body = std::str::from_utf8(&stream.body).unwrap();
    let end = body.find(first_end).unwrap();
    let at = end + body[end..].find("\n\n").unwrap() + 2;
    let mut relay = Relay::new(stream.route);
    relay.push(stream.body.slice(..at)).unwrap();
    relay.allow(TrackId(0), 3);
    let mut out = left(&mut relay);
    relay.replace(TrackId(0), 3..3, " More.").unwrap();
    relay.allow(TrackId(0), 3);
    relay.push(stream.body.slice(at..)).unwrap();
    out += &left(&mut relay);
    out
}

#[test]
fn nothing_is_added_behind_the_end_of_what_ends_twice() {
    let text = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}});
    let stop = json!({"type": "content_block_stop", "index": 0});
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let twice = blocks(&[start, text, stop.clone(), stop], "end_turn");
    let part = json!({"type": "output_text", "text": "Hi.", "annotations": []});
    let item = json!({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]});
    let told = json!({"type": "response.content_part.done", "item_id": "m", "content_index": 0, "part": part});
    let done = json!({"type": "response.output_item.done", "item": item});
    let items = items(&[done.clone(), told, done], json!([item]));
    for (stream, first_end) in [(twice, "content_block_stop"), (items, "output_item.done")] {
        let out = added_between_two_ends(&stream, first_end);
        let mut again = Relay::new(stream.route);
        assert_eq!(again.push(Bytes::from(out.clone())), Ok(()), "{out}");
    }
}
