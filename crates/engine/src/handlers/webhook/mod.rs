//! Webhook hooks: an HTTP request for each event, under one of two contracts.
//!
//! - **Native**: the payload is the body; the reply is what a command hook would print. An empty one is no opinion.
//! - **Ollama**: the published contract of Ollama's inference webhooks (<https://github.com/ollama/ollama/pull/15630>).
//!
//! Anything but a 2xx with a body that can be read is a failure: unreachable, late, a redirect (never followed), another
//! status, more than 4 MiB. A webhook that fails five times in a row is left alone for five seconds.

mod breaker;
mod endpoint;
mod ollama;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gatehook_events::FailureKind;
use http::{HeaderName, HeaderValue, Request, Response};
use tokio::time::sleep;

use self::breaker::Breaker;
use self::endpoint::Endpoint;
use super::stopped;
use crate::client::{Body, BodyError, Client, ClientError, Reach};
use crate::definition::{Contract, HandlerDefinition, HookDefinition};
use crate::handler::{DefinitionError, Handler, HandlerEnv, HandlerError, HandlerFactory, HookCall, Reply, Run};

/// Bytes of a reply.
const REPLY_LIMIT: usize = 4 << 20;

/// Before the one other try, where no connection came about.
const BEFORE_RETRY: Duration = Duration::from_millis(50);

const EVENT_HEADER: HeaderName = HeaderName::from_static("x-ollama-hook-event");
const REQUEST_HEADER: HeaderName = HeaderName::from_static("x-ollama-request-id");

/// Makes the handlers of `type: webhook`. Its handlers share connections.
///
/// Webhooks of the workspace reach public addresses alone, all others loopback and private ones too.
#[derive(Clone)]
pub struct WebhookFactory {
    any: Client,
    public: Client,
}

impl Default for WebhookFactory {
    fn default() -> Self {
        Self { any: Client::new(Reach::Any), public: Client::new(Reach::Public) }
    }
}

impl HandlerFactory for WebhookFactory {
    fn create(&self, definition: &HookDefinition, _env: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
        let HandlerDefinition::Webhook(webhook) = &definition.handler else {
            return Err(DefinitionError { field: "type", message: "it is no webhook".to_owned(), help: None });
        };
        let client = if definition.origin.source.needs_approval() { &self.public } else { &self.any };
        Ok(Arc::new(WebhookHandler {
            endpoint: Endpoint::of(webhook)?,
            contract: webhook.contract,
            client: client.clone(),
            breaker: Breaker::default(),
        }))
    }
}

/// One webhook.
struct WebhookHandler {
    endpoint: Endpoint,
    contract: Contract,
    client: Client,
    breaker: Breaker,
}

impl Handler for WebhookHandler {
    /// Cancel safe: dropped at any point, it closes its connection.
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(self.run_once(call))
    }
}

impl WebhookHandler {
    async fn run_once(&self, call: HookCall<'_>) -> Result<Reply, HandlerError> {
        let Some(permit) = self.breaker.admit(Instant::now()) else {
            return Err(self.failure(FailureKind::Unreachable, "circuit open"));
        };
        let result = tokio::select! {
            biased;
            kind = stopped(call.cancel, call.deadline) => Err(self.failure(kind, match kind {
                FailureKind::Cancelled => "the caller gave up",
                _ => "it did not answer in time",
            })),
            result = self.ask(call) => result,
        };
        match &result {
            Err(error) if error.kind == FailureKind::Timeout => permit.failed(Instant::now()),
            Err(error) if error.kind == FailureKind::Cancelled => drop(permit),
            _ => permit.succeeded(),
        }
        result
    }

    async fn ask(&self, call: HookCall<'_>) -> Result<Reply, HandlerError> {
        let body = match self.contract {
            Contract::Native => call.payload.line(call.input)?,
            Contract::Ollama => ollama::question(call.event, call.input)?,
        };
        let response = self.send(call, body).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(self.failure(FailureKind::Redirected, &format!("it redirects ({})", status.as_u16())));
        }
        if !status.is_success() {
            return Err(self.failure(FailureKind::BadStatus, &format!("it answered {}", status.as_u16())));
        }
        let reply = response.into_body().collect_within(REPLY_LIMIT).await.map_err(|error| match error {
            BodyError::TooLarge { .. } => self.failure(FailureKind::OutputTooLarge, "its reply is over 4 MiB"),
            BodyError::Broken(_) => self.failure(FailureKind::Unreachable, "it broke off in its reply"),
        })?;
        match self.contract {
            Contract::Native => native(reply).map_err(|message| self.failure(FailureKind::MalformedJson, message)),
            Contract::Ollama => ollama::answer(call.event, &reply)
                .map(|output| Reply::Direct(Some(output)))
                .map_err(|error| self.failure(error.kind, &error.message)),
        }
    }

    /// Sends the body, and once more where no connection came about: then nobody can have seen it.
    async fn send(&self, call: HookCall<'_>, body: Bytes) -> Result<Response<Body>, HandlerError> {
        let failed = |error: ClientError| {
            let kind = match error {
                ClientError::Forbidden { .. } => FailureKind::ForbiddenAddress,
                _ => FailureKind::Unreachable,
            };
            HandlerError::new(kind, error.to_string())
        };
        match self.client.send(self.request(call, body.clone())).await {
            Err(error) if error.is_connect() => {
                sleep(BEFORE_RETRY).await;
                self.client.send(self.request(call, body)).await.map_err(failed)
            }
            result => result.map_err(failed),
        }
    }

    fn request<B: From<Bytes>>(&self, call: HookCall<'_>, body: Bytes) -> Request<B> {
        let mut request = Request::new(body.into());
        *request.method_mut() = self.endpoint.method.clone();
        *request.uri_mut() = self.endpoint.url.clone();
        *request.headers_mut() = self.endpoint.headers.clone();
        if self.contract == Contract::Ollama {
            request.headers_mut().insert(EVENT_HEADER, HeaderValue::from_static(call.event.name()));
            let id = call.input.request_id.as_deref().unwrap_or_default();
            if let Ok(id) = HeaderValue::from_str(id) {
                request.headers_mut().insert(REQUEST_HEADER, id);
            }
        }
        request
    }

    fn failure(&self, kind: FailureKind, cause: &str) -> HandlerError {
        HandlerError::new(kind, format!("{}: {cause}", self.endpoint.host))
    }
}

/// A reply as a command hook would print it. Plain text, which a command may print, is an error page here.
fn native(reply: Bytes) -> Result<Reply, &'static str> {
    let trimmed = reply.trim_ascii();
    if !trimmed.is_empty() && !trimmed.starts_with(b"{") {
        return Err("its reply is no JSON object");
    }
    Ok(Reply::Process { stdout: reply, stderr: String::new(), exit_code: 0 })
}
