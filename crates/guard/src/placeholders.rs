//! Values in the place of the placeholders that a hook has put into the request: the last that happens to an answer.

use std::borrow::Cow;
use std::sync::Arc;

use gatehook_engine::events::{ModelOutput, ToolCall};
use gatehook_inference::Choice;
use gatehook_scan::Restore;

/// What hooks have made of a choice, with the values in it.
pub(crate) fn restored(choice: &Choice, output: &ModelOutput, restore: &Restore) -> ModelOutput {
    let calls = output.tool_calls.as_deref().or(choice.output.tool_calls.as_deref());
    ModelOutput {
        text: text(&output.text, &choice.output.text, restore).or(output.text.clone()),
        thinking: text(&output.thinking, &choice.output.thinking, restore).or(output.thinking.clone()),
        tool_calls: calls.and_then(|calls| in_calls(calls, restore)).or(output.tool_calls.clone()),
    }
}

fn text(new: &Option<Arc<str>>, old: &Option<Arc<str>>, restore: &Restore) -> Option<Arc<str>> {
    changed(restore.restore(new.as_deref().or(old.as_deref())?))
}

fn in_calls(calls: &[ToolCall], restore: &Restore) -> Option<Arc<[ToolCall]>> {
    let restored: Vec<Option<ToolCall>> = calls.iter().map(|call| restored_call(call, restore)).collect();
    let changes = restored.iter().any(Option::is_some);
    changes.then(|| calls.iter().zip(restored).map(|(old, new)| new.unwrap_or_else(|| old.clone())).collect())
}

/// A call with the values in its arguments; `None` where they have no placeholder.
pub(crate) fn restored_call(call: &ToolCall, restore: &Restore) -> Option<ToolCall> {
    let arguments = &*call.function.arguments;
    // Those of a custom tool are a text of any kind.
    let arguments = if &*call.kind == "custom" { restore.restore(arguments) } else { restore.restore_json(arguments) };
    let mut restored = call.clone();
    restored.function.arguments = changed(arguments)?;
    Some(restored)
}

fn changed(text: Cow<'_, str>) -> Option<Arc<str>> {
    match text {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text.into()),
    }
}
