//! The identity of one exchange: a UUID, on every response and in every hook's input.

use std::sync::Arc;

use http::HeaderValue;
use uuid::Uuid;

/// The header that carries it.
pub(crate) const HEADER: http::HeaderName = http::HeaderName::from_static("x-ollama-request-id");

/// A version 4 UUID. It names, it does not protect: a fast generator is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId(Uuid);

impl RequestId {
    pub(crate) fn new() -> Self {
        Self(uuid::Builder::from_random_bytes(fastrand::u128(..).to_le_bytes()).into_uuid())
    }

    pub(crate) fn header(self) -> HeaderValue {
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        let text = self.0.hyphenated().encode_lower(&mut text);
        HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("-"))
    }

    pub(crate) fn text(self) -> Arc<str> {
        self.0.to_string().into()
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}
