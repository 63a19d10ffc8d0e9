//! `http_post`: tells an address that something happened.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gatehook_events::FailureKind;
use http::Request;
use tokio::time::Instant;

use super::Arguments;
use crate::client::{Client, Reach};
use crate::definition::{Contract, Source, WebhookDefinition};
use crate::handler::{DefinitionError, Handler, HandlerError, HookCall, Reply, Run};
use crate::handlers::stopped;
use crate::handlers::webhook::endpoint::Endpoint;

/// How long one request may take, if the hook's own deadline is no sooner.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of an answer that are read, so that its connection can be used again.
const DRAINED: usize = 64 << 10;

/// The body that stands for the event's payload.
const EVENT: &str = "@event";

/// `None` posts nothing; an address that is none fails the hook when it runs, as docker-agent does.
struct HttpPost(Option<Result<Post, String>>);

struct Post {
    endpoint: Endpoint,
    /// `None` is the event's payload.
    body: Option<Bytes>,
    client: Client,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let (url, body) = match arguments.args {
        [] => ("", ""),
        [url] => (url.as_str(), ""),
        [url, body, ..] => (url.as_str(), body.as_str()),
    };
    let help = "as in `args: [\"https://example.com/hook\", \"@event\"]`";
    if arguments.is_native() && !(1..=2).contains(&arguments.args.len()) {
        return Err(Arguments::wrong("`http_post` takes an address and a body", help));
    }
    if url.trim().is_empty() && !arguments.is_native() {
        return Ok(Arc::new(HttpPost(None)));
    }
    let endpoint = match Endpoint::of(&WebhookDefinition::new(url, Contract::Native)) {
        Ok(endpoint) => endpoint,
        Err(error) if arguments.is_native() => return Err(Arguments::wrong(error.message, help)),
        Err(error) => return Ok(Arc::new(HttpPost(Some(Err(error.message))))),
    };
    let body = (body != EVENT).then(|| Bytes::copy_from_slice(body.as_bytes()));
    let client = Client::new(arguments.reach());
    Ok(Arc::new(HttpPost(Some(Ok(Post { endpoint, body, client })))))
}

impl Handler for HttpPost {
    /// Cancel safe: dropped at any point, it closes its connection.
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(async move {
            match &self.0 {
                None => {}
                Some(Err(message)) => return Err(HandlerError::new(FailureKind::HandlerError, message.clone())),
                Some(Ok(post)) => post.send(call).await?,
            }
            Ok(Reply::Direct(None))
        })
    }
}

impl Post {
    /// Whether it arrives decides nothing: it is logged, by the host alone, since the rest of an address may be secret.
    async fn send(&self, call: HookCall<'_>) -> Result<(), HandlerError> {
        let body = match &self.body {
            Some(body) => body.clone(),
            None => call.payload.line(call.input)?,
        };
        let mut request = Request::new(body.into());
        *request.method_mut() = self.endpoint.method.clone();
        *request.uri_mut() = self.endpoint.url(call.event).clone();
        *request.headers_mut() = self.endpoint.headers.clone();
        let host = &self.endpoint.host;
        let deadline = call.deadline.min(Instant::now() + PATIENCE);
        tokio::select! {
            biased;
            _ = stopped(call.cancel, deadline) => tracing::warn!(host, "http_post: it took too long"),
            sent = self.client.send(request) => match sent {
                Ok(response) if response.status().is_success() => {
                    let _ = response.into_body().collect_within(DRAINED).await;
                }
                Ok(response) => tracing::warn!(host, status = response.status().as_u16(), "http_post: it was refused"),
                Err(error) => tracing::warn!(host, %error, "http_post: it did not arrive"),
            },
        }
        Ok(())
    }
}

impl Arguments<'_> {
    /// Hooks of the workspace reach public addresses alone.
    pub(super) fn reach(&self) -> Reach {
        if self.definition.origin.source == Source::Workspace { Reach::Public } else { Reach::Any }
    }
}

#[cfg(test)]
mod tests {
    use gatehook_events::Event;
    use serde_json::{Value, json};

    use super::super::tests::{Listener, foreign, verdict, verdict_of};
    use crate::definition::{HookDefinition, Origin, Source};
    use crate::{Executor, HandlerEnv, HookGroup, HooksConfig};

    #[tokio::test]
    async fn a_body_is_posted_as_it_stands_and_an_event_as_its_payload() {
        let listener = Listener::start("200 OK");
        let url = listener.url("/hook");
        verdict(Event::SessionStart, "http_post", &[&url, "{{ as it is }}"], json!({"session_id": "s"})).await;
        let request = listener.request();
        assert!(
            request.starts_with("POST /hook HTTP/1.1\r\n") && request.ends_with("\r\n\r\n{{ as it is }}"),
            "{request}"
        );
        assert!(request.to_lowercase().contains("content-type: application/json\r\n"), "{request}");

        verdict(Event::SessionStart, "http_post", &[&url, "@event"], json!({"session_id": "s"})).await;
        let request = listener.request();
        let body: Value = serde_json::from_str(request.rsplit("\r\n\r\n").next().unwrap()).unwrap();
        assert_eq!((&body["session_id"], &body["hook_event_name"]), (&json!("s"), &json!("session_start")));
    }

    #[tokio::test]
    async fn a_hook_of_the_workspace_reaches_no_address_of_this_machine() {
        let listener = Listener::start("200 OK");
        for (source, path) in [(Source::Workspace, "/workspace"), (Source::User, "/user")] {
            let origin = Origin { source, ..Origin::default() };
            let hook = HookDefinition { origin, ..HookDefinition::builtin("http_post", &[&listener.url(path)]) };
            let group = HookGroup { event: Event::SessionStart, matcher: String::new(), hooks: vec![hook] };
            let config = HooksConfig { groups: vec![group] };
            let executor = Executor::new(config, HandlerEnv::current().unwrap()).unwrap();
            assert!(verdict_of(&executor, Event::SessionStart, json!({})).await.allowed);
        }
        assert!(listener.request().starts_with("POST /user "), "the first request is the user's");
    }

    #[tokio::test]
    async fn a_refusal_and_a_silent_host_decide_nothing() {
        let listener = Listener::start("500 Internal Server Error");
        let refused = verdict(Event::UserPromptSubmit, "http_post", &[&listener.url("/")], json!({})).await;
        assert!(refused.allowed && refused.system_message.is_empty(), "{refused:?}");
        drop(listener);
        let gone = verdict(Event::UserPromptSubmit, "http_post", &["http://127.0.0.1:9/"], json!({})).await;
        assert!(gone.allowed && gone.system_message.is_empty(), "{gone:?}");
    }

    #[tokio::test]
    async fn what_is_no_web_address_fails_a_foreign_hook_and_is_not_quoted() {
        for (args, fails) in
            [(vec![], false), (vec![""], false), (vec!["file:///secret"], true), (vec!["http://"], true)]
        {
            let verdict = foreign(Event::SessionStart, "http_post", &args, json!({})).await;
            assert_eq!(!verdict.system_message.is_empty(), fails, "{args:?}: {}", verdict.system_message);
            assert!(!verdict.system_message.contains("secret"), "{}", verdict.system_message);
        }
    }
}
