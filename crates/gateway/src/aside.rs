//! Work that is too much for a network thread.

use std::future::Future;

use gatehook_guard::Refusal;
use gatehook_inference::ErrorKind;

/// Bodies from this size on, in bytes, are read, judged and rewritten off the network threads.
const LARGE: usize = 256 * 1024;

/// Does the work here, or on a thread of its own if it is about many bytes.
pub(crate) async fn aside<T: Send + 'static>(
    size: usize,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Refusal> {
    if size < LARGE {
        return Ok(work.await);
    }
    let done = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map(|runtime| runtime.block_on(work))
    });
    let failed = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, "what is large could not be judged");
        Refusal::new(ErrorKind::Internal)
    };
    done.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
}
