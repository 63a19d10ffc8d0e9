//! The gate of one streamed answer: hooks see every token before the client does.
//!
//! A [`Gate`] owns the [`Relay`] of one stream, and says what of it may leave. Its host feeds it ([`Gate::push`],
//! [`Gate::end`]), drives the hooks that judge ([`Gate::poll`]), and hands out what comes of it ([`Gate::take`]); all IO
//! is the host's. One dispatch runs at a time, in order; while it runs more may come in.
//!
//! - `policy`: what of an answer is held, and for whom.
//! - `passage`: one text on its way: settled, judged, let go.
//! - `scans`: up to where a text can be cut without harm to those who scan it.
//! - `change`: what a hook's text changes of what has not left.
//! - `restoring`: values in the place of placeholders, the last stage.
//! - `calls`: tool calls, held until they are judged as wholes.
//! - `judging`: the dispatch that runs, and what comes of it.
//! - `ending`: how an answer ends that cannot go on.

mod calls;
mod change;
mod ending;
mod judging;
mod passage;
mod policy;
mod restoring;
mod scans;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gatehook_engine::events::Event;
use gatehook_engine::{Held, Scan};
use gatehook_inference::{Ending, ErrorKind, Path, Relay, Route, TrackId, TrackKind};
use tokio::time::{Sleep, sleep_until};

use crate::call::OwnedCall;
use crate::guard::{Admitted, Guard};
use crate::placeholders::Placeholders;
use crate::refusal::Refusal;
use calls::CallsPassage;
use judging::Judging;
use passage::Passage;
use policy::{Policy, scans};

/// How many bytes come in between two looks at how much is held.
const BETWEEN_LOOKS: usize = 64 * 1024;

/// How many bytes may come while a dispatch runs, before no more need be read.
const ENOUGH: usize = 256 * 1024;

/// What may leave of a read's beginning does not wait for so many bytes behind it: looking at them takes longer than
/// sending twice.
const LONG: usize = 2 * 1024;

/// The frames of such a read that are given to hooks one by one, as long as nothing of the answer may leave.
const FIRST: usize = 12;

/// Does work elsewhere than on the thread that asks for it, and is ready when it is done. Dropped, it may let the work
/// go on; what the work waits for has been cancelled by then.
pub type Aside = fn(Work) -> Work;

/// A piece of work.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a host sets for the streams of its gates.
#[derive(Debug, Clone, Copy)]
pub struct GateSettings {
    /// How a stream ends that a hook blocks.
    pub ending: Ending,
    /// How many bytes of an answer may be kept ([`Gate::held`]); over it the answer is refused, or its stream ended. Looked
    /// at every 64 KiB.
    pub limit: usize,
    /// Where hooks are shown what is long: from this many bytes on. `None`: where the gate is polled.
    pub aside: Option<(usize, Aside)>,
}

/// How an upstream's stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamEnd {
    /// It was closed.
    Over,
    /// It broke off, for this reason.
    Broke(ErrorKind),
}

/// The gate of one streamed answer.
///
/// Dropping it ends the hooks that run.
pub struct Gate {
    guard: Arc<Guard>,
    call: OwnedCall,
    admitted: Admitted,
    settings: GateSettings,
    policy: Policy,
    relay: Relay,
    /// One for each track of the relay.
    passages: Vec<Passage>,
    calls: CallsPassage,
    judging: Option<Judging>,
    /// What was held when it began.
    held_before: usize,
    /// The choices that have been judged as wholes, and then those that were shown to observers.
    wholes: usize,
    shown: usize,
    /// Whose turn it is among tracks that are due at once.
    turn: usize,
    clock: Option<Pin<Box<Sleep>>>,
    /// Nothing of all that has been fed is due, and no clock makes it so.
    idle: bool,
    /// Bytes that have come since the last look at how much is held.
    unlooked: usize,
    /// The rest of a long read is still to be looked at.
    behind: bool,
    /// The client has the status line.
    committed: bool,
    /// The upstream has ended.
    ended: bool,
    /// All is decided.
    finished: bool,
    /// All has been taken.
    empty: bool,
    /// [`Gate::poll`] has said that the gate is closed.
    told: bool,
    /// How the stream ends that was refused.
    last: Option<Bytes>,
    outcome: Option<Refusal>,
}

