use crate::support::{Home, ran, shows};

const POLICY: &str = r#"hooks:
  pre_inference:
    - { type: builtin, command: redact_secrets }
    - { name: words, type: builtin, command: block_patterns, args: ["(?i)launch codes"] }
  pre_tool_use:
    - matcher: "shell|bash"
      preempt_yolo: true
      hooks:
        - { type: command, command: ./guard.sh }
  post_inference:
    - { type: builtin, command: redact_secrets }
    - { name: judge, type: command, command: ./judge.sh, stream: { mode: window, thinking: observe } }
"#;

#[test]
fn the_list_names_every_hook_and_its_place() {
    let home = Home::new();
    home.file("policy.yaml", POLICY);
    shows!("list", home.run(&["hooks", "list", "policy.yaml"]));
}

#[test]
fn to_look_at_hooks_leaves_nothing_behind() {
    let home = Home::new();
    let audit = "{ type: builtin, command: audit_log, args: [audit.jsonl] }";
    home.file("policy.yaml", &format!("hooks: {{ stop: [{audit}] }}"));
    for command in ["list", "check"] {
        assert_eq!(home.run(&["hooks", command, "policy.yaml"]).code, 0);
        assert!(!home.path().join("audit.jsonl").exists(), "{command}");
    }
    assert_eq!(home.run(&["hooks", "test", "stop", "--config", "policy.yaml"]).code, 0);
    assert!(home.path().join("audit.jsonl").exists());
}

#[test]
fn as_json_the_list_says_the_same() {
    let home = Home::new();
    home.file("policy.yaml", POLICY);
    let ran = home.run(&["hooks", "list", "--json", "policy.yaml"]);
    let rows = ran.json();
    assert_eq!((ran.code, rows.as_array().unwrap().len()), (0, 5));
    assert_eq!(
        rows[1],
        serde_json::json!({
            "event": "pre_inference", "matcher": "", "name": "words", "type": "builtin", "source": "user",
            "stream": null, "profile": "native", "file": "policy.yaml", "line": 4, "in_force": true, "state": "in_force",
            "why": null, "hash": null,
        })
    );
    assert_eq!(rows[3]["stream"], serde_json::json!({"text": "window", "thinking": "observe"}));
}

#[test]
fn without_a_file_the_list_is_what_serve_would_run_and_what_the_project_has() {
    let home = Home::new();
    home.file("gatehook.yaml", POLICY);
    home.file(
        "home/.config/gatehook/gatehook.toml",
        "[[hooks.pre_inference]]\ntype = \"builtin\"\ncommand = \"redact_secrets\"\n",
    );
    let named = home
        .file("named.yaml", "hooks: { post_inference: [{ type: builtin, command: redact_secrets, name: named }] }\n");
    let mut command = home.gatehook();
    command.args(["hooks", "list", "--json"]);
    command.env("GATEHOOK_CONFIG", named).env("OLLAMA_HOOK_PRE_INFERENCE_URL", "http://127.0.0.1:9/pre");
    let ran = ran(&mut command);
    let rows = ran.json();
    let (in_force, waiting): (Vec<_>, Vec<_>) =
        rows.as_array().unwrap().iter().partition(|row| row["in_force"].as_bool().unwrap());
    assert!(waiting.len() == 5 && waiting.iter().all(|row| row["source"] == "workspace"), "{}", ran.shown());
    let rows: Vec<(&str, Option<u64>)> =
        in_force.iter().map(|row| (row["name"].as_str().unwrap(), row["line"].as_u64())).collect();
    assert_eq!(rows, [("redact_secrets", Some(2)), ("webhook", None), ("named", Some(1))], "{}", ran.shown());
}

#[test]
fn no_hook_is_said_to_be_none() {
    let home = Home::new();
    shows!("list_none", home.run(&["hooks", "list"]));
    assert_eq!(home.run(&["hooks", "list", "--json"]).out, "[]\n");
}

#[test]
fn a_list_of_a_bad_file_is_a_configuration_error() {
    let home = Home::new();
    home.file("bad.yaml", "hooks: 3\n");
    assert_eq!(home.run(&["hooks", "list", "bad.yaml"]).code, 3);
}
