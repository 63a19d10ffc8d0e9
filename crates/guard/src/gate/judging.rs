//! The dispatch that runs: who is shown what, and what comes of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use gatehook_engine::Selected;
use gatehook_engine::events::{Before, Event, Input, ModelOutput, Segment, SegmentKind, ToolCall, Verb, Verdict};
use gatehook_inference::{CallId, ErrorKind, Phase, TrackId, TrackKind};

use super::calls::{DueCall, merged};
use super::change::change;
use super::passage::{Show, came_before};
use super::policy::keeps_record;
use super::{Aside, Gate};
use crate::heed::{heed, unheld, witness};
use crate::refusal::Refusal;
use crate::tools::{self, Fate, Judged};

/// A dispatch that runs.
pub(super) struct Judging {
    what: What,
    run: Run,
}

type Run = Pin<Box<dyn Future<Output = Said> + Send>>;

/// What hooks are shown.
enum What {
    /// A segment of a text, behind what of it has left.
    Segment {
        id: TrackId,
        kind: TrackKind,
        left: String,
        show: Show,
    },
    Call {
        id: CallId,
    },
    /// A choice, with these calls.
    Whole {
        choice: u32,
        calls: Vec<(CallId, ToolCall)>,
    },
    /// The same, to those who keep a record of it.
    Observed,
}

/// What they said.
enum Said {
    Verdict(Box<Verdict>),
    Call(Box<SaidOfCall>),
    /// They broke down.
    Nothing,
}

struct SaidOfCall {
    /// Of the hooks that judge the answer, where they were asked.
    verdict: Option<Verdict>,
    /// The call as they left it; an error where they want what a stream cannot hold.
    left: Result<Option<ToolCall>, String>,
    judged: Judged,
}

impl Judging {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Heard> {
        self.run.as_mut().poll(cx).map(Heard)
    }

    pub(super) fn is_of_a_last_segment(&self) -> bool {
        matches!(&self.what, What::Segment { show, .. } if show.last)
    }
}

/// The same work in another place.
fn elsewhere(aside: Aside, run: Run) -> Run {
    let (tell, told) = tokio::sync::oneshot::channel();
    let work = aside(Box::pin(async move {
        let _ = tell.send(run.await);
    }));
    Box::pin(async move {
        work.await;
        told.await.unwrap_or(Said::Nothing)
    })
}

/// What came of a dispatch, to be given to [`Gate::heard`].
pub(super) struct Heard(Said);

impl Gate {
    /// Begins the next dispatch that is due; says whether there is anything to go on with.
    pub(super) fn start(&mut self) -> bool {
        let begun = match self.due_segment() {
            Some((id, show)) => self.segment(id, show),
            None => match self.calls.due(&self.relay) {
                Some(due) => Some(self.call(due)),
                None if self.at_end() => self.next_whole(),
                None => None,
            },
        };
        self.judging = begun;
        self.judging.is_some()
    }

    /// The next text that is due, in turn.
    fn due_segment(&mut self) -> Option<(TrackId, Show)> {
        let count = self.passages.len();
        for place in (0..count).map(|step| (self.turn + step) % count) {
            let due = self.passages.get(place).and_then(|passage| passage.due(&self.policy));
            if let Some(show) = due {
                self.turn = place + 1;
                return Some((TrackId(place), show));
            }
        }
        None
    }

    fn segment(&mut self, id: TrackId, show: Show) -> Option<Judging> {
        let track = self.relay.tracks().get(id.0)?;
        let passage = self.passages.get_mut(id.0)?;
        let left = passage.tail(track).to_owned();
        let came = came_before(track, show.range.start);
        let before = (!left.is_empty()).then(|| Arc::new(Before { left: (&*left).into(), came: came.into() }));
        let text: Arc<str> = [&*left, track.part(show.range.clone())?].concat().into();
        let (kind, choice) = (track.kind, track.choice);
        let segment = passage.next_segment(kind, show.last);
        passage.shows(&show);
        let (shown, thinking) = match kind {
            TrackKind::Text => (Some(text), None),
            TrackKind::Thinking => (None, Some(text)),
        };
        let output = ModelOutput { text: shown, thinking, tool_calls: None };
        let input = Input { before, ..self.input(choice, output, Some(segment)) };
        let policy = self.policy;
        let what = What::Segment { id, kind, left, show };
        let run = self.judge(input, move |hook| policy.judges_segments(hook, segment.kind));
        Some(Judging { what, run })
    }

