//! A frame that leaves, with what was decided put into it.

use std::cell::LazyCell;

use serde_json::Value;

use super::frame::{CallPart, Frame, Part};
use super::said::{Decided, Said};
use crate::json::{At, Document, Edits, quote};
use crate::response::STOPS;
use crate::route::Route;

/// What leaves in place of a frame.
#[derive(Debug)]
pub(super) enum Leaving {
    /// The bytes as they came.
    AsCame,
    /// Other bytes: of one frame, or of several.
    Made(Vec<u8>),
    /// Nothing.
    Dropped,
}

/// What any format does: changed texts and calls into their places, repeats after them.
pub(super) fn leave(route: Route, frame: &Frame, said: &mut Said) -> Leaving {
    match edits(route, frame, said) {
        None => Leaving::AsCame,
        Some(None) => Leaving::Dropped,
        Some(Some(edits)) => written(frame, &edits),
    }
}

/// A frame with edits.
pub(super) fn written(frame: &Frame, edits: &Edits) -> Leaving {
    match frame.document() {
        Some(document) => Leaving::Made(frame.with_data(&edits.apply(&document))),
        // It was read when it came, and is no other now.
        None => Leaving::Dropped,
    }
}

/// The edits of a frame: none where it leaves as it came, none inside where it does not leave.
pub(super) fn edits(route: Route, frame: &Frame, said: &mut Said) -> Option<Option<Edits>> {
    let document = LazyCell::new(|| frame.document());
    let mut edits: Option<Edits> = frame.changes.as_deref().cloned();
    let (mut calls, mut removed) = (0, 0);
    for part in &frame.parts {
        match part {
            Part::Piece { span, at } => {
                if let Some(text) = said.rendered(span, true) {
                    edits.get_or_insert_default().set_text(*at, &text);
                }
            }
            Part::Copy { span, at } => {
                if let Some(text) = said.rendered(span, false) {
                    edits.get_or_insert_default().set_text(*at, &text);
                }
            }
            Part::Echo { span, member: (object, value) } => {
                if said.rendered(span, false).is_some() {
                    edits.get_or_insert_default().remove(*object, *value);
                }
            }
            Part::Tokens { member: (object, value) } => {
                if said.changed {
                    edits.get_or_insert_default().remove(*object, *value);
                }
            }
            Part::Call(part) => {
                calls += 1;
                if let Some(document) = document.as_ref() {
                    removed += usize::from(call(document, part, said, &mut edits));
                }
            }
            Part::Stop { choice, at } => {
                if let Some(document) = document.as_ref() {
                    stop(route, document, (*choice, *at), said, &mut edits);
                }
                said.choice(*choice).stop_left = true;
            }
            // Formats that know their own places do not come here with them.
            Part::Text(_) | Part::Of(_) => {}
            Part::Role { choice } => said.choice(*choice).role_left = true,
        }
    }
    if frame.only_calls && calls > 0 && calls == removed {
        return Some(None);
    }
    edits.map(Some)
}

/// The end of a choice: its reason, which is the plain one where no call is left, and what hooks want noted.
fn stop(
    route: Route,
    document: &Document,
    (choice, at): (u32, Option<At>),
    said: &mut Said,
    edits: &mut Option<Edits>,
) {
    if said.all_removed(choice)
        && let Some(at) = at
        && let Some(word) = document.text(at)
        && let Some((.., plain)) = STOPS.iter().find(|(of, with, _)| *of == route && *with == word)
    {
        edits.get_or_insert_default().set_text(at, plain);
    }
    if let Some(note) = said.note.take() {
        let note = serde_json::to_value(note).unwrap_or(Value::Null);
        edits.get_or_insert_default().add_member(document, Document::ROOT, "hook", &note.to_string());
    }
}

/// A part of a call; says whether it is removed.
fn call(document: &Document, part: &CallPart, said: &mut Said, edits: &mut Option<Edits>) -> bool {
    let number = said.number(part.call);
    let (Some(call), Some(state)) = (said.calls.get(part.call.0), said.call_states.get_mut(part.call.0)) else {
        return false;
    };
    let (object, value) = part.within;
    if state.fate == Decided::Removed {
        let edits = edits.get_or_insert_default();
        match value == part.at {
            true => edits.remove(object, value),
            false => edits.remove(value, part.at),
        }
        return true;
    }
    state.begun = true;
    if let Some(at) = part.number.filter(|at| document.raw(*at) != number.to_string()) {
        edits.get_or_insert_default().replace(at, number.to_string());
    }
    let told = match &state.fate {
        Decided::Rewritten(new) => new,
        _ if state.uneven => &call.call,
        _ => return false,
    };
    let rewritten = matches!(state.fate, Decided::Rewritten(_));
    let edits = edits.get_or_insert_default();
    for (at, key, text) in [(part.id, "id", told.id.as_deref()), (part.name, "name", Some(&*told.function.name))] {
        let object = if key == "id" { part.at } else { part.body };
        match (at, text) {
            (Some(at), Some(text)) if part.first => edits.set_text(at, text),
            (Some(at), _) => edits.remove(object, at),
            (None, Some(text)) if part.first && rewritten => edits.add_member(document, object, key, &quote(text)),
            (None, _) => {}
        }
    }
    if rewritten {
        let arguments = &*told.function.arguments;
        let written = if state.objects { arguments.to_owned() } else { quote(arguments) };
        match part.arguments {
            Some(at) if part.first => edits.replace(at, written),
            Some(at) => edits.set_text(at, ""),
            None if part.first => edits.add_member(document, part.body, part.key, &written),
            None => {}
        }
    }
    false
}
