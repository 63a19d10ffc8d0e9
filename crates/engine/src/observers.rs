//! Hooks that nobody waits for: a bounded queue, and one thread that works it off. A thread of the executor's own,
//! because the runtime that an event is dispatched on may end before the executor does.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gatehook_events::{Event, Input};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::compiled::Hook;
use crate::dispatch::guarded;
use crate::handler::{HookCall, Reply};
use crate::shown::Shown;

/// How many of them run side by side.
const WIDTH: usize = 4;

/// One event for one observer.
struct Sighting {
    hook: Arc<Hook>,
    event: Event,
    input: Input,
    cwd: Arc<str>,
}

/// The queue of an executor. Its thread starts with the first event.
pub(crate) struct Observers {
    bound: NonZeroUsize,
    dropped: AtomicU64,
    cancel: CancellationToken,
    /// Nobody works any more, and nobody will.
    ended: CancellationToken,
    state: Mutex<State>,
}

enum State {
    Idle,
    Working { queue: mpsc::Sender<Sighting> },
    Drained,
}

impl Observers {
    pub(crate) fn new(bound: NonZeroUsize) -> Self {
        let (cancel, ended) = (CancellationToken::new(), CancellationToken::new());
        Self { bound, dropped: AtomicU64::new(0), cancel, ended, state: Mutex::new(State::Idle) }
    }

    /// Queues an event for an observer, or drops and counts it.
    pub(crate) fn push(&self, hook: &Arc<Hook>, event: Event, input: &Input, cwd: &Arc<str>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Idle = *state {
            *state = State::Working { queue: start(self.bound, self.cancel.clone(), self.ended.clone().drop_guard()) };
        }
        let sighting = Sighting { hook: hook.clone(), event, input: input.clone(), cwd: cwd.clone() };
        let queued = match &*state {
            State::Working { queue } => queue.try_send(sighting).is_ok(),
            State::Idle | State::Drained => false,
        };
        if !queued {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(hook = %hook.name, event = event.name(), dropped, "an observer missed an event");
        }
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Takes no more events, and waits for those that were taken. Cancel safe: it may be called again.
    pub(crate) async fn drain(&self, grace: Duration) {
        let state = std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Drained);
        match state {
            State::Idle => self.ended.cancel(),
            State::Working { queue } => drop(queue),
            State::Drained => {}
        }
        if tokio::time::timeout(grace, self.ended.cancelled()).await.is_err() {
            self.cancel.cancel();
            // Handlers end themselves on cancellation within their grace; then there is nothing left to wait for.
            self.ended.cancelled().await;
        }
    }
}

impl Drop for Observers {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Starts the thread. Where there can be none the queue is closed, and every event is dropped and counted.
fn start(bound: NonZeroUsize, cancel: CancellationToken, ended: DropGuard) -> mpsc::Sender<Sighting> {
    let (queue, sightings) = mpsc::channel(bound.get());
    let run = move || {
        let _ended = ended;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(work(sightings, cancel)),
            Err(error) => tracing::error!(%error, "observers cannot run"),
        }
    };
    if let Err(error) = std::thread::Builder::new().name("gatehook-observers".to_owned()).spawn(run) {
        tracing::error!(%error, "observers cannot run");
    }
    queue
}

async fn work(mut sightings: mpsc::Receiver<Sighting>, cancel: CancellationToken) {
    let mut running = JoinSet::new();
    loop {
        let room = running.len() < WIDTH;
        tokio::select! {
            sighting = sightings.recv(), if room => match sighting {
                Some(sighting) if !cancel.is_cancelled() => {
                    running.spawn(observe(sighting, cancel.clone()));
                }
                _ => break,
            },
            Some(_) = running.join_next() => {}
            () = cancel.cancelled() => break,
        }
    }
    while running.join_next().await.is_some() {}
}

async fn observe(sighting: Sighting, cancel: CancellationToken) {
    let Sighting { hook, event, input, cwd } = sighting;
    let shown = Shown::new(event, cwd);
    let (input, told) = shown.to_hook(&hook, hook.definition.include_images, &input);
    let deadline = Instant::now() + hook.timeout;
    let (payload, others) = (told.payload(), &hook.others);
    match guarded(&hook, HookCall { event, input, payload, cancel: &cancel, deadline, others })
        .await
        .and_then(Reply::settled)
    {
        Ok(_) => tracing::debug!(hook = %hook.name, event = event.name(), "an observer has seen an event"),
        Err(error) => tracing::warn!(hook = %hook.name, event = event.name(), %error, "an observer failed"),
    }
}
