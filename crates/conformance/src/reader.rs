//! The hooks of a vector, read by the engine's own loader.

use std::collections::BTreeMap;
use std::path::Path;

use gatehook_engine::HooksConfig;
use gatehook_engine::config::{Diagnostic, DiagnosticKind, ReadOptions, hooks_from_json};
use gatehook_events::Profile;
use serde_json::Value;

/// Events in the order in which the reference checks them.
const CHECKED: [&str; 28] = [
    "pre_tool_use",
    "post_tool_use",
    "permission_request",
    "session_start",
    "user_prompt_submit",
    "user_steering_messages_submit",
    "user_followup_submit",
    "turn_start",
    "turn_end",
    "before_llm_call",
    "after_llm_call",
    "session_end",
    "pre_compact",
    "subagent_stop",
    "on_user_input",
    "stop",
    "notification",
    "on_error",
    "on_max_iterations",
    "on_agent_switch",
    "on_session_resume",
    "on_tool_approval_decision",
    "before_compaction",
    "after_compaction",
    "tool_response_transform",
    "tool_input_transform",
    "tool_guard",
    "worktree_create",
];

/// What a loader found.
pub(crate) struct Diagnosis {
    pub(crate) kind: Option<String>,
    pub(crate) path: Option<String>,
}

/// What the engine's loader says about a configuration: of all that is wrong, what the reference would meet first.
pub(crate) fn diagnose(config: &Value, profile: Profile) -> Diagnosis {
    let first = match hooks_from_json(config, &ReadOptions { profile, ..ReadOptions::default() }) {
        Ok(_) => None,
        Err(error) => error.diagnostics.into_iter().min_by_key(turn),
    };
    Diagnosis {
        kind: first.as_ref().map(|problem| problem.kind.name().to_owned()),
        path: first.map(|problem| problem.path),
    }
}

/// When the reference meets a problem: it reads the whole file before it checks anything, and then checks one event after
/// another. Within an event the engine's order is the reference's.
fn turn(problem: &Diagnostic) -> (bool, usize) {
    use DiagnosticKind::{NotAHookOrList, NotAMatcherOrList, UnknownEvent, UnknownField, WrongType};
    let is_met_when_read =
        matches!(problem.kind, NotAHookOrList | NotAMatcherOrList | UnknownEvent | UnknownField | WrongType);
    let name = problem.path.strip_prefix("hooks.").and_then(|path| path.split(['[', '.']).next()).unwrap_or_default();
    let place = CHECKED.iter().position(|known| *known == name).unwrap_or_default();
    (!is_met_when_read, place)
}

/// The hooks of a configuration that nobody validated before, with scripts filled in by `filled`.
pub(crate) fn hooks(
    config: &Value,
    profile: Profile,
    filled: &dyn Fn(&str) -> String,
    env: &BTreeMap<String, String>,
    working_dir: &Path,
) -> Result<HooksConfig, String> {
    let working_dir = working_dir.to_owned();
    let options = ReadOptions { profile, env, working_dir, validate: false, ..ReadOptions::default() };
    hooks_from_json(&fill(config, filled), &options).map_err(|error| error.to_string())
}

/// The builtins that a configuration names.
pub(crate) fn builtins(config: &Value) -> Vec<&str> {
    match config {
        Value::Object(map) if map.get("type") == Some(&"builtin".into()) => {
            map.get("command").and_then(Value::as_str).into_iter().collect()
        }
        Value::Object(map) => map.values().flat_map(builtins).collect(),
        Value::Array(list) => list.iter().flat_map(builtins).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn fill(value: &Value, filled: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(filled(text)),
        Value::Array(items) => items.iter().map(|item| fill(item, filled)).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), fill(value, filled))).collect(),
        other => other.clone(),
    }
}
