//! The two stages: before the upstream is asked, and after it answered.

use std::pin::pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use gatehook_engine::events::{Event, Input, Message, ModelOutput, Rewritten, ToolCall, Verdict};
use gatehook_engine::{Executor, Hold, HookDefinition, Pick, Selected, Streaming};
use gatehook_inference::{
    Choice, ErrorKind, HookNote, Path, Phase, ReadError, Request, Response, Route, Unheld, may_hold_approval,
};
use gatehook_scan::Restore;
use tokio_util::sync::CancellationToken;

use crate::call::Call;
use crate::heed::{heed, unheld};
use crate::permits::{Permits, Person, settle};
use crate::placeholders::{Placeholders, restored};
use crate::refusal::Refusal;
use crate::results::{self, Results};
use crate::session::session_of;
use crate::tools::{self, Fate};

/// The hooks around model calls.
#[derive(Debug, Clone)]
pub struct Guard {
    pub(crate) executor: Executor,
    /// What hooks have made of tool results; `None` where no hook looks at them.
    pub(crate) results: Option<Arc<Results>>,
    before: bool,
    beside: bool,
    after: bool,
    pub(crate) tools: bool,
    may_block: bool,
    /// What hooks are told besides.
    about: Arc<Input>,
    /// Whom they want asked.
    person: Person,
}

/// A request that no hook refuses.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// The bytes for the upstream.
    pub body: Bytes,
    /// Whether they are others than those that came.
    pub rewritten: bool,
    /// The model that is asked for.
    pub model: Option<Arc<str>>,
    /// Whether the caller asks for a stream.
    pub stream: bool,
    /// Hooks look at its answer, or values must be put back into it: it goes through [`Guard::after`], or a gate.
    pub looks_after: bool,
    pub(crate) placeholders: Placeholders,
    /// Shared, because what is large is slow to move and to copy.
    pub(crate) request: Arc<Request>,
    pub(crate) input: Arc<Input>,
}

/// The events around a call of a model: hooks on others never run here.
pub const EVENTS: [Event; 6] = [
    Event::ToolResponseTransform,
    Event::PreInference,
    Event::PostInference,
    Event::ToolGuard,
    Event::PreToolUsePreempt,
    Event::PreToolUse,
];

impl Guard {
    /// The guard of these hooks; `None` where none is about inference, tool calls or their results.
    pub fn new(executor: Executor) -> Option<Self> {
        let may_block = executor.hooks().any(|hook| EVENTS.contains(&hook.event) && !hook.definition.observer);
        let is_beside = |event, hook: &HookDefinition| event == Event::PreInference && hook.concurrent;
        let beside = executor.hooks().any(|hook| is_beside(hook.event, hook.definition));
        let guard = Self {
            results: executor.has(Event::ToolResponseTransform).then(|| Arc::new(results::remembered())),
            before: executor.has(Event::PreInference),
            beside,
            after: executor.has(Event::PostInference),
            tools: tools::LANES.iter().any(|lane| executor.has(*lane)),
            may_block,
            about: Arc::default(),
            person: Person::default(),
            executor,
        };
        EVENTS.iter().any(|event| guard.executor.has(*event)).then_some(guard)
    }

    /// The same for an agent, which shows its tool calls and their results to hooks itself: here none sees them a second
    /// time. `about` is what they are told of the session.
    pub fn of_agent(executor: Executor, about: Input) -> Option<Self> {
        let own = |event| [Event::PreInference, Event::PostInference].contains(&event);
        let may_block = executor.hooks().any(|hook| own(hook.event) && !hook.definition.observer);
        let guard = Self { results: None, tools: false, may_block, about: Arc::new(about), ..Self::new(executor)? };
        (guard.before || guard.after).then_some(guard)
    }

    /// The same with somebody to ask where a hook of `pre_inference` or `post_inference` wants that.
    #[must_use]
    pub fn asking(self, person: Arc<dyn Permits>) -> Self {
        Self { person: Person(Some(person)), ..self }
    }

