//! What can happen to a model call and to an agent, and what a hook may answer.
//!
//! - [`catalogue`]: the one table of all events; validation, dispatch, documentation and JSON Schema read it.
//! - [`profile`]: how a published system's hooks differ from native ones.
//! - [`input`]: what a hook is told. [`message`]: the chat inside of it. [`segment`]: part of a streamed answer.
//! - [`dialect`]: how a foreign contract spells all of it. [`sample`]: an input for any event, to try hooks with.
//! - [`output`]: what a hook may answer. [`verdict`]: what all hooks of one event decided together.
//! - [`trace`]: what is remembered of it; [`replay`]: how that is read, to be raised once more. [`journal`]: a session as
//!   it is kept. [`fold`]: its messages.
//!
//! No IO, no async runtime, no dependency but serde: everything else in the workspace stands on this crate.
//! A new event is a row in [`catalogue`], a new payload field a row in [`input`].

pub mod catalogue;
pub mod dialect;
pub mod fold;
pub mod input;
pub mod journal;
pub mod message;
pub mod output;
pub mod profile;
pub mod replay;
pub mod sample;
pub mod segment;
pub mod trace;
pub mod unique;
pub mod verdict;

pub use catalogue::{Capabilities, Decides, Event, EventSpec, Rewrite, Subject};
pub use dialect::Dialect;
pub use fold::Fold;
pub use input::Input;
pub use journal::{Entry, Journal, JournalError, SessionHead};
pub use message::{FunctionCall, Image, Message, ToolCall};
pub use output::{Block, HookSpecificOutput, Output, Permission, PermissionDecision};
pub use profile::Profile;
pub use segment::{Before, Segment, SegmentKind};
pub use trace::{Recorder, Trace};
pub use verdict::{
    Decision, FailureKind, ModelOutput, Notice, Outcome, OutcomeKind, Refusal, Rewritten, TokenUsage, Verb, Verdict,
};
