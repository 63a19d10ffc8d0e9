use std::time::Duration;

use gatehook_events::{Event, Input, Message, Output, Permission, Profile};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::client::raw_server::{Answer, RawServer, response};
use crate::definition::Source;
use crate::definition::WebhookDefinition;
use crate::find::Others;
use crate::handler::Payload;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

/// A webhook and what it is called with.
struct Hook {
    definition: HookDefinition,
    factory: WebhookFactory,
    timeout: Duration,
    event: Event,
    input: Input,
    cancel: CancellationToken,
}

impl Hook {
    fn new(contract: Contract, url: &str) -> Self {
        let webhook = WebhookDefinition::new(url, contract);
        Self {
            definition: HookDefinition::new(Profile::Native, HandlerDefinition::Webhook(webhook)),
            factory: WebhookFactory::default(),
            timeout: LONG,
            event: Event::PreInference,
            input: Input { request_id: Some("id-1".into()), ..Input::default() },
            cancel: CancellationToken::new(),
        }
    }

    fn native(url: &str) -> Self {
        Self::new(Contract::Native, url)
    }

    fn ollama(url: &str) -> Self {
        Self::new(Contract::Ollama, url)
    }

    fn handler(&self) -> Arc<dyn Handler> {
        let env = HandlerEnv { working_dir: "/".into(), env: std::collections::BTreeMap::new() };
        self.factory.create(&self.definition, &env).unwrap()
    }

    async fn run(&self, handler: &dyn Handler) -> Result<Reply, HandlerError> {
        let call = HookCall {
            event: self.event,
            input: &self.input,
            payload: &Payload::default(),
            cancel: &self.cancel,
            deadline: tokio::time::Instant::now() + self.timeout,
            others: &Others::default(),
        };
        handler.run(call).await
    }

    async fn reply(&self) -> Result<Reply, HandlerError> {
        self.run(&*self.handler()).await
    }

    async fn failure(&self) -> FailureKind {
        self.reply().await.unwrap_err().kind
    }
}

fn ok(body: &str) -> Answer {
    Answer::Keep(response("200 OK", body))
}

/// What both contracts make of one answer.
async fn failures_on(answer: Answer) -> [FailureKind; 2] {
    let server = RawServer::new(&[answer]).await;
    [Hook::native(&server.url("/")).failure().await, Hook::ollama(&server.url("/")).failure().await]
}

