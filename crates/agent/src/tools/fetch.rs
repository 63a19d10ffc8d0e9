//! `fetch`: a page of the web, as text.

mod html;
#[cfg(test)]
mod tests;

use std::time::Duration;

use gatehook_engine::client::{Body, Client, ClientError, Reach, RequestBody};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::arguments::{self, Count};
use super::builtin::spec;
use super::content;
use super::workspace::{Refused, Tried, printable};
use super::{Calling, Tool, ToolErrorKind, ToolOutput, ToolSpec, Working};

/// Other pages that a page may lead to, one after another.
const REDIRECTS: usize = 5;
/// Bytes of an answer that are read, and of text that one call gives.
const READ: usize = 4 << 20;
const SHOWN: usize = 40 << 10;
/// Bytes of an address.
const ADDRESS: usize = 8000;
/// For all hops together.
const TIMEOUT: Duration = Duration::from_secs(30);

const AGENT: &str = concat!("gatehook/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    url: String,
    #[serde(default)]
    raw: Option<bool>,
    #[serde(default)]
    offset: Option<Count>,
}

/// The tool.
pub(super) struct Fetch {
    spec: ToolSpec,
    client: Client,
    limit: Duration,
}

impl Fetch {
    pub(super) fn new(reach: Reach) -> Self {
        let description = "Fetches an http or https address with GET. HTML is given as text with its links; other text as it \
                           is. Long pages come in parts: go on with `offset`.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "description": "The address"},
                "raw": {"type": "boolean", "description": "HTML as it is"},
                "offset": {"type": "integer", "minimum": 0, "description": "The byte of the text to begin with"},
            },
            "required": ["url"],
            "additionalProperties": false,
        });
        Self { spec: spec("fetch", description, parameters), client: Client::new(reach), limit: TIMEOUT }
    }

    async fn fetch(&self, given: &Arguments) -> Tried<ToolOutput> {
        let mut url = address(&given.url, None)?;
        let raw = given.raw.unwrap_or(false);
        let offset = given.offset.map_or(0, |count| usize::try_from(count.0).unwrap_or(usize::MAX));
        for _ in 0..=REDIRECTS {
            let response = self.ask(&url).await?;
            let Some(location) = redirect(&response) else {
                let page = Page::read(url, response).await?;
                // To read some MiB takes more than a moment.
                let told = tokio::task::spawn_blocking(move || page.told(raw, offset)).await;
                return told.unwrap_or_else(|_| Err(Refused::new(ToolErrorKind::Other, "the page cannot be read")));
            };
            url = address(&location, Some(&url))?;
        }
        Err(Refused::new(ToolErrorKind::Network, format!("it leads on and on: more than {REDIRECTS} redirects")))
    }

    async fn ask(&self, url: &Url) -> Tried<Response<Body>> {
        let request = Request::get(url.as_str())
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.5")
            .header(ACCEPT_ENCODING, "identity")
            .body(RequestBody::from(bytes::Bytes::new()));
        let request = request.map_err(|error| Refused::new(ToolErrorKind::InvalidInput, error.to_string()))?;
        self.client.send(request).await.map_err(|error| {
            let kind = match error {
                ClientError::Forbidden { .. } => ToolErrorKind::Permission,
                ClientError::InvalidUrl => ToolErrorKind::InvalidInput,
                ClientError::ConnectTimeout { .. } => ToolErrorKind::Timeout,
                _ => ToolErrorKind::Network,
            };
            Refused::new(kind, error.to_string())
        })
    }
}

impl Tool for Fetch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Cancel safe: dropped, its connection is closed.
    fn call<'a>(&'a self, call: Calling<'a>) -> Working<'a> {
        Box::pin(async move {
            let given: Arguments = match arguments::read(call.arguments) {
                Ok(given) => given,
                Err(refused) => return refused.into(),
            };
            let fetched = tokio::select! {
                biased;
                () = call.cancel.cancelled() => Err(Refused::new(ToolErrorKind::Cancelled, "cancelled")),
                fetched = self.fetch(&given) => fetched,
                () = tokio::time::sleep(self.limit) => {
                    Err(Refused::new(ToolErrorKind::Timeout, format!("no answer within {} s", self.limit.as_secs())))
                }
            };
            fetched.unwrap_or_else(ToolOutput::from)
        })
    }
}

