//! What goes wrong with the file of sessions, in words.

use gatehook_events::journal::JournalError;
use gatehook_events::trace::{Fault, TraceError};

/// The file of sessions cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} {}: {detail}", fault.case())]
pub struct SessionError {
    /// What is wrong with it.
    pub fault: Fault,
    /// Its path.
    pub place: String,
    /// What it said.
    pub detail: String,
}

impl SessionError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self.fault {
            Fault::Locked => "end that program, or wait for it",
            Fault::Full => "make room: `gatehook sessions rm` removes sessions",
            Fault::Unreachable => "its folder must be there, and yours to write; `XDG_STATE_HOME` names another one",
            Fault::Corrupted => {
                "move it away, with the files beside it whose names begin like its own: a new one is begun"
            }
            Fault::Newer => "use that one, or name another folder by `XDG_STATE_HOME`",
            Fault::Failed => "move it away if it does so again: a new one is begun",
        }
    }
}

impl From<TraceError> for SessionError {
    fn from(TraceError { fault, place, detail }: TraceError) -> Self {
        Self { fault, place, detail }
    }
}

impl From<SessionError> for JournalError {
    fn from(error: SessionError) -> Self {
        Self { message: format!("{error} ({})", error.remedy()) }
    }
}
