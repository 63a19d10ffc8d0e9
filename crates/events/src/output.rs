//! What one hook answers. The field names are docker-agent's
//! (<https://pkg.go.dev/github.com/docker/docker-agent/pkg/hooks#Output>); `permission`, `messages`, `output_text`,
//! `output_thinking`, `tool_calls`, `user_message` and `agent_message` are those of the Ollama inference webhooks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::catalogue::Event;
use crate::message::{Message, ToolCall};

/// The one value of `decision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Block {
    /// Stop what was about to happen.
    Block,
}

/// A verdict on a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PermissionDecision {
    /// No objection.
    Allow,
    /// A person decides.
    Ask,
    /// It must not run.
    Deny,
}

/// A verdict on an inference event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// Pass it on.
    Allow,
    /// Refuse it.
    Deny,
    /// A person decides.
    Ask,
    /// Pass it on with the given changes.
    Modify,
}

/// What one hook answers. Everything absent is no opinion.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Output {
    /// `false` stops the host.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continue_: Option<bool>,
    /// Why it stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Keep this hook's text from transcript and screen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppress_output: bool,
    /// A notice for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_message: Option<String>,
    /// `block`, or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Block>,
    /// Why it blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What only some events honour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_specific_output: Option<HookSpecificOutput>,
    /// For the person who waits for the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_message: Option<String>,
    /// For the program or model that asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_message: Option<String>,
    /// The verdict on an inference event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    /// The conversation in its place; `[]` empties it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// The answer's text in its place; `""` empties it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_text: Option<Arc<str>>,
    /// The answer's thinking in its place; `""` empties it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_thinking: Option<Arc<str>>,
    /// The answer's tool calls in their place; `[]` empties them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// How many characters at the end of what was shown are held, so that the next segment shows them again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holdback_chars: Option<u32>,
    /// What stands in the rewrite in place of what: placeholder and value, which the host puts back into the answer.
    /// In-process hooks alone have it: it is never written and never read.
    #[serde(skip)]
    pub placeholders: Vec<(Arc<str>, Arc<str>)>,
}

/// What only some events honour.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HookSpecificOutput {
    /// Which event this answers; optional, checked under `strict_output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_event_name: Option<String>,
    /// The verdict on a tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision: Option<PermissionDecision>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision_reason: Option<String>,
    /// A patch of the tool's arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Map<String, Value>>,
    /// Text for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// Instructions for the model, each under a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction_context: Option<Vec<Value>>,
    /// The summary of a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The conversation in its place; `[]` is no rewrite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_messages: Option<Vec<Message>>,
    /// What the tool answered, in its place; `""` clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_tool_response: Option<Value>,
    /// Facts for whoever reads the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
}

impl Output {
    /// Text for the model, as an answer to `event`.
    ///
    /// ```
    /// use gatehook_events::{Event, Output};
    ///
    /// let output = Output::additional_context(Event::TurnStart, "it is Monday");
    /// let specific = output.hook_specific_output.unwrap_or_default();
    /// assert_eq!(specific.hook_event_name.as_deref(), Some("turn_start"));
    /// assert_eq!(specific.additional_context.as_deref(), Some("it is Monday"));
    /// ```
    pub fn additional_context(event: Event, text: impl Into<String>) -> Self {
        Self::specific(HookSpecificOutput {
            hook_event_name: Some(event.public_name().to_owned()),
            additional_context: Some(text.into()),
            ..HookSpecificOutput::default()
        })
    }

    /// A block with its reason.
    ///
    /// ```
    /// use gatehook_events::{Block, Output};
    ///
    /// let output = Output::block("not on a friday");
    /// assert_eq!((output.decision, output.reason.as_deref()), (Some(Block::Block), Some("not on a friday")));
    /// ```
    pub fn block(reason: impl Into<String>) -> Self {
        Self { decision: Some(Block::Block), reason: Some(reason.into()), ..Self::default() }
    }

    /// An answer that only some events honour.
    pub fn specific(specific: HookSpecificOutput) -> Self {
        Self { hook_specific_output: Some(specific), ..Self::default() }
    }

    /// Whether it says `decision: block`.
    ///
    /// ```
    /// # use gatehook_events::Output;
    /// assert!(Output::block("no").is_blocked());
    /// assert!(!Output::default().is_blocked());
    /// ```
    pub fn is_blocked(&self) -> bool {
        self.decision.is_some()
    }

    /// Whether the host goes on as far as `continue` is concerned: it does unless that is `false`.
    ///
    /// ```
    /// # use gatehook_events::Output;
    /// assert!(Output::default().should_continue());
    /// assert!(!Output { continue_: Some(false), ..Output::default() }.should_continue());
    /// ```
    pub fn should_continue(&self) -> bool {
        self.continue_ != Some(false)
    }
}
