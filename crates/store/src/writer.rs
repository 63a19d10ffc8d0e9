//! Writing traces: a bounded queue, and one thread that works it off. Whoever records never waits.

mod ledger;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gatehook_events::trace::{Fault, TraceError};
use gatehook_events::{Recorder, Trace};

use crate::weight;
use ledger::Ledger;

/// How many traces may wait to be written.
pub const QUEUE: usize = 1024;

/// How much memory they may hold, in bytes; a single one may hold more.
pub const QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// How many are written together, at most.
const BATCH: usize = 256;

/// How long the thread may take to end once it is told to give up: a statement that waits for another process.
const GIVE_UP: Duration = Duration::from_secs(1);

/// How long traces are kept, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Older ones are deleted. Default: 7 days.
    pub age: Duration,
    /// Of more than so many the oldest are deleted. Default: 100,000.
    pub rows: u64,
}

impl Default for Keep {
    fn default() -> Self {
        Self { age: Duration::from_secs(7 * 86_400), rows: 100_000 }
    }
}

/// What came of the traces that were recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drained {
    /// How many were not written.
    pub lost: u64,
    /// Why, where it was not for lack of room in the queue; the last reason.
    pub fault: Option<TraceError>,
}

/// Writes traces to a file. The file is opened, and the thread started, with the first of them.
#[derive(Debug)]
pub struct TraceWriter {
    shared: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Idle,
    Working { queue: SyncSender<Waiting>, ended: Receiver<()> },
    Drained,
}

/// A trace on its way, and how much memory it holds.
#[derive(Debug)]
struct Waiting {
    trace: Trace,
    weight: usize,
}

/// What the writer and its thread both know.
#[derive(Debug)]
struct Shared {
    path: PathBuf,
    /// The plane of inputs that name none.
    plane: &'static str,
    keep: Keep,
    /// Recorded, and neither written nor lost.
    waiting: AtomicU64,
    lost: AtomicU64,
    held: AtomicUsize,
    /// Nobody waits for the thread any more.
    gave_up: AtomicBool,
    fault: Mutex<Option<TraceError>>,
}

impl TraceWriter {
    /// Writes to `path`; `plane` is where events happen whose input does not say so.
    pub fn new(path: PathBuf, plane: &'static str, keep: Keep) -> Self {
        let shared = Shared {
            path,
            plane,
            keep,
            waiting: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            gave_up: AtomicBool::new(false),
            fault: Mutex::new(None),
        };
        Self { shared: Arc::new(shared), state: Mutex::new(State::Idle) }
    }

    /// How many traces were not written, for lack of room in the queue or because the file failed.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Takes no more traces, and waits until those that were taken are written, but no longer than `grace`: blocks the
    /// thread. A writer that is dropped undrained loses what waits.
    pub fn drain(&self, grace: Duration) -> Drained {
        let state = std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Drained);
        if let State::Working { queue, ended } = state {
            drop(queue);
            if ended.recv_timeout(grace) == Err(RecvTimeoutError::Timeout) {
                self.shared.gave_up.store(true, Ordering::Relaxed);
                // It has ended, or holds what it held: either way it is not waited for any longer.
                let _ = ended.recv_timeout(GIVE_UP);
            }
        }
        let lost = self.lost() + self.shared.waiting.load(Ordering::Acquire);
        let fault = self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Drained { lost, fault: fault.filter(|_| lost > 0) }
    }

    fn queue(&self, waiting: Waiting) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Idle = *state {
            *state = start(self.shared.clone());
        }
        match &*state {
            State::Working { queue, .. } => queue.try_send(waiting).is_ok(),
            State::Idle | State::Drained => false,
        }
    }
}

impl Recorder for TraceWriter {
    fn record(&self, trace: Trace) {
        let shared = &self.shared;
        let weight = weight::of(&trace);
        let before = shared.held.fetch_add(weight, Ordering::Relaxed);
        shared.waiting.fetch_add(1, Ordering::Relaxed);
        let has_room = before == 0 || before.saturating_add(weight) <= QUEUE_BYTES;
        let event = trace.event;
        if !has_room || !self.queue(Waiting { trace, weight }) {
            shared.held.fetch_sub(weight, Ordering::Relaxed);
            shared.lose(1);
            let lost = self.lost();
            // Not a line for each: they are lost in thousands or not at all.
            if lost.is_power_of_two() {
                tracing::warn!(event = event.name(), lost, "a trace was dropped: more come than can be written");
            }
        }
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        self.shared.gave_up.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    /// Counts traces that will not be written.
    fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
        self.settle(count);
    }

    /// Counts traces of which it is known what becomes of them.
    fn settle(&self, count: u64) {
        self.waiting.fetch_sub(count, Ordering::Release);
    }

    fn has_given_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }
}

/// Starts the thread. Where there can be none the queue is closed, and every trace is dropped and counted.
fn start(shared: Arc<Shared>) -> State {
    let (queue, traces) = sync_channel(QUEUE);
    let (ending, ended) = sync_channel(0);
    let path = shared.path.display().to_string();
    let failed = shared.clone();
    let run = move || {
        // Dropped when the thread ends, however it does.
        let _ending: SyncSender<()> = ending;
        work(&shared, &traces);
    };
    if let Err(error) = std::thread::Builder::new().name("gatehook-traces".to_owned()).spawn(run) {
        tracing::error!(%error, "traces cannot be written");
        let fault = TraceError { fault: Fault::Failed, place: path, detail: error.to_string() };
        *failed.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }
    State::Working { queue, ended }
}

fn work(shared: &Shared, traces: &Receiver<Waiting>) {
    let mut ledger = Ledger::new(shared);
    while let Ok(first) = traces.recv() {
        let batch: Vec<Waiting> = std::iter::once(first).chain(traces.try_iter().take(BATCH - 1)).collect();
        ledger.write(&batch);
        let weight = batch.iter().map(|waiting| waiting.weight).sum();
        shared.held.fetch_sub(weight, Ordering::Relaxed);
        if shared.has_given_up() {
            break;
        }
    }
}
