//! What a route has to know about its streams.

use std::fmt::Debug;

use serde_json::Value;

use super::chat::Chat;
use super::frame::{Event, Frame};
use super::leave::{Leaving, leave};
use super::messages::Messages;
use super::native::Native;
use super::responses::Responses;
use super::said::{Said, Span};
use super::{Block, Fault, TrackKind};
use crate::error::Unheld;
use crate::json::{At, Document, Kind, mistaken};
use crate::refusal::ErrorKind;
use crate::response::ECHOES;
use crate::route::Route;

/// A format reads frames into [`Said`] and says in each frame where what it said stands. When a frame leaves, the
/// format has the last word: there it sees what the client gets, in order, and may put frames of its own around it.
pub(super) trait Format: Debug + Send + Sync {
    fn route(&self) -> Route;

    /// Reads a frame: fills its parts and its lane.
    fn read(&mut self, event: &Event<'_>, said: &mut Said, frame: &mut Frame) -> Result<(), Fault>;

    /// Whether a frame that differs from the one before only in its text is read like that one: whatever else reading did
    /// it would do again, and what it does goes by the frame alone.
    fn reads_alike(&self) -> bool {
        false
    }

    /// The upstream has closed: whether nothing is missing though the protocol's own end has not come.
    fn is_whole(&self, said: &Said) -> bool;

    /// Whether a frame whose content is decided can leave already.
    fn is_ready(&self, _frame: &Frame, _said: &mut Said) -> bool {
        true
    }

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

    /// A frame for an insertion that no other carries. Nothing: the format puts it around a frame that leaves.
    fn insertion(&mut self, _said: &mut Said, _span: &Span) -> Vec<u8> {
        Vec::new()
    }

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
        Route::Messages => Box::new(Messages::default()),
        Route::Responses => Box::new(Responses::default()),
        Route::Chat | Route::Generate => Box::new(Native::new(route)),
    }
}

/// An SSE event.
pub(super) fn event(name: Option<&str>, data: &Value, out: &mut Vec<u8>) {
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}

/// Puts a member into an object.
pub(super) fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value.into());
    }
}

/// Whether a member repeats what the model said in a form of its own.
pub(super) fn is_echo(key: &[u8]) -> bool {
    ECHOES.iter().any(|echo| echo.as_bytes() == key)
}

/// Where routes have their texts, or the objects that hold them.
const TEXTS: &[&str] = &["content", "response", "completion", "text", "message", "choices"];

/// Refuses a frame that has its text where another route has it: no hook would see it there. A server that speaks
/// another route's words here is none whose answers can be guarded.
pub(super) fn check_own(document: &Document, own: &str) -> Result<(), Fault> {
    let says = |at: &At| match document.kind(*at) {
        Kind::String => document.text(*at).is_some_and(|text| !text.is_empty()),
        Kind::Object => document.string(*at, "content").is_some_and(|text| !text.is_empty()),
        Kind::Array => document.elements(*at).next().is_some(),
        _ => false,
    };
    let mut elsewhere = TEXTS.iter().filter(|key| **key != own).filter_map(|key| document.some(Document::ROOT, key));
    match elsewhere.find(says) {
        Some(at) => Err(document.shape(at, "the text of another route").into()),
        None => Ok(()),
    }
}

/// What an event is: by the `type` of its data, or by its name. Clients go by one or the other, so where both are known
/// they must say the same.
pub(super) fn named<E: Copy + PartialEq>(
    document: &Document,
    name: Option<&str>,
    of: impl Fn(&str) -> E,
    unknown: E,
) -> Result<E, Fault> {
    let by_name = name.map_or(unknown, &of);
    let by_type = document.string(Document::ROOT, "type").map_or(unknown, |kind| of(&kind));
    match (by_type == unknown, by_name == unknown) {
        (true, _) => Ok(by_name),
        (_, true) => Ok(by_type),
        _ if by_type == by_name => Ok(by_type),
        _ => Err(document.ambiguous(Document::ROOT, "its `type` and the name of its event differ").into()),
    }
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
