//! A dialect: how a foreign contract spells events, inputs and answers. Texts in, values out; it does no IO.
//!
//! What a contract *means* (who may block, how long a hook may take) stands in its [`profile`](crate::profile); a dialect
//! is its *spelling*. The engine is given dialects and knows none by name.

use std::fmt;

use serde_json::Value;

use crate::catalogue::Event;
use crate::input::{Input, UnreadableField};
use crate::output::Output;
use crate::profile::Profile;
use crate::verdict::FailureKind;

/// One event, as one hook is told of it.
#[derive(Debug, Clone, Copy)]
pub struct Occasion<'a> {
    /// The event.
    pub event: Event,
    /// What is known of it. `schema_version`, `session_id`, `cwd` and `timestamp` are there.
    pub input: &'a Input,
    /// The hook; `None` where the contract's payload [does not name it](Dialect::names_hook).
    pub hook: Option<HookName<'a>>,
}

/// The hook that a payload is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookName<'a> {
    /// Its display name.
    pub name: &'a str,
    /// The version that its file gives; empty where it gives none.
    pub version: &'a str,
}

/// What a hook outside of the process left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Printed<'a> {
    /// What it wrote to stdout, or the body of its reply.
    pub stdout: &'a [u8],
    /// What it wrote to stderr.
    pub stderr: &'a str,
    /// Its exit code; -1 by a signal.
    pub exit_code: i32,
}

/// What a hook said.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// No opinion.
    Nothing,
    /// Plain text.
    Text(String),
    /// An answer.
    Output(Box<Output>),
    /// Exit code 2, and what it had to add.
    Block(Option<Box<Output>>),
    /// No answer: why in one word, and in a sentence fragment that does not repeat what could be a secret.
    Failed(FailureKind, String),
}

/// How a foreign contract spells what happens.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// The contract.
    fn profile(&self) -> Profile;

    /// What it calls an event; `None` where it has no such event.
    fn event_name(&self, event: Event) -> Option<&'static str> {
        event.name_in(self.profile())
    }

    /// The event that it calls so.
    fn event(&self, name: &str) -> Option<Event> {
        Event::from_name_in(self.profile(), name)
    }

    /// Tools that have several names, each row one tool. A matcher of one name fits the others too.
    fn tool_names(&self) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// Whether a payload names its hook, so that each hook needs one of its own.
    fn names_hook(&self) -> bool {
        false
    }

    /// What a hook reads: one line of JSON, without its end.
    fn payload(&self, occasion: &Occasion<'_>) -> serde_json::Result<Vec<u8>>;

    /// The variables that a command is given, beside those of its definition.
    fn environment(&self, occasion: &Occasion<'_>) -> Vec<(&'static str, String)> {
        let _ = occasion;
        Vec::new()
    }

    /// Reads what a hook left behind as its answer to `event`.
    fn read_reply(&self, event: Event, printed: &Printed<'_>) -> Said;

    /// Reads a payload back into what it tells of. `event` goes before the event that the payload names. What has no
    /// place in an [`Input`] is kept in [`extra`](Input::extra), and written again.
    fn read_payload(&self, event: Option<Event>, payload: Value) -> Result<(Event, Input), PayloadError>;
}

/// Why a payload cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadError {
    /// It is no JSON object.
    NotAnObject,
    /// It does not name its event, and nobody else did.
    NoEvent,
    /// It names an event that the contract does not have.
    UnknownEvent(String),
    /// A field holds what it cannot hold.
    Field(UnreadableField),
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PayloadError::NotAnObject => f.write_str("it is no JSON object"),
            PayloadError::NoEvent => f.write_str("it does not name its event"),
            PayloadError::UnknownEvent(name) => write!(f, "there is no event `{}`", name.escape_debug()),
            PayloadError::Field(field) => field.fmt(f),
        }
    }
}

impl std::error::Error for PayloadError {}

impl From<UnreadableField> for PayloadError {
    fn from(field: UnreadableField) -> Self {
        PayloadError::Field(field)
    }
}
