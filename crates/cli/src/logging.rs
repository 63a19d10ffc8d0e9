//! Logs: one line each, to standard error.

use tracing_subscriber::EnvFilter;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::print;

/// Starts logging. `GATEHOOK_LOG` says what is logged, else `-v` does.
pub(crate) fn start(verbose: u8, json: bool) -> Result<(), Failure> {
    let default = match verbose {
        0 => "info",
        1 => "info,gatehook_engine=debug,gatehook_guard=debug,gatehook_gateway=debug",
        _ => "debug",
    };
    let filter = match std::env::var("GATEHOOK_LOG") {
        Ok(words) if !words.is_empty() => EnvFilter::try_new(&words).map_err(|error| {
            let help = "write it as in `info` or `info,gatehook_gateway=debug`".to_owned();
            Failure::new(Exit::Configuration, format!("GATEHOOK_LOG: {error}"), Some(help))
        })?,
        _ => EnvFilter::new(default),
    };
    let colour = print::colour(&std::io::stderr());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colour);
    // A second start, as in tests of several commands in one process, changes nothing.
    let _ = if json { lines.json().flatten_event(true).try_init() } else { lines.with_target(false).try_init() };
    Ok(())
}
