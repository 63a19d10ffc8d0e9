//! Hooks of foreign contracts: what their profiles make of what they answer.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what the tests call may stop them too"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use gatehook_engine::config::{Format, ReadOptions, ollama_cli, ollm};
use gatehook_engine::definition::EnvPolicy;
use gatehook_engine::events::{Decision, Event, FailureKind, Input, OutcomeKind, Output, Permission, Profile, Verdict};
use gatehook_engine::executor::BuildCause;
use gatehook_engine::{
    Executor, HandlerDefinition, HandlerEnv, HookDefinition, HookGroup, HooksConfig, OnError, Registry,
};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio_util::sync::CancellationToken;

fn env() -> BTreeMap<String, String> {
    [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into()
}

fn registry() -> Registry {
    let registry = Registry::with_defaults();
    gatehook_dialects::all().into_iter().for_each(|dialect| registry.register_dialect(dialect));
    registry
}

fn options(env: &BTreeMap<String, String>) -> ReadOptions<'_> {
    ReadOptions { env, ..ReadOptions::default() }
}

/// OLLM hooks of one event, each a line for `sh`.
fn ollm_hooks(event: &str, lines: &[&str]) -> HooksConfig {
    let record = |line: &&str| json!({"name": "hook", "command": "sh", "args": ["-c", line]});
    let hooks = json!({"hooks": {(event): lines.iter().map(record).collect::<Vec<_>>()}});
    ollm::parse("hooks.json", &hooks.to_string(), Format::Json, &options(&env())).unwrap().hooks
}

/// Ollama CLI hooks of one event: matcher and line.
fn ollama_hooks(event: &str, hooks: &[(&str, &str)]) -> HooksConfig {
    let group =
        |(matcher, line): &(&str, &str)| json!({"matcher": matcher, "hooks": [{"type": "command", "command": line}]});
    let hooks = json!({"hooks": {(event): hooks.iter().map(group).collect::<Vec<_>>()}});
    ollama_cli::parse("settings.json", &hooks.to_string(), &options(&env())).unwrap()
}

async fn run_in(folder: &Path, hooks: HooksConfig, event: Event, input: Input) -> Verdict {
    let env = HandlerEnv { working_dir: folder.to_owned(), env: env() };
    let executor = Executor::with_registry(hooks, env, &registry()).unwrap();
    executor.dispatch(event, &input, &CancellationToken::new()).await
}

async fn run(hooks: HooksConfig, event: Event, input: Input) -> Verdict {
    run_in(Path::new("/"), hooks, event, input).await
}

fn tool(name: &str) -> Input {
    Input { tool_name: Some(name.into()), ..Input::default() }
}

#[tokio::test]
async fn an_ollm_hook_that_is_silent_or_fails_blocks_and_the_next_one_still_runs() {
    for (line, kind) in [
        ("true", FailureKind::NoReply),
        ("echo '{}'", FailureKind::InvalidPermissionDecision),
        ("echo nope", FailureKind::MalformedJson),
        ("echo '{\"allow\": true}'; exit 2", FailureKind::NonzeroExit),
        ("kill -9 $$", FailureKind::NonzeroExit),
    ] {
        let hooks = ollm_hooks("pre-execution", &[line, "echo '{\"allow\": true, \"message\": \"second\"}'"]);
        let verdict = run(hooks, Event::BeforeLlmCall, Input::default()).await;
        assert!(!verdict.allowed, "{line}");
        assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(kind), "{line}");
        assert_eq!(verdict.outcomes[1].kind, OutcomeKind::Ok, "{line}");
        assert_eq!(verdict.system_message, "second", "{line}");
    }
}

#[tokio::test]
async fn what_its_contract_gives_a_hook_passes_every_environment_policy() {
    for policy in [EnvPolicy::Inherit, EnvPolicy::Minimal, EnvPolicy::Only(vec![])] {
        let mut hooks = ollama_hooks("PreToolUse", &[("", "[ \"$OLLAMA_SESSION_ID\" = s1 ] || exit 2")]);
        hooks.groups[0].hooks[0].env_policy = policy.clone();
        let input = Input { session_id: Some("s1".into()), ..tool("t") };
        assert!(run(hooks, Event::PreToolUse, input).await.allowed, "{policy:?}");
    }
}

#[tokio::test]
async fn no_policy_opens_an_ollm_guard() {
    let mut hooks = ollm_hooks("pre-tool-call", &["exit 1"]);
    hooks.groups[0].hooks[0].on_error = Some(OnError::Ignore);
    assert!(!run(hooks, Event::PreToolUse, tool("t")).await.allowed);
}

