//! Bytes to a server, and from it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use gatehook_engine::client::{Body, BodyError, Client, ClientError, RequestBody};
use gatehook_inference::{Framing, Route};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use super::exchange::Failed;
use super::read::LONGEST;
use super::replay::{Replay, Replayed};
use super::{ModelError, fault};

/// Where a model is.
#[derive(Debug, Clone)]
pub enum Server {
    /// Over HTTP.
    Http(Http),
    /// In a file of answers.
    Replay(Arc<Replay>),
}

/// A server over HTTP.
#[derive(Clone)]
pub struct Http {
    client: Client,
    url: Uri,
    headers: HeaderMap,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The server must have begun to answer: until then it may load the model and read the question. Default: 10 min.
    pub first_byte: Duration,
    /// It may pause within an answer. Default: 5 min.
    pub idle: Duration,
    /// The first pause before a server that is too busy is asked again, where it names none; each further one is twice
    /// as long. Default: 1 s.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { first_byte: Duration::from_secs(600), idle: Duration::from_secs(300), pause: Duration::from_secs(1) }
    }
}

/// Bytes of an error's body that are read, and how long they may take.
const ERROR_LIMIT: usize = 64 * 1024;
const ERROR_PATIENCE: Duration = Duration::from_secs(5);

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PLAIN: HeaderValue = HeaderValue::from_static("identity");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("gatehook/", env!("CARGO_PKG_VERSION")));

impl Http {
    /// A server whose questions go to `url`, whole as in `http://127.0.0.1:11434/api/chat`. `headers` are sent with each:
    /// what says who asks; credentials among them are to be marked as sensitive.
    pub fn new(client: Client, url: Uri, headers: HeaderMap) -> Self {
        Self { client, url, headers }
    }

    fn host(&self) -> &str {
        self.url.host().unwrap_or_default()
    }

    /// Where it is, as clients of its format are told: `http://127.0.0.1:8080/v1` of one that speaks chat completions.
    fn base_url(&self) -> Option<String> {
        let ends = ["/chat/completions", Route::Chat.path(), Route::Messages.path()];
        let before = ends.iter().find_map(|end| self.url.path().strip_suffix(end))?;
        let port = self.url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        Some(format!("{}://{}{port}{before}", self.url.scheme_str()?, self.host()))
    }

    fn request(&self, method: Method, url: Uri, body: Bytes) -> Request<RequestBody> {
        let mut request = Request::new(RequestBody::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = url;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(ACCEPT_ENCODING, PLAIN);
        headers.insert(USER_AGENT, AGENT);
        headers.extend(self.headers.clone());
        request
    }

    /// Asks for something else of the same server; none where it says no.
    pub(super) async fn beside(&self, method: Method, path: &str, body: Bytes) -> Option<Response<Body>> {
        let base = [Route::Chat, Route::ChatCompletions, Route::Messages];
        let before = base.iter().find_map(|route| self.url.path().strip_suffix(route.path()))?;
        let mut parts = self.url.clone().into_parts();
        parts.path_and_query = Some(format!("{before}{path}").parse().ok()?);
        let request = self.request(method, Uri::from_parts(parts).ok()?, body);
        self.client.send(request).await.ok().filter(|response| response.status().is_success())
    }

    async fn ask(&self, body: Bytes, patience: Patience) -> Result<Answer, Failed> {
        let request = self.request(Method::POST, self.url.clone(), body);
        let sent = timeout(patience.first_byte, self.client.send(request)).await;
        let response =
            sent.map_err(|_| late(self.host(), patience.first_byte))?.map_err(|error| unreachable(&error))?;
        let (parts, body) = response.into_parts();
        if !parts.status.is_success() {
            let body = timeout(ERROR_PATIENCE, body.collect_within(ERROR_LIMIT)).await;
            let body = body.ok().and_then(Result::ok).unwrap_or_default();
            return Err(fault::of_status(parts.status.as_u16(), &body, retry_after(&parts.headers)));
        }
        if let Some(encoding) = parts.headers.get(CONTENT_ENCODING).filter(|encoding| **encoding != PLAIN) {
            let text = format!(
                "came in an encoding that nobody asked for: {}",
                fault::plain(&String::from_utf8_lossy(encoding.as_bytes()))
            );
            return Err(ModelError::Broken(text).into());
        }
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_json = kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
        Ok(Answer {
            framing: Framing::named(kind),
            is_whole: is_json,
            pieces: Pieces::Http(Box::new(body)),
            begun: false,
            gone: false,
            patience,
        })
    }
}

impl Server {
    /// Where it is; none of a file.
    pub(crate) fn base_url(&self) -> Option<String> {
        match self {
            Self::Http(http) => http.base_url(),
            Self::Replay(_) => None,
        }
    }

