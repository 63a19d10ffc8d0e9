//! `gatehook hooks replay` and `hooks explain`: what other hooks would say, and which of them would run.

use serde_json::{Value, json};

use crate::support::{Home, Ran, shows};

fn blocking(words: &str) -> String {
    format!(
        "hooks:\n  user_prompt_submit:\n    - {{ name: words, type: command, command: \"grep -q '{words}' && exit 2; exit 0\" }}\n"
    )
}

const EVENTS: &str = r#"{"event": "user_prompt_submit", "input": {"prompt": "an apple"}, "verdict": "deny"}
{"event": "user_prompt_submit", "input": {"prompt": "a pear"}, "verdict": {"verb": "allow", "rewritten": []}}

{"event": "user_prompt_submit", "input": {"prompt": "a plum"}}
"#;

fn replay(home: &Home, args: &[&str]) -> Ran {
    home.run(&[&["hooks", "replay"], args].concat())
}

#[test]
fn events_of_a_file_are_held_against_the_hooks_as_they_are_now() {
    let home = Home::new();
    home.file("events.jsonl", EVENTS);
    home.file("apple.yaml", &blocking("apple"));
    home.file("pear.yaml", &blocking("pear"));
    shows!("replay_same", replay(&home, &["events.jsonl", "--config", "apple.yaml"]));
    shows!("replay_differs", replay(&home, &["events.jsonl", "--config", "pear.yaml"]));
    let said = replay(&home, &["events.jsonl", "--config", "pear.yaml", "--json"]).json();
    let results: Vec<&str> =
        said["results"].as_array().unwrap().iter().map(|it| it["result"].as_str().unwrap()).collect();
    assert_eq!((results, &said["differ"], &said["events"]), (vec!["differs", "differs", "new"], &2.into(), &3.into()));
    assert_eq!(said["results"][0]["then"], json!({"verb": "deny", "rewritten": []}));
    assert_eq!(said["results"][0]["now"], json!({"verb": "allow", "rewritten": []}));
    assert_eq!(home.run_with_input(&["hooks", "replay", "-", "--config", "apple.yaml"], EVENTS).code, 0);
}

#[test]
fn recorded_dispatches_are_replayed_by_number_or_from_an_export() {
    let home = Home::new();
    home.file("home/.config/gatehook/gatehook.yaml", &blocking("apple"));
    for prompt in ["an apple", "a pear"] {
        home.run(&["hooks", "test", "user_prompt_submit", "--set", &format!("prompt={prompt}")]);
    }
    assert_eq!(replay(&home, &["--trace", "1", "2"]).shown(), "exit 0\n--- stderr\n2 events: 0 differ\n");
    home.file("export.json", &home.run(&["hooks", "trace", "--json"]).out);
    assert_eq!(replay(&home, &["export.json"]).code, 0);
    home.file("home/.config/gatehook/gatehook.yaml", &blocking("pear"));
    for args in [&["--trace", "1", "2"][..], &["export.json"]] {
        let said = replay(&home, args);
        assert!(said.code == 1 && said.err.contains("2 events: 2 differ"), "{}", said.shown());
    }
    let kept = home.run(&["hooks", "trace", "--json"]).json();
    assert_eq!(kept.as_array().unwrap().len(), 2, "to replay is not to dispatch: nothing of it is recorded");
    assert_eq!(replay(&home, &["--trace", "77"]).code, 2);
}

#[test]
fn what_was_not_kept_of_an_input_is_not_held_against_the_hooks() {
    let home = Home::new();
    let redacting = "hooks: { pre_tool_use: [{ type: builtin, command: redact_secrets }] }\n";
    home.file("home/.config/gatehook/gatehook.yaml", redacting);
    let key = format!("{}_{}", "ghp", "x7Qm2Zp9Lk4Vt8Rw3Ns6Yb1Hd5Jf0GcAe2Uo");
    home.run(&["hooks", "test", "pre_tool_use", "--set", &format!("cmd=curl -u {key}")]);
    let said = replay(&home, &["--trace", "1"]);
    assert!(said.code == 0 && said.err.contains("0 differ, 1 cannot be compared"), "{}", said.shown());
    assert!(said.out.contains("modify (tool_input)") && said.out.contains("unsure"), "{}", said.shown());
    let denying = "hooks: { pre_tool_use: [{ type: builtin, command: allow_tools, args: [nothing] }] }\n";
    home.file("home/.config/gatehook/gatehook.yaml", denying);
    assert_eq!(replay(&home, &["--trace", "1"]).code, 1, "stricter is what no missing secret makes it");
}

