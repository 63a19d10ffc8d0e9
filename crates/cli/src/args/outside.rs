//! The command line of what raises events from outside, and of `import`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct FireArgs {
    /// The event, as in pre_tool_use, or as its dialect calls it.
    pub(crate) event: String,
    /// The name of a `custom` event.
    pub(crate) name: Option<String>,
    /// The contract in whose words event, input and data are.
    #[arg(long, value_name = "PROFILE", default_value = "native")]
    pub(crate) dialect: String,
    /// The fields of the event, one JSON object; of a `custom` event its data, any JSON. @FILE reads a file, @- standard
    /// input.
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) data: Option<String>,
    /// A field of the input, as in prompt=hello; for tool events an argument of the tool, as in path=/etc/passwd.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The whole input, one JSON object; - reads standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GitCommand {
    /// Put hooks into this repository that raise `on_git_commit`; those that are there are kept, and run first.
    #[command(after_help = GIT_POLICY)]
    Install {
        /// Also into a folder that other repositories use, over a hook that git tracks, and where an older hook was kept.
        #[arg(long)]
        force: bool,
    },
    /// Take them out, and put back what was there.
    Uninstall,
    /// What the installed hooks call.
    #[command(hide = true)]
    Hook {
        /// The stage.
        stage: GitStage,
        /// What git gives its hook.
        args: Vec<PathBuf>,
    },
}

const GIT_POLICY: &str = "\
`pre-commit` refuses a commit early where the guard cannot run; `commit-msg` raises the event once, when files, message
and branch are known. Where the guard cannot run no commit is made; `git config gatehook.onError warn` lets it through
with a warning. `git commit --no-verify` skips all of git's hooks.";

/// When git calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GitStage {
    PreCommit,
    CommitMsg,
}

#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// The trigger is `maintenance` instead of `init`, and what is kept already stays beside what hooks write now.
    #[arg(long)]
    pub(crate) maintenance: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file; not needed with `--from environment`, which reads the variables of this process without one.
    #[arg(value_name = "FILE", required_unless_present = "from")]
    pub(crate) file: Option<PathBuf>,
    /// Whose file it is: a profile, or `environment` for the `OLLAMA_HOOK_*` variables. Found out by default.
    #[arg(long, value_name = "DIALECT")]
    pub(crate) from: Option<String>,
    /// Write it where it is read from: into `.gatehook/` for a file of this project, else into the user's `hooks.d`.
    #[arg(long)]
    pub(crate) write: bool,
}
