//! Where a streamed answer comes from, as its gate reads it.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use gatehook_guard::Refusal;
use hyper::body::{Body as _, Bytes};

use crate::body::Body;
use crate::config::Limits;
use crate::encoding::Encoding;
use crate::gather;
use crate::state::Shared;

/// A stream's bytes. Read to its end an upstream's connection goes back to its pool; dropped before, it is closed, and
/// so the upstream's work is cancelled.
pub(crate) enum Source {
    /// As they come.
    Plain(Body),
    /// Compressed, although nobody has asked for that: read whole first, within the bounds of an answer that is whole.
    Packed(Pin<Box<dyn Future<Output = Result<Bytes, Refusal>>>>),
    /// At its end, or not wanted any more.
    Gone,
}

/// So many frames are read one by one at first. What a client waits for is most often in the first three; those behind
/// them, though they have come too, need not be gathered before it leaves.
const FIRST: usize = 12;

impl Source {
    pub(crate) fn new(encoding: Encoding, mut body: Body, shared: &Arc<Shared>, limits: &Limits) -> Self {
        if encoding == Encoding::Identity {
            body.keep_apart(FIRST);
            return Self::Plain(body);
        }
        let (shared, limits) = (shared.clone(), limits.clone());
        Self::Packed(Box::pin(async move {
            let whole = gather::answer(&shared, &limits, body).await?;
            let plain = whole.unpacked(encoding, limits.response_body, limits.bodies_in_flight).await;
            // From here on the gate is who holds it.
            plain.map(|whole| whole.bytes).map_err(|error| gather::unread_answer(&error))
        }))
    }

    /// Something has left: from now on what is there together is read together.
    pub(crate) fn has_begun(&mut self) {
        if let Self::Plain(body) = self {
            body.keep_apart(0);
        }
    }

    /// What comes next; none at the end, and from then on.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Refusal>> {
        loop {
            match self {
                Self::Plain(body) => match ready!(pin!(body).poll_frame(cx)) {
                    // Trailers say nothing to a hook.
                    Some(frame) => match frame.map_err(gather::broken)?.into_data() {
                        Ok(data) if !data.is_empty() => return Poll::Ready(Ok(Some(data))),
                        _ => {}
                    },
                    None => *self = Self::Gone,
                },
                Self::Packed(plain) => {
                    let read = ready!(plain.as_mut().poll(cx));
                    *self = Self::Gone;
                    *self = Self::Plain(Body::Whole(read?));
                }
                Self::Gone => return Poll::Ready(Ok(None)),
            }
        }
    }
}
