//! Streams that end before their upstream does.

use gatehook_inference::CallId;
use gatehook_inference::{Block, Ending, ErrorKind, Fate, HookNote, Relay, Route, TrackId};

use crate::client::{Gathered, gather};
use crate::recorded::streams;
use crate::{allow_all, came, chunks, delta, drain, left, push, stop};

const CHAT: Route = Route::ChatCompletions;

fn note() -> HookNote {
    HookNote { hook_name: Some("guard".into()), ..HookNote::default() }
}

fn block(relay: &mut Relay, ending: Ending) -> String {
    let bytes = relay.block(&Block { message: "No.", hook: &note(), ending });
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a client has of a stream that is blocked after it has let so much of each text go.
fn blocked(route: Route, body: &[u8], cut: usize, allowed: usize, ending: Ending) -> (Gathered, Gathered) {
    let mut relay = Relay::new(route);
    relay.push(body[..cut].to_vec().into()).unwrap();
    for id in 0..relay.tracks().len() {
        relay.allow(TrackId(id), allowed);
    }
    let out = left(&mut relay);
    let before = gather(route, &out);
    let after = gather(route, &(out + &block(&mut relay, ending)));
    assert_eq!(relay.take(), None);
    relay.push(body[cut..].to_vec().into()).unwrap();
    assert_eq!(relay.take(), None, "nothing follows a block");
    (before, after)
}

#[test]
fn a_block_leaves_exactly_what_was_let_go_and_ends_by_the_protocol() {
    for (file, route, body) in streams() {
        for cut in (0..body.len()).step_by(97) {
            for ending in [Ending::Refusal, Ending::ContentFilter] {
                let (before, after) = blocked(route, &body, cut, 5, ending);
                if before.error.is_some() {
                    continue;
                }
                assert!(after.done && after.error.is_none(), "{file} cut at {cut}: {after:?}");
                assert_eq!(after.hook.as_ref().unwrap()["hook_name"], "guard", "{file}");
                assert!(after.frames.last().unwrap()["hook"].is_object(), "{file}: not the last event");
                for (index, choice) in &after.choices {
                    let earlier = before.choices.get(index).cloned().unwrap_or_default();
                    assert_eq!((&choice.text, &choice.thinking), (&earlier.text, &earlier.thinking), "{file}");
                    assert_eq!(choice.calls, earlier.calls, "{file}");
                    let stop = match (&earlier.stop, route, ending) {
                        (Some(stop), ..) => stop,
                        (None, Route::Chat | Route::Generate, _) | (None, _, Ending::ContentFilter) => "content_filter",
                        (None, _, Ending::Refusal) => "stop",
                    };
                    assert_eq!(choice.stop.as_deref(), Some(stop), "{file}");
                    if route == CHAT {
                        assert_eq!(choice.role.as_deref(), Some("assistant"), "{file}");
                        let refused = ending == Ending::Refusal && earlier.stop.is_none();
                        assert_eq!(choice.refusal.ends_with("No."), refused, "{file}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_block_ends_all_choices_that_are_open() {
    let other = |choice: String| choice.replacen("\"index\":0", "\"index\":1", 1);
    let pieces = [
        delta(r#"{"role":"assistant","content":"a"}"#),
        other(delta(r#"{"role":"assistant","content":"b"}"#)),
        stop("length"),
    ];
    let chunks = chunks(&pieces.each_ref().map(String::as_str));
    let mut relay = Relay::new(CHAT);
    push(&mut relay, chunks.strip_suffix("data: [DONE]\n\n").unwrap()).unwrap();
    relay.allow(TrackId(0), 1);
    let out = left(&mut relay) + &block(&mut relay, Ending::ContentFilter);
    let gathered = gather(CHAT, &out);
    assert_eq!(gathered.choices[&0].stop.as_deref(), Some("length"));
    assert_eq!((&*gathered.choices[&1].text, gathered.choices[&1].stop.as_deref()), ("", Some("content_filter")));
}

#[test]
fn a_block_before_anything_came_is_an_answer_of_its_own() {
    for route in [CHAT, Route::Completions, Route::Chat, Route::Generate] {
        for ending in [Ending::Refusal, Ending::ContentFilter] {
            let gathered = gather(route, &block(&mut Relay::new(route), ending));
            assert!(gathered.done && gathered.first().stop.is_some(), "{}", route.path());
        }
    }
}

#[test]
fn usage_that_was_counted_is_told_with_a_block() {
    let usage = "],\"usage\":{\"total_tokens\":3},\"x\":[";
    let mut relay = came(CHAT, &chunks(&[&delta(r#"{"content":"a"}"#), &stop("stop"), usage]));
    let gathered = gather(CHAT, &block(&mut relay, Ending::Refusal));
    assert_eq!(gathered.usage.unwrap()["total_tokens"], 3);
    let line =
        "{\"model\":\"m\",\"created_at\":\"t\",\"message\":{\"content\":\"a\"},\"done\":true,\"eval_count\":7}\n";
    let gathered = gather(Route::Chat, &block(&mut came(Route::Chat, line), Ending::Refusal));
    assert_eq!(gathered.usage.unwrap(), 7);
}

#[test]
fn a_failure_is_an_error_of_the_protocol_behind_what_was_let_go() {
    for (file, route, body) in streams() {
        let mut relay = Relay::new(route);
        relay.push(body.slice(..body.len() / 2)).unwrap();
        allow_all(&mut relay);
        let out = left(&mut relay);
        let before = gather(route, &out);
        let end = relay.fail(ErrorKind::BadUpstream, "It broke.", "r1");
        assert!(relay.fail(ErrorKind::BadUpstream, "", "").is_empty());
        let after = gather(route, &(out + std::str::from_utf8(&end).unwrap()));
        assert_eq!(after.choices, before.choices, "{file}");
        assert!(after.error.unwrap().to_string().contains("It broke."), "{file}");
    }
}

#[test]
fn an_ending_behind_half_a_frame_is_a_frame_of_its_own() {
    let mut relay = Relay::new(CHAT);
    push(&mut relay, "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}")
        .unwrap();
    relay.finish().unwrap_err();
    allow_all(&mut relay);
    let out = left(&mut relay) + std::str::from_utf8(&relay.fail(ErrorKind::BadUpstream, "", "r1")).unwrap();
    let gathered = gather(CHAT, &out);
    assert_eq!(gathered.first().text, "a");
    assert!(gathered.error.is_some());
}

#[test]
fn a_note_rides_on_the_event_that_ends_an_answer() {
    let call =
        delta(r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#);
    let mut relay = came(CHAT, &chunks(&[&call, &stop("tool_calls")]));
    relay.decide(CallId(0), Fate::Remove).unwrap();
    relay.note(note());
    relay.note(HookNote { hook_name: Some("second".into()), ..HookNote::default() });
    let gathered = gather(CHAT, std::str::from_utf8(&drain(&mut relay)).unwrap());
    assert_eq!(gathered.hook.as_ref().unwrap()["hook_name"], "guard");
    assert_eq!(gathered.first().stop.as_deref(), Some("stop"));
}

#[test]
fn nothing_is_put_behind_an_end_that_has_left() {
    let stream = chunks(&[&delta(r#"{"content":"a"}"#), &stop("stop")]);
    let mut relay = came(CHAT, &stream);
    allow_all(&mut relay);
    assert_eq!(left(&mut relay), stream);
    assert_eq!(block(&mut relay, Ending::Refusal), "");
}
