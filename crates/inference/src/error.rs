//! Why a body is not read, and why a rewrite is not made.

use thiserror::Error;

/// A body that a hook cannot be shown truly. A request is answered with 400 and never sent on; of a response the
/// upstream is to blame ([`crate::ErrorKind::BadUpstream`]), and it is never handed out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// It is no JSON (RFC 8259) in UTF-8, or more than one value.
    #[error("the body is not valid JSON: {what} at byte {offset}")]
    Malformed {
        /// Where reading stopped.
        offset: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// Two readers could take it for two different requests.
    #[error("the body is ambiguous: {}{what}", at(place))]
    Ambiguous {
        /// As in `messages[2].content`; empty is the body as a whole.
        place: String,
        /// What is wrong there.
        what: String,
    },
    /// What a hook is to see has a type that the route does not know.
    #[error("the body does not have the shape of its route: {}{what}", at(place))]
    Shape {
        /// As in `messages[2].content`; empty is the body as a whole.
        place: String,
        /// What is wrong there.
        what: String,
    },
    /// Text in a form that no hook can read, as token numbers.
    #[error("the body holds what a hook cannot read: {}{what}", at(place))]
    Opaque {
        /// As in `prompt`.
        place: String,
        /// What is wrong there.
        what: String,
    },
}

/// A place as it stands before what is wrong there; the body as a whole needs no name.
fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("{place}: ") }
}

/// A rewrite that the route cannot hold: `modify_unsupported`. The reason is one sentence for the person who
/// configured the hook.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct Unheld {
    /// As in `a signed thinking block cannot be rewritten, only dropped`.
    pub reason: String,
}

impl Unheld {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}
