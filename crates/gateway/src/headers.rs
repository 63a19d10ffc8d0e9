//! Which headers pass, and which are the gateway's own.

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, ORIGIN,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::UpstreamKind;
use crate::upstream::{Http, Upstream};

/// The key of Anthropic's clients.
pub(crate) const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// An approval that a client presents.
pub(crate) const APPROVAL: HeaderName = HeaderName::from_static("x-gatehook-approval");
/// The session that a client names.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("x-gatehook-session");

/// Headers of one hop (RFC 9110, 7.6.1), which say nothing to the next.
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// What `Connection` cannot take away: what frames, authorises or describes the body. Without its encoding an upstream
/// would read another body than hooks did.
const KEPT: [HeaderName; 6] = [HOST, CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_TYPE, AUTHORIZATION, X_API_KEY];

/// Headers for the gateway alone, or by which a request would be another one than the path table has seen.
const NOT_FORWARDED: [HeaderName; 7] = [
    EXPECT,
    APPROVAL,
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-method-override"),
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-rewrite-url"),
];

/// What an upstream says about browsers.
const CROSS_ORIGIN: [HeaderName; 5] = [
    http::header::ACCESS_CONTROL_ALLOW_ORIGIN,
    http::header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
    http::header::ACCESS_CONTROL_ALLOW_HEADERS,
    http::header::ACCESS_CONTROL_ALLOW_METHODS,
    http::header::ACCESS_CONTROL_EXPOSE_HEADERS,
];

/// Digests over a body, which a changed body no longer fits.
const DIGESTS: [HeaderName; 4] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-md5"),
];

/// Drops the headers of this hop, and those that `Connection` names.
pub(crate) fn drop_hop_by_hop(headers: &mut HeaderMap) {
    if let Some(connection) = headers.get(CONNECTION)
        && !matches!(connection.as_bytes(), b"keep-alive" | b"Keep-Alive" | b"close")
    {
        let named: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| name.trim().parse().ok())
            .filter(|name| !KEPT.contains(name))
            .collect();
        for name in named {
            headers.remove(name);
        }
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Makes a client's headers those of the request to `http`.
pub(crate) fn for_upstream(headers: &mut HeaderMap, upstream: &Upstream, http: &Http, via: &HeaderValue) {
    drop_hop_by_hop(headers);
    for name in &NOT_FORWARDED {
        headers.remove(name);
    }
    headers.insert(HOST, http.host.clone());
    headers.append(VIA, via.clone());
    // Origins are checked here; the upstream knows only this gateway.
    headers.remove(ORIGIN);
    if let Some(credential) = &http.credential {
        headers.remove(AUTHORIZATION);
        headers.remove(X_API_KEY);
        let name = match upstream.kind {
            UpstreamKind::Anthropic => X_API_KEY,
            UpstreamKind::Ollama | UpstreamKind::OpenAi => AUTHORIZATION,
        };
        headers.insert(name, credential.clone());
    }
}

/// Makes an upstream's headers those of the response to the client. For a browser the gateway speaks itself.
pub(crate) fn for_client(headers: &mut HeaderMap, browser: bool) {
    drop_hop_by_hop(headers);
    if browser {
        for name in CROSS_ORIGIN {
            headers.remove(name);
        }
    }
}

/// Asks for an answer that hooks can read.
pub(crate) fn ask_for_identity(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// The body is now these bytes and no others.
pub(crate) fn replace_body(headers: &mut HeaderMap, length: usize) {
    for name in &DIGESTS {
        headers.remove(name);
    }
    headers.insert(CONTENT_LENGTH, length.into());
}

/// The body is now a stream of other bytes, of nobody knows what length.
///
/// The headers may wait for long with its first text. They are copied, because values are slices of the buffer that the
/// connection has read them into, of 8 KiB and more.
pub(crate) fn stream_body(headers: &mut HeaderMap) {
    for value in headers.values_mut() {
        // What was a value is one.
        if let Ok(copy) = HeaderValue::from_bytes(value.as_bytes()) {
            *value = copy;
        }
    }
    for name in &DIGESTS {
        headers.remove(name);
    }
    headers.remove(CONTENT_LENGTH);
    headers.remove(CONTENT_ENCODING);
}

/// The one value of a header; `Err` where it stands more than once.
pub(crate) fn single(headers: &HeaderMap, name: HeaderName) -> Result<Option<&HeaderValue>, HeaderName> {
    let mut values = headers.get_all(&name).iter();
    let first = values.next();
    if values.next().is_some() { Err(name) } else { Ok(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn what_connection_names_does_not_pass() {
        let mut map = headers(&[("connection", "close, X-Private"), ("x-private", "1"), ("x-public", "2")]);
        drop_hop_by_hop(&mut map);
        assert_eq!(map, headers(&[("x-public", "2")]));
    }

    #[test]
    fn connection_cannot_take_away_what_frames_authorises_or_describes_the_body() {
        let body = [("content-length", "3"), ("content-encoding", "br"), ("content-type", "application/json")];
        let mut map = headers(&body);
        map.insert(
            CONNECTION,
            HeaderValue::from_static("content-length, authorization, Content-Encoding, content-type"),
        );
        drop_hop_by_hop(&mut map);
        assert_eq!(map, headers(&body));
    }

    #[test]
    fn a_changed_body_loses_its_digests() {
        let mut map = headers(&[("content-digest", "sha-256=:x:"), ("content-length", "3")]);
        replace_body(&mut map, 5);
        assert_eq!(map, headers(&[("content-length", "5")]));
    }
}
