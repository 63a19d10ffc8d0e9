use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gatehook_events::Event;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use percent_encoding::percent_decode_str;
use url::Url;

use super::contracts::{Terms, terms};
use crate::definition::{Contract, WebhookDefinition};
use crate::handler::DefinitionError;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Headers that frame a message; the client sets them.
const FRAMING: &[&str] =
    &["connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// Where a webhook is, and what goes with each request to it.
pub(crate) struct Endpoint {
    /// Before the model and after it; without user information and fragment.
    urls: [Uri; 2],
    /// For messages.
    pub(crate) host: String,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
}

impl Endpoint {
    pub(crate) fn of(definition: &WebhookDefinition) -> Result<Self, DefinitionError> {
        let mut url = Url::parse(definition.url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default().to_owned();
        let credentials = url.as_mut().and_then(take_credentials);
        let paths = terms(definition.contract).paths;
        // What is wrong with it is not quoted: it may hold a password.
        let urls = url.filter(|_| !host.is_empty()).and_then(|url| Some([at(&url, paths[0])?, at(&url, paths[1])?]));
        let urls = urls.ok_or_else(|| {
            wrong("url", "it is no http or https address", "give one as in https://guard.example/check")
        })?;
        Ok(Self { urls, host, method: method(&definition.method)?, headers: headers(definition, credentials)? })
    }

    /// Where an event is sent.
    pub(crate) fn url(&self, event: Event) -> &Uri {
        let [before, after] = &self.urls;
        if Terms::is_after(event) { after } else { before }
    }
}

/// The address itself, or that of its contract's path where it has none.
fn at(url: &Url, path: &str) -> Option<Uri> {
    let mut url = url.clone();
    if matches!(url.path(), "" | "/") && !path.is_empty() {
        url.set_path(path);
    }
    Uri::try_from(url.as_str()).ok()
}

/// Takes the user information out of `url`; as `Authorization`, like curl sends it.
fn take_credentials(url: &mut Url) -> Option<HeaderValue> {
    url.set_fragment(None);
    let given = !url.username().is_empty() || url.password().is_some();
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    let _ = url.set_username("");
    let _ = url.set_password(None);
    given.then(|| HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair))).ok()).flatten()
}

fn method(given: &str) -> Result<Method, DefinitionError> {
    let name = if given.is_empty() { "POST".to_owned() } else { given.to_ascii_uppercase() };
    Method::from_bytes(name.as_bytes())
        .ok()
        .filter(|method| method != Method::CONNECT)
        .ok_or_else(|| wrong("method", "it is no method that a webhook can have", "leave it out for POST"))
}

fn headers(definition: &WebhookDefinition, credentials: Option<HeaderValue>) -> Result<HeaderMap, DefinitionError> {
    let agent = terms(definition.contract).user_agent.unwrap_or(concat!("gatehook/", env!("CARGO_PKG_VERSION")));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, JSON);
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    if definition.contract == Contract::AnthropicInference {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if let Some(mut credentials) = credentials {
        credentials.set_sensitive(true);
        headers.insert(AUTHORIZATION, credentials);
    }
    let mut configured = HeaderMap::new();
    for (name, value) in &definition.headers {
        let (name, value) = header(name, value)?;
        configured.append(name, value);
    }
    // Configured ones stand in place of ours; one name may stand several times among them.
    for name in configured.keys() {
        headers.remove(name);
    }
    headers.extend(configured);
    Ok(headers)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), DefinitionError> {
    let label = name.escape_debug();
    let parsed = HeaderName::try_from(name.trim())
        .map_err(|_| wrong("headers", &format!("`{label}` is no header name"), "use letters, digits and hyphens"))?;
    if FRAMING.contains(&parsed.as_str()) {
        return Err(wrong("headers", &format!("`{label}` is set by the client itself"), "remove it"));
    }
    let mut value = HeaderValue::try_from(value.trim())
        .map_err(|_| wrong("headers", &format!("`{label}` has a line break or control character"), "remove it"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

fn wrong(field: &'static str, message: &str, help: &str) -> DefinitionError {
    DefinitionError { field, message: message.to_owned(), help: Some(help.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(url: &str) -> WebhookDefinition {
        WebhookDefinition::new(url, Contract::Ollama)
    }

    #[test]
    fn user_information_becomes_basic_authorization() {
        for (url, plain, credentials) in [
            ("http://u:p@h:8/x?y=1#z", "http://h:8/x?y=1", Some("Basic dTpw")),
            ("https://u@h", "https://h/", Some("Basic dTo=")),
            ("https://:p%40@h/", "https://h/", Some("Basic OnBA")),
            ("https://h/", "https://h/", None),
        ] {
            let endpoint = Endpoint::of(&definition(url)).unwrap();
            assert_eq!(endpoint.url(Event::PreInference), plain, "{url}");
            assert_eq!(endpoint.host, "h", "{url}");
            assert_eq!(endpoint.headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap()), credentials, "{url}");
        }
    }

    #[test]
    fn what_is_no_web_address_is_refused_without_quoting_it() {
        for url in ["", "h/x", "ftp://u:secret@h/", "http://", "http://u:secret@/x", "http://[::1", "file:///secret"] {
            let error = Endpoint::of(&definition(url)).map(|_| ()).unwrap_err();
            assert_eq!(error.field, "url", "{url}");
            assert!(!format!("{error:?}").contains("secret"), "{url}");
        }
    }

    #[test]
    fn configured_headers_replace_ours_and_are_sensitive() {
        let pairs = [("user-agent", "mine"), ("X-A", "1"), ("x-a", " 2 "), ("Authorization", "Bearer k")];
        let headers = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let endpoint = Endpoint::of(&WebhookDefinition { headers, ..definition("http://u:p@h/") }).unwrap();
        assert_eq!(endpoint.headers.get(USER_AGENT).unwrap(), "mine");
        assert_eq!(endpoint.headers.get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(endpoint.headers.get_all(AUTHORIZATION).iter().collect::<Vec<_>>(), ["Bearer k"]);
        assert!(endpoint.headers.get(AUTHORIZATION).unwrap().is_sensitive());
        assert_eq!(endpoint.headers.get(CONTENT_TYPE).unwrap(), "application/json");
    }

    #[test]
    fn headers_and_methods_that_break_messages_are_refused_without_their_values() {
        for (name, value) in
            [("Content-Length", "3"), ("transfer-encoding", "x"), ("a b", "s"), ("", "s"), ("X", "s\ns")]
        {
            let headers = vec![(name.to_owned(), value.to_owned())];
            let error =
                Endpoint::of(&WebhookDefinition { headers, ..definition("http://h/") }).map(|_| ()).unwrap_err();
            assert_eq!(error.field, "headers", "{name}");
        }
        for (method, good) in [("put", true), ("", true), ("CONNECT", false), ("A B", false)] {
            let definition = WebhookDefinition { method: method.to_owned(), ..definition("http://h/") };
            assert_eq!(Endpoint::of(&definition).is_ok(), good, "{method}");
        }
    }
}
