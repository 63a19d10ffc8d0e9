//! The processes of one hook: which of them gets an event, and when another is started.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gatehook_events::FailureKind;
use tokio::runtime::{Handle, Id};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use super::super::stopped;
use super::keeper::{Idle, watch_idle};
use super::process::{Broken, Launch, Worker};
use crate::handler::{HandlerError, HookCall, Reply};

/// Events that wait for a process, beside those that are with one.
const QUEUE: usize = 1024;

/// How often another process is asked where one turns out to have ended.
const TRIES: usize = 3;

/// The pause before the third start in a row that led to nothing; each further one doubles it.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How many processes there are, and for how long.
#[derive(Debug, Clone, Copy)]
pub(in crate::handlers) struct Limits {
    pub(in crate::handlers) workers: usize,
    pub(in crate::handlers) max_in_flight: usize,
    /// Zero is for ever.
    pub(in crate::handlers) idle_timeout: Duration,
}

/// An answer after which the process cannot be trusted any more.
pub(in crate::handlers) struct Unreadable {
    pub(in crate::handlers) kind: FailureKind,
    pub(in crate::handlers) what: &'static str,
}

/// Reads a line: a reply, the hook's own failure, or nothing that can be read.
pub(in crate::handlers) type Read = fn(Bytes) -> Result<Result<Reply, HandlerError>, Unreadable>;

/// Processes that are started when they are needed. Dropped, it ends them.
pub(in crate::handlers) struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    launch: Launch,
    limits: Limits,
    /// One for each event that may be with a process.
    places: Semaphore,
    waiting: AtomicUsize,
    /// One process is started at a time.
    starting: Mutex<()>,
    state: StdMutex<State>,
}

#[derive(Default)]
struct State {
    workers: Vec<Entry>,
    /// How many processes in a row have ended out of order.
    failures: u32,
    /// No process is started before.
    pause_until: Option<Instant>,
    /// The keeper comes by.
    is_watched: bool,
}

struct Entry {
    worker: Arc<Worker>,
    in_flight: usize,
    /// When it was last given an event or has answered one.
    since: Instant,
    /// Where it was last asked.
    runtime: Id,
}

impl Pool {
    pub(in crate::handlers) fn new(launch: Launch, limits: Limits) -> Self {
        let places = Semaphore::new(limits.workers.saturating_mul(limits.max_in_flight).min(Semaphore::MAX_PERMITS));
        let (waiting, starting, state) = (AtomicUsize::new(0), Mutex::new(()), StdMutex::default());
        Self { inner: Arc::new(Inner { launch, limits, places, waiting, starting, state }) }
    }

    /// Asks one of the processes. Waiting for it counts against the deadline. Cancel safe: a process that was asked and
    /// has not answered is ended.
    pub(in crate::handlers) async fn run(&self, call: HookCall<'_>, read: Read) -> Result<Reply, HandlerError> {
        let line = call.payload.line(call.input)?;
        tokio::select! {
            biased;
            kind = stopped(call.cancel, call.deadline) => Err(HandlerError::new(kind, match kind {
                FailureKind::Cancelled => "the caller gave up",
                _ => "it did not answer in time",
            })),
            reply = self.ask(line, call.deadline.into_std(), read) => reply,
        }
    }

    async fn ask(&self, line: Bytes, deadline: Instant, read: Read) -> Result<Reply, HandlerError> {
        let _place = self.inner.place().await?;
        for _ in 0..TRIES {
            let mut lease = self.lease(deadline).await?;
            let answer = lease.worker.ask(line.clone()).await;
            match answer.map(read) {
                Ok(Ok(reply)) => {
                    lease.end = End::Answered;
                    return reply;
                }
                Ok(Err(Unreadable { kind, what })) => return Err(lease.failed(kind, what)),
                Err(Broken::Unasked) => lease.end = End::Failed,
                Err(Broken::Ended) => return Err(lease.failed(FailureKind::NonzeroExit, "it ended without an answer")),
                Err(Broken::TooLarge) => {
                    return Err(lease.failed(FailureKind::OutputTooLarge, "its answer is over 1 MiB"));
                }
                Err(Broken::Excess) => {
                    return Err(lease.failed(FailureKind::TrailingData, "it answered with more than one line"));
                }
            }
        }
        Err(HandlerError::new(FailureKind::NonzeroExit, "it ends as soon as it is started"))
    }