#[tokio::test]
async fn an_ollm_no_that_comes_too_late_is_told_to_the_user() {
    for (event, name) in
        [(Event::SessionEnd, "on-session-end"), (Event::OnError, "on-error"), (Event::OnFileChange, "on-file-change")]
    {
        let hooks = ollm_hooks(name, &["echo '{\"allow\": false, \"message\": \"not so\"}'"]);
        let verdict = run(hooks, event, Input::default()).await;
        assert_eq!((verdict.allowed, verdict.system_message.as_str()), (false, "not so"), "{name}");
        assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Blocked, "{name}");
    }
    let hooks = ollm_hooks("post-execution", &["echo '{\"allow\": false, \"message\": \"not so\"}'"]);
    let verdict = run(hooks, Event::AfterLlmCall, Input::default()).await;
    assert_eq!((verdict.allowed, verdict.message.as_str(), verdict.system_message.as_str()), (false, "not so", ""));
}

#[tokio::test]
async fn a_yes_to_an_approval_request_is_the_users_consent() {
    let yes = ollm_hooks("on-approval-request", &["echo '{\"allow\": true}'"]);
    let verdict = run(yes, Event::PermissionRequest, tool("t")).await;
    assert!(verdict.allowed && verdict.permission_allowed);
    let yes = ollama_hooks("PermissionRequest", &[("", "echo '{\"permissionDecision\": \"allow\"}'")]);
    let verdict = run(yes, Event::PermissionRequest, tool("t")).await;
    assert!(verdict.allowed && verdict.permission_allowed);
    let yes = ollm_hooks("pre-tool-call", &["echo '{\"allow\": true}'"]);
    let verdict = run(yes, Event::PreToolUse, tool("t")).await;
    assert!(verdict.allowed && !verdict.permission_allowed && verdict.decision.is_none());
}

#[tokio::test]
async fn a_failing_ollama_cli_hook_blocks_prompts_and_tools_and_warns_elsewhere() {
    for (event, name, allowed) in [
        (Event::PreToolUse, "PreToolUse", false),
        (Event::PermissionRequest, "PermissionRequest", false),
        (Event::UserPromptSubmit, "UserPromptSubmit", false),
        (Event::PostToolUse, "PostToolUse", true),
        (Event::SessionStart, "SessionStart", true),
        (Event::Stop, "Stop", true),
    ] {
        let verdict = run(ollama_hooks(name, &[("", "exit 1")]), event, tool("t")).await;
        assert_eq!(verdict.allowed, allowed, "{name}");
        assert_eq!(verdict.notices.len(), 1, "{name}");
        let verdict = run(ollama_hooks(name, &[("", "echo why >&2; exit 2")]), event, tool("t")).await;
        assert_eq!((verdict.allowed, verdict.message.as_str()), (false, "why"), "{name}: 2 blocks");
    }
}

#[tokio::test]
async fn a_no_of_ollama_cli_counts_whatever_its_exit_code_and_stops_no_other_hook() {
    let no = "echo '{\"permissionDecision\": \"deny\", \"reason\": \"no\"}'; exit 1";
    let hooks = ollama_hooks("PreToolUse", &[("", no), ("", "echo '{\"permissionDecision\": \"allow\"}'")]);
    let verdict = run(hooks, Event::PreToolUse, tool("t")).await;
    assert_eq!((verdict.allowed, verdict.decision, verdict.message.as_str()), (false, Some(Decision::Deny), "no"));
    assert_eq!(verdict.outcomes.len(), 2);
}

#[tokio::test]
async fn a_matcher_of_ollama_cli_is_searched_for_in_any_case_and_by_the_tools_other_names() {
    let line = "echo '{\"permissionDecision\": \"deny\"}'";
    for (matcher, name, denied) in [
        ("Bash|Edit", "shell_exec", true),
        ("read", "file_read", true),
        ("Read", "file_read", true),
        ("", "anything", true),
        ("Write", "file_read", false),
    ] {
        let verdict = run(ollama_hooks("PreToolUse", &[(matcher, line)]), Event::PreToolUse, tool(name)).await;
        assert_eq!(!verdict.allowed, denied, "{matcher} on {name}");
    }
}

