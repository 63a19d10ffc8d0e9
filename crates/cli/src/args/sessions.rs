//! Sessions: which, and how they are shown.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,
    #[command(flatten)]
    pub(crate) list: SessionsListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsListArgs {
    /// Of this folder alone.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Those that this session started.
    #[arg(long, value_name = "ID", conflicts_with = "workspace")]
    pub(crate) parent: Option<String>,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Show one session: what it is, and what was said.
    Show {
        /// Its identity, or the beginning of it.
        id: String,
        /// Print every entry that is kept of it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a session's conversation for others to read.
    Export {
        /// Its identity, or the beginning of it.
        id: String,
        /// As what.
        #[arg(long, default_value = "jsonl")]
        format: ExportFormat,
        /// The file, in place of standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Remove sessions, those that they started, and their transcripts.
    Rm {
        /// Their identities, or the beginnings of them.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// What a conversation is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A message a line, in OpenAI's form.
    Jsonl,
    /// A document.
    Markdown,
}
