//! Asking a model, with the hooks of the wire around it.
//!
//! A [`Model`] writes a conversation in its server's format, and reads the answer as it streams. Between both stand the
//! same stages as in the gateway: the request's bytes pass [`Guard::before`](gatehook_guard::Guard::before), the answer's
//! a [`Gate`](gatehook_guard::Gate). So a guard written for the wire holds here.

use std::sync::Arc;

use gatehook_engine::events::Message;
use gatehook_guard::{Guard, Refusal};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::tools::ToolSpec;

/// One question to a model.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The conversation, system messages included.
    pub messages: &'a [Message],
    /// What it may call.
    pub tools: &'a [Arc<ToolSpec>],
    /// The hooks around it.
    pub guard: Option<&'a Arc<Guard>>,
    /// The session.
    pub session_id: &'a Arc<str>,
    /// Is told what it says, as far as hooks have let it go.
    pub says: &'a dyn Says,
    /// Gives up.
    pub cancel: &'a CancellationToken,
}

/// Is told what a model says, piece by piece, in order. The next piece waits until this one is done with.
pub trait Says: Send + Sync {
    /// A piece of its text, or of its thinking.
    fn says<'a>(&'a self, thinking: bool, piece: &'a str) -> Saying<'a>;
}

/// Somebody at work with a piece.
pub type Saying<'a> = std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// The answer: role `assistant`, text, thinking, calls. What its server wants back with it is in `extra`.
    pub message: Message,
    /// Why it stopped, by its server's word.
    pub done_reason: Option<Arc<str>>,
    /// Tokens used, by its server's names.
    pub usage: Option<Value>,
    /// Tokens of the question, where its server counts them.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
    /// What it cost; absent is unpriced.
    pub cost: Option<f64>,
    /// What a hook said of calls that it removed, for the model and the person.
    pub note: Option<String>,
}

/// Why there is no answer, or no whole one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A hook refused the question or the answer. What it let go before has been said.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The conversation is longer than the model's window.
    #[error("the conversation does not fit the model's window: {0}")]
    Overflow(String),
    /// The server cannot be reached, or does not answer in time.
    #[error("the model cannot be asked: {0}")]
    Unreachable(String),
    /// The server said no.
    #[error("the model's server answered {status}: {message}")]
    Status {
        /// HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// The answer broke off, or cannot be read. What came before has been said.
    #[error("the model's answer {0}")]
    Broken(String),
    /// The person or the caller gave up.
    #[error("cancelled")]
    Cancelled,
}
