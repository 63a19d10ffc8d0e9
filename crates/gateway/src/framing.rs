//! Whether an answer is a stream.

use gatehook_inference::Framing;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// Whether an answer comes in pieces, and how they are told apart.
pub(crate) fn framing(headers: &HeaderMap) -> Option<Framing> {
    Framing::named(headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn typed(kind: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))])
    }

    #[test]
    fn only_the_types_of_streams_are_streams() {
        for kind in ["text/event-stream", "Text/Event-Stream; charset=utf-8"] {
            assert_eq!(framing(&typed(kind)), Some(Framing::Events), "{kind}");
        }
        assert_eq!(framing(&typed("application/x-ndjson")), Some(Framing::Lines));
        assert_eq!(framing(&typed("application/json")), None);
        assert_eq!(framing(&HeaderMap::new()), None);
    }
}
