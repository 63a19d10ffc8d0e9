//! One request and its response, from the first check to the last header.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use gatehook_guard::Refusal;
use gatehook_inference::{ErrorKind, Path, Wire};
use http::header::{CONNECTION, CONTENT_TYPE, TRANSFER_ENCODING, UPGRADE, VIA};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout};

use crate::body::{Body, RequestBody};
use crate::completed::complete;
use crate::config::{Door, UpstreamKind};
use crate::paths::{self, Class, Found};
use crate::request_id::{self, RequestId};
use crate::state::{self, State};
use crate::upstream::{Http, Target, Upstream};
use crate::worker::Worker;
use crate::{forward, gather, guarded, headers, origin, refuse};

/// One request, while it is answered.
pub(crate) struct Exchange {
    pub(crate) worker: Rc<Worker>,
    pub(crate) state: Arc<State>,
    pub(crate) id: RequestId,
    pub(crate) peer: SocketAddr,
    /// The path, if its body is one for a model.
    pub(crate) path: Option<Path>,
    wire: Wire,
    /// The page that calls, if a browser does.
    origin: Option<HeaderValue>,
    /// The methods of a path that was asked with another one.
    methods: String,
    /// The name of the key that the caller presented.
    pub(crate) key: Option<Arc<str>>,
}

// What is rare waits in a box of its own: the future of a request is moved into its connection, and so is kept small.

