//! What a route has to know about its streams.

use std::fmt::Debug;

use serde_json::Value;

use super::chat::Chat;
use super::frame::{Event, Frame};
use super::leave::{Leaving, leave};
use super::lines::Framing;
use super::said::{Said, Span};
use super::{Block, Fault, TrackKind};
use crate::error::Unheld;
use crate::json::{At, Document, mistaken};
use crate::refusal::ErrorKind;
use crate::route::Route;

/// A format reads frames into [`Said`] and says in each frame where what it said stands. When a frame leaves, the
/// format has the last word: there it sees what the client gets, in order, and may put frames of its own around it.
pub(super) trait Format: Debug + Send + Sync {
    fn route(&self) -> Route;

    /// Reads a frame: fills its parts and its lane.
    fn read(&mut self, event: &Event<'_>, said: &mut Said, frame: &mut Frame) -> Result<(), Fault>;

    /// The upstream has closed: whether nothing is missing though the protocol's own end has not come.
    fn is_whole(&self, said: &Said) -> bool;

    /// What leaves in place of a frame. All it holds is decided, and all that must stand before it has left.
    fn leave(&mut self, frame: &Frame, said: &mut Said) -> Leaving {
        leave(self.route(), frame, said)
    }

    /// Whether a part of a track can be given other text, which is empty or not.
    fn can_replace(&self, _said: &Said, _span: &Span, _text: &str) -> Result<(), Unheld> {
        Ok(())
    }

    /// Whether a text of this kind can be begun.
    fn can_add(&self, said: &Said, choice: u32, _kind: TrackKind) -> Result<(), Unheld> {
        match said.choices.get(&choice) {
            Some(state) if !state.stop_left => Ok(()),
            Some(_) => Err(Unheld::new("the answer has ended")),
            None => Err(Unheld::new("there is no such choice")),
        }
    }

    /// A frame for an insertion that no other carries.
    fn insertion(&mut self, said: &mut Said, span: &Span) -> Vec<u8>;

    /// The frames that end a blocked stream, the protocol's last byte included.
    fn block(&mut self, said: &Said, block: &Block<'_>) -> Vec<u8>;

    /// The frame that tells of an error.
    fn fail(&mut self, said: &Said, kind: ErrorKind, message: &str, request_id: &str) -> Vec<u8>;
}

/// The one of a route.
pub(super) fn of(route: Route) -> Box<dyn Format> {
    match route {
        Route::ChatCompletions => Box::new(Chat::default()),
        Route::Completions => Box::new(Chat::completions()),
        _ => Box::new(Unread(route)),
    }
}

pub(super) fn framing(route: Route) -> Framing {
    match route {
        Route::Chat | Route::Generate => Framing::Lines,
        _ => Framing::Events,
    }
}

/// An SSE event.
pub(super) fn event(name: Option<&str>, data: &Value, out: &mut Vec<u8>) {
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}

/// The members of an object. A key that a lenient reader takes for a known one is refused.
pub(super) fn members(
    document: &Document,
    object: At,
    known: &[&str],
    mut each: impl FnMut(&[u8], At) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for (key, value) in document.members(object) {
        let name = document.key(key);
        if name.iter().any(|byte| !byte.is_ascii() || byte.is_ascii_uppercase())
            && let Some(word) = mistaken(&String::from_utf8_lossy(&name), known)
        {
            return Err(document.ambiguous(key, format!("a lenient reader reads the key as `{word}`")).into());
        }
        each(&name, value)?;
    }
    Ok(())
}

/// A route whose streams are not read.
#[derive(Debug)]
struct Unread(Route);

impl Format for Unread {
    fn route(&self) -> Route {
        self.0
    }

    fn read(&mut self, _event: &Event<'_>, _said: &mut Said, _frame: &mut Frame) -> Result<(), Fault> {
        Err(Fault::Unread(self.0))
    }

    fn is_whole(&self, _said: &Said) -> bool {
        false
    }

    fn insertion(&mut self, _said: &mut Said, _span: &Span) -> Vec<u8> {
        Vec::new()
    }

    fn block(&mut self, _said: &Said, _block: &Block<'_>) -> Vec<u8> {
        Vec::new()
    }

    fn fail(&mut self, _said: &Said, _kind: ErrorKind, _message: &str, _request_id: &str) -> Vec<u8> {
        Vec::new()
    }
}
