//! What a hook has judged before, and need not see again. A conversation is resent with each call: what a hook let pass,
//! or rewrote, in one turn is the same in the next one, where the hook judges each message by itself.
//!
//! A hook is shown what is new. What it is not shown passes as it did before, or is rewritten as it was before. Only a
//! verdict that lets pass is remembered: a denial, a question or a failure leaves nothing behind.

mod digest;
mod memory;

use std::iter::repeat_n;
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

/// How many messages are digested together. What stands far back in a conversation is known by its blocks, each by one
/// digest and one look; a block of which anything is new is looked at message by message.
const BLOCK: usize = 16;

/// The digests of one input, each made on first use, for all hooks that it is shown to.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    /// Of each full block.
    blocks: OnceLock<Vec<Digest>>,
    /// Of each message.
    messages: OnceLock<Vec<OnceLock<Digest>>>,
    surroundings: OnceLock<Option<Digest>>,
}

impl Digests {
    fn blocks(&self, messages: &[Message]) -> &[Digest] {
        self.blocks.get_or_init(|| messages.chunks_exact(BLOCK).map(Digest::of_messages).collect())
    }

    fn message(&self, messages: &[Message], place: usize) -> Option<Digest> {
        let all = self.messages.get_or_init(|| vec![OnceLock::new(); messages.len()]);
        let (slot, message) = (all.get(place)?, messages.get(place)?);
        Some(*slot.get_or_init(|| Digest::of_messages(std::slice::from_ref(message))))
    }

    fn surroundings(&self, input: &Input) -> Option<Digest> {
        *self.surroundings.get_or_init(|| Digest::of_surroundings(input))
    }

    /// After a rewrite. Blocks that stayed as they were keep their digests.
    pub(crate) fn rewritten(self, before: &Input, after: &Input) -> Self {
        let digests = Self { surroundings: self.surroundings, ..Self::default() };
        let (Some(before), Some(after)) = (before.messages.as_deref(), after.messages.as_deref()) else {
            return digests;
        };
        let known = self.blocks.into_inner().unwrap_or_default();
        let blocks = known.into_iter().zip(before.chunks_exact(BLOCK)).map(Some).chain(std::iter::repeat(None));
        let of_block = |(known, block): (Option<(Digest, &[Message])>, &[Message])| match known {
            Some((digest, before)) if before == block => digest,
            _ => Digest::of_messages(block),
        };
        let blocks: Vec<Digest> = blocks.zip(after.chunks_exact(BLOCK)).map(of_block).collect();
        Self { blocks: OnceLock::from(blocks), ..digests }
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
}

impl Recall {
    /// What a hook of this event remembers, if anything.
    pub(crate) fn of(event: Event, definition: &HookDefinition, handler: &dyn Handler) -> Option<Self> {
        let has_content = matches!(event, Event::PreInference | Event::BeforeLlmCall | Event::ToolResponseTransform);
        // Who looks on is shown every event as it is.
        if !has_content || definition.observer {
            return None;
        }
        let by = match definition.cache {
            _ if handler.judges_by_content() => By::Content,
            Some(Cache::Content) => By::Surroundings,
            None => return None,
        };
        Some(Self { memory: Memory::default(), by })
    }

    /// What a builtin remembers of its own, by content alone.
    pub(crate) fn by_content() -> Self {
        Self { memory: Memory::default(), by: By::Content }
    }

    /// What is known of an input's contents; `None` where the hook is asked as if it remembered nothing.
    pub(crate) fn look_up<'a>(&'a self, event: Event, input: &Input, digests: &Digests) -> Option<Known<'a>> {
        let surroundings = if self.by == By::Content { Digest::NONE } else { digests.surroundings(input)? };
        let key = |content| Key { content, surroundings };
        let mut known = Known { recall: self, event, judged: Vec::new(), keys: Vec::new(), blocks: Vec::new() };
        match event {
            Event::ToolResponseTransform => known.alone(key(Digest::of_value(input.tool_response.as_deref()?))),
            _ => {
                let messages = input.messages.as_deref().filter(|messages| !messages.is_empty())?;
                let blocks: Vec<Key> = digests.blocks(messages).iter().copied().map(key).collect();
                known.blocks(messages.len(), blocks, |place| digests.message(messages, place).map(key));
            }
        }
        for ((place, _), found) in known.keys.iter().zip(self.memory.recall(known.keys.iter().map(|(_, key)| *key))) {
            if let Some(judged) = known.judged.get_mut(*place) {
                *judged = found;
            }
        }
        Some(known)
    }
}

/// What a hook knows of the contents of one input.
pub(crate) struct Known<'a> {
    recall: &'a Recall,
    event: Event,
    /// What was said of each; `None` is new.
    judged: Vec<Option<Judged>>,
    /// The contents that were looked for one by one, by their places.
    keys: Vec<(usize, Key)>,
    /// The full blocks that were not known, by the place of their first message.
    blocks: Vec<(usize, Key)>,
}

/// What is to be remembered once the verdict is taken.
pub(crate) type Learned = Vec<(Key, Judged)>;

/// The rewrite of a part cannot be put back into the whole.
pub(crate) struct Unmapped;

