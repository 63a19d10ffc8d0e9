//! Each contract over a connection: what its server is documented to answer, and what it is not.

use std::collections::BTreeMap;
use std::time::Duration;

use gatehook_events::Profile;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::client::raw_server::{Answer, RawServer, response};
use crate::definition::{HandlerDefinition, HookDefinition, Source, Test};
use crate::find::Others;
use crate::handler::{HandlerEnv, HandlerFactory as _, HookCall};
use crate::handlers::webhook::WebhookFactory;
use crate::handlers::webhook::sign::Signer;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn hook(url: &str, contract: Contract) -> WebhookDefinition {
    let rules = [mapping::rule("/flagged", Test::Is(true.into()))];
    let mapping = (contract == Contract::Mapped).then(|| mapping::mapping(&json!({"text": "{{ .text }}"}), &rules));
    WebhookDefinition { mapping, ..WebhookDefinition::new(url, contract) }
}

async fn run(webhook: WebhookDefinition, source: Source, event: Event) -> Result<Output, FailureKind> {
    let mut definition = HookDefinition::new(Profile::Native, HandlerDefinition::Webhook(webhook));
    definition.origin.source = source;
    let env = HandlerEnv { working_dir: "/".into(), env: BTreeMap::new() };
    let handler = WebhookFactory::default().create(&definition, &env).unwrap();
    let (input, payload, cancel) = (input(event), Payload::default(), CancellationToken::new());
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    let others = Others::default();
    let call = HookCall { event, input: &input, payload: &payload, cancel: &cancel, deadline, others: &others };
    match handler.run(call).await {
        Ok(Reply::Direct(output)) => Ok(output.unwrap_or_default()),
        Ok(Reply::Process { stdout, .. }) => Ok(serde_json::from_slice(&stdout).unwrap()),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.kind),
    }
}

/// What each vendor's server answers, the path it is asked at, and what comes of it.
fn examples() -> Vec<(Contract, Event, &'static str, Value, &'static str)> {
    use Contract::*;
    let masked = ["be brief", "mail [m]", "sent", "thanks"];
    let span =
        json!([{"message_id": 1, "start": 5, "end": 10, "text": "a@b.c", "detector_type": "pii/email", "labels": []}]);
    let detected = |what: &str| json!([{"project_id": "p", "policy_id": "q", "detector_id": "d", "detector_type": what, "detected": true}]);
    let moderated = |flagged: bool| {
        let result = |flagged| json!({"flagged": flagged, "categories": {"violence": flagged}, "category_scores": {"violence": 0.5}});
        json!({"id": "modr-1", "model": "omni-moderation-latest", "results": [result(false), result(flagged), result(false), result(false), result(false)]})
    };
    vec![
        (Native, PreInference, "/", json!({"decision": "block", "reason": "no"}), "deny no"),
        (Ollama, PreInference, "/", json!({"permission": "deny", "user_message": "no"}), "deny no"),
        (AgentGateway, PreInference, "/request", json!({"action": {"reason": "no match"}}), "allow"),
        (AgentGateway, PreInference, "/request", json!({"action": {"body": "no", "status_code": 403}}), "deny no"),
        (
            AgentGateway,
            PostInference,
            "/response",
            json!({"action": {"body": {"choices": [
                {"message": {"role": "assistant", "content": "hm"}},
                {"message": {"role": "assistant", "content": "it is [m]"}},
                {"message": {"role": "assistant", "content": "{}"}},
            ]}}}),
            "text it is [m], call {}",
        ),
        (LiteLlm, PreInference, "/beta/litellm_basic_guardrail_api", json!({"action": "NONE"}), "allow"),
        (
            LiteLlm,
            PreInference,
            "/beta/litellm_basic_guardrail_api",
            json!({"action": "BLOCKED", "blocked_reason": "no"}),
            "deny no",
        ),
        (
            LiteLlm,
            PreInference,
            "/beta/litellm_basic_guardrail_api",
            json!({"action": "GUARDRAIL_INTERVENED", "texts": masked}),
            "messages be brief|mail [m]||sent|thanks",
        ),
        (Portkey, PreInference, "/", json!({"verdict": true}), "allow"),
        (Portkey, PostInference, "/", json!({"verdict": false, "data": {"reason": "no"}}), "deny no"),
        (Lakera, PreInference, "/v2/guard", json!({"flagged": false, "payload": [], "breakdown": []}), "allow"),
        (
            Lakera,
            PreInference,
            "/v2/guard",
            json!({"flagged": true, "payload": [], "breakdown": detected("prompt_attack")}),
            "deny flagged by prompt_attack",
        ),
        (
            Lakera,
            PreInference,
            "/v2/guard",
            json!({"flagged": true, "payload": span, "breakdown": detected("pii/email")}),
            "messages be brief|mail [MASKED EMAIL]||sent|thanks",
        ),
        (Nemo, PreInference, "/v1/checks", json!({"status": "passed", "content": "thanks"}), "allow"),
        (Nemo, PreInference, "/v1/checks", json!({"status": "blocked", "content": "no", "rail": "r"}), "deny no"),
        (
            Nemo,
            PostInference,
            "/v1/checks",
            json!({"status": "modified", "content": "a\n\nb\n\n{}"}),
            "text b, thinking a, call {}",
        ),
        (LlmGuard, PreInference, "/analyze/prompt", json!({"is_valid": true, "scanners": {"Toxicity": 0.0}}), "allow"),
        (
            LlmGuard,
            PostInference,
            "/analyze/output",
            json!({"is_valid": false, "scanners": {"Bias": 1.0}, "sanitized_output": "x"}),
            "deny refused by Bias",
        ),
        (OpenAiModeration, PreInference, "/v1/moderations", moderated(false), "allow"),
        (OpenAiModeration, PreInference, "/v1/moderations", moderated(true), "deny flagged as violence"),
        (AnthropicInference, PreInference, "/", json!({"action": "allow"}), "allow"),
        (AnthropicInference, PreInference, "/", json!({"action": "deny", "deny_reason": "no"}), "deny no"),
        (Mapped, PreInference, "/", json!({"flagged": false}), "allow"),
        (Mapped, PreInference, "/", json!({"flagged": true}), "deny the guard refused it"),
    ]
}

