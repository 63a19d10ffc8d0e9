//! Values in the place of placeholders that a hook has put into the request.

use std::borrow::Cow;
use std::sync::Arc;

use gatehook_engine::events::{ModelOutput, ToolCall};
use gatehook_inference::Choice;
use gatehook_scan::Restore;

/// Placeholders, and what each stands for.
pub(crate) type Placeholders = Arc<Restore>;

/// What is handed out of a choice, as hooks have left it, with the values in it.
pub(crate) fn restored(choice: &Choice, output: &ModelOutput, placeholders: &Restore) -> ModelOutput {
    let text = |new: &Option<Arc<str>>, old: &Option<Arc<str>>| {
        changed(placeholders.restore(new.as_deref().or(old.as_deref())?))
    };
    let calls = output.tool_calls.as_deref().or(choice.output.tool_calls.as_deref());
    ModelOutput {
        text: text(&output.text, &choice.output.text).or(output.text.clone()),
        thinking: text(&output.thinking, &choice.output.thinking).or(output.thinking.clone()),
        tool_calls: calls.and_then(|calls| restored_calls(calls, placeholders)).or(output.tool_calls.clone()),
    }
}

fn restored_calls(calls: &[ToolCall], placeholders: &Restore) -> Option<Arc<[ToolCall]>> {
    let restored: Vec<Option<ToolCall>> = calls.iter().map(|call| restored_call(call, placeholders)).collect();
    let changes = restored.iter().any(Option::is_some);
    changes.then(|| calls.iter().zip(restored).map(|(old, new)| new.unwrap_or_else(|| old.clone())).collect())
}

/// A call with the values in its arguments; `None` where they have no placeholder.
pub(crate) fn restored_call(call: &ToolCall, placeholders: &Restore) -> Option<ToolCall> {
    let arguments = &*call.function.arguments;
    // Those of a custom tool are a text of any kind.
    let is_text = &*call.kind == "custom";
    let arguments = if is_text { placeholders.restore(arguments) } else { placeholders.restore_json(arguments) };
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
