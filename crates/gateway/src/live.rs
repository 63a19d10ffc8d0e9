//! A streamed answer that hooks look at: from the upstream, through its gate, to the client.
//!
//! All of it is done where the body is polled by whoever sends it: no task, no queue, and no future around the gate's
//! own, because a frame that comes after a pause has nothing of what it runs through at hand. A client that reads slowly
//! slows the upstream; one that leaves drops the body, and with it the upstream's connection and the hooks at work.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use gatehook_guard::{Gate, Refusal, UpstreamEnd};
use hyper::body::Bytes;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};
use tokio_util::sync::DropGuard;

use crate::config::Limits;
use crate::forward::Broken;
use crate::gather;
use crate::metrics::OpenStream;
use crate::source::Source;
use crate::state::{Held, Shared};

/// A stream on its way to the client.
pub(crate) struct Live {
    stream: Stream,
    pulse: Pulse,
    /// What leaves next.
    next: Option<Bytes>,
    /// The status line has left, or leaves with the next bytes: from now on a refusal ends the stream.
    committed: bool,
    progress: Progress,
    /// So many reads in a row passed without being held, and have not been counted among what is.
    passed: u8,
    /// A hook has ended it, and that has been counted.
    blocked: bool,
    _ends_hooks: DropGuard,
    _open: OpenStream,
}

/// How far a stream has come.
#[derive(Debug)]
enum Progress {
    /// Nothing has left.
    Waits,
    /// What left first is being sent.
    Begins,
    GoesOn,
    /// All has left. The upstream has so long to close its stream, so that its connection can be used again.
    Lingers(Pin<Box<Sleep>>),
    Ended,
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
    /// The room that the request takes, which hooks are shown with the answer.
    pub(crate) _request: Held,
}

/// How long the upstream may linger.
const LINGER: Duration = Duration::from_millis(10);

/// After so many reads that pass it is counted what they have left behind, which is little.
const BETWEEN_COUNTS: u8 = 32;

impl Live {
    pub(crate) fn new(stream: Stream, ends_hooks: DropGuard) -> Self {
        Self {
            pulse: Pulse::new(stream.pulse),
            next: None,
            committed: false,
            progress: Progress::Waits,
            passed: 0,
            blocked: false,
            _open: stream.shared.metrics.open_stream(),
            _ends_hooks: ends_hooks,
            stream,
        }
    }

    /// Waits until something may leave, but no longer than `patience`: then the status line is to be sent. A refusal
    /// that comes before is an answer of its own.
    pub(crate) async fn begin(&mut self, patience: Duration) -> Result<(), Refusal> {
        let begun = timeout(patience, poll_fn(|cx| self.poll_work(cx))).await;
        self.committed = true;
        self.stream.gate.commit();
        begun.unwrap_or(Ok(()))
    }

    /// The next bytes for the client.
    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if ready!(self.poll_work(cx)).is_err() {
            // None that the stream could say: a defect, or no memory left to say it.
            return Poll::Ready(Some(Err(Broken::Unguarded)));
        }
        let bytes = self.next.take();
        if bytes.is_some() {
            self.pulse.last = Instant::now();
            self.next = self.stream.gate.take();
        }
        Poll::Ready(bytes.map(Ok))
    }

    pub(crate) fn is_end(&self) -> bool {
        matches!(self.progress, Progress::Ended) && self.next.is_none()
    }

    /// Works until something may leave, or nothing more comes. Fails with a refusal while nothing has left.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        while self.next.is_none() {
            match &mut self.progress {
                Progress::Ended => break,
                Progress::Lingers(linger) => {
                    if self.stream.source.poll_next(cx).is_pending() {
                        ready!(linger.as_mut().poll(cx));
                    }
                    self.progress = Progress::Ended;
                }
                _ => ready!(self.poll_on(cx))?,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Gets more of what may leave.
    fn poll_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        let Stream { gate, source, .. } = &mut self.stream;
        if gate.is_done() {
            self.progress = Progress::Lingers(Box::pin(sleep(LINGER)));
            return Poll::Ready(Ok(()));
        }
        if matches!(self.progress, Progress::Begins) {
            // Whoever sends the body sends it when nothing follows for now. The first bytes of a stream need not wait for
            // those behind them, even where these have come too.
            source.has_begun();
            self.progress = Progress::GoesOn;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let more = |cx: &mut Context<'_>| match source {
            Source::Gone => Poll::Pending,
            source => source.poll_next(cx).map_ok(|next| next.map(gather::kept)),
        };
        let Poll::Ready(gone_on) = gate.poll_step(cx, more) else {
            ready!(self.pulse.poll_due(cx));
            self.next = self.committed.then(|| Bytes::from_static(self.pulse.sign));
            return Poll::Ready(Ok(()));
        };
        self.next = gate.take();
        if gone_on.is_ok() && self.next.is_some() && gate.is_idle() && self.passed < BETWEEN_COUNTS {
            self.passed += 1;
        } else {
            self.passed = 0;
            self.heed(gone_on)?;
        }
        if self.next.is_some() && matches!(self.progress, Progress::Waits) {
            self.progress = Progress::Begins;
            self.committed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// A failure, or a refusal, ends the upstream's work. While nothing has left it is an answer of its own.
    #[inline(never)]
    fn heed(&mut self, gone_on: Result<(), Refusal>) -> Result<(), Refusal> {
        let Stream { gate, source, shared, limits, held, .. } = &mut self.stream;
        let held = held.set(gate.held(), limits.bodies_in_flight);
        if let Err(refusal) = gone_on.and(held) {
            gate.end(UpstreamEnd::Broke(refusal.kind));
        }
        let Some(refusal) = gate.outcome() else { return Ok(()) };
        *source = Source::Gone;
        if !self.committed {
            return Err(refusal.clone());
        }
        if refusal.hook.is_some() && !std::mem::replace(&mut self.blocked, true) {
            shared.metrics.streams_blocked.inc();
        }
        Ok(())
    }
}

/// The signs of life for a client that waits.
struct Pulse {
    sign: &'static [u8],
    every: Duration,
    /// When something has left.
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

    /// Waits until nothing has left for so long.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(timer) = &mut self.timer else { return Poll::Pending };
        loop {
            ready!(timer.as_mut().poll(cx));
            let (now, due) = (Instant::now(), self.last + self.every);
            self.last = if due <= now { now } else { self.last };
            timer.as_mut().reset(self.last + self.every);
            if due <= now {
                return Poll::Ready(());
            }
        }
    }
}
