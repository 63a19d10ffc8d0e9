//! The two stages: before the upstream is asked, and after it answered.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use gatehook_engine::events::{Event, Input, Message, ModelOutput, Rewritten, Verb, Verdict};
use gatehook_engine::{Executor, HookDefinition};
use gatehook_inference::{Choice, ErrorKind, HookNote, Path, Phase, ReadError, Request, Response, Route};

use crate::call::Call;
use crate::refusal::Refusal;
use crate::session::session_of;

/// The hooks around model calls.
#[derive(Debug, Clone)]
pub struct Guard {
    executor: Executor,
    before: bool,
    beside: bool,
    after: bool,
    may_block: bool,
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
    request: Request,
    input: Input,
}

impl Guard {
    /// The guard of these hooks; `None` where none is about inference.
    pub fn new(executor: Executor) -> Option<Self> {
        let before = executor.has(Event::PreInference);
        let after = executor.has(Event::PostInference);
        let beside = executor.hooks().any(|hook| hook.event == Event::PreInference && hook.definition.concurrent);
        let about = |event| matches!(event, Event::PreInference | Event::PostInference);
        let may_block = executor.hooks().any(|hook| about(hook.event) && !hook.definition.observer);
        (before || after).then_some(Self { executor, before, beside, after, may_block })
    }

    /// Whether hooks look at requests to this path, or at its answers.
    pub fn looks_at(&self, path: Path) -> bool {
        self.before || self.looks_after(path).is_some()
    }

    /// The route whose answers hooks look at, if they do.
    pub fn looks_after(&self, path: Path) -> Option<Route> {
        match path {
            Path::Route(route) => self.after.then_some(route),
            Path::Text(_) => None,
        }
    }

    /// Whether any of the hooks is more than an observer. Then what hooks cannot see must not pass.
    pub fn may_block(&self) -> bool {
        self.may_block
    }

    /// Shows a request's body to the hooks that stand before the call.
    pub async fn before(&self, call: &Call<'_>, body: Bytes) -> Result<Admitted, Refusal> {
        let request = Request::read(call.path, body).map_err(|error| unreadable(&error))?;
        let mut input = input_of(call, &request);
        if self.executor.wants_images(Event::PreInference) {
            input.messages = Some(request.messages_with_images());
        }
        let made = Made::default();
        let hold = |rewritten: &Rewritten| held(&request, rewritten, &made);
        let now = |hook: &HookDefinition| !hook.concurrent;
        let verdict = self.executor.dispatch_some(Event::PreInference, &input, call.cancel, &hold, &now).await;
        self.heed(call, Phase::PreInference, &request, &verdict)?;
        let body = match &verdict.rewritten.messages {
            None => request.unchanged(),
            Some(messages) => {
                let made = made.into_inner().unwrap_or_default().filter(|(of, _)| Arc::ptr_eq(of, messages));
                let body = made.map_or_else(|| request.rewrite(messages), |(_, body)| Ok(body));
                body.map_err(|unheld| unheld_by(Phase::PreInference, call, unheld.reason))?
            }
        };
        if let Some(messages) = verdict.rewritten.messages {
            input.messages = Some(messages);
        }
        let rewritten = !same(&body, request.body());
        let view = request.view();
        let (model, stream) = (view.model.clone(), view.stream);
        Ok(Admitted { body, rewritten, model, stream, request, input })
    }

    /// Whether hooks judge requests while the upstream already works on them.
    pub fn judges_beside(&self) -> bool {
        self.beside
    }

    /// Shows an admitted request to the hooks that judge it while the upstream works: nothing of the answer may leave
    /// before.
    pub async fn beside(&self, call: &Call<'_>, admitted: &Admitted) -> Result<(), Refusal> {
        let (event, input) = (Event::PreInference, &admitted.input);
        let late = |hook: &HookDefinition| hook.concurrent;
        let verdict = self.executor.dispatch_some(event, input, call.cancel, &|_| Ok(()), &late).await;
        self.heed(call, Phase::PreInference, &admitted.request, &verdict)
    }

