//! Work that is too much for a network thread.

use std::future::Future;
use std::pin::Pin;

use gatehook_guard::{Refusal, Work};
use gatehook_inference::ErrorKind;

/// Bodies from this size on, in bytes, are read, judged and rewritten off the network threads.
pub(crate) const LARGE: usize = 256 * 1024;

/// Does the work here, or on a thread of its own if it is about many bytes.
///
/// The work of hooks is a future of several KiB: in a box it is not copied with each future around it.
pub(crate) async fn aside<T: Send + 'static>(
    size: usize,
    work: Pin<Box<impl Future<Output = T> + Send + 'static>>,
) -> Result<T, Refusal> {
    if size < LARGE {
        return Ok(work.await);
    }
    on_a_thread(work).await.ok_or_else(|| Refusal::new(ErrorKind::Internal))
}

/// Does the work on a thread of its own.
pub(crate) fn elsewhere(work: Work) -> Work {
    Box::pin(async move {
        on_a_thread(work).await;
    })
}

/// Nothing comes of it where the work, or the system, breaks down.
async fn on_a_thread<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    let done = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map(|runtime| runtime.block_on(work))
    });
    let failed = |error: &dyn std::fmt::Display| tracing::error!(%error, "what is large could not be judged");
    let done = done.await.inspect_err(|error| failed(error)).ok()?;
    done.inspect_err(|error| failed(error)).ok()
}