    /// One call, for those who judge the answer, and then for those who judge calls.
    fn call(&mut self, due: DueCall) -> Judging {
        let DueCall { id, call, choice, index, unseen } = due;
        let segment = Segment { index, final_: self.relay.done_reason(choice).is_some(), kind: SegmentKind::ToolCall };
        let output = ModelOutput { tool_calls: Some([call.clone()].into()), ..ModelOutput::default() };
        let size = call.function.arguments.len();
        let policy = self.policy;
        let asked = unseen.then(|| {
            let input = self.input(choice, output, Some(segment));
            self.dispatch(input, move |hook| policy.judges_segments(hook, SegmentKind::ToolCall))
        });
        let (executor, cancel) = (self.guard.executor.clone(), self.call.cancel.clone());
        let about = self.guard.tools.then(|| tools::about(&self.admitted.input));
        let run = async move {
            let verdict = match asked {
                Some(asked) => Some(asked.await),
                None => None,
            };
            let refused = verdict.as_ref().is_some_and(|verdict| !verdict.allowed || verdict.verb >= Verb::Ask);
            let left = left_of(&call, verdict.as_ref());
            let judged = match (&left, about) {
                (Ok(Some(call)), Some(about)) if !refused => {
                    tools::judge(&executor, &cancel, &about, call, &|_| Ok(())).await
                }
                _ => Judged::default(),
            };
            Said::Call(Box::new(SaidOfCall { verdict, left, judged }))
        };
        Judging { what: What::Call { id }, run: self.placed(size, Box::pin(run)) }
    }

    /// The next choice for those who judge the answer as a whole, then for those who look on. After them all is done.
    fn next_whole(&mut self) -> Option<Judging> {
        let policy = self.policy;
        let choices: Vec<u32> = self.relay.choices().collect();
        if policy.waits_for_the_whole()
            && let Some(choice) = choices.get(self.wholes)
        {
            self.wholes += 1;
            let (input, calls) = self.whole(*choice);
            let run = self.judge(input, move |hook| policy.judges_the_whole(hook));
            return Some(Judging { what: What::Whole { choice: *choice, calls }, run });
        }
        while policy.observed
            && let Some(choice) = choices.get(self.shown)
        {
            self.shown += 1;
            let (input, _) = self.whole(*choice);
            let observes = move |hook: &Selected<'_>| policy.observes(hook) && !keeps_record(hook);
            self.guard.executor.observe(Event::PostInference, &input, &observes);
            if policy.recorded {
                let run = self.judge(input, move |hook| policy.observes(hook) && keeps_record(hook));
                return Some(Judging { what: What::Observed, run });
            }
        }
        self.finished = true;
        None
    }

    /// A choice as a whole: what was let go, and what is held.
    fn whole(&self, choice: u32) -> (Input, Vec<(CallId, ToolCall)>) {
        let text = |kind| {
            let mut texts = self.relay.tracks().iter().zip(&self.passages);
            let (track, passage) = texts.find(|(track, _)| (track.choice, track.kind) == (choice, kind))?;
            Some(Arc::from([passage.said(), track.part(passage.rest()).unwrap_or_default()].concat()))
        };
        let calls = self.calls.shown(&self.relay, choice);
        let shown: Arc<[ToolCall]> = calls.iter().map(|(_, call)| call.clone()).collect();
        let output = ModelOutput {
            text: text(TrackKind::Text),
            thinking: text(TrackKind::Thinking),
            tool_calls: Some(shown).filter(|calls| !calls.is_empty()),
        };
        (self.input(choice, output, None), calls)
    }

