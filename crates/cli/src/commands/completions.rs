//! `gatehook completions`: a shell's completion script.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::print::Printer;

/// Prints the script.
pub(crate) fn run(shell: Shell, printer: &mut Printer) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "gatehook", &mut script);
    printer.text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
