//! The binary `gatehook`: reads the command line, calls the crates that do the work, and shows what came of it.
//!
//! A command is a file in `commands`; `args` is the command line, `environment` the variables, `places` finds
//! configuration files, `policy` reads them, `trust` knows whose approvals count, `variables` are what setup hooks leave to
//! others, `serving` is what `serve` is told, `raising` dispatches events, `recording` remembers them, `sessions`
//! finds what the agent kept, `failure` shows what went wrong, `exit` says it to scripts.

mod agent;
mod args;
mod chat;
mod commands;
mod environment;
mod exit;
mod failure;
mod logging;
mod models;
mod owned;
mod places;
mod policy;
mod preparing;
mod print;
mod raising;
mod recording;
mod sample;
mod serving;
mod sessions;
mod skills;
mod table;
mod trust;
mod variables;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::print::Printer;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = std::panic::catch_unwind(|| {
        let mut printer = Printer::new();
        run(cli, &mut printer).unwrap_or_else(|failure| {
            printer.failure(&failure);
            failure.exit
        })
    });
    // The panic has been shown where it happened.
    ended.unwrap_or(Exit::Defect).into()
}

fn run(cli: Cli, printer: &mut Printer) -> Result<Exit, Failure> {
    match cli.command {
        Command::Serve(args) => commands::serve::run(&args, cli.verbose, printer),
        Command::Demo(args) => commands::demo::run(&args, printer),
        Command::Hooks(command) => commands::hooks::run(command, printer),
        Command::Fire(args) => commands::fire::run(&args, printer),
        Command::Git(command) => commands::git::run(&command, printer),
        Command::Setup(args) => commands::setup::run(&args, printer),
        Command::Sessions(args) => commands::sessions::run(&args, printer),
        Command::Import(args) => commands::import::run(&args, printer),
        Command::Chat(args) => chat::run(&args, printer),
        Command::Run(args) => commands::run::run(&args, printer),
        Command::Schema(args) => commands::schema::run(&args, printer),
        Command::Completions { shell } => commands::completions::run(shell, printer),
    }
}
