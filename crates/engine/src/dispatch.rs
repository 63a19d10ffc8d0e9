//! One event's way through its hooks: run them, read what they answer, take their rewrites, fold it all.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use gatehook_events::{Event, FailureKind, Input, Rewritten, Verdict};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::aggregate::{Fold, Ran};
use crate::compiled::{EventHooks, Hook};
use crate::content::{Digests, Known, Learned, Unmapped};
use crate::definition::HandlerDefinition;
use crate::executor::Inner;
use crate::handler::{HandlerError, HookCall, Reply};
use crate::reply::{Answer, Spent, read};
use crate::rewrite;
use crate::shown::Shown;

/// Whether a host can make these rewrites, else why not.
pub type Hold<'a> = dyn Fn(&Rewritten) -> Result<(), String> + Send + Sync + 'a;

/// How long a handler may overrun its deadline or a cancellation before its future is dropped.
const GRACE: Duration = Duration::from_secs(1);

/// One dispatch.
pub(crate) struct Dispatch<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) event: Event,
    pub(crate) hooks: &'a EventHooks,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) hold: &'a Hold<'a>,
}

/// What the hooks of one input share until a rewrite.
struct View {
    shown: Shown,
    digests: Digests,
}

impl View {
    fn new(dispatch: &Dispatch<'_>) -> Self {
        let shown = Shown::new(dispatch.event, dispatch.inner.cwd.clone());
        Self { shown, digests: Digests::default() }
    }
}

