//! The exit codes of `gatehook`, for people and scripts alike.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// The answer is no: a check failed, a verdict denied.
    No = 1,
    /// Wrong usage.
    Usage = 2,
    /// The configuration is at fault.
    Configuration = 3,
    /// The upstream, or an address to listen on, is at fault.
    Upstream = 4,
    /// A defect of ours.
    Defect = 70,
    /// The system refused: an output that cannot be written, no thread, no socket.
    System = 71,
    /// Ctrl-C or SIGTERM, before the answer was known.
    Stopped = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
