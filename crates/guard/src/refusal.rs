//! A no, and why.

use gatehook_inference::{ErrorKind, HookNote, Wire, refusal_body};

/// An exchange that does not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", kind.code())]
pub struct Refusal {
    /// What went wrong; decides status and types.
    pub kind: ErrorKind,
    /// What is said; the kind's own sentence where it is empty.
    pub message: String,
    /// Where a hook is the cause.
    pub hook: Option<Box<HookNote>>,
}

impl Refusal {
    /// A refusal with the kind's own sentence.
    pub fn new(kind: ErrorKind) -> Self {
        Self { kind, message: String::new(), hook: None }
    }

    /// The same with another text.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The body of the response, in the shape of `wire`.
    pub fn body(&self, wire: Wire, request_id: &str) -> Vec<u8> {
        refusal_body(wire, self.kind, &self.message, request_id, self.hook.as_deref())
    }
}
