//! Which fields docker-agent knows inside the objects of a reply
//! (<https://pkg.go.dev/github.com/docker/docker-agent/pkg/chat#Message>). Fields that are not followed here are free.

use serde_json::Value;

/// Fields, each with those of the objects in it.
pub(super) type Known = &'static [(&'static str, Option<Inner>)];

/// The fields of inner objects.
#[derive(Clone, Copy)]
pub(super) struct Inner(Known);

/// An instruction.
pub(super) const INSTRUCTION: Known = &[
    ("key", None),
    ("group", None),
    ("label", None),
    ("content", None),
    ("changed_content", None),
    ("removed_content", None),
    ("removed", None),
    ("unavailable", None),
    ("complete_group", None),
    ("set_marker", None),
];

/// A chat message.
pub(super) const MESSAGE: Known = &[
    ("role", None),
    ("content", None),
    ("multi_content", Some(Inner(PART))),
    ("reasoning_content", None),
    ("thinking_signature", None),
    ("thought_signature", None),
    ("function_call", Some(Inner(FUNCTION))),
    ("tool_calls", Some(Inner(CALL))),
    ("tool_definitions", None),
    ("tool_call_id", None),
    ("is_error", None),
    ("created_at", None),
    ("usage", None),
    ("model", None),
    ("cost", None),
    ("finish_reason", None),
    ("cache_control", None),
];

const PART: Known = &[("type", None), ("text", None), ("image_url", None), ("file", None), ("document", None)];
const CALL: Known = &[("id", None), ("type", None), ("function", Some(Inner(FUNCTION)))];
const FUNCTION: Known = &[("name", None), ("arguments", None)];

/// The first field of an object, or of the objects of a list, that is not known.
pub(super) fn foreign_key(value: &Value, known: Known) -> Option<&str> {
    match value {
        Value::Array(items) => items.iter().find_map(|item| foreign_key(item, known)),
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let Some((_, inner)) = known.iter().find(|(name, _)| name == key) else { return Some(key.as_str()) };
            foreign_key(value, (*inner)?.0)
        }),
        _ => None,
    }
}
