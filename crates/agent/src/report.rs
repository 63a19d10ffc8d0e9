//! What an agent tells whoever looks on: the terminal, or the lines of `--json`.

use std::sync::Arc;

use gatehook_engine::events::{Outcome, Verb};
use serde::Serialize;
use serde_json::{Map, Value};

/// One thing that happened, as `gatehook run --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Report {
    /// A session began, or goes on.
    Session {
        /// Its identity.
        session_id: Arc<str>,
        /// `startup`, `resume`, `clear` or `compact`.
        source: Arc<str>,
        /// The agent.
        agent: Arc<str>,
        /// The model, as in `ollama/llama3`.
        model: Arc<str>,
        /// The folder it works in.
        workspace: Arc<str>,
    },
    /// The user said something.
    User {
        /// What.
        text: Arc<str>,
    },
    /// The model says a piece of its answer.
    Text {
        /// The piece.
        delta: Arc<str>,
    },
    /// The model says a piece of its thinking.
    Thinking {
        /// The piece.
        delta: Arc<str>,
    },
    /// The model's answer is whole; what hooks changed late is changed here.
    Message {
        /// Its text.
        text: Arc<str>,
    },
    /// The model wants a tool; it is not settled yet whether it runs.
    ToolCall {
        /// The call's identity.
        id: Arc<str>,
        /// The tool.
        name: Arc<str>,
        /// Its arguments.
        input: Arc<Map<String, Value>>,
    },
    /// It is settled whether a call runs.
    Approval {
        /// The call's identity.
        id: Arc<str>,
        /// `allow`, `deny` or `canceled`.
        decision: Arc<str>,
        /// Who settled it, as in `user_approved`.
        source: Arc<str>,
        /// The final arguments, where they are not the model's.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Arc<Map<String, Value>>>,
    },
    /// A tool says something while it works.
    ToolOutput {
        /// The call's identity.
        id: Arc<str>,
        /// The piece.
        delta: Arc<str>,
    },
    /// A call is over.
    ToolResult {
        /// The call's identity.
        id: Arc<str>,
        /// The tool.
        name: Arc<str>,
        /// What the model is told.
        output: Arc<str>,
        /// It failed, as in `not_found`.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'static str>,
        /// What it changed, as a unified diff.
        #[serde(skip_serializing_if = "Option::is_none")]
        diff: Option<Arc<str>>,
        /// How long it took, in seconds.
        duration: f64,
    },
    /// Hooks ran.
    Hooks {
        /// The event.
        event: &'static str,
        /// The verdict in one word.
        #[serde(serialize_with = "verb")]
        verdict: Verb,
        /// One record for each hook.
        outcomes: Vec<Outcome>,
        /// Why it was blocked, a line for each hook.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
        /// What the person is told, a line for each.
        #[serde(skip_serializing_if = "String::is_empty")]
        system_message: String,
    },
    /// The person is told something.
    Notice {
        /// `error`, `warning` or `info`.
        level: &'static str,
        /// What.
        text: Arc<str>,
    },
    /// What a model call used, and how full its window is.
    Usage {
        /// Tokens of the question.
        input_tokens: u64,
        /// Tokens of the answer.
        output_tokens: u64,
        /// What the session has cost; absent is unpriced.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// Tokens in the window.
        context_used: u64,
        /// Tokens that fit into it; 0 is unknown.
        context_limit: u64,
    },
    /// The conversation was compacted.
    Compaction {
        /// `auto`, `overflow`, `tool_overflow` or `manual`.
        source: Arc<str>,
        /// What stands for the messages that are gone.
        summary: Arc<str>,
    },
    /// The conversation moved to another agent.
    AgentSwitch {
        /// From.
        from: Arc<str>,
        /// To.
        to: Arc<str>,
        /// `transfer_task`, `transfer_task_return`, `handoff` or `force_handoff`.
        kind: &'static str,
    },
    /// A subagent tells something.
    Subagent {
        /// Its agent.
        agent: Arc<str>,
        /// Its session.
        session_id: Arc<str>,
        /// What.
        report: Box<Report>,
    },
    /// A turn is over.
    TurnEnd {
        /// As in `normal`, `continue`, `error` or `canceled`.
        reason: &'static str,
    },
    /// What the user began is over: the agent waits for them.
    Done {
        /// The model's last text.
        text: Arc<str>,
        /// As of the last turn.
        reason: &'static str,
    },
}

fn verb<S: serde::Serializer>(verb: &Verb, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verb.name())
}

/// Looks on. It is called where things happen, and must not wait.
pub trait Watches: Send + Sync {
    /// Something happened.
    fn report(&self, report: Report);
}

impl<F: Fn(Report) + Send + Sync> Watches for F {
    fn report(&self, report: Report) {
        self(report);
    }
}
