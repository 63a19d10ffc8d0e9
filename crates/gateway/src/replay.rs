//! An upstream that answers from a script: for demonstrations and tests.
//!
//! A script is a list of [`Entry`]s in JSON or YAML, or JSON lines with one entry each. The first one that fits a
//! request answers it. Without a script it echoes the last message, on every route.

mod echo;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::task::Poll;

use gatehook_engine::config::{Document, Format};
use gatehook_guard::Refusal;
use gatehook_inference::{ErrorKind, Path};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::body::{Body, RequestBody};
use crate::forward::Broken;

/// An upstream's script.
pub(crate) enum Replay {
    /// The last message comes back.
    Echo,
    /// The first entry that fits answers.
    Script(Vec<Entry>),
}

/// One answer of a script, and what it answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// The path, as in `/v1/messages`; any by default.
    route: Option<String>,
    /// A text that the request's body holds.
    #[serde(rename = "match")]
    text: Option<String>,
    /// 200 by default.
    status: Option<u16>,
    /// Headers; `Content-Type` is found by itself.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body: text as it stands, any other value as JSON.
    body: Option<Value>,
    /// A stream: its pieces as they stand.
    chunks: Option<Vec<String>>,
    /// A stream of server-sent events: each one's data, text as it stands, any other value as JSON.
    sse: Option<Vec<Value>>,
    /// Break off after the last piece.
    #[serde(default, rename = "break")]
    breaks: bool,
}

impl Replay {
    /// Reads a script; the empty name echoes.
    pub(crate) fn open(file: &str) -> io::Result<Self> {
        if file.is_empty() {
            return Ok(Self::Echo);
        }
        let text = std::fs::read_to_string(file)?;
        match Format::of_path(file.as_ref()) {
            Some(Format::Yaml) => Self::parse_yaml(file, &text),
            _ => Self::parse(&text).map_err(io::Error::other),
        }
    }

    fn parse_yaml(file: &str, text: &str) -> io::Result<Self> {
        let document = Document::parse(file, text, Format::Yaml).map_err(io::Error::other)?;
        serde_json::from_value(document.root.to_json()).map(Self::Script).map_err(io::Error::other)
    }

    fn parse(text: &str) -> serde_json::Result<Self> {
        if text.trim_start().starts_with('[') {
            return serde_json::from_str(text).map(Self::Script);
        }
        serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().map(Self::Script)
    }

    /// The answer to a request.
    pub(crate) async fn answer(
        &self,
        hooked: Option<Path>,
        parts: &Parts,
        path: &str,
        body: RequestBody,
    ) -> Result<Response<Body>, Refusal> {
        let body =
            body.collect().await.map_err(|error| Refusal::new(ErrorKind::Malformed).saying(error.to_string()))?;
        match self {
            Replay::Echo => echo::answer(hooked, &parts.method, path, body),
            Replay::Script(entries) => {
                let text = String::from_utf8_lossy(&body);
                let entry = entries.iter().find(|entry| entry.fits(path, &text));
                let none = || Refusal::new(ErrorKind::NotFound).saying("No entry of the script answers this request.");
                entry.ok_or_else(none).map(Entry::answer)
            }
        }
    }
}

impl Entry {
    fn fits(&self, path: &str, body: &str) -> bool {
        self.route.as_deref().is_none_or(|route| route == path)
            && self.text.as_deref().is_none_or(|text| body.contains(text))
    }

    fn answer(&self) -> Response<Body> {
        let (kind, body) = match (&self.sse, &self.chunks, &self.body) {
            (Some(events), ..) => {
                let event = |data: &Value| format!("data: {}\n\n", spelled(data)).into();
                ("text/event-stream", Body::Script(Script::new(events.iter().map(event), self.breaks)))
            }
            (_, Some(chunks), _) => {
                let chunks = chunks.iter().map(|chunk| Bytes::from(chunk.clone()));
                ("application/x-ndjson", Body::Script(Script::new(chunks, self.breaks)))
            }
            (.., Some(body)) => ("application/json", Body::Whole(spelled(body).into())),
            _ => ("application/json", Body::Empty),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or_default();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        for (name, value) in &self.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

fn spelled(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The pieces of a scripted stream.
pub(crate) struct Script {
    chunks: VecDeque<Bytes>,
    breaks: bool,
}

impl Script {
    pub(crate) fn new(chunks: impl IntoIterator<Item = Bytes>, breaks: bool) -> Self {
        Self { chunks: chunks.into_iter().collect(), breaks }
    }

    pub(crate) fn poll_frame(&mut self) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        Poll::Ready(match self.chunks.pop_front() {
            Some(chunk) => Some(Ok(Frame::data(chunk))),
            None if std::mem::take(&mut self.breaks) => Some(Err(Broken::Scripted)),
            None => None,
        })
    }

    pub(crate) fn is_end(&self) -> bool {
        self.chunks.is_empty() && !self.breaks
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

impl RequestBody {
    /// All of it.
    async fn collect(mut self) -> hyper::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| std::pin::Pin::new(&mut self).poll_frame(cx)).await {
            all.extend_from_slice(&frame?.into_data().unwrap_or_default());
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_one_value_or_lines() {
        for text in ["[{\"body\":1},{\"body\":2}]", "{\"body\":1}\n{\"body\":2}\n"] {
            let Replay::Script(entries) = Replay::parse(text).unwrap() else { panic!("{text}") };
            assert_eq!(entries.len(), 2, "{text}");
        }
    }

    #[test]
    fn a_script_can_be_yaml() {
        let text = "- route: /v1/messages\n  match: weather\n  body: {a: 1}\n- status: 404\n";
        let Replay::Script(entries) = Replay::parse_yaml("x.yaml", text).unwrap() else { panic!() };
        assert_eq!((entries.len(), entries[0].text.as_deref()), (2, Some("weather")));
        assert!(Replay::parse_yaml("x.yaml", "- bodi: 1\n").is_err());
    }

    #[test]
    fn an_unknown_field_is_an_error() {
        assert!(Replay::parse("{\"bodi\":1}").is_err());
    }

    #[test]
    fn the_first_entry_that_fits_answers() {
        let text = r#"{"route":"/a","match":"x","status":201} {"route":"/a","status":202} {"status":203}"#;
        let Replay::Script(entries) = Replay::parse(text).unwrap() else { panic!() };
        let status = |path, body| entries.iter().find(|entry| entry.fits(path, body)).and_then(|entry| entry.status);
        assert_eq!(status("/a", "a x"), Some(201));
        assert_eq!(status("/a", "a"), Some(202));
        assert_eq!(status("/b", "x"), Some(203));
    }
}
