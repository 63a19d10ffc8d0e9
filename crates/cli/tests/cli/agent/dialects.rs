//! The three contracts of other programs: their hooks, from their own files, hear the agent and are obeyed.

use std::fs;

use serde_json::{Value, json};

use super::driven::{Driven, Drove, call, text};

/// A script that writes down what it is told, and then answers what a file of its name says.
const SCRIPT: &str = "#!/bin/sh\nread -r line\nprintf '%s\\n' \"$line\" >> \"$HOME/heard.jsonl\"\ncat \"$HOME/answer.$1\" \
                      2>/dev/null || cat \"$HOME/answer\"\n";

/// A system, its file, and the words of its events in a run that reads a file.
struct System {
    file: &'static str,
    /// The file's text, out of the names of events.
    text: fn(&[&str]) -> String,
    /// Where a payload says its event.
    event: fn(&Value) -> Option<&str>,
    /// Its events in a run with one call of a tool.
    run: &'static [&'static str],
    /// Its word for a call that is about to run, a no to it, and what it says when it has no objection.
    guard: (&'static str, Value, Value),
    /// Whether its hooks must be approved.
    trusted: bool,
}

fn systems() -> Vec<System> {
    vec![
        System {
            file: ".ollama/settings.json",
            text: |events| {
                let hook = |event: &&str| {
                    (
                        event.to_string(),
                        json!([{"hooks": [{"type": "command", "command": format!("sh {SH} {event}")}]}]),
                    )
                };
                let hooks: serde_json::Map<_, _> = events.iter().map(hook).collect();
                json!({"hooks": hooks}).to_string()
            },
            event: |payload| payload["hook"].as_str(),
            run: &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"],
            guard: ("PreToolUse", json!({"permissionDecision": "deny", "reason": "hands off"}), json!({})),
            trusted: true,
        },
        System {
            file: "home/.ollm/hooks/all.json",
            text: |events| {
                let hook = |event: &&str| {
                    let args = [SH.to_owned(), event.to_string()];
                    (event.to_string(), json!([{"id": *event, "name": *event, "command": "sh", "args": args}]))
                };
                let hooks: serde_json::Map<_, _> = events.iter().map(hook).collect();
                json!({"hooks": hooks}).to_string()
            },
            event: |payload| payload["event"].as_str(),
            run: &[
                "on-session-start",
                "pre-execution",
                "post-execution",
                "pre-tool-call",
                "post-tool-call",
                "pre-execution",
                "post-execution",
                "on-session-end",
            ],
            guard: ("pre-tool-call", json!({"allow": false, "message": "hands off"}), json!({"allow": true})),
            trusted: false,
        },
        System {
            file: "home/.config/cagent/hooks.d/all.yaml",
            text: |events| {
                let hook = |event: &&str| {
                    let group = json!({"hooks": [{"type": "command", "command": format!("sh {SH} {event}")}]});
                    let tool = event.contains("tool") && *event != "on_tool_approval_decision";
                    let hook = json!({"type": "command", "command": format!("sh {SH} {event}")});
                    (event.to_string(), if tool { json!([group]) } else { json!([hook]) })
                };
                let hooks: serde_json::Map<_, _> = events.iter().map(hook).collect();
                json!({"hooks": hooks}).to_string()
            },
            event: |payload| payload["hook_event_name"].as_str(),
            run: &[
                "session_start",
                "user_prompt_submit",
                "turn_start",
                "before_llm_call",
                "after_llm_call",
                "tool_input_transform",
                "tool_guard",
                "on_tool_approval_decision",
                "tool_response_transform",
                "post_tool_use",
                "turn_end",
                "turn_start",
                "before_llm_call",
                "after_llm_call",
                "stop",
                "turn_end",
                "session_end",
            ],
            guard: ("tool_guard", json!({"decision": "block", "reason": "hands off"}), json!({})),
            trusted: false,
        },
    ]
}

/// Where the script is, from the folder that hooks run in.
const SH: &str = "$HOME/hook.sh";

fn drove(system: &System, answer: Option<&Value>) -> (Drove, Vec<Value>) {
    let mut events = system.run.to_vec();
    events.sort_unstable();
    events.dedup();
    let driven = Driven::new([call("read", json!({"path": "a.txt"})), text("Done.")]).file("a.txt", "the file's text");
    let home = driven.home.path().join("home");
    let text = (system.text)(&events).replace(SH, &home.join("hook.sh").display().to_string());
    let (guard, _, fine) = &system.guard;
    let mut driven = driven.silent().file(system.file, &text).file("home/hook.sh", SCRIPT);
    driven = driven.file("home/answer", &fine.to_string());
    if let Some(answer) = answer {
        driven = driven.file(&format!("home/answer.{guard}"), &answer.to_string());
    }
    if system.trusted {
        let approved = driven.home.run(&["hooks", "trust", "--yes"]);
        assert_eq!(approved.code, 0, "{}", approved.shown());
    }
    let drove = driven.run_again(&["run", "Read a.txt.", "--json"]);
    let heard = fs::read_to_string(home.join("heard.jsonl")).unwrap_or_default();
    (drove, heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn each_systems_hooks_hear_a_run_in_order() {
    for system in systems() {
        let (drove, heard) = drove(&system, None);
        assert_eq!((drove.ran.code, drove.text()), (0, "Done."), "{}: {}", system.file, drove.ran.shown());
        let events: Vec<_> = heard.iter().filter_map(system.event).collect();
        assert_eq!(events, system.run, "{}", system.file);
    }
}

#[test]
fn each_systems_no_is_obeyed() {
    for system in systems() {
        let (drove, _) = drove(&system, Some(&system.guard.1));
        assert_eq!((drove.ran.code, drove.text()), (0, "Done."), "{}: {}", system.file, drove.ran.shown());
        let result = drove.results()[0].to_string();
        assert!(result.contains("hands off") && !result.contains("the file's text"), "{}: {result}", system.file);
    }
}
