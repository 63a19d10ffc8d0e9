//! Leading a session until it is over or somebody stops it; nothing that it started is left behind.

use std::pin::pin;
use std::time::Duration;

use gatehook_engine::handlers::command;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// How long what hooks left behind may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long hooks may still hear that all is over, once somebody stopped it.
const GRACE: Duration = Duration::from_secs(15);

/// Does `work` on a runtime of its own; `None` where it was told to stop and did not end in time, or was told twice.
///
/// The first Ctrl-C or SIGTERM cancels the token; what works on it ends its turn by itself.
pub(crate) fn lead<T>(work: impl AsyncFnOnce(&CancellationToken) -> T) -> Result<Option<T>, Failure> {
    Ok(alone(until_told(work))??)
}

/// Does `work` on a runtime of its own, whoever hears signals.
pub(crate) fn alone<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    // What a tool or a hook leaves behind outside of its group becomes a child of this process, and is ended.
    let _ = command::adopt_orphans();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    // A file that is looked at on another thread is not waited for.
    runtime.shutdown_background();
    command::end_leftovers(PATIENCE);
    Ok(done)
}

async fn until_told<T>(work: impl AsyncFnOnce(&CancellationToken) -> T) -> std::io::Result<Option<T>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let cancel = CancellationToken::new();
    let mut told = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let mut work = pin!(work(&cancel));
    tokio::select! {
        done = &mut work => return Ok(Some(done)),
        () = told() => cancel.cancel(),
    }
    tokio::select! {
        done = &mut work => Ok(Some(done)),
        () = told() => Ok(None),
        () = tokio::time::sleep(GRACE) => Ok(None),
    }
}
