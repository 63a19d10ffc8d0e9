use std::io::{Read as _, Write as _};
use std::path::Path;

use gatehook_events::{Decision, Verb, Verdict};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{Executor, HookGroup, HooksConfig};

mod context;

/// An executor with one hook.
pub(super) fn executor(event: Event, name: &str, args: &[&str]) -> Result<Executor, crate::BuildError> {
    let hooks = vec![HookDefinition::builtin(name, args)];
    let config = HooksConfig { groups: vec![HookGroup { event, matcher: String::new(), hooks }] };
    Executor::new(config, HandlerEnv::current().unwrap())
}

/// An executor with several hooks.
pub(super) fn hooks(hooks: &[(Event, &str, &[&str])]) -> Executor {
    let group = |(event, name, args): &(Event, &str, &[&str])| {
        let hooks = vec![HookDefinition::builtin(name, args)];
        HookGroup { event: *event, matcher: String::new(), hooks }
    };
    Executor::new(HooksConfig { groups: hooks.iter().map(group).collect() }, HandlerEnv::current().unwrap()).unwrap()
}

/// The same in a folder that is working, home, state and temporary directory.
pub(super) fn in_folder(event: Event, name: &str, args: &[&str], folder: &Path) -> Executor {
    let hooks = vec![HookDefinition::builtin(name, args)];
    let config = HooksConfig { groups: vec![HookGroup { event, matcher: String::new(), hooks }] };
    Executor::new(config, surroundings(folder)).unwrap()
}

pub(super) fn surroundings(folder: &Path) -> HandlerEnv {
    let mut env = HandlerEnv::current().unwrap();
    for name in ["HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
        env.env.insert(name.to_owned(), folder.display().to_string());
    }
    HandlerEnv { working_dir: folder.to_owned(), ..env }
}

pub(super) async fn verdict_of(executor: &Executor, event: Event, input: Value) -> Verdict {
    let input: Input = serde_json::from_value(input).unwrap();
    executor.dispatch(event, &input, &CancellationToken::new()).await
}

/// What one hook says.
pub(super) async fn verdict(event: Event, name: &str, args: &[&str], input: Value) -> Verdict {
    verdict_of(&executor(event, name, args).unwrap(), event, input).await
}

/// What one hook of docker-agent's contract says.
pub(super) async fn foreign(event: Event, name: &str, args: &[&str], input: Value) -> Verdict {
    let hook = HookDefinition { profile: Profile::DockerAgent, ..HookDefinition::builtin(name, args) };
    let config = HooksConfig { groups: vec![HookGroup { event, matcher: String::new(), hooks: vec![hook] }] };
    let executor = Executor::new(config, HandlerEnv::current().unwrap()).unwrap();
    verdict_of(&executor, event, input).await
}

/// All that a verdict tells the model.
pub(super) fn told(verdict: &Verdict) -> String {
    let items = verdict.instruction_context.iter().map(|item| item["content"].as_str().unwrap_or_default().to_owned());
    std::iter::once(verdict.additional_context.clone()).chain(items).collect::<Vec<_>>().join("\n")
}

/// A server on loopback that answers every request with one status, and keeps what it was asked.
pub(super) struct Listener {
    port: u16,
    requests: std::sync::mpsc::Receiver<String>,
}

impl Listener {
    pub(super) fn start(status: &'static str) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let asked = request(&mut stream);
                let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                if sender.send(asked).is_err() {
                    return;
                }
            }
        });
        Self { port, requests }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn request(&self) -> String {
        self.requests.recv_timeout(std::time::Duration::from_secs(10)).unwrap()
    }
}

/// Head and body of one request.
fn request(stream: &mut std::net::TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap_or(0);
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert!(read > 0, "{text}");
            continue;
        };
        let length = head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if read == 0 || body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
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
        ("audit_log", vec!["/"]),
        ("audit_log", vec!["/etc/passwd/audit.jsonl"]),
        ("redact_secrets", vec!["what"]),
        ("add_date", vec!["what"]),
        ("add_git_diff", vec!["half"]),
        ("add_recent_commits", vec!["none"]),
        ("add_prompt_files", vec![]),
        ("add_prompt_files", vec!["--depth=many", "x"]),
        ("add_context", vec![]),
        ("add_context", vec!["{{ open"]),
        ("load_context_files", vec!["../x"]),
        ("http_post", vec![]),
        ("http_post", vec!["ftp://x"]),
        ("rate_limit", vec![]),
        ("rate_limit", vec!["20"]),
        ("rate_limit", vec!["20/minute", "shoe"]),
        ("max_cost", vec!["free"]),
        ("max_cost", vec!["0"]),
        ("loop_guard", vec!["1"]),
        ("loop_guard", vec!["5", "("]),
        ("safer_shell", vec!["reckless"]),
        ("snapshot", vec!["what"]),
        ("redact_pii", vec!["email", "shoe_size"]),
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

#[test]
fn a_kind_that_is_nearly_one_is_suggested() {
    let error = executor(Event::PreInference, "redact_pii", &["email", "phon"]).unwrap_err();
    let crate::executor::BuildCause::Definition(error) = error.cause else { panic!("{error}") };
    assert_eq!(error.message, "`redact_pii` knows no kind `phon`");
    assert_eq!(error.help.as_deref(), Some("did you mean `phone`?"));
}

#[test]
fn builtins_that_scan_hold_of_a_stream_what_can_still_become_a_match() {
    for (name, args, text, settled) in [
        ("redact_secrets", vec![], "a word, then ", Some(13)),
        ("redact_pii", vec![], "write to jane@exam", Some(9)),
        ("redact_pii", vec!["card"], "write to jane@exam", Some(18)),
        ("block_patterns", vec!["falcon"], "the falc", Some(4)),
        ("allow_tools", vec!["read_file"], "any text at all", Some(15)),
        ("max_iterations", vec!["3"], "any text", None),
    ] {
        let executor = executor(Event::PostInference, name, &args).unwrap();
        let hooks = executor.selected(Event::PostInference, &Input::default());
        let scan = hooks[0].scan();
        assert_eq!(scan.map(|mut scan| scan.push(text, false).upto), settled, "{name}");
        let held = if settled.is_some() { crate::Held::Scan } else { crate::Held::Buffer };
        assert_eq!(hooks[0].policy().text, held, "{name}");
    }
}

#[tokio::test]
async fn an_audit_log_is_begun_with_the_first_event_and_where_it_cannot_be_the_hook_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logs/audit.jsonl");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let executor = executor(Event::PreInference, "audit_log", &[path.to_str().unwrap()]).unwrap();
    assert!(!path.exists(), "nothing has happened yet");
    let ask = async || executor.dispatch(Event::PreInference, &Input::default(), &CancellationToken::new()).await;
    std::fs::remove_dir(path.parent().unwrap()).unwrap();
    assert!(!ask().await.allowed);
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    assert!(ask().await.allowed && path.exists());
}

#[test]
fn nothing_waits_for_the_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let executor = executor(Event::PostInference, "audit_log", &[path.to_str().unwrap()]).unwrap();
    let hooks = executor.selected(Event::PostInference, &Input::default());
    assert_eq!(hooks[0].policy().text, crate::Held::Observe);
}
