//! Webhook hooks: an HTTP request for each event, under one of several [contracts](CONTRACTS).
//!
//! A reply with another status than its contract's, or that cannot be read, is a failure: unreachable, late, a redirect
//! (never followed), too large. A webhook that misses five deadlines in a row is left alone for a second. With secrets,
//! each request is signed as Standard Webhooks has it.

mod breaker;
#[doc(hidden)]
pub mod contracts;
pub(crate) mod endpoint;
pub(crate) mod sign;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gatehook_events::FailureKind;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use jiff::Timestamp;
use tokio::time::sleep;
use uuid::Uuid;

use self::breaker::Breaker;
use self::contracts::Agreement;
pub use self::contracts::{CONTRACTS, Terms};
use self::endpoint::Endpoint;
use self::sign::Signer;
use super::stopped;
use crate::client::{Body, BodyError, Client, ClientError, Reach};
use crate::definition::{Contract, HandlerDefinition, HookDefinition};
use crate::handler::{DefinitionError, Handler, HandlerEnv, HandlerError, HandlerFactory, HookCall, Reply, Run};

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
            agreement: Agreement::of(webhook)?,
            signer: Signer::of(&webhook.secrets)?,
            client: client.clone(),
            breaker: Breaker::default(),
        }))
    }
}

/// One webhook.
struct WebhookHandler {
    endpoint: Endpoint,
    agreement: Agreement,
    signer: Option<Signer>,
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
        let id = self.id(call);
        let Some(body) = self.agreement.question(call.event, call.input, call.payload, &id)? else {
            return Ok(Reply::Direct(None));
        };
        let signed = self.signer.as_ref().map(|signer| signer.sign(&id, Timestamp::now().as_second(), &body));
        let response = self.send(call, body, signed.unwrap_or_default()).await?;
        let (status, limit) = (response.status().as_u16(), self.agreement.terms.reply_limit);
        self.agreement.check(status).map_err(|error| self.at_host(error))?;
        let reply = response.into_body().collect_within(limit).await.map_err(|error| match error {
            BodyError::TooLarge { .. } => self.failure(FailureKind::OutputTooLarge, "its reply is too large"),
            BodyError::Broken(_) => self.failure(FailureKind::Unreachable, "it broke off in its reply"),
        })?;
        self.agreement.read(call.event, call.input, status, &reply).map_err(|error| self.at_host(error))
    }

    /// The request's identity, without dots: the exchange's, where the contract has it in the body too. Requests that
    /// nobody tells apart have none.
    fn id(&self, call: HookCall<'_>) -> String {
        let plain = |id: &&str| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        match (self.agreement.terms.contract, &self.signer) {
            (Contract::AnthropicInference, _) => {
                let known = call.input.request_id.as_deref().filter(plain);
                known.map_or_else(|| Uuid::new_v4().to_string(), str::to_owned)
            }
            (_, Some(_)) => format!("msg_{}", Uuid::new_v4().simple()),
            (_, None) => String::new(),
        }
    }

    /// Sends the body, and once more where no connection came about: then nobody can have seen it.
    async fn send(&self, call: HookCall<'_>, body: Bytes, signed: HeaderMap) -> Result<Response<Body>, HandlerError> {
        let failed = |error: ClientError| {
            let kind = match error {
                ClientError::Forbidden { .. } => FailureKind::ForbiddenAddress,
                _ => FailureKind::Unreachable,
            };
            HandlerError::new(kind, error.to_string())
        };
        match self.client.send(self.request(call, body.clone(), &signed)).await {
            Err(error) if error.is_connect() => {
                sleep(BEFORE_RETRY).await;
                self.client.send(self.request(call, body, &signed)).await.map_err(failed)
            }
            result => result.map_err(failed),
        }
    }

    fn request<B: From<Bytes>>(&self, call: HookCall<'_>, body: Bytes, signed: &HeaderMap) -> Request<B> {
        let mut request = Request::new(body.into());
        *request.method_mut() = self.endpoint.method.clone();
        *request.uri_mut() = self.endpoint.url(call.event).clone();
        *request.headers_mut() = self.endpoint.headers.clone();
        signed.iter().for_each(|(name, value)| drop(request.headers_mut().insert(name.clone(), value.clone())));
        if self.agreement.terms.contract == Contract::Ollama {
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

    fn at_host(&self, error: HandlerError) -> HandlerError {
        self.failure(error.kind, &error.message)
    }
}
