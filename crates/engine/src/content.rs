//! What a hook has judged before, and need not see again. A conversation is resent with each call: what a hook let pass,
//! or rewrote, in one turn is the same in the next one, where the hook judges each message by itself.
//!
//! A hook is shown what is new. What it is not shown passes as it did before, or is rewritten as it was before. Only a
//! verdict that lets pass is remembered: a denial, a question or a failure leaves nothing behind.

mod digest;
mod memory;

use std::sync::{Arc, OnceLock};

use gatehook_events::{Event, Input, Message, Output, Permission, PermissionDecision};

use crate::compiled::Hook;
use crate::definition::{Cache, HookDefinition};
use crate::event_class::is_inference;
use crate::handler::Handler;
use crate::reply::{Answer, Said};
use digest::Digest;
use memory::Key;
pub(crate) use memory::{Judged, Memory};

/// The digests of one input, each made on first use, for all hooks that it is shown to.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    messages: OnceLock<Vec<Digest>>,
    surroundings: OnceLock<Option<Digest>>,
}

impl Digests {
    fn messages(&self, messages: &[Message]) -> &[Digest] {
        self.messages.get_or_init(|| messages.iter().map(Digest::of_message).collect())
    }

    fn surroundings(&self, input: &Input) -> Option<Digest> {
        *self.surroundings.get_or_init(|| Digest::of_surroundings(input))
    }

    /// After a rewrite. Messages that stayed as they were keep their digests.
    pub(crate) fn rewritten(self, before: &Input, after: &Input) -> Self {
        let (before, after) = (before.messages.as_deref(), after.messages.as_deref());
        let known = self.messages.into_inner().zip(before).zip(after);
        let Some(((digests, before), after)) = known.filter(|((_, before), after)| before.len() == after.len()) else {
            return Self { messages: OnceLock::new(), surroundings: self.surroundings };
        };
        let each = digests.into_iter().zip(before.iter().zip(after));
        let digests = each.map(|(digest, (old, new))| if old == new { digest } else { Digest::of_message(new) });
        Self { messages: OnceLock::from(digests.collect::<Vec<_>>()), surroundings: self.surroundings }
    }
}

/// What a hook remembers, and by what.
#[derive(Debug)]
pub(crate) struct Recall {
    memory: Memory,
    by: By,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// The content alone counts.
    Content,
    /// What the hook is shown around it counts too.
    Surroundings,
    /// The same, of a tool result that was seen on the wire: it is sent with each call, but has happened once.
    Wire,
}

impl Recall {
    /// What a hook of this event remembers, if anything.
    pub(crate) fn of(event: Event, definition: &HookDefinition, handler: &dyn Handler) -> Option<Self> {
        let has_messages = matches!(event, Event::PreInference | Event::BeforeLlmCall);
        let by = match definition.cache {
            _ if !has_messages && event != Event::ToolResponseTransform => return None,
            // Who looks on is shown each conversation as it is.
            _ if has_messages && definition.observer => return None,
            _ if handler.judges_by_content() => By::Content,
            Some(Cache::Content) => By::Surroundings,
            None if has_messages => return None,
            None => By::Wire,
        };
        Some(Self { memory: Memory::default(), by })
    }

    /// What is known of an input's contents; `None` where the hook is asked as if it remembered nothing.
    pub(crate) fn look_up<'a>(&'a self, event: Event, input: &Input, digests: &Digests) -> Option<Known<'a>> {
        if self.by == By::Wire && input.plane.as_deref() != Some("wire") {
            return None;
        }
        let surroundings = if self.by == By::Content { Digest::NONE } else { digests.surroundings(input)? };
        let key = |content| Key { content, surroundings };
        let keys: Vec<Key> = match event {
            Event::ToolResponseTransform => vec![key(Digest::of_value(input.tool_response.as_deref()?))],
            _ => digests.messages(input.messages.as_deref()?).iter().copied().map(key).collect(),
        };
        if keys.is_empty() {
            return None;
        }
        let judged = self.memory.recall(keys.iter().copied());
        Some(Known { recall: self, event, keys, judged })
    }
}

/// What a hook knows of the contents of one input.
pub(crate) struct Known<'a> {
    recall: &'a Recall,
    event: Event,
    keys: Vec<Key>,
    /// `None` is new.
    judged: Vec<Option<Judged>>,
}

/// What is to be remembered once the verdict is taken.
pub(crate) type Learned = Vec<(Key, Judged)>;

/// The rewrite of a part cannot be put back into the whole.
pub(crate) struct Unmapped;