#[tokio::test]
async fn the_native_contract_sends_the_payload_and_reads_what_a_command_would_print() {
    let server = RawServer::new(&[ok(r#"{"decision":"block"}"#)]).await;
    let hook = Hook::native(&server.url("/hook"));
    let stdout = Bytes::from_static(br#"{"decision":"block"}"#);
    assert_eq!(hook.reply().await, Ok(Reply::Process { stdout, stderr: String::new(), exit_code: 0 }));
    let [request] = server.requests().try_into().unwrap();
    assert!(request.ends_with("\r\n\r\n{\"request_id\":\"id-1\"}"), "{request}");
    assert!(request.contains("content-type: application/json\r\n"), "{request}");
}

#[tokio::test]
async fn an_empty_reply_is_no_opinion() {
    for answer in [ok(""), ok("\n"), Answer::Keep(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())] {
        let server = RawServer::new(&[answer]).await;
        let reply = Hook::native(&server.url("/")).reply().await.unwrap();
        assert!(
            matches!(&reply, Reply::Process { stdout, exit_code: 0, .. } if stdout.trim_ascii().is_empty()),
            "{reply:?}"
        );
    }
}

#[tokio::test]
async fn the_ollama_contract_sends_its_headers_and_the_configured_ones() {
    let server = RawServer::new(&[ok(r#"{"permission":"deny","user_message":"no"}"#)]).await;
    let mut hook = Hook::ollama(&format!("http://user:secret@{}/pre", server.address));
    hook.input.messages = Some([Message::new("user", "hi")].into());
    if let HandlerDefinition::Webhook(webhook) = &mut hook.definition.handler {
        webhook.headers = vec![("X-Team".to_owned(), "blue".to_owned())];
    }
    let denied =
        Output { permission: Some(Permission::Deny), user_message: Some("no".to_owned()), ..Output::default() };
    assert_eq!(hook.reply().await, Ok(Reply::Direct(Some(denied))));
    let [request] = server.requests().try_into().unwrap();
    assert!(request.starts_with("POST /pre HTTP/1.1\r\n"), "{request}");
    for header in [
        "content-type: application/json",
        "accept: application/json",
        "user-agent: ollama-hooks/1",
        "x-ollama-hook-event: pre_inference",
        "x-ollama-request-id: id-1",
        "x-team: blue",
        "authorization: Basic dXNlcjpzZWNyZXQ=",
    ] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{header}: {request}");
    }
    assert!(request.contains(r#""messages":[{"role":"user","content":"hi"}]"#), "{request}");
}

#[tokio::test]
async fn one_connection_serves_many_events() {
    let server = RawServer::new(&[ok(r#"{"permission":"allow"}"#)]).await;
    let hook = Hook::ollama(&server.url("/"));
    let handler = hook.handler();
    for _ in 0..20 {
        hook.run(&*handler).await.unwrap();
    }
    assert_eq!((server.requests().len(), server.connections()), (20, 1));
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_no_failure() {
    let server = RawServer::new(&[Answer::Close(response("200 OK", r#"{"permission":"allow"}"#))]).await;
    let hook = Hook::ollama(&server.url("/"));
    let handler = hook.handler();
    for _ in 0..3 {
        hook.run(&*handler).await.unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn what_is_no_reply_is_a_failure_of_its_kind() {
    for (answer, native, ollama) in [
        (ok("<html>sign in</html>"), FailureKind::MalformedJson, FailureKind::MalformedJson),
        (
            ok(&format!("{{\"x\":\"{}\"}}", "x".repeat(10 << 20))),
            FailureKind::OutputTooLarge,
            FailureKind::OutputTooLarge,
        ),
        (
            Answer::Keep(response("500 Oops", r#"{"permission":"allow"}"#)),
            FailureKind::BadStatus,
            FailureKind::BadStatus,
        ),
        (Answer::Keep(response("404 Not Found", "{}")), FailureKind::BadStatus, FailureKind::BadStatus),
        (
            Answer::Close(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_vec()),
            FailureKind::Unreachable,
            FailureKind::Unreachable,
        ),
        (Answer::Close(Vec::new()), FailureKind::Unreachable, FailureKind::Unreachable),
        (Answer::Close(b"SSH-2.0-nonsense\r\n".to_vec()), FailureKind::Unreachable, FailureKind::Unreachable),
    ] {
        let bytes = match &answer {
            Answer::Keep(bytes) | Answer::Close(bytes) => String::from_utf8_lossy(bytes).chars().take(80).collect(),
            _ => String::new(),
        };
        assert_eq!(failures_on(answer).await, [native, ollama], "{bytes}");
    }
}

#[tokio::test]
async fn unreadable_json_is_told_apart() {
    for (body, kind) in [
        (r#"{"permission":"#, FailureKind::MalformedJson),
        (r#"{"permission":"allow","permission":"deny"}"#, FailureKind::DuplicateKey),
        (r#"{"permission":"allow"} {}"#, FailureKind::TrailingData),
        ("", FailureKind::MalformedJson),
    ] {
        let server = RawServer::new(&[ok(body)]).await;
        assert_eq!(Hook::ollama(&server.url("/")).failure().await, kind, "{body}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = RawServer::new(&[ok(r#"{"permission":"allow"}"#)]).await;
    for (status, place) in [
        ("302 Found", "http://169.254.169.254/latest".to_owned()),
        ("307 Temporary Redirect", elsewhere.url("/")),
        ("304 Not Modified", elsewhere.url("/")),
    ] {
        let answer = format!("HTTP/1.1 {status}\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n").into_bytes();
        assert_eq!(failures_on(Answer::Keep(answer)).await, [FailureKind::Redirected; 2], "{status}");
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn metadata_addresses_are_forbidden_in_every_notation() {
    for url in [
        "http://169.254.169.254/latest/meta-data",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://0xa9fea9fe/",
        "http://2852039166/",
        "http://0251.0376.0251.0376/",
        "http://[fd00:ec2::254]/",
    ] {
        assert_eq!(Hook::ollama(url).failure().await, FailureKind::ForbiddenAddress, "{url}");
    }
}

#[tokio::test]
async fn a_webhook_of_the_workspace_reaches_no_private_address() {
    let server = RawServer::new(&[ok(r#"{"permission":"allow"}"#)]).await;
    let mut hook = Hook::ollama(&server.url("/"));
    hook.definition.origin.source = Source::Workspace;
    assert_eq!(hook.failure().await, FailureKind::ForbiddenAddress);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn the_deadline_bounds_everything() {
    let slow = [Answer::Hang, Answer::Drip(response("200 OK", r#"{"permission":"allow"}"#))];
    for answer in slow {
        let server = RawServer::new(&[answer]).await;
        let hook = Hook { timeout: SHORT, ..Hook::ollama(&server.url("/")) };
        assert_eq!(hook.failure().await, FailureKind::Timeout);
    }
}

#[tokio::test]
async fn a_caller_who_gives_up_is_told_so() {
    let server = RawServer::new(&[Answer::Hang]).await;
    let hook = Hook::ollama(&server.url("/"));
    let (reply, ()) = tokio::join!(hook.reply(), async {
        while server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        hook.cancel.cancel();
    });
    assert_eq!(reply.unwrap_err().kind, FailureKind::Cancelled);
}

#[tokio::test]
async fn five_missed_deadlines_open_the_circuit() {
    let server = RawServer::new(&[Answer::Hang]).await;
    let hook = Hook { timeout: SHORT, ..Hook::ollama(&server.url("/")) };
    let handler = hook.handler();
    for _ in 0..5 {
        assert_eq!(hook.run(&*handler).await.unwrap_err().kind, FailureKind::Timeout);
    }
    let error = hook.run(&*handler).await.unwrap_err();
    assert_eq!(error.kind, FailureKind::Unreachable);
    assert!(error.message.contains("circuit open"), "{}", error.message);
}

#[tokio::test]
async fn a_webhook_that_errs_is_asked_again_at_once() {
    let server = RawServer::new(&[Answer::Keep(response("503 Busy", ""))]).await;
    let hook = Hook::ollama(&server.url("/"));
    let handler = hook.handler();
    for _ in 0..9 {
        assert_eq!(hook.run(&*handler).await.unwrap_err().kind, FailureKind::BadStatus);
    }
    assert_eq!(server.requests().len(), 9);
}

#[tokio::test]
async fn a_webhook_that_refuses_is_unreachable_and_named_by_its_host_alone() {
    let address = RawServer::new(&[Answer::Hang]).await.address;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let error = Hook::ollama(&format!("http://user:secret@{address}/path?token=secret")).reply().await.unwrap_err();
    assert_eq!(error.kind, FailureKind::Unreachable);
    assert!(error.message.contains("127.0.0.1"), "{}", error.message);
    assert!(!format!("{error:?}").contains("secret") && !error.message.contains("path"), "{}", error.message);
}

#[tokio::test]
async fn another_try_to_connect_is_within_the_deadline() {
    let address = RawServer::new(&[Answer::Hang]).await.address;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    // The second try would come after 50 ms.
    let hook = Hook { timeout: Duration::from_millis(20), ..Hook::ollama(&format!("http://{address}/")) };
    assert_eq!(hook.failure().await, FailureKind::Timeout);
}

#[tokio::test]
async fn the_ollama_contract_is_for_inference_alone() {
    let server = RawServer::new(&[ok("{}")]).await;
    let hook = Hook { event: Event::PreToolUse, ..Hook::ollama(&server.url("/")) };
    assert_eq!(hook.failure().await, FailureKind::HandlerError);
    assert_eq!(server.connections(), 0);
}
