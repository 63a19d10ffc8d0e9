//! Where a streamed answer comes from, as its gate reads it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

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
    Packed(Encoding, Body),
    /// At its end, or not wanted any more.
    Gone,
}

/// So many frames are read one by one at first. What a client waits for is most often in the first three; those behind
/// them, though they have come too, need not be gathered before it leaves.
const FIRST: usize = 12;

impl Source {
    pub(crate) fn new(encoding: Encoding, mut body: Body) -> Self {
        match encoding {
            Encoding::Identity => {
                body.keep_apart(FIRST);
                Self::Plain(body)
            }
            encoding => Self::Packed(encoding, body),
        }
    }

    /// Something has left: from now on what is there together is read together.
    pub(crate) fn has_begun(&mut self) {
        if let Self::Plain(body) = self {
            body.keep_apart(0);
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    /// What comes next. Dropped while it waits it loses nothing, unless the bytes are compressed.
    pub(crate) async fn next(&mut self, shared: &Arc<Shared>, limits: &Limits) -> Result<Option<Bytes>, Refusal> {
        if let Self::Packed(encoding, body) = self {
            let (encoding, body) = (*encoding, std::mem::take(body));
            let whole = gather::answer(shared, limits, body).await?;
            let plain = whole.unpacked(encoding, limits.response_body, limits.bodies_in_flight).await;
            // From here on the gate is who holds it.
            *self = Self::Plain(Body::Whole(plain.map_err(|error| gather::unread_answer(&error))?.bytes));
        }
        let Self::Plain(body) = self else { return Ok(None) };
        loop {
            match poll_fn(|cx| pin!(&mut *body).poll_frame(cx)).await {
                // Trailers say nothing to a hook.
                Some(frame) => match frame.map_err(gather::broken)?.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    _ => {}
                },
                None => {
                    *self = Self::Gone;
                    return Ok(None);
                }
            }
        }
    }
}
