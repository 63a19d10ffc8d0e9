//! Vectors of builtins: what a verdict does not say by itself.

use gatehook_engine::builtins::BUILTINS;
use gatehook_events::Profile;
use serde_json::{Value, json};

use crate::actual::Actual;
use crate::fixtures::Fixtures;
use crate::reader;
use crate::vector::{Vector, repeated};

/// What the expectations of a builtin may be about, beside what any verdict has; before their endings.
pub(crate) const FACTS: &[&str] = &[
    "instruction_context_keys",
    "instruction_content",
    "instruction",
    "complete_group",
    "set_marker",
    "context_or_instruction",
    "updated_messages_unchanged_index",
    "rewritten",
    "spill_file_equals_input",
    "spill_dir_removed",
    "http_requests",
    "hook_failed",
];

/// Whether the engine has all builtins that a vector names.
pub(crate) fn is_known(config: &Value) -> bool {
    reader::builtins(config).into_iter().all(|name| BUILTINS.iter().any(|builtin| builtin.name == name))
}

/// Makes what must be there before.
pub(crate) async fn prepare(vector: &Vector, profile: Profile, fixtures: &Fixtures) -> Result<(), String> {
    fixtures.requests();
    if !vector.expect.contains_key("spill_dir_removed") {
        return Ok(());
    }
    let event = "tool_response_transform";
    let hook = json!([{"matcher": "*", "hooks": [{"type": "builtin", "command": "limit_large_tool_results"}]}]);
    let session = vector.input.get("session_id").cloned().unwrap_or_default();
    let response = "x".repeat(1 << 20);
    let input = json!({"session_id": session, "tool_name": "t", "tool_category": "shell", "tool_response": response});
    vector.of(event, &json!({event: hook}), &input).dispatch(profile).await?;
    if fixtures.temporary_files().is_empty() { Err("nothing was put aside before".to_owned()) } else { Ok(()) }
}

/// The facts of one run.
pub(crate) fn facts(vector: &Vector, fixtures: &Fixtures, actual: &Actual) -> Value {
    let input = repeated(&vector.input);
    let items = actual.get("instruction_context").as_array().cloned().unwrap_or_default();
    let fields = |name: &str| items.iter().filter_map(|item| item.get(name).cloned()).collect::<Vec<_>>();
    let any = |name: &str| fields(name).contains(&Value::Bool(true));
    let content = fields("content").iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
    let context = actual.get("additional_context").as_str().unwrap_or_default();
    let response = input.get("tool_response").and_then(Value::as_str);
    let spilled = fixtures.temporary_files();
    let is_spilled = spilled.iter().any(|path| std::fs::read_to_string(path).ok().as_deref() == response);
    let unchanged: Vec<usize> = actual
        .get("updated_messages")
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .filter(|(place, message)| input.pointer(&format!("/messages/{place}")) == Some(message))
        .map(|(place, _)| place)
        .collect();
    let failed = actual.outcomes.iter().any(|outcome| outcome != "ok" && outcome != "blocked");
    json!({
        "instruction_context_keys": fields("key"),
        "instruction_content": content,
        "instruction": items,
        "complete_group": any("complete_group"),
        "set_marker": any("set_marker"),
        "context_or_instruction": format!("{context}\n{content}"),
        "updated_messages_unchanged_index": unchanged,
        "rewritten": !actual.get("updated_tool_response").is_null(),
        "spill_file_equals_input": response.is_some() && is_spilled,
        "spill_dir_removed": spilled.is_empty(),
        "http_requests": fixtures.requests(),
        "hook_failed": failed,
    })
}
