//! Models that judge, on a server of each kind and on servers that misbehave.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gatehook_engine::config::{Format, ReadOptions, parse};
use gatehook_engine::events::{Event, FailureKind, Input, OutcomeKind, TokenUsage, Verdict};
use gatehook_engine::{Executor, HandlerEnv, Registry};
use gatehook_gateway::config::UpstreamKind;
use gatehook_gateway::{Config, Habits, ModelConfig, ModelPlace, Models, Prices};
use gatehook_guard::Guard;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Gate, Upstream, config, post, response};

/// `judge/one`, a model of this kind at this address.
fn models(kind: UpstreamKind, url: &str) -> Models {
    let mut api_key = "sk-judge".parse::<http::HeaderValue>().unwrap();
    api_key.set_sensitive(true);
    let place = ModelPlace { kind: Some(kind), base_url: Some(url.parse().unwrap()), api_key: Some(api_key) };
    let prices = Some(Prices { input: 10.0, output: 100.0 });
    let model = ModelConfig { name: "judge/*".to_owned(), place: Some(place), prices, habits: Habits::default() };
    Models::new(vec![model], &BTreeMap::new())
}

/// A judge of this event.
fn judge(models: Models, event: &str, timeout: &str) -> Executor {
    let text = format!(
        "hooks: {{ {event}: [{{ type: model, model: judge/one, prompt: 'May it? {{{{ .ToolName }}}}', \
         schema: pre_tool_use_decision, timeout: {timeout} }}] }}"
    );
    let file = parse("policy.yaml", &text, Format::Yaml, &ReadOptions::default()).unwrap();
    let registry = Registry::with_defaults();
    registry.register_model_client(Arc::new(models));
    Executor::with_registry(file.hooks, HandlerEnv::current().unwrap(), &registry).unwrap()
}

async fn verdict(executor: &Executor) -> Verdict {
    let input = Input { tool_name: Some("shell".into()), ..Input::default() };
    executor.dispatch(Event::PreToolUse, &input, &CancellationToken::new()).await
}

