//! What was said in a session: folded out of what was kept.

use gatehook_engine::events::{Entry, Message};

use crate::approval::Rules;

/// What a session used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// Tokens of questions.
    pub input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// What it cost; absent is unpriced.
    pub cost: Option<f64>,
}

/// What was said in a session.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    spent: Spent,
    turns: u64,
    all: u64,
    agent: Option<std::sync::Arc<str>>,
    mode: Option<std::sync::Arc<str>>,
}

impl Conversation {
    /// x
    pub fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Turn { number } => self.turns = *number,
            Entry::Message { message } => {
                self.all += 1;
                self.messages.push(message.clone());
            }
            Entry::Compacted { summary, kept, .. } => {
                let at = self.messages.len() - *kept as usize;
                self.messages.splice(..at, [Message::new("user", summary)]);
            }
            Entry::Switched { agent } => self.agent = Some(agent.clone()),
            Entry::Spent { input_tokens, output_tokens, cost } => {
                self.spent.input_tokens += input_tokens;
                self.spent.output_tokens += output_tokens;
                if let Some(cost) = cost {
                    *self.spent.cost.get_or_insert(0.0) += cost;
                }
            }
            Entry::Undone { messages } => {
                let at = self.messages.len() - *messages as usize;
                self.messages.truncate(at);
            }
            Entry::Granted { mode, .. } => self.mode = mode.clone(),
            _ => {}
        }
    }
    /// x
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }
    /// x
    pub fn all_messages(&self) -> u64 {
        self.all
    }
    /// x
    pub fn turns(&self) -> u64 {
        self.turns
    }
    /// x
    pub fn spent(&self) -> Spent {
        self.spent
    }
    /// x
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }
    /// x
    pub fn mode(&self) -> Option<&str> {
        self.mode.as_deref()
    }
    /// x
    pub fn rules(&self) -> Rules {
        Rules::default()
    }
}