#[tokio::test]
async fn rewrites_of_ollama_cli_build_on_each_other() {
    let first = "echo '{\"updatedInput\": {\"a\": 1}}'";
    let second = "grep -q '\"a\":1' && echo '{\"updatedInput\": {\"b\": 2}}'";
    let verdict = run(ollama_hooks("PreToolUse", &[("", first), ("", second)]), Event::PreToolUse, tool("t")).await;
    let rewritten = verdict.rewritten.tool_input.unwrap();
    assert_eq!(Value::Object((*rewritten).clone()), json!({"a": 1, "b": 2}));
    let output = "echo '{\"updatedOutput\": \"shorter\"}'";
    let verdict = run(ollama_hooks("PostToolUse", &[("", output)]), Event::PostToolUse, tool("t")).await;
    assert_eq!(verdict.rewritten.tool_response.as_deref(), Some(&json!("shorter")));
    let skill = "echo '{\"updatedInput\": \"--all\"}'";
    let verdict = run(ollama_hooks("SkillTrigger", &[("", skill)]), Event::SkillTrigger, Input::default()).await;
    assert_eq!(verdict.rewritten.skill_args.as_deref(), Some("--all"));
}

#[tokio::test]
async fn stop_says_go_on() {
    let line = "echo '{\"permissionDecision\": \"deny\", \"reason\": \"run the tests first\"}'";
    let verdict = run(ollama_hooks("Stop", &[("", line)]), Event::Stop, Input::default()).await;
    assert_eq!((verdict.allowed, verdict.message.as_str()), (false, "run the tests first"));
}

#[tokio::test]
async fn hooks_of_these_profiles_run_one_after_another_on_every_event() {
    let folder = tempfile::tempdir().unwrap();
    let first = "sleep 0.05; echo first >> order; echo '{\"allow\": true}'";
    let second = "echo second >> order; echo '{\"allow\": true}'";
    run_in(folder.path(), ollm_hooks("on-session-start", &[first, second]), Event::SessionStart, Input::default())
        .await;
    run_in(
        folder.path(),
        ollama_hooks("Notification", &[("", first), ("", second)]),
        Event::Notification,
        Input::default(),
    )
    .await;
    assert_eq!(std::fs::read_to_string(folder.path().join("order")).unwrap(), "first\nsecond\n".repeat(2));
}

#[tokio::test]
async fn each_ollm_hook_is_told_its_own_name_and_version() {
    let folder = tempfile::tempdir().unwrap();
    let record = |name: &str| {
        let line = format!("cat > {name}.json; echo '{{\"allow\": true}}'");
        json!({"name": name, "command": "sh", "args": ["-c", line]})
    };
    let manifest = json!({"name": "e", "version": "2.1.0", "hooks": {"custom": [record("a"), record("b")]}});
    let hooks = ollm::parse("manifest.json", &manifest.to_string(), Format::Json, &options(&env())).unwrap().hooks;
    let input = Input { session_id: Some("s".into()), ..Input::default() };
    run_in(folder.path(), hooks, Event::Custom, input).await;
    for name in ["a", "b"] {
        let text = std::fs::read_to_string(folder.path().join(format!("{name}.json"))).unwrap();
        let metadata = serde_json::from_str::<Value>(&text).unwrap()["metadata"].clone();
        assert_eq!(metadata["hookName"], name);
        assert_eq!((&metadata["hookVersion"], &metadata["sessionId"]), (&json!("2.1.0"), &json!("s")));
        assert!(metadata["timestamp"].is_string());
    }
}

#[tokio::test]
async fn a_hooks_own_variables_stand_before_those_of_its_contract() {
    let folder = tempfile::tempdir().unwrap();
    let line = "echo \"$OLLAMA_PROJECT_DIR $OLLAMA_SESSION_ID $OLLAMA_MODEL\" > seen";
    let mut hooks = ollama_hooks("Setup", &[("", line)]);
    hooks.groups[0].hooks[0].env.insert("OLLAMA_MODEL".to_owned(), "mine".to_owned());
    let input = Input {
        cwd: Some("/project".into()),
        session_id: Some("s".into()),
        model_id: Some("llama3".into()),
        ..Input::default()
    };
    run_in(folder.path(), hooks, Event::Setup, input).await;
    assert_eq!(std::fs::read_to_string(folder.path().join("seen")).unwrap(), "/project s mine\n");
}