/// An address, which may be relative to the page that named it.
fn address(text: &str, of: Option<&Url>) -> Tried<Url> {
    let shown: String = printable(text).chars().take(200).collect();
    let invalid = |why: &str| Refused::new(ToolErrorKind::InvalidInput, format!("`{shown}` {why}"));
    if text.len() > ADDRESS {
        return Err(invalid("is too long"));
    }
    let parsed = of.map_or_else(|| Url::parse(text), |of| of.join(text));
    let mut url = parsed.map_err(|error| invalid(&format!("is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("is no http or https address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("holds a name or a password: nothing is sent with them"));
    }
    url.set_fragment(None);
    Ok(url)
}

fn redirect(response: &Response<Body>) -> Option<String> {
    let leads_on = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| leads_on)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// What was answered.
struct Page {
    url: Url,
    status: StatusCode,
    /// As in `text/html; charset=utf-8`, in lower case.
    content_type: String,
    encoding: Option<String>,
    body: Vec<u8>,
    is_cut: bool,
}

impl Page {
    async fn read(url: Url, response: Response<Body>) -> Tried<Self> {
        let (head, mut stream) = response.into_parts();
        let header =
            |name| head.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).to_lowercase());
        let content_type = header(CONTENT_TYPE).unwrap_or_default();
        let encoding = header(CONTENT_ENCODING).filter(|encoding| encoding != "identity");
        let (mut body, mut is_cut) = (Vec::new(), false);
        while let Some(frame) = stream.frame().await {
            let frame =
                frame.map_err(|error| Refused::new(ToolErrorKind::Network, format!("it broke off: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            let room = READ - body.len();
            body.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
            if data.len() > room {
                is_cut = true;
                break;
            }
        }
        Ok(Self { url, status: head.status, content_type, encoding, body, is_cut })
    }

    fn told(self, raw: bool, offset: usize) -> Tried<ToolOutput> {
        let error = match self.status.as_u16() {
            ..=399 => None,
            401 | 403 => Some(ToolErrorKind::Permission),
            404 | 410 => Some(ToolErrorKind::NotFound),
            500.. => Some(ToolErrorKind::Network),
            _ => Some(ToolErrorKind::Other),
        };
        let mut text = format!("{} {}\n", self.status.as_u16(), self.url);
        match self.text(raw) {
            Ok(page) => text.push_str(&part(&page, offset, self.is_cut)?),
            Err(why) => text.push_str(&why),
        }
        Ok(ToolOutput { text, error, ..ToolOutput::default() })
    }

    /// The text, or what there is instead.
    fn text(&self, raw: bool) -> Result<String, String> {
        if let Some(encoding) = &self.encoding {
            return Err(format!("(it came compressed by `{}`, unasked)", printable(encoding)));
        }
        if let Some(kind) = content::binary(&self.body) {
            return Err(format!("({kind} of {} bytes: no text)", self.body.len()));
        }
        let text = decoded(&self.body, &self.content_type);
        let media = self.content_type.split(';').next().unwrap_or_default().trim();
        let is_html = match media {
            "text/html" | "application/xhtml+xml" => true,
            "" => text.trim_start().get(..9).is_some_and(|start| start.eq_ignore_ascii_case("<!doctype")),
            _ => false,
        };
        Ok(if is_html && !raw { html::text(&text, &self.url) } else { text })
    }
}

/// Pages of old servers are in Latin-1, which is what these names mean on the web; everything else is UTF-8.
fn decoded(body: &[u8], content_type: &str) -> String {
    let charset = content_type.split("charset=").nth(1).map(|rest| rest.trim_matches(['"', ' ', ';']));
    match charset {
        Some("iso-8859-1" | "latin1" | "windows-1252" | "us-ascii") if std::str::from_utf8(body).is_err() => {
            body.iter().map(|byte| char::from(*byte)).collect()
        }
        _ => String::from_utf8_lossy(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)).into_owned(),
    }
}

/// As much as one call gives, and how to go on.
fn part(page: &str, offset: usize, is_cut: bool) -> Tried<String> {
    if page.trim().is_empty() {
        return Ok("(it is empty)".to_owned());
    }
    if offset >= page.len() {
        let text = format!("the text has {} bytes: there is none from {offset} on", page.len());
        return Err(Refused::new(ToolErrorKind::InvalidInput, text));
    }
    let (from, to) = (page.floor_char_boundary(offset), page.floor_char_boundary(offset.saturating_add(SHOWN)));
    let mut part = page.get(from..to).unwrap_or_default().to_owned();
    if to < page.len() {
        part.push_str(&format!("\n(more follows, of {} bytes: go on with offset {to})", page.len()));
    } else if is_cut {
        part.push_str(&format!("\n(the page is longer than {READ} bytes: its rest was not read)"));
    }
    Ok(part)
}
