//! A changed conversation, back into the bytes: which message is which, then region by region.

mod align;
mod calls;
mod message;
mod region;

use std::collections::{BTreeMap, BTreeSet};

use gatehook_events::Message;

pub use calls::{arguments_of, with_arguments};
pub(crate) use calls::{call_value, edit_calls, object_of, same_calls};

use crate::error::Unheld;
use crate::json::{Document, Edits};
use crate::view::Chat;

/// What becomes of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step<'m> {
    /// A shown one stays as it is.
    Keep(usize),
    /// A shown one changes.
    Edit(usize, &'m Message),
    /// One that was not there before.
    New(&'m Message),
}

impl Step<'_> {
    /// Which shown message it is.
    fn shown(&self) -> Option<usize> {
        match self {
            Step::Keep(index) | Step::Edit(index, _) => Some(*index),
            Step::New(_) => None,
        }
    }
}

/// The edits that put `new` in place of what is `shown`; `chat` says where each of them stands.
pub(crate) fn rewrite(
    document: &Document,
    chat: &Chat,
    shown: &[Message],
    new: &[Message],
    edits: &mut Edits,
) -> Result<(), Unheld> {
    if new.is_empty() {
        return Err(Unheld::new("a request cannot be left without messages"));
    }
    let steps = align::align(shown, new);
    refuse_orphans(shown, &steps)?;
    region::rewrite(document, chat, shown, &steps, edits)
}

/// A tool's result needs the call it answers before it. What the caller orphaned is the caller's affair.
fn refuse_orphans(shown: &[Message], steps: &[Step<'_>]) -> Result<(), Unheld> {
    let kept: Vec<Step<'_>> = (0..shown.len()).map(Step::Keep).collect();
    let mut known: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    orphans(shown, &kept).into_iter().for_each(|id| *known.entry(id).or_default() += 1);
    for id in orphans(shown, steps) {
        match known.get_mut(&id).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None => {
                let which = id.unwrap_or("without an id");
                return Err(Unheld::new(format!("the rewrite leaves the tool result {which} without its call")));
            }
        }
    }
    Ok(())
}

/// The `tool_call_id` of each tool message that no earlier call has.
fn orphans<'m>(shown: &'m [Message], steps: &[Step<'m>]) -> Vec<Option<&'m str>> {
    let mut called = BTreeSet::new();
    let mut any = false;
    let mut orphans = Vec::new();
    for step in steps {
        let old = step.shown().and_then(|index| shown.get(index));
        let new = match step {
            Step::Keep(_) => None,
            Step::Edit(_, message) | Step::New(message) => Some(*message),
        };
        let calls = new.and_then(|new| new.tool_calls.as_ref()).or(old.and_then(|old| old.tool_calls.as_ref()));
        for call in calls.into_iter().flatten() {
            any = true;
            called.extend(call.id.as_deref());
        }
        if new.or(old).is_some_and(|message| &*message.role == "tool") {
            let id = new.and_then(|new| new.tool_call_id.as_deref());
            let id = id.or(old.and_then(|old| old.tool_call_id.as_deref()));
            if !id.map_or(any, |id| called.contains(id)) {
                orphans.push(id);
            }
        }
    }
    orphans
}
