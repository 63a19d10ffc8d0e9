//! A session as it is kept: entries in the order in which they happened, none of them ever changed.
//!
//! An agent hands each [`Entry`] to a [`Journal`] before anybody is shown it, so that whatever a hook or a person saw
//! survives the process. What stands in the model's window is folded out of them ([`Fold`](crate::Fold)).

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::Message;

/// What is known of a session as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionHead {
    /// Its identity.
    pub id: Arc<str>,
    /// The session that started this one as a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Arc<str>>,
    /// The folder it works in.
    pub workspace: Arc<str>,
    /// The agent it began with.
    pub agent: Arc<str>,
    /// Its model, as in `ollama/llama3`.
    pub model: Arc<str>,
    /// When it began.
    pub started: SystemTime,
}

/// One thing that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Entry {
    /// A turn began that a prompt of the user's, a follow-up or a resume started.
    Turn {
        /// Which of the session, from 1.
        number: u64,
    },
    /// A message that stands in the conversation from now on.
    Message {
        /// The message; what was said so far of an answer ([`Entry::Said`]) is in it.
        message: Message,
    },
    /// A piece of an answer that streams. What no message followed is all that there is of it.
    Said {
        /// Whether the model said it to itself.
        thinking: bool,
        /// The piece.
        text: Arc<str>,
    },
    /// The conversation was compacted: a summary stands for all but its last messages.
    Compacted {
        /// The summary.
        summary: Arc<str>,
        /// How many messages at the end stay as they are.
        kept: u64,
        /// `auto`, `overflow`, `tool_overflow` or `manual`.
        source: Arc<str>,
    },
    /// Another agent took over.
    Switched {
        /// The agent.
        agent: Arc<str>,
    },
    /// The model changed.
    Model {
        /// As in `ollama/llama3`.
        model: Arc<str>,
    },
    /// The person allowed more for the session: a rule, or a safety mode.
    Granted {
        /// A permission rule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<Arc<str>>,
        /// The name of the mode from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Arc<str>>,
    },
    /// What a model call used.
    Spent {
        /// Tokens of the question.
        input_tokens: u64,
        /// Tokens of the answer.
        output_tokens: u64,
        /// What it cost; absent is unpriced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// The person was told something.
    Notice {
        /// `error`, `warning` or `info`.
        level: Arc<str>,
        /// What.
        text: Arc<str>,
    },
    /// The conversation goes on from before its last so many messages.
    Undone {
        /// How many messages are gone.
        messages: u64,
    },
    /// A turn ended.
    TurnEnd {
        /// As in `normal` or `canceled`.
        reason: Arc<str>,
    },
    /// What an extension keeps.
    Other {
        /// Its own.
        data: Value,
    },
}

/// What an entry means for an answer of which pieces were said before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SoFar {
    /// Nothing.
    GoesOn,
    /// It is the whole answer: the pieces are in it.
    IsWhole,
    /// No more comes: the pieces are all that there is.
    IsCut,
}

/// An entry and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// Counts up through the session, from 1. Pieces of an answer that is whole are gone, and their places with them.
    pub place: u64,
    /// When it happened.
    pub time: SystemTime,
    /// What happened.
    pub entry: Entry,
}

/// Why entries are not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalError {
    /// What failed, with its place.
    pub message: String,
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for JournalError {}

/// Entries on their way.
pub type Keeping<'a> = Pin<Box<dyn Future<Output = Result<(), JournalError>> + Send + 'a>>;

/// Keeps sessions.
pub trait Journal: Send + Sync {
    /// Begins a session; one that is known stays as it is.
    fn begin<'a>(&'a self, head: SessionHead) -> Keeping<'a>;

    /// Keeps entries, all or none, in this order. Done once they survive the end of the process. Dropped before, they are
    /// kept all the same, or not at all.
    fn append<'a>(&'a self, session: &'a Arc<str>, entries: Vec<Entry>) -> Keeping<'a>;

    /// Where hooks find the conversation of a session as JSON lines, if anywhere.
    fn transcript(&self, _session: &str) -> Option<PathBuf> {
        None
    }
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Forgets;

impl Journal for Forgets {
    fn begin<'a>(&'a self, _head: SessionHead) -> Keeping<'a> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn append<'a>(&'a self, _session: &'a Arc<str>, _entries: Vec<Entry>) -> Keeping<'a> {
        Box::pin(std::future::ready(Ok(())))
    }
}
