//! How the gateway says no: a response in the shape that the caller's own library reads.

use gatehook_guard::Refusal;
use gatehook_inference::{ErrorKind, Wire};
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use crate::body::Body;
use crate::request_id::RequestId;

/// Read by OpenAI's and Anthropic's libraries, which else send a refused request again.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The response to a request that is refused; `methods` are those that its path has, where that is the reason.
pub(crate) fn response(wire: Wire, refusal: &Refusal, id: RequestId, methods: &str) -> Response<Body> {
    let body = refusal.body(wire, &id.to_string());
    let mut response = Response::new(Body::Whole(body.into()));
    *response.status_mut() = StatusCode::from_u16(refusal.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if !may_be_sent_again(refusal) {
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    match refusal.kind {
        ErrorKind::Unauthorized => _ = headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
        ErrorKind::MethodNotAllowed => headers.extend(HeaderValue::from_str(methods).ok().map(|allow| (ALLOW, allow))),
        // What is left of the body is not read.
        ErrorKind::TooLarge | ErrorKind::RequestTimeout => {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
    response
}

/// Whether the same request may succeed later: an upstream that fails, a gateway without room.
fn may_be_sent_again(refusal: &Refusal) -> bool {
    refusal.hook.is_none()
        && matches!(refusal.kind, ErrorKind::BadUpstream | ErrorKind::UpstreamTimeout | ErrorKind::Overloaded)
}
