//! A call that hooks look at: its request before the upstream is asked, its answer before the client gets it.

use std::pin::pin;
use std::sync::Arc;

use gatehook_engine::events::{Event, OutcomeKind, Verb, Verdict};
use gatehook_guard::{Admitted, Call, Caller, Guard, Refusal, Witness};
use gatehook_inference::{ErrorKind, Path, weight};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, Response, response};
use hyper::body::{Bytes, Incoming};
use tokio_util::sync::CancellationToken;

use crate::aside::aside;
use crate::body::{Body, RequestBody};
use crate::encoding::Encoding;
use crate::exchange::Exchange;
use crate::gather::{self, Whole};
use crate::headers::{self, single};
use crate::metrics::Metrics;
use crate::state::Shared;

/// Headers in which callers name their session, in order of weight: ours, Claude Code's, Codex's.
const SESSIONS: [HeaderName; 4] = [
    headers::SESSION,
    HeaderName::from_static("x-claude-code-session-id"),
    HeaderName::from_static("session_id"),
    HeaderName::from_static("session-id"),
];

/// An exchange with its guard.
pub(crate) struct Guarded<'a> {
    exchange: &'a Exchange,
    guarding: Arc<Guarding>,
}

/// What the guard is told of an exchange; it may go to another thread.
struct Guarding {
    guard: Arc<Guard>,
    shared: Arc<Shared>,
    path: Path,
    id: Arc<str>,
    caller: Caller,
    cancel: CancellationToken,
}

impl Witness for Metrics {
    fn judged(&self, event: Event, verdict: &Verdict) {
        for outcome in &verdict.outcomes {
            self.judged(event.name(), outcome);
            if matches!(outcome.kind, OutcomeKind::Failed(_)) && outcome.verb == Verb::Allow {
                self.hooks_passed_over.inc();
            }
        }
    }
}

impl Guarding {
    fn call(&self) -> Call<'_> {
        Call {
            path: self.path,
            request_id: &self.id,
            caller: &self.caller,
            cancel: &self.cancel,
            witness: &self.shared.metrics,
        }
    }

    async fn before(self: Arc<Self>, body: Bytes) -> Result<Admitted, Refusal> {
        let size = body.len();
        aside(size, async move { self.guard.before(&self.call(), body).await }).await?
    }

    async fn beside(self: Arc<Self>, admitted: Admitted) -> Result<Admitted, Refusal> {
        let size = admitted.body.len();
        let judged = async move { self.guard.beside(&self.call(), &admitted).await.map(|()| admitted) };
        aside(size, judged).await?
    }

    async fn after(self: Arc<Self>, admitted: Admitted, body: Bytes) -> Result<Bytes, Refusal> {
        let size = body.len();
        aside(size, async move { self.guard.after(&self.call(), &admitted, body).await }).await?
    }
}

impl<'a> Guarded<'a> {
    pub(crate) fn new(exchange: &'a Exchange, guard: &Arc<Guard>, path: Path, parts: &Parts) -> Self {
        let text = |name: &HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let caller = Caller {
            address: exchange.peer.ip().to_canonical().to_string(),
            key_name: exchange.key.clone(),
            user_agent: text(&USER_AGENT).map(str::to_owned),
            session: SESSIONS.iter().find_map(text).map(str::to_owned),
            approval: text(&headers::APPROVAL).map(Into::into),
        };
        let (guard, shared) = (guard.clone(), exchange.worker.shared.clone());
        let (id, cancel) = (exchange.id.text(), CancellationToken::new());
        Self { exchange, guarding: Arc::new(Guarding { guard, shared, path, id, caller, cancel }) }
    }

    /// The way of a guarded call.
    pub(crate) async fn answer(
        self,
        target: PathAndQuery,
        mut parts: Box<Parts>,
        body: Incoming,
    ) -> Result<Response<Body>, Refusal> {
        let _ends_hooks = self.guarding.cancel.clone().drop_guard();
        let limits = &self.exchange.state.limits;
        check_charset(&parts.headers)?;
        let encoding = Encoding::of(&parts.headers).map_err(|error| gather::unread_request(&error))?;
        let whole = gather::request(&self.exchange.worker.shared, limits, body).await?;
        let came = whole.bytes.clone();
        let plain = whole.unpacked(encoding, limits.request_body, limits.bodies_in_flight).await;
        let Whole { bytes: plain, mut held } = plain.map_err(|error| gather::unread_request(&error))?;
        held.grow(weight(&plain), limits.bodies_in_flight)?;
        let admitted = self.guarding.clone().before(plain).await.map_err(|no| not_json(no, &parts.headers))?;
        let body = if admitted.rewritten {
            parts.headers.remove(CONTENT_ENCODING);
            headers::replace_body(&mut parts.headers, admitted.body.len());
            admitted.body.clone()
        } else {
            came
        };
        let looks_after = admitted.looks_after;
        if looks_after {
            headers::ask_for_identity(&mut parts.headers);
        }
        let (model, body) = (admitted.model.clone(), RequestBody::whole(body));
        let answer = self.exchange.forward(model.as_deref(), target, parts, body);
        let (admitted, response) = if self.guarding.guard.judges_beside() {
            Box::pin(beside(self.guarding.clone().beside(admitted), answer)).await?
        } else {
            (admitted, answer.await?)
        };
        if looks_after { self.after(admitted, response).await } else { Ok(response) }
    }

