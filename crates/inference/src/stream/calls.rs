//! Tool calls that come in pieces.

use bytes::Bytes;
use gatehook_events::ToolCall;

use super::said::{CallState, MOST, Said};
use super::{Call, CallId, Fault};
use crate::json::{At, Document, Kind};

/// Members of one piece.
#[derive(Debug, Default)]
pub(super) struct CallPiece {
    pub(super) id: Option<At>,
    pub(super) kind: Option<At>,
    pub(super) name: Option<At>,
    pub(super) arguments: Option<At>,
    pub(super) number: Option<At>,
    /// It has `custom` in place of `function`.
    pub(super) custom: bool,
    /// Members without a name here.
    pub(super) extra: Vec<(String, At)>,
}

/// The longest name of a tool, in bytes. It is copied with each piece of it that comes.
const LONGEST_NAME: usize = 4096;

/// How many bytes of arguments are read in a stream to see whether they are whole: with a thousand calls that are never
/// whole it would have no end.
const LOOKS: usize = 64 << 20;

/// Adds a piece to the call that it belongs to: that of its number, or without a number that of its id, or else the
/// last one. Says whether the call begins with it.
///
/// A number that comes again with another id is another call: servers that number every call 0 mean that.
pub(super) fn accumulate(
    said: &mut Said,
    document: &Document,
    choice: u32,
    number: Option<u64>,
    piece: &CallPiece,
    legacy: bool,
) -> Result<(CallId, bool), Fault> {
    let string = |at: Option<At>| match at.filter(|at| document.kind(*at) != Kind::Null) {
        None => Ok(None),
        Some(at) => match document.text(at) {
            Some(text) => Ok(Some(text)),
            None => Err(Fault::from(document.shape(at, "a string is expected"))),
        },
    };
    let (id, name, arguments) = (string(piece.id)?, string(piece.name)?, string(piece.arguments)?);
    let id = id.filter(|id| !id.is_empty());
    if said.choice(choice).over {
        return Err(Fault::WentOn("a tool call came after the stop reason"));
    }
    let known = find(said, choice, number, id.as_deref());
    if known.is_none() && said.calls.len() >= MOST {
        return Err(Fault::TooMany);
    }
    let first = known.is_none();
    let at = known.unwrap_or_else(|| begin(said, document, choice, number, piece, legacy));
    let (Some(call), Some(state)) = (said.calls.get_mut(at), said.call_states.get_mut(at)) else {
        return Ok((CallId(at), first));
    };
    let arguments = arguments.unwrap_or_default();
    if call.complete && !arguments.trim().is_empty() {
        return Err(Fault::WentOn("arguments came after a tool call was complete"));
    }
    name_it(call, state, first, id.as_deref(), name.as_deref().filter(|name| !name.is_empty()));
    if let Some(at) = piece.name.filter(|_| call.call.function.name.len() > LONGEST_NAME) {
        return Err(document.shape(at, format!("a tool's name of more than {LONGEST_NAME} bytes")).into());
    }
    if !call.complete {
        state.arguments.push_str(&arguments);
    }
    for (key, value) in &piece.extra {
        call.call.extra.entry(key.clone()).or_insert_with(|| document.value(*value));
    }
    Ok((CallId(at), first))
}

/// What a piece says of who a call is. Some servers say it piece by piece, some again with each piece.
fn name_it(call: &mut Call, state: &mut CallState, first: bool, id: Option<&str>, name: Option<&str>) {
    if let Some(id) = id {
        state.uneven |= call.call.id.is_some() || !first;
        call.call.id.get_or_insert_with(|| id.into());
    }
    if let Some(name) = name {
        state.uneven |= !first;
        if *call.call.function.name != *name {
            call.call.function.name = format!("{}{name}", call.call.function.name).into();
        }
    }
}

fn find(said: &Said, choice: u32, number: Option<u64>, id: Option<&str>) -> Option<usize> {
    let calls = said.calls.iter().zip(&said.call_states).enumerate().rev();
    let mut own = calls.filter(|(_, (call, _))| call.choice == choice);
    let other_id = |call: &Call| id.is_some_and(|id| call.call.id.as_deref().is_some_and(|known| known != id));
    match number {
        Some(number) => own
            .find(|(_, (_, state))| state.number == number)
            .filter(|(_, (call, _))| !other_id(call))
            .map(|(at, _)| at),
        None => own.next().filter(|(_, (call, _))| !other_id(call)).map(|(at, _)| at),
    }
}

fn begin(
    said: &mut Said,
    document: &Document,
    choice: u32,
    number: Option<u64>,
    piece: &CallPiece,
    legacy: bool,
) -> usize {
    // Whole arguments end where the next call begins; others go on, and are complete with their choice.
    for (call, state) in said.calls.iter_mut().zip(&mut said.call_states) {
        if call.choice != choice || call.complete || said.looked > LOOKS {
            continue;
        }
        said.looked += state.arguments.len();
        if Document::read(Bytes::copy_from_slice(state.arguments.as_bytes())).is_ok() {
            call.complete = true;
            call.call.function.arguments = std::mem::take(&mut state.arguments).into();
        }
    }
    let kind = match piece.kind.and_then(|at| document.text(at)) {
        Some(kind) if !legacy => kind.as_ref().into(),
        _ if piece.custom => "custom".into(),
        _ => "function".into(),
    };
    let own = said.calls.iter().zip(&said.call_states).filter(|(call, _)| call.choice == choice);
    let taken = own.clone().any(|(_, state)| Some(state.number) == number);
    let lifted = own.clone().map(|(_, state)| state.lifted).max().unwrap_or(0) + u64::from(taken);
    let number = number.unwrap_or(own.count() as u64);
    said.turn(choice, None);
    said.calls.push(Call { choice, call: ToolCall { kind, ..ToolCall::default() }, complete: false, decided: false });
    said.call_states.push(CallState { number, lifted, ..CallState::default() });
    said.calls.len() - 1
}
