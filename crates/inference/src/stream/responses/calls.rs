//! Tool calls among the items: how they begin, grow, and are told as wholes.

use gatehook_events::ToolCall;

use super::events::Event;
use super::read::Reader;
use crate::json::{At, Document};
use crate::response::shown_whole;
use crate::stream::said::CallState;
use crate::stream::{Call, CallId, Fault};
use crate::view::Draft;

/// Calls that a client makes: the type of their item, what they are shown as, and the key of their arguments.
const CALLS: &[(&str, &str, &str)] =
    &[("function_call", "function", "arguments"), ("custom_tool_call", "custom", "input")];

/// The key of the arguments of a call that can be rewritten.
pub(super) fn arguments_key(document: &Document, item: At) -> Option<&'static str> {
    let kind = document.string(item, "type")?;
    CALLS.iter().find(|(name, _, _)| *name == kind).map(|(_, _, key)| *key)
}

impl Reader<'_> {
    /// The arguments of a call grow, until they have been told as a whole.
    pub(super) fn argue(&mut self, grow: impl FnOnce(&mut String)) -> Result<(), Fault> {
        self.told.item = self.about();
        self.names();
        let item = self.told.item.and_then(|at| self.items.get_mut(at));
        let found = item.and_then(|item| {
            let id = item.call()?;
            Some((item, self.said.call_states.get_mut(id.0)?))
        });
        let (item, state) =
            found.ok_or_else(|| self.document.shape(Document::ROOT, "these arguments belong to no call"))?;
        let before = state.arguments.len();
        grow(&mut state.arguments);
        self.told.argued = state.arguments.len();
        if (item.stated || item.over) && self.told.argued > before {
            return Err(Fault::WentOn("arguments came after a tool call was complete"));
        }
        item.stated |= matches!(self.told.event, Event::CallDone(_));
        Ok(())
    }

    pub(super) fn begin_call(&mut self, at: At) -> Result<CallId, Fault> {
        if self.said.choice(0).over {
            return Err(Fault::WentOn("a tool call came after the stop reason"));
        }
        let call = shown(self.document, at)?;
        let sealed = arguments_key(self.document, at).is_none();
        let arguments = call.function.arguments.to_string();
        self.said.calls.push(Call { choice: 0, call, complete: false, decided: false });
        self.said.call_states.push(CallState { arguments, sealed, ..CallState::default() });
        Ok(CallId(self.said.calls.len() - 1))
    }

    /// A call is shown as it is in the end. Its arguments may say more than came before; its name and id stay.
    pub(super) fn finish_call(&mut self, at: At, id: CallId) -> Result<(), Fault> {
        let mut last = shown(self.document, at)?;
        let (Some(call), Some(state)) = (self.said.calls.get_mut(id.0), self.said.call_states.get_mut(id.0)) else {
            return Ok(());
        };
        if !call.complete {
            match state.sealed {
                true => state.arguments = last.function.arguments.to_string(),
                false => grow(&mut state.arguments, &last.function.arguments),
            }
            call.complete = true;
            last.function.arguments = state.arguments.as_str().into();
            last.id = call.call.id.take().or(last.id);
            if !call.call.function.name.is_empty() {
                last.function.name = call.call.function.name.clone();
            }
            call.call = last.clone();
        }
        let came = shown(self.document, at)?;
        self.told.argued = state.arguments.len();
        self.told.odd |= !state.sealed && (came.function != call.call.function || came.id != call.call.id);
        Ok(())
    }
}

/// A call as hooks see it.
fn shown(document: &Document, at: At) -> Result<ToolCall, Fault> {
    let kind = document.string(at, "type").unwrap_or_default();
    let Some((_, shown, key)) = CALLS.iter().find(|(name, _, _)| *name == kind) else {
        return Ok(shown_whole(document, at, if kind.is_empty() { "unknown" } else { &kind }));
    };
    let mut draft = Draft::default();
    draft.call(document, at, shown, key, "call_id")?;
    Ok(draft.message.tool_calls.into_iter().flatten().next().unwrap_or_default())
}

pub(super) fn grow(arguments: &mut String, whole: &str) {
    if whole.starts_with(&**arguments) {
        arguments.push_str(whole.get(arguments.len()..).unwrap_or_default());
    }
}
