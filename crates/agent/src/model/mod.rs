//! Asking a model, with the hooks of the wire around it.
//!
//! A [`Model`] writes a conversation in its server's format, and reads the answer as it streams. Between both stand the
//! same stages as in the gateway: the request's bytes pass [`Guard::before`](gatehook_guard::Guard::before), the answer's
//! a [`Gate`](gatehook_guard::Gate). So a guard written for the wire holds here.
//!
//! - `write`: a conversation as a request.
//! - `exchange`: the way of one question and its answer, hooks and further attempts included.
//! - `server`: bytes to a server and from it; `replay`: answers from a file in its place.
//! - `read`: the answer's bytes as text, thinking and calls.
//! - `fault`: what servers say went wrong.
//! - `window`: how many tokens a model takes.

mod exchange;
mod fault;
mod format;
mod names;
mod read;
mod replay;
mod server;
#[cfg(test)]
mod tests;
mod window;
mod write;

use std::sync::Arc;
use std::time::Duration;

use gatehook_engine::events::{Event, Message, Verdict};
use gatehook_guard::{Guard, Refusal};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use self::exchange::Exchange;
use self::window::Window;
use crate::tools::ToolSpec;

pub use format::{Format, Prices};
pub use replay::{Replay, ReplayError};
pub use server::{Http, Patience, Server};

/// A model, and the server that runs it. A clone asks the same server.
#[derive(Debug, Clone)]
pub struct Model {
    id: Arc<str>,
    /// What its server speaks.
    pub format: Format,
    /// Where it is.
    pub server: Server,
    /// What it costs; absent is unpriced.
    pub prices: Option<Prices>,
    /// Tokens of an answer at most; absent is what its server takes, or its family is known for.
    pub max_tokens: Option<u32>,
    /// Further members of its requests, as `temperature`; for Ollama those of `options`.
    pub options: Arc<Map<String, Value>>,
    /// What is waited for.
    pub patience: Patience,
    /// The agent that asks, for answers of a [`Replay`] that are meant for one.
    pub agent: Option<Arc<str>>,
    window: Arc<Window>,
    written: write::Written,
}

impl Model {
    /// A model about which nothing more is known.
    pub fn new(id: &str, format: Format, server: Server) -> Self {
        Self {
            id: id.into(),
            format,
            server,
            prices: None,
            max_tokens: None,
            options: Arc::default(),
            patience: Patience::default(),
            agent: None,
            window: Arc::default(),
            written: write::Written::default(),
        }
    }

    /// A model whose answers stand in a file.
    pub fn replay(replay: Arc<Replay>) -> Self {
        let name = format!("replay/{}", replay.name());
        Self::new(&name, Format::OpenAi, Server::Replay(replay))
    }

    /// The same with a window of so many tokens; 0 is unknown. Ollama is told to make it as large.
    #[must_use]
    pub fn with_window(mut self, tokens: u64) -> Self {
        self.window = Arc::new(Window::said(tokens));
        self
    }

    /// The same model for another agent.
    #[must_use]
    pub fn of_agent(&self, name: &Arc<str>) -> Self {
        Self { agent: Some(name.clone()), ..self.clone() }
    }

    /// Provider and name, as in `ollama/llama3`.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// As in `ollama`.
    pub fn provider(&self) -> &str {
        self.id.split_once('/').map_or("", |(provider, _)| provider)
    }

    /// Its name for its server, as in `llama3`.
    pub fn name(&self) -> &str {
        self.id.split_once('/').map_or(&*self.id, |(_, name)| name)
    }

    /// Tokens that a question and its answer may have together, as far as is known by now; 0 is unknown. It is asked for
    /// while the first answer comes.
    pub fn window(&self) -> u64 {
        self.window.known(self)
    }

    /// Asks its server for the window, unless it is known. Waits seconds at most.
    pub async fn learn_window(&self) {
        self.window.learn(self).await;
    }

    /// Asks. What the model says is told to [`Ask::says`] as it comes, as far as hooks let it go; the reply is all of it
    /// once more. A server that is too busy (429, 503, 529) is asked again, three times at most, as long as nothing was
    /// said.
    ///
    /// On [`Ask::cancel`], and when the future is dropped, the connection is closed and hooks at work are ended.
    ///
    /// # Errors
    ///
    /// A [`ModelError`]; what was said before stays said.
    pub async fn ask(&self, ask: &Ask<'_>) -> Result<Reply, ModelError> {
        tokio::select! {
            biased;
            () = ask.cancel.cancelled() => Err(ModelError::Cancelled),
            reply = Box::pin(Exchange::new(self, ask).run()) => reply,
        }
    }
}

/// One question to a model.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// What the model is told before the conversation.
    pub system: Option<&'a str>,
    /// The conversation. System messages with which it begins follow [`system`](Self::system).
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

    /// Hooks of the wire judged, before the next piece. Must not wait.
    fn judged(&self, _event: Event, _verdict: &Verdict) {}

    /// The server is too busy, and is asked again after `pause`. Must not wait.
    fn waits(&self, _why: &ModelError, _pause: Duration) {}
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
    /// Tokens used, by its server's names and by those of every server: `input_tokens`, `output_tokens`, …
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
