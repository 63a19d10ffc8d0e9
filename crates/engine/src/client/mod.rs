//! The one HTTP client for everything that goes out: webhooks, and the gateway's upstreams.
//!
//! HTTP/1.1 over TCP or TLS, with kept-alive connections. It follows no redirect, honours no proxy variable, sends no
//! cookie, and connects only to addresses that its [`Reach`] allows; what is checked is what is connected to.
//!
//! A connection belongs to the runtime that opened it, and only requests on that runtime use it again: where each core
//! runs its own runtime, no request crosses cores, and a runtime that ends takes its connections with it. One client
//! may therefore be shared by all runtimes, or be made for each (it costs one allocation until it connects).

mod body;
mod connect;
mod error;
mod pool;
#[cfg(test)]
pub(crate) mod raw_server;
mod reach;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use rustls::ClientConfig;

pub use self::body::{Body, BodyError, BoxError, RequestBody};
use self::connect::{Connector, Origin};
pub use self::error::ClientError;
use self::pool::{Place, Pool};
pub use self::reach::Reach;

/// Sends requests. A clone shares its connections.
#[derive(Clone)]
pub struct Client {
    connector: Arc<Connector>,
    pool: Arc<Pool>,
}

impl Client {
    /// A client that trusts the system's certificates; they are read when they are first needed.
    pub fn new(reach: Reach) -> Self {
        Self { connector: Arc::new(Connector::new(reach, None)), pool: Arc::default() }
    }

    /// A client with its own idea of whom to trust. `config` should offer no protocol but HTTP/1.1.
    pub fn with_tls(reach: Reach, config: Arc<ClientConfig>) -> Self {
        Self { connector: Arc::new(Connector::new(reach, Some(config))), pool: Arc::default() }
    }

    /// Sends `request`, whose URL must be absolute, and gives the response as soon as its head is there. User
    /// information in the URL is left out.
    ///
    /// Resolving, connecting and the TLS handshake share five seconds. For all else the caller sets the deadline: this
    /// is cancel safe, and a dropped exchange closes its connection. A kept connection that turns out to be closed
    /// before the request left is replaced by another; nothing else is tried twice.
    pub async fn send(&self, mut request: Request<RequestBody>) -> Result<Response<Body>, ClientError> {
        let origin = Origin::of(request.uri())?;
        address(&mut request, &origin)?;
        let place = Place::here(origin);
        while let Some(mut kept) = self.pool.take(&place) {
            if !kept.is_ready().await {
                continue;
            }
            match kept.exchange(request).await {
                Ok((response, connection)) => return Ok(self.answer(response, connection, place)),
                Err(mut broken) => match broken.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(ClientError::exchange(&place.origin, broken.into_error())),
                },
            }
        }
        let fresh = self.connector.connect(&place.origin).await?;
        match fresh.exchange(request).await {
            Ok((response, connection)) => Ok(self.answer(response, connection, place)),
            Err(broken) => Err(ClientError::exchange(&place.origin, broken.into_error())),
        }
    }

    fn answer(
        &self,
        response: Response<hyper::body::Incoming>,
        connection: pool::Connection,
        place: Place,
    ) -> Response<Body> {
        response.map(|incoming| Body::new(incoming, connection, place, &self.pool))
    }
}

/// Gives the request the form it has on the wire: a path, and a `Host`.
fn address(request: &mut Request<RequestBody>, origin: &Origin) -> Result<(), ClientError> {
    let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    if !request.headers().contains_key(HOST) {
        let host = HeaderValue::from_str(origin.authority()).map_err(|_| ClientError::InvalidUrl)?;
        request.headers_mut().insert(HOST, host);
    }
    Ok(())
}
