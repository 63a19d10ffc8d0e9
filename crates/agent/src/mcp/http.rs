//! A server over HTTP, by the program's one HTTP client: it follows no redirect, and never calls addresses of cloud
//! metadata. <https://modelcontextprotocol.io/specification/2025-06-18/basic/transports>

use std::borrow::Cow;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use gatehook_engine::client::{Body, BodyError, Client, ClientError};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse};
use sse_stream::{Error as SseError, Sse, SseStream};

/// Bytes of an answer, and of one event of a stream.
const MAX_ANSWER: usize = 16 << 20;
/// Bytes of what is said about a failure.
const MAX_FAILURE: usize = 8 << 10;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Speaks with one server.
#[derive(Clone)]
pub(super) struct Http {
    client: Client,
    url: Uri,
    headers: HeaderMap,
}

/// Why a server cannot be spoken with.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error("a header cannot be sent")]
    Header,
    #[error("{status}{said}")]
    Status { status: StatusCode, said: String },
}

type Error = StreamableHttpError<HttpError>;

impl Http {
    pub(super) fn new(client: Client, url: Uri, headers: &[(String, String)]) -> Result<Self, HttpError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| HttpError::Header)?;
            let mut value = HeaderValue::from_str(value).map_err(|_| HttpError::Header)?;
            value.set_sensitive(true);
            map.append(name, value);
        }
        Ok(Self { client, url, headers: map })
    }

    /// Asks, and gives what answers with success, or nothing else.
    async fn ask(
        &self,
        method: Method,
        body: Bytes,
        accept: HeaderValue,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
        last_event: Option<String>,
    ) -> Result<Response<Body>, Error> {
        let has_session = session.is_some();
        let mut request = Request::new(body.into());
        *request.method_mut() = method;
        *request.uri_mut() = self.url.clone();
        let all = request.headers_mut();
        *all = self.headers.clone();
        all.extend(headers);
        all.insert(ACCEPT, accept);
        all.insert(CONTENT_TYPE, JSON);
        for (name, value) in [(SESSION, session.as_deref()), (LAST_EVENT, last_event.as_deref())] {
            if let Some(value) = value {
                all.insert(name, HeaderValue::from_str(value).map_err(|_| client(HttpError::Header))?);
            }
        }
        let response = self.client.send(request).await.map_err(|error| client(error.into()))?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if status.is_success() {
            return Ok(response);
        }
        let said = response.into_body().collect_within(MAX_FAILURE).await.unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim().chars().take(300).collect::<String>();
        let said = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ": it wants credentials, in `headers`".to_owned(),
            _ if said.is_empty() => String::new(),
            _ => format!(": {said}"),
        };
        Err(client(HttpError::Status { status, said }))
    }
}

fn client(error: HttpError) -> Error {
    StreamableHttpError::Client(error)
}

fn is(response: &Response<Body>, kind: &HeaderValue) -> bool {
    let found = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    found.to_ascii_lowercase().starts_with(kind.as_bytes())
}

impl StreamableHttpClient for Http {
    type Error = HttpError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let expects_nothing = !matches!(message, ClientJsonRpcMessage::Request(_));
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let response = self.ask(Method::POST, body, BOTH, session_id, custom_headers, None).await?;
        let session = response.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if is(&response, &STREAM) {
            return Ok(StreamableHttpPostResponse::Sse(events(response.into_body()), session));
        }
        let is_json = is(&response, &JSON);
        let body = response.into_body().collect_within(MAX_ANSWER).await.map_err(|error| client(error.into()))?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(message) if is_json => Ok(StreamableHttpPostResponse::Json(message, session)),
            _ if expects_nothing => Ok(StreamableHttpPostResponse::Accepted),
            _ => Err(StreamableHttpError::UnexpectedServerResponse(Cow::Borrowed("it is no message of MCP"))),
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let asked = self.ask(Method::DELETE, Bytes::new(), BOTH, Some(session_id), custom_headers, None).await;
        match asked {
            Err(StreamableHttpError::Client(HttpError::Status { status: StatusCode::METHOD_NOT_ALLOWED, .. })) => {
                Ok(())
            }
            asked => asked.map(drop),
        }
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let asked = self.ask(Method::GET, Bytes::new(), STREAM, session_id, custom_headers, last_event_id).await;
        let response = match asked {
            Err(StreamableHttpError::Client(HttpError::Status { status: StatusCode::METHOD_NOT_ALLOWED, .. })) => {
                return Err(StreamableHttpError::ServerDoesNotSupportSse);
            }
            asked => asked?,
        };
        if !is(&response, &STREAM) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(events(response.into_body()))
    }
}

/// The events of a stream, each within its bound.
fn events(body: Body) -> BoxStream<'static, Result<Sse, SseError>> {
    SseStream::from_bytes_stream(Bounded { body, line: 0, event: 0, is_over: false }).boxed()
}

/// Ends a stream with an error where one event is too long: a reader keeps all of an event until it is over.
struct Bounded {
    body: Body,
    /// Bytes of the line that has begun, and of the event.
    line: usize,
    event: usize,
    is_over: bool,
}

#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error("an event has more than {MAX_ANSWER} bytes")]
    TooLong,
    #[error("the stream broke off: {0}")]
    Broken(String),
}

impl Stream for Bounded {
    type Item = Result<Bytes, StreamError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        loop {
            let mut frame = self.body.frame();
            let polled = std::task::ready!(Pin::new(&mut frame).poll(context));
            match polled {
                None => return Poll::Ready(None),
                Some(Err(error)) => {
                    self.is_over = true;
                    return Poll::Ready(Some(Err(StreamError::Broken(error.to_string()))));
                }
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    for &byte in &data {
                        self.event += 1;
                        match byte {
                            b'\r' => {}
                            b'\n' if self.line == 0 => self.event = 0,
                            b'\n' => self.line = 0,
                            _ => self.line += 1,
                        }
                    }
                    self.is_over = self.event > MAX_ANSWER;
                    let item = if self.is_over { Err(StreamError::TooLong) } else { Ok(data) };
                    return Poll::Ready(Some(item));
                }
            }
        }
    }
}
