//! The command line, as clap reads it.

mod agent;
mod outside;
mod sessions;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use self::agent::{AgentArgs, ChatArgs, RunArgs};
pub(crate) use self::outside::{FireArgs, GitCommand, GitStage, ImportArgs, SetupArgs};
pub(crate) use self::sessions::{ExportFormat, SessionsArgs, SessionsCommand, SessionsListArgs};
use crate::{environment, places};

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
    /// Work with an agent in a terminal; over a pipe, a prompt is a line, and what would be asked is denied.
    #[command(after_help = environment::trust_section())]
    Chat(ChatArgs),
    /// Let an agent do a task, without a person to ask: what would be asked is denied.
    #[command(after_help = environment::trust_section())]
    Run(RunArgs),
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
    /// List the agent's sessions, the newest first; show, export or remove one.
    Sessions(SessionsArgs),
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
    #[command(after_help = places::section())]
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
    Test(EventArgs),
    /// Say which hooks would run on an event, in which order, and why the others would not; nothing runs.
    Explain(EventArgs),
    /// Show recorded dispatches, the newest first, or the whole of one.
    Trace(TraceArgs),
    /// Show how often each hook ran, failed and blocked, and how long it took.
    Stats(StatsArgs),
    /// Run recorded events against the hooks as they are now, and show which verdicts change.
    Replay(ReplayArgs),
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
pub(crate) struct EventArgs {
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
pub(crate) struct TraceArgs {
    /// The number of the one to show.
    #[arg(value_name = "ID", conflicts_with_all = ["event", "hook", "session", "failed", "since", "limit"])]
    pub(crate) id: Option<i64>,
    /// Of this event alone.
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// In which the hook of this name ran.
    #[arg(long, value_name = "NAME")]
    pub(crate) hook: Option<String>,
    /// Of this session alone.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// In which a hook failed.
    #[arg(long)]
    pub(crate) failed: bool,
    /// Not older than this, as in 30m, 12h or 7d.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) since: Option<Duration>,
    /// How many at most, up to 10000.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Not older than this, as in 30m, 12h or 7d.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) since: Option<Duration>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
}

/// What remembers dispatches.
#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    /// Configuration file that says where dispatches are recorded, in place of the usual ones.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Events as JSON lines of {event, input}, or what `hooks trace --json` prints; - reads standard input.
    #[arg(value_name = "FILE", required_unless_present = "trace", conflicts_with = "trace")]
    pub(crate) file: Option<PathBuf>,
    /// Recorded dispatches, by number.
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub(crate) trace: Vec<i64>,
    /// Configuration file, in place of the usual ones and this project's.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// The contract the files were written for.
    #[arg(long, value_name = "PROFILE", default_value = "native")]
    pub(crate) dialect: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn age(text: &str) -> Result<Duration, String> {
    gatehook_engine::config::age(text).ok_or_else(|| "write it as in `30m`, `12h` or `7d`".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// `config`, `output`, or an event's name for its payload.
    #[arg(default_value = "config")]
    pub(crate) what: String,
}
