//! The command line of the agent.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What the agent is to do; without it standard input is read, and `-` reads it too.
    pub(crate) prompt: Option<String>,
    /// Print what happens as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// What the agent is to do first.
    pub(crate) prompt: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

/// Who works, and how far they may go.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentArgs {
    /// The model, as in ollama/llama3.
    #[arg(long, value_name = "PROVIDER/NAME")]
    pub(crate) model: Option<String>,
    /// Answers of a model from a file, in place of a model.
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) replay: Option<PathBuf>,
    /// Who begins, of the agents in the configuration.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// How much runs unasked: strict, balanced, restricted or autonomous.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// A tool call that may run, as in 'bash:command=git status*'; may be given more than once.
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// A tool call that may not; may be given more than once.
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,
    /// Configuration file: YAML, JSON or TOML; agents of docker-agent too.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A folder beside the workspace that tools may use; may be given more than once.
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// How often the model may be asked before the person is.
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<u64>,
    /// Go on with a session, by its identity or the beginning of it.
    #[arg(long, value_name = "ID", conflicts_with = "continues")]
    pub(crate) resume: Option<String>,
    /// Go on with the last session of this folder.
    #[arg(long = "continue")]
    pub(crate) continues: bool,
    /// Work in a new git worktree on a branch of this name.
    #[arg(long, value_name = "BRANCH")]
    pub(crate) worktree: Option<String>,
}