#[tokio::test]
async fn what_a_server_is_documented_to_answer_is_understood() {
    for (contract, event, path, reply, want) in examples() {
        let server = RawServer::new(&[Answer::Keep(response("200 OK", &reply.to_string()))]).await;
        let got = run(hook(&server.url(""), contract), Source::User, event).await;
        assert_eq!(told(got), want, "{contract:?} {event:?} {reply}");
        let [request] = server.requests().try_into().unwrap();
        assert!(request.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{contract:?}: {request}");
    }
}

#[tokio::test]
async fn a_path_that_is_given_stands() {
    let server = RawServer::new(&[Answer::Keep(response("200 OK", r#"{"flagged":false}"#))]).await;
    run(hook(&server.url("/eu/v2/guard?x=1"), Contract::Lakera), Source::User, PreInference).await.unwrap();
    assert!(server.requests()[0].starts_with("POST /eu/v2/guard?x=1 HTTP/1.1\r\n"));
}

#[tokio::test]
async fn what_is_no_answer_is_a_failure_under_every_contract() {
    for (answer, want) in [
        (response("200 OK", "<html>sign in</html>"), FailureKind::MalformedJson),
        (response("200 OK", r#"{"action":"allow","action":"deny"}"#), FailureKind::DuplicateKey),
        (response("429 Too Many Requests", r#"{"error":"slow down"}"#), FailureKind::BadStatus),
        (response("500 Oops", r#"{"flagged":false,"verdict":true,"action":"allow"}"#), FailureKind::BadStatus),
        (
            b"HTTP/1.1 307 Moved\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n".to_vec(),
            FailureKind::Redirected,
        ),
    ] {
        let server = RawServer::new(&[Answer::Keep(answer.clone())]).await;
        for (name, contract) in Contract::ALL.into_iter().filter(|(_, contract)| *contract != Contract::Native) {
            let got = run(hook(&server.url("/x"), contract), Source::User, PreInference).await;
            assert_eq!(got.map(|_| ()), Err(want), "{name}: {}", String::from_utf8_lossy(&answer));
        }
    }
}

#[tokio::test]
async fn a_webhook_of_the_workspace_reaches_no_private_address_under_any_contract() {
    let server = RawServer::new(&[Answer::Keep(response("200 OK", "{}"))]).await;
    for (name, contract) in Contract::ALL {
        let got = run(hook(&server.url("/"), contract), Source::Workspace, PreInference).await;
        assert_eq!(got.map(|_| ()), Err(FailureKind::ForbiddenAddress), "{name}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_request_that_may_have_been_seen_is_not_sent_again() {
    for (name, contract) in Contract::ALL {
        let server = RawServer::new(&[Answer::Close(Vec::new())]).await;
        let got = run(hook(&server.url("/"), contract), Source::User, PreInference).await;
        assert_eq!((got.map(|_| ()), server.requests().len()), (Err(FailureKind::Unreachable), 1), "{name}");
    }
}

#[tokio::test]
async fn more_than_a_contract_reads_is_a_failure() {
    let reply = json!({"action": "allow", "more": "x".repeat(65 << 10)}).to_string();
    let server = RawServer::new(&[Answer::Keep(response("200 OK", &reply))]).await;
    let got = run(hook(&server.url("/"), Contract::AnthropicInference), Source::User, PreInference).await;
    assert_eq!(got.map(|_| ()), Err(FailureKind::OutputTooLarge));
}

fn header<'r>(request: &'r str, name: &str) -> &'r str {
    let line = request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name}: {request}"))
}

#[tokio::test]
async fn with_a_secret_each_request_is_signed() {
    for (name, contract) in Contract::ALL {
        let server = RawServer::new(&[Answer::Keep(response("200 OK", "{}"))]).await;
        let secrets = vec![SECRET.to_owned()];
        let _ = run(
            WebhookDefinition { secrets: secrets.clone(), ..hook(&server.url("/"), contract) },
            Source::User,
            PreInference,
        )
        .await;
        let [request] = server.requests().try_into().unwrap();
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        let (id, seconds) = (header(&request, "webhook-id"), header(&request, "webhook-timestamp"));
        let signed = Signer::of(&secrets).unwrap().unwrap().sign(id, seconds.parse().unwrap(), body.as_bytes());
        assert_eq!(header(&request, "webhook-signature"), signed["webhook-signature"], "{name}");
        assert!(!id.is_empty() && !id.contains('.'), "{name}: {id}");
    }
}

#[tokio::test]
async fn anthropic_signs_under_the_identity_that_its_body_has() {
    let server = RawServer::new(&[Answer::Keep(response("200 OK", r#"{"action":"allow"}"#))]).await;
    let secrets = vec![SECRET.to_owned()];
    let webhook = WebhookDefinition { secrets, ..hook(&server.url("/"), Contract::AnthropicInference) };
    run(webhook, Source::User, PreInference).await.unwrap();
    let [request] = server.requests().try_into().unwrap();
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!((header(&request, "webhook-id"), &body["request_id"]), ("req-1", &json!("req-1")));
    assert_eq!(header(&request, "user-agent"), "anthropic-dlp/1");
}