    /// Shows the hooks that `pick` wants an exchange; what they want asked is asked.
    pub(crate) async fn judged(
        &self,
        event: Event,
        input: &Input,
        cancel: &CancellationToken,
        hold: &Hold<'_>,
        pick: &Pick<'_>,
    ) -> Verdict {
        let verdict = self.executor.dispatch_some(event, input, cancel, hold, pick).await;
        // Seldom, and not worth room in every exchange.
        match self.person.asked(&verdict) {
            Some(person) => Box::pin(settle(person, event, input, verdict)).await,
            None => verdict,
        }
    }

    /// Whether hooks look at requests to this path, or at its answers.
    pub fn looks_at(&self, path: Path) -> bool {
        let results = self.results.is_some() && matches!(path, Path::Route(_));
        self.before || results || self.looks_after(path).is_some()
    }

    /// The route whose answers hooks look at, if they do: at what the model says, or at the calls it asks for.
    pub fn looks_after(&self, path: Path) -> Option<Route> {
        match path {
            Path::Route(route) => (self.after || self.tools).then_some(route),
            Path::Text(_) => None,
        }
    }

    /// Whether `body` may leave before it has been read ([`both`]): hooks look at answers alone, so that none refuses or
    /// rewrites a request, and no approval stands in it, which would have to be taken out.
    ///
    /// What cannot be read is still refused, as nothing of the answer leaves before. All that its caller gains is a call
    /// of the upstream that is broken off; a body that can be read would have had the whole of it.
    pub fn may_read_late(&self, body: &[u8]) -> bool {
        !self.before && self.results.is_none() && !may_hold_approval(body)
    }

    /// Whether any of the hooks is more than an observer. Then what hooks cannot see must not pass.
    pub fn may_block(&self) -> bool {
        self.may_block
    }

    /// Shows a request's body to the hooks that stand before the call.
    pub async fn before(&self, call: &Call<'_>, body: Bytes) -> Result<Admitted, Refusal> {
        let request = Request::read(call.path, body).map_err(|error| unreadable(&error))?;
        let mut input = input_of(call, &request, &self.about);
        if self.executor.wants_images(Event::PreInference) {
            input.messages = Some(request.messages_with_images());
        }
        let transformed = self.transform_results(call, &input).await;
        if let Some(messages) = &transformed {
            input.messages = Some(messages.clone());
        }
        let made = Made::default();
        let hold = |rewritten: &Rewritten| held(&request, rewritten, &made);
        let now = |hook: &Selected<'_>| !hook.definition.concurrent;
        let verdict = self.judged(Event::PreInference, &input, call.cancel, &hold, &now).await;
        heed(call, Event::PreInference, Phase::PreInference, &request, &verdict)?;
        let messages = verdict.rewritten.messages.or(transformed);
        let body = match &messages {
            None => request.unchanged(),
            Some(messages) => {
                let made = made.into_inner().unwrap_or_default().filter(|(of, _)| Arc::ptr_eq(of, messages));
                let body = made.map_or_else(|| request.rewrite(messages), |(_, body)| Ok(body));
                body.map_err(|no| unheld(Phase::PreInference, call, &no.reason))?
            }
        };
        if messages.is_some() {
            input.messages = messages;
        }
        let rewritten = !same(&body, request.body());
        let view = request.view();
        let (model, stream) = (view.model.clone(), view.stream);
        let placeholders = Placeholders::new(Restore::new(verdict.placeholders));
        let answers = matches!(call.path, Path::Route(_));
        let looks_after = answers && (self.after || self.tools || !placeholders.is_empty());
        let (request, input) = (Arc::new(request), Arc::new(input));
        Ok(Admitted { body, rewritten, model, stream, looks_after, placeholders, request, input })
    }

    /// Whether hooks judge requests while the upstream already works on them.
    pub fn judges_beside(&self) -> bool {
        self.beside
    }

    /// Shows an admitted request to the hooks that judge it while the upstream works: nothing of the answer may leave
    /// before.
    pub async fn beside(&self, call: &Call<'_>, admitted: &Admitted) -> Result<(), Refusal> {
        let (event, input) = (Event::PreInference, &admitted.input);
        let late = |hook: &Selected<'_>| hook.definition.concurrent;
        let verdict = self.judged(event, input, call.cancel, &|_| Ok(()), &late).await;
        heed(call, event, Phase::PreInference, &admitted.request, &verdict)
    }