#[test]
fn observers_are_not_shown_what_happened_before() {
    let home = Home::new();
    let observing = "hooks: { user_prompt_submit: [{ type: command, command: 'touch seen', async: true }] }\n";
    home.file("policy.yaml", observing);
    home.file("events.jsonl", EVENTS);
    replay(&home, &["events.jsonl", "--config", "policy.yaml"]);
    assert!(!home.path().join("seen").exists());
}

#[test]
fn what_is_no_record_is_wrong_usage_and_nothing_runs() {
    let home = Home::new();
    home.file("policy.yaml", "hooks: { stop: [{ type: command, command: 'touch ran' }] }\n");
    let good = r#"{"event": "stop", "input": {}}"#;
    let deep = "[".repeat(100_000);
    for (text, what) in [
        ("{\"event\": \"stop\"", "cannot be replayed: EOF"),
        ("{\"event\": \"stopp\"}", "there is no event `stopp`"),
        ("{\"input\": {}}", "record 2 has no `event`"),
        ("{\"event\": \"stop\", \"input\": []}", "the input of record 2 is no object"),
        ("{\"event\": \"stop\", \"input\": {\"cwd\": 5}}", "record 2: the input's field `cwd` cannot be read"),
        ("3", "record 2 has no `event`"),
        ("{\"event\": \"stop\", \"verdict\": \"no\"}", "the verdict of record 2 is none"),
        ("{\"event\": \"stop\", \"cut\": 1}", "record 2: `cut` or `secrets` cannot be read"),
        (&deep, "cannot be replayed: recursion limit"),
    ] {
        home.file("events.jsonl", &format!("{good}\n{text}\n"));
        let said = replay(&home, &["events.jsonl", "--config", "policy.yaml"]);
        let words = said.err.split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
        assert!(said.code == 2 && words.contains(what), "{what}: {}", said.shown());
    }
    assert!(!home.path().join("ran").exists());
    assert_eq!(replay(&home, &["none.jsonl"]).code, 2);
    assert_eq!(replay(&home, &[]).code, 2);
}

const POLICY: &str = r#"hooks:
  pre_tool_use:
    - matcher: "shell|bash"
      hooks:
        - { name: guard, type: command, command: ./guard.sh }
        - { name: removals, type: command, command: ./guard.sh, when: { tool_input.cmd: "rm .*" } }
        - { name: audit, type: command, command: ./audit.sh, async: true }
    - matcher: read_.*
      hooks:
        - { name: reads, type: command, command: ./reads.sh }
    - hooks:
        - { name: guard, type: command, command: ./guard.sh }
        - { type: builtin, command: redact_secrets }
"#;

#[test]
fn it_is_explained_which_hooks_would_run_and_why_the_others_would_not() {
    let home = Home::new();
    home.file("policy.yaml", POLICY);
    let explain = |args: &[&str]| home.run(&[&["hooks", "explain", "--config", "policy.yaml"], args].concat());
    shows!("explain", explain(&["pre_tool_use", "--tool", "shell", "--set", "cmd=ls"]));
    let said = explain(&["pre_tool_use", "--tool", "read_file", "--json"]).json();
    let hooks: Vec<(&str, Option<u64>)> = said["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["turn"].as_u64()))
        .collect();
    let expected = [
        ("guard", None),
        ("removals", None),
        ("audit", None),
        ("reads", Some(1)),
        ("guard", Some(2)),
        ("redact_secrets", Some(3)),
    ];
    assert_eq!((hooks, &said["mode"]), (expected.to_vec(), &Value::from("in_turn")));
    shows!("explain_none", explain(&["stop"]));
    assert!(!home.path().join("home/.local").exists(), "to explain is not to dispatch");
}

#[test]
fn a_hook_that_is_not_trusted_is_said_not_to_run() {
    let home = Home::new();
    home.file("gatehook.yaml", "hooks: { stop: [{ name: theirs, type: command, command: ./theirs.sh }] }\n");
    let said = home.run(&["hooks", "explain", "stop", "--json"]).json();
    let hook = &said["hooks"][0];
    assert_eq!((&hook["name"], &hook["runs"]), (&"theirs".into(), &false.into()), "{said}");
    assert!(hook["why"].as_str().unwrap().starts_with("not in force: "), "{said}");
}
