//! Tool calls that are held until they are judged.

use std::sync::Arc;

use gatehook_events::{FunctionCall, ToolCall};
use gatehook_inference::{CallId, Fate, Fault, Relay, Route};

use crate::client::{Gathered, gather};
use crate::{allow_all, came, chunks, delta, left, push, stop};

const CHAT: Route = Route::ChatCompletions;

/// A delta with the first piece of a call.
fn begins(index: u32, id: &str, name: &str, arguments: &str) -> String {
    let arguments = serde_json::Value::from(arguments);
    delta(&format!(
        r#"{{"tool_calls":[{{"index":{index},"id":"{id}","type":"function","function":{{"name":"{name}","arguments":{arguments}}}}}]}}"#
    ))
}

fn goes_on(index: u32, arguments: &str) -> String {
    let arguments = serde_json::Value::from(arguments);
    delta(&format!(r#"{{"tool_calls":[{{"index":{index},"function":{{"arguments":{arguments}}}}}]}}"#))
}

fn three() -> String {
    let pieces = [
        begins(0, "a", "one", ""),
        goes_on(0, r#"{"x""#),
        goes_on(0, ":1}"),
        begins(1, "b", "two", "{}"),
        begins(2, "c", "three", r#"{"z":"#),
        goes_on(2, "3}"),
        stop("tool_calls"),
    ];
    chunks(&pieces.each_ref().map(String::as_str))
}

fn native() -> &'static str {
    "{\"model\":\"m\",\"created_at\":\"t\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"index\":0,\"name\":\"one\",\"arguments\":{\"x\":1}}}]},\"done\":false}\n\
     {\"model\":\"m\",\"created_at\":\"t\",\"message\":{\"role\":\"assistant\",\"content\":\"hm\",\"tool_calls\":[{\"function\":{\"index\":1,\"name\":\"two\",\"arguments\":{}}},{\"function\":{\"index\":2,\"name\":\"three\",\"arguments\":{\"z\":3}}}]},\"done\":false}\n\
     {\"model\":\"m\",\"created_at\":\"t\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"tool_calls\"}\n"
}

fn names(gathered: &Gathered) -> Vec<&str> {
    gathered.first().calls.iter().map(|(_, name, _)| name.as_str()).collect()
}

fn rewritten(call: &ToolCall, name: &str, arguments: &str) -> ToolCall {
    ToolCall { function: FunctionCall { name: name.into(), arguments: arguments.into() }, ..call.clone() }
}

#[test]
fn a_call_leaves_once_it_is_decided() {
    let mut relay = came(CHAT, &three());
    assert_eq!(relay.take(), None);
    assert!(relay.calls().iter().all(|call| call.complete && !call.decided));
    relay.decide(CallId(1), Fate::Keep).unwrap();
    assert_eq!(relay.take(), None, "calls of a choice do not overtake each other");
    relay.decide(CallId(0), Fate::Keep).unwrap();
    assert_eq!(names(&gather(CHAT, &left(&mut relay))), ["one", "two"]);
    relay.decide(CallId(2), Fate::Keep).unwrap();
    assert!(left(&mut relay).ends_with("data: [DONE]\n\n"));
}

#[test]
fn a_call_is_complete_when_the_next_one_begins_and_its_arguments_are() {
    let mut relay = Relay::new(CHAT);
    let complete = |relay: &Relay| relay.calls().iter().map(|call| call.complete).collect::<Vec<_>>();
    let feed = |relay: &mut Relay, choice: &str| push(relay, &format!("data: {{\"choices\":[{choice}]}}\n\n"));
    feed(&mut relay, &begins(0, "a", "f", "{\"x\":")).unwrap();
    feed(&mut relay, &begins(1, "b", "g", "{}")).unwrap();
    assert_eq!(complete(&relay), [false, false], "one call may go on beside another");
    feed(&mut relay, &goes_on(0, "1}")).unwrap();
    feed(&mut relay, &begins(2, "c", "h", "")).unwrap();
    assert_eq!(complete(&relay), [true, true, false]);
    assert_eq!(feed(&mut relay, &goes_on(0, "2")), Err(Fault::WentOn("arguments came after a tool call was complete")));
    let mut relay = Relay::new(CHAT);
    feed(&mut relay, &begins(0, "a", "f", "{\"x\":")).unwrap();
    feed(&mut relay, &stop("length")).unwrap();
    assert_eq!(complete(&relay), [true]);
    assert_eq!(&*relay.calls()[0].call.function.arguments, "{\"x\":");
}

#[test]
fn a_name_that_does_not_end_is_not_gathered() {
    let mut relay = Relay::new(CHAT);
    let feed = |relay: &mut Relay, choice: &str| push(relay, &format!("data: {{\"choices\":[{choice}]}}\n\n"));
    let piece = |place: usize| begins(0, "a", &format!("{}{place}", "x".repeat(1000)), "");
    let fault = (0..100).find_map(|place| Some((place, feed(&mut relay, &piece(place)).err()?)));
    let (place, fault) = fault.unwrap();
    assert_eq!(place, 4);
    assert!(fault.to_string().contains("a tool's name"), "{fault}");
}

#[test]
fn a_thousand_calls_that_are_never_whole_are_not_read_again_and_again() {
    let mut relay = Relay::new(CHAT);
    let feed = |relay: &mut Relay, choice: &str| push(relay, &format!("data: {{\"choices\":[{choice}]}}\n\n"));
    feed(&mut relay, &begins(0, "a", "f", &format!("{{\"x\":\"{}", "y".repeat(1 << 20)))).unwrap();
    for place in 1..200 {
        feed(&mut relay, &begins(place, &format!("b{place}"), "g", "{}")).unwrap();
    }
    assert!(relay.calls()[60].complete && !relay.calls()[190].complete);
    feed(&mut relay, &goes_on(0, "\"}")).unwrap();
    feed(&mut relay, &stop("tool_calls")).unwrap();
    assert!(relay.calls().iter().all(|call| call.complete));
}

#[test]
fn a_call_that_is_removed_leaves_no_gap() {
    for (route, stream) in [(CHAT, three()), (Route::Chat, native().to_owned())] {
        for removed in 0_u32..8 {
            let mut relay = came(route, &stream);
            let kept: Vec<&str> = ["one", "two", "three"]
                .into_iter()
                .enumerate()
                .filter(|(id, _)| removed & (1 << id) == 0)
                .map(|(_, name)| name)
                .collect();
            for id in 0..3 {
                let fate = if removed & (1 << id) == 0 { Fate::Keep } else { Fate::Remove };
                relay.decide(CallId(id), fate).unwrap();
            }
            allow_all(&mut relay);
            let left = left(&mut relay);
            let gathered = gather(route, &left);
            assert_eq!(names(&gathered), kept, "{left}");
            let reason = if kept.is_empty() { "stop" } else { "tool_calls" };
            assert_eq!(gathered.first().stop.as_deref(), Some(reason), "{left}");
            assert_eq!(left == stream, removed == 0);
        }
    }
}

#[test]
fn frames_of_a_removed_call_leave_only_with_what_else_they_hold() {
    let mut relay = came(Route::Chat, native());
    (0..3).for_each(|id| relay.decide(CallId(id), Fate::Remove).unwrap());
    allow_all(&mut relay);
    let gathered = gather(Route::Chat, &left(&mut relay));
    assert_eq!(gathered.frames.len(), 2);
    assert_eq!(gathered.first().text, "hm");
    let role = r#"{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let mut relay = came(CHAT, &chunks(&[&delta(role), &stop("tool_calls")]));
    relay.decide(CallId(0), Fate::Remove).unwrap();
    let gathered = gather(CHAT, &left(&mut relay));
    assert_eq!(gathered.first().role.as_deref(), Some("assistant"));
    assert!(gathered.first().calls.is_empty());
}

#[test]
fn a_call_is_rewritten_as_a_whole() {
    for (route, stream) in [(CHAT, three()), (Route::Chat, native().to_owned())] {
        let mut relay = came(route, &stream);
        relay.decide(CallId(0), Fate::Remove).unwrap();
        let call = relay.calls()[2].call.clone();
        relay.decide(CallId(2), Fate::Rewrite(&rewritten(&call, "safe", r#"{"q":"ü\"🙂"}"#))).unwrap();
        allow_all(&mut relay);
        let gathered = gather(route, &left(&mut relay));
        assert_eq!(names(&gathered), ["two", "safe"]);
        let arguments: serde_json::Value = serde_json::from_str(&gathered.first().calls[1].2).unwrap();
        assert_eq!(arguments, serde_json::json!({ "q": "ü\"🙂" }));
        assert_eq!(gathered.first().calls[1].0, call.id.as_deref().unwrap_or_default());
    }
}

#[test]
fn a_call_without_arguments_can_be_given_some() {
    let bare = delta(r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f"}}]}"#);
    let mut relay = came(CHAT, &chunks(&[&bare, &stop("tool_calls")]));
    let call = relay.calls()[0].call.clone();
    relay.decide(CallId(0), Fate::Rewrite(&ToolCall { id: Some("z".into()), ..rewritten(&call, "g", "{}") })).unwrap();
    assert_eq!(gather(CHAT, &left(&mut relay)).first().calls, [("z".into(), "g".into(), "{}".into())]);
}

#[test]
fn what_a_call_cannot_be_made_into_is_said() {
    let mut relay = came(Route::Chat, native());
    let call = relay.calls()[0].call.clone();
    for (new, why) in [
        (rewritten(&call, "f", "[1]"), "JSON object"),
        (rewritten(&call, "f", "nonsense"), "JSON object"),
        (ToolCall { kind: "custom".into(), ..call.clone() }, "only id, name and arguments"),
    ] {
        let error = relay.decide(CallId(0), Fate::Rewrite(&new)).unwrap_err();
        assert!(error.reason.contains(why), "{error}");
    }
    relay.decide(CallId(0), Fate::Keep).unwrap();
    allow_all(&mut relay);
    left(&mut relay);
    assert!(relay.decide(CallId(0), Fate::Remove).is_err(), "it has left");
    assert!(relay.decide(CallId(7), Fate::Keep).is_err());
}

#[test]
fn a_call_that_is_kept_early_leaves_as_it_comes() {
    let mut relay = Relay::new(CHAT);
    let stream = three();
    let mut out = String::new();
    for event in stream.split_inclusive("\n\n") {
        push(&mut relay, event).unwrap();
        for id in 0..relay.calls().len() {
            relay.decide(CallId(id), Fate::Keep).unwrap();
        }
        let left = left(&mut relay);
        assert_eq!(left, event);
        out += &left;
    }
    assert_eq!(out, stream);
}

#[test]
fn legacy_function_calls_are_calls() {
    let pieces = [
        delta(r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":""}}"#),
        delta(r#"{"function_call":{"arguments":"{\"x\":1}"}}"#),
        stop("function_call"),
    ];
    let stream = chunks(&pieces.each_ref().map(String::as_str));
    let mut relay = came(CHAT, &stream);
    assert_eq!((&*relay.calls()[0].call.function.name, &*relay.calls()[0].call.function.arguments), ("f", "{\"x\":1}"));
    relay.decide(CallId(0), Fate::Remove).unwrap();
    let gathered = gather(CHAT, &left(&mut relay));
    assert!(gathered.first().calls.is_empty());
    assert_eq!(gathered.first().stop.as_deref(), Some("stop"));
    let mut relay = came(CHAT, &stream);
    let call = relay.calls()[0].call.clone();
    relay.decide(CallId(0), Fate::Rewrite(&rewritten(&call, "g", "{\"y\":2}"))).unwrap();
    assert_eq!(gather(CHAT, &left(&mut relay)).first().calls, [(String::new(), "g".into(), "{\"y\":2}".into())]);
}

#[test]
fn custom_calls_keep_their_input_as_text() {
    let pieces = [
        delta(r#"{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"sh","input":"rm "}}]}"#),
        delta(r#"{"tool_calls":[{"index":0,"custom":{"input":"-rf"}}]}"#),
        stop("tool_calls"),
    ];
    let mut relay = came(CHAT, &chunks(&pieces.each_ref().map(String::as_str)));
    let call = relay.calls()[0].call.clone();
    assert_eq!((&*call.kind, &*call.function.arguments), ("custom", "rm -rf"));
    relay.decide(CallId(0), Fate::Rewrite(&rewritten(&call, "sh", "ls"))).unwrap();
    assert_eq!(gather(CHAT, &left(&mut relay)).first().calls, [("a".into(), "sh".into(), "ls".into())]);
}

#[test]
fn a_name_that_comes_in_pieces_or_again_is_told_once() {
    for (second, name) in [("_weather", "get_weather"), ("get", "get")] {
        let pieces = [begins(0, "a", "get", "{"), begins(0, "a", second, "}"), stop("tool_calls")];
        let mut relay = came(CHAT, &chunks(&pieces.each_ref().map(String::as_str)));
        assert_eq!(&*relay.calls()[0].call.function.name, name);
        allow_all(&mut relay);
        assert_eq!(gather(CHAT, &left(&mut relay)).first().calls, [("a".into(), name.into(), "{}".into())]);
    }
}

#[test]
fn calls_that_all_bear_one_number_are_told_apart_by_their_ids() {
    let pieces = [begins(0, "a", "f", "{}"), begins(0, "b", "g", "{}"), begins(0, "c", "h", "{}"), stop("tool_calls")];
    let stream = chunks(&pieces.each_ref().map(String::as_str));
    for removed in [None, Some(0), Some(1)] {
        let mut relay = came(CHAT, &stream);
        let ids: Vec<Option<Arc<str>>> = relay.calls().iter().map(|call| call.call.id.clone()).collect();
        assert_eq!(ids, [Some("a".into()), Some("b".into()), Some("c".into())]);
        removed.into_iter().for_each(|id| relay.decide(CallId(id), Fate::Remove).unwrap());
        allow_all(&mut relay);
        let left = left(&mut relay);
        assert_eq!(names(&gather(CHAT, &left)).len(), 3 - removed.iter().len(), "{left}");
    }
}

#[test]
fn calls_of_several_choices_are_numbered_by_themselves() {
    let other = |choice: String| choice.replacen("\"index\":0", "\"index\":1", 1);
    let pieces = [
        begins(0, "a", "f", "{}"),
        other(begins(0, "b", "g", "{}")),
        begins(1, "c", "h", "{}"),
        other(begins(1, "d", "i", "{}")),
        stop("tool_calls"),
        other(stop("tool_calls")),
    ];
    let mut relay = came(CHAT, &chunks(&pieces.each_ref().map(String::as_str)));
    assert_eq!(relay.calls().iter().map(|call| call.choice).collect::<Vec<_>>(), [0, 1, 0, 1]);
    relay.decide(CallId(0), Fate::Remove).unwrap();
    allow_all(&mut relay);
    let gathered = gather(CHAT, &left(&mut relay));
    assert_eq!(names(&gathered), ["h"]);
    assert_eq!(gathered.choices[&1].calls.len(), 2);
}

#[test]
fn a_call_that_an_error_cuts_off_does_not_leave() {
    let error = "data: {\"error\":{\"message\":\"out of memory\"}}\n\n";
    let mut relay = Relay::new(CHAT);
    push(&mut relay, &format!("data: {{\"choices\":[{}]}}\n\n{error}", begins(0, "a", "rm", "{\"path\":"))).unwrap();
    assert!(!relay.calls()[0].complete);
    assert_eq!(left(&mut relay), error);
}
