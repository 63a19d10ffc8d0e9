//! Hooks that judge a request while the upstream already works on it.

use gatehook_gateway::Config;
use serde_json::json;

use crate::feed::{Feed, Feeds, SSE};
use crate::support::{Gate, Upstream, Wire, config, policy, post};
use crate::verdicts::note;

const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
const ANSWER: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"secret"}}]}"#;

/// A gateway with a concurrent webhook that the test speaks for, and a request whose verdict and answer both wait.
struct Waiting {
    gate: Gate,
    upstream: Feed,
    webhook: Feed,
    client: Wire,
}

impl Waiting {
    fn new(on_error: &str) -> Self {
        let (upstream, webhook) = (Feeds::new(), Feeds::new());
        let url = webhook.url();
        let guard = policy(&format!(
            "hooks: {{pre_inference: [{{type: webhook, url: '{url}', contract: ollama, concurrent: true, \
             timeout: 20s, on_error: {on_error}}}]}}"
        ));
        let gate = Gate::start(Config { guard, ..config(&upstream.url()) });
        let client = gate.begin(post("/v1/chat/completions", CHAT));
        Self { gate, upstream: upstream.next(), webhook: webhook.next(), client }
    }
}

#[test]
fn the_upstream_is_asked_before_the_verdict() {
    let Waiting { mut upstream, mut webhook, mut client, gate: _gate } = Waiting::new("block");
    upstream.answer(ANSWER);
    webhook.answer(r#"{"permission":"allow"}"#);
    let reply = client.reply().unwrap();
    assert_eq!((reply.status, reply.text().as_str()), (200, ANSWER));
}

#[test]
fn nothing_leaves_before_the_verdict() {
    let Waiting { mut upstream, mut webhook, mut client, gate: _gate } = Waiting::new("block");
    upstream.begin(SSE, "");
    upstream.send("data: secret\n\n");
    assert!(client.is_silent());
    webhook.answer(r#"{"permission":"allow"}"#);
    assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
}

#[test]
fn a_denial_cancels_a_call_that_has_not_been_answered() {
    let Waiting { mut upstream, mut webhook, mut client, gate } = Waiting::new("block");
    webhook.answer(r#"{"permission":"deny","user_message":"no"}"#);
    assert!(upstream.is_left());
    let reply = client.reply().unwrap();
    assert_eq!((reply.status, &note(&reply)["user_message"]), (400, &json!("no")));
    assert!(gate.handle.metrics().contains("gatehook_held_body_bytes 0"));
}

#[test]
fn a_denial_drops_an_answer_that_has_begun() {
    let Waiting { mut upstream, mut webhook, mut client, gate: _gate } = Waiting::new("block");
    upstream.begin(SSE, "");
    upstream.send("data: secret\n\n");
    webhook.answer(r#"{"permission":"deny"}"#);
    let reply = client.reply().unwrap();
    assert_eq!(reply.status, 400);
    assert!(!reply.text().contains("secret"));
    assert!(upstream.is_left());
}

#[test]
fn a_denial_goes_before_an_upstream_that_fails() {
    let Waiting { upstream, mut webhook, mut client, gate: _gate } = Waiting::new("block");
    drop(upstream);
    webhook.answer(r#"{"permission":"deny"}"#);
    assert_eq!(client.reply().unwrap().status, 400);
}

#[test]
fn a_rewrite_comes_too_late_and_is_refused() {
    let Waiting { mut upstream, mut webhook, mut client, gate: _gate } = Waiting::new("block");
    webhook.answer(r#"{"permission":"modify","messages":[{"role":"user","content":"other"}]}"#);
    assert_eq!(client.reply().unwrap().status, 502);
    assert!(upstream.is_left());
}

#[test]
fn a_webhook_that_breaks_off_refuses_or_lets_pass_as_it_is_told_to() {
    for (on_error, status) in [("block", 503), ("warn", 200)] {
        let Waiting { mut upstream, webhook, mut client, gate: _gate } = Waiting::new(on_error);
        drop(webhook);
        if status == 200 {
            upstream.answer(ANSWER);
        }
        assert_eq!(client.reply().unwrap().status, status, "{on_error}");
    }
}

#[test]
fn a_client_that_leaves_ends_the_call_and_the_hook() {
    let Waiting { mut upstream, mut webhook, client, gate: _gate } = Waiting::new("block");
    drop(client);
    assert!(upstream.is_left());
    assert!(webhook.is_left());
}

#[test]
fn other_hooks_judge_first_and_what_they_refuse_reaches_nobody() {
    let (upstream, webhook) = (Upstream::json(ANSWER), Upstream::json(r#"{"permission":"allow"}"#));
    let guard = policy(&format!(
        "hooks: {{pre_inference: [{{type: webhook, url: '{}', contract: ollama, concurrent: true}}, \
         {{type: builtin, command: block_patterns, args: [hi]}}]}}",
        webhook.url()
    ));
    let gate = Gate::start(Config { guard, ..config(&upstream.url()) });
    assert_eq!(gate.ask(post("/v1/chat/completions", CHAT)).status, 400);
    assert!(upstream.saw_nothing() && webhook.saw_nothing());
}
