//! A body that must be there as a whole: its frames, and a bound.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use gatehook_guard::Refusal;
use gatehook_inference::ErrorKind;
use http_body::{Body as _, Frame};
use hyper::body::{Bytes, Incoming};
use tokio::time::timeout;

use crate::body::Body;
use crate::config::Limits;
use crate::encoding::{Encoding, EncodingError};
use crate::forward::Broken;
use crate::state::{Held, Shared};

/// A client's body, whole.
pub(crate) async fn request(shared: &Arc<Shared>, limits: &Limits, body: Incoming) -> Result<Whole, Refusal> {
    let too_large = || Refusal::new(ErrorKind::TooLarge);
    if body.size_hint().lower() > limits.request_body as u64 {
        return Err(too_large());
    }
    let mut body = pin!(body);
    let mut gathered = Gathered::new(shared.clone(), limits.request_body, limits.bodies_in_flight);
    loop {
        let frame = timeout(limits.idle, poll_fn(|cx| body.as_mut().poll_frame(cx))).await;
        let frame = frame.map_err(|_| Refusal::new(ErrorKind::RequestTimeout))?.transpose();
        match frame.map_err(|error| Refusal::new(ErrorKind::Malformed).saying(error.to_string()))? {
            Some(frame) => gathered.push(frame, too_large)?,
            None => return Ok(gathered.finish()),
        }
    }
}

/// Says that an answer is larger than a hook may be shown.
pub(crate) fn too_large(limits: &Limits) -> Refusal {
    let text = format!("The answer is over {} bytes, more than a hook can be shown.", limits.response_body);
    Refusal::new(ErrorKind::BadUpstream).saying(text)
}

/// An answer's body, whole.
pub(crate) async fn answer(shared: &Arc<Shared>, limits: &Limits, body: Body) -> Result<Whole, Refusal> {
    let too_large = || too_large(limits);
    if body.size_hint().lower() > limits.response_body as u64 {
        return Err(too_large());
    }
    let mut body = pin!(body);
    let mut gathered = Gathered::new(shared.clone(), limits.response_body, limits.bodies_in_flight);
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        gathered.push(frame.map_err(broken)?, too_large)?;
    }
    Ok(gathered.finish())
}

/// What an answer that ends before its time means to the client.
pub(crate) fn broken(broken: Broken) -> Refusal {
    Refusal::new(match broken {
        Broken::Silent => ErrorKind::UpstreamTimeout,
        Broken::Off(_) | Broken::Scripted | Broken::Unguarded => ErrorKind::BadUpstream,
    })
}

/// What is smaller is copied before it is kept.
const SMALL: usize = 4 * 1024;

/// Bytes that are to be kept for a while. What a connection has read is a slice of its buffer, which has 8 KiB and more:
/// little of it would keep all of it, and the connection would need another one.
pub(crate) fn kept(bytes: Bytes) -> Bytes {
    if bytes.len() < SMALL { Bytes::copy_from_slice(&bytes) } else { bytes }
}

/// Frames that came so far. A large body of one frame is never copied.
struct Gathered {
    only: Bytes,
    all: Vec<u8>,
    limit: usize,
    held: Held,
    in_flight: usize,
}

impl Gathered {
    fn new(shared: Arc<Shared>, limit: usize, in_flight: usize) -> Self {
        Self { only: Bytes::new(), all: Vec::new(), limit, held: Held::none(shared), in_flight }
    }

    /// Adds a frame; trailers say nothing to a hook.
    fn push(&mut self, frame: Frame<Bytes>, too_large: impl Fn() -> Refusal) -> Result<(), Refusal> {
        let Ok(data) = frame.into_data() else { return Ok(()) };
        let before = self.only.len() + self.all.len();
        if before + data.len() > self.limit {
            return Err(too_large());
        }
        self.held.grow(data.len(), self.in_flight)?;
        if before == 0 {
            self.only = data;
            return Ok(());
        }
        if self.all.is_empty() {
            self.all.extend_from_slice(&std::mem::take(&mut self.only));
        }
        self.all.extend_from_slice(&data);
        Ok(())
    }

    fn finish(self) -> Whole {
        Whole { bytes: if self.all.is_empty() { kept(self.only) } else { self.all.into() }, held: self.held }
    }
}

/// A whole body, and the room it takes among the bodies in flight.
pub(crate) struct Whole {
    pub(crate) bytes: Bytes,
    pub(crate) held: Held,
}

impl Whole {
    /// The body as hooks read it. Decompressing is no work for a network thread.
    pub(crate) async fn unpacked(
        self,
        encoding: Encoding,
        limit: usize,
        in_flight: usize,
    ) -> Result<Self, EncodingError> {
        if encoding == Encoding::Identity {
            return Ok(self);
        }
        let Whole { bytes, mut held } = self;
        let decoded = tokio::task::spawn_blocking(move || {
            let bytes = encoding.decode(bytes, limit, &mut |more| held.grow(more, in_flight).is_ok())?;
            Ok(Whole { bytes, held })
        });
        decoded.await.unwrap_or(Err(EncodingError::Broken))
    }
}

/// What is wrong with a compressed request.
pub(crate) fn unread_request(error: &EncodingError) -> Refusal {
    unread(
        error,
        match error {
            EncodingError::Unknown => ErrorKind::UnsupportedMedia,
            EncodingError::Broken | EncodingError::NoRoom => ErrorKind::Malformed,
            EncodingError::TooLarge => ErrorKind::TooLarge,
        },
    )
}

/// What is wrong with a compressed answer.
pub(crate) fn unread_answer(error: &EncodingError) -> Refusal {
    unread(error, ErrorKind::BadUpstream)
}

fn unread(error: &EncodingError, kind: ErrorKind) -> Refusal {
    let kind = if matches!(error, EncodingError::NoRoom) { ErrorKind::Overloaded } else { kind };
    Refusal::new(kind).saying(error.to_string())
}
