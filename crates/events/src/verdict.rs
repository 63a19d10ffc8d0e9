//! What all hooks of one event decided together, and what each of them did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::message::{Message, ToolCall};
use crate::profile::Profile;

/// The most restrictive permission that a hook gave. `deny` > `ask` > `allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// No objection.
    Allow,
    /// A person decides.
    Ask,
    /// It must not happen.
    Deny,
}

/// The outcome of a dispatch in one word, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Go on.
    #[default]
    Allow,
    /// Go on with changes.
    Modify,
    /// A person decides.
    Ask,
    /// A change was demanded that the host cannot make.
    ModifyUnsupported,
    /// A guard could not judge, and so nothing passes.
    Unavailable,
    /// Refused.
    Deny,
}

impl Verb {
    /// From the mildest to the strictest.
    pub const ALL: [Verb; 6] =
        [Verb::Allow, Verb::Modify, Verb::Ask, Verb::ModifyUnsupported, Verb::Unavailable, Verb::Deny];

    /// As in `modify_unsupported`.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Allow => "allow",
            Verb::Modify => "modify",
            Verb::Ask => "ask",
            Verb::ModifyUnsupported => "modify_unsupported",
            Verb::Unavailable => "unavailable",
            Verb::Deny => "deny",
        }
    }

    /// The verb of this name.
    ///
    /// ```
    /// use gatehook_events::Verb;
    ///
    /// assert_eq!(Verb::from_name("modify_unsupported"), Some(Verb::ModifyUnsupported));
    /// assert_eq!(Verb::from_name("Deny"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

/// Why a hook failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// It did not answer in time.
    Timeout,
    /// The caller gave up, or its own deadline expired.
    Cancelled,
    /// It could not be started.
    SpawnFailed,
    /// It ended with a code that is neither 0 nor 2, or by a signal.
    NonzeroExit,
    /// It wrote more than it may.
    OutputTooLarge,
    /// It said nothing where an answer is due.
    NoReply,
    /// Its reply is no JSON.
    MalformedJson,
    /// Something follows its JSON reply.
    TrailingData,
    /// `strict_output` wants an object.
    StrictNonObject,
    /// `strict_output` knows no such field.
    UnknownField,
    /// A key stands twice in its reply.
    DuplicateKey,
    /// `decision` has an unknown value.
    InvalidDecision,
    /// `permission_decision` or `permission` has an unknown value, or none where one is due.
    InvalidPermissionDecision,
    /// `hook_event_name` names another event.
    EventNameMismatch,
    /// `strict_output`: this event does not honour a given field.
    UnsupportedOutput,
    /// `strict_output`: `suppress_output` has no place.
    SuppressOutputUnsupported,
    /// This event takes no `permission_decision`.
    PermissionUnsupported,
    /// This event cannot be blocked.
    BlockUnsupported,
    /// No such builtin.
    UnknownBuiltin,
    /// A builtin without a name.
    BuiltinNameMissing,
    /// No such handler type.
    UnknownType,
    /// A webhook could not be reached.
    Unreachable,
    /// A webhook's address is one that must not be called.
    ForbiddenAddress,
    /// A webhook answered with a redirect, which is never followed.
    Redirected,
    /// A webhook answered with a status that is no success.
    BadStatus,
    /// The template of a prompt cannot be read.
    TemplateParse,
    /// The template of a prompt names what this event does not have.
    TemplateRender,
    /// Nobody registered the shape of a model's reply.
    UnknownSchema,
    /// It is not in force: its content is not what was approved, or it is required and not there.
    NotTrusted,
    /// The rewrite cannot be made.
    UnsupportedRewrite,
    /// A builtin or handler said that it failed.
    HandlerError,
}

impl FailureKind {
    /// As in `nonzero_exit`.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// What became of one hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// It answered, and did not block.
    Ok,
    /// It blocked.
    Blocked,
    /// It failed.
    Failed(FailureKind),
}

/// Tokens that a model judge used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TokenUsage {
    /// Tokens of the question.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
}

