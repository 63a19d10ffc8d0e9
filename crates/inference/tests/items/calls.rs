//! Tool calls: held, kept, rewritten and removed, wherever they are told.

use gatehook_events::ToolCall;
use gatehook_inference::{CallId, Fate, Relay, Route};
use proptest::prelude::*;
use serde_json::json;

use crate::client::gather;
use crate::{Stream, allow_all, blocks, came, items, left, note, stream, streams};

fn rewritten(call: &ToolCall, name: &str, arguments: &str) -> ToolCall {
    let mut new = call.clone();
    new.function.name = name.into();
    new.function.arguments = arguments.into();
    new
}

/// What leaves with the first call decided so, and the others kept.
fn decided(stream: &Stream, fate: impl Fn(&ToolCall) -> Option<ToolCall>) -> String {
    let mut relay = came(stream);
    let call = relay.calls()[0].call.clone();
    match fate(&call) {
        Some(new) => relay.decide(CallId(0), Fate::Rewrite(&new)).unwrap(),
        None => relay.decide(CallId(0), Fate::Remove).unwrap(),
    }
    relay.note(note());
    allow_all(&mut relay);
    left(&mut relay)
}

#[test]
fn nothing_of_a_call_leaves_before_it_is_decided() {
    for (name, word) in [
        ("responses/stream-openai-function-call", "get_weather"),
        ("responses/stream-openai-server-calls", "roll"),
        ("messages/stream-anthropic-tool-use", "get_weather"),
        ("messages/stream-anthropic-web-search", "weather NYC"),
    ] {
        let stream = stream(name);
        let mut relay = came(&stream);
        (0..relay.tracks().len()).for_each(|id| relay.allow(gatehook_inference::TrackId(id), usize::MAX));
        assert!(!left(&mut relay).contains(word), "{name}");
        assert!(relay.calls().iter().all(|call| call.complete && !call.decided), "{name}");
    }
}

#[test]
fn a_removed_call_is_nowhere_and_the_stop_reason_is_a_plain_one() {
    for (name, words) in [
        ("responses/stream-openai-function-call", ["get_weather", "call_g1"]),
        ("responses/stream-ollama-text-call", ["get_weather", "call_c9d8e7f6"]),
        ("responses/stream-llamacpp-thinking-call", ["get_weather", "Paris"]),
        ("messages/stream-anthropic-tool-use", ["get_weather", "tool_use"]),
        ("messages/stream-ollama-thinking-call", ["get_weather", "tool_use"]),
    ] {
        let stream = stream(name);
        let out = decided(&stream, |_| None);
        let gathered = gather(stream.route, &out);
        assert_eq!(gathered.calls(), [], "{name}");
        assert_eq!(&gathered.hook.unwrap()["hook_name"], "no_shell", "{name}");
        let stop = if stream.route == Route::Messages { "end_turn" } else { "completed" };
        assert_eq!(gathered.stop.as_deref(), Some(stop), "{name}");
        assert!(words.iter().all(|word| !out.contains(word)), "{name}: {out}");
    }
}

#[test]
fn while_a_call_is_left_the_stop_reason_stays() {
    let stream = stream("messages/stream-anthropic-parallel-tools");
    let gathered = gather(stream.route, &decided(&stream, |_| None));
    assert_eq!(gathered.stop.as_deref(), Some("tool_use"));
    assert_eq!(gathered.kinds(), ["text", "tool_use", "tool_use"]);
}

#[test]
fn the_result_of_a_call_of_the_server_goes_with_it() {
    for name in ["messages/stream-anthropic-web-search", "messages/stream-anthropic-mcp"] {
        let stream = stream(name);
        let gathered = gather(stream.route, &decided(&stream, |_| None));
        assert!(gathered.kinds().iter().all(|kind| *kind == "text"), "{name}: {:?}", gathered.kinds());
        assert_eq!(gathered.stop.as_deref(), Some("end_turn"));
    }
}

