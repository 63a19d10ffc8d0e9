//! What a hook is told: one flat record, of which each event fills its own fields.
//!
//! Host and in-process hooks share one immutable value: what can be large stands behind an `Arc`. Fields without a
//! value are absent. Field names up to `worktree_source_dir` are docker-agent's
//! (<https://pkg.go.dev/github.com/docker/docker-agent/pkg/hooks#Input>). A new field is a row of the table below.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::catalogue::{Event, Subject};
use crate::message::{Message, ToolCall};
use crate::segment::{Before, Segment};

/// The version of the payload. Additions keep it, removals raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// Which events a field belongs to.
#[derive(Debug, Clone, Copy)]
pub enum Scope {
    /// Every event.
    Always,
    /// Every event, where the host knows it.
    Known,
    /// These events.
    On(&'static [Event]),
}

/// One row of the payload's documentation.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its key.
    pub name: &'static str,
    /// Its JSON type, as in `string` or `object`.
    pub json: &'static str,
    /// Where it stands.
    pub scope: Scope,
    /// docker-agent sends it too, under the same name.
    pub docker_agent: bool,
    /// What it says.
    pub doc: &'static str,
}

use Event::{
    AfterCompaction, AfterLlmCall, BeforeCompaction, BeforeLlmCall, Custom, Notification, OnAgentSwitch,
    OnContextOverflow, OnError, OnFileChange, OnGitCommit, OnMaxIterations, OnSessionResume, OnToolApprovalDecision,
    PermissionRequest, PostInference, PostToolUse, PostToolUseFailure, PreCompact, PreInference, PreToolUse,
    PreToolUsePreempt, SessionEnd, SessionStart, Setup, SkillTrigger, Stop, SubagentStart, SubagentStop, ToolGuard,
    ToolInputTransform, ToolResponseTransform, TurnEnd, UserFollowupSubmit, UserPromptSubmit,
    UserSteeringMessagesSubmit, WorktreeCreate,
};

const TOOL: Scope = Scope::On(&[
    ToolInputTransform,
    ToolGuard,
    PreToolUse,
    PreToolUsePreempt,
    PermissionRequest,
    OnToolApprovalDecision,
    ToolResponseTransform,
    PostToolUse,
    PostToolUseFailure,
]);
const TOOL_DONE: Scope = Scope::On(&[ToolResponseTransform, PostToolUse]);
const INFERENCE: Scope = Scope::On(&[PreInference, PostInference]);
/// Where a host stands around the exchange of one request.
const EXCHANGE: Scope =
    Scope::On(&[PreInference, PostInference, ToolGuard, PreToolUse, PreToolUsePreempt, ToolResponseTransform]);
const ANSWERED: Scope = Scope::On(&[PostInference]);
const LLM_CALL: Scope = Scope::On(&[BeforeLlmCall, AfterLlmCall, PreInference, PostInference]);
const OPTIONS: Scope = Scope::On(&[SessionStart, BeforeLlmCall, AfterLlmCall, PreInference, PostInference]);
const COMPACTION: Scope = Scope::On(&[BeforeCompaction, AfterCompaction]);
const NOTICE: Scope = Scope::On(&[Notification, OnError, OnMaxIterations]);

/// A field of a payload that holds what it cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableField {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub cause: String,
}

impl std::fmt::Display for UnreadableField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "field `{}` cannot be read: {}", self.name.escape_debug(), self.cause)
    }
}

impl std::error::Error for UnreadableField {}

