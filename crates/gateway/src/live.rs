//! A streamed answer that hooks look at: from the upstream, through its gate, to the client.
//!
//! All of it is one future that is polled by whoever sends the body: no task, no queue. A client that reads slowly slows
//! the upstream; one that leaves drops the future, and with it the upstream's connection and the hooks at work.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use gatehook_guard::{Gate, Refusal, UpstreamEnd};
use hyper::body::Bytes;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_util::sync::DropGuard;

use crate::config::Limits;
use crate::forward::Broken;
use crate::gather;
use crate::metrics::OpenStream;
use crate::source::Source;
use crate::state::{Held, Shared};

/// A stream on its way to the client.
pub(crate) struct Live {
    work: Pin<Box<dyn Future<Output = Result<(), Refusal>>>>,
    line: Rc<Line>,
    ended: bool,
    _ends_hooks: DropGuard,
    _open: OpenStream,
}

/// What the work and whoever sends the body tell each other.
#[derive(Default)]
struct Line {
    /// What leaves next.
    bytes: RefCell<Option<Bytes>>,
    /// The status line has left, or leaves with the next bytes: from now on a refusal ends the stream.
    committed: Cell<bool>,
}

impl Line {
    fn is_empty(&self) -> bool {
        self.bytes.borrow().is_none()
    }

    /// Hands bytes over, and waits until they have left. Nobody need be woken: who takes them polls for the next ones.
    async fn put(&self, bytes: Bytes) {
        self.committed.set(true);
        self.bytes.replace(Some(bytes));
        poll_fn(|_| if self.is_empty() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

impl Live {
    pub(crate) fn new(stream: Stream, ends_hooks: DropGuard) -> Self {
        let line = Rc::new(Line::default());
        let open = stream.shared.metrics.open_stream();
        Self { work: Box::pin(stream.run(line.clone())), line, ended: false, _ends_hooks: ends_hooks, _open: open }
    }

    /// Waits until something may leave, but no longer than `patience`: then the status line is to be sent. A refusal
    /// that comes before is an answer of its own.
    pub(crate) async fn begin(&mut self, patience: Duration) -> Result<(), Refusal> {
        let begun = timeout(patience, poll_fn(|cx| self.poll_work(cx))).await;
        self.line.committed.set(true);
        begun.unwrap_or(Ok(()))
    }

    /// Works until something may leave, or nothing more comes.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        if self.ended || !self.line.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let worked = self.work.as_mut().poll(cx);
        self.ended = worked.is_ready();
        if self.line.is_empty() { worked } else { Poll::Ready(Ok(())) }
    }

    /// The next bytes for the client.
    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        let worked = ready!(self.poll_work(cx));
        // A refusal after the beginning is none that the stream could say: a defect, or no memory left to say it.
        Poll::Ready(worked.map_or(Some(Err(Broken::Unguarded)), |()| self.line.bytes.take().map(Ok)))
    }

    pub(crate) fn is_end(&self) -> bool {
        self.ended && self.line.is_empty()
    }
}

/// What a stream is made of.
pub(crate) struct Stream {
    pub(crate) source: Source,
    pub(crate) gate: Box<Gate>,
    /// What a waiting client is sent, and how often.
    pub(crate) pulse: Option<(&'static [u8], Duration)>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) limits: Limits,
    /// The room that the answer takes among the bodies in flight.
    pub(crate) held: Held,
    /// A hook has ended it, and that has been counted.
    pub(crate) blocked: bool,
    /// The room that the request takes, which hooks are shown with the answer.
    pub(crate) _request: Held,
}

/// How long the upstream has to close a stream that is over, so that its connection can be used again.
const LINGER: Duration = Duration::from_millis(10);

impl Stream {
    /// Does all of it. Fails with a refusal while nothing has left.
    async fn run(mut self, line: Rc<Line>) -> Result<(), Refusal> {
        let mut pulse = Pulse::new(self.pulse);
        let mut begun = false;
        while !self.gate.is_done() {
            let gone_on = pulse.beside(&line, self.step(&line)).await;
            let mut leaves = self.gate.take();
            let held = self.held.set(self.gate.held(), self.limits.bodies_in_flight);
            if let Err(refusal) = gone_on.and(held) {
                self.gate.end(UpstreamEnd::Broke(refusal.kind));
            }
            self.heed(&line)?;
            let begins = leaves.is_some() && !begun;
            begun |= begins;
            while let Some(bytes) = leaves {
                line.put(bytes).await;
                pulse.sent();
                leaves = self.gate.take();
            }
            if begins && !self.gate.is_done() {
                self.source.has_begun();
                sent().await;
            }
        }
        let _ = timeout(LINGER, self.source.next(&self.shared, &self.limits)).await;
        Ok(())
    }

    /// Waits until the upstream says more, or hooks have decided something.
    async fn step(&mut self, line: &Line) -> Result<(), Refusal> {
        let Self { gate, source, shared, limits, .. } = self;
        let is_there = !source.is_gone();
        let next = async { Ok(source.next(shared, limits).await?.map(gather::kept)) };
        gate.step(|| line.committed.get(), is_there.then_some(next)).await
    }

    /// A refusal ends the upstream's work. While nothing has left it is an answer of its own.
    fn heed(&mut self, line: &Line) -> Result<(), Refusal> {
        let Some(refusal) = self.gate.outcome() else { return Ok(()) };
        self.source = Source::Gone;
        if !line.committed.get() {
            return Err(refusal.clone());
        }
        if refusal.hook.is_some() && !std::mem::replace(&mut self.blocked, true) {
            self.shared.metrics.streams_blocked.inc();
        }
        Ok(())
    }
}

/// Lets whoever sends the body send what has been handed over: that is done when nothing follows for now. The first bytes
/// of a stream need not wait for those behind them, even where these have come too.
async fn sent() {
    let mut waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The signs of life for a client that waits.
struct Pulse {
    sign: &'static [u8],
    every: Duration,
    last: Instant,
    /// Re-armed only when it fires, so that bytes that leave cost no timer.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pulse {
    fn new(pulse: Option<(&'static [u8], Duration)>) -> Self {
        let last = Instant::now();
        let timer = pulse.map(|(_, every)| Box::pin(sleep_until(last + every)));
        let (sign, every) = pulse.unwrap_or_default();
        Self { sign, every, last, timer }
    }

    fn sent(&mut self) {
        self.last = Instant::now();
    }

    /// Waits for `step`, and meanwhile sends signs of life once the status line has left.
    async fn beside<T>(&mut self, line: &Line, step: impl Future<Output = T>) -> T {
        let mut step = pin!(step);
        loop {
            tokio::select! {
                biased;
                done = &mut step => return done,
                () = self.due() => if line.committed.get() {
                    line.put(Bytes::from_static(self.sign)).await;
                },
            }
        }
    }

    /// Waits until nothing has left for so long.
    async fn due(&mut self) {
        let Some(timer) = &mut self.timer else { return std::future::pending().await };
        loop {
            timer.as_mut().await;
            let (now, due) = (Instant::now(), self.last + self.every);
            self.last = if due <= now { now } else { self.last };
            timer.as_mut().reset(self.last + self.every);
            if due <= now {
                return;
            }
        }
    }
}
