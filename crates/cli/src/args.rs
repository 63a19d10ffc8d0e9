//! The command line, as clap reads it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::environment;

const EXIT_CODES: &str = "\
Exit codes:
   0  done
   1  the answer is no: a check failed, a verdict denied
   2  wrong usage
   3  the configuration is at fault
   4  the upstream or the address to listen on is at fault
  70  a defect of gatehook
  71  the system refused, as where an output cannot be written
 130  told to stop by Ctrl-C or SIGTERM before the answer was known";

/// One hook system for everything that talks to a language model.
#[derive(Debug, Parser)]
#[command(name = "gatehook", version, about, max_term_width = 100)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// Log more: every dispatch with -v, everything with -vv.
    #[arg(short, long, global = true, display_order = 900, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Stand in front of an inference server and run hooks on what passes.
    #[command(after_help = environment::section())]
    Serve(ServeArgs),
    /// Show the main job on built-in defaults: three exchanges and their verdicts.
    Demo(DemoArgs),
    /// List, check and try hooks.
    #[command(subcommand)]
    Hooks(HooksCommand),
    /// Raise an event with the hooks in force here, and exit with 1 where they deny it.
    #[command(after_help = environment::trust_section())]
    Fire(FireArgs),
    /// Raise `on_git_commit` for the commits that people make.
    #[command(subcommand)]
    Git(GitCommand),
    /// Raise `setup`, and keep the variables that its hooks write for later hooks of this project.
    Setup(SetupArgs),
    /// Turn another system's hook file into native configuration, and say what could not be carried over.
    Import(ImportArgs),
    /// Print the JSON Schema of the configuration or of a payload.
    Schema(SchemaArgs),
    /// Print a shell's completion script.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Configuration file: YAML, JSON or TOML.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// The upstream, in place of configured ones: a URL, or replay:FILE.
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// What the upstream is.
    #[arg(long, value_name = "KIND", default_value = "ollama")]
    pub(crate) upstream_kind: UpstreamKind,
    /// Threads that serve; one for each core by default.
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// Write logs as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
    /// Read the configuration, say what it means, and stop.
    #[arg(long)]
    pub(crate) check: bool,
}

/// What an upstream speaks, and which doors it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UpstreamKind {
    Ollama,
    Openai,
    Anthropic,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Exit after the table.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print the exchanges as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Address to listen on.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// List all hooks: event, matcher, type, source, whether each is in force and if not why, file and line.
    List {
        #[command(flatten)]
        files: FileArgs,
    },
    /// Check configuration files and show each fault at its place.
    Check {
        #[command(flatten)]
        files: FileArgs,
    },
    /// Dispatch an event and show each hook's outcome and the verdict.
    Test(TestArgs),
    /// Show what a project's hooks would run, and approve it.
    #[command(after_help = environment::trust_section())]
    Trust(TrustArgs),
    /// Withdraw approvals: of this project's hooks, or of those in one file.
    Untrust {
        /// The configuration file.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Every hook of this project; what holds without a file too.
        #[arg(long, conflicts_with = "file")]
        all: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The configuration file whose hooks are meant, in place of all of this project.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Ask once for all hooks instead of for each.
    #[arg(long, conflicts_with = "file")]
    pub(crate) all: bool,
    /// Approve without asking.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON; approves nothing unless --yes is given too.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// Configuration files, in place of the usual ones and this project's.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The contract the files were written for.
    #[arg(long, value_name = "PROFILE", default_value = "native")]
    pub(crate) dialect: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The event, as in pre_tool_use, or as its dialect calls it.
    pub(crate) event: String,
    /// Configuration file, in place of the usual ones and this project's.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// The contract the files were written for.
    #[arg(long, value_name = "PROFILE", default_value = "native")]
    pub(crate) dialect: String,
    /// The input as JSON; - reads standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// The tool of a tool event.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// A field of the input, as in prompt=hello; for tool events an argument of the tool, as in path=/etc/passwd.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

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

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// `config`, `output`, or an event's name for its payload.
    #[arg(default_value = "config")]
    pub(crate) what: String,
}
