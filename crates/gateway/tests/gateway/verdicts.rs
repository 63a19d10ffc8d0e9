//! The table of verdicts: what a webhook says, and what the caller gets for it.

use std::collections::BTreeMap;

use gatehook_engine::config::ollama_env;
use gatehook_engine::events::{Event, Input, Message, Output, Permission};
use gatehook_engine::{Executor, HandlerEnv, OnError};
use gatehook_gateway::Config;
use gatehook_guard::Guard;
use serde_json::{Value, json};

use crate::support::{Gate, Judged, Reply, Upstream, config, guard, hook, post, post_with, response, says};

/// One request of each route.
const ROUTES: [(&str, &str); 6] = [
    ("/api/chat", r#"{"model":"m","stream":false,"messages":[{"role":"user","content":"hi"}]}"#),
    ("/api/generate", r#"{"model":"m","stream":false,"prompt":"hi"}"#),
    ("/v1/chat/completions", r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#),
    ("/v1/completions", r#"{"model":"m","prompt":"hi"}"#),
    ("/v1/responses", r#"{"model":"m","input":"hi"}"#),
    ("/v1/messages", r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#),
];
const CHAT: &str = ROUTES[0].1;

/// A gateway with the webhooks that Ollama's variables name.
pub(crate) fn webhooks(upstream: &Upstream, variables: &[(&str, &str)]) -> Gate {
    let env: BTreeMap<String, String> = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let hooks = ollama_env(&env).unwrap().expect("a webhook");
    let executor = Executor::new(hooks, HandlerEnv::current().unwrap()).unwrap();
    Gate::start(Config { guard: Guard::new(executor).map(Into::into), ..config(&upstream.url()) })
}

pub(crate) const PRE: &str = "OLLAMA_HOOK_PRE_INFERENCE_URL";
pub(crate) const POST: &str = "OLLAMA_HOOK_POST_INFERENCE_URL";

/// A gateway whose webhook before the call answers with this.
fn judged_by(upstream: &Upstream, reply: &str) -> (Gate, Upstream) {
    let webhook = Upstream::json(reply);
    (webhooks(upstream, &[(PRE, &webhook.url())]), webhook)
}

/// The `hook` object, wherever the wire has it.
pub(crate) fn note(reply: &Reply) -> Value {
    reply.json()["hook"].clone()
}

#[test]
fn the_webhook_is_told_what_is_published() {
    let (upstream, webhook) = (Upstream::json("{}"), Upstream::json(r#"{"permission":"allow"}"#));
    let headers = ("OLLAMA_HOOK_HEADERS", "X-Team: red, Authorization: Bearer t");
    let gate = webhooks(&upstream, &[(PRE, &webhook.url()), headers]);
    let reply = gate.ask(post("/v1/messages", ROUTES[5].1));
    let seen = webhook.seen();
    for (name, value) in [
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("user-agent", "ollama-hooks/1"),
        ("x-ollama-hook-event", "pre_inference"),
        ("x-team", "red"),
        ("authorization", "Bearer t"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    let body: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(reply.header("x-ollama-request-id"), body["request_id"].as_str());
    assert_eq!(seen.header("x-ollama-request-id"), body["request_id"].as_str());
    assert_eq!(body["event"], "pre_inference");
    assert_eq!(body["route"], "/v1/messages");
    assert_eq!(body["model"], "m");
    assert_eq!(body["messages"], json!([{"role": "user", "content": "hi"}]));
}

#[test]
fn allow_leaves_every_byte() {
    for (route, body) in ROUTES {
        let upstream = Upstream::json("{ \"odd\" : 1.0e0 }");
        let (gate, _webhook) = judged_by(&upstream, r#"{"permission":"allow"}"#);
        let reply = gate.ask(post(route, body));
        assert_eq!((reply.status, reply.text().as_str()), (200, "{ \"odd\" : 1.0e0 }"), "{route}");
        assert_eq!(upstream.seen().text(), body, "{route}");
    }
}

#[test]
fn deny_and_every_unclear_verdict_is_400() {
    for said in [r#"{"permission":"deny"}"#, r#"{"permission":"maybe"}"#, r#"{"user_message":"x"}"#, "{}"] {
        let upstream = Upstream::json("{}");
        let (gate, _webhook) = judged_by(&upstream, said);
        for (route, body) in ROUTES {
            let reply = gate.ask(post(route, body));
            assert_eq!(reply.status, 400, "{said} {route}");
            assert_eq!(note(&reply)["permission"], "deny", "{said} {route}");
            assert_eq!(reply.header("x-should-retry"), Some("false"), "{said} {route}");
        }
        assert!(upstream.saw_nothing());
    }
}

#[test]
fn a_refusal_can_be_read_by_every_library() {
    let upstream = Upstream::json("{}");
    let (gate, _webhook) =
        judged_by(&upstream, r#"{"permission":"deny","user_message":"No.","agent_message":"Stop."}"#);
    let ollama = gate.ask(post("/api/chat", CHAT)).json();
    assert_eq!(ollama["error"], "No.");
    let openai = gate.ask(post("/v1/chat/completions", ROUTES[2].1)).json();
    assert_eq!(
        (&openai["error"]["message"], &openai["error"]["type"], &openai["error"]["code"], &openai["error"]["param"]),
        (&json!("No."), &json!("hook_denied"), &json!("hook_deny"), &Value::Null)
    );
    let anthropic = gate.ask(post("/v1/messages", ROUTES[5].1)).json();
    assert_eq!(
        (&anthropic["type"], &anthropic["error"]),
        (&json!("error"), &json!({"type": "invalid_request_error", "message": "No."}))
    );
    for hook in [&ollama["hook"], &openai["hook"], &openai["error"]["hook"], &anthropic["hook"]] {
        assert_eq!(
            (&hook["permission"], &hook["user_message"], &hook["agent_message"], &hook["phase"]),
            (&json!("deny"), &json!("No."), &json!("Stop."), &json!("pre_inference"))
        );
        assert!(hook["request_id"].is_string() && hook["hook_name"].is_string());
    }
}

#[test]
fn ask_is_403_with_a_fingerprint_that_the_same_request_has_again() {
    let upstream = Upstream::json("{}");
    let (gate, _webhook) = judged_by(&upstream, r#"{"permission":"ask"}"#);
    let ask = |body: &str| {
        let reply = gate.ask(post("/v1/chat/completions", body));
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (403, &json!("hook_ask")));
        note(&reply)["fingerprint"].as_str().expect("a fingerprint").to_owned()
    };
    let body = ROUTES[2].1;
    assert_eq!(ask(body), ask(body));
    assert_ne!(ask(body), ask(&body.replace("hi", "ho")));
}

#[test]
fn modify_changes_what_it_names_and_nothing_else() {
    let body = r#"{"model":"m","x_unknown":1.0e0,"messages":[{"role":"user","content":[{"type":"text","text":"secret","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}],"max_tokens":9}"#;
    let upstream = Upstream::json("{}");
    let redact = |input: &Input| -> Judged {
        let mut messages = input.messages.as_deref().unwrap_or_default().to_vec();
        for message in &mut messages {
            if message.content.as_deref() == Some("secret") {
                message.content = Some("[gone]".into());
            }
        }
        Ok(Some(Output { messages: Some(messages), ..says(Permission::Modify) }))
    };
    let gate = Gate::guarded(&upstream, Event::PreInference, redact);
    assert_eq!(gate.ask(post_with("/v1/messages", "Content-Digest: sha-256=:x:\r\n", body)).status, 200);
    let seen = upstream.seen();
    assert_eq!(seen.text(), body.replace("secret", "[gone]"));
    assert_eq!(seen.header("content-digest"), None);
}

#[test]
fn modify_that_a_route_cannot_hold_is_502() {
    let two_users =
        r#"{"permission":"modify","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#;
    let orphan = r#"{"permission":"modify","messages":[{"role":"tool","tool_call_id":"c","content":"x"}]}"#;
    let empty = r#"{"permission":"modify","messages":[]}"#;
    for (said, route) in
        [(two_users, ROUTES[1]), (two_users, ROUTES[3]), (empty, ROUTES[0]), (empty, ROUTES[5]), (orphan, ROUTES[2])]
    {
        let upstream = Upstream::json("{}");
        let (gate, _webhook) = judged_by(&upstream, said);
        let reply = gate.ask(post(route.0, route.1));
        assert_eq!(reply.status, 502, "{said} {}", route.0);
        assert_eq!(note(&reply)["permission"], "modify", "{said} {}", route.0);
        assert!(upstream.saw_nothing());
    }
}

/// A chat answer that says `text`.
fn answer(text: &str) -> String {
    json!({"model": "m", "message": {"role": "assistant", "content": text}, "done": true, "done_reason": "stop"})
        .to_string()
}

#[test]
fn the_webhook_after_the_call_sees_the_answer() {
    let upstream = Upstream::json(&answer("hello"));
    let webhook = Upstream::json(r#"{"permission":"allow"}"#);
    let reply = webhooks(&upstream, &[(POST, &webhook.url())]).ask(post("/api/chat", CHAT));
    assert_eq!(reply.text(), answer("hello"));
    let body: Value = serde_json::from_slice(&webhook.seen().body).unwrap();
    assert_eq!((&body["event"], &body["route"]), (&json!("post_inference"), &json!("/api/chat")));
    assert_eq!(body["output_text"], "hello");
    assert_eq!(upstream.seen().header("accept-encoding"), Some("identity"));
}

#[test]
fn an_answer_can_be_denied_rewritten_and_emptied() {
    for (said, status, text) in [
        (r#"{"permission":"deny","user_message":"No."}"#, 400, "No."),
        (r#"{"permission":"modify","output_text":"[gone]"}"#, 200, "[gone]"),
        (r#"{"permission":"modify","output_text":""}"#, 200, ""),
        (r#"{"permission":"ask"}"#, 403, ""),
        (r#"{}"#, 400, ""),
    ] {
        let upstream = Upstream::json(&answer("secret"));
        let webhook = Upstream::json(said);
        let reply = webhooks(&upstream, &[(POST, &webhook.url())]).ask(post("/api/chat", CHAT));
        assert_eq!(reply.status, status, "{said}: {}", reply.text());
        assert!(!reply.text().contains("secret"), "{said}");
        let json = reply.json();
        let said_text = if status == 200 { &json["message"]["content"] } else { &json["error"] };
        assert!(said_text.as_str().unwrap().contains(text), "{said}: {json}");
        if status != 200 {
            assert_eq!(json["hook"]["phase"], "post_inference", "{said}");
        }
    }
}

#[test]
fn each_choice_is_judged_and_one_denial_ends_all() {
    let two = json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "one"}, "finish_reason": "stop"},
        {"index": 1, "message": {"role": "assistant", "content": "two"}, "finish_reason": "stop"}]});
    let upstream = Upstream::json(&two.to_string());
    let judge = |denied: &'static str| {
        move |input: &Input| -> Judged {
            let is = input.output_text.as_deref() == Some(denied);
            Ok(Some(says(if is { Permission::Deny } else { Permission::Allow })))
        }
    };
    let body = r#"{"model":"m","n":2,"messages":[{"role":"user","content":"hi"}]}"#;
    for (denied, status) in [("one", 400), ("two", 400), ("three", 200)] {
        let gate = Gate::guarded(&upstream, Event::PostInference, judge(denied));
        assert_eq!(gate.ask(post("/v1/chat/completions", body)).status, status, "{denied}");
    }
}

#[test]
fn an_upstreams_own_error_passes_unseen() {
    let upstream = Upstream::answering(response(404, "application/json", "{\"error\":\"no such model\"}"));
    let gate = Gate::guarded(&upstream, Event::PostInference, |_| Err("never asked".into()));
    let reply = gate.ask(post("/api/chat", CHAT));
    assert_eq!((reply.status, reply.text().as_str()), (404, "{\"error\":\"no such model\"}"));
}

#[test]
fn an_answer_that_cannot_be_shown_to_a_hook_is_not_given_out() {
    for kind in ["application/json", "text/html"] {
        let upstream = Upstream::answering(response(200, kind, "<secret>"));
        let gate = Gate::guarded(&upstream, Event::PostInference, |_| Ok(None));
        let reply = gate.ask(post("/api/chat", CHAT));
        assert_eq!(reply.status, 502, "{kind}");
        assert!(!reply.text().contains("secret"), "{kind}");
    }
}

#[test]
fn the_webhook_is_told_the_approval_of_the_header() {
    let upstream = Upstream::json("{}");
    let (gate, webhook) = judged_by(&upstream, r#"{"permission":"allow"}"#);
    for (path, body) in ROUTES {
        assert_eq!(gate.ask(post_with(path, "X-Gatehook-Approval: t-1\r\n", body)).status, 200, "{path}");
        let told: Value = serde_json::from_slice(&webhook.seen().body).unwrap();
        assert_eq!(told["options"]["hook_approval"], "t-1", "{path}");
        let seen = upstream.seen();
        assert!(!seen.head.contains("t-1") && !seen.text().contains("t-1"), "{path}");
    }
}

#[test]
fn hooks_stand_in_the_order_of_the_configuration() {
    let add = |text: &'static str| {
        move |input: &Input| -> Judged {
            let last = input.messages.as_deref().and_then(|messages| messages.last()?.content.clone()).unwrap();
            let messages = vec![Message::new("user", &format!("{last}{text}"))];
            Ok(Some(Output { messages: Some(messages), ..says(Permission::Modify) }))
        }
    };
    let upstream = Upstream::json("{}");
    let hooks = vec![hook(Event::PreInference, add("1")), hook(Event::PreInference, add("2"))];
    Gate::start(Config { guard: guard(hooks), ..config(&upstream.url()) }).ask(post("/api/chat", CHAT));
    assert!(upstream.seen().text().contains("hi12"));
}

#[test]
fn what_is_denied_is_shown_to_no_later_hook() {
    let upstream = Upstream::json("{}");
    let hooks = vec![
        hook(Event::PreInference, |_| Ok(Some(says(Permission::Deny)))),
        hook(Event::PreInference, |_| panic!("asked after a denial")).on_error(OnError::Warn),
    ];
    let reply = Gate::start(Config { guard: guard(hooks), ..config(&upstream.url()) }).ask(post("/api/chat", CHAT));
    assert_eq!((reply.status, &note(&reply)["hook_name"]), (400, &json!("hook0")));
}

#[test]
fn what_only_takes_text_is_judged_before_the_call() {
    let upstream = Upstream::json("{\"embeddings\":[]}");
    let gate = Gate::guarded(&upstream, Event::PreInference, |input| {
        let secret = input
            .messages
            .iter()
            .flat_map(|messages| messages.iter())
            .any(|message| message.content.as_deref() == Some("secret"));
        Ok(Some(says(if secret { Permission::Deny } else { Permission::Allow })))
    });
    for (path, body) in [
        ("/api/embed", r#"{"model":"m","input":["fine","TEXT"]}"#),
        ("/api/embeddings", r#"{"model":"m","prompt":"TEXT"}"#),
        ("/v1/embeddings", r#"{"model":"m","input":"TEXT"}"#),
        ("/v1/messages/count_tokens", r#"{"model":"m","messages":[{"role":"user","content":"TEXT"}]}"#),
    ] {
        assert_eq!(gate.ask(post(path, &body.replace("TEXT", "fine"))).status, 200, "{path}");
        assert_eq!(gate.ask(post(path, &body.replace("TEXT", "secret"))).status, 400, "{path}");
    }
}

#[test]
fn a_hook_is_told_who_calls() {
    let upstream = Upstream::json("{}");
    let (sender, told) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let gate = Gate::guarded(&upstream, Event::PreInference, move |input| {
        sender.lock().unwrap().send(input.clone()).unwrap();
        Ok(None)
    });
    let headers = "User-Agent: me/1\r\nX-Gatehook-Session: s-1\r\nX-Gatehook-Approval: a-1\r\n";
    gate.ask(post_with("/v1/chat/completions", headers, ROUTES[2].1));
    let input = told.recv().unwrap();
    assert_eq!(input.session_id.as_deref(), Some("s-1"));
    assert_eq!(input.approval.as_deref(), Some("a-1"));
    assert_eq!(input.client.as_deref(), Some(&json!({"address": "127.0.0.1", "user_agent": "me/1"})));
    assert_eq!(input.stream, Some(false));
    let seen = upstream.seen();
    assert_eq!((seen.header("x-gatehook-approval"), seen.header("x-gatehook-session")), (None, Some("s-1")));
}

#[test]
fn a_large_body_is_judged_like_a_small_one() {
    let large = "x".repeat(400_000);
    let upstream = Upstream::json(&answer(&large));
    let gate = Gate::start(Config {
        guard: guard(vec![
            hook(Event::PreInference, |input| {
                let last = input.messages.as_deref().and_then(|messages| messages.last()?.content.clone()).unwrap();
                Ok(Some(says(if last.ends_with("secret") { Permission::Deny } else { Permission::Allow })))
            }),
            hook(Event::PostInference, |_| {
                Ok(Some(Output { output_text: Some("short".into()), ..says(Permission::Modify) }))
            }),
        ]),
        ..config(&upstream.url())
    });
    let body = CHAT.replace("hi", &large);
    assert_eq!(gate.ask(post("/api/chat", &body)).json()["message"]["content"], "short");
    assert_eq!(upstream.seen().text(), body);
    assert_eq!(gate.ask(post("/api/chat", &CHAT.replace("hi", &format!("{large}secret")))).status, 400);
}