impl Gate {
    /// The gate of an answer that streams; `None` where nothing of it need be held or seen: then it passes as it comes.
    pub fn new(guard: Arc<Guard>, call: OwnedCall, admitted: Admitted, settings: GateSettings) -> Option<Self> {
        let route = match call.path {
            Path::Route(route) => route,
            Path::Text(_) => return None,
        };
        let hooks = guard.executor.selected(Event::PostInference, &admitted.input);
        let policy = Policy::of(&hooks);
        let idle = hooks.is_empty() && !guard.tools && admitted.placeholders.is_empty();
        drop(hooks);
        (!idle).then(|| Self {
            calls: CallsPassage::new(policy.calls, guard.tools, admitted.placeholders.clone()),
            relay: if policy.judges_text() { Relay::new(route).without_alternatives() } else { Relay::new(route) },
            guard,
            call,
            admitted,
            settings,
            policy,
            passages: Vec::new(),
            judging: None,
            held_before: 0,
            wholes: 0,
            shown: 0,
            turn: 0,
            clock: None,
            idle: false,
            unlooked: 0,
            behind: false,
            committed: false,
            ended: false,
            finished: false,
            empty: false,
            told: false,
            last: None,
            outcome: None,
        })
    }

    /// Whose answer it is.
    pub fn route(&self) -> Route {
        match self.call.path {
            Path::Route(route) => route,
            Path::Text(_) => Route::Chat,
        }
    }

    /// Takes bytes of the upstream, split anywhere. Then [`Gate::poll`] drives what is due. What cannot be read, or is too
    /// long to be kept, becomes the [`Gate::outcome`].
    ///
    /// Of a long read with which the answer begins only the beginning is looked at, where that may leave
    /// ([`Gate::take`]); [`Gate::poll`] looks at the rest.
    pub fn push(&mut self, bytes: Bytes) {
        if self.is_closed() {
            return;
        }
        self.unlooked += bytes.len();
        self.relay.put(bytes);
        self.behind = !self.relay.speaks() && self.begins();
        if !self.behind {
            self.read_on();
        }
    }

    /// Looks at the first frames of a long read one by one. Says whether something of the answer may leave before the
    /// rest of it has been looked at.
    fn begins(&mut self) -> bool {
        for _ in 0..FIRST {
            if self.is_closed() || self.relay.ahead() < LONG {
                break;
            }
            match self.relay.advance() {
                Ok(true) => self.feed(),
                Ok(false) => break,
                Err(fault) => self.fault(&fault),
            }
            if self.relay.speaks() {
                return self.relay.ahead() >= LONG;
            }
        }
        false
    }

