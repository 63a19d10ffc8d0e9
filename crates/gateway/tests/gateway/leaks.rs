//! A secret, a card number and a blocked phrase, split at every place over the frames of a stream, do not reach the
//! client: not in text, thinking, arguments, log probabilities, or what a protocol repeats.

use std::collections::VecDeque;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::feed::{Coming, Feeds};
use crate::frames::{Heard, ROUTES, Said, asking, frames, heard, kind, request, told};
use crate::streams::guarded;
use crate::support::{Upstream, response};

/// What must not pass, and who is to see to it.
struct Case {
    hook: &'static str,
    hidden: &'static str,
    /// What stands in its place; `None` where the answer is refused.
    instead: Option<&'static str>,
}

const CASES: [Case; 3] = [
    Case {
        hook: "{type: builtin, command: redact_secrets}",
        hidden: "AKIAQ3EGRF5XYNB7TW2P",
        instead: Some("[REDACTED]"),
    },
    Case { hook: "{type: builtin, command: redact_pii}", hidden: "4111 1111 1111 1111", instead: Some("<CARD>") },
    Case {
        hook: "{type: builtin, command: block_patterns, args: [the golden falcon]}",
        hidden: "the golden falcon",
        instead: None,
    },
];

/// Which part of an answer holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Text,
    Thinking,
    Arguments,
    /// On both sides of a tool call.
    Around,
    /// Of the text, on both sides of thinking.
    TextInTurns,
    /// Of the thinking, on both sides of text.
    ThinkingInTurns,
}

impl Part {
    /// Those that a route has.
    fn of(route: &str) -> Vec<Part> {
        match route {
            "/v1/completions" => vec![Part::Text],
            "/api/generate" => vec![Part::Text, Part::Thinking, Part::TextInTurns, Part::ThinkingInTurns],
            _ => vec![
                Part::Text,
                Part::Thinking,
                Part::Arguments,
                Part::Around,
                Part::TextInTurns,
                Part::ThinkingInTurns,
            ],
        }
    }

    /// An answer that has these pieces in this part.
    fn said(self, pieces: &[&str]) -> Said {
        match self {
            Part::Text => Said::text(pieces),
            Part::Thinking => Said::thinking(pieces),
            Part::Arguments => {
                let mut pieces: Vec<_> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
                pieces.insert(0, "{\"q\":\"".to_owned());
                pieces.push("\"}".to_owned());
                Said { arguments: pieces, ..Said::text(&["Well. "]) }
            }
            Part::Around => {
                let (before, after) = pieces.split_at(pieces.len().div_ceil(2));
                let after = Said::text(after).text;
                Said { arguments: vec!["{}".to_owned()], after, ..Said::text(before) }
            }
            Part::TextInTurns => in_turns(pieces, |piece, is_first| {
                let between = if is_first { Said::default() } else { Said::thinking(&["Hm. "]) };
                Said { text: Said::text(&[piece]).text, ..between }
            }),
            Part::ThinkingInTurns => {
                in_turns(pieces, |piece, _| Said { text: Said::text(&["Hm. "]).text, ..Said::thinking(&[piece]) })
            }
        }
    }

    fn heard(self, heard: &Heard) -> &str {
        match self {
            Part::Text | Part::Around | Part::TextInTurns => &heard.text,
            Part::Thinking | Part::ThinkingInTurns => &heard.thinking,
            Part::Arguments => &heard.arguments,
        }
    }
}

/// A turn for each piece.
fn in_turns(pieces: &[&str], turn: impl Fn(&str, bool) -> Said) -> Said {
    let turns = pieces.iter().enumerate().map(|(place, piece)| turn(piece, place == 0));
    let all = turns.rev().reduce(|then, turn| Said { then: Some(Box::new(then)), ..turn });
    all.unwrap_or_default()
}

const BEFORE: &str = "Hello, wörld: ";
const AFTER: &str = " – and so on.";

/// The answer with what is hidden cut at a place, and the answer cut at every character.
fn splits(hidden: &str) -> Vec<Vec<String>> {
    let halves =
        (0..=hidden.len()).map(|at| vec![format!("{BEFORE}{}", &hidden[..at]), format!("{}{AFTER}", &hidden[at..])]);
    let whole = format!("{BEFORE}{hidden}{AFTER}");
    let characters = whole.chars().map(String::from).collect();
    halves.chain([characters, vec![whole]]).collect()
}

