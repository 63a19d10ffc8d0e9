//! Tool calls on the wire: each is judged before a client can act on it, as an agent's own calls are.

use std::sync::Arc;

use gatehook_engine::Executor;
use gatehook_engine::events::{Event, Input, Rewritten, ToolCall, Verb, Verdict};
use gatehook_inference::{HookNote, Phase, Request, arguments_of, with_arguments};
use tokio_util::sync::CancellationToken;

use crate::call::Call;
use crate::heed::{heed, note, refused, said, witness};
use crate::refusal::Refusal;

/// Who only judges a call, and is asked once more where its arguments were rewritten.
const JUDGES: [Event; 2] = [Event::ToolGuard, Event::PreToolUsePreempt];

/// All who judge a call, in order.
pub(crate) const LANES: [Event; 3] = [Event::ToolGuard, Event::PreToolUsePreempt, Event::PreToolUse];

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fate {
    Kept,
    Rewritten(ToolCall),
    /// It goes, and this is said instead.
    Removed(Box<HookNote>),
}

/// What all who judge a call said, in order.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    verdicts: Vec<(Event, Verdict)>,
    /// It was to be judged, and its arguments are no object that everybody reads alike.
    unreadable: bool,
    /// The call with other arguments.
    rewritten: Option<ToolCall>,
}

/// Shows one call to all who judge it; `about` is what they are told of the exchange. Where the arguments are
/// rewritten, the judges are asked once more. `hold` says whether the wire can hold a rewritten call.
pub(crate) async fn judge(
    executor: &Executor,
    cancel: &CancellationToken,
    about: &Input,
    wanted: &ToolCall,
    hold: &(dyn Fn(ToolCall) -> Result<(), String> + Send + Sync),
) -> Judged {
    let mut judged = Judged::default();
    let mut input =
        Input { tool_name: Some(wanted.function.name.clone()), tool_use_id: wanted.id.clone(), ..about.clone() };
    match arguments_of(wanted) {
        Ok(arguments) => input.tool_input = Some(Arc::new(arguments)),
        Err(_) => {
            judged.unreadable = LANES.iter().any(|lane| is_judged(executor, *lane, &input));
            return judged;
        }
    }
    if judged.by_judges(executor, cancel, &input).await {
        return judged;
    }
    let held = |rewritten: &Rewritten| match &rewritten.tool_input {
        Some(arguments) => with_arguments(wanted, arguments).map_err(|no| no.reason).and_then(hold),
        None => Ok(()),
    };
    let verdict = executor.dispatch_held(Event::PreToolUse, &input, cancel, &held).await;
    let rewritten = verdict.rewritten.tool_input.clone();
    if judged.add(Event::PreToolUse, verdict) {
        return judged;
    }
    if let Some(arguments) = rewritten.filter(|new| Some(new) != input.tool_input.as_ref()) {
        judged.rewritten = with_arguments(wanted, &arguments).ok();
        input.tool_input = Some(arguments);
        judged.by_judges(executor, cancel, &input).await;
    }
    judged
}

impl Judged {
    /// Says whether nobody else need be asked.
    async fn by_judges(&mut self, executor: &Executor, cancel: &CancellationToken, input: &Input) -> bool {
        for lane in JUDGES {
            if self.add(lane, executor.dispatch(lane, input, cancel).await) {
                return true;
            }
        }
        false
    }

    fn add(&mut self, event: Event, verdict: Verdict) -> bool {
        let ends = !verdict.allowed || verdict.verb >= Verb::Ask;
        self.verdicts.push((event, verdict));
        ends
    }

    /// Tells the witness of every verdict; what becomes of the call, or the refusal of the whole answer where a person
    /// has to decide or a guard could not judge.
    pub(crate) fn heed(self, call: &Call<'_>, request: &Request, wanted: &ToolCall) -> Result<Fate, Refusal> {
        let name = &*wanted.function.name;
        if self.unreadable {
            tracing::warn!(id = &**call.request_id, tool = name, "a tool call without readable arguments was removed");
            let why = format!("The call of `{name}` was removed: its arguments are no JSON object.");
            return Ok(removed(note(Phase::PostInference, call), why));
        }
        for (event, verdict) in &self.verdicts {
            if verdict.verb != Verb::Deny {
                heed(call, *event, Phase::PostInference, request, verdict)?;
                continue;
            }
            witness(call, *event, verdict);
            let note = refused(Phase::PostInference, call, verdict);
            tracing::info!(id = &**call.request_id, tool = name, hook = note.hook_name, "a tool call was removed");
            let why = Some(said(verdict)).filter(|why| !why.is_empty());
            return Ok(removed(note, why.unwrap_or_else(|| format!("The call of `{name}` was removed."))));
        }
        Ok(self.rewritten.map_or(Fate::Kept, Fate::Rewritten))
    }
}

fn removed(note: HookNote, why: String) -> Fate {
    let user_message = note.user_message.clone().or(Some(why));
    Fate::Removed(Box::new(HookNote { permission: Some("deny".to_owned()), user_message, ..note }))
}

/// Whether a hook that is more than an observer fits.
fn is_judged(executor: &Executor, event: Event, input: &Input) -> bool {
    executor.selected(event, input).iter().any(|selected| !selected.definition.observer)
}

/// What hooks of tool events are told of an exchange: who and where, nothing of what was said.
pub(crate) fn about(exchange: &Input) -> Input {
    Input {
        session_id: exchange.session_id.clone(),
        model_id: exchange.model_id.clone(),
        request_id: exchange.request_id.clone(),
        route: exchange.route.clone(),
        client: exchange.client.clone(),
        approval: exchange.approval.clone(),
        plane: Some("wire".into()),
        ..Input::default()
    }
}
