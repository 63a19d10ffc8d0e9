//! A call that hooks look at: its request before the upstream is asked, its answer before the client gets it.

use std::sync::Arc;

use gatehook_engine::events::{Event, OutcomeKind, Verb, Verdict};
use gatehook_guard::{Admitted, Caller, Gate, GateSettings, Guard, OwnedCall, Refusal, Witness, both};
use gatehook_inference::{ErrorKind, Framing, Path, Route, keep_alive, weight};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Response, response};
use hyper::body::{Bytes, Incoming};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::aside::{LARGE, aside, elsewhere};
use crate::body::{Body, RequestBody};
use crate::completed::complete;
use crate::encoding::Encoding;
use crate::exchange::Exchange;
use crate::framing::framing;
use crate::gather::{self, Whole};
use crate::headers::{self, single};
use crate::live::{Live, Stream};
use crate::source::Source;
use crate::state::{Held, Shared};

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
    guarding: Guarding,
}

/// A request that no hook refuses.
struct Asked {
    admitted: Admitted,
    /// Made while the upstream works, where a stream is asked for.
    gate: Option<Box<Gate>>,
}

/// A guard and the call that it stands around; it may go to another thread.
#[derive(Clone)]
struct Guarding {
    guard: Arc<Guard>,
    call: OwnedCall,
}

impl Witness for Shared {
    fn judged(&self, event: Event, verdict: &Verdict) {
        for outcome in &verdict.outcomes {
            self.metrics.judged(event.name(), outcome);
            if matches!(outcome.kind, OutcomeKind::Failed(_)) && outcome.verb == Verb::Allow {
                self.metrics.hooks_passed_over.inc();
            }
        }
    }
}

impl Guarding {
    async fn before(self, body: Bytes) -> Result<Admitted, Refusal> {
        let size = body.len();
        aside(size, Box::pin(async move { self.guard.before(&self.call.as_call(), body).await })).await?
    }

    async fn beside(self, admitted: Admitted) -> Result<Admitted, Refusal> {
        let size = admitted.body.len();
        let judged = async move { self.guard.beside(&self.call.as_call(), &admitted).await.map(|()| admitted) };
        aside(size, Box::pin(judged)).await?
    }

    async fn after(self, admitted: Admitted, body: Bytes) -> Result<Bytes, Refusal> {
        let size = body.len();
        aside(size, Box::pin(async move { self.guard.after(&self.call.as_call(), &admitted, body).await })).await?
    }
}

impl<'a> Guarded<'a> {
    pub(crate) fn new(exchange: &'a Exchange, guard: &Arc<Guard>, path: Path, parts: &Parts) -> Self {
        let text = |name: &HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let caller = Caller {
            address: Some(exchange.peer.ip().to_canonical()),
            key_name: exchange.key.clone(),
            user_agent: text(&USER_AGENT).map(str::to_owned),
            session: SESSIONS.iter().find_map(text).map(str::to_owned),
            approval: text(&headers::APPROVAL).map(Into::into),
        };
        let call = OwnedCall {
            path,
            request_id: exchange.id.text(),
            caller: caller.into(),
            cancel: CancellationToken::new(),
            witness: exchange.worker.shared.clone(),
        };
        Self { exchange, guarding: Guarding { guard: guard.clone(), call } }
    }

    /// The way of a guarded call, up to a whole answer or a stream that has not begun.
    pub(crate) async fn answer(
        self,
        target: PathAndQuery,
        parts: Box<Parts>,
        body: Incoming,
    ) -> Result<Response<Body>, Refusal> {
        let ends_hooks = self.guarding.call.cancel.clone().drop_guard();
        let limits = &self.exchange.state.limits;
        check_charset(&parts.headers)?;
        let encoding = Encoding::of(&parts.headers).map_err(|error| gather::unread_request(&error))?;
        let whole = gather::request(&self.exchange.worker.shared, limits, body).await?;
        let came = whole.bytes.clone();
        let plain = whole.unpacked(encoding, limits.request_body, limits.bodies_in_flight).await;
        let Whole { bytes: plain, mut held } = plain.map_err(|error| gather::unread_request(&error))?;
        held.grow(weight(&plain), limits.bodies_in_flight)?;
        let (asked, response) = self.ask(target, parts, came, plain).await?;
        let route = match self.guarding.call.path {
            Path::Route(route) if asked.admitted.looks_after => Some(route),
            _ => None,
        };
        // Errors of the upstream hold nothing of a model.
        match route.filter(|_| response.status().is_success()) {
            None => Ok(complete(Some(self.guarding.call.path), response)),
            Some(route) => match framing(response.headers()) {
                Some(wire) => self.stream(route, wire, asked, response, held, ends_hooks),
                None => Box::pin(self.after(asked.admitted, response)).await,
            },
        }
    }