fn answer(kind: UpstreamKind, decision: &str) -> Value {
    let decision = json!({"decision": decision, "reason": "I have looked"});
    match kind {
        UpstreamKind::Ollama => json!({
            "model": "one", "created_at": "2026-01-01T00:00:00Z", "done": true, "done_reason": "stop",
            "message": {"role": "assistant", "content": decision.to_string()},
            "prompt_eval_count": 100, "eval_count": 10,
        }),
        UpstreamKind::OpenAi => json!({
            "id": "c", "object": "chat.completion", "created": 0, "model": "one",
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": decision.to_string()}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }),
        UpstreamKind::Anthropic => json!({
            "id": "m", "type": "message", "role": "assistant", "model": "one", "stop_reason": "tool_use",
            "stop_sequence": null, "usage": {"input_tokens": 100, "output_tokens": 10},
            "content": [{"type": "tool_use", "id": "t", "name": "pre_tool_use_decision", "input": decision}],
        }),
    }
}

#[tokio::test]
async fn a_model_of_each_kind_is_asked_in_its_format_and_heard() {
    for (kind, path, key) in [
        (UpstreamKind::Ollama, "/api/chat", ("authorization", "Bearer sk-judge")),
        (UpstreamKind::OpenAi, "/v1/chat/completions", ("authorization", "Bearer sk-judge")),
        (UpstreamKind::Anthropic, "/v1/messages", ("x-api-key", "sk-judge")),
    ] {
        let upstream = Upstream::json(&answer(kind, "deny").to_string());
        let executor = judge(models(kind, &upstream.url()), "pre_tool_use", "20s");
        let verdict = verdict(&executor).await;
        assert_eq!((verdict.allowed, verdict.message.as_str()), (false, "I have looked"), "{kind:?}");
        let outcome = &verdict.outcomes[0];
        assert_eq!(outcome.usage, Some(TokenUsage { input_tokens: 100, output_tokens: 10 }), "{kind:?}");
        assert_eq!(outcome.cost, Some(0.002), "{kind:?}");
        let seen = upstream.seen();
        assert_eq!(seen.line(), format!("POST {path} HTTP/1.1"), "{kind:?}");
        assert_eq!(seen.header(key.0), Some(key.1), "{kind:?}");
        let body: Value = serde_json::from_slice(&seen.body).unwrap();
        assert_eq!(body["model"], "one", "{kind:?}");
        assert_eq!(body["messages"].as_array().unwrap().last().unwrap()["content"], "May it? shell", "{kind:?}");
    }
}

#[tokio::test]
async fn a_model_that_allows_is_asked_once_for_the_same_question() {
    let upstream = Upstream::json(&answer(UpstreamKind::Ollama, "allow").to_string());
    let executor = judge(models(UpstreamKind::Ollama, &upstream.url()), "pre_tool_use", "20s");
    for recalled in [false, true] {
        let verdict = verdict(&executor).await;
        assert!(verdict.allowed);
        assert_eq!(verdict.outcomes[0].recalled, recalled);
    }
    upstream.seen();
    assert!(upstream.saw_nothing());
}

#[tokio::test]
async fn a_model_that_misbehaves_closes_the_guard() {
    let html = "<!doctype html><title>Sign in</title>";
    let huge = json!({"message": {"role": "assistant", "content": "x".repeat(2 << 20)}}).to_string();
    let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{html}");
    for (answer, kind) in [
        (response(500, "application/json", "{}"), FailureKind::BadStatus),
        (response(401, "application/json", r#"{"error":"sk-judge is no key"}"#), FailureKind::BadStatus),
        (b"HTTP/1.1 302 X\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_vec(), FailureKind::Redirected),
        (response(200, "text/html", html), FailureKind::MalformedJson),
        (response(200, "application/json", ""), FailureKind::MalformedJson),
        (response(200, "application/json", r#"{"choices":[]}"#), FailureKind::MalformedJson),
        (
            response(200, "application/json", r#"{"choices":[{"message":{"content":"sure!"}}]}"#),
            FailureKind::MalformedJson,
        ),
        (
            response(200, "application/json", r#"{"choices":[{"message":{"content":null,"refusal":"no"}}]}"#),
            FailureKind::MalformedJson,
        ),
        (response(200, "application/json", &huge), FailureKind::OutputTooLarge),
        (long.into_bytes(), FailureKind::Unreachable),
    ] {
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(120)]).into_owned();
        let upstream = Upstream::new(move |_, wire| {
            wire.send(&answer);
            false
        });
        let executor = judge(models(UpstreamKind::OpenAi, &upstream.url()), "pre_tool_use", "20s");
        let verdict = verdict(&executor).await;
        assert!(!verdict.allowed, "{shown}");
        assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(kind), "{shown}: {}", verdict.message);
        assert!(!serde_json::to_string(&verdict).unwrap().contains("sk-judge"), "{shown}");
    }
}

#[tokio::test]
async fn a_model_that_never_answers_is_left_at_the_deadline() {
    let upstream = Upstream::new(|_, wire| wire.is_closed());
    let executor = judge(models(UpstreamKind::Ollama, &upstream.url()), "pre_tool_use", "50ms");
    let verdict = verdict(&executor).await;
    assert!(!verdict.allowed);
    assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::Timeout));
    upstream.seen();
}

#[tokio::test]
async fn a_model_that_cannot_be_called_closes_the_guard() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, kind) in [
        (format!("http://{nobody}"), FailureKind::Unreachable),
        ("http://169.254.169.254".to_owned(), FailureKind::ForbiddenAddress),
    ] {
        let executor = judge(models(UpstreamKind::Ollama, &url), "pre_tool_use", "20s");
        let verdict = verdict(&executor).await;
        assert!(!verdict.allowed, "{url}");
        assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(kind), "{url}");
    }
}

#[test]
fn a_judge_behind_its_own_gateway_is_a_loop() {
    let upstream = Upstream::json("{}");
    let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let executor = judge(models(UpstreamKind::Ollama, &format!("http://{own}")), "pre_inference", "20s");
    let mut config = Config { guard: Guard::new(executor).map(Arc::new), ..config(&upstream.url()) };
    config.listen.address = own;
    let started = std::time::Instant::now();
    let reply = Gate::start(config).ask(post("/api/chat", r#"{"model":"m","messages":[],"stream":false}"#));
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(upstream.saw_nothing());
}