    /// What hooks are told of a part of the answer: the request too.
    fn input(&self, choice: u32, output: ModelOutput, segment: Option<Segment>) -> Input {
        Input {
            output_text: output.text,
            output_thinking: output.thinking,
            tool_calls: output.tool_calls,
            segment,
            done_reason: self.relay.done_reason(choice).map(Arc::from),
            usage: self.relay.usage().cloned(),
            ..(*self.admitted.input).clone()
        }
    }

    /// Shows hooks an answer or a part of it.
    fn judge(&self, input: Input, pick: impl Fn(&Selected<'_>) -> bool + Send + Sync + 'static) -> Run {
        let length = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
        let calls = input.tool_calls.iter().flat_map(|calls| calls.iter());
        let arguments = calls.map(|call| call.function.arguments.len()).sum::<usize>();
        let size = length(&input.output_text) + length(&input.output_thinking) + arguments;
        let run = self.dispatch(input, pick);
        self.placed(size, Box::pin(async { Said::Verdict(Box::new(run.await)) }))
    }

    /// Work on so many bytes, where it is to be done.
    fn placed(&self, size: usize, run: Run) -> Run {
        match self.settings.aside {
            Some((from, aside)) if size >= from => elsewhere(aside, run),
            _ => run,
        }
    }

    /// The hooks of `post_inference` that `pick` wants. What the wire can hold is found out when it is written.
    fn dispatch(
        &self,
        input: Input,
        pick: impl Fn(&Selected<'_>) -> bool + Send + Sync + 'static,
    ) -> impl Future<Output = Verdict> + Send + 'static {
        let (guard, cancel) = (self.guard.clone(), self.call.cancel.clone());
        async move { guard.judged(Event::PostInference, &input, &cancel, &|_| Ok(()), &pick).await }
    }

    /// Obeys what came of a dispatch.
    pub(super) fn heard(&mut self, judging: Judging, Heard(said): Heard) {
        let obeyed = match (judging.what, said) {
            (What::Segment { id, kind, left, show }, Said::Verdict(verdict)) => {
                self.heard_of_segment(id, kind, &left, show, &verdict)
            }
            (What::Whole { choice, calls }, Said::Verdict(verdict)) => self.heard_of_whole(choice, &calls, &verdict),
            (What::Call { id }, Said::Call(said)) => self.heard_of_call(id, *said),
            (What::Observed, Said::Verdict(verdict)) => {
                witness(&self.call.as_call(), Event::PostInference, &verdict);
                Ok(())
            }
            (_, Said::Nothing) => Err(Refusal::new(ErrorKind::Internal)),
            (_, _) => Ok(()),
        };
        match obeyed {
            Ok(()) => self.feed(),
            Err(refusal) => self.refuse(refusal),
        }
    }

    fn heed(&self, verdict: &Verdict) -> Result<(), Refusal> {
        heed(&self.call.as_call(), Event::PostInference, Phase::PostInference, &self.admitted.request, verdict)
    }

    fn unheld(&self, reason: &str) -> Refusal {
        unheld(Phase::PostInference, &self.call.as_call(), reason)
    }

    fn heard_of_segment(
        &mut self,
        id: TrackId,
        kind: TrackKind,
        left: &str,
        show: Show,
        verdict: &Verdict,
    ) -> Result<(), Refusal> {
        self.heed(verdict)?;
        let output = verdict.rewritten.output.as_ref();
        let (new, other) = match (output, kind) {
            (None, _) => (None, None),
            (Some(output), TrackKind::Text) => (output.text.as_deref(), output.thinking.as_deref()),
            (Some(output), TrackKind::Thinking) => (output.thinking.as_deref(), output.text.as_deref()),
        };
        let calls = output.and_then(|output| output.tool_calls.as_deref());
        if other.is_some_and(|text| !text.is_empty()) || calls.is_some_and(|calls| !calls.is_empty()) {
            return Err(self.unheld("an answer to a segment names what was not in it"));
        }
        let track = self.relay.tracks().get(id.0);
        let segment = track.and_then(|track| track.part(show.range.clone())).unwrap_or_default();
        let change = new.and_then(|new| change(left, segment, new));
        let asked = verdict.holdback_chars.map_or(0, |chars| chars as usize);
        let holdback = if show.flush { 0 } else { asked.max(self.policy.holdback) };
        let Some(passage) = self.passages.get_mut(id.0) else { return Ok(()) };
        passage.clear(&mut self.relay, id, show.range, change, holdback).map_err(|no| self.unheld(&no.reason))
    }

    fn heard_of_call(&mut self, id: CallId, said: SaidOfCall) -> Result<(), Refusal> {
        if let Some(verdict) = &said.verdict {
            self.heed(verdict)?;
        }
        let done = match said.left.map_err(|why| self.unheld(&why))? {
            None => self.calls.remove(&mut self.relay, id),
            Some(left) => {
                let fate: Fate = said.judged.heed(&self.call.as_call(), &self.admitted.request, &left)?;
                self.calls.settle(&mut self.relay, id, left, fate)
            }
        };
        done.map_err(|no| self.unheld(&no.reason))
    }

    fn heard_of_whole(&mut self, choice: u32, calls: &[(CallId, ToolCall)], verdict: &Verdict) -> Result<(), Refusal> {
        self.heed(verdict)?;
        let output = verdict.rewritten.output.clone().unwrap_or_default();
        for (kind, new) in [(TrackKind::Thinking, output.thinking), (TrackKind::Text, output.text)] {
            self.whole_text(choice, kind, new.as_deref())?;
        }
        let judged = self.calls.judged(&mut self.relay, calls, output.tool_calls.as_deref());
        judged.map_err(|no| self.unheld(&no.reason))
    }

    /// A text as those who judge the whole left it. What has been let go before cannot be changed any more.
    fn whole_text(&mut self, choice: u32, kind: TrackKind, new: Option<&str>) -> Result<(), Refusal> {
        let is = |(_, track): &(usize, &gatehook_inference::Track)| (track.choice, track.kind) == (choice, kind);
        let found = self.relay.tracks().iter().enumerate().find(is).map(|(place, _)| TrackId(place));
        let id = match (found, new) {
            (Some(id), _) => id,
            (None, None | Some("")) => return Ok(()),
            (None, Some(_)) => {
                let made = self.relay.add_track(choice, kind).map_err(|no| self.unheld(&no.reason))?;
                self.feed();
                made
            }
        };
        let (Some(passage), Some(track)) = (self.passages.get_mut(id.0), self.relay.tracks().get(id.0)) else {
            return Ok(());
        };
        let (rest, said) = (passage.rest(), passage.said());
        let change = match new.map(|new| new.strip_prefix(said)) {
            None => None,
            Some(None) => return Err(self.unheld("what is to be changed has been let go")),
            Some(Some(new)) => change("", track.part(rest.clone()).unwrap_or_default(), new),
        };
        passage.clear(&mut self.relay, id, rest, change, 0).map_err(|no| self.unheld(&no.reason))
    }
}

/// A call as those who judge the answer left it.
fn left_of(call: &ToolCall, verdict: Option<&Verdict>) -> Result<Option<ToolCall>, String> {
    let Some(output) = verdict.and_then(|verdict| verdict.rewritten.output.as_ref()) else {
        return Ok(Some(call.clone()));
    };
    if [&output.text, &output.thinking].into_iter().flatten().any(|text| !text.is_empty()) {
        return Err("an answer to a segment names what was not in it".to_owned());
    }
    match output.tool_calls.as_deref() {
        None => Ok(Some(call.clone())),
        Some([]) => Ok(None),
        Some([new]) => Ok(Some(merged(call, new))),
        Some(_) => Err("a stream takes no tool call that the model has not made".to_owned()),
    }
}