    /// Sends a question; gives the answer as soon as it is known to be one.
    pub(super) async fn ask(&self, body: Bytes, agent: Option<&str>, patience: Patience) -> Result<Answer, Failed> {
        match self {
            Self::Http(http) => http.ask(body, patience).await,
            Self::Replay(replay) => {
                let pieces = replay.answer(&body, agent).await?;
                Ok(Answer {
                    framing: Some(Framing::Events),
                    is_whole: false,
                    pieces: Pieces::Replay(pieces),
                    begun: false,
                    gone: false,
                    patience,
                })
            }
        }
    }

    /// The pause before the server is asked once more, after so many attempts.
    pub(super) fn pause(&self, patience: Patience, attempts: u32, wanted: Option<Duration>) -> Duration {
        match self {
            Self::Http(_) => wanted.unwrap_or_else(|| patience.pause.saturating_mul(1 << attempts.min(8))),
            Self::Replay(_) => Duration::ZERO,
        }
    }
}

/// An answer on its way.
pub(super) struct Answer {
    /// How the frames of a stream are told apart, where the server says so.
    pub(super) framing: Option<Framing>,
    /// It is no stream.
    pub(super) is_whole: bool,
    pieces: Pieces,
    begun: bool,
    gone: bool,
    patience: Patience,
}

enum Pieces {
    Http(Box<Body>),
    Replay(Replayed),
}

impl Answer {
    /// What comes next; none at its end. Dropped while it waits it loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        if self.gone {
            return Ok(None);
        }
        let patience = if self.begun { self.patience.idle } else { self.patience.first_byte };
        let next = timeout(patience, self.pieces.next()).await;
        let next = next.unwrap_or_else(|_| Err(ModelError::Broken(format!("stopped for {} s", patience.as_secs()))));
        self.begun = true;
        self.gone = !matches!(next, Ok(Some(_)));
        next
    }

    /// Nothing more comes, or nothing more can be had.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// All of it.
    pub(super) async fn whole(self) -> Result<Bytes, ModelError> {
        let Pieces::Http(body) = self.pieces else { return Ok(Bytes::new()) };
        let whole = timeout(self.patience.first_byte, body.collect_within(LONGEST)).await;
        let whole = whole.map_err(|_| ModelError::Broken("did not end in time".to_owned()))?;
        whole.map_err(|error| match error {
            BodyError::TooLarge { limit } => ModelError::Broken(format!("is longer than {limit} bytes")),
            BodyError::Broken(error) => broke_off(&error),
        })
    }
}

impl Pieces {
    async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let body = match self {
            Self::Http(body) => body,
            Self::Replay(replayed) => return replayed.next().await,
        };
        loop {
            match body.frame().await {
                None => return Ok(None),
                // Trailers say nothing.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    _ => {}
                },
                Some(Err(error)) => return Err(broke_off(&error)),
            }
        }
    }
}

fn broke_off(error: &dyn fmt::Display) -> ModelError {
    ModelError::Broken(format!("broke off: {error}"))
}

fn late(host: &str, patience: Duration) -> ModelError {
    ModelError::Unreachable(format!("{host} has not answered within {} s", patience.as_secs()))
}

fn unreachable(error: &ClientError) -> ModelError {
    ModelError::Unreachable(error.to_string())
}

/// `Retry-After`: seconds, or a date (<https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3>).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    SystemTime::from(date).duration_since(SystemTime::now()).ok()
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("url", &self.url).finish_non_exhaustive()
    }
}