impl Dispatch<'_> {
    pub(crate) async fn run(&self, mut selected: Vec<&Arc<Hook>>, input: &Input) -> Verdict {
        // Those that cannot rewrite need not wait for each other.
        let judge = selected.iter().all(|hook| hook.definition.concurrent);
        if self.hooks.sequential && !judge {
            return self.one_after_another(&selected, input).await;
        }
        selected.retain(|hook| {
            if hook.definition.observer {
                self.inner.observers.push(hook, self.event, input, &self.inner.cwd);
            }
            !hook.definition.observer
        });
        match selected.as_slice() {
            // Nothing beside it: it need not be watched among others.
            [alone] => self.one_after_another(&[alone], input).await,
            judges => self.side_by_side(judges, input).await,
        }
    }

    /// Each hook, observers too, sees what those before it have rewritten, and nothing of what they denied.
    async fn one_after_another(&self, hooks: &[&Arc<Hook>], input: &Input) -> Verdict {
        let mut fold = Fold::new(self.event);
        // In a box: this future is moved once, and most events are not rewritten.
        let mut rewritten: Option<Box<Input>> = None;
        let mut view = View::new(self);
        for hook in hooks {
            let current = rewritten.as_deref().unwrap_or(input);
            if hook.definition.observer {
                self.inner.observers.push(hook, self.event, current, &self.inner.cwd);
                continue;
            }
            let ran = self.run_hook(hook, current, &view, Instant::now()).await;
            if self.take(ran, current, &mut fold) {
                let mut next = Box::new(current.clone());
                rewrite::apply(&fold.verdict.rewritten, &mut next);
                let digests = view.digests.rewritten(current, &next);
                (view, rewritten) = (View { digests, ..View::new(self) }, Some(next));
            }
            if fold.ends_sequence() {
                break;
            }
        }
        fold.finish()
    }

    async fn side_by_side(&self, hooks: &[&Arc<Hook>], input: &Input) -> Verdict {
        let mut fold = Fold::new(self.event);
        let view = View::new(self);
        let start = Instant::now();
        let mut answers: Vec<Option<Ran<'_>>> = hooks.iter().map(|_| None).collect();
        let mut waiting = hooks.iter().enumerate();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < self.inner.options.max_concurrent_hooks.get() {
                let Some((place, hook)) = waiting.next() else { break };
                let run = self.run_hook(hook, input, &view, start);
                running.push(run.map(move |ran| (place, ran)));
            }
            let Some((place, ran)) = running.next().await else { break };
            if let Some(slot) = answers.get_mut(place) {
                *slot = Some(ran);
            }
        }
        for ran in answers.into_iter().flatten() {
            self.take(ran, input, &mut fold);
        }
        fold.finish()
    }

    /// Runs one hook; its time began at `start`.
    async fn run_hook<'h>(&self, hook: &'h Hook, input: &Input, view: &View, start: Instant) -> Ran<'h> {
        match hook.recall.as_ref().and_then(|recall| recall.look_up(self.event, input, &view.digests)) {
            Some(known) => Box::pin(self.run_on_new(hook, known, input, view, start)).await,
            None => {
                let answer = self.ask(hook, input, &view.shown, start + hook.timeout).await;
                Ran { hook, answer, duration: start.elapsed(), recalled: false, learned: Learned::new() }
            }
        }
    }

    /// Runs one hook on what it has not judged before.
    async fn run_on_new<'h>(
        &self,
        hook: &'h Hook,
        mut known: Known<'_>,
        input: &Input,
        view: &View,
        start: Instant,
    ) -> Ran<'h> {
        let deadline = start + hook.timeout;
        if known.is_settled() {
            let mut answer = Answer::nothing();
            // Nothing was asked, so there is nothing that could not be put back.
            let learned = known.complete(&mut answer, input).unwrap_or_default();
            return Ran { hook, answer, duration: start.elapsed(), recalled: true, learned };
        }
        let mut part = known.part(input).map(|part| (part, Shown::new(self.event, self.inner.cwd.clone())));
        let mut spent = Spent::default();
        loop {
            let (shown_input, shown) = part.as_ref().map_or((input, &view.shown), |(part, shown)| (part, shown));
            let mut answer = self.ask(hook, shown_input, shown, deadline).await;
            spent = spent.and(answer.spent);
            answer.spent = spent;
            match known.complete(&mut answer, input) {
                Ok(learned) => return Ran { hook, answer, duration: start.elapsed(), recalled: false, learned },
                Err(Unmapped) => {
                    known.set_aside();
                    part = None;
                }
            }
        }
    }

    /// Asks one hook, and sees to it that it ends.
    async fn ask(&self, hook: &Hook, input: &Input, shown: &Shown, deadline: Instant) -> Answer {
        // A builtin shares the host's value: nothing is walked or copied for it.
        let whole =
            hook.definition.include_images || matches!(hook.definition.handler, HandlerDefinition::Builtin { .. });
        let (input, told) = shown.to_hook(hook, whole, input);
        let (payload, others) = (told.payload(), &hook.others);
        let call = HookCall { event: self.event, input, payload, cancel: self.cancel, deadline, others };
        let reply = guarded(hook, call).await;
        match reply {
            Ok(reply) => read(reply, self.event, hook),
            Err(error) => Answer::failed(error),
        }
    }

    /// Takes what a hook answered into the verdict; says whether it rewrote something.
    fn take(&self, mut ran: Ran<'_>, current: &Input, fold: &mut Fold) -> bool {
        let proposed = match ran.answer.output() {
            Some(output) => rewrite::propose(ran.hook, output, current, &fold.verdict.rewritten, self.hooks.replaces),
            None => Ok(None),
        };
        let held = proposed.and_then(|proposed| match proposed {
            // What it has judged may be with the model already.
            Some(_) if ran.hook.definition.concurrent => Err("a concurrent hook cannot rewrite".to_owned()),
            Some(rewritten) => (self.hold)(&rewritten).map(|()| Some(rewritten)),
            None => Ok(None),
        });
        match held {
            Ok(rewritten) => {
                let rewrote = rewritten.is_some();
                fold.add(ran, rewritten);
                rewrote
            }
            Err(why) => {
                ran.answer = Answer { spent: ran.answer.spent, ..Answer::unsupported_rewrite(why) };
                ran.learned = Learned::new();
                fold.add(ran, None);
                false
            }
        }
    }
}

/// Runs a handler; ends what overruns, catches what panics.
pub(crate) async fn guarded(hook: &Hook, call: HookCall<'_>) -> Result<Reply, HandlerError> {
    let run = AssertUnwindSafe(async { hook.handler.run(call).await }).catch_unwind();
    let overrun = async {
        tokio::select! {
            () = tokio::time::sleep_until(call.deadline + GRACE) => {
                HandlerError::new(FailureKind::Timeout, "it did not answer in time")
            }
            () = cancelled_for(call.cancel, GRACE) => {
                HandlerError::new(FailureKind::Cancelled, "the caller gave up")
            }
        }
    };
    tokio::select! {
        biased;
        reply = run => reply.unwrap_or_else(|_| Err(HandlerError::new(FailureKind::HandlerError, "it panicked"))),
        error = overrun => Err(error),
    }
}

async fn cancelled_for(cancel: &CancellationToken, grace: Duration) {
    cancel.cancelled().await;
    tokio::time::sleep(grace).await;
}

#[cfg(test)]
mod tests;