fn pieces(split: &[String]) -> Vec<&str> {
    split.iter().map(String::as_str).collect()
}

/// Holds what a client got against what it may get.
fn check(what: &str, case: &Case, route: &str, part: Part, status: u16, body: &str) {
    if status == 200 {
        for told in told(route, body) {
            assert!(!told.contains(case.hidden), "{what}: it can be put together from {told}");
        }
    }
    assert!(!body.contains(case.hidden), "{what}: {body}");
    let Some(instead) = case.instead else {
        assert!(status == 400 || body.contains(r#""permission":"deny""#), "{what}: {status} {body}");
        if status == 200 {
            let heard = heard(route, body);
            assert!(heard.over && !heard.error, "{what}: {body}");
            assert!(BEFORE.starts_with(part.heard(&heard)) || part == Part::Arguments, "{what}: {body}");
        }
        return;
    };
    assert_eq!(status, 200, "{what}: {body}");
    let heard = heard(route, body);
    assert!(heard.over && !heard.error, "{what}: {body}");
    let rest = format!("{BEFORE}{instead}{AFTER}");
    match part {
        Part::Arguments => {
            let arguments: Value =
                serde_json::from_str(&heard.arguments).unwrap_or_else(|error| panic!("{what} {error}: {body}"));
            assert_eq!(arguments, json!({"q": rest}), "{what}: {body}");
        }
        part => assert_eq!(part.heard(&heard), rest, "{what}: {body}"),
    }
}

/// All splits of a part of a route's answers, each with the frames of its stream.
fn streams(case: &Case, route: &str) -> Vec<(Part, Vec<String>, Vec<String>)> {
    let splits = |part: Part| splits(case.hidden).into_iter().map(move |split| (part, split));
    let all = Part::of(route).into_iter().flat_map(splits);
    all.map(|(part, split)| (part, frames(route, &part.said(&pieces(&split))), split)).collect()
}

/// Lets a server answer with each split in turn, all frames of it at once.
fn each_split(case: &Case, hooks: &str) {
    for route in ROUTES {
        let streams = streams(case, route);
        let left = Mutex::new(streams.iter().map(|(_, frames, _)| frames.concat()).collect::<VecDeque<_>>());
        let upstream = Upstream::new(move |_, wire| {
            wire.send(response(200, kind(route), &left.lock().unwrap().pop_front().unwrap()));
            true
        });
        let gate = guarded(&upstream.url(), hooks);
        for (part, _, split) in streams {
            let reply = gate.ask(request(route));
            let what = format!("{route} {part:?} {split:?} {}", case.hook);
            check(&what, case, route, part, reply.status, &reply.text());
        }
        gate.comes_to_rest();
    }
}

/// Lets a script answer with each split, of which the gateway reads one frame at a time.
fn each_frame(case: &Case, hooks: &str) {
    let folder = tempfile::tempdir().unwrap();
    for route in ROUTES {
        let streams = streams(case, route);
        let headers = json!({"content-type": kind(route)});
        let entry = |(number, (_, frames, _)): (usize, &(Part, Vec<String>, Vec<String>))| {
            json!({"match": format!("\"#{number}\""), "headers": headers, "chunks": frames}).to_string()
        };
        let file = folder.path().join("answers.jsonl");
        std::fs::write(&file, streams.iter().enumerate().map(entry).collect::<String>()).unwrap();
        let gate = guarded(&format!("replay:{}", file.display()), hooks);
        for (number, (part, _, split)) in streams.into_iter().enumerate() {
            let reply = gate.ask(asking(route, &format!("#{number}")));
            let what = format!("{route} {part:?} {split:?} {} frame by frame", case.hook);
            check(&what, case, route, part, reply.status, &reply.text());
        }
        gate.comes_to_rest();
    }
}

fn builtin(case: &Case) -> String {
    format!("hooks: {{post_inference: [{}]}}", case.hook)
}

#[test]
fn a_split_secret_does_not_reach_the_client() {
    each_split(&CASES[0], &builtin(&CASES[0]));
    each_frame(&CASES[0], &builtin(&CASES[0]));
}

#[test]
fn a_split_card_number_does_not_reach_the_client() {
    each_split(&CASES[1], &builtin(&CASES[1]));
    each_frame(&CASES[1], &builtin(&CASES[1]));
}

#[test]
fn a_split_phrase_does_not_reach_the_client() {
    each_split(&CASES[2], &builtin(&CASES[2]));
    each_frame(&CASES[2], &builtin(&CASES[2]));
}

/// A webhook that takes out of an answer what is hidden, or denies it.
fn censor(case: &'static Case) -> Upstream {
    Upstream::new(move |seen, wire| {
        let shown: Value = serde_json::from_slice(&seen.body).unwrap();
        let without = |text: &str| text.replace(case.hidden, case.instead.unwrap_or_default());
        let mut reply = match (case.instead, seen.text().contains(case.hidden)) {
            (_, false) => json!({"permission": "allow"}),
            (None, true) => json!({"permission": "deny"}),
            (Some(_), true) => json!({"permission": "modify"}),
        };
        if reply["permission"] == "modify" {
            for field in ["output_text", "output_thinking"] {
                reply[field] = shown[field].as_str().map(without).into();
            }
            if let Some(calls) = shown["tool_calls"].as_array() {
                reply["tool_calls"] = serde_json::from_str(&without(&json!(calls).to_string())).unwrap();
            }
        }
        wire.send(response(200, "application/json", &reply.to_string()));
        true
    })
}

#[test]
fn what_a_buffered_webhook_takes_out_does_not_reach_the_client() {
    for case in &CASES {
        let webhook = censor(case);
        each_split(case, &crate::streams::webhook(&webhook.url(), "{mode: buffer}", ""));
    }
}

/// The two halves come one after the other: the second only when the client has got of the first what it may.
#[test]
fn what_comes_in_two_reads_does_not_reach_the_client_either() {
    for case in &CASES {
        for route in ROUTES {
            let upstream = Feeds::new();
            let gate = guarded(&upstream.url(), &builtin(case));
            for at in 1..case.hidden.len() {
                let (first, second) = case.hidden.split_at(at);
                let second = format!("{second}{AFTER}");
                let frames = frames(route, &Said::text(&[BEFORE, first, &second]));
                let cut = frames.iter().position(|frame| frame.contains(AFTER.trim_start())).unwrap();
                let client = gate.begin(request(route));
                let mut feed = upstream.begin(kind(route));
                feed.send(frames[..cut].concat());
                let what = format!("{route} at {at} {}", case.hook);
                let mut client = Coming::new(client);
                client.until("Hello, ");
                feed.offer(frames[cut..].concat());
                feed.end();
                check(&what, case, route, Part::Text, client.status(), &client.whole());
            }
            gate.comes_to_rest();
        }
    }
}

/// Frames in which each token might have been what is hidden.
fn with_alternatives(case: &Case, route: &str, frames: &str) -> String {
    let hidden = case.hidden;
    match route {
        "/v1/completions" => frames.replace("\"top_logprobs\":[{", &format!("\"top_logprobs\":[{{\"{hidden}\":-2.5,")),
        _ => {
            let other = json!({"token": hidden, "logprob": -2.5, "bytes": hidden.as_bytes()});
            frames.replace("\"top_logprobs\":[", &format!("\"top_logprobs\":[{other},"))
        }
    }
}

#[test]
fn what_the_model_might_have_said_instead_does_not_reach_the_client() {
    let pieces = ["All ", "is ", "fine."];
    for case in &CASES {
        let webhook = censor(case);
        let buffered = crate::streams::webhook(&webhook.url(), "{mode: buffer}", "");
        let window = crate::streams::webhook(&webhook.url(), "{mode: window, size: 64, overlap: 32}", "");
        for route in ROUTES {
            let stream = frames(route, &Said::text(&pieces)).concat();
            let came = with_alternatives(case, route, &stream);
            assert_eq!(came == stream, route == "/v1/messages", "{route}");
            let sent = came.clone();
            let upstream = Upstream::new(move |_, wire| {
                wire.send(response(200, kind(route), &sent));
                true
            });
            for hooks in [&builtin(case), &buffered, &window] {
                let reply = guarded(&upstream.url(), hooks).ask(request(route));
                assert_eq!(reply.text(), stream, "{route} {hooks}");
            }
            let observed = "hooks: {post_inference: [{type: builtin, command: redact_pii, stream: {mode: observe}}]}";
            let reply = guarded(&upstream.url(), observed).ask(request(route));
            assert_eq!(reply.text(), came, "{route}: nobody judges");
        }
    }
}

#[test]
fn nor_does_it_in_an_answer_that_is_no_stream() {
    let logprobs = || {
        let token = |token: &str| json!({"token": token, "logprob": -0.5, "bytes": token.as_bytes()});
        let mut entry = token("Fine.");
        entry["top_logprobs"] = json!([token("Fine.")]);
        json!([entry])
    };
    let listed =
        json!({"tokens": ["Fine."], "token_logprobs": [-0.5], "top_logprobs": [{"Fine.": -0.5}], "text_offset": [0]});
    let part = json!({"type": "output_text", "text": "Fine.", "annotations": [], "logprobs": logprobs()});
    let bodies = [
        (
            "/api/chat",
            json!({"message": {"role": "assistant", "content": "Fine."}, "done": true, "logprobs": logprobs()}),
        ),
        ("/api/generate", json!({"response": "Fine.", "done": true, "logprobs": logprobs()})),
        (
            "/v1/chat/completions",
            json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Fine."},
                "logprobs": {"content": logprobs()}, "finish_reason": "stop"}]}),
        ),
        (
            "/v1/completions",
            json!({"choices": [{"index": 0, "text": "Fine.", "logprobs": listed, "finish_reason": "stop"}]}),
        ),
        (
            "/v1/responses",
            json!({"output": [{"type": "message", "role": "assistant", "content": [part]}], "status": "completed"}),
        ),
    ];
    for (case, (route, body)) in CASES.iter().flat_map(|case| bodies.iter().map(move |body| (case, body))) {
        let came = with_alternatives(case, route, &body.to_string());
        assert!(came.contains(case.hidden), "{route}");
        let sent = came.clone();
        let upstream = Upstream::new(move |_, wire| {
            wire.send(response(200, "application/json", &sent));
            true
        });
        let webhook = censor(case);
        for hooks in [&builtin(case), &crate::streams::webhook(&webhook.url(), "{mode: buffer}", "")] {
            let asked = String::from_utf8(request(route)).unwrap().replace(r#""stream":true"#, r#""stream":null"#);
            let reply = guarded(&upstream.url(), hooks).ask(asked.into_bytes());
            assert_eq!((reply.status, reply.text()), (200, body.to_string()), "{route} {hooks}");
        }
    }
}