    /// Shows the request to hooks and asks the upstream, the one while the other works where that makes no difference.
    async fn ask(
        &self,
        target: PathAndQuery,
        mut parts: Box<Parts>,
        came: Bytes,
        plain: Bytes,
    ) -> Result<(Asked, Response<Body>), Refusal> {
        let (exchange, Guarding { guard, .. }) = (self.exchange, &self.guarding);
        let kind = parts.headers.get(CONTENT_TYPE).cloned();
        let late = guard.may_read_late(&plain) && !exchange.state.chooses_by_model();
        let admitted = if late { None } else { Some(self.before(plain.clone(), kind.as_ref()).await?) };
        let rewritten = admitted.as_ref().filter(|admitted| admitted.rewritten).map(|admitted| admitted.body.clone());
        if let Some(body) = &rewritten {
            parts.headers.remove(CONTENT_ENCODING);
            headers::replace_body(&mut parts.headers, body.len());
        }
        if admitted.as_ref().is_none_or(|admitted| admitted.looks_after) {
            headers::ask_for_identity(&mut parts.headers);
        }
        let model = admitted.as_ref().and_then(|admitted| admitted.model.clone());
        let body = RequestBody::whole(rewritten.unwrap_or(came));
        let answer = exchange.forward(model.as_deref(), target, parts, body);
        let judged = async {
            let admitted = match admitted {
                None => self.before(plain, kind.as_ref()).await?,
                Some(admitted) if guard.judges_beside() => self.guarding.clone().beside(admitted).await?,
                Some(admitted) => admitted,
            };
            let gate = (admitted.stream && admitted.looks_after).then(|| self.gate(&admitted)).flatten();
            Ok(Asked { admitted, gate })
        };
        both(judged, answer).await
    }

    async fn before(&self, plain: Bytes, kind: Option<&HeaderValue>) -> Result<Admitted, Refusal> {
        self.guarding.clone().before(plain).await.map_err(|no| not_json(no, kind))
    }

    /// The gate of a streamed answer, where it needs one.
    fn gate(&self, admitted: &Admitted) -> Option<Box<Gate>> {
        let state = &self.exchange.state;
        let settings = GateSettings {
            ending: state.streams.on_block,
            limit: state.limits.response_body,
            aside: Some((LARGE, elsewhere)),
        };
        let Guarding { guard, call } = self.guarding.clone();
        Gate::new(guard, call, admitted.clone(), settings).map(Box::new)
    }

    /// Shows a whole answer to the hooks after the call.
    async fn after(&self, admitted: Admitted, response: Response<Body>) -> Result<Response<Body>, Refusal> {
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

    /// Leads a streamed answer through its gate. It has not begun: its status line waits for the first text that may
    /// leave.
    fn stream(
        &self,
        route: Route,
        framing: Framing,
        Asked { admitted, gate }: Asked,
        response: Response<Body>,
        request: Held,
        ends_hooks: DropGuard,
    ) -> Result<Response<Body>, Refusal> {
        if framing != Framing::of(route) {
            return self.foreign(route, response);
        }
        let (state, shared) = (&self.exchange.state, &self.exchange.worker.shared);
        // A server may stream what was not asked for as a stream.
        let Some(gate) = gate.or_else(|| self.gate(&admitted)) else {
            return Ok(complete(Some(route.into()), response));
        };
        let (mut parts, body) = response.into_parts();
        let encoding = Encoding::of(&parts.headers).map_err(|error| gather::unread_answer(&error))?;
        headers::stream_body(&mut parts.headers);
        let every = Some(state.streams.keep_alive).filter(|every| !every.is_zero());
        let stream = Stream {
            source: Source::new(encoding, body, shared, &state.limits),
            gate,
            pulse: keep_alive(route).zip(every),
            shared: shared.clone(),
            limits: state.limits.clone(),
            held: Held::none(shared.clone()),
            _request: request,
        };
        Ok(Response::from_parts(parts, Body::Live(Box::new(Live::new(stream, ends_hooks)))))
    }

    /// A stream in another format than that of its route passes where no hook would have to see it.
    fn foreign(&self, route: Route, response: Response<Body>) -> Result<Response<Body>, Refusal> {
        if self.guarding.guard.looks_after(route.into()).is_some() {
            return Err(Refusal::new(ErrorKind::BadUpstream).saying(
                "The inference server streams in a format that is not that of the route: no policy hook can see it.",
            ));
        }
        tracing::warn!(id = %self.exchange.id, "values cannot be put back into a stream of another format");
        Ok(response)
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

/// A body that is no JSON and does not claim to be, by its type, is of the wrong one.
fn not_json(refusal: Refusal, kind: Option<&HeaderValue>) -> Refusal {
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or("application/json");
    let claims = kind.split(';').next().is_some_and(|kind| kind.trim().to_ascii_lowercase().ends_with("json"));
    if refusal.kind == ErrorKind::Malformed && !claims {
        return Refusal { kind: ErrorKind::UnsupportedMedia, ..refusal };
    }
    refusal
}

#[cfg(test)]
mod tests {
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
}
