//! Requests of which only the answer is judged: they are read while the upstream already works on them.

use std::sync::mpsc::channel;

use gatehook_engine::events::{Event, Input, Permission};
use gatehook_gateway::Config;
use gatehook_gateway::config::{UpstreamConfig, UpstreamKind};
use serde_json::json;

use crate::feed::{Feeds, SSE};
use crate::support::{Gate, Judged, PATIENCE, Upstream, config, guard, hook, post, response, says};

const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
const ANSWER: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"secret"}}]}"#;
/// Two readers take these for two things, or for none.
const UNREADABLE: [&str; 4] = [
    r#"{"model":"m","messages":[{"role":"user","content":"x"}],"messages":[{"role":"user","content":"y"}]}"#,
    r#"{"model":"m","messages":[{"role":"user","content":"x"}],"Messages":[]}"#,
    r#"{"model":"m","prompt":"x","messages":[]}"#,
    "no JSON",
];

fn allow(_: &Input) -> Judged {
    Ok(Some(says(Permission::Allow)))
}

fn judged(url: &str, judge: fn(&Input) -> Judged) -> Gate {
    Gate::start(Config { guard: guard(vec![hook(Event::PostInference, judge)]), ..config(url) })
}

#[test]
fn the_upstream_has_what_came_and_hooks_see_it_with_the_answer() {
    let upstream = Upstream::json(ANSWER);
    let gate = judged(&upstream.url(), |input| {
        let asked = input.messages.as_deref().and_then(|messages| messages[0].content.as_deref()) == Some("hi");
        Ok(Some(says(if asked { Permission::Deny } else { Permission::Allow })))
    });
    let reply = gate.ask(post("/v1/chat/completions", CHAT));
    assert_eq!((reply.status, reply.text().contains("secret")), (400, false));
    let seen = upstream.seen();
    assert_eq!((seen.text().as_str(), seen.header("accept-encoding")), (CHAT, Some("identity")));
}

#[test]
fn what_cannot_be_read_is_refused_whatever_the_upstream_answers() {
    let upstream = Upstream::json(ANSWER);
    let gate = judged(&upstream.url(), allow);
    for body in UNREADABLE {
        // What follows on the connection of the first leaves at once.
        assert_eq!(gate.ask(post("/v1/chat/completions", CHAT)).text(), ANSWER);
        let reply = gate.ask(post("/v1/chat/completions", body));
        assert_eq!((reply.status, reply.text().contains("secret")), (400, false), "{body}");
    }
    gate.comes_to_rest();
}

#[test]
fn the_call_of_what_cannot_be_read_is_broken_off() {
    let (tell, left) = channel();
    let upstream = Upstream::new(move |seen, wire| {
        match seen.text() == CHAT {
            true => wire.send(response(200, "application/json", ANSWER)),
            false => tell.send(wire.is_closed()).unwrap(),
        }
        true
    });
    let gate = judged(&upstream.url(), allow);
    assert_eq!(gate.ask(post("/v1/chat/completions", CHAT)).status, 200);
    assert_eq!(gate.ask(post("/v1/chat/completions", UNREADABLE[0])).status, 400);
    assert!(left.recv_timeout(PATIENCE).unwrap());
    gate.comes_to_rest();
}

#[test]
fn an_approval_is_taken_out_however_it_is_spelled() {
    let upstream = Upstream::json(r#"{"model":"m","message":{"role":"assistant","content":"x"},"done":true}"#);
    let gate = judged(&upstream.url(), allow);
    let bare = r#"{"model":"m","stream":false,"messages":[],"options":{"seed":1}}"#;
    for name in ["hook_approval", "hook\\u005fapproval", "h\\u006f\\u006Fk_approval"] {
        let within = bare.replace("\"seed\":1", &format!("\"{name}\":\"t-1\",\"seed\":1"));
        assert_eq!(gate.ask(post("/api/chat", &within)).status, 200, "{name}");
        assert_eq!(upstream.seen().text(), bare, "{name}");
    }
}

#[test]
fn the_model_chooses_the_upstream() {
    let (one, two) = (Upstream::json(ANSWER), Upstream::json(ANSWER));
    let upstreams = vec![
        UpstreamConfig::new("one", UpstreamKind::OpenAi, one.url()),
        UpstreamConfig { models: vec!["m".into()], ..UpstreamConfig::new("two", UpstreamKind::OpenAi, two.url()) },
    ];
    let guard = guard(vec![hook(Event::PostInference, allow)]);
    let gate = Gate::start(Config { guard, upstreams, ..config(&one.url()) });
    assert_eq!(gate.ask(post("/v1/chat/completions", CHAT)).status, 200);
    assert_eq!((two.seen().text().as_str(), one.saw_nothing()), (CHAT, true));
}

#[test]
fn a_large_request_is_read_beside_an_answer_that_has_begun() {
    let feeds = Feeds::new();
    let gate = judged(&feeds.url(), |input| {
        let length = input.messages.as_deref().and_then(|messages| messages[0].content.as_deref()).map(str::len);
        Ok(Some(says(if length == Some(1 << 20) { Permission::Deny } else { Permission::Allow })))
    });
    let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "x".repeat(1 << 20)}]});
    let mut client = gate.begin(post("/v1/chat/completions", &body.to_string()));
    let mut upstream = feeds.begin(SSE);
    upstream
        .send("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"secret\"},\"finish_reason\":\"stop\"}]}\n\n");
    upstream.send("data: [DONE]\n\n");
    upstream.end();
    let reply = client.reply().unwrap();
    assert_eq!((reply.status, reply.text().contains("secret")), (400, false));
}

#[test]
fn a_client_that_leaves_ends_the_call() {
    let feeds = Feeds::new();
    let gate = judged(&feeds.url(), allow);
    let client = gate.begin(post("/v1/chat/completions", CHAT));
    let mut upstream = feeds.next();
    drop(client);
    assert!(upstream.is_left());
    gate.comes_to_rest();
}
