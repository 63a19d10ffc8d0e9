use crate::support::{Home, ran, shows};

const BAD_YAML: &str = r#"# Everything is wrong here.
upstreams:
  local: { kind: olama, url: not-a-url }
limit: { idle: 3 }
limits: { idle: soon, request_body: -1 }
hooks:
  pre_tool_usee: []
  pre_tool_use:
    - matcher: "a("
      hooks:
        - { type: comand, command: ./x.sh }
        - { type: command }
        - { type: command, command: ./x.sh, timeout: 0, colour: red }
  post_inference:
    - { type: builtin, command: redact_secret }
    - type: webhook
      url: "ftp://user:hunter2@x"
      headers: { "bad header": hunter2 }
"#;

const BAD_JSON: &str = r#"{
  "hooks": {
    "pre_tool_use": [{"matcher": "*", "matcher": "shell", "hooks": []}],
    "pre_inference": {"type": "command", "command": "./x.sh", "on_error": "explode"}
  }
}
"#;

const BAD_TOML: &str = r#"workers = "many"

[[hooks.pre_inference]]
type = "webhook"
url = 3
timeout = -1
"#;

const GOOD: &str = "hooks:\n  pre_inference:\n    - { type: builtin, command: redact_secrets }\n";

#[test]
fn every_problem_of_a_yaml_file_is_shown_at_its_place() {
    let home = Home::new();
    home.file("bad.yaml", BAD_YAML);
    let ran = home.run(&["hooks", "check", "bad.yaml"]);
    shows!("check_yaml", ran);
    assert!(!ran.err.contains("hunter2"), "a secret is shown: {}", ran.err);
}

#[test]
fn every_problem_of_a_json_file_is_shown_at_its_place() {
    let home = Home::new();
    home.file("bad.json", BAD_JSON);
    shows!("check_json", home.run(&["hooks", "check", "bad.json"]));
}

#[test]
fn every_problem_of_a_toml_file_is_shown_at_its_place() {
    let home = Home::new();
    home.file("bad.toml", BAD_TOML);
    shows!("check_toml", home.run(&["hooks", "check", "bad.toml"]));
}

#[test]
fn hooks_that_cannot_be_built_are_all_shown() {
    let home = Home::new();
    home.file(
        "bad.yaml",
        r#"hooks:
  post_inference:
    - { type: builtin, command: block_patterns, args: ["("] }
  pre_inference:
    - { type: builtin, command: redact_secrets, args: [x] }
"#,
    );
    shows!("check_build", home.run(&["hooks", "check", "bad.yaml"]));
}

#[test]
fn problems_of_several_files_are_shown_together() {
    let home = Home::new();
    home.file("one.yaml", "hooks: 3\n");
    home.file("two.toml", "workers = 0\n");
    home.file("three.yaml", "hooks: { pre_inference: [{ type: builtin, command: redact_secrets, args: [x] }] }\n");
    shows!("check_files", home.run(&["hooks", "check", "one.yaml", "two.toml", "none.json", "three.yaml"]));
}

#[test]
fn a_file_in_order_is_said_to_be_so() {
    let home = Home::new();
    home.file("good.yaml", GOOD);
    shows!("check_good", home.run(&["hooks", "check", "good.yaml"]));
}

#[test]
fn as_json_a_check_says_place_kind_and_remedy() {
    let home = Home::new();
    home.file("good.yaml", GOOD);
    home.file("bad.yaml", "hooks:\n  pre_tool_usee: []\n");
    let good = home.run(&["hooks", "check", "--json", "good.yaml"]);
    assert_eq!((good.code, good.json()), (0, serde_json::json!({"valid": true, "hooks": 1, "problems": []})));
    let bad = home.run(&["hooks", "check", "--json", "bad.yaml"]);
    assert_eq!((bad.code, bad.err.as_str()), (1, ""));
    assert_eq!(
        bad.json(),
        serde_json::json!({"valid": false, "problems": [{
            "message": "there is no event `pre_tool_usee`", "kind": "unknown_event", "path": "pre_tool_usee",
            "help": "did you mean `pre_tool_use`?", "file": "bad.yaml", "line": 2, "column": 3,
        }]})
    );
}

#[test]
fn without_a_file_what_serve_would_read_and_the_projects_files_are_checked() {
    let home = Home::new();
    home.file("home/.config/gatehook/gatehook.yaml", GOOD);
    home.file("home/.config/gatehook/hooks.d/10-more.json", "{\"hooks\": {}}");
    let good = home.run(&["hooks", "check"]);
    assert_eq!((good.code, good.err.as_str()), (0, "2 files in order: 1 hook\n"));
    let bad = ran(home.gatehook().args(["hooks", "check"]).env("OLLAMA_HOOK_TIMEOUT", "soon"));
    assert_eq!(bad.code, 1, "{}", bad.shown());
    assert!(bad.err.contains("OLLAMA_HOOK_TIMEOUT: `soon`"), "{}", bad.err);
    home.file("gatehook.yaml", GOOD);
    let with_project = home.run(&["hooks", "check"]);
    let expected =
        "1 hook is not in force; `gatehook hooks trust` shows what it would run\n3 files in order: 2 hooks\n";
    assert_eq!((with_project.code, with_project.err.as_str()), (0, expected));
    home.file("gatehook.yaml", "hooks: 3\n");
    assert_eq!(home.run(&["hooks", "check"]).code, 1);
}

#[test]
fn a_file_cannot_write_to_a_terminals_controls() {
    let home = Home::new();
    home.file("bad.yaml", "\"a\\e[2Jb\": 1\n");
    home.file("raw.json", "{\"a\u{1b}[2Jb\": 1}\n");
    for file in ["bad.yaml", "raw.json"] {
        let ran = home.run(&["hooks", "check", file]);
        assert_eq!(ran.code, 1, "{}", ran.shown());
        assert!(!ran.err.contains('\u{1b}'), "{file}: {}", ran.err);
    }
}

#[test]
fn an_unknown_profile_is_wrong_usage() {
    let home = Home::new();
    home.file("good.yaml", GOOD);
    shows!("check_profile", home.run(&["hooks", "check", "--dialect", "cursor", "good.yaml"]));
}

#[test]
fn a_file_of_docker_agent_is_checked_as_one() {
    let home = Home::new();
    home.file(
        "agent.yaml",
        "hooks:\n  pre_tool_use:\n    - matcher: shell\n      hooks:\n        - { type: command, command: ./x.sh }\n",
    );
    let ran = home.run(&["hooks", "check", "--dialect", "docker-agent", "agent.yaml"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "1 file in order: 1 hook\n"));
}
