use std::io;

use super::connect::Origin;

/// Why there is no response. Messages name the host alone, never the rest of the URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL is not absolute, or of another scheme.
    #[error("the URL is no http or https address")]
    InvalidUrl,
    /// Nobody knows the host.
    #[error("{host} has no address: {source}")]
    Resolve {
        /// The host.
        host: String,
        /// The resolver's answer.
        source: io::Error,
    },
    /// All of its addresses are ones that must not be called.
    #[error("{host} is at an address that must not be called")]
    Forbidden {
        /// The host.
        host: String,
    },
    /// No address of it takes a connection.
    #[error("{host} takes no connection: {source}")]
    Connect {
        /// The host.
        host: String,
        /// What the last address answered.
        source: io::Error,
    },
    /// Resolving, connecting and the TLS handshake took too long.
    #[error("{host} took no connection in time")]
    ConnectTimeout {
        /// The host.
        host: String,
    },
    /// The TLS handshake failed.
    #[error("no TLS with {host}: {source}")]
    Tls {
        /// The host.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// The connection broke before the response's head was there.
    #[error("{host} broke off: {source}")]
    Exchange {
        /// The host.
        host: String,
        /// Where it broke.
        source: hyper::Error,
    },
}

impl ClientError {
    pub(super) fn exchange(origin: &Origin, source: hyper::Error) -> Self {
        Self::Exchange { host: origin.host().to_owned(), source }
    }

    /// Whether no connection came about, and another try may be made at once.
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Resolve { .. } | Self::Connect { .. })
    }
}
