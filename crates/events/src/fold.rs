//! The messages of a conversation, out of the entries that are kept of it.
//!
//! A provider takes a conversation only where every call of a tool is answered once, right behind the message that asks
//! for it and in its order. What is kept may be less: a process that was killed leaves an answer half said and calls
//! without results, and tools that run side by side end in any order. A [`Fold`] makes messages of it that any provider
//! takes, the same ones however often it is done, and keeps none of them itself. So one rule serves whoever holds the
//! conversation and whoever writes it down.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::journal::{Entry, SoFar};
use crate::message::Message;

/// Ends the text of an answer that was cut off.
pub const CUT: &str = "[interrupted]";

/// Answers a call that has no result.
pub const UNANSWERED: &str = "interrupted: this call did not finish, and may have taken effect or not";

/// What becomes of the messages so far.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// One more.
    Add(Message),
    /// Only so many stay, from the first.
    Keep(usize),
    /// A summary stands for those before one of them.
    Compact {
        /// How many it stands for.
        from: usize,
        /// The summary.
        summary: Arc<str>,
        /// `auto`, `overflow`, `tool_overflow` or `manual`.
        source: Arc<str>,
    },
}

/// Folds entries into messages. It grows by one byte for each message.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    /// What was said of an answer that is not whole.
    said: Option<Said>,
    /// Calls of the last answer, from the first one without a result.
    calls: VecDeque<Call>,
    /// What came while calls had no result, to stand behind them.
    held: Vec<Message>,
    shape: Vec<Shape>,
}

#[derive(Debug, Clone, Default)]
struct Said {
    text: String,
    thinking: String,
}

#[derive(Debug, Clone)]
struct Call {
    id: Option<Arc<str>>,
    tool: Arc<str>,
    result: Option<Message>,
}

/// What a message is to its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// It stands for itself.
    Plain,
    /// Results follow it.
    Calls,
    Result,
}

impl Fold {
    /// Takes the next entry.
    pub fn apply(&mut self, entry: &Entry) -> Vec<Change> {
        let mut changes = Vec::new();
        match entry {
            Entry::Said { thinking, text } => {
                let said = self.said.get_or_insert_default();
                if *thinking { &mut said.thinking } else { &mut said.text }.push_str(text);
            }
            Entry::Message { message } => self.message(message, &mut changes),
            Entry::Turn { .. } | Entry::TurnEnd { .. } => self.settle(&mut changes),
            Entry::Compacted { summary, kept, source } => {
                self.settle(&mut changes);
                let (from, summary, source) = (self.whole(*kept), summary.clone(), source.clone());
                changes.push(Change::Compact { from, summary, source });
            }
            Entry::Undone { messages } => {
                self.settle(&mut changes);
                let left = self.whole(*messages);
                self.shape.truncate(left);
                changes.push(Change::Keep(left));
            }
            Entry::Switched { .. }
            | Entry::Model { .. }
            | Entry::Granted { .. }
            | Entry::Spent { .. }
            | Entry::Notice { .. }
            | Entry::Other { .. } => {}
        }
        changes
    }

    /// Nothing more comes of what is open: an answer was cut off, calls have no result.
    pub fn close(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        self.settle(&mut changes);
        changes
    }

    /// Whether an answer is being said, or calls have no result yet.
    pub fn is_open(&self) -> bool {
        self.said.is_some() || !self.calls.is_empty()
    }

    fn message(&mut self, message: &Message, changes: &mut Vec<Change>) {
        match &*message.role {
            "assistant" => {
                // What was said of it is in it.
                self.said = None;
                self.settle(changes);
                let calls = message.tool_calls.iter().flatten();
                let open = |call: &crate::ToolCall| Call {
                    id: call.id.clone(),
                    tool: call.function.name.clone(),
                    result: None,
                };
                self.calls = calls.map(open).collect();
                let shape = if self.calls.is_empty() { Shape::Plain } else { Shape::Calls };
                self.add(message.clone(), shape, changes);
            }
            "tool" => self.answer(message, changes),
            // It must not come between calls and results that still arrive.
            _ if self.said.is_none() && !self.calls.is_empty() => self.held.push(message.clone()),
            _ => {
                self.settle(changes);
                self.add(message.clone(), Shape::Plain, changes);
            }
        }
    }

    fn answer(&mut self, message: &Message, changes: &mut Vec<Change>) {
        let is_asked = |call: &&mut Call| call.result.is_none() && call.id == message.tool_call_id;
        // A second answer, or one that nobody asked for, no provider takes.
        if let Some(call) = self.calls.iter_mut().find(is_asked) {
            call.result = Some(message.clone());
        }
        while let Some(result) = self.calls.front_mut().and_then(|call| call.result.take()) {
            self.calls.pop_front();
            self.add(result, Shape::Result, changes);
        }
        if self.calls.is_empty() {
            self.release(changes);
        }
    }

    /// Calls without a result get one, and an answer that is half said ends here.
    fn settle(&mut self, changes: &mut Vec<Change>) {
        for call in std::mem::take(&mut self.calls) {
            let result = call.result.unwrap_or_else(|| Message {
                tool_call_id: call.id,
                name: Some(call.tool),
                ..Message::new("tool", UNANSWERED)
            });
            self.add(result, Shape::Result, changes);
        }
        self.release(changes);
        if let Some(cut) = self.said.take().and_then(Said::cut) {
            self.add(cut, Shape::Plain, changes);
        }
    }

    fn release(&mut self, changes: &mut Vec<Change>) {
        for message in std::mem::take(&mut self.held) {
            self.add(message, Shape::Plain, changes);
        }
    }

    fn add(&mut self, message: Message, shape: Shape, changes: &mut Vec<Change>) {
        self.shape.push(shape);
        changes.push(Change::Add(message));
    }

    /// Where the last `count` messages begin, or before: calls and their results are not parted.
    fn whole(&self, count: u64) -> usize {
        let mut at = self.shape.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        while at > 0 && self.shape.get(at) == Some(&Shape::Result) {
            at -= 1;
        }
        at
    }
}

impl Said {
    /// The message of an answer that was cut off; none where nothing was said.
    fn cut(self) -> Option<Message> {
        let Self { mut text, thinking } = self;
        if text.is_empty() && thinking.is_empty() {
            return None;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(CUT);
        let thinking = (!thinking.is_empty()).then(|| thinking.into());
        Some(Message { thinking, ..Message::new("assistant", &text) })
    }
}

impl Entry {
    /// What it means for an answer of which pieces were said before it.
    pub fn so_far(&self) -> SoFar {
        match self {
            Self::Message { message } => match &*message.role {
                "assistant" => SoFar::IsWhole,
                "tool" => SoFar::GoesOn,
                _ => SoFar::IsCut,
            },
            Self::Turn { .. } | Self::TurnEnd { .. } | Self::Compacted { .. } | Self::Undone { .. } => SoFar::IsCut,
            _ => SoFar::GoesOn,
        }
    }
}

#[cfg(test)]
mod tests;
