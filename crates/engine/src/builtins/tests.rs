use gatehook_events::{Decision, Verb};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{Executor, HookGroup, HooksConfig};

fn executor(event: Event, name: &str, args: &[&str]) -> Result<Executor, crate::BuildError> {
    let hooks = vec![HookDefinition::builtin(name, args)];
    let config = HooksConfig { groups: vec![HookGroup { event, matcher: String::new(), hooks }] };
    Executor::new(config, HandlerEnv::current().unwrap())
}

async fn verdict(event: Event, name: &str, args: &[&str], input: Value) -> gatehook_events::Verdict {
    let input: Input = serde_json::from_value(input).unwrap();
    executor(event, name, args).unwrap().dispatch(event, &input, &CancellationToken::new()).await
}

#[test]
fn bad_arguments_are_errors_at_load() {
    for (name, args) in [
        ("max_iterations", vec![]),
        ("max_iterations", vec!["0"]),
        ("max_iterations", vec!["many"]),
        ("allow_tools", vec![]),
        ("allow_tools", vec!["("]),
        ("block_patterns", vec![]),
        ("block_patterns", vec!["ok", "["]),
        ("audit_log", vec![]),
        ("audit_log", vec!["/does/not/exist/audit.jsonl"]),
        ("redact_secrets", vec!["what"]),
    ] {
        let error = executor(Event::PreInference, name, &args).unwrap_err();
        assert!(matches!(error.cause, crate::executor::BuildCause::Definition(_)), "{name} {args:?}: {error}");
    }
}

#[tokio::test]
async fn the_cap_itself_is_allowed_and_one_more_is_not() {
    for (iteration, allowed) in [(2, true), (3, true), (4, false)] {
        let input = json!({"iteration": iteration});
        let verdict = verdict(Event::BeforeLlmCall, "max_iterations", &["3"], input).await;
        assert_eq!(verdict.allowed, allowed, "{iteration}: {}", verdict.message);
    }
    assert!(verdict(Event::BeforeLlmCall, "max_iterations", &["1"], json!({})).await.allowed);
}

#[tokio::test]
async fn tools_that_are_not_on_the_list_are_denied() {
    let args = ["read_file", "git_.*"];
    for (name, allowed) in [("read_file", true), ("git_log", true), ("shell", false), ("xread_file", false)] {
        for event in [Event::ToolGuard, Event::PreToolUse, Event::PermissionRequest, Event::ToolInputTransform] {
            let verdict = verdict(event, "allow_tools", &args, json!({"tool_name": name})).await;
            assert_eq!(verdict.allowed, allowed, "{name} on {event:?}");
        }
        let calls = json!([{"function": {"name": "read_file"}}, {"function": {"name": name}}]);
        let verdict = verdict(Event::PostInference, "allow_tools", &args, json!({"tool_calls": calls})).await;
        assert_eq!(verdict.verb == Verb::Deny, !allowed, "{name} in an answer");
    }
    assert!(!verdict(Event::PreToolUse, "allow_tools", &args, json!({})).await.allowed, "a call without a name");
}

#[tokio::test]
async fn a_refusal_names_the_pattern_and_never_what_was_found() {
    let args = ["(?i)top secret", "(?<codename>falcon)"];
    for (text, name) in [("This is TOP SECRET!", "pattern 1"), ("project falcon", "pattern `codename`")] {
        let input = json!({"messages": [{"role": "user", "content": text}]});
        let verdict = verdict(Event::PreInference, "block_patterns", &args, input).await;
        assert_eq!((verdict.verb, verdict.decision), (Verb::Deny, Some(Decision::Deny)), "{text}");
        assert_eq!(verdict.message, format!("blocked by {name}"));
        assert_eq!(verdict.refusal.unwrap().user_message, Some(verdict.message));
    }
}

#[tokio::test]
async fn patterns_are_looked_for_wherever_text_stands() {
    let arguments = r#"{"q": "fal\u0063on"}"#;
    for (event, input) in [
        (Event::PreInference, json!({"suffix": "falcon"})),
        (Event::PreInference, json!({"tools": [{"function": {"description": "falcon"}}]})),
        (Event::PreInference, json!({"messages": [{"role": "user", "parts": [{"text": "falcon"}]}]})),
        (Event::PostInference, json!({"output_thinking": "falcon"})),
        (Event::PostInference, json!({"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]})),
        (Event::PreToolUse, json!({"tool_name": "t", "tool_input": {"deep": [{"falcon": 1}]}})),
        (Event::UserPromptSubmit, json!({"prompt": "falcon"})),
        (Event::UserSteeringMessagesSubmit, json!({"steering_messages": ["go", "falcon"]})),
    ] {
        let verdict = verdict(event, "block_patterns", &["falcon"], input.clone()).await;
        assert!(!verdict.allowed, "{event:?} {input}");
    }
    let before = json!({"messages": [{"role": "user", "content": "falcon"}], "output_text": "dove"});
    assert!(verdict(Event::PostInference, "block_patterns", &["falcon"], before).await.allowed);
}

#[tokio::test]
async fn large_texts_are_judged_as_small_ones_are() {
    let content = format!("{} falcon", "x ".repeat(ON_THE_SPOT));
    let input = json!({"messages": [{"role": "user", "content": content}]});
    assert_eq!(verdict(Event::PreInference, "block_patterns", &["falcon"], input).await.verb, Verb::Deny);
}

#[tokio::test]
async fn the_audit_log_gets_one_line_for_each_event() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let args = [path.to_str().unwrap()];
    let input = json!({"session_id": "s", "request_id": "r", "route": "/api/chat", "model_id": "m",
                       "messages": [{"role": "user", "content": "hi"}]});
    for _ in 0..2 {
        assert!(verdict(Event::PreInference, "audit_log", &args, input.clone()).await.allowed);
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!((&lines[0]["event"], &lines[0]["request_id"]), (&json!("pre_inference"), &json!("r")));
    // Of `[{"role":"user","content":"hi"}]`.
    let sha256 = "b03d228fdf33e7c81a9a7ea3eadadcf2cdcb98823fe93c669b8f0db42e0fa8a0";
    assert_eq!([&lines[0]["sha256"], &lines[1]["sha256"]], [sha256, sha256]);
}
