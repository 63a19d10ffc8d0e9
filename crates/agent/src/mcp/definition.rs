//! A server as it is configured.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gatehook_engine::definition::{EnvPolicy, Origin};
use gatehook_engine::trust::Seal;
use http::Uri;
use serde_json::Value;

/// A server. Two definitions are equal when everything but origin and seal is.
#[derive(Debug, Clone)]
pub struct ServerDefinition {
    /// Its name, which no other one has.
    pub name: Arc<str>,
    /// Where it is.
    pub reached: Reached,
    /// What its tools are called.
    pub naming: Naming,
    /// Its tools by its own names, where not all of them are meant.
    pub tools: Vec<String>,
    /// How long it may take until it is ready.
    pub startup_timeout: Duration,
    /// How long one call may take.
    pub timeout: Duration,
    /// Where it is configured.
    pub origin: Origin,
    /// As it is written, for its owner.
    pub written: Arc<Value>,
    /// What must still hold when it is started, where somebody had to approve it.
    pub seal: Option<Seal>,
}

/// Where a server is.
#[derive(Clone, PartialEq)]
pub enum Reached {
    /// A program that answers on standard output.
    Program {
        /// A name on `PATH`, or a path from the workspace.
        command: String,
        /// Its arguments, without a shell.
        args: Vec<String>,
        /// Extra or overriding variables.
        env: BTreeMap<String, String>,
        /// What it inherits.
        env_policy: EnvPolicy,
        /// Where it runs, from the workspace; `None` is the workspace.
        working_dir: Option<String>,
    },
    /// Streamable HTTP.
    Http {
        /// Its address.
        url: Uri,
        /// Extra headers.
        headers: Vec<(String, String)>,
    },
}

/// What the tools of a server are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Naming {
    /// `mcp__SERVER__TOOL`.
    Server,
    /// `NAME_TOOL`, as docker-agent calls them where the server has a name.
    Prefixed(Arc<str>),
    /// As the server calls them, which docker-agent does where it has none.
    Bare,
}

impl ServerDefinition {
    /// How long a server may take until it is ready, where nobody says.
    pub const STARTUP: Duration = Duration::from_secs(30);
    /// How long a call may take, where nobody says.
    pub const CALL: Duration = Duration::from_secs(120);
}

impl PartialEq for ServerDefinition {
    fn eq(&self, other: &Self) -> bool {
        let parts = |it: &Self| (it.name.clone(), it.reached.clone(), it.naming.clone(), it.tools.clone());
        parts(self) == parts(other)
            && (self.startup_timeout, self.timeout) == (other.startup_timeout, other.timeout)
            && self.written == other.written
    }
}

/// Without values that may be secret.
impl std::fmt::Debug for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { command, .. } => {
                f.debug_struct("Program").field("command", command).finish_non_exhaustive()
            }
            Self::Http { url, .. } => f.debug_struct("Http").field("host", &url.host()).finish_non_exhaustive(),
        }
    }
}
