//! The exit codes of `gatehook`, for people and scripts alike.

use std::process::ExitCode;

use gatehook_agent::session::Reason;

/// How a command ended, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

/// What a prompt comes to for whoever sent it.
impl From<Reason> for Exit {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Normal | Reason::Continue | Reason::Steered | Reason::ForceHandoff => Exit::Done,
            Reason::HookBlocked | Reason::LoopDetected | Reason::MaxIterations => Exit::No,
            Reason::Error => Exit::Upstream,
            Reason::Canceled => Exit::Stopped,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
