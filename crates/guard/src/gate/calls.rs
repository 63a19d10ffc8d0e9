//! The tool calls of a stream: each is held until it is complete and judged, unless nobody judges calls.

use gatehook_engine::events::ToolCall;
use gatehook_inference::{Call, CallId, Fate as Wire, Relay, Unheld};

use super::policy::Calls;
use crate::placeholders::{Placeholders, restored_call};
use crate::tools::Fate;

/// The calls of one answer.
pub(super) struct CallsPassage {
    /// What they wait for, of the hooks of `post_inference`.
    hooks: Calls,
    /// Nobody looks at calls, and nothing in them is restored: they go as they come.
    free: bool,
    placeholders: Placeholders,
    /// One for each call of the relay.
    stages: Vec<Stage>,
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
enum Stage {
    /// It goes as it comes.
    Free,
    /// No hook has seen it.
    Unseen,
    /// Those who judge the whole have left it so; now those are asked who judge each call.
    Left(ToolCall),
    /// It went like this, or not at all.
    Gone(Option<ToolCall>),
}

/// A call that hooks are to see.
pub(super) struct DueCall {
    pub(super) id: CallId,
    pub(super) call: ToolCall,
    /// Its choice, and its place among the calls of that choice.
    pub(super) choice: u32,
    pub(super) index: u32,
    /// Some hooks of `post_inference` judge it by itself.
    pub(super) unseen: bool,
}

impl CallsPassage {
    pub(super) fn new(hooks: Calls, tools: bool, placeholders: Placeholders) -> Self {
        let free = hooks == Calls::default() && !tools && placeholders.is_empty();
        Self { hooks, free, placeholders, stages: Vec::new() }
    }

    /// Takes in the calls that have come.
    pub(super) fn feed(&mut self, relay: &mut Relay) -> Result<(), Unheld> {
        for id in (self.stages.len()..relay.calls().len()).map(CallId) {
            if self.free {
                relay.decide(id, Wire::Keep)?;
            }
            self.stages.push(if self.free { Stage::Free } else { Stage::Unseen });
        }
        Ok(())
    }

    /// The next call that hooks are to see. Those that wait for the whole answer are not due before it was judged.
    pub(super) fn due(&self, relay: &Relay) -> Option<DueCall> {
        let calls = relay.calls().iter().zip(&self.stages).enumerate();
        let mut due = calls.filter_map(|(place, (call, stage))| match stage {
            Stage::Unseen if call.complete && !self.hooks.whole => Some((place, call, call.call.clone())),
            Stage::Left(left) => Some((place, call, left.clone())),
            _ => None,
        });
        let (place, Call { choice, .. }, call) = due.next()?;
        let index = relay.calls().iter().take(place).filter(|earlier| earlier.choice == *choice).count();
        Some(DueCall { id: CallId(place), call, choice: *choice, index: index as u32, unseen: self.hooks.each })
    }

    /// The calls of a choice that are complete and have not been taken out.
    pub(super) fn shown(&self, relay: &Relay, choice: u32) -> Vec<(CallId, ToolCall)> {
        let calls = relay.calls().iter().zip(&self.stages).enumerate();
        let calls = calls.filter(|(_, (call, _))| call.choice == choice && call.complete);
        let shown = calls.filter_map(|(place, (call, stage))| match stage {
            Stage::Free | Stage::Unseen => Some((CallId(place), call.call.clone())),
            Stage::Left(call) | Stage::Gone(Some(call)) => Some((CallId(place), call.clone())),
            Stage::Gone(None) => None,
        });
        shown.collect()
    }

    /// Those who judge the answer as a whole were shown these calls, and left them so.
    pub(super) fn judged(
        &mut self,
        relay: &mut Relay,
        shown: &[(CallId, ToolCall)],
        left: Option<&[ToolCall]>,
    ) -> Result<(), Unheld> {
        let matched = match left {
            None => shown.iter().map(|(_, call)| Some(call.clone())).collect(),
            Some(left) => matched(shown, left)?,
        };
        for ((id, old), new) in shown.iter().zip(matched) {
            match (self.stages.get_mut(id.0), new) {
                (Some(stage @ Stage::Unseen), Some(new)) => *stage = Stage::Left(new),
                (Some(Stage::Unseen), None) => self.remove(relay, *id)?,
                (_, Some(new)) if new == *old => {}
                _ => return Err(Unheld { reason: "the tool call has been let go".to_owned() }),
            }
        }
        Ok(())
    }

    /// What becomes of a call, which came as `wanted`.
    pub(super) fn settle(&mut self, relay: &mut Relay, id: CallId, left: ToolCall, fate: Fate) -> Result<(), Unheld> {
        let call = match fate {
            Fate::Kept => left,
            Fate::Rewritten(call) => call,
            Fate::Removed(note) => {
                relay.note(*note);
                return self.remove(relay, id);
            }
        };
        let restored = restored_call(&call, &self.placeholders);
        let goes = restored.as_ref().unwrap_or(&call);
        let same = relay.calls().get(id.0).is_some_and(|came| came.call == *goes);
        relay.decide(id, if same { Wire::Keep } else { Wire::Rewrite(goes) })?;
        self.set(id, Some(call));
        Ok(())
    }

    pub(super) fn remove(&mut self, relay: &mut Relay, id: CallId) -> Result<(), Unheld> {
        relay.decide(id, Wire::Remove)?;
        self.set(id, None);
        Ok(())
    }

    /// The stream is over: calls that never became complete do not go.
    pub(super) fn remove_torn(&mut self, relay: &mut Relay) -> Result<(), Unheld> {
        let torn: Vec<CallId> = relay
            .calls()
            .iter()
            .zip(&self.stages)
            .enumerate()
            .filter(|(_, (call, stage))| !call.complete && **stage == Stage::Unseen)
            .map(|(place, _)| CallId(place))
            .collect();
        torn.into_iter().try_for_each(|id| self.remove(relay, id))
    }

    fn set(&mut self, id: CallId, gone: Option<ToolCall>) {
        if let Some(stage) = self.stages.get_mut(id.0) {
            *stage = Stage::Gone(gone);
        }
    }
}

/// What became of each call: as many are taken one by one, otherwise they are found again by id.
fn matched(shown: &[(CallId, ToolCall)], left: &[ToolCall]) -> Result<Vec<Option<ToolCall>>, Unheld> {
    if shown.len() == left.len() {
        return Ok(shown.iter().zip(left).map(|((_, old), new)| Some(merged(old, new))).collect());
    }
    let mut left = left.iter().peekable();
    let is = |old: &ToolCall, new: &ToolCall| old == new || (new.id.is_some() && old.id == new.id);
    let found = shown.iter().map(|(_, old)| left.next_if(|new| is(old, new)).map(|new| merged(old, new))).collect();
    match left.next() {
        None => Ok(found),
        Some(_) => Err(Unheld { reason: "a stream takes no tool call that the model has not made".to_owned() }),
    }
}

/// What a call does not name stays.
pub(super) fn merged(old: &ToolCall, new: &ToolCall) -> ToolCall {
    let mut call = new.clone();
    call.id = call.id.or_else(|| old.id.clone());
    if call.function.name.is_empty() {
        call.function.name = old.function.name.clone();
    }
    for (key, value) in &old.extra {
        call.extra.entry(key.clone()).or_insert_with(|| value.clone());
    }
    call
}
