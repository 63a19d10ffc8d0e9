//! `gatehook git`: `on_git_commit` for the commits that people make, by hooks in their repository.
//!
//! Two stages, because git knows a commit's message only in `commit-msg`: `pre-commit` looks whether the guard can run, so
//! that nobody writes a message in vain, and `commit-msg` raises the event, once.

mod install;
pub(crate) mod repository;
mod stage;

use crate::args::GitCommand;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::print::Printer;

/// Runs a `git` command.
pub(crate) fn run(command: &GitCommand, printer: &mut Printer) -> Result<Exit, Failure> {
    match command {
        GitCommand::Install { force } => install::install(*force, printer),
        GitCommand::Uninstall => install::uninstall(printer),
        GitCommand::Hook { stage, args } => stage::run(*stage, args, printer),
    }
}
