use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;

use super::pool::{Connection, Place, Pool};

/// An error of a request's body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What is sent.
pub enum RequestBody {
    /// Bytes that are there.
    Full(Full<Bytes>),
    /// Bytes as they come.
    Stream(UnsyncBoxBody<Bytes, BoxError>),
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self::Full(Full::new(bytes))
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Full(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Self::Stream(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(body) => body.is_end_stream(),
            Self::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(body) => body.size_hint(),
            Self::Stream(body) => body.size_hint(),
        }
    }
}

/// A response's body. Read to its end, it gives its connection back; dropped before, it closes it.
pub struct Body {
    incoming: Incoming,
    lease: Option<Lease>,
}

struct Lease {
    connection: Connection,
    place: Place,
    pool: Weak<Pool>,
}

/// Why a body could not be collected.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is longer than asked for.
    #[error("the body is longer than {limit} bytes")]
    TooLarge {
        /// The bound, in bytes.
        limit: usize,
    },
    /// The connection broke.
    #[error("the body broke off: {0}")]
    Broken(#[from] hyper::Error),
}

impl Body {
    pub(super) fn new(incoming: Incoming, connection: Connection, place: Place, pool: &Arc<Pool>) -> Self {
        let mut body = Self { incoming, lease: Some(Lease { connection, place, pool: Arc::downgrade(pool) }) };
        if body.incoming.is_end_stream() {
            body.give_back();
        }
        body
    }

    /// The whole body, if it has at most `limit` bytes. Not more than that is read into memory, whatever the peer
    /// announces or sends. Cancel safe: dropped, the connection is closed.
    pub async fn collect_within(mut self, limit: usize) -> Result<Bytes, BodyError> {
        if self.size_hint().lower() > limit as u64 {
            return Err(BodyError::TooLarge { limit });
        }
        let mut whole = Bytes::new();
        let mut joined = BytesMut::new();
        while let Some(frame) = self.frame().await.transpose()? {
            let Ok(data) = frame.into_data() else { continue };
            if whole.len() + joined.len() + data.len() > limit {
                return Err(BodyError::TooLarge { limit });
            }
            if whole.is_empty() && joined.is_empty() {
                whole = data; // A body of one frame is not copied.
            } else {
                joined.extend_from_slice(&std::mem::take(&mut whole));
                joined.extend_from_slice(&data);
            }
        }
        Ok(if joined.is_empty() { whole } else { joined.freeze() })
    }

    fn give_back(&mut self) {
        if let Some(Lease { connection, place, pool }) = self.lease.take()
            && let Some(pool) = pool.upgrade()
        {
            pool.put(place, connection);
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(context);
        match &polled {
            Poll::Ready(None) => self.give_back(),
            Poll::Ready(Some(Err(_))) => self.lease = None,
            // The last frame of a known length: many readers stop here.
            Poll::Ready(Some(Ok(_))) if self.incoming.is_end_stream() => self.give_back(),
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