impl Known<'_> {
    /// One content.
    fn alone(&mut self, key: Key) {
        self.judged.push(None);
        self.keys.push((0, key));
    }

    /// Messages, as far as they stand in blocks that are known; the others by their keys.
    fn blocks(&mut self, messages: usize, blocks: Vec<Key>, key: impl Fn(usize) -> Option<Key>) {
        let found = self.recall.memory.recall(blocks.iter().copied());
        for (block, found) in blocks.into_iter().zip(found) {
            let first = self.judged.len();
            match found {
                Some(Judged::Block(each)) => self.judged.extend(each.iter().cloned().map(Some)),
                Some(_) => self.judged.extend(repeat_n(Some(Judged::Passed), BLOCK)),
                None => {
                    self.blocks.push((first, block));
                    self.keys.extend((first..first + BLOCK).filter_map(|place| Some((place, key(place)?))));
                    self.judged.extend(repeat_n(None, BLOCK));
                }
            }
        }
        let first = self.judged.len();
        self.keys.extend((first..messages).filter_map(|place| Some((place, key(place)?))));
        self.judged.resize(messages, None);
    }

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
        Some(Input { messages: Some(self.unjudged(input).cloned().collect()), ..input.clone() })
    }

    /// The messages that are new.
    fn unjudged<'i>(&'i self, input: &'i Input) -> impl Iterator<Item = &'i Message> {
        let each = input.messages.iter().flat_map(|messages| messages.iter()).zip(&self.judged);
        each.filter(|(_, judged)| judged.is_none()).map(|(message, _)| message)
    }

    /// Takes everything for new: the hook is asked for all of it.
    pub(crate) fn set_aside(&mut self) {
        self.judged.iter_mut().for_each(|judged| *judged = None);
        self.keys.clear();
        self.blocks.clear();
    }

    /// Puts what was remembered into the answer on a part of the input; says what it teaches.
    pub(crate) fn complete(&mut self, answer: &mut Answer, input: &Input) -> Result<Learned, Unmapped> {
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
        let specific = answer.output().and_then(|output| output.hook_specific_output.as_ref());
        let updated = specific.and_then(|specific| specific.updated_tool_response.clone());
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
                let judged = updated.map_or(Judged::Passed, |response| Judged::Response(Arc::new(response)));
                self.keys.iter().map(|(_, key)| (*key, judged.clone())).collect()
            }
        }
    }

    fn complete_messages(&mut self, answer: &mut Answer, input: &Input) -> Result<Learned, Unmapped> {
        let messages = input.messages.as_deref().unwrap_or_default();
        let given = answer.output().and_then(take_messages);
        if let Some(given) = &given {
            let fits = |(given, new): (&Message, &Message)| given.role == new.role;
            let is_mapped =
                given.len() == self.unjudged(input).count() && given.iter().zip(self.unjudged(input)).all(fits);
            if !is_mapped && self.is_new() {
                let given = given.clone();
                answer.change(|output| output.messages = Some(given));
                return Ok(Learned::new());
            }
            if !is_mapped {
                return Err(Unmapped);
            }
        }
        let is_given = given.is_some();
        let learned = self.judge(messages, given.unwrap_or_default());
        if is_given || self.judged.iter().flatten().any(|judged| *judged != Judged::Passed) {
            let now = |(message, judged): (&Message, &Option<Judged>)| match judged {
                Some(Judged::Message(now)) => now.as_ref().clone(),
                _ => message.clone(),
            };
            let messages = messages.iter().zip(&self.judged).map(now).collect();
            answer.change(|output| {
                output.messages = Some(messages);
                output.permission = is_inference(self.event).then_some(Permission::Modify);
            });
        }
        Ok(learned)
    }

    /// Takes what was given for the new messages, in their order; nothing is given where they pass.
    fn judge(&mut self, messages: &[Message], given: Vec<Message>) -> Learned {
        let mut given = given.into_iter();
        for (message, judged) in messages.iter().zip(&mut self.judged) {
            judged.get_or_insert_with(|| match given.next() {
                Some(now) if now != *message => Judged::Message(Arc::new(now)),
                _ => Judged::Passed,
            });
        }
        self.learned()
    }

    /// Whether a message is known.
    pub(crate) fn is_known(&self, place: usize) -> bool {
        self.judged.get(place).is_some_and(Option::is_some)
    }

    /// A message was looked at, and passes.
    pub(crate) fn passes(&mut self, place: usize) {
        if let Some(judged) = self.judged.get_mut(place) {
            judged.get_or_insert(Judged::Passed);
        }
    }

    /// Remembers what was found out, for the next input.
    pub(crate) fn remember(self) {
        let learned = self.learned();
        self.recall.memory.learn(learned);
    }

    /// What is to be remembered of the messages that were looked at.
    fn learned(&self) -> Learned {
        let said = |place: usize| self.judged.get(place).cloned().flatten();
        let alone = self.keys.iter().filter_map(|(place, key)| Some((*key, said(*place)?)));
        let blocks = self.blocks.iter().filter_map(|(first, key)| {
            let block: Option<Vec<Judged>> = (*first..first + BLOCK).map(said).collect();
            let block = block?;
            let passed = block.iter().all(|judged| *judged == Judged::Passed);
            Some((*key, if passed { Judged::Passed } else { Judged::Block(block.into()) }))
        });
        alone.chain(blocks).collect()
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
    /// Remembers what a verdict has taught that was taken.
    pub(crate) fn learn(&self, learned: Learned) {
        if let Some(recall) = self.recall.as_ref().filter(|_| !learned.is_empty()) {
            recall.memory.learn(learned);
        }
    }
}

#[cfg(test)]
mod tests;