impl Known<'_> {
    fn is_new(&self) -> bool {
        self.judged.iter().all(Option::is_none)
    }

    /// Whether the hook need not run: there is nothing new, and what it says depends on nothing else.
    pub(crate) fn is_settled(&self) -> bool {
        let looks_around = self.recall.by == By::Content && self.event != Event::ToolResponseTransform;
        !looks_around && self.judged.iter().all(Option::is_some)
    }

    /// The input without what is known; `None` where all of it is new.
    pub(crate) fn part(&self, input: &Input) -> Option<Input> {
        if self.is_new() {
            return None;
        }
        let each = input.messages.iter().flat_map(|messages| messages.iter()).zip(&self.judged);
        let new = each.filter(|(_, judged)| judged.is_none()).map(|(message, _)| message.clone());
        Some(Input { messages: Some(new.collect()), ..input.clone() })
    }

    /// Takes everything for new: the hook is asked for all of it, and what it had judged is forgotten.
    pub(crate) fn forget(&mut self) {
        self.recall.memory.forget(&self.keys);
        self.judged.iter_mut().for_each(|judged| *judged = None);
    }

    /// What the hook said before, where nothing is new.
    pub(crate) fn answer(&self, input: &Input) -> Answer {
        let mut answer = Answer::nothing();
        // Without anything new there is nothing that could not be put back.
        let _ = self.complete(&mut answer, input);
        answer
    }

    /// Puts what was remembered into the answer on a part of the input; says what it teaches.
    pub(crate) fn complete(&self, answer: &mut Answer, input: &Input) -> Result<Learned, Unmapped> {
        let is_plain = match &answer.said {
            Said::Nothing => true,
            Said::Output(output) if !lets_pass(output) => return Ok(Learned::new()),
            Said::Output(output) => is_plain(output),
            Said::Text(_) | Said::Block(_) | Said::Failed(..) => return Ok(Learned::new()),
        };
        let learned = match self.event {
            Event::ToolResponseTransform => self.complete_response(answer),
            _ => self.complete_messages(answer, input)?,
        };
        Ok(if is_plain { learned } else { Learned::new() })
    }

    fn complete_response(&self, answer: &mut Answer) -> Learned {
        let Some(key) = self.keys.first() else { return Learned::new() };
        match self.judged.first() {
            Some(Some(Judged::Response(response))) => {
                let response = response.as_ref().clone();
                answer.change(|output| {
                    output.hook_specific_output.get_or_insert_default().updated_tool_response = Some(response);
                });
                Learned::new()
            }
            Some(Some(_)) => Learned::new(),
            Some(None) | None => {
                let specific = answer.output().and_then(|output| output.hook_specific_output.as_ref());
                let updated = specific.and_then(|specific| specific.updated_tool_response.clone());
                vec![(*key, updated.map_or(Judged::Passed, |response| Judged::Response(Arc::new(response))))]
            }
        }
    }

    fn complete_messages(&self, answer: &mut Answer, input: &Input) -> Result<Learned, Unmapped> {
        let messages = input.messages.as_deref().unwrap_or_default();
        let given = answer.output().and_then(take_messages);
        let new =
            || messages.iter().zip(&self.judged).filter(|(_, judged)| judged.is_none()).map(|(message, _)| message);
        if let Some(given) = &given
            && !(given.len() == new().count() && given.iter().zip(new()).all(|(given, new)| given.role == new.role))
        {
            if !self.is_new() {
                return Err(Unmapped);
            }
            let given = given.clone();
            answer.change(|output| output.messages = Some(given));
            return Ok(Learned::new());
        }
        let mut learned = Learned::new();
        let mut rewritten = given.is_some();
        let mut given = given.map(Vec::into_iter);
        let mut complete = Vec::with_capacity(messages.len());
        for ((message, judged), key) in messages.iter().zip(&self.judged).zip(&self.keys) {
            complete.push(match judged {
                None => {
                    let now = given.as_mut().and_then(Iterator::next).filter(|now| now != message);
                    let judged = now.as_ref().map_or(Judged::Passed, |now| Judged::Message(Arc::new(now.clone())));
                    learned.push((*key, judged));
                    now.unwrap_or_else(|| message.clone())
                }
                Some(Judged::Message(before)) => {
                    rewritten = true;
                    before.as_ref().clone()
                }
                Some(Judged::Passed | Judged::Response(_)) => message.clone(),
            });
        }
        if rewritten {
            answer.change(|output| {
                output.messages = Some(complete);
                output.permission = is_inference(self.event).then_some(Permission::Modify);
            });
        }
        Ok(learned)
    }
}

/// The conversation that an answer puts in its place, as far as it counts.
fn take_messages(output: &mut Output) -> Option<Vec<Message>> {
    let specific = output.hook_specific_output.as_mut();
    let updated =
        specific.and_then(|specific| specific.updated_messages.take()).filter(|messages| !messages.is_empty());
    let given = output.messages.take().or(updated);
    given.filter(|_| output.permission != Some(Permission::Allow))
}

/// Whether an answer neither refuses nor asks.
fn lets_pass(output: &Output) -> bool {
    let specific = output.hook_specific_output.as_ref().and_then(|specific| specific.permission_decision);
    !output.is_blocked()
        && output.should_continue()
        && matches!(output.permission, None | Some(Permission::Allow | Permission::Modify))
        && matches!(specific, None | Some(PermissionDecision::Allow))
}

/// Whether an answer has nothing to say but that, and what it rewrites: a notice is for its own turn.
fn is_plain(output: &Output) -> bool {
    let specific = output.hook_specific_output.as_ref();
    output.system_message.is_none()
        && output.placeholders.is_empty()
        && specific.is_none_or(|specific| {
            specific.metadata.is_none()
                && specific.additional_context.is_none()
                && specific.instruction_context.is_none()
                && specific.summary.is_none()
        })
}

impl Hook {
    /// Whether an observer has not been told of this before; from now on it has.
    pub(crate) fn is_new_to(&self, event: Event, input: &Input, digests: &Digests) -> bool {
        let known = self.recall.as_ref().and_then(|recall| recall.look_up(event, input, digests));
        let Some(known) = known else { return true };
        let is_new = !known.is_settled();
        self.learn(known.keys.into_iter().map(|key| (key, Judged::Passed)).collect());
        is_new
    }

    /// Remembers what a verdict has taught that was taken.
    pub(crate) fn learn(&self, learned: Learned) {
        if let Some(recall) = self.recall.as_ref().filter(|_| !learned.is_empty()) {
            recall.memory.learn(learned);
        }
    }
}

#[cfg(test)]
mod tests;
