//! Text that is replaced, taken out and inserted.

use gatehook_inference::{Fault, Relay, Route, TrackId, TrackKind};

use crate::client::{Gathered, gather};
use crate::{allow_all, came, chunks, delta, drain, left, push, stop, track};

const CHAT: Route = Route::ChatCompletions;

/// A stream whose text comes as these pieces.
fn spoken(pieces: &[&str]) -> String {
    let deltas: Vec<String> =
        pieces.iter().map(|piece| delta(&serde_json::json!({ "content": piece }).to_string())).collect();
    let mut choices: Vec<&str> = deltas.iter().map(String::as_str).collect();
    let stop = stop("stop");
    choices.insert(0, r#"{"index":0,"delta":{"role":"assistant"}}"#);
    choices.push(&stop);
    chunks(&choices)
}

fn heard(relay: &mut Relay) -> Gathered {
    gather(CHAT, &left(relay))
}

#[test]
fn the_frame_with_the_beginning_carries_what_is_new_and_the_others_are_emptied() {
    let mut relay = came(CHAT, &spoken(&["my SSN", " is 123-", "45-", "6789", ". Ok"]));
    relay.replace(TrackId(0), 10..21, "[redacted]").unwrap();
    allow_all(&mut relay);
    let gathered = heard(&mut relay);
    let texts: Vec<&str> =
        gathered.frames.iter().filter_map(|frame| frame["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(texts, ["my SSN", " is [redacted]", "", "", ". Ok"]);
}

#[test]
fn several_parts_of_one_piece_are_replaced() {
    let mut relay = came(CHAT, &spoken(&["a-b-c-d"]));
    for (at, with) in [(4, "C"), (0, "A"), (2, "")] {
        relay.replace(TrackId(0), at..at + 1, with).unwrap();
    }
    allow_all(&mut relay);
    assert_eq!(heard(&mut relay).first().text, "A--C-d");
}

#[test]
fn what_is_replaced_before_all_of_it_is_allowed_leaves_as_far_as_it_is() {
    let mut relay = came(CHAT, &spoken(&["ab", "cd", "ef"]));
    relay.replace(TrackId(0), 1..5, "-").unwrap();
    relay.allow(TrackId(0), 4);
    assert_eq!(heard(&mut relay).first().text, "a-");
    relay.allow(TrackId(0), 6);
    assert_eq!(heard(&mut relay).first().text, "f");
}

#[test]
fn what_cannot_be_replaced_is_said() {
    let mut relay = came(CHAT, &spoken(&["ab", "üd", "ef"]));
    relay.allow(TrackId(0), 2);
    relay.replace(TrackId(0), 4..6, "x").unwrap();
    for (part, why) in [
        (1..3, "let go"),
        (3..4, "no such part"),
        (6..9, "no such part"),
        (5..7, "overlap"),
        (5..5, "overlap"),
        (2..6, "overlap"),
    ] {
        let error = relay.replace(TrackId(0), part.clone(), "y").unwrap_err();
        assert!(error.reason.contains(why), "{part:?}: {error}");
    }
    assert!(relay.replace(TrackId(9), 0..0, "").is_err());
    allow_all(&mut relay);
    assert_eq!(heard(&mut relay).first().text, "abüxf");
    assert!(relay.replace(TrackId(0), 7..7, "late").is_err());
}

#[test]
fn an_insertion_goes_where_it_belongs_wherever_frames_end() {
    for at in 0..=6 {
        let mut relay = came(CHAT, &spoken(&["ab", "cd", "ef"]));
        relay.replace(TrackId(0), at..at, "+").unwrap();
        relay.replace(TrackId(0), at..at, "-").unwrap();
        allow_all(&mut relay);
        let mut expected = "abcdef".to_owned();
        expected.insert_str(at, "+-");
        assert_eq!(heard(&mut relay).first().text, expected);
    }
}

#[test]
fn an_insertion_behind_what_has_left_gets_a_frame_of_its_own() {
    let mut relay = Relay::new(CHAT);
    let stream = spoken(&["ab", "cd"]);
    let (before, after) = stream.split_at(stream.find(r#"{"index":0,"delta":{},"#).unwrap() - 44);
    push(&mut relay, before).unwrap();
    allow_all(&mut relay);
    let mut out = left(&mut relay);
    relay.replace(TrackId(0), 4..4, "!").unwrap();
    relay.allow(TrackId(0), 4);
    out += &left(&mut relay);
    assert_eq!(gather(CHAT, &out).first().text, "abcd!");
    push(&mut relay, after).unwrap();
    out += &left(&mut relay);
    let gathered = gather(CHAT, &out);
    assert!(gathered.done && gathered.first().stop.is_some());
}

#[test]
fn an_insertion_stands_before_a_stop_reason_that_waits_for_nothing_else() {
    for route in [CHAT, Route::Completions, Route::Chat, Route::Generate] {
        let (pieces, end) = match route {
            Route::Chat => (
                "{\"model\":\"m\",\"created_at\":\"t\",\"message\":{\"content\":\"ab\"},\"done\":false}\n",
                "{\"model\":\"m\",\"created_at\":\"t\",\"message\":{\"content\":\"\"},\"done\":true}\n",
            ),
            Route::Generate => (
                "{\"model\":\"m\",\"created_at\":\"t\",\"response\":\"ab\",\"done\":false}\n",
                "{\"model\":\"m\",\"created_at\":\"t\",\"response\":\"\",\"done\":true}\n",
            ),
            Route::Completions => (
                "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"text\":\"ab\"}]}\n\n",
                "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
            ),
            _ => (
                "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ab\"}}]}\n\n",
                "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
            ),
        };
        let mut relay = Relay::new(route);
        push(&mut relay, pieces).unwrap();
        allow_all(&mut relay);
        let mut out = left(&mut relay);
        push(&mut relay, end).unwrap();
        relay.replace(TrackId(0), 2..2, "c").unwrap();
        allow_all(&mut relay);
        out += &left(&mut relay);
        let gathered = gather(route, &out);
        assert_eq!(gathered.first().text, "abc", "{out}");
        assert!(gathered.done && gathered.first().stop.is_some(), "{out}");
    }
}

#[test]
fn an_answer_without_text_can_be_given_one() {
    let call =
        delta(r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#);
    let stream = chunks(&[r#"{"index":0,"delta":{"role":"assistant","content":null}}"#, &call, &stop("tool_calls")]);
    for (kind, text, thinking) in [(TrackKind::Text, "hi", ""), (TrackKind::Thinking, "", "hi")] {
        let mut relay = came(CHAT, &stream);
        let id = relay.add_track(0, kind).unwrap();
        assert!(relay.tracks()[id.0].ended);
        relay.replace(id, 0..0, "hi").unwrap();
        allow_all(&mut relay);
        let gathered = heard(&mut relay);
        assert_eq!((&*gathered.first().text, &*gathered.first().thinking), (text, thinking));
        assert_eq!(gathered.first().calls.len(), 1);
        assert!(relay.add_track(0, TrackKind::Text).is_err(), "the answer has left");
    }
    assert!(came(CHAT, &stream).add_track(3, TrackKind::Text).is_err(), "no such choice");
}

#[test]
fn thinking_that_is_told_twice_is_changed_twice() {
    let twice = delta(
        r#"{"reasoning":"secret","reasoning_content":"secret","reasoning_details":[{"type":"reasoning.text","text":"secret"}]}"#,
    );
    let mut relay = came(CHAT, &chunks(&[&twice, &stop("stop")]));
    relay.replace(track(&relay, TrackKind::Thinking), 0..6, "ok").unwrap();
    allow_all(&mut relay);
    let left = left(&mut relay);
    assert!(!left.contains("secret"), "{left}");
    assert_eq!(gather(CHAT, &left).first().thinking, "ok");
}

#[test]
fn escapes_and_characters_come_whole() {
    let raw = r#"{"content":"a\u00fc\ud83d\ude00\n\"\\z"}"#;
    let mut relay = came(CHAT, &chunks(&[&delta(raw), &stop("stop")]));
    let text = relay.tracks()[0].text.clone();
    assert_eq!(text, "aü😀\n\"\\z");
    for at in 1..7 {
        assert_eq!(relay.replace(TrackId(0), at..at, "").is_ok(), text.is_char_boundary(at), "{at}");
    }
    relay.replace(TrackId(0), 3..7, "\u{0}🙂").unwrap();
    allow_all(&mut relay);
    assert_eq!(heard(&mut relay).first().text, "aü\u{0}🙂\n\"\\z");
    assert!(drain(&mut relay).is_empty());
}

#[test]
fn a_character_that_the_upstream_cuts_in_two_comes_whole() {
    let stream = chunks(&[
        &delta(r#"{"content":"a\ud83d"}"#),
        &delta(r#"{"content":"\ude00b"}"#),
        &delta(r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"\"\ud83d"}}]}"#),
        &delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\""}}]}"#),
        &stop("tool_calls"),
    ]);
    let mut relay = came(CHAT, &stream);
    assert_eq!(relay.tracks()[0].text, "a😀b");
    assert_eq!(&*relay.calls()[0].call.function.arguments, "\"😀\"");
    allow_all(&mut relay);
    let gathered = heard(&mut relay);
    assert_eq!((&*gathered.first().text, &*gathered.first().calls[0].2), ("a😀b", "\"😀\""));
}

/// What a client reads is the text of a block: that of a block that is over does not change any more.
#[test]
fn a_text_is_closed_with_its_block_and_does_not_go_on() {
    let messages = |data: &str| format!("data: {data}\n\n");
    let item = r#""item":{"type":"reasoning","id":"r","summary":[]}"#;
    for (route, [begin, grow, end]) in [
        (
            Route::Messages,
            [
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#.to_owned(),
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#.to_owned(),
                r#"{"type":"content_block_stop","index":0}"#.to_owned(),
            ],
        ),
        (
            Route::Responses,
            [
                format!(r#"{{"type":"response.output_item.added","output_index":0,{item}}}"#),
                r#"{"type":"response.reasoning_summary_text.delta","item_id":"r","output_index":0,"summary_index":0,"delta":"Hm"}"#
                    .to_owned(),
                format!(r#"{{"type":"response.output_item.done","output_index":0,{item}}}"#),
            ],
        ),
    ] {
        let mut relay = Relay::new(route);
        let mut closed = Vec::new();
        for data in [&begin, &grow, &end] {
            push(&mut relay, &messages(data)).unwrap();
            closed.push(relay.tracks().iter().any(|track| track.closed));
        }
        assert_eq!(closed, [false, false, true], "{route:?}");
        push(&mut relay, &messages(&grow.replace("\"Hm\"", "\"\""))).unwrap();
        let fault = push(&mut relay, &messages(&grow)).unwrap_err();
        assert!(matches!(fault, Fault::WentOn(_)), "{route:?}: {fault}");
    }
}
