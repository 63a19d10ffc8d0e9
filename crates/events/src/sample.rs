//! A sample input for any event, to try hooks with.

use serde_json::{Map, Value, json};

use crate::catalogue::Event;
use crate::input::FIELDS;

/// What a field holds in a sample; fields that are not here are left out.
fn field(name: &str) -> Option<Value> {
    Some(match name {
        "schema_version" => json!(1),
        "session_id" => json!("sample-session"),
        "timestamp" => json!("2026-01-01T00:00:00Z"),
        "agent_name" => json!("root"),
        "model_id" => json!("llama3"),
        "provider" => json!("ollama"),
        "user" => json!("developer"),
        "session_started_at" => json!("2025-12-31T23:59:00Z"),
        "tool_name" => json!("shell"),
        "tool_use_id" => json!("call_1"),
        "tool_input" => json!({"cmd": "ls"}),
        "tool_category" => json!("shell"),
        "plane" => json!("agent"),
        "safety_policy" => json!("balanced"),
        "safety_label" => json!("safe"),
        "tool_response" => json!("README.md"),
        "success" | "stream" => json!(name == "success"),
        "duration" => json!(0.25),
        "approval_decision" => json!("allow"),
        "approval_source" => json!("user_approved"),
        "operation" => json!("run a command"),
        "details" => json!({"tool": "shell", "args": {"cmd": "ls"}}),
        "requester" => json!("root"),
        "error" => json!("no such file"),
        "error_kind" => json!("not_found"),
        "request_id" => json!("00000000-0000-4000-8000-000000000000"),
        "route" => json!("/v1/chat/completions"),
        "messages" => json!([{"role": "user", "content": "Say hello."}]),
        "options" => json!({"temperature": 0.7}),
        "output_text" | "stop_response" => json!("Hello."),
        "done_reason" => json!("stop"),
        "usage" => json!({"input_tokens": 12, "output_tokens": 3}),
        "cost" => json!(0.0),
        "client" => json!({"address": "127.0.0.1:50000", "user_agent": "curl/8.0"}),
        "iteration" => json!(1),
        "last_user_message" | "prompt" => json!("Say hello."),
        "steering_messages" => json!(["Be brief."]),
        "trigger" => json!("init"),
        // What a hook writes there is nobody's.
        "env_file" => json!("/dev/null"),
        "source" => json!("startup"),
        "reason" => json!("normal"),
        "message_count" => json!(4),
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
        "from_agent_models" => json!([{"provider": "ollama", "model": "llama3"}]),
        "previous_max_iterations" => json!(10),
        "new_max_iterations" => json!(20),
        "skill_name" => json!("review"),
        "skill_path" => json!("/home/user/.ollama/skills/review/SKILL.md"),
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
pub fn sample(event: Event) -> Map<String, Value> {
    let fields = FIELDS.iter().filter(|row| row.is_on(event));
    let mut input: Map<String, Value> =
        fields.filter_map(|row| Some((row.name.to_owned(), field(row.name)?))).collect();
    // Fields that say something else on one event than on another.
    let own = match event {
        Event::SessionEnd => Some(("summary", json!({"total_tokens": 1500, "cost": 0.0, "turns": 2}))),
        Event::OnError => {
            Some(("error", json!({"message": "connection refused", "code": "ECONNREFUSED", "stack": ""})))
        }
        Event::PreCompact => Some(("source", json!("manual"))),
        Event::Custom => Some(("source", json!("sample-extension"))),
        Event::OnContextOverflow => Some(("context", json!({"size": 8100, "max_size": 8192, "utilization": 0.98}))),
        _ => None,
    };
    input.extend(own.map(|(name, value)| (name.to_owned(), value)));
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Input;

    #[test]
    fn every_event_has_a_sample_that_can_be_read() {
        for event in Event::all() {
            Input::read(sample(event)).unwrap_or_else(|error| panic!("{}: {error}", event.name()));
        }
    }
}