/// A secret whose name is taken for the end of an address, whichever of the two is looked for first.
#[test]
fn what_two_builtins_find_in_each_other_does_not_reach_the_client() {
    const GLUED: &str = r"So j@x.ioapi_key: 'Zx81hYqLm3Vb7Nw2Ks9Rt5Pd4Fg6Jc0A', ja.";
    const LEFT: &str = "So <EMAIL>_key: '[REDACTED]', ja.";
    for order in [["redact_secrets", "redact_pii"], ["redact_pii", "redact_secrets"]] {
        let hooks = order.map(|name| format!("{{type: builtin, command: {name}}}")).join(", ");
        let hooks = format!("hooks: {{post_inference: [{hooks}]}}");
        for route in ROUTES {
            let said = |at: usize| Said::text(&[&GLUED[..at], &GLUED[at..]]);
            let left: VecDeque<_> = (1..GLUED.len()).map(|at| frames(route, &said(at)).concat()).collect();
            let left = Mutex::new(left);
            let upstream = Upstream::new(move |_, wire| {
                wire.send(response(200, kind(route), &left.lock().unwrap().pop_front().unwrap()));
                true
            });
            let gate = guarded(&upstream.url(), &hooks);
            for at in 1..GLUED.len() {
                let body = gate.ask(request(route)).text();
                let heard = heard(route, &body);
                assert_eq!((&*heard.text, heard.over), (LEFT, true), "{route} {order:?} at {at}: {body}");
                assert!(
                    told(route, &body).iter().all(|told| !told.contains("Zx81hYqLm3Vb7Nw2")),
                    "{route} at {at}: {body}"
                );
            }
        }
    }
}
