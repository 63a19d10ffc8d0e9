//! How the frames of a stream are told apart.

use gatehook_inference::{Route, Wire};
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// How a stream is cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// JSON in lines.
    Lines,
    /// Server-sent events.
    Events,
}

/// The types of streams.
const FRAMINGS: [(&str, Framing); 4] = [
    ("text/event-stream", Framing::Events),
    ("application/x-ndjson", Framing::Lines),
    ("application/ndjson", Framing::Lines),
    ("application/jsonl", Framing::Lines),
];

impl Framing {
    /// That of a route's streams.
    pub(crate) fn of(route: Route) -> Self {
        if route.wire() == Wire::Ollama { Self::Lines } else { Self::Events }
    }

    /// Whether an answer comes in pieces, and how they are told apart.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        FRAMINGS.iter().find(|(name, _)| name.eq_ignore_ascii_case(kind)).map(|(_, framing)| *framing)
    }
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
            assert_eq!(Framing::read(&typed(kind)), Some(Framing::Events), "{kind}");
        }
        assert_eq!(Framing::read(&typed("application/x-ndjson")), Some(Framing::Lines));
        assert_eq!(Framing::read(&typed("application/json")), None);
        assert_eq!(Framing::read(&HeaderMap::new()), None);
    }
}
