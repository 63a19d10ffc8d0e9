//! `gatehook serve` while it serves.

use rustix::process::Signal;

use crate::support::{Home, Serve};

const POLICY: &str = r#"upstreams:
  local: { kind: openai, url: "replay:" }
hooks:
  pre_inference:
    - { type: builtin, command: redact_secrets }
    - { name: words, type: builtin, command: block_patterns, args: ["(?i)launch codes"] }
"#;

fn serve(args: &[&str]) -> Serve {
    let home = Home::new();
    home.file("policy.yaml", POLICY);
    Serve::start(&home, &[&["--config", "policy.yaml"], args].concat())
}

#[test]
fn it_serves_what_hooks_allow_and_refuses_what_they_deny() {
    let serve = serve(&[]);
    assert_eq!(serve.get("/healthz"), (200, "ok\n".to_owned()));
    let (status, body) = serve.chat("hello");
    assert!(status == 200 && body.contains("hello"), "{status} {body}");
    let (status, body) = serve.chat(concat!("AKIA", "Z7RQ4N2VXK5TJ3WP"));
    assert!(status == 200 && body.contains("[REDACTED]"), "{status} {body}");
    let (status, body) = serve.chat("the launch codes");
    assert!(status == 400 && body.contains("hook_denied"), "{status} {body}");
}

#[test]
fn a_gateway_without_any_configuration_serves() {
    let mut serve = Serve::start(&Home::new(), &["--upstream", "replay:"]);
    serve.line("no hook is configured: everything passes");
    assert_eq!(serve.chat("hello").0, 200);
}

#[test]
fn told_to_stop_it_ends_with_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let serve = serve(&[]);
        assert_eq!(serve.chat("hello").0, 200);
        serve.signal(signal);
        let (code, log) = serve.ended();
        assert_eq!(code, 0, "{signal:?}: {log}");
        assert!(log.ends_with("stopped"), "{signal:?}: {log}");
    }
}

#[test]
fn verbose_logs_show_every_hook_and_none_of_its_text() {
    let mut serve = serve(&["-v"]);
    assert_eq!(serve.chat("the launch codes of xyzzy").0, 400);
    let line = serve.line("hook=words");
    for part in ["event=\"pre_inference\"", "verdict=\"deny\"", "duration=", "request_id="] {
        assert!(line.contains(part), "{part} is missing: {line}");
    }
    serve.signal(Signal::TERM);
    let (_, log) = serve.ended();
    assert!(!log.contains("xyzzy"), "{log}");
}

#[test]
fn without_verbose_no_dispatch_is_logged() {
    let serve = serve(&[]);
    assert_eq!(serve.chat("hello").0, 200);
    serve.signal(Signal::TERM);
    let (_, log) = serve.ended();
    assert!(!log.contains("a hook ran"), "{log}");
}

#[test]
fn logs_as_json_are_one_object_a_line() {
    let home = Home::new();
    let mut command = home.gatehook();
    command.args(["serve", "--json", "--check", "--upstream", "replay:"]);
    assert_eq!(crate::support::ran(&mut command).code, 0);
    let (_, log) = json_log(&home);
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["level"].is_string() && line["message"].is_string(), "{line}");
    }
}

fn json_log(home: &Home) -> (i32, String) {
    let serve = Serve::start(home, &["--json", "--upstream", "replay:"]);
    serve.signal(Signal::TERM);
    serve.ended()
}

/// Each exchange takes two sockets, and the usual soft limit is for other programs.
#[test]
fn it_may_have_as_many_files_open_as_it_is_allowed_to() {
    let home = Home::new();
    let binary = env!("CARGO_BIN_EXE_gatehook");
    let line = format!("ulimit -S -n 256; exec '{binary}' serve --listen 127.0.0.1:0 --upstream replay:");
    let serve = Serve::start_command(home.command("sh").args(["-c", &line]));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", serve.number())).unwrap();
    let row = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let [soft, hard] = [3, 4].map(|column| row.split_whitespace().nth(column).unwrap().parse().unwrap_or(u64::MAX));
    assert_eq!(soft, hard.min(65_536), "{row}");
}