/// Answers one request. Whatever happens there is a response, with the request's id.
pub(crate) async fn answer(worker: Rc<Worker>, peer: SocketAddr, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let parts = Box::new(parts);
    let path = Path::from_path(parts.uri.path());
    let begun = Instant::now();
    let chunked = parts.headers.contains_key(TRANSFER_ENCODING);
    let mut exchange = Exchange {
        state: worker.state(),
        worker,
        id: RequestId::new(),
        peer,
        path,
        wire: path.map_or_else(|| paths::wire_of(parts.uri.path()), Path::wire),
        origin: None,
        methods: String::new(),
        key: None,
    };
    let mut response = match exchange.handle(parts, body).await {
        Ok(response) => response,
        Err(refusal) => {
            tracing::debug!(id = %exchange.id, %peer, %refusal, "refused");
            refuse::response(exchange.wire, &refusal, exchange.id, &exchange.methods)
        }
    };
    response.headers_mut().insert(request_id::HEADER, exchange.id.header());
    if chunked {
        // The length that may have stood beside it is gone by now. Someone before us could have gone by that one, and
        // what follows would be no request of his: nothing that follows is read (RFC 9112, 6.1).
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(origin) = exchange.origin.take() {
        origin::share(response.headers_mut(), origin);
    }
    exchange.worker.shared.metrics.responded(exchange.path, response.status());
    tracing::debug!(
        id = %exchange.id,
        %peer,
        key = exchange.key.as_deref(),
        route = exchange.path.map(Path::as_str),
        status = response.status().as_u16(),
        after = ?begun.elapsed(),
        "answered"
    );
    response
}

impl Exchange {
    async fn handle(&mut self, mut parts: Box<Parts>, body: Incoming) -> Result<Response<Body>, Refusal> {
        let state = self.state.clone();
        self.origin = state.origins.check(&parts.headers)?;
        if let Some(origin) = self.origin.clone().filter(|_| origin::is_preflight(&parts.method, &parts.headers)) {
            return Ok(preflight(origin));
        }
        if is_read(&parts, "/healthz") {
            return Ok(own("text/plain; charset=utf-8", "ok\n".to_owned()));
        }
        self.key = state.keys.admit(&mut parts.headers)?;
        if is_read(&parts, "/metrics") {
            let text = self.worker.shared.metrics.text();
            return Ok(own("application/openmetrics-text; version=1.0.0; charset=utf-8", text));
        }
        if parts.headers.get_all(VIA).iter().any(is_own) {
            return Err(Refusal::new(ErrorKind::Loop));
        }
        let target = self.place(&parts)?;
        match (&state.guard, self.path) {
            (Some(guard), Some(path)) if parts.method == Method::POST && guard.looks_at(path) => {
                let guarded = guarded::Guarded::new(self, guard, path, &parts);
                let mut response = Box::pin(guarded.answer(target, parts, body)).await?;
                // Here, where nothing is left of the way that led to it: many streams may wait for long.
                if let Body::Live(live) = response.body_mut() {
                    live.begin(state.streams.commit_after).await?;
                }
                Ok(response)
            }
            _ => Box::pin(self.pass(target, parts, body)).await,
        }
    }

    /// The target that the upstream gets, if the path table lets the request in. Sets the path that hooks see.
    fn place(&mut self, parts: &Parts) -> Result<PathAndQuery, Refusal> {
        let malformed = |why: &dyn std::fmt::Display| Refusal::new(ErrorKind::Malformed).saying(format!("{why}."));
        let target = match parts.uri.path_and_query() {
            Some(target) if parts.uri.authority().is_none() && target.path().starts_with('/') => target.clone(),
            _ => return Err(malformed(&paths::PathError::NotAPath)),
        };
        let guarded = self.is_guarded();
        if self.state.guard.is_none() && self.state.management == Door::Pass {
            return Ok(target);
        }
        if guarded && parts.headers.contains_key(UPGRADE) {
            return Err(forbidden("Connections that change their protocol cannot be seen by hooks."));
        }
        let path = paths::canonical(target.path()).map_err(|error| malformed(&error))?;
        let kind = self.state.upstream(None).map_or(UpstreamKind::OpenAi, |upstream| upstream.kind);
        self.admit(kind, &parts.method, &path)?;
        if path == target.path() {
            return Ok(target);
        }
        let query = target.query().map_or_else(String::new, |query| format!("?{query}"));
        PathAndQuery::try_from(format!("{path}{query}")).map_err(|error| malformed(&error))
    }

    /// Whether a hook may block, so that nothing may pass that hooks cannot see.
    fn is_guarded(&self) -> bool {
        self.state.guard.as_ref().is_some_and(|guard| guard.may_block())
    }

    fn admit(&mut self, kind: UpstreamKind, method: &Method, path: &str) -> Result<(), Refusal> {
        let guarded = self.is_guarded();
        self.wire = Path::from_path(path).map_or_else(|| paths::wire_of(path), Path::wire);
        if paths::is_other_case(kind, method, path) {
            self.wire = paths::wire_of(&path.to_ascii_lowercase());
            return Err(Refusal::new(ErrorKind::Malformed).saying("The path is written in another case."));
        }
        match paths::look_up(kind, method, path) {
            Found::Row(Class::Hooked(path)) => self.path = Some(path),
            Found::Row(Class::Management) if self.state.management == Door::Closed => {
                return Err(forbidden("Models are not managed through this gateway."));
            }
            Found::Row(Class::Shut) if guarded => return Err(forbidden("Hooks cannot see what passes here.")),
            Found::OtherMethod if guarded => {
                self.methods = paths::methods(kind, path);
                return Err(Refusal::new(ErrorKind::MethodNotAllowed));
            }
            Found::Unknown if guarded && self.state.unknown_paths == Door::Closed => {
                return Err(forbidden("The path is not known here, and hooks could not see what passes."));
            }
            Found::Row(_) | Found::OtherMethod | Found::Unknown => {}
        }
        Ok(())
    }

    /// Forwards what no hook looks at, as it comes.
    async fn pass(&self, target: PathAndQuery, parts: Box<Parts>, body: Incoming) -> Result<Response<Body>, Refusal> {
        if self.is_guarded() && matches!(parts.method, Method::GET | Method::HEAD) && !body.is_end_stream() {
            // A server that reads no body here takes it for the next request: one that no hook has seen.
            return Err(Refusal::new(ErrorKind::Malformed).saying("A request of this method has no body."));
        }
        let (model, body) = if self.state.chooses_by_model() && self.path.is_some() {
            let whole = Box::pin(gather::request(&self.worker.shared, &self.state.limits, body)).await?;
            (model_of(&whole.bytes), RequestBody::whole(whole.bytes))
        } else {
            let begun = timeout(self.state.limits.idle, RequestBody::begin(body)).await;
            let body = begun.map_err(|_| Refusal::new(ErrorKind::RequestTimeout))?;
            (None, body.map_err(|error| Refusal::new(ErrorKind::Malformed).saying(error.to_string()))?)
        };
        let response = self.forward(model.as_deref(), target, parts, body).await?;
        Ok(complete(self.path, response))
    }

    /// Sends the request to the upstream of its model; the answer as it comes.
    pub(crate) async fn forward(
        &self,
        model: Option<&str>,
        target: PathAndQuery,
        mut parts: Box<Parts>,
        body: RequestBody,
    ) -> Result<Response<Body>, Refusal> {
        let upstream = self.state.upstream(model).ok_or_else(|| Refusal::new(ErrorKind::BadUpstream))?;
        let begun = Instant::now();
        let response = match &upstream.target {
            Target::Replay(replay) => Box::pin(replay.answer(self.path, &parts, target.path(), body)).await?,
            Target::Http(http) => {
                headers::for_upstream(&mut parts.headers, upstream, http, state::via());
                parts.uri = http.target(target).into();
                parts.version = http::Version::HTTP_11;
                parts.extensions.clear();
                self.call(upstream, http, Request::from_parts(*parts, body)).await?
            }
        };
        self.worker.shared.metrics.answered(self.path, begun.elapsed());
        Ok(response)
    }

    async fn call(
        &self,
        upstream: &Upstream,
        http: &Http,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, Refusal> {
        let answered = forward::call(self, upstream, http, request).await?;
        if answered.status().is_informational() {
            // Another protocol, which nobody has asked for.
            return Err(Refusal::new(ErrorKind::BadUpstream));
        }
        let mut response = answered.map(|answer| Body::Answer(Box::new(answer)));
        headers::for_client(response.headers_mut(), self.origin.is_some());
        Ok(response)
    }
}

/// Whether this path is asked for, of those that the gateway answers itself.
fn is_read(parts: &Parts, path: &str) -> bool {
    parts.uri.path() == path && matches!(parts.method, Method::GET | Method::HEAD)
}

/// An answer of the gateway's own.
fn own(kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::Whole(text.into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn forbidden(why: &str) -> Refusal {
    Refusal::new(ErrorKind::Forbidden).saying(why)
}

fn preflight(origin: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    origin::allow(response.headers_mut(), origin);
    response
}

/// The model that an unhooked request names; it only chooses the upstream.
fn model_of(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        model: Option<String>,
    }
    serde_json::from_slice::<Named>(body).ok()?.model
}

/// Whether this process is one of the hops.
fn is_own(via: &HeaderValue) -> bool {
    let own = state::via().as_bytes();
    via.as_bytes().split(|byte| *byte == b',').any(|hop| hop.trim_ascii() == own)
}