    /// Looks at all that has come.
    fn read_on(&mut self) {
        self.behind = false;
        while !self.is_closed() {
            match self.relay.advance() {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) => self.fault(&fault),
            }
        }
        if self.is_closed() {
            return;
        }
        if self.unlooked > BETWEEN_LOOKS.min(self.settings.limit / 2) {
            self.unlooked = 0;
            if self.held() > self.settings.limit {
                return self.too_large();
            }
        }
        self.feed();
    }

    /// The upstream has ended. Without the protocol's own end that is a failure, which becomes the [`Gate::outcome`].
    pub fn end(&mut self, how: UpstreamEnd) {
        if self.behind {
            self.read_on();
        }
        if self.is_closed() || self.relay.is_over() {
            return;
        }
        match how {
            UpstreamEnd::Over => match self.relay.finish() {
                Ok(()) => {
                    self.ended = true;
                    self.feed();
                }
                Err(fault) => self.fault(&fault),
            },
            UpstreamEnd::Broke(kind) => self.refuse(Refusal::new(kind)),
        }
    }

    /// Drives the hooks that judge, and the clocks. Ready: something has been decided, and may be taken. Pending: nothing
    /// is, until more comes in or the waker is called.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_idle() {
            return Poll::Pending;
        }
        self.poll_due(cx)
    }

    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut moved = self.behind;
        if moved {
            self.read_on();
        }
        while !self.idle && !self.is_closed() {
            if let Some(judging) = &mut self.judging {
                let Poll::Ready(heard) = judging.poll(cx) else { break };
                if let Some(judging) = self.judging.take() {
                    self.heard(judging, heard);
                }
                moved = true;
            } else if self.start() {
                self.held_before = self.held();
            } else if !self.is_closed() && self.tick(cx).is_pending() {
                break;
            }
        }
        let closed = self.is_closed();
        moved |= closed && !std::mem::replace(&mut self.told, closed);
        if moved { Poll::Ready(()) } else { Poll::Pending }
    }

    /// [`Gate::poll`], or takes more of the upstream: bytes, or none at its end. `next` is not asked while no more need be
    /// read. Ready: something may have to be taken.
    ///
    /// # Errors
    ///
    /// As those of `next`; the gate is as it was.
    pub fn poll_step<E>(
        &mut self,
        cx: &mut Context<'_>,
        next: impl FnOnce(&mut Context<'_>) -> Poll<Result<Option<Bytes>, E>>,
    ) -> Poll<Result<(), E>> {
        if self.poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if !self.wants_more() {
            return Poll::Pending;
        }
        match ready!(next(cx))? {
            Some(bytes) => self.push(bytes),
            None => self.end(UpstreamEnd::Over),
        }
        Poll::Ready(Ok(()))
    }

    /// [`Gate::poll_step`] to wait for, where there is more of the upstream. Dropping the future loses nothing that `next`
    /// does not lose.
    ///
    /// # Errors
    ///
    /// As those of `next`.
    pub async fn step<E>(&mut self, next: Option<impl Future<Output = Result<Option<Bytes>, E>>>) -> Result<(), E> {
        let mut next = pin!(next);
        let mut more = |cx: &mut Context<'_>| next.as_mut().as_pin_mut().map_or(Poll::Pending, |next| next.poll(cx));
        poll_fn(|cx| self.poll_step(cx, &mut more)).await
    }

    /// [`Gate::poll`] to wait for. Dropping the future loses nothing.
    pub async fn judged(&mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    /// Waits until the next text has waited long enough.
    fn tick(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadlines = self.passages.iter().filter_map(|passage| passage.deadline(&self.policy));
        let Some(next) = deadlines.min() else {
            self.idle = true;
            return Poll::Pending;
        };
        let clock = self.clock.get_or_insert_with(|| Box::pin(sleep_until(next)));
        if clock.deadline() != next {
            clock.as_mut().reset(next);
        }
        clock.as_mut().poll(cx)
    }

    /// Whether more of the upstream should be read: not while a dispatch runs and enough has come since it began.
    pub fn wants_more(&self) -> bool {
        !self.is_closed() && !self.behind && (self.judging.is_none() || self.held() < self.held_before + ENOUGH)
    }

    /// What may leave now; [`None`]: nothing. Before anything that the model says may leave, nothing at all does, so
    /// that a refusal can still be answered plainly.
    pub fn take(&mut self) -> Option<Bytes> {
        if let Some(last) = self.last.take() {
            return Some(last);
        }
        // What waits for the whole waits for all of it: each choice, and each call. And the end leaves when whoever keeps a
        // record has the answer, and those who look on in the background have it before them.
        let waits = self.policy.observed || self.policy.waits_for_the_whole();
        if self.outcome.is_some() || (waits && self.at_end() && !self.finished) {
            return None;
        }
        self.relay.hold_end(self.awaits_a_last_segment());
        if !self.committed && !self.finished && !self.relay.speaks() {
            return None;
        }
        let bytes = self.relay.take();
        self.committed |= bytes.is_some();
        self.empty = self.finished && bytes.is_none();
        bytes
    }

    /// Whether hooks have yet to say what they make of a text's end. It may have brought nothing new, but what it brings
    /// (the stop reason, the usage) must not have left when they refuse it.
    fn awaits_a_last_segment(&self) -> bool {
        let judges = self.judging.as_ref().is_some_and(Judging::is_of_a_last_segment);
        judges || self.passages.iter().any(Passage::owes_a_last_segment)
    }

    /// The status line has left: from now on a refusal ends the stream as its protocol does. Taking bytes says so too.
    pub fn commit(&mut self) {
        self.committed = true;
    }

    /// The refusal. Where nothing had left the host answers it plainly; otherwise its bytes come out of
    /// [`Gate::take`].
    pub fn outcome(&self) -> Option<&Refusal> {
        self.outcome.as_ref()
    }

    /// Whether all has been taken that will ever come. What the upstream still sends means nothing.
    pub fn is_done(&self) -> bool {
        self.last.is_none() && (self.outcome.is_some() || (self.finished && self.empty))
    }

    /// Bytes of the answer that are kept: frames that have not left, and texts for hooks that are shown the whole.
    pub fn held(&self) -> usize {
        self.relay.held() + self.passages.iter().map(|passage| passage.said().len()).sum::<usize>()
    }

    /// Whether hooks have nothing to do before more comes.
    pub fn is_idle(&self) -> bool {
        self.idle && !self.behind && !self.is_closed()
    }

    /// Nothing more is judged.
    fn is_closed(&self) -> bool {
        self.finished || self.outcome.is_some()
    }

    /// Nothing more comes.
    fn at_end(&self) -> bool {
        self.ended || self.relay.is_over()
    }

    /// Takes in what has come, and lets go what no hook need judge.
    fn feed(&mut self) {
        let grown = self.relay.grown().filter(|_| self.idle);
        let passage = grown.and_then(|id| Some((id, self.passages.get_mut(id.0)?)));
        if !passage.is_some_and(|(id, passage)| passage.glide(&mut self.relay, id)) {
            self.feed_all();
        }
    }

    fn feed_all(&mut self) {
        let at_end = self.at_end();
        if at_end && let Err(no) = self.calls.remove_torn(&mut self.relay) {
            return self.cannot(&no);
        }
        if self.passages.len() < self.relay.tracks().len() {
            self.admit_tracks();
        }
        let Self { relay, passages, policy, guard, admitted, .. } = self;
        for (track, passage) in relay.tracks().iter().zip(&mut *passages) {
            let over = at_end || relay.done_reason(track.choice).is_some();
            passage.feed(track, over, || scans_of(guard, admitted, policy, track.kind));
        }
        let mut done = self.calls.feed(relay);
        for (place, passage) in passages.iter_mut().enumerate() {
            done = done.and_then(|()| passage.go_on(relay, TrackId(place)));
        }
        self.idle =
            !at_end && self.judging.is_none() && relay.calls().is_empty() && passages.iter().all(Passage::is_at_rest);
        if let Err(no) = done {
            self.cannot(&no);
        } else if self.passages.iter().any(|passage| passage.too_long) {
            self.endless();
        }
    }

    #[cold]
    fn admit_tracks(&mut self) {
        let Self { relay, passages, policy, guard, admitted, call, .. } = self;
        for track in relay.tracks().iter().skip(passages.len()) {
            let keep = policy.observed || policy.waits_for_the_whole();
            // A signature follows such thinking: no value can be put into it.
            let sealed = track.kind == TrackKind::Thinking && call.path == Path::Route(Route::Messages);
            let placeholders = if sealed { Placeholders::default() } else { admitted.placeholders.clone() };
            let scans = scans_of(guard, admitted, policy, track.kind);
            passages.push(Passage::new(track.kind, policy, scans, keep, placeholders));
        }
    }
}

/// New scans for a text of this kind.
fn scans_of(guard: &Guard, admitted: &Admitted, policy: &Policy, kind: TrackKind) -> Vec<Box<dyn Scan>> {
    match policy.held(kind) {
        Held::Window | Held::Scan => scans(&guard.executor.selected(Event::PostInference, &admitted.input), kind),
        Held::Buffer | Held::Observe => Vec::new(),
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("call", &self.call).field("policy", &self.policy).finish_non_exhaustive()
    }
}