    /// Shows an answer's body (2xx, not a stream) to the hooks that stand after the call; the bytes for the client.
    pub async fn after(&self, call: &Call<'_>, admitted: &Admitted, body: Bytes) -> Result<Bytes, Refusal> {
        let (Path::Route(route), true) = (call.path, admitted.looks_after) else { return Ok(body) };
        let hooks = self.executor.selected(Event::PostInference, &admitted.input);
        let is_judged = hooks.iter().any(|hook| !hook.definition.observer && hook.streams() != Streaming::Observe);
        let read = if is_judged { Response::read_alone } else { Response::read };
        let response = match read(route, body.clone()) {
            Ok(response) => response,
            Err(error) if self.looks_after(call.path).is_none() => {
                tracing::warn!(id = &**call.request_id, %error, "values cannot be put back into an answer");
                return Ok(body);
            }
            Err(error) => {
                tracing::warn!(id = &**call.request_id, %error, "an answer cannot be shown to hooks");
                return Err(Refusal::new(ErrorKind::BadUpstream)
                    .saying("The inference server's answer cannot be shown to a policy hook."));
            }
        };
        let mut outputs = vec![ModelOutput::default(); response.choices().len()];
        for (place, choice) in response.choices().iter().enumerate() {
            let input = after_input(&admitted.input, choice, &response);
            let verdict = {
                let hold = |rewritten: &Rewritten| {
                    let mut outputs = outputs.clone();
                    set(&mut outputs, place, rewritten.output.as_ref());
                    response.rewrite(&outputs).map(drop).map_err(|no| no.reason)
                };
                self.judged(Event::PostInference, &input, call.cancel, &hold, &|_| true).await
            };
            heed(call, Event::PostInference, Phase::PostInference, &admitted.request, &verdict)?;
            set(&mut outputs, place, verdict.rewritten.output.as_ref());
        }
        let note = self.judge_calls(call, admitted, &response, &mut outputs).await?;
        let handed = handed(&response, outputs, note.as_deref(), &admitted.placeholders);
        handed.map_err(|no| unheld(Phase::PostInference, call, &no.reason))
    }

    /// Shows the calls that the hooks so far have left to those who judge calls. What was removed is said in the note,
    /// of several the first.
    async fn judge_calls(
        &self,
        call: &Call<'_>,
        admitted: &Admitted,
        response: &Response,
        outputs: &mut [ModelOutput],
    ) -> Result<Option<Box<HookNote>>, Refusal> {
        let mut first = None;
        if !self.tools {
            return Ok(first);
        }
        let about = tools::about(&admitted.input);
        for (place, choice) in response.choices().iter().enumerate() {
            let left = outputs.get(place).and_then(|output| output.tool_calls.clone());
            let Some(calls) = left.or_else(|| choice.output.tool_calls.clone()) else { continue };
            let mut kept = Vec::with_capacity(calls.len());
            for (index, wanted) in calls.iter().enumerate() {
                let hold = |rewritten: ToolCall| {
                    let mut calls = calls.to_vec();
                    calls.get_mut(index).into_iter().for_each(|slot| *slot = rewritten.clone());
                    let mut outputs = outputs.to_vec();
                    set_calls(&mut outputs, place, calls);
                    response.rewrite(&outputs).map(drop).map_err(|no| no.reason)
                };
                let judged = tools::judge(&self.executor, call.cancel, &about, wanted, &hold).await;
                match judged.heed(call, &admitted.request, wanted)? {
                    Fate::Kept => kept.push(wanted.clone()),
                    Fate::Rewritten(call) => kept.push(call),
                    Fate::Removed(note) => drop(first.get_or_insert(note)),
                }
            }
            if *kept != *calls {
                set_calls(outputs, place, kept);
            }
        }
        Ok(first)
    }
}

