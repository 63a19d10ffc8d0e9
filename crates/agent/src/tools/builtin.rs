//! The agent's own tools, a row each.

use std::sync::Arc;

use gatehook_engine::client::Reach;
use serde_json::Value;

use super::bash::Bash;
use super::fetch::Fetch;
use super::think::Think;
use super::todo::Todo;
use super::{Tool, ToolSpec, edit, glob, grep, list, read, write};
use crate::approval;
use crate::team::Defaults;

/// What the configuration says of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolSettings {
    /// Whether processes are kept from writing outside of the workspace.
    pub sandbox: Sandboxing,
    /// Which addresses `fetch` may call.
    pub reach: Reach,
}

impl Default for ToolSettings {
    /// A sandbox where the system has one, and public addresses.
    fn default() -> Self {
        Self { sandbox: Sandboxing::Auto, reach: Reach::Public }
    }
}

/// When the processes of tools run within a sandbox: Landlock, <https://docs.kernel.org/userspace-api/landlock.html>.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sandboxing {
    /// Never.
    Off,
    /// Where the kernel has it, as far as it has it.
    Auto,
    /// Always, and whole: without it no process is started.
    Required,
}

impl From<&Defaults> for ToolSettings {
    fn from(said: &Defaults) -> Self {
        Self {
            sandbox: if said.sandbox == Some(false) { Sandboxing::Off } else { Sandboxing::Auto },
            reach: if said.private_addresses == Some(true) { Reach::Any } else { Reach::Public },
        }
    }
}

/// One of the agent's own tools.
struct Row {
    name: &'static str,
    /// The toolset of docker-agent that it belongs to, which hooks read as its category.
    category: &'static str,
    read_only: bool,
    destructive: bool,
    make: fn(&ToolSettings) -> Arc<dyn Tool>,
}

const ROWS: &[Row] = &[
    row("read", "filesystem", ReadOnly, |_| read::tool()),
    row("write", "filesystem", Destructive, |_| write::tool()),
    row("edit", "filesystem", Changes, |_| edit::tool()),
    row("glob", "filesystem", ReadOnly, |_| glob::tool()),
    row("grep", "filesystem", ReadOnly, |_| grep::tool()),
    row("list", "filesystem", ReadOnly, |_| list::tool()),
    row("bash", "shell", Destructive, |settings| Arc::new(Bash::new(settings.sandbox))),
    row("fetch", "fetch", Changes, |settings| Arc::new(Fetch::new(settings.reach))),
    row("todo", "todo", ReadOnly, |_| Arc::new(Todo::new())),
    row("think", "think", ReadOnly, |_| Arc::new(Think::new())),
];

/// What a tool says of itself.
enum Effect {
    ReadOnly,
    Changes,
    Destructive,
}
use Effect::{Changes, Destructive, ReadOnly};

const fn row(
    name: &'static str,
    category: &'static str,
    effect: Effect,
    make: fn(&ToolSettings) -> Arc<dyn Tool>,
) -> Row {
    let (read_only, destructive) = (matches!(effect, ReadOnly), matches!(effect, Destructive));
    Row { name, category, read_only, destructive, make }
}

/// Toolsets as docker-agent's configuration names them, and what is in each:
/// <https://docs.docker.com/ai/docker-agent/configuration/tools/>.
const TOOLSETS: &[(&str, &[&str])] = &[
    ("filesystem", &["read", "write", "edit", "glob", "grep", "list"]),
    ("shell", &["bash"]),
    ("fetch", &["fetch"]),
    ("todo", &["todo"]),
    ("think", &["think"]),
];

/// All of the agent's own tools. `todo` keeps its lists in here: make them once for all sessions that are to see them.
pub fn builtin_tools(settings: &ToolSettings) -> Vec<Arc<dyn Tool>> {
    ROWS.iter().map(|row| (row.make)(settings)).collect()
}

/// The tools of a toolset.
pub fn toolset(name: &str) -> Option<&'static [&'static str]> {
    TOOLSETS.iter().find(|(known, _)| *known == name).map(|(_, tools)| *tools)
}

/// The names of all toolsets.
pub fn toolsets() -> impl Iterator<Item = &'static str> {
    TOOLSETS.iter().map(|(name, _)| *name)
}

/// What is told of the tool of this name.
pub(super) fn spec(name: &'static str, description: &str, parameters: Value) -> ToolSpec {
    let row = ROWS.iter().find(|row| row.name == name);
    let tool = approval::Tool {
        name: name.into(),
        category: row.map(|row| row.category.into()),
        read_only: row.is_some_and(|row| row.read_only),
        destructive: row.is_some_and(|row| row.destructive),
        ..approval::Tool::default()
    };
    ToolSpec { tool, description: description.into(), parameters: Arc::new(parameters) }
}