    /// A process to ask, started if need be.
    async fn lease(&self, deadline: Instant) -> Result<Lease<'_>, HandlerError> {
        let inner = &self.inner;
        let here = Handle::current().id();
        if let Some(lease) = inner.pick(here) {
            return Ok(lease);
        }
        let _alone = inner.starting.lock().await;
        if let Some(lease) = inner.pick(here) {
            return Ok(lease);
        }
        let pause_until = inner.state().pause_until;
        if let Some(until) = pause_until.filter(|until| *until > Instant::now()) {
            if until >= deadline {
                return Err(HandlerError::new(
                    FailureKind::SpawnFailed,
                    "it keeps failing, and is left alone for a while",
                ));
            }
            tokio::time::sleep_until(until.into()).await;
        }
        let started = Worker::start(&inner.launch);
        let worker = Arc::new(started.map_err(|error| {
            inner.state().has_failed();
            not_started(&inner.launch, &error)
        })?);
        let mut state = inner.state();
        state.workers.push(Entry { worker: Arc::clone(&worker), in_flight: 1, since: Instant::now(), runtime: here });
        if !state.is_watched && !inner.limits.idle_timeout.is_zero() {
            state.is_watched = true;
            let weak: Weak<Inner> = Arc::downgrade(inner);
            watch_idle(weak);
        }
        Ok(Lease { inner, worker, end: End::Dropped })
    }
}

fn not_started(launch: &Launch, error: &std::io::Error) -> HandlerError {
    let cause = if launch.working_dir.is_dir() {
        error.to_string()
    } else {
        format!("its working directory {} does not exist", launch.working_dir.display())
    };
    HandlerError::new(FailureKind::SpawnFailed, format!("it could not be started: {cause}"))
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn place(&self) -> Result<SemaphorePermit<'_>, HandlerError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let _waiting = Waiting::one_more(&self.waiting)
            .ok_or_else(|| HandlerError::new(FailureKind::HandlerError, "too many events wait for it"))?;
        // It is never closed.
        self.places.acquire().await.map_err(|error| HandlerError::new(FailureKind::HandlerError, error.to_string()))
    }

    /// The process with the fewest events: one that this runtime asked last before others, and the one that was used
    /// last, so that those that are not needed come to an end. `None` where another should be started.
    fn pick(&self, here: Id) -> Option<Lease<'_>> {
        let mut state = self.state();
        let may_start = state.workers.len() < self.limits.workers;
        let entries = state.workers.iter_mut().filter(|entry| !entry.worker.is_spoiled());
        let best = entries.min_by_key(|entry| (entry.in_flight, entry.runtime != here, Reverse(entry.since)))?;
        if best.in_flight >= self.limits.max_in_flight || (may_start && best.in_flight > 0) {
            return None;
        }
        best.in_flight += 1;
        (best.since, best.runtime) = (Instant::now(), here);
        Some(Lease { inner: self, worker: Arc::clone(&best.worker), end: End::Dropped })
    }
}

impl State {
    fn has_failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let doublings = self.failures.checked_sub(2);
        let pause = doublings.map(|times| PAUSE.saturating_mul(1 << times.min(10)).min(LONGEST_PAUSE));
        self.pause_until = pause.map(|pause| Instant::now() + pause);
    }
}

/// An event that waits for a place.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn one_more(count: &'a AtomicUsize) -> Option<Self> {
        let waiting = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < QUEUE).then_some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A process that has an event.
struct Lease<'a> {
    inner: &'a Inner,
    worker: Arc<Worker>,
    end: End,
}

/// What came of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Answered,
    /// The process is out of order.
    Failed,
    /// Nobody waited for the answer.
    Dropped,
}

impl Lease<'_> {
    fn failed(&mut self, kind: FailureKind, what: &str) -> HandlerError {
        self.end = End::Failed;
        HandlerError { kind, message: what.to_owned(), stderr: self.worker.group.last_words() }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.inner.state();
        let place = state.workers.iter().position(|entry| Arc::ptr_eq(&entry.worker, &self.worker));
        if self.end == End::Answered {
            self.worker.group.forget_stderr();
            state.failures = 0;
            if let Some(entry) = place.and_then(|place| state.workers.get_mut(place)) {
                entry.in_flight -= 1;
                entry.since = Instant::now();
            }
        } else if let Some(place) = place {
            // The first of several that had an event there: one process has failed once.
            state.workers.swap_remove(place);
            if self.end == End::Failed {
                state.has_failed();
            }
            drop(state);
            self.worker.group.end();
        }
    }
}

impl Idle for Inner {
    fn end_idle(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        let limit = self.limits.idle_timeout;
        let is_over = |entry: &mut Entry| entry.in_flight == 0 && entry.since + limit <= now;
        for entry in state.workers.extract_if(.., is_over) {
            entry.worker.group.end();
        }
        let since = |entry: &Entry| if entry.in_flight == 0 { entry.since } else { now };
        let next = state.workers.iter().map(|entry| since(entry) + limit).min();
        state.is_watched = next.is_some();
        next
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for entry in &state.workers {
            entry.worker.group.end();
        }
    }
}
