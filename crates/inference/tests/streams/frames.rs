//! Which frames leave when, and as what.

use gatehook_inference::{ErrorKind, FRAME_LIMIT, Fault, Relay, Route, TrackId, TrackKind, keep_alive};

use crate::client::gather;
use crate::{allow_all, came, chunks, delta, drain, left, push, stop, track};

const CHAT: Route = Route::ChatCompletions;

fn frame(choice: u32, delta: &str) -> String {
    format!("data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[{{\"index\":{choice},\"delta\":{delta}}}]}}\n\n")
}

#[test]
fn text_waits_until_it_is_allowed_to_its_end() {
    let mut relay = Relay::new(CHAT);
    push(&mut relay, &frame(0, r#"{"content":"Hello"}"#)).unwrap();
    for upto in [0, 1, 4] {
        relay.allow(TrackId(0), upto);
        assert_eq!(relay.take(), None, "{upto}");
    }
    relay.allow(TrackId(0), 5);
    assert_eq!(left(&mut relay), frame(0, r#"{"content":"Hello"}"#));
}

#[test]
fn an_offset_inside_of_a_character_is_that_of_its_beginning() {
    let mut relay = Relay::new(CHAT);
    push(&mut relay, &frame(0, r#"{"content":"a🙂"}"#)).unwrap();
    relay.allow(TrackId(0), 3);
    assert_eq!(relay.tracks()[0].allowed, 1);
    assert_eq!(relay.take(), None);
}

#[test]
fn what_waits_in_one_choice_or_kind_holds_no_other_up() {
    let frames = [
        frame(0, r#"{"content":"held"}"#),
        frame(1, r#"{"content":"one"}"#),
        frame(0, r#"{"reasoning_content":"think"}"#),
        frame(0, r#"{"content":" too"}"#),
    ];
    let mut relay = Relay::new(CHAT);
    push(&mut relay, &frames.concat()).unwrap();
    for (id, track) in [(1, "one"), (2, "think")] {
        assert_eq!(relay.tracks()[id].text, track);
        relay.allow(TrackId(id), usize::MAX);
    }
    assert_eq!(left(&mut relay), [&*frames[1], &*frames[2]].concat());
    relay.allow(TrackId(0), 4);
    assert_eq!(left(&mut relay), frames[0]);
    relay.allow(TrackId(0), 8);
    assert_eq!(left(&mut relay), frames[3]);
}

#[test]
fn a_stop_reason_waits_for_its_own_choice_and_usage_for_all() {
    let stops = |choice: u32| {
        format!("data: {{\"choices\":[{{\"index\":{choice},\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n")
    };
    let usage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":3}}\n\n";
    let frames =
        [frame(0, r#"{"content":"held"}"#), stops(0), frame(1, r#"{"content":"one"}"#), stops(1), usage.into()];
    let mut relay = Relay::new(CHAT);
    push(&mut relay, &frames.concat()).unwrap();
    relay.allow(TrackId(1), 3);
    assert_eq!(left(&mut relay), [&*frames[2], &*frames[3]].concat());
    relay.allow(TrackId(0), 4);
    assert_eq!(left(&mut relay), [&*frames[0], &*frames[1], &*frames[4]].concat());
}

#[test]
fn text_and_thinking_of_one_frame_wait_for_each_other() {
    let both = frame(0, r#"{"content":"text","reasoning":"thought"}"#);
    let mut relay = Relay::new(CHAT);
    push(&mut relay, &both).unwrap();
    let (text, thinking) = (track(&relay, TrackKind::Text), track(&relay, TrackKind::Thinking));
    relay.allow(thinking, usize::MAX);
    assert_eq!(relay.take(), None);
    relay.allow(text, usize::MAX);
    assert_eq!(left(&mut relay), both);
}

#[test]
fn roles_and_comments_are_nothing_to_begin_an_answer_with() {
    let mut relay = Relay::new(CHAT);
    push(&mut relay, ": hello\n\n").unwrap();
    push(&mut relay, &frame(0, r#"{"role":"assistant","content":""}"#)).unwrap();
    assert!(!relay.speaks());
    push(&mut relay, &frame(0, r#"{"content":"x"}"#)).unwrap();
    assert!(!relay.speaks());
    allow_all(&mut relay);
    assert!(relay.speaks());
    assert!(left(&mut relay).starts_with(": hello\n\ndata: "));
}

#[test]
fn what_never_passes_is_taken_out() {
    let stream = chunks(&[
        r#"{"index":0,"delta":{"content":"a"},"message":{"content":"secret"}}"#,
        r#"{"index":0,"delta":{},"finish_reason":"stop"}],"__verbose":{"content":"secret"},"x":[1"#,
    ]);
    let mut relay = came(CHAT, &stream);
    allow_all(&mut relay);
    let left = left(&mut relay);
    assert!(!left.contains("secret") && left.contains("\"x\":[1]"), "{left}");
    assert_eq!(gather(CHAT, &left).first().text, "a");
}

#[test]
fn what_tells_of_a_stream_in_tokens_leaves_only_with_all_of_it_unchanged() {
    let lines = "{\"model\":\"m\",\"created_at\":\"t\",\"response\":\"abc\",\"done\":false}\n\
        {\"model\":\"m\",\"created_at\":\"t\",\"response\":\"\",\"done\":true,\"done_reason\":\"stop\",\"context\":[1,2]}\n";
    let mut relay = came(Route::Generate, lines);
    allow_all(&mut relay);
    assert_eq!(left(&mut relay), lines);
    let mut relay = came(Route::Generate, lines);
    relay.replace(TrackId(0), 1..2, "X").unwrap();
    allow_all(&mut relay);
    let left = left(&mut relay);
    assert!(left.contains("\"aXc\"") && !left.contains("context"), "{left}");
}

#[test]
fn log_probabilities_stay_where_they_spell_their_own_unchanged_text() {
    let chunk = |text: &str, token: &str| {
        format!(
            "{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"logprobs\":{{\"content\":[{{\"token\":\"{token}\",\"logprob\":-1}}]}}}}"
        )
    };
    for (text, token, changed, stays) in [
        ("abc", "abc", false, true),
        ("abc", "abcd", false, false),
        ("abc", "ab", false, false),
        ("abc", "abc", true, false),
    ] {
        let mut relay = came(CHAT, &chunks(&[&chunk(text, token), &stop("stop")]));
        if changed {
            relay.replace(TrackId(0), 1..2, "").unwrap();
        }
        allow_all(&mut relay);
        assert_eq!(left(&mut relay).contains("\"token\""), stays, "{text} {token} {changed}");
    }
}

#[test]
fn an_error_of_the_upstream_is_the_end_and_leaves_behind_what_came_before() {
    let error = "data: {\"error\":{\"message\":\"out of memory\"}}\n\n";
    let text = frame(0, r#"{"content":"Hel"}"#);
    let mut relay = Relay::new(CHAT);
    push(&mut relay, &format!("{text}{error}{text}")).unwrap();
    assert!(relay.is_over() && relay.upstream_error() && relay.tracks()[0].ended);
    assert_eq!(relay.take(), None);
    relay.finish().unwrap();
    allow_all(&mut relay);
    assert_eq!(left(&mut relay), format!("{text}{error}"));
}

#[test]
fn what_comes_behind_the_end_is_dropped() {
    let stream = chunks(&[&delta(r#"{"content":"a"}"#), &stop("stop")]);
    let mut relay = Relay::new(CHAT);
    push(&mut relay, &format!("{stream}data: {{\"choices\":[{{\"delta\":{{\"content\":\"secret\"}}}}]}}\n\n")).unwrap();
    push(&mut relay, "data: garbage\n\n").unwrap();
    relay.finish().unwrap();
    allow_all(&mut relay);
    assert_eq!(left(&mut relay), stream);
}

#[test]
fn a_stream_without_its_end_is_cut() {
    let text = frame(0, r#"{"role":"assistant","content":"Hel"}"#);
    // An error in the midst of Ollama's own stream comes as an empty chunk, then nothing.
    let empty = frame(0, r#"{"role":"assistant","content":""}"#);
    for (route, stream) in [
        (CHAT, String::new()),
        (CHAT, text.clone()),
        (CHAT, format!("{text}{empty}")),
        (CHAT, format!("{text}data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"fin")),
        (Route::Completions, "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":null}]}\n\n".into()),
        (Route::Chat, "{\"message\":{\"content\":\"a\"},\"done\":false}\n".into()),
        (Route::Generate, "{\"response\":\"a\",\"done\":false}\n{\"respo".into()),
    ] {
        let mut relay = Relay::new(route);
        push(&mut relay, &stream).unwrap();
        assert_eq!(relay.finish(), Err(Fault::Cut), "{stream}");
    }
}

#[test]
fn the_error_behind_half_a_line_stands_on_the_next_one() {
    let line = "{\"response\":\"a\",\"done\":false}\n";
    let mut relay = Relay::new(Route::Generate);
    push(&mut relay, &format!("{line}{{\"respo")).unwrap();
    allow_all(&mut relay);
    assert_eq!(left(&mut relay), line);
    relay.finish().unwrap_err();
    let end = relay.fail(ErrorKind::BadUpstream, "It broke off.", "r1");
    assert!(end.starts_with(b"{\"error\""), "a blank line breaks readers: {end:?}");
}

#[test]
fn a_stream_with_all_its_stop_reasons_and_no_done_is_whole() {
    let stream = format!("{}data: {{\"choices\":[{}]}}", frame(0, r#"{"content":"a"}"#), stop("stop"));
    let mut relay = came(CHAT, &stream);
    allow_all(&mut relay);
    assert_eq!(left(&mut relay), stream);
}

#[test]
fn what_cannot_be_read_for_sure_is_a_fault() {
    for (route, stream) in [
        (CHAT, "data: <html>\n\n"),
        (CHAT, "data: []\n\n"),
        (CHAT, "data: {\"choices\":[{\"delta\":{\"content\":1}}]}\n\n"),
        (CHAT, "data: {\"choices\":[{\"delta\":{\"content\":\"a\",\"content\":\"b\"}}]}\n\n"),
        (CHAT, "data: {\"choices\":[{\"delta\":{\"Content\":\"b\"}}]}\n\n"),
        (CHAT, "data: {\"Choices\":[]}\n\n"),
        (CHAT, "data: {\"choices\":[{\"index\":-1,\"delta\":{}}]}\n\n"),
        (CHAT, "data: {\"choices\":[{\"delta\":{\"tool_calls\":{}}}]}\n\n"),
        (
            CHAT,
            "data: {\"choices\":[{\"finish_reason\":\"stop\",\"delta\":{}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n",
        ),
        (Route::Chat, "{\"message\":{\"content\":[]}}\n"),
        (Route::Chat, "Internal Server Error\n"),
        (Route::Generate, "{\"response\":{}}\n"),
        // Where another route has its text, which no hook would see: older servers stream completions like the first.
        (Route::Completions, "data: {\"content\":\"a\",\"stop\":false}\n\n"),
        (CHAT, "data: {\"message\":{\"role\":\"assistant\",\"content\":\"a\"},\"done\":false}\n\n"),
        (Route::Chat, "{\"response\":\"a\",\"done\":false}\n"),
        (Route::Generate, "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n"),
        (Route::Generate, "{\"message\":{\"role\":\"assistant\",\"content\":\"a\"},\"done\":false}\n"),
    ] {
        let fault = push(&mut Relay::new(route), stream).unwrap_err();
        assert!(matches!(fault, Fault::Read(_) | Fault::WentOn(_)), "{stream}: {fault}");
    }
    let mut relay = Relay::new(CHAT);
    let long = vec![b'x'; FRAME_LIMIT + 1];
    assert_eq!(relay.push(long.into()), Err(Fault::TooLarge));
}

#[test]
fn thinking_beside_the_text_of_a_completion_is_thinking() {
    let chunk = |text: &str, thinking: &str| {
        let choice = format!(r#"{{"index":0,"text":"{text}","reasoning":"{thinking}","finish_reason":null}}"#);
        format!("data: {{\"choices\":[{choice}]}}\n\n")
    };
    let mut relay = Relay::new(Route::Completions);
    push(&mut relay, &format!("{}{}", chunk("", "sec"), chunk("a", "ret"))).unwrap();
    let thinking = relay.tracks().iter().position(|track| track.kind == TrackKind::Thinking).unwrap();
    assert_eq!(relay.tracks()[thinking].text, "secret");
    relay.replace(TrackId(thinking), 0..6, "ok").unwrap();
    allow_all(&mut relay);
    assert_eq!(left(&mut relay), format!("{}{}", chunk("", "ok"), chunk("a", "")));
}

#[test]
fn a_frame_in_several_lines_is_changed_and_keeps_its_other_lines() {
    let stream = "id: 7\r\ndata: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\r\n: note\r\ndata: \"delta\":{\"content\":\"secret\"}}]}\r\n\r\n";
    let mut relay = Relay::new(CHAT);
    push(&mut relay, stream).unwrap();
    relay.replace(TrackId(0), 0..6, "ok").unwrap();
    allow_all(&mut relay);
    let left = left(&mut relay);
    assert!(left.contains("id: 7\n") && left.contains(": note\n") && !left.contains("secret"), "{left}");
    assert_eq!(gather(CHAT, &left).first().text, "ok");
}

#[test]
fn what_is_kept_is_bounded_by_what_is_held() {
    let mut relay = Relay::new(CHAT);
    let text = frame(0, &format!("{{\"content\":\"{}\"}}", "ü".repeat(500)));
    let mut most = 0;
    for _ in 0..1000 {
        push(&mut relay, &text).unwrap();
        allow_all(&mut relay);
        drain(&mut relay);
        most = most.max(relay.held());
    }
    assert!(most < 100_000, "{most}");
    let track = &relay.tracks()[0];
    assert_eq!(track.len_total(), 1_000_000);
    assert!(track.allowed - track.base >= 4096 && track.since(track.len_total() - 2) == "ü");
}

#[test]
fn clients_that_wait_are_told_so_where_that_breaks_nothing() {
    for route in Route::ALL {
        let ping = keep_alive(*route);
        assert_eq!(ping.is_none(), matches!(route, Route::Chat | Route::Generate), "{}", route.path());
        assert!(ping.is_none_or(|ping| ping.ends_with(b"\n\n")));
    }
}

#[test]
fn an_end_is_known_as_the_sdks_know_it() {
    for end in ["data: [DONE]\n\n", "data:[DONE]\n\n", "data:  [DONE] \n\n", "data: [DONE]x\n\n"] {
        let mut relay = Relay::new(CHAT);
        push(&mut relay, end).unwrap();
        assert!(relay.is_over() && !relay.upstream_error(), "{end}");
    }
    for error in ["event: error\ndata: {\"message\":\"x\"}\n\n", "data:  {\"error\":\"x\"}\n\n"] {
        let mut relay = Relay::new(CHAT);
        push(&mut relay, error).unwrap();
        assert!(relay.is_over() && relay.upstream_error(), "{error}");
    }
}

#[test]
fn what_quotes_a_text_leaves_only_with_all_of_it_unchanged() {
    let quote = delta(r#"{"content":"secret","annotations":[{"title":"secret"}]}"#);
    let mut relay = came(CHAT, &chunks(&[&quote, &stop("stop")]));
    relay.replace(TrackId(0), 0..6, "ok").unwrap();
    allow_all(&mut relay);
    assert!(!left(&mut relay).contains("secret"));
}

#[test]
fn spoken_words_leave_or_do_not_and_are_not_rewritten() {
    let stream = chunks(&[
        &delta(r#"{"audio":{"id":"a","transcript":"words"}}"#),
        &delta(r#"{"audio":{"data":"AAAA"}}"#),
        &stop("stop"),
    ]);
    let mut relay = came(CHAT, &stream);
    assert_eq!(relay.tracks()[0].text, "words");
    assert_eq!(relay.take(), None);
    assert!(relay.replace(TrackId(0), 0..5, "").is_err());
    allow_all(&mut relay);
    assert_eq!(left(&mut relay), stream);
}

#[test]
fn choices_and_calls_are_bounded() {
    let mut relay = Relay::new(CHAT);
    let choices = (0..2000).map(|choice| frame(choice, "{}")).collect::<String>();
    assert_eq!(push(&mut relay, &choices), Err(Fault::TooMany));
    let calls = (0..2000).map(|call| format!(r#"{{"tool_calls":[{{"index":{call},"id":"{call}"}}]}}"#));
    let calls = calls.map(|call| frame(0, &call)).collect::<String>();
    assert_eq!(push(&mut Relay::new(CHAT), &calls), Err(Fault::TooMany));
    let call = r#"{"function":{"name":"f","arguments":{}}}"#;
    let line = format!("{{\"message\":{{\"tool_calls\":[{}]}}}}\n", vec![call; 2000].join(","));
    assert_eq!(push(&mut Relay::new(Route::Chat), &line), Err(Fault::TooMany));
}
