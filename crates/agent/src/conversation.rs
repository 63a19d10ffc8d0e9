//! What a session is, folded out of what was kept of it: its messages, what it spent, what it may, where it stands.

use std::sync::Arc;

use gatehook_engine::events::fold::Change;
use gatehook_engine::events::journal::SessionHead;
use gatehook_engine::events::{Entry, Fold, Message};

/// Begins the message that stands for those that were compacted.
const SUMMARY: &str = "Summary of the conversation up to here:\n\n";

/// A session as it stands after so many entries.
///
/// Its messages are such that every provider takes them, except while it is [open](Self::is_open): until the last answer
/// is whole and its calls have results.
///
/// ```
/// use gatehook_agent::conversation::Conversation;
/// use gatehook_engine::events::{Entry, Message};
///
/// let mut conversation = Conversation::default();
/// conversation.apply(&Entry::Turn { number: 1 });
/// conversation.apply(&Entry::Message { message: Message::new("user", "hi") });
/// conversation.apply(&Entry::Said { thinking: false, text: "hel".into() });
/// assert!(conversation.is_interrupted());
/// conversation.close();
/// assert_eq!(conversation.messages()[1].content.as_deref(), Some("hel\n\n[interrupted]"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    fold: Fold,
    all: Vec<Message>,
    compactions: Vec<Compaction>,
    /// What stands in the model's window, where it is not all.
    window: Option<Vec<Message>>,
    /// How many messages there were when each turn began.
    turns: Vec<usize>,
    turn: u64,
    in_turn: bool,
    agent: Arc<str>,
    model: Arc<str>,
    /// The model that the person put in the place of the agent's own.
    chosen: Option<Arc<str>>,
    rules: Vec<Arc<str>>,
    mode: Option<Arc<str>>,
    spent: Spent,
}

/// A summary, and for how many messages from the first it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// How many messages.
    pub from: usize,
    /// The summary.
    pub summary: Arc<str>,
    /// `auto`, `overflow`, `tool_overflow` or `manual`.
    pub source: Arc<str>,
}

/// What the model calls of a session used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// Model calls that were counted.
    pub calls: u64,
    /// Tokens of all questions.
    pub input_tokens: u64,
    /// Tokens of all answers.
    pub output_tokens: u64,
    /// What the priced ones cost; absent where none was priced.
    pub cost: Option<f64>,
    /// Tokens of the last question and its answer: how full the window is. 0 is unknown, as after a compaction.
    pub context: u64,
}

impl Conversation {
    /// A session in which nothing has happened yet.
    pub fn new(head: &SessionHead) -> Self {
        Self { agent: head.agent.clone(), model: head.model.clone(), ..Self::default() }
    }