#[tokio::test]
async fn a_function_answers_as_a_program_would() {
    let registry = registry();
    registry.register_builtin("silent", |_, _, _| Ok(None)).unwrap();
    registry
        .register_builtin("deny", |_, _, _| {
            Ok(Some(Output { permission: Some(Permission::Deny), ..Output::default() }))
        })
        .unwrap();
    for (profile, name, allowed) in
        [(Profile::Ollm, "silent", false), (Profile::OllamaCli, "silent", true), (Profile::OllamaCli, "deny", false)]
    {
        let handler = HandlerDefinition::Builtin { command: name.to_owned(), args: Vec::new() };
        let hooks = vec![HookDefinition::new(profile, handler)];
        let group = HookGroup { event: Event::PreToolUse, matcher: String::new(), hooks };
        let config = HooksConfig { groups: vec![group] };
        let env = HandlerEnv { working_dir: "/".into(), env: env() };
        let executor = Executor::with_registry(config, env, &registry).unwrap();
        let verdict = executor.dispatch(Event::PreToolUse, &tool("t"), &CancellationToken::new()).await;
        assert_eq!(verdict.allowed, allowed, "{} {name}", profile.name());
    }
}

#[test]
fn a_contract_that_nobody_speaks_is_an_error_at_load() {
    let env = HandlerEnv { working_dir: "/".into(), env: env() };
    for hooks in [ollm_hooks("custom", &["true"]), ollama_hooks("Stop", &[("", "true")])] {
        let error = Executor::new(hooks, env.clone()).unwrap_err();
        assert!(matches!(error.cause, BuildCause::NoDialect(_)), "{error}");
    }
}

#[test]
fn times_are_the_contracts_own() {
    let timeout = |hooks: HooksConfig| hooks.groups[0].hooks[0].timeout();
    assert_eq!(timeout(ollm_hooks("custom", &["true"])), Duration::from_secs(5));
    assert_eq!(timeout(ollama_hooks("Stop", &[("", "true")])), Duration::from_secs(60));
}

#[tokio::test]
async fn a_native_hook_beside_foreign_ones_is_told_natively() {
    let folder = tempfile::tempdir().unwrap();
    let mut hooks = ollama_hooks("PreToolUse", &[("", "cat > theirs")]);
    let native = r#"{"pre_tool_use": [{"hooks": [{"type": "command", "command": "cat > ours"}]}]}"#;
    let native: Value = serde_json::from_str(native).unwrap();
    hooks.append(gatehook_engine::config::hooks_from_json(&native, &ReadOptions::default()).unwrap());
    run_in(folder.path(), hooks, Event::PreToolUse, tool("t")).await;
    let told = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(folder.path().join(name)).unwrap()).unwrap()
    };
    assert_eq!((&told("theirs")["hook"], &told("theirs")["tool"]), (&json!("PreToolUse"), &json!("t")));
    assert_eq!(told("ours")["hook_event_name"], "pre_tool_use");
    assert!(told("ours").get("hook").is_none());
}

/// Answers one HTTP request with `reply`, and gives its body.
async fn answer_once(listener: tokio::net::TcpListener, reply: &str) -> Value {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    loop {
        stream.readable().await.unwrap();
        match stream.try_read_buf(&mut request) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            read => assert!(read.unwrap() > 0, "it broke off"),
        }
        let text = String::from_utf8_lossy(&request);
        let Some((_, body)) = text.split_once("\r\n\r\n") else { continue };
        if let Ok(body) = serde_json::from_str(body) {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", reply.len());
            stream.write_all((head + reply).as_bytes()).await.unwrap();
            return body;
        }
    }
}

#[tokio::test]
async fn a_webhook_of_ollama_cli_is_sent_its_payload_and_answers_in_its_words() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let hooks = json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "webhook", "url": url}]}]}});
    let hooks = ollama_cli::parse("settings.json", &hooks.to_string(), &options(&env())).unwrap();
    let (verdict, told) = tokio::join!(
        run(hooks, Event::PreToolUse, tool("bash")),
        answer_once(listener, r#"{"permissionDecision": "deny", "reason": "not here"}"#),
    );
    assert_eq!((verdict.allowed, verdict.message.as_str()), (false, "not here"));
    assert_eq!((&told["hook"], &told["tool"]), (&json!("PreToolUse"), &json!("bash")));
}

#[tokio::test]
async fn a_python_function_of_ollama_cli_is_given_its_payload() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = folder.path().join(".ollama/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let text = "def on_pre_tool_use(payload):\n    return {'permissionDecision': 'deny', 'reason': payload['tool']}\n";
    std::fs::write(hooks.join("guard.py"), text).unwrap();
    let hook = json!({"type": "python", "module": "guard", "function": "on_pre_tool_use"});
    let settings = json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}});
    let hooks = ollama_cli::parse("settings.json", &settings.to_string(), &options(&env())).unwrap();
    let verdict = run_in(folder.path(), hooks, Event::PreToolUse, tool("bash")).await;
    assert_eq!((verdict.allowed, verdict.message.as_str()), (false, "bash"), "{:?}", verdict.outcomes);
}
