//! The person: what they are asked, and what they may answer.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Rule;

/// What a person is asked about one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The tool.
    pub tool_name: Arc<str>,
    /// The call's identity.
    pub tool_use_id: Option<Arc<str>>,
    /// The arguments it would run with.
    pub tool_input: Arc<Map<String, Value>>,
    /// Why a hook wants them asked; empty where none does.
    pub reason: String,
    /// What is known of the call. Of equal keys stands that of the `tool_guard`, then of the preempting lane, then of
    /// the safety label (`safety_label`, `blast_radius`, `category`, `reason`), of `permission_request`, of the tool.
    pub metadata: BTreeMap<String, String>,
}

/// What the person said.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// This call may run.
    Approve,
    /// It may run, and the session goes on in mode `balanced`.
    ApproveBalanced,
    /// It may run, and the session goes on in mode `autonomous`.
    ApproveAutonomous,
    /// It may run, and so may whatever fits this rule, until the session ends; without a rule, all calls of this tool.
    ApproveTool(Option<Rule>),
    /// It may not run.
    Reject {
        /// What the model is told; may be empty.
        reason: String,
    },
}

/// A person who thinks.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// Who asks the person, as a dialog does. One question at a time; the future is dropped when the call is cancelled.
pub trait Asks: Send + Sync {
    /// Asks, for as long as it takes.
    fn ask<'a>(&'a self, question: &'a Question) -> Asking<'a>;
}