    /// Shows a whole answer to the hooks after the call. Errors of the upstream hold nothing of a model.
    async fn after(&self, admitted: Admitted, response: Response<Body>) -> Result<Response<Body>, Refusal> {
        if !response.status().is_success() {
            return Ok(response);
        }
        if is_stream(response.headers()) {
            if !admitted.stream && self.guarding.guard.may_block() {
                return Err(Refusal::new(ErrorKind::BadUpstream).saying(
                    "The inference server streams what was not asked for as a stream: no policy hook can see it.",
                ));
            }
            self.exchange.worker.shared.metrics.streams_unseen.inc();
            return Ok(response);
        }
        let limits = &self.exchange.state.limits;
        let (parts, body) = response.into_parts();
        let encoding = Encoding::of(&parts.headers).map_err(|error| gather::unread_answer(&error))?;
        let whole = gather::answer(&self.exchange.worker.shared, limits, body).await?;
        let came = whole.bytes.clone();
        let plain = whole.unpacked(encoding, limits.response_body, limits.bodies_in_flight).await;
        let Whole { bytes: plain, mut held } = plain.map_err(|error| gather::unread_answer(&error))?;
        held.grow(weight(&plain), limits.bodies_in_flight)?;
        let judged = self.guarding.clone().after(admitted, plain.clone()).await?;
        Ok(replaced(parts, came, &plain, judged))
    }
}

/// Asks the upstream while hooks still judge. Nothing is known before they have: a refusal drops the answer, or the call
/// that waits for it, and so the upstream sees its connection closed.
async fn beside<V, A>(
    verdict: impl Future<Output = Result<V, Refusal>>,
    answer: impl Future<Output = Result<A, Refusal>>,
) -> Result<(V, A), Refusal> {
    let (mut verdict, mut answer) = (pin!(verdict), pin!(answer));
    tokio::select! {
        biased;
        // First, so that the request leaves before a hook of this thread takes its time.
        answer = &mut answer => Ok((verdict.await?, answer?)),
        verdict = &mut verdict => Ok((verdict?, answer.await?)),
    }
}

/// The response with the judged body; with the bytes that came, where nothing was rewritten.
fn replaced(mut parts: response::Parts, came: Bytes, plain: &Bytes, judged: Bytes) -> Response<Body> {
    if judged.as_ptr() == plain.as_ptr() && judged.len() == plain.len() {
        return Response::from_parts(parts, Body::Whole(came));
    }
    parts.headers.remove(CONTENT_ENCODING);
    headers::replace_body(&mut parts.headers, judged.len());
    Response::from_parts(parts, Body::Whole(judged))
}

/// JSON is UTF-8. A server that believes another charset would read another text than hooks do.
fn check_charset(headers: &HeaderMap) -> Result<(), Refusal> {
    let refused = |text: &str| Err(Refusal::new(ErrorKind::UnsupportedMedia).saying(text));
    let Ok(kind) = single(headers, CONTENT_TYPE) else { return refused("The body has two Content-Types.") };
    let Some(kind) = kind else { return Ok(()) };
    let Ok(kind) = kind.to_str() else { return refused("The body's Content-Type cannot be read.") };
    let charset = kind.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let mut charset = charset.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let is_utf8 = |value: &str| ["utf-8", "utf8", "us-ascii"].iter().any(|name| name.eq_ignore_ascii_case(value));
    if charset.all(|(_, value)| is_utf8(value.trim().trim_matches('"'))) {
        return Ok(());
    }
    refused("JSON is UTF-8; the body says that it is not.")
}

/// A body that is no JSON and does not claim to be is of the wrong type.
fn not_json(refusal: Refusal, headers: &HeaderMap) -> Refusal {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("application/json");
    let claims = kind.split(';').next().is_some_and(|kind| kind.trim().to_ascii_lowercase().ends_with("json"));
    if refusal.kind == ErrorKind::Malformed && !claims {
        return Refusal { kind: ErrorKind::UnsupportedMedia, ..refusal };
    }
    refusal
}

/// Whether an answer comes in pieces.
fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["text/event-stream", "application/x-ndjson"].iter().any(|stream| stream.eq_ignore_ascii_case(kind))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn typed(kind: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))])
    }

    #[test]
    fn a_charset_other_than_utf8_is_refused() {
        for kind in ["application/json", "application/json; charset=UTF-8", "text/plain;charset=\"utf-8\""] {
            assert!(check_charset(&typed(kind)).is_ok(), "{kind}");
        }
        for kind in ["application/json; charset=utf-16", "application/json;Charset = utf-7"] {
            assert!(check_charset(&typed(kind)).is_err(), "{kind}");
        }
    }

    #[test]
    fn only_the_two_stream_types_are_streams() {
        for kind in ["text/event-stream", "text/event-stream; charset=utf-8", "application/x-ndjson"] {
            assert!(is_stream(&typed(kind)), "{kind}");
        }
        assert!(!is_stream(&typed("application/json")));
        assert!(!is_stream(&HeaderMap::new()));
    }
}
