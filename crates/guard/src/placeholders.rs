//! Values in the place of placeholders that a hook has put into the request.

use std::borrow::Cow;
use std::sync::Arc;

use gatehook_engine::events::{ModelOutput, ToolCall};
use gatehook_inference::Choice;
use gatehook_scan::Restore;

/// Placeholders, and what each stands for.
pub(crate) type Placeholders = Arc<Restore>;

/// A call with the values in its arguments; `None` where they have no placeholder.
pub(crate) fn restored_call(call: &ToolCall, placeholders: &Restore) -> Option<ToolCall> {
    let arguments = &*call.function.arguments;
    let restored = match &*call.kind {
        "custom" => placeholders.restore(arguments),
        _ => placeholders.restore_json(arguments),
    };
    let mut call = call.clone();
    call.function.arguments = changed(restored)?;
    Some(call)
}

/// Puts the values into what is handed out of a choice.
pub(crate) fn restore(choice: &Choice, output: &mut ModelOutput, placeholders: &Restore) {
    let text = |new: &Option<Arc<str>>, old: &Option<Arc<str>>| {
        changed(placeholders.restore(new.as_deref().or(old.as_deref())?))
    };
    let (shown, thinking) = (text(&output.text, &choice.output.text), text(&output.thinking, &choice.output.thinking));
    output.text = shown.or(output.text.take());
    output.thinking = thinking.or(output.thinking.take());
    let Some(calls) = output.tool_calls.as_deref().or(choice.output.tool_calls.as_deref()) else { return };
    let restored: Vec<Option<ToolCall>> = calls.iter().map(|call| restored_call(call, placeholders)).collect();
    if restored.iter().any(Option::is_some) {
        let calls = restored.into_iter().zip(calls).map(|(new, old)| new.unwrap_or_else(|| old.clone()));
        output.tool_calls = Some(calls.collect());
    }
}

fn changed(text: Cow<'_, str>) -> Option<Arc<str>> {
    match text {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text.into()),
    }
}
