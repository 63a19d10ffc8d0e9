//! Hooks in the manner of each system's published examples, in three languages, from that system's own files, unchanged:
//! `tests/published/SYSTEM/LANGUAGE` is a project.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::pages::root;
use crate::support::{Home, Ran, ran};

const LANGUAGES: [&str; 3] = ["sh", "python", "javascript"];

fn published(system: &str, language: &str) -> Home {
    let home = Home::new();
    copy(&root().join("tests/published").join(system).join(language), home.path());
    home
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.as_ref().unwrap().file_name()));
        if from.is_dir() {
            std::fs::create_dir_all(&to).unwrap();
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

/// The same, its hooks approved; nothing of it ran before.
fn trusted(system: &str, language: &str, (event, profile): (&str, &str)) -> Home {
    let home = published(system, language);
    let before = test(&home, profile, event, &["--json"]);
    assert_eq!(before.json()["outcomes"], json!([]), "{language}: {}", before.shown());
    let approved = home.run(&["hooks", "trust", "--yes"]);
    assert_eq!(approved.code, 0, "{language}: {}", approved.shown());
    home
}

fn test(home: &Home, profile: &str, event: &str, args: &[&str]) -> Ran {
    home.run(&[&["hooks", "test", event, "--dialect", profile], args].concat())
}

/// An argument that sets the command of a tool.
fn set(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

#[test]
fn ollama_clis_policy_denies_and_allows() {
    for language in LANGUAGES {
        let home = trusted("ollama-cli", language, ("PreToolUse", "ollama-cli"));
        for (tool, command, allowed) in
            [("bash", "rm -rf build", false), ("bash", "ls", true), ("bash", "dd if=/dev/zero", false)]
        {
            let command = set("command", command);
            let ran = test(&home, "ollama-cli", "PreToolUse", &["--tool", tool, "--set", &command, "--json"]);
            let verdict = ran.json();
            assert_eq!(verdict["allowed"], allowed, "{language} {command}: {}", ran.shown());
            let message = (!allowed).then_some("this command destroys data");
            assert_eq!(verdict["message"].as_str(), message, "{language} {command}");
            assert_eq!(verdict["outcomes"].as_array().unwrap().len(), 1, "{language}");
        }
        let other = test(&home, "ollama-cli", "PreToolUse", &["--tool", "Read", "--json"]).json();
        assert_eq!(other["outcomes"], json!([]), "{language}: its matcher is for another tool");
    }
}

#[test]
fn ollama_clis_logger_is_told_the_documented_payload_and_environment() {
    for language in LANGUAGES {
        let home = trusted("ollama-cli", language, ("PostToolUse", "ollama-cli"));
        let elsewhere = home.path().join("src");
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::create_dir(home.path().join(".git")).unwrap();
        let args = ["hooks", "test", "PostToolUse", "--dialect", "ollama-cli", "--tool", "bash", "--set", "command=ls"];
        // Wherever somebody works in the project, its hooks find it.
        let ran = ran(home.gatehook().args(args).current_dir(elsewhere));
        assert_eq!(ran.code, 0, "{language}: {}", ran.shown());
        let log = std::fs::read_to_string(home.path().join("home/.ollama/tool_logs.jsonl")).unwrap();
        let entry: Value = serde_json::from_str(log.trim()).unwrap_or_else(|error| panic!("{language} {error}: {log}"));
        let dir = home.path().canonicalize().unwrap();
        assert_eq!((&entry["project"], &entry["session"]), (&json!(dir), &json!("sample-session")), "{language}");
        for key in ["hook", "timestamp", "session_id", "model", "provider", "data"] {
            assert!(entry.get(key).is_some(), "{language}: {key} in {log}");
        }
        assert_eq!((&entry["hook"], &entry["tool"]), (&json!("PostToolUse"), &json!("bash")), "{language}");
        assert_eq!((&entry["command"], &entry["data"]["command"]), (&json!("ls"), &json!("ls")), "{language}");
        assert_eq!(entry["result"], entry["data"]["result"], "{language}");
    }
}

/// The body of one request to this listener, which is answered with nothing.
fn one_request(listener: &TcpListener) -> String {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    reader.into_inner().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    String::from_utf8(body).unwrap()
}

#[test]
fn ollama_clis_notification_reaches_its_chat_room() {
    for language in LANGUAGES {
        let home = trusted("ollama-cli", language, ("SessionEnd", "ollama-cli"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = set("webhook_url", &format!("http://{}/room", listener.local_addr().unwrap()));
        let room = std::thread::spawn(move || one_request(&listener));
        let args = ["--set", &url, "--set", r#"summary={"total_tokens": 1234}"#, "--json"];
        let ran = test(&home, "ollama-cli", "SessionEnd", &args);
        let told: Value = serde_json::from_str(&room.join().unwrap()).unwrap();
        assert_eq!(told, json!({"text": "session ended: 1234 tokens"}), "{language}");
        assert_eq!(ran.code, 0, "{language}: {}", ran.shown());
    }
}

#[test]
fn ollms_minimal_and_complete_hook_answer() {
    for language in LANGUAGES {
        let home = trusted("ollm", language, ("pre-tool-call", "ollm"));
        let minimal = test(&home, "ollm", "pre-execution", &["--json"]).json();
        assert_eq!((&minimal["allowed"], &minimal["system_message"]), (&json!(true), &json!("OK")), "{language}");
        for (path, allowed, message) in
            [("src/a.ts", true, "looked at"), ("/etc/passwd", false, "system files are not for tools")]
        {
            let path = set("path", path);
            let ran = test(&home, "ollm", "pre-tool-call", &["--tool", "read-file", "--set", &path, "--json"]);
            let verdict = ran.json();
            assert_eq!(verdict["allowed"], allowed, "{language} {path}: {}", ran.shown());
            let said = if allowed { &verdict["system_message"] } else { &verdict["message"] };
            assert_eq!(*said, message, "{language} {path}");
            assert_eq!(verdict["metadata"]["by"], "complete 2.0.0", "{language}: {}", ran.shown());
        }
    }
}

#[test]
fn docker_agents_validation_and_audit_run_from_its_agent_file() {
    for language in LANGUAGES {
        let home = published("docker-agent", language);
        let agent = ["--config", "agent.yaml", "--json"];
        for (command, allowed, message) in [
            ("ls", true, None),
            ("sudo reboot", false, Some("sudo is not for agents")),
            ("rm -rf /", false, Some("this removes everything")),
        ] {
            let command = set("cmd", command);
            let args = [&agent[..], &["--tool", "shell", "--set", &command]].concat();
            let ran = test(&home, "docker-agent", "pre_tool_use", &args);
            let verdict = ran.json();
            assert_eq!((&verdict["allowed"], verdict["message"].as_str()), (&json!(allowed), message), "{language}");
        }
        let ran = test(&home, "docker-agent", "post_tool_use", &[&agent[..], &["--tool", "fetch"]].concat());
        assert_eq!(ran.code, 0, "{language}: {}", ran.shown());
        let log = std::fs::read_to_string(home.path().join("audit.log")).unwrap();
        assert_eq!(log, "sample-session | fetch\n", "{language}");
    }
}

#[test]
fn docker_agents_hooks_run_from_the_users_own_files_too() {
    let home = published("docker-agent", "sh");
    let scripts = home.path().join("scripts");
    let hook = format!("type: command\n          command: {}/validate.sh", scripts.display());
    let group = format!("pre_tool_use:\n      matcher: shell\n      hooks:\n          {hook}\n");
    let settings = format!("aliases: {{}}\nsettings:\n  theme: dark\n  hooks:\n    {group}");
    home.file("home/.config/cagent/config.yaml", &settings);
    home.file("home/.config/cagent/hooks.d/10-audit.yaml", "session_start: {type: command, command: 'echo hello'}\n");
    let denied = home.run(&["hooks", "test", "pre_tool_use", "--tool", "shell", "--set", "cmd=sudo ls", "--json"]);
    let verdict = denied.json();
    let message = (&verdict["allowed"], &verdict["message"]);
    assert_eq!(message, (&json!(false), &json!("sudo is not for agents")), "{}", denied.shown());
    let context = home.run(&["hooks", "test", "session_start", "--json"]).json();
    assert_eq!(context["additional_context"], "hello");
}

/// A webhook that listens, and ends with it.
struct Webhook {
    child: Option<Child>,
    port: u16,
}

impl Webhook {
    fn start(language: &str) -> Self {
        let folder = root().join("tests/published/ollama-webhook").join(language);
        let (program, file) = match language {
            "python" => ("python3", "server.py"),
            "javascript" => ("node", "server.js"),
            _ => return Self { child: None, port: inetd(folder.join("handler.sh").to_str().unwrap().to_owned()) },
        };
        let mut child = Command::new(program).arg(folder.join(file)).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child: Some(child), port: line.trim().parse().expect(&line) }
    }
}

/// Gives each connection to a script as its input and output.
fn inetd(script: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let given = |stream: &TcpStream| Stdio::from(OwnedFd::from(stream.try_clone().unwrap()));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            Command::new("sh").arg(&script).stdin(given(&stream)).stdout(given(&stream)).status().unwrap();
        }
    });
    port
}

impl Drop for Webhook {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn ollamas_webhook_allows_denies_asks_and_modifies() {
    for language in LANGUAGES {
        let (home, webhook) = (Home::new(), Webhook::start(language));
        for (prompt, code, verb, shown) in [
            ("hello", 0, "allow", ""),
            ("the launch codes", 1, "deny", "that is secret"),
            ("transfer all of it", 0, "ask", "a person has to agree"),
            ("my password is hunter2", 0, "modify", "my password is ***"),
        ] {
            let mut command = home.gatehook();
            command.args(["hooks", "test", "pre_inference", "--set", &set("prompt", prompt), "--json"]);
            command.env("OLLAMA_HOOK_PRE_INFERENCE_URL", format!("http://127.0.0.1:{}/pre", webhook.port));
            command.env("OLLAMA_HOOK_HEADERS", "Authorization: Bearer t0ken");
            let ran = ran(&mut command);
            assert_eq!(ran.code, code, "{language} {prompt}: {}", ran.shown());
            assert_eq!(ran.json()["verb"], verb, "{language} {prompt}: {}", ran.shown());
            assert!(ran.out.contains(shown), "{language} {prompt}: {}", ran.shown());
        }
    }
}
