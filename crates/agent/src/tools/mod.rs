//! What a model may call: the agent's own tools, and those of MCP servers.
//!
//! A [`Tool`] says what it is ([`ToolSpec`]) and does one call at a time. Whether it may is not its question:
//! [`approval`] settles that before.

mod arguments;
mod aside;
mod bash;
mod builtin;
mod called;
mod changes;
mod content;
mod edit;
mod fetch;
mod glob;
mod grep;
mod lines;
mod list;
mod on_files;
mod read;
#[cfg(test)]
mod tests;
mod think;
mod todo;
mod workspace;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use gatehook_engine::events::Message;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::approval;

pub use self::builtin::{Sandboxing, ToolSettings, builtin_tools, toolset, toolsets};
pub use self::called::{as_docker_agent, name_in_docker_agent};

/// What a model is told of a tool, and what the agent knows of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Name, category, what it says of itself.
    pub tool: approval::Tool,
    /// For the model.
    pub description: Arc<str>,
    /// JSON Schema of its arguments, an object.
    pub parameters: Arc<Value>,
}

/// Where a tool works.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The session.
    pub session_id: Arc<str>,
    /// The folder that tools stay in, canonical.
    pub workspace: Arc<Path>,
    /// Folders beside it that a rule allows, canonical.
    pub allowed: Arc<[PathBuf]>,
    /// Folders that only processes may write, canonical: what a working tree shares with its repository.
    pub shared: Arc<[PathBuf]>,
    /// The environment of processes.
    pub env: Arc<BTreeMap<String, String>>,
}

/// One call of a tool.
#[derive(Clone, Copy)]
pub struct Calling<'a> {
    /// The call's identity.
    pub id: &'a str,
    /// Its final arguments.
    pub arguments: &'a Map<String, Value>,
    /// Where.
    pub scene: &'a Scene,
    /// Is told what it says while it works; nobody waits for that.
    pub output: &'a (dyn Fn(&str) + Send + Sync),
    /// Gives up.
    pub cancel: &'a CancellationToken,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// For the model.
    pub text: String,
    /// It failed, and how.
    pub error: Option<ToolErrorKind>,
    /// Files that it changed.
    pub changes: Vec<FileChange>,
    /// For the person: what it changed, as a unified diff.
    pub diff: Option<String>,
}

/// How a tool failed, as hooks read it in `error_kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolErrorKind {
    /// It may not.
    Permission,
    /// There is no such thing.
    NotFound,
    /// It took too long.
    Timeout,
    /// What it wanted could not be reached.
    Network,
    /// The person or the caller gave up.
    Cancelled,
    /// Its arguments are none that it takes.
    InvalidInput,
    /// Anything else.
    Other,
}

impl ToolErrorKind {
    /// As in `not_found`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::NotFound => "not_found",
            Self::Timeout => "timeout",
            Self::Network => "network",
            Self::Cancelled => "cancelled",
            Self::InvalidInput => "invalid_input",
            Self::Other => "other",
        }
    }
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file, canonical where it is still there.
    pub path: PathBuf,
    /// What happened.
    pub kind: ChangeKind,
    /// Bytes it has now.
    pub size: u64,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// It is new.
    Created,
    /// It was there before.
    Modified,
    /// It is gone.
    Deleted,
}

impl ChangeKind {
    /// As in `created`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

impl ToolOutput {
    /// An answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A failure.
    pub fn error(kind: ToolErrorKind, text: impl Into<String>) -> Self {
        Self { text: text.into(), error: Some(kind), ..Self::default() }
    }
}

/// A call at work. Dropped, it leaves nothing behind.
pub type Working<'a> = Pin<Box<dyn Future<Output = ToolOutput> + Send + 'a>>;

/// Tools that come and go while a session lasts.
pub trait Shelf: Send + Sync {
    /// Those that are there now. It is asked often, and must not wait.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
}

/// Something that a model may call.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> &ToolSpec;

    /// Does it. On `cancel` it ends soon, with [`ToolErrorKind::Cancelled`].
    fn call<'a>(&'a self, call: Calling<'a>) -> Working<'a>;

    /// A session goes on from these messages: what it keeps for it is what it has said in them.
    fn recall(&self, _session: &Arc<str>, _messages: &[Message]) {}
}
