//! Browsers: which names a gateway on loopback may be called by, and which pages may call it.
//!
//! A page on the internet can make its own name point to 127.0.0.1 and so have a browser call a local server; the
//! `Host` it sends then gives it away. The origins are Ollama's
//! (<https://github.com/ollama/ollama/blob/main/envconfig/config.go>), the allowed headers those and Anthropic's.

use std::net::IpAddr;

use gatehook_guard::Refusal;
use gatehook_inference::ErrorKind;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

use crate::headers::single;
use crate::upstream::Pattern;

/// Origins that are always let in; `*` stands for a port or a name.
const LOCAL_ORIGINS: [&str; 16] = [
    "http://localhost",
    "https://localhost",
    "http://localhost:*",
    "https://localhost:*",
    "http://127.0.0.1",
    "https://127.0.0.1",
    "http://127.0.0.1:*",
    "https://127.0.0.1:*",
    "http://[::1]",
    "https://[::1]",
    "http://[::1]:*",
    "https://[::1]:*",
    "app://*",
    "file://*",
    "tauri://*",
    "vscode-*",
];

const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS");
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, user-agent, accept, x-requested-with, openai-beta, openai-organization, \
     openai-project, x-api-key, anthropic-version, anthropic-beta, anthropic-dangerous-direct-browser-access, \
     x-gatehook-approval, x-gatehook-session, x-stainless-arch, x-stainless-async, x-stainless-custom-poll-interval, \
     x-stainless-helper-method, x-stainless-lang, x-stainless-os, x-stainless-package-version, \
     x-stainless-poll-helper, x-stainless-retry-count, x-stainless-runtime, x-stainless-runtime-version, \
     x-stainless-timeout",
);
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static("x-ollama-request-id, request-id, x-request-id");

/// Who may call from a browser, and by which names.
#[derive(Debug)]
pub(crate) struct Origins {
    /// Whether the gateway is on loopback, and so only has loopback names.
    loopback: bool,
    hosts: Vec<Box<str>>,
    patterns: Vec<Pattern>,
}

impl Origins {
    pub(crate) fn new(loopback: bool, hosts: &[String], origins: &[String]) -> Self {
        let local = LOCAL_ORIGINS.iter().copied();
        Self {
            loopback,
            hosts: hosts.iter().map(|host| host.as_str().into()).collect(),
            patterns: local.chain(origins.iter().map(String::as_str)).map(Pattern::new).collect(),
        }
    }

    /// The page that calls, if a browser does. It is checked, and so is the name by which the gateway is called.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Refusal> {
        let host = single(headers, HOST).map_err(|_| Refusal::new(ErrorKind::Malformed).saying("Two Host headers."))?;
        if self.loopback && !host.is_some_and(|host| self.is_own(host.as_bytes())) {
            return Err(Refusal::new(ErrorKind::Forbidden)
                .saying("This gateway is called by a loopback name only; list others in listen.hosts."));
        }
        let origin = single(headers, ORIGIN).map_err(|_| Refusal::new(ErrorKind::Malformed).saying("Two Origins."))?;
        match origin {
            None => Ok(None),
            Some(origin) if self.is_allowed(origin) => Ok(Some(origin.clone())),
            Some(_) => Err(Refusal::new(ErrorKind::Forbidden)
                .saying("This origin may not call the gateway; list it in listen.origins or OLLAMA_ORIGINS.")),
        }
    }

    fn is_own(&self, host: &[u8]) -> bool {
        let Ok(host) = std::str::from_utf8(host) else { return false };
        let name = without_port(host);
        is_loopback_name(name) || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn is_allowed(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(|origin| self.patterns.iter().any(|pattern| pattern.fits(origin)))
    }
}

/// `localhost`, `*.localhost`, 127.0.0.0/8 or `[::1]`, with or without a dot at the end.
fn is_loopback_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let bytes = name.as_bytes();
    let ending = bytes.len().checked_sub("localhost".len()).and_then(|start| bytes.split_at_checked(start));
    match ending {
        Some((before, end)) if end.eq_ignore_ascii_case(b"localhost") => before.is_empty() || before.ends_with(b"."),
        _ => {
            let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
            address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
        }
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// Whether a browser asks if it may ask.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The headers of the answer to a preflight.
pub(crate) fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    share(headers, origin);
}

/// Lets the page read a response; what the upstream said about it does not count.
pub(crate) fn share(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.append(VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &'static str, origin: Option<&'static str>) -> Result<Option<HeaderValue>, Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
        }
        Origins::new(true, &["gate.internal".into()], &["https://*.example.org".into()]).check(&headers)
    }

    #[test]
    fn a_gateway_on_loopback_has_loopback_names() {
        for host in
            ["localhost", "LOCALHOST:11435", "127.0.0.1:1", "127.9.9.9", "[::1]:80", "a.localhost", "gate.internal:1"]
        {
            assert!(check(host, None).is_ok(), "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example", "notlocalhost", "localhost.evil.example:11435", "10.0.0.1", ""]
        {
            assert!(check(host, None).is_err(), "{host}");
        }
    }

    #[test]
    fn pages_of_this_machine_and_listed_ones_may_call() {
        for origin in ["http://localhost:3000", "app://obsidian.md", "vscode-webview://x", "https://a.example.org"] {
            assert!(check("localhost", Some(origin)).is_ok(), "{origin}");
        }
        for origin in ["https://evil.example", "http://localhost.evil.example", "null", "https://example.org.evil"] {
            assert!(check("localhost", Some(origin)).is_err(), "{origin}");
        }
    }

    #[test]
    fn beyond_loopback_the_name_does_not_count() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("gate.example"));
        assert!(Origins::new(false, &[], &[]).check(&headers).is_ok());
    }
}