#[test]
fn calls_in_a_form_of_their_own_are_shown_whole_and_can_be_taken_out_alone() {
    let stream = stream("responses/stream-openai-server-calls");
    let mut relay = came(&stream);
    let kinds: Vec<&str> = relay.calls().iter().map(|call| &*call.call.kind).collect();
    assert_eq!(kinds, ["mcp_call", "code_interpreter_call"]);
    assert!(relay.calls()[0].call.function.arguments.contains(r#""output":"4""#));
    let new = rewritten(&relay.calls()[0].call, "roll", "{}");
    assert!(relay.decide(CallId(0), Fate::Rewrite(&new)).is_err());
    relay.decide(CallId(0), Fate::Remove).unwrap();
    allow_all(&mut relay);
    let out = left(&mut relay);
    assert!(!out.contains("mcp") && out.contains("print(1+1)"), "{out}");
    let unknown = blocks(
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": "all in all"}}),
            json!({"type": "content_block_stop", "index": 0}),
        ],
        "end_turn",
    );
    let mut relay = came(&unknown);
    assert!(relay.calls()[0].call.function.arguments.contains("all in all"), "{:?}", relay.calls());
    assert!(!left(&mut relay).contains("all in all"));
}

#[test]
fn a_rewritten_call_must_stay_one() {
    let stream = stream("messages/stream-anthropic-tool-use");
    let mut relay = came(&stream);
    let call = relay.calls()[0].call.clone();
    assert!(relay.decide(CallId(0), Fate::Rewrite(&rewritten(&call, "x", "[1]"))).is_err());
    let other = ToolCall { kind: "custom".into(), ..call };
    assert!(relay.decide(CallId(0), Fate::Rewrite(&other)).is_err());
}

#[test]
fn arguments_that_stand_where_the_call_begins_are_rewritten_there() {
    let block = json!({"type": "tool_use", "id": "t", "name": "run", "input": {"cmd": "rm"}});
    let stream = blocks(
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
            json!({"type": "content_block_stop", "index": 0}),
        ],
        "tool_use",
    );
    let out = decided(&stream, |call| {
        assert_eq!(&*call.function.arguments, r#"{"cmd":"rm"}"#);
        Some(rewritten(call, "run", r#"{"cmd":"ls"}"#))
    });
    assert!(!out.contains(r#""rm""#) && out.contains(r#""input":{"cmd":"ls"}"#), "{out}");
    let item = |arguments: &str| json!({"id": "f", "type": "function_call", "call_id": "c", "name": "run", "arguments": arguments});
    let stream = items(
        &[
            json!({"type": "response.output_item.added", "output_index": 0, "item": item(r#"{"cmd":"rm"}"#)}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item(r#"{"cmd":"rm"}"#)}),
        ],
        json!([item(r#"{"cmd":"rm"}"#)]),
    );
    let out = decided(&stream, |call| Some(rewritten(call, "run", r#"{"cmd":"ls"}"#)));
    assert!(!out.contains(r#"\"rm\""#), "{out}");
    assert_eq!(gather(stream.route, &out).calls()[0].2, r#"{"cmd":"ls"}"#);
}

#[test]
fn a_call_whose_block_ends_too_late_or_never_is_rewritten_before_the_answer_ends() {
    let block = json!({"type": "tool_use", "id": "t", "name": "run", "input": {}});
    let start = json!({"type": "content_block_start", "index": 0, "content_block": block});
    let late = json!({"type": "content_block_stop", "index": 0});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}});
    for between in [vec![start.clone()], vec![start, end, late]] {
        let out = decided(&blocks(&between, "tool_use"), |call| Some(rewritten(call, "run", r#"{"cmd":"ls"}"#)));
        let arguments = out.find(r#"{\"cmd\":\"ls\"}"#).unwrap_or_else(|| panic!("{out}"));
        assert!(arguments < out.find(r#""stop_reason":"tool_use""#).unwrap(), "{out}");
        assert_eq!(Relay::new(Route::Messages).push(out.clone().into()), Ok(()), "{out}");
    }
}

#[test]
fn what_repeats_arguments_says_what_was_judged() {
    let item = |arguments: &str| json!({"id": "f", "type": "function_call", "call_id": "c", "name": "run", "arguments": arguments});
    let stream = items(
        &[
            json!({"type": "response.output_item.added", "output_index": 0, "item": item("")}),
            json!({"type": "response.function_call_arguments.delta", "item_id": "f", "output_index": 0, "delta": "{\"cmd\":\"ls\"}"}),
            json!({"type": "response.function_call_arguments.done", "item_id": "f", "output_index": 0, "arguments": "{\"cmd\":\"rm\"}"}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item("{\"cmd\":\"dd\"}")}),
        ],
        json!([item("{\"cmd\":\"sh\"}")]),
    );
    let mut relay = came(&stream);
    assert_eq!(&*relay.calls()[0].call.function.arguments, r#"{"cmd":"ls"}"#);
    allow_all(&mut relay);
    let out = left(&mut relay);
    assert_eq!(gather(stream.route, &out).calls()[0].2, r#"{"cmd":"ls"}"#);
    assert!(["rm", "dd", "sh"].iter().all(|word| !out.contains(&format!("\\\"{word}"))), "{out}");
}

#[test]
fn arguments_after_the_end_of_a_call_are_a_fault() {
    let stream = blocks(
        &[
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "n", "input": {}}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}}),
        ],
        "tool_use",
    );
    assert!(Relay::new(stream.route).push(stream.body).is_err());
}

#[test]
fn a_call_can_be_kept_before_it_is_complete() {
    for name in ["responses/stream-openai-function-call", "messages/stream-anthropic-tool-use"] {
        let stream = stream(name);
        let mut relay = Relay::new(stream.route);
        let (mut out, mut early) = (String::new(), false);
        for read in stream.body.chunks(100) {
            relay.push(bytes::Bytes::copy_from_slice(read)).unwrap();
            early |= relay.calls().iter().any(|call| !call.complete);
            allow_all(&mut relay);
            out += &left(&mut relay);
        }
        assert!(early, "{name}");
        assert_eq!(out.as_bytes(), stream.body, "{name}");
    }
}

proptest! {
    #[test]
    fn a_rewritten_call_is_rewritten_wherever_it_is_told(stream in proptest::sample::select(streams()), which: u8, value in "[a-z\"\\\\ü]{0,8}") {
        let mut relay = came(&stream);
        let arguments = json!({ "new": value }).to_string();
        let mut expected = Vec::new();
        for id in 0..relay.calls().len() {
            let call = relay.calls()[id].call.clone();
            let own = ["function", "custom"].contains(&&*call.kind);
            if own && which & (1 << id) != 0 {
                let new = ToolCall { id: Some("new_id".into()), ..rewritten(&call, "renamed", &arguments) };
                relay.decide(CallId(id), Fate::Rewrite(&new)).unwrap();
                expected.push(("new_id".to_owned(), "renamed".to_owned(), arguments.clone()));
            } else if own {
                let shown = &call.function.arguments;
                let read = serde_json::from_str::<serde_json::Value>(shown);
                let spelled = if stream.route == Route::Messages { read.unwrap().to_string() } else { shown.to_string() };
                expected.push((call.id.unwrap().to_string(), call.function.name.to_string(), spelled));
            }
        }
        allow_all(&mut relay);
        let out = left(&mut relay);
        prop_assert_eq!(gather(stream.route, &out).calls(), expected, "{}", stream.file);
    }
}