/// The answer with what hooks have made of it, and with values in the place of placeholders.
fn handed(
    response: &Response,
    outputs: Vec<ModelOutput>,
    note: Option<&HookNote>,
    placeholders: &Placeholders,
) -> Result<Bytes, Unheld> {
    if placeholders.is_empty() {
        return response.rewrite_noted(&outputs, note);
    }
    let each = response.choices().iter().zip(&outputs);
    let mut handed: Vec<_> = each.map(|(choice, output)| restored(choice, output, placeholders)).collect();
    response.rewrite_noted(&handed, note).or_else(|_| {
        // Thinking that is signed stays as it is.
        handed.iter_mut().zip(outputs).for_each(|(handed, output)| handed.thinking = output.thinking);
        response.rewrite_noted(&handed, note)
    })
}

fn unreadable(error: &ReadError) -> Refusal {
    Refusal::new(ErrorKind::Malformed).saying(error.to_string())
}

/// Whether the request can hold a rewrite. The bytes are kept, so that the last rewrite is not made twice.
fn held(request: &Request, rewritten: &Rewritten, made: &Made) -> Result<(), String> {
    let Some(messages) = &rewritten.messages else { return Ok(()) };
    let body = request.rewrite(messages).map_err(|unheld| unheld.reason)?;
    if let Ok(mut made) = made.lock() {
        *made = Some((messages.clone(), body));
    }
    Ok(())
}

/// The messages of the last rewrite, and the bytes that hold them.
type Made = Mutex<Option<(Arc<[Message]>, Bytes)>>;

fn set(outputs: &mut [ModelOutput], place: usize, output: Option<&ModelOutput>) {
    if let (Some(slot), Some(output)) = (outputs.get_mut(place), output) {
        *slot = output.clone();
    }
}

fn set_calls(outputs: &mut [ModelOutput], place: usize, calls: Vec<ToolCall>) {
    if let Some(output) = outputs.get_mut(place) {
        output.tool_calls = Some(calls.into());
    }
}

fn same(one: &Bytes, other: &Bytes) -> bool {
    one.as_ptr() == other.as_ptr() && one.len() == other.len()
}

/// What hooks are told of a request.
fn input_of(call: &Call<'_>, request: &Request, about: &Input) -> Input {
    let view = request.view();
    Input {
        session_id: Some(session_of(call.caller, view)),
        model_id: about.model_id.clone().or_else(|| view.model.clone()),
        request_id: Some(call.request_id.clone()),
        route: Some(call.path.as_str().into()),
        messages: Some(view.messages.clone()),
        tools: view.tools.clone(),
        options: view.options.clone(),
        stream: Some(view.stream),
        format: view.format.clone(),
        suffix: view.suffix.clone(),
        template: view.template.clone(),
        context: view.context.clone(),
        client: Some(Arc::new(call.caller.shown())),
        approval: call.caller.approval.clone().or_else(|| view.approval.clone()),
        ..about.clone()
    }
}

/// What hooks are told of an answer: the request too.
fn after_input(before: &Input, choice: &Choice, response: &Response) -> Input {
    Input {
        output_text: choice.output.text.clone(),
        output_thinking: choice.output.thinking.clone(),
        tool_calls: choice.output.tool_calls.clone(),
        done_reason: choice.done_reason.clone(),
        usage: response.usage().cloned(),
        ..before.clone()
    }
}

/// Asks the upstream while hooks still judge ([`Guard::beside`]), or while the request is read that has left
/// ([`Guard::may_read_late`]). Nothing is known before that is done: a refusal drops the answer, or the call that waits
/// for it, and so the upstream sees its connection closed.
///
/// # Errors
///
/// That of the verdict, else that of the answer.
pub async fn both<V, A, E>(
    verdict: impl Future<Output = Result<V, E>>,
    answer: impl Future<Output = Result<A, E>>,
) -> Result<(V, A), E> {
    let (mut verdict, mut answer) = (pin!(verdict), pin!(answer));
    tokio::select! {
        biased;
        // First, so that the request leaves before a hook of this thread takes its time.
        answer = &mut answer => Ok((verdict.await?, answer?)),
        verdict = &mut verdict => Ok((verdict?, answer.await?)),
    }
}
