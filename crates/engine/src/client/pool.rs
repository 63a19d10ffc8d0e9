use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::SendRequest;
use tokio::runtime;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::RequestBody;
use super::connect::Origin;

/// Idle connections kept for one origin on one runtime.
const MAX_IDLE: usize = 32;

/// How long a connection may be idle.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a connection may take to be ready after a response's end. One that takes longer still sends its request.
const SETTLE: Duration = Duration::from_millis(10);

/// Origins that nobody asks for any more are looked through at most once in this time.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(10);

/// An open connection, with the task that drives it. Dropped, it is closed.
pub(super) struct Connection {
    sender: SendRequest<RequestBody>,
    _driver: AbortOnDropHandle<()>,
}

impl Connection {
    pub(super) fn new(sender: SendRequest<RequestBody>, driver: tokio::task::JoinHandle<()>) -> Self {
        Self { sender, _driver: AbortOnDropHandle::new(driver) }
    }

    /// Waits until the end of its last exchange is dealt with; false where it is of no use any more.
    pub(super) async fn is_ready(&mut self) -> bool {
        self.sender.is_ready() || timeout(SETTLE, self.sender.ready()).await.is_ok_and(|ready| ready.is_ok())
    }

    /// Sends a request and waits for the response's head. A request that did not leave comes back with the error.
    pub(super) async fn exchange(
        mut self,
        request: Request<RequestBody>,
    ) -> Result<(Response<Incoming>, Self), TrySendError<Request<RequestBody>>> {
        let response = self.sender.try_send_request(request).await?;
        Ok((response, self))
    }
}

/// Where a connection may be used: for one origin, on one runtime.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    runtime: runtime::Id,
    pub(super) origin: Origin,
}

impl Place {
    /// Must be called on a runtime.
    pub(super) fn here(origin: Origin) -> Self {
        Self { runtime: runtime::Handle::current().id(), origin }
    }
}

/// Idle connections.
#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The one used last is the last.
    connections: HashMap<Place, Vec<(Connection, Instant)>>,
    swept: Option<Instant>,
}

impl Pool {
    /// The connection that was used last, and is still open.
    pub(super) fn take(&self, place: &Place) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.connections.get_mut(place)?;
        forget_closed(connections, Instant::now());
        let ready = connections.iter().rposition(|(connection, _)| connection.sender.is_ready());
        match ready {
            Some(place) => Some(connections.remove(place).0),
            None => connections.pop().map(|(connection, _)| connection),
        }
    }

    /// Keeps a connection whose exchange is over.
    pub(super) fn put(&self, place: Place, connection: Connection) {
        let now = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.swept.is_none_or(|swept| now - swept > BETWEEN_SWEEPS) {
            idle.swept = Some(now);
            idle.connections.retain(|_, connections| {
                forget_closed(connections, now);
                !connections.is_empty()
            });
        }
        let connections = idle.connections.entry(place).or_default();
        if connections.len() < MAX_IDLE && !connection.sender.is_closed() {
            connections.push((connection, now));
        }
    }
}

fn forget_closed(connections: &mut Vec<(Connection, Instant)>, now: Instant) {
    connections.retain(|(connection, since)| !connection.sender.is_closed() && now - *since < IDLE_TIMEOUT);
}
