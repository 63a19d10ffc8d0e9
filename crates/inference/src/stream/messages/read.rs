//! What each event of a Messages stream tells.

use std::borrow::Cow;

use gatehook_events::ToolCall;
use serde_json::Value;

use super::blocks::{Block, BlockKind};
use super::{Event, Messages, Told};
use crate::error::ReadError;
use crate::json::{At, Document};
use crate::response::shown_whole;
use crate::stream::format::{members, named};
use crate::stream::said::{CallState, Said};
use crate::stream::{Call, CallId, Fault, Seal, TrackKind};
use crate::view::Draft;

const EVENT: &[&str] = &["type", "index", "message", "content_block", "delta", "usage"];
const BLOCK: &[&str] =
    &["type", "text", "thinking", "signature", "data", "id", "name", "input", "tool_use_id", "content", "citations"];
const DELTA: &[&str] = &["type", "text", "thinking", "signature", "partial_json", "citation", "stop_reason"];

/// Events, and those of `content_block_delta` by the type of their delta.
const EVENTS: &[(&str, Event)] = &[
    ("message_start", Event::MessageStart),
    ("content_block_start", Event::BlockStart),
    ("content_block_delta", Event::Delta),
    ("content_block_stop", Event::BlockStop),
    ("message_delta", Event::MessageDelta),
    ("message_stop", Event::MessageStop),
    ("error", Event::Error),
];
const DELTAS: &[(&str, Event)] = &[
    ("text_delta", Event::Text),
    ("thinking_delta", Event::Thinking),
    ("signature_delta", Event::Signature),
    ("input_json_delta", Event::Arguments),
    ("citations_delta", Event::Citation),
];

/// Calls of tools: made by the client, or by the server itself.
const CALLS: &[&str] = &["tool_use", "server_tool_use", "mcp_tool_use"];

fn find(events: &[(&str, Event)], name: &str) -> Event {
    events.iter().find(|(known, _)| *known == name).map_or(Event::Other, |(_, event)| *event)
}

/// What a delta brings: by its type; where that is unknown, by the text that it has nevertheless.
fn delta_event(document: &Document, delta: At) -> Event {
    let known = find(DELTAS, &document.string(delta, "type").unwrap_or_default());
    let texts = [("text", Event::Text), ("thinking", Event::Thinking), ("partial_json", Event::Arguments)];
    match known {
        Event::Other => {
            let found = texts.into_iter().find(|(key, _)| document.string(delta, key).is_some());
            found.map_or(Event::Other, |(_, event)| event)
        }
        known => known,
    }
}

fn text<'d>(document: &'d Document, object: At, key: &str) -> Result<Cow<'d, str>, ReadError> {
    document.string(object, key).ok_or_else(|| document.shape(object, format!("a text is expected under `{key}`")))
}

/// Refuses keys of an object that a lenient reader takes for others.
fn check(document: &Document, object: At, known: &[&str]) -> Result<(), Fault> {
    members(document, object, known, |_, _| Ok(()))
}

impl Messages {
    /// Reads one event.
    pub(super) fn told(&mut self, name: Option<&str>, document: &Document, said: &mut Said) -> Result<Told, Fault> {
        let root = Document::ROOT;
        check(document, root, EVENT)?;
        let delta = document.some(root, "delta");
        if let Some(delta) = delta {
            check(document, delta, DELTA)?;
        }
        let event = match (named(document, name, |name| find(EVENTS, name), Event::Other)?, delta) {
            (Event::Delta, Some(delta)) => delta_event(document, delta),
            (event, _) => event,
        };
        let place = document.get(root, "index").and_then(|at| document.raw(at).parse().ok());
        let mut told = Told { event, place, block: None, piece: None };
        match event {
            Event::MessageStart => start_message(document, said)?,
            Event::BlockStart => self.start(document, said, &mut told)?,
            Event::MessageDelta => self.stop_message(document, delta, said),
            Event::MessageStop => {
                self.finish_calls(said);
                said.end(false);
            }
            Event::Error => said.end(true),
            _ => {
                told.block = self.blocks.iter().rposition(|block| place.is_some() && block.number == place);
                if told.block.is_none() && (delta.is_some() || event == Event::BlockStop) {
                    return Err(document.shape(root, "it belongs to no block").into());
                }
                self.grow(document, delta.unwrap_or(root), said, &mut told)?;
            }
        }
        Ok(told)
    }

