//! A sample input for any event, and the caller's changes to it.

use gatehook_events::input::FIELDS;
use gatehook_events::{Event, Input};
use serde_json::{Map, Value, json};

/// What a field holds in a sample; fields that are not here are left out.
fn field(name: &str) -> Option<Value> {
    Some(match name {
        "schema_version" => json!(1),
        "session_id" => json!("sample-session"),
        "timestamp" => json!("2026-01-01T00:00:00Z"),
        "agent_name" => json!("root"),
        "model_id" => json!("llama3"),
        "tool_name" => json!("shell"),
        "tool_use_id" => json!("call_1"),
        "tool_input" => json!({"cmd": "ls"}),
        "tool_category" => json!("shell"),
        "plane" => json!("agent"),
        "tool_response" => json!("README.md"),
        "success" | "stream" => json!(name == "success"),
        "duration" => json!(0.25),
        "approval_decision" => json!("allow"),
        "approval_source" => json!("user_approved"),
        "operation" => json!("run a command"),
        "error" => json!("no such file"),
        "error_kind" => json!("not_found"),
        "request_id" => json!("00000000-0000-4000-8000-000000000000"),
        "route" => json!("/v1/chat/completions"),
        "messages" => json!([{"role": "user", "content": "Say hello."}]),
        "options" => json!({"temperature": 0.7}),
        "output_text" | "stop_response" => json!("Hello."),
        "done_reason" => json!("stop"),
        "usage" => json!({"input_tokens": 12, "output_tokens": 3}),
        "iteration" => json!(1),
        "last_user_message" | "prompt" => json!("Say hello."),
        "steering_messages" => json!(["Be brief."]),
        "trigger" => json!("init"),
        "source" => json!("startup"),
        "reason" => json!("normal"),
        "summary" => json!("The user said hello."),
        "input_tokens" => json!(1200),
        "output_tokens" => json!(300),
        "context_limit" => json!(8192),
        "compaction_reason" => json!("threshold"),
        "parent_session_id" => json!("sample-parent"),
        "notification_level" => json!("warning"),
        "notification_message" => json!("Something needs attention."),
        "from_agent" => json!("root"),
        "to_agent" => json!("researcher"),
        "agent_switch_kind" => json!("handoff"),
        "previous_max_iterations" => json!(10),
        "new_max_iterations" => json!(20),
        "skill_name" => json!("review"),
        "skill_args" => json!("--brief"),
        "file" => json!("src/main.rs"),
        "changes" => json!({"type": "modified", "size": 120, "timestamp": "2026-01-01T00:00:00Z"}),
        "files" => json!(["src/main.rs"]),
        "message" => json!("Say hello"),
        "branch" => json!("main"),
        "event_name" => json!("sample"),
        "data" => json!({}),
        "worktree_path" => json!("/tmp/worktree"),
        "worktree_branch" => json!("sample"),
        "worktree_source_dir" => json!("/tmp/checkout"),
        _ => return None,
    })
}

/// A sample input of `event`, as JSON.
pub(crate) fn sample(event: Event) -> Map<String, Value> {
    let fields = FIELDS.iter().filter(|row| row.is_on(event));
    let mut input: Map<String, Value> =
        fields.filter_map(|row| Some((row.name.to_owned(), field(row.name)?))).collect();
    if event == Event::OnError {
        input.insert("error".to_owned(), json!({"message": "connection refused", "code": "ECONNREFUSED"}));
    }
    input
}

/// Why an input cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SampleError {
    /// `--set` without `=`.
    #[error("`--set {0}` has no `=`: write KEY=VALUE")]
    NoValue(String),
    /// A field holds what it cannot hold.
    #[error("the input's field `{0}` cannot be read: {1}")]
    Field(String, serde_json::Error),
    /// The input is no payload.
    #[error("this is no input of an event: {0}")]
    NoInput(serde_json::Error),
}

/// Sets `key=value`: a payload's field by its name, else an argument of the tool on tool events. A prompt on an event
/// that has messages is their last one.
pub(crate) fn set(input: &mut Map<String, Value>, event: Event, assignment: &str) -> Result<(), SampleError> {
    let (key, text) = assignment.split_once('=').ok_or_else(|| SampleError::NoValue(assignment.to_owned()))?;
    let value =
        serde_json::from_str(text).ok().filter(|value: &Value| !value.is_number()).unwrap_or_else(|| json!(text));
    let known = FIELDS.iter().find(|row| row.name == key && row.is_on(event));
    match known {
        Some(row) if row.json == "string" => input.insert(key.to_owned(), json!(text)),
        Some(row) if row.json == "integer" || row.json == "number" => {
            input.insert(key.to_owned(), serde_json::from_str(text).unwrap_or(value))
        }
        Some(_) => input.insert(key.to_owned(), value),
        None if key == "prompt" && input.contains_key("messages") => {
            input.insert("messages".to_owned(), json!([{"role": "user", "content": text}]))
        }
        None => match input.get_mut("tool_input").and_then(Value::as_object_mut) {
            Some(arguments) => arguments.insert(key.to_owned(), value),
            None => input.insert(key.to_owned(), value),
        },
    };
    Ok(())
}

/// The payload as the engine takes it.
pub(crate) fn read(input: Map<String, Value>) -> Result<Input, SampleError> {
    let read = |fields: Map<String, Value>| serde_json::from_value::<Input>(Value::Object(fields));
    read(input.clone()).map_err(|error| {
        // The error does not say which field it is about; each of them alone does.
        let alone =
            |(name, value): (String, Value)| Some((name.clone(), read([(name, value)].into_iter().collect()).err()?));
        match input.into_iter().find_map(alone) {
            Some((name, error)) => SampleError::Field(name, error),
            None => SampleError::NoInput(error),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_sample_that_can_be_read() {
        for event in Event::all() {
            read(sample(event)).unwrap_or_else(|error| panic!("{}: {error}", event.name()));
        }
    }

    #[test]
    fn an_unknown_key_is_an_argument_of_the_tool() {
        let mut input = sample(Event::PreToolUse);
        set(&mut input, Event::PreToolUse, "path=/etc/passwd").unwrap();
        assert_eq!(input["tool_input"]["path"], "/etc/passwd");
    }

    #[test]
    fn a_prompt_on_an_inference_event_is_its_message() {
        let mut input = sample(Event::PreInference);
        set(&mut input, Event::PreInference, "prompt=hi").unwrap();
        assert_eq!(input["messages"], json!([{"role": "user", "content": "hi"}]));
    }
}
