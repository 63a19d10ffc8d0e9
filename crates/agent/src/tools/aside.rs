//! Work that blocks, on a thread that may, for no longer than it may.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::workspace::{Refused, Tried};
use super::{ToolErrorKind, ToolOutput};

/// How long work that is told to stop is waited for: it may be past the point of no return, and then says what it did.
const GRACE: Duration = Duration::from_secs(1);

/// Tells work that blocks when it is to end. It looks at this between its steps.
#[derive(Debug, Clone)]
pub(super) struct Stop {
    is_cancelled: Arc<AtomicBool>,
    deadline: Instant,
    limit: Duration,
}

impl Stop {
    pub(super) fn after(limit: Duration) -> Self {
        Self { is_cancelled: Arc::default(), deadline: Instant::now() + limit, limit }
    }

    /// Why it is to end now.
    pub(super) fn check(&self) -> Tried<()> {
        if Instant::now() >= self.deadline {
            return Err(late(self.limit));
        }
        if self.is_cancelled.load(Ordering::Acquire) {
            return Err(Refused::new(ToolErrorKind::Cancelled, "cancelled"));
        }
        Ok(())
    }
}

/// Reads for as long as it may.
pub(super) struct Stopped<'a, R> {
    pub(super) from: R,
    pub(super) stop: &'a Stop,
}

impl<R: Read> Read for Stopped<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.stop.check() {
            Ok(()) => self.from.read(into),
            Err(refused) => Err(io::Error::other(refused.text)),
        }
    }
}

impl Stop {
    /// Why reading `name` has failed.
    pub(super) fn broken(&self, name: &str, error: &io::Error) -> Refused {
        self.check().err().unwrap_or_else(|| Refused::new(ToolErrorKind::Other, format!("{name}: {error}")))
    }
}

fn late(limit: Duration) -> Refused {
    Refused::new(ToolErrorKind::Timeout, format!("it took longer than {} s: ask for less", limit.as_secs()))
}

/// Cancels the work when nobody waits for it any more.
struct Cancels(Stop);

impl Drop for Cancels {
    fn drop(&mut self) {
        self.0.is_cancelled.store(true, Ordering::Release);
    }
}

/// Does `work` on a thread that may block. Cancel safe: dropped, the work ends at its next step.
pub(super) async fn aside(
    cancel: &CancellationToken,
    limit: Duration,
    work: impl FnOnce(&Stop) -> Tried<ToolOutput> + Send + 'static,
) -> ToolOutput {
    let stop = Stop::after(limit);
    let on_drop = Cancels(stop.clone());
    let mut task = tokio::task::spawn_blocking(move || work(&stop).unwrap_or_else(ToolOutput::from));
    let stopped = tokio::select! {
        biased;
        done = &mut task => return done.unwrap_or_else(|_| panicked()),
        () = cancel.cancelled() => Refused::new(ToolErrorKind::Cancelled, "cancelled"),
        () = tokio::time::sleep(limit) => late(limit),
    };
    drop(on_drop);
    match tokio::time::timeout(GRACE, task).await {
        Ok(done) => done.unwrap_or_else(|_| panicked()),
        // It hangs in the file system.
        Err(_) => stopped.into(),
    }
}

fn panicked() -> ToolOutput {
    ToolOutput::error(ToolErrorKind::Other, "the tool has failed: its thread panicked")
}