/// The record of one hook that ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Its display name.
    pub name: Arc<str>,
    /// Its handler type, as in `command`.
    #[serde(rename = "type")]
    pub handler: Arc<str>,
    /// The contract it was written for.
    #[serde(serialize_with = "profile_name")]
    pub profile: Profile,
    /// How long it took.
    #[serde(rename = "duration_us", serialize_with = "micros")]
    pub duration: Duration,
    /// Its exit code; -1 for a failure without one.
    pub exit_code: i32,
    /// What became of it.
    pub kind: OutcomeKind,
    /// What it said in one word.
    pub verb: Verb,
    /// It was not run: it had judged all of this before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recalled: bool,
    /// Why, in a sentence; empty where it had no objection.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The last bytes it wrote to stderr.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The tokens of a model judge, where its server counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// What its model call cost, in the currency of the configured prices; absent is unpriced, 0 is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

fn profile_name<S: serde::Serializer>(profile: &Profile, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(profile.name())
}

fn micros<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

/// A sentence that the engine itself put into the verdict, about one hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// The hook's display name.
    pub hook_name: Arc<str>,
    /// What it is about.
    pub kind: FailureKind,
    /// Whether it is a line of the `message`, because it blocks, or one of the `system_message`.
    pub blocks: bool,
}

/// What a model answered, or the changes to it: absent is unchanged, empty is emptied.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ModelOutput {
    /// The text.
    #[serde(rename = "output_text", skip_serializing_if = "Option::is_none")]
    pub text: Option<Arc<str>>,
    /// The thinking.
    #[serde(rename = "output_thinking", skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Arc<str>>,
    /// The tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Arc<[ToolCall]>>,
}

/// The complete values that hooks put in place of the caller's. Absent is unchanged.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Rewritten {
    /// The complete arguments of the tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_input: Option<Arc<Map<String, Value>>>,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Arc<[Message]>>,
    /// What the tool answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_response: Option<Arc<Value>>,
    /// What the model answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<ModelOutput>,
    /// The arguments of the skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill_args: Option<Arc<str>>,
}

impl Rewritten {
    /// Whether nothing was rewritten.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The hook that decided against going on, and what it wants said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refusal {
    /// `ask`, `modify_unsupported`, `unavailable` or `deny`.
    pub verb: Verb,
    /// Its display name.
    pub hook_name: Arc<str>,
    /// For the person who waits.
    pub user_message: Option<String>,
    /// For the program or model that asked.
    pub agent_message: Option<String>,
}

/// What all hooks of one event decided together, in configuration order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether the host goes on.
    pub allowed: bool,
    /// The verdict in one word; the strictest of all hooks.
    pub verb: Verb,
    /// The most restrictive `permission_decision`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Its reason; the first one among equals.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub decision_reason: String,
    /// A hook gave the user's consent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub permission_allowed: bool,
    /// Why it was blocked, a line for each hook.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Who refused, and what they want said; the strictest, the first among equals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// The complete values that replace the caller's.
    #[serde(skip_serializing_if = "Rewritten::is_empty")]
    pub rewritten: Rewritten,
    /// How many characters at the end of a segment are held; the most that a hook asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holdback_chars: Option<u32>,
    /// Placeholders in the rewrite and what they stand for, of all hooks; the host puts the values back into the answer.
    #[serde(skip)]
    pub placeholders: Vec<(Arc<str>, Arc<str>)>,
    /// Text for the model, a line for each hook.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub additional_context: String,
    /// Instructions for the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instruction_context: Vec<Value>,
    /// Notices for the user, a line for each.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system_message: String,
    /// The first summary that a hook gave.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Facts from hooks; the last hook wins a key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The most severe: 2, then -1, then 0.
    pub exit_code: i32,
    /// What the hook of that exit code wrote to stderr.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// What the engine itself had to say, in the order of its sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// One record for each hook that ran, in configuration order.
    pub outcomes: Vec<Outcome>,
}

impl Default for Verdict {
    fn default() -> Self {
        Self::allow()
    }
}

impl Verdict {
    /// Nobody had an opinion. Allocates nothing.
    pub const fn allow() -> Self {
        Self {
            allowed: true,
            verb: Verb::Allow,
            decision: None,
            decision_reason: String::new(),
            permission_allowed: false,
            message: String::new(),
            refusal: None,
            rewritten: Rewritten {
                tool_input: None,
                messages: None,
                tool_response: None,
                output: None,
                skill_args: None,
            },
            holdback_chars: None,
            placeholders: Vec::new(),
            additional_context: String::new(),
            instruction_context: Vec::new(),
            system_message: String::new(),
            summary: String::new(),
            metadata: BTreeMap::new(),
            exit_code: 0,
            stderr: String::new(),
            notices: Vec::new(),
            outcomes: Vec::new(),
        }
    }
}