macro_rules! input {
    ($( $(#[doc = $doc:literal])+ $name:ident: $type:ty = $json:literal, $scope:expr, $docker:literal; )+) => {
        /// What a hook is told about one event. See [`FIELDS`] for which event fills what.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Input {
            $( $(#[doc = $doc])+ #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<$type>, )+
            /// Fields that are not in the table, as a caller gave them.
            #[serde(flatten)]
            pub extra: BTreeMap<String, Value>,
            /// What stands before the new part of a segment. Hooks outside of the process are not told.
            #[serde(skip)]
            pub before: Option<Arc<Before>>,
        }

        /// The payload's fields, in the order they are written.
        pub const FIELDS: &[Field] = &[
            $( Field { name: stringify!($name), json: $json, scope: $scope, docker_agent: $docker,
                       doc: concat!($($doc),+) }, )+
        ];
    };
}

input! {
    /// Version of this payload: 1.
    schema_version: u32 = "integer", Scope::Always, false;
    /// The session, or its fingerprint where the caller names none.
    session_id: Arc<str> = "string", Scope::Always, true;
    /// The host's working directory.
    cwd: Arc<str> = "string", Scope::Always, true;
    /// The event's name.
    hook_event_name: Arc<str> = "string", Scope::Always, true;
    /// When it happened, RFC 3339 in UTC.
    timestamp: Arc<str> = "string", Scope::Always, false;
    /// The agent it happened in.
    agent_name: Arc<str> = "string", Scope::Known, true;
    /// The model, as in `llama3` or `provider/model`.
    model_id: Arc<str> = "string", Scope::Known, true;
    /// The model's provider.
    provider: Arc<str> = "string", Scope::Known, false;
    /// The user.
    user: Arc<str> = "string", Scope::Known, false;
    /// A current export of the conversation, as JSON lines.
    transcript_path: Arc<str> = "string", Scope::Known, false;
    /// When the session began, RFC 3339 in UTC.
    session_started_at: Arc<str> = "string", Scope::Known, false;
    /// The tool.
    tool_name: Arc<str> = "string", TOOL, true;
    /// The call's identity.
    tool_use_id: Arc<str> = "string", TOOL, true;
    /// Its arguments.
    tool_input: Arc<Map<String, Value>> = "object", TOOL, true;
    /// As in `filesystem`, `shell` or `mcp`.
    tool_category: Arc<str> = "string", TOOL, true;
    /// Where the call was seen: `agent`, `wire` or `adapter`.
    plane: Arc<str> = "string", TOOL, false;
    /// The safety mode: `strict`, `balanced`, `restricted` or `autonomous`.
    safety_policy: Arc<str> = "string", TOOL, true;
    /// What the tool answered.
    tool_response: Arc<Value> = "any", TOOL_DONE, true;
    /// The tool failed.
    tool_error: bool = "boolean", TOOL_DONE, true;
    /// The tool succeeded.
    success: bool = "boolean", TOOL_DONE, false;
    /// How long it took, in seconds (of the session, the tool call or the model call).
    duration: f64 = "number", Scope::On(&[SessionEnd, PostToolUse, PostToolUseFailure, BeforeLlmCall, AfterLlmCall]), false;
    /// `allow`, `deny` or `canceled`.
    approval_decision: Arc<str> = "string", Scope::On(&[OnToolApprovalDecision]), true;
    /// Who settled it.
    approval_source: Arc<str> = "string", Scope::On(&[OnToolApprovalDecision]), true;
    /// `safe`, `destructive` or `unknown`.
    safety_label: Arc<str> = "string", Scope::On(&[OnToolApprovalDecision]), true;
    /// What is to be approved.
    operation: Arc<str> = "string", Scope::On(&[PermissionRequest, OnError]), false;
    /// The request in its parts.
    details: Value = "object", Scope::On(&[PermissionRequest]), false;
    /// Who asks.
    requester: Arc<str> = "string", Scope::On(&[PermissionRequest]), false;
    /// What went wrong: text for a tool; `{message, code, stack}` for `on_error`.
    error: Value = "any", Scope::On(&[PostToolUseFailure, OnError]), false;
    /// `permission`, `not_found`, `timeout`, `network`, `cancelled`, `invalid_input` or `other`.
    error_kind: Arc<str> = "string", Scope::On(&[PostToolUseFailure]), false;
    /// Identity of the exchange, a UUID; also on the client's response.
    request_id: Arc<str> = "string", EXCHANGE, false;
    /// The route the caller used, as in `/v1/messages`.
    route: Arc<str> = "string", EXCHANGE, false;
    /// The conversation as OpenAI chat messages.
    messages: Arc<[Message]> = "array", LLM_CALL, true;
    /// The tools that the model may call.
    tools: Arc<Value> = "array", INFERENCE, false;
    /// Sampling options, by the caller's names.
    options: Arc<Value> = "object", OPTIONS, false;
    /// The caller wants a stream.
    stream: bool = "boolean", INFERENCE, false;
    /// The demanded output format.
    format: Arc<Value> = "any", INFERENCE, false;
    /// Text after the completion.
    suffix: Arc<str> = "string", INFERENCE, false;
    /// A prompt template that the caller brings.
    template: Arc<str> = "string", INFERENCE, false;
    /// Context tokens of an earlier generate.
    context: Arc<Value> = "any", Scope::On(&[PreInference, PostInference, OnContextOverflow]), false;
    /// Who calls: `{address, key_name, user_agent}`.
    client: Arc<Value> = "object", EXCHANGE, false;
    /// The approval that the caller presents.
    approval: Arc<str> = "string", EXCHANGE, false;
    /// The answer's text.
    output_text: Arc<str> = "string", ANSWERED, false;
    /// The answer's thinking.
    output_thinking: Arc<str> = "string", ANSWERED, false;
    /// The tool calls the model asks for.
    tool_calls: Arc<[ToolCall]> = "array", ANSWERED, false;
    /// Which part of a streamed answer this is: `{index, final, kind}`; absent where the answer is shown as a whole.
    segment: Segment = "object", ANSWERED, false;
    /// Why the model stopped, by the upstream's word.
    done_reason: Arc<str> = "string", ANSWERED, false;
    /// Tokens used, by the upstream's names; of an agent also `input_tokens`, `output_tokens` and, where there are any, `cached_input_tokens`, `cached_write_tokens`, `reasoning_tokens`.
    usage: Value = "object", Scope::On(&[AfterLlmCall, PostInference]), true;
    /// What the call cost; 0 is free, absent is unpriced.
    cost: f64 = "number", Scope::On(&[AfterLlmCall]), true;
    /// Which call of the run this is, from 1.
    iteration: u64 = "integer", Scope::On(&[BeforeLlmCall]), true;
    /// What the model said.
    stop_response: Arc<str> = "string", Scope::On(&[AfterLlmCall, Stop, SubagentStop]), true;
    /// What the user said last.
    last_user_message: Arc<str> = "string", Scope::On(&[AfterLlmCall, Stop]), true;
    /// What the user sent.
    prompt: Arc<str> = "string", Scope::On(&[UserPromptSubmit, UserFollowupSubmit, SubagentStart]), true;
    /// Messages that steer a running turn.
    steering_messages: Vec<String> = "array", Scope::On(&[UserSteeringMessagesSubmit]), true;
    /// `init` or `maintenance`.
    trigger: Arc<str> = "string", Scope::On(&[Setup]), false;
    /// Where to write environment variables for the session.
    env_file: Arc<str> = "string", Scope::On(&[Setup]), false;
    /// What began it: `startup`, `resume`, `auto`, `overflow`, `manual`.
    source: Arc<str> = "string", Scope::On(&[SessionStart, PreCompact, Custom]), true;
    /// Why it ended.
    reason: Arc<str> = "string", Scope::On(&[SessionEnd, TurnEnd]), true;
    /// How many messages the session has.
    message_count: u64 = "integer", Scope::On(&[SessionEnd]), false;
    /// The summary text of a compaction; `{total_tokens, cost, turns}` of a session.
    summary: Value = "any", Scope::On(&[SessionEnd, AfterCompaction]), true;
    /// Tokens read, before the compaction.
    input_tokens: u64 = "integer", COMPACTION, true;
    /// Tokens written, before the compaction.
    output_tokens: u64 = "integer", COMPACTION, true;
    /// The model's window in tokens; 0 is unknown.
    context_limit: u64 = "integer", COMPACTION, true;
    /// `threshold`, `overflow` or `manual`.
    compaction_reason: Arc<str> = "string", COMPACTION, true;
    /// The session that started this one.
    parent_session_id: Arc<str> = "string", Scope::On(&[SubagentStart, SubagentStop]), true;
    /// `error`, `warning` or `info`.
    notification_level: Arc<str> = "string", NOTICE, true;
    /// What the user is told.
    notification_message: Arc<str> = "string", NOTICE, true;
    /// The agent that is left.
    from_agent: Arc<str> = "string", Scope::On(&[OnAgentSwitch]), true;
    /// The agent that takes over.
    to_agent: Arc<str> = "string", Scope::On(&[OnAgentSwitch]), true;
    /// `transfer_task`, `transfer_task_return`, `handoff` or `force_handoff`.
    agent_switch_kind: Arc<str> = "string", Scope::On(&[OnAgentSwitch]), true;
    /// The models of the agent that is left: `{provider, model, base_url, unload_api}`.
    from_agent_models: Value = "array", Scope::On(&[OnAgentSwitch]), true;
    /// The cap that was reached.
    previous_max_iterations: u64 = "integer", Scope::On(&[OnSessionResume]), true;
    /// The cap from now on.
    new_max_iterations: u64 = "integer", Scope::On(&[OnSessionResume]), true;
    /// The skill.
    skill_name: Arc<str> = "string", Scope::On(&[SkillTrigger]), false;
    /// Its file.
    skill_path: Arc<str> = "string", Scope::On(&[SkillTrigger]), false;
    /// Its arguments.
    skill_args: Arc<str> = "string", Scope::On(&[SkillTrigger]), false;
    /// The file that changed.
    file: Arc<str> = "string", Scope::On(&[OnFileChange]), false;
    /// `{type: created | modified | deleted, size, timestamp}`.
    changes: Value = "object", Scope::On(&[OnFileChange]), false;
    /// The files of a commit.
    files: Vec<String> = "array", Scope::On(&[OnGitCommit]), false;
    /// The message of a commit.
    message: Arc<str> = "string", Scope::On(&[OnGitCommit]), false;
    /// The branch of a commit.
    branch: Arc<str> = "string", Scope::On(&[OnGitCommit]), false;
    /// The name of a custom event.
    event_name: Arc<str> = "string", Scope::On(&[Custom]), false;
    /// The data of a custom event.
    data: Value = "any", Scope::On(&[Custom]), false;
    /// The worktree.
    worktree_path: Arc<str> = "string", Scope::On(&[WorktreeCreate]), true;
    /// Its branch.
    worktree_branch: Arc<str> = "string", Scope::On(&[WorktreeCreate]), true;
    /// The checkout it was made from.
    worktree_source_dir: Arc<str> = "string", Scope::On(&[WorktreeCreate]), true;
}

impl Input {
    /// What a matcher over `subject` is held against; `None` where the host gave no such field.
    pub fn subject(&self, subject: Subject) -> Option<&str> {
        match subject {
            Subject::Trigger => self.trigger.as_deref(),
            Subject::Source => self.source.as_deref(),
            Subject::Reason => self.reason.as_deref().or(self.compaction_reason.as_deref()),
            Subject::Route => self.route.as_deref(),
            Subject::Tool => self.tool_name.as_deref(),
            Subject::Agent => self.agent_name.as_deref(),
            Subject::SwitchKind => self.agent_switch_kind.as_deref(),
            Subject::Skill => self.skill_name.as_deref(),
            Subject::Level => self.notification_level.as_deref(),
            Subject::Path => self.file.as_deref(),
            Subject::Branch => self.branch.as_deref(),
            Subject::Name => self.event_name.as_deref(),
        }
    }

    /// Reads a payload's fields, and says which of them cannot be read.
    ///
    /// ```
    /// use gatehook_events::Input;
    ///
    /// let fields = |value: serde_json::Value| value.as_object().cloned().unwrap_or_default();
    /// let input = Input::read(fields(serde_json::json!({"tool_name": "shell"})))?;
    /// assert_eq!(input.tool_name.as_deref(), Some("shell"));
    /// let error = Input::read(fields(serde_json::json!({"tool_name": 5}))).unwrap_err();
    /// assert_eq!(error.name, "tool_name");
    /// # Ok::<(), gatehook_events::input::UnreadableField>(())
    /// ```
    pub fn read(fields: Map<String, Value>) -> Result<Input, UnreadableField> {
        let read = |fields: Map<String, Value>| serde_json::from_value::<Input>(Value::Object(fields));
        read(fields.clone()).map_err(|error| {
            // The error does not say which field it is about; each of them alone does.
            let alone = |(name, value): (String, Value)| {
                let error = read([(name.clone(), value)].into_iter().collect()).err()?;
                Some(UnreadableField { name, cause: error.to_string() })
            };
            let unknown = UnreadableField { name: String::new(), cause: error.to_string() };
            fields.into_iter().find_map(alone).unwrap_or(unknown)
        })
    }

    /// The payload as JSON.
    ///
    /// ```
    /// use gatehook_events::Input;
    ///
    /// let input = Input { tool_name: Some("shell".into()), ..Input::default() };
    /// assert_eq!(input.to_json()?, serde_json::json!({"tool_name": "shell"}));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn to_json(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}

impl Field {
    /// Whether `event` may fill this field.
    pub fn is_on(&self, event: Event) -> bool {
        match self.scope {
            Scope::Always | Scope::Known => true,
            Scope::On(events) => events.contains(&event),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn absent_fields_are_not_written() {
        let input = Input { tool_name: Some("shell".into()), ..Input::default() };
        assert_eq!(serde_json::to_string(&input).unwrap(), r#"{"tool_name":"shell"}"#);
    }

    #[test]
    fn a_payload_survives_reading_and_writing() {
        let text = r#"{"session_id":"s","messages":[{"role":"user","content":"hi"}],"of_its_own":1}"#;
        let input: Input = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&input).unwrap(), text);
    }
    proptest! {
        #[test]
        fn a_number_keeps_its_last_digit(number in any::<f64>().prop_filter("JSON", |number| number.is_finite())) {
            let text = format!(r#"{{"of_its_own":{}}}"#, serde_json::to_string(&number).unwrap());
            let input: Input = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&input).unwrap(), text);
        }
    }
}
