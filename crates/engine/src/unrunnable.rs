//! A hook that nothing can run, and that says so when it should.

use gatehook_events::FailureKind;

use crate::compiled::BuildCause;
use crate::handler::{Handler, HandlerError, HookCall, Run};

/// Fails whatever happens.
pub(crate) struct Unrunnable {
    error: HandlerError,
}

impl Unrunnable {
    pub(crate) fn new(cause: &BuildCause) -> Self {
        let kind = match cause {
            BuildCause::UnknownBuiltin(_) => FailureKind::UnknownBuiltin,
            BuildCause::BuiltinNameMissing => FailureKind::BuiltinNameMissing,
            BuildCause::UnknownType(_) => FailureKind::UnknownType,
            _ => FailureKind::HandlerError,
        };
        Self::failing(HandlerError::new(kind, cause.to_string()))
    }

    pub(crate) fn failing(error: HandlerError) -> Self {
        Self { error }
    }

    /// For a hook that must not run.
    pub(crate) fn not_trusted(why: &str) -> Self {
        Self { error: HandlerError::new(FailureKind::NotTrusted, why) }
    }
}

impl Handler for Unrunnable {
    fn run<'a>(&'a self, _call: HookCall<'a>) -> Run<'a> {
        Box::pin(std::future::ready(Err(self.error.clone())))
    }
}