    /// Shows an answer's body (2xx, not a stream) to the hooks that stand after the call; the bytes for the client.
    pub async fn after(&self, call: &Call<'_>, admitted: &Admitted, body: Bytes) -> Result<Bytes, Refusal> {
        let Some(route) = self.looks_after(call.path) else { return Ok(body) };
        let response = Response::read(route, body).map_err(|error| {
            tracing::warn!(id = &**call.request_id, %error, "an answer cannot be shown to hooks");
            Refusal::new(ErrorKind::BadUpstream)
                .saying("The inference server's answer cannot be shown to a policy hook.")
        })?;
        let mut outputs = vec![ModelOutput::default(); response.choices().len()];
        for (place, choice) in response.choices().iter().enumerate() {
            let input = after_input(&admitted.input, choice, &response);
            let verdict = {
                let hold = |rewritten: &Rewritten| {
                    let mut outputs = outputs.clone();
                    set(&mut outputs, place, rewritten.output.as_ref());
                    response.rewrite(&outputs).map(drop).map_err(|unheld| unheld.reason)
                };
                self.executor.dispatch_held(Event::PostInference, &input, call.cancel, &hold).await
            };
            self.heed(call, Phase::PostInference, &admitted.request, &verdict)?;
            set(&mut outputs, place, verdict.rewritten.output.as_ref());
        }
        response.rewrite(&outputs).map_err(|unheld| unheld_by(Phase::PostInference, call, unheld.reason))
    }

    /// Tells the witness, and gives the refusal where the verdict is one.
    fn heed(&self, call: &Call<'_>, phase: Phase, request: &Request, verdict: &Verdict) -> Result<(), Refusal> {
        let event = match phase {
            Phase::PreInference => Event::PreInference,
            Phase::PostInference => Event::PostInference,
        };
        call.witness.judged(event, verdict);
        log(call, event, verdict);
        let Some(kind) = ErrorKind::of(verdict.verb).or((!verdict.allowed).then_some(ErrorKind::Denied)) else {
            return Ok(());
        };
        let refusal = verdict.refusal.as_ref();
        tracing::info!(
            id = &**call.request_id,
            event = event.name(),
            hook = refusal.map(|refusal| &*refusal.hook_name),
            verb = verdict.verb.name(),
            "refused by a hook"
        );
        let mut note = HookNote {
            user_message: refusal.and_then(|refusal| refusal.user_message.clone()),
            agent_message: refusal.and_then(|refusal| refusal.agent_message.clone()),
            hook_name: refusal.map(|refusal| refusal.hook_name.to_string()),
            ..note(phase, call)
        };
        if verdict.verb == Verb::Ask {
            note.fingerprint = Some(request.fingerprint(call.caller.key_name.as_deref().unwrap_or_default()));
        }
        let message = note.user_message.clone().unwrap_or_else(|| said(verdict));
        Err(Refusal { kind, message, hook: Some(Box::new(note)) })
    }
}

/// Every hook that ran, without a word of what it was shown or said.
fn log(call: &Call<'_>, event: Event, verdict: &Verdict) {
    for outcome in &verdict.outcomes {
        tracing::debug!(
            request_id = &**call.request_id,
            event = event.name(),
            hook = %outcome.name,
            verdict = outcome.verb.name(),
            duration = ?outcome.duration,
            "a hook ran"
        );
    }
}

/// Why, in the hook's own words. How a hook failed is nothing for a caller.
fn said(verdict: &Verdict) -> String {
    match verdict.verb {
        Verb::Deny | Verb::Ask if !verdict.decision_reason.is_empty() => verdict.decision_reason.clone(),
        Verb::Deny => verdict.message.clone(),
        _ => String::new(),
    }
}

fn note(phase: Phase, call: &Call<'_>) -> HookNote {
    HookNote { request_id: Some(call.request_id.to_string()), phase: Some(phase), ..HookNote::default() }
}

fn unheld_by(phase: Phase, call: &Call<'_>, reason: String) -> Refusal {
    tracing::warn!(id = &**call.request_id, reason, "a rewrite cannot be made");
    Refusal { hook: Some(Box::new(note(phase, call))), ..Refusal::new(ErrorKind::ModifyUnsupported) }
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

fn same(one: &Bytes, other: &Bytes) -> bool {
    one.as_ptr() == other.as_ptr() && one.len() == other.len()
}

/// What hooks are told of a request.
fn input_of(call: &Call<'_>, request: &Request) -> Input {
    let view = request.view();
    Input {
        session_id: Some(session_of(call.caller, view)),
        model_id: view.model.clone(),
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
        ..Input::default()
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