    /// More of a block, or its end.
    fn grow(&mut self, document: &Document, delta: At, said: &mut Said, told: &mut Told) -> Result<(), Fault> {
        let Some(block) = told.block.and_then(|at| self.blocks.get_mut(at)) else { return Ok(()) };
        let call = match block.kind {
            BlockKind::Call(id) => said.call_states.get_mut(id.0),
            _ => None,
        };
        match (told.event, call) {
            (Event::Text, _) => {
                let more = text(document, delta, "text")?;
                told.piece = Some(append(block, TrackKind::Text, &more, said)?);
            }
            (Event::Thinking, _) => {
                let more = text(document, delta, "thinking")?;
                told.piece = Some(append(block, TrackKind::Thinking, &more, said)?);
            }
            (Event::Signature, _) => {
                let signature = document.string(delta, "signature").unwrap_or_default();
                let signed = !signature.is_empty();
                block.sealed |= signed && block.left.is_none();
                if signed {
                    said.seal(block.text(), &signature, std::mem::replace(&mut block.signed, true));
                }
            }
            (Event::Arguments, Some(state)) => {
                let more = text(document, delta, "partial_json")?;
                if block.over {
                    return Err(Fault::WentOn("arguments came after a tool call was complete"));
                }
                if !block.argued {
                    state.arguments.clear();
                }
                block.argued = true;
                state.arguments.push_str(&more);
            }
            (Event::BlockStop, state) => {
                let is_call = state.is_some();
                block.over = true;
                if let Some(end) = block.end() {
                    said.close(end.track, end.range.end);
                }
                if is_call && let Some(id) = block.call() {
                    finish(id, said);
                }
            }
            // A block in a form of its own is shown with all that comes of it.
            (Event::Other, Some(state)) if state.sealed => {
                state.arguments.push('\n');
                state.arguments.push_str(document.raw(delta));
            }
            _ => {}
        }
        Ok(())
    }

    /// A block begins.
    fn start(&mut self, document: &Document, said: &mut Said, told: &mut Told) -> Result<(), Fault> {
        let at = document.some(Document::ROOT, "content_block");
        let at = at.ok_or_else(|| document.shape(Document::ROOT, "no `content_block`"))?;
        check(document, at, BLOCK)?;
        let name = document.string(at, "type");
        let name = name.as_deref().unwrap_or("unknown");
        let kind = match name {
            "text" => BlockKind::Said(TrackKind::Text),
            "thinking" => BlockKind::Said(TrackKind::Thinking),
            "redacted_thinking" => BlockKind::Other,
            name if name.ends_with("_tool_result") => {
                let id = document.string(at, "tool_use_id");
                let call = said.calls.iter().rposition(|call| id.is_some() && call.call.id.as_deref() == id.as_deref());
                call.map_or(BlockKind::Other, |call| BlockKind::Result(CallId(call)))
            }
            name => BlockKind::Call(begin(document, at, name, said)?),
        };
        let track = match kind {
            BlockKind::Said(track) => Some(track),
            _ => None,
        };
        said.turn(0, track);
        told.block = Some(self.blocks.len());
        if let (Some(notes), "redacted_thinking") = (&mut said.notes, name) {
            notes.seals.extend(document.string(at, "data").map(|data| Seal::Hidden(data.into_owned())));
        }
        let mut block = Block::new(told.place, kind);
        // Those who sign their thinking say so where it begins, with a signature that is empty as yet.
        block.sealed = track == Some(TrackKind::Thinking) && document.some(at, "signature").is_some();
        if let Some(track) = track {
            let key = if track == TrackKind::Text { "text" } else { "thinking" };
            if document.some(at, key).is_some() {
                let more = text(document, at, key)?;
                told.piece = (!more.is_empty()).then(|| append(&mut block, track, &more, said)).transpose()?;
            }
        }
        self.blocks.push(block);
        Ok(())
    }