    /// A session as it was kept.
    pub fn of<'e>(head: &SessionHead, entries: impl IntoIterator<Item = &'e Entry>) -> Self {
        let mut conversation = Self::new(head);
        entries.into_iter().for_each(|entry| conversation.apply(entry));
        conversation
    }

    /// Takes the next entry.
    pub fn apply(&mut self, entry: &Entry) {
        let changes = self.fold.apply(entry);
        self.change(changes);
        match entry {
            Entry::Turn { number } => {
                self.turns.push(self.all.len());
                (self.turn, self.in_turn) = (*number, true);
            }
            Entry::TurnEnd { .. } => self.in_turn = false,
            Entry::Switched { agent } => (self.agent, self.chosen) = (agent.clone(), None),
            Entry::Model { model } => (self.model, self.chosen) = (model.clone(), Some(model.clone())),
            Entry::Granted { rule, mode } => {
                self.rules.extend(rule.clone());
                self.mode = mode.clone().or_else(|| self.mode.take());
            }
            Entry::Spent { input_tokens, output_tokens, cost } => self.spent.add(*input_tokens, *output_tokens, *cost),
            Entry::Message { .. }
            | Entry::Said { .. }
            | Entry::Compacted { .. }
            | Entry::Notice { .. }
            | Entry::Undone { .. }
            | Entry::Other { .. } => {}
        }
    }

    /// Nothing more comes of what was interrupted: an answer that is half said ends, calls without a result get an error
    /// for one. A session that is resumed begins so; the next [`Entry::Turn`] says the same to whoever folds it later.
    pub fn close(&mut self) {
        let changes = self.fold.close();
        self.change(changes);
    }

    /// What stands in the model's window: after a compaction the summary and what followed, all messages otherwise.
    pub fn messages(&self) -> &[Message] {
        self.window.as_deref().unwrap_or(&self.all)
    }

    /// All messages that were not undone, the compacted ones included.
    pub fn all(&self) -> &[Message] {
        &self.all
    }

    /// The compactions that still stand, the last one in force.
    pub fn compactions(&self) -> &[Compaction] {
        &self.compactions
    }

    /// The number of the last turn; 0 before the first.
    pub fn turn(&self) -> u64 {
        self.turn
    }

    /// How many messages to undo for the last turn that has any to be as if it had not been.
    pub fn last_turn(&self) -> Option<u64> {
        let from = self.turns.iter().rev().find(|from| **from < self.all.len())?;
        u64::try_from(self.all.len() - from).ok()
    }

    /// The agent that has the word.
    pub fn agent(&self) -> &Arc<str> {
        &self.agent
    }

    /// The model.
    pub fn model(&self) -> &Arc<str> {
        &self.model
    }

    /// The model that the person put in the place of the agent's own, as long as that agent has the word.
    pub fn chosen_model(&self) -> Option<&Arc<str>> {
        self.chosen.as_ref()
    }

    /// The permission rules that the person allowed for the session.
    pub fn rules(&self) -> &[Arc<str>] {
        &self.rules
    }

    /// The name of the safety mode, where the person set one.
    pub fn mode(&self) -> Option<&Arc<str>> {
        self.mode.as_ref()
    }

    /// What it has used.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Whether its last turn did not end.
    pub fn is_interrupted(&self) -> bool {
        self.in_turn || self.is_open()
    }

    /// Whether an answer is being said, or calls have no result yet.
    pub fn is_open(&self) -> bool {
        self.fold.is_open()
    }

    fn change(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Add(message) => {
                    self.window.iter_mut().for_each(|window| window.push(message.clone()));
                    self.all.push(message);
                }
                Change::Keep(count) => self.keep(count),
                Change::Compact { from, summary, source } => {
                    // What a summary stands for already does not come back.
                    let from = from.max(self.compactions.last().map_or(0, |last| last.from));
                    self.compactions.push(Compaction { from, summary, source });
                    self.spent.context = 0;
                    self.look();
                }
            }
        }
    }

    fn keep(&mut self, count: usize) {
        self.all.truncate(count);
        self.turns.retain(|from| *from < count);
        // A summary that tells of what is gone stands for nothing any more: what it stood for is there still.
        self.compactions.retain(|compaction| compaction.from <= count);
        self.look();
    }

    /// Makes the window anew. What stands before all else as a system message stays before the summary.
    fn look(&mut self) {
        self.window = self.compactions.last().map(|compaction| {
            let is_system = |message: &&Message| matches!(&*message.role, "system" | "developer");
            let system = self.all.iter().take_while(is_system).count();
            let summary = Message::new("user", &format!("{SUMMARY}{}", compaction.summary));
            let (before, after) = self.all.split_at(system);
            let kept = after.iter().skip(compaction.from.saturating_sub(system));
            before.iter().cloned().chain([summary]).chain(kept.cloned()).collect()
        });
    }
}

impl Spent {
    fn add(&mut self, input_tokens: u64, output_tokens: u64, cost: Option<f64>) {
        self.calls += 1;
        self.input_tokens = self.input_tokens.saturating_add(input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(output_tokens);
        self.cost = cost.map(|cost| self.cost.unwrap_or(0.0) + cost).or(self.cost);
        self.context = input_tokens.saturating_add(output_tokens);
    }
}

#[cfg(test)]
pub(crate) mod tests;