    /// The stop reason, and usage.
    fn stop_message(&mut self, document: &Document, delta: Option<At>, said: &mut Said) {
        use_up(document, document.some(Document::ROOT, "usage"), said);
        if let Some(reason) = delta.and_then(|delta| document.string(delta, "stop_reason")) {
            self.finish_calls(said);
            said.end_choice(0, Some(&reason));
        }
    }

    /// Calls whose end has not come end with the message.
    fn finish_calls(&mut self, said: &mut Said) {
        self.blocks.iter_mut().for_each(|block| block.over = true);
        self.blocks.iter().filter_map(Block::call).for_each(|id| finish(id, said));
    }
}

/// A message begins empty.
fn start_message(document: &Document, said: &mut Said) -> Result<(), Fault> {
    said.choice(0);
    let Some(message) = document.some(Document::ROOT, "message") else { return Ok(()) };
    check(document, message, &["content", "usage"])?;
    if let Some(content) = document.some(message, "content")
        && document.elements(content).next().is_some()
    {
        return Err(document.shape(content, "a message begins without content").into());
    }
    use_up(document, document.some(message, "usage"), said);
    Ok(())
}

/// Counters are totals: the last of each counts.
fn use_up(document: &Document, usage: Option<At>, said: &mut Said) {
    let Some(usage) = usage else { return };
    match &mut said.usage {
        Some(Value::Object(known)) => {
            known.extend(document.map(usage).into_iter().filter(|(_, value)| !value.is_null()))
        }
        known => *known = Some(document.value(usage)),
    }
}

/// More text of a block.
fn append(block: &mut Block, kind: TrackKind, more: &str, said: &mut Said) -> Result<crate::stream::said::Span, Fault> {
    if block.over && !more.is_empty() {
        return Err(Fault::WentOn("text came after its block's end"));
    }
    let span = said.append(0, kind, more)?;
    said.turn(0, Some(kind));
    block.push(&span);
    Ok(span)
}

/// A call begins, or what is not known: that is shown whole, so that a guard can judge it.
fn begin(document: &Document, at: At, name: &str, said: &mut Said) -> Result<CallId, Fault> {
    if said.choice(0).over {
        return Err(Fault::WentOn("a tool call came after the stop reason"));
    }
    let known = CALLS.contains(&name);
    let mut call = match known {
        true => {
            let mut draft = Draft::default();
            draft.call(document, at, "function", "input", "id")?;
            draft.message.tool_calls.into_iter().flatten().next().unwrap_or_default()
        }
        false => shown_whole(document, at, name),
    };
    if name != "tool_use" {
        call.extra.insert("part".into(), name.into());
    }
    let arguments = match &*call.function.arguments {
        "" => "{}".to_owned(),
        arguments => arguments.to_owned(),
    };
    call.function.arguments = "".into();
    said.calls.push(Call { choice: 0, call, complete: false, decided: false });
    said.call_states.push(CallState { arguments, sealed: !known, objects: known, ..CallState::default() });
    Ok(CallId(said.calls.len() - 1))
}

/// All of a call has come. No text at all is an empty object.
fn finish(id: CallId, said: &mut Said) {
    let (Some(call), Some(state)) = (said.calls.get_mut(id.0), said.call_states.get_mut(id.0)) else { return };
    if call.complete {
        return;
    }
    call.complete = true;
    let arguments = std::mem::take(&mut state.arguments);
    call.call.function.arguments = if arguments.trim().is_empty() { "{}".into() } else { arguments.into() };
}

/// Whether a client has to make this call.
pub(super) fn is_clients(call: &ToolCall) -> bool {
    !call.extra.contains_key("part")
}
