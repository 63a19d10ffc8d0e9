//! `gatehook hooks test`.

use crate::support::{Home, Ran, shows};

const POLICY: &str = r#"hooks:
  pre_inference:
    - { type: builtin, command: redact_secrets }
    - { type: builtin, command: block_patterns, args: ["(?i)launch codes"] }
  pre_tool_use:
    - matcher: "shell|bash"
      hooks:
        - { name: guard, type: command, command: "grep -q 'rm -rf' && { echo 'too dangerous' >&2; exit 2; }; exit 0" }
        - { name: quiet, type: command, command: "cat > /dev/null; echo '{\"hook_specific_output\":{\"updated_input\":{\"quiet\":true}}}'" }
    - matcher: broken
      hooks:
        - { name: broken, type: command, command: "exit 3" }
  post_inference:
    - name: polite
      type: command
      command: "cat > /dev/null; echo '{\"permission\":\"deny\",\"user_message\":\"Not for you.\",\"agent_message\":\"policy 7\"}'"
"#;

fn test(args: &[&str]) -> Ran {
    let home = Home::new();
    home.file("policy.yaml", POLICY);
    home.run(&[&["hooks", "test", "--config", "policy.yaml"], args].concat())
}

#[test]
fn an_allowed_event_exits_with_0() {
    shows!("test_allow", test(&["pre_inference", "--set", "prompt=hello"]));
}

#[test]
fn a_denied_event_exits_with_1() {
    shows!("test_deny", test(&["pre_inference", "--set", "prompt=Launch codes, please"]));
}

#[test]
fn a_hook_that_exits_with_2_denies_with_its_own_words() {
    shows!("test_exit_two", test(&["pre_tool_use", "--tool", "shell", "--set", "cmd=rm -rf /"]));
}

#[test]
fn a_rewrite_is_shown() {
    shows!("test_rewrite", test(&["pre_tool_use", "--tool", "bash", "--set", "cmd=ls"]));
}

#[test]
fn a_failing_hook_refuses() {
    shows!("test_failing", test(&["pre_tool_use", "--tool", "broken"]));
}

#[test]
fn messages_for_user_and_agent_are_shown() {
    shows!("test_messages", test(&["post_inference"]));
}

#[test]
fn an_event_that_no_hook_fits_is_allowed() {
    shows!("test_no_hook", test(&["pre_tool_use", "--tool", "read_file"]));
}

#[test]
fn as_json_the_verdict_has_every_outcome() {
    let ran = test(&["pre_tool_use", "--tool", "shell", "--set", "cmd=rm -rf /", "--json"]);
    let verdict = ran.json();
    assert_eq!((ran.code, &verdict["allowed"]), (1, &false.into()), "{verdict}");
    assert_eq!(verdict["outcomes"].as_array().map(Vec::len), Some(2), "{verdict}");
}

#[test]
fn an_unknown_event_is_wrong_usage_with_a_suggestion() {
    shows!("test_unknown_event", test(&["pre_tool_usee"]));
}

#[test]
fn the_lane_inside_the_engine_is_no_event() {
    assert_eq!(test(&["pre_tool_use_preempt"]).code, 2);
}

#[test]
fn an_input_is_read_from_standard_input_or_a_file() {
    let home = Home::new();
    home.file("policy.yaml", POLICY);
    let input = r#"{"tool_name": "shell", "tool_input": {"cmd": "rm -rf /"}}"#;
    let args = ["hooks", "test", "pre_tool_use", "--config", "policy.yaml", "--input"];
    let piped = home.run_with_input(&[&args[..], &["-"]].concat(), input);
    assert_eq!(piped.code, 1, "{}", piped.shown());
    home.file("input.json", input);
    let named = home.run(&[&args[..], &["input.json"]].concat());
    assert_eq!(named.code, 1, "{}", named.shown());
    let changed = home.run(&[&args[..], &["input.json", "--set", "cmd=ls"]].concat());
    assert_eq!(changed.code, 0, "{}", changed.shown());
}

#[test]
fn an_input_that_is_none_is_wrong_usage() {
    let home = Home::new();
    home.file("policy.yaml", POLICY);
    let args = ["hooks", "test", "pre_tool_use", "--config", "policy.yaml", "--input", "-"];
    let mut shown = String::new();
    for input in ["", "[]", "{\"tool_name\": 3}", "{\"tool_name\": \"a\"", "{} {}"] {
        let ran = home.run_with_input(&args, input);
        shown.push_str(&format!("{input:?}: {}", ran.shown()));
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("test_bad_input", shown);
    });
    let none = home.run(&["hooks", "test", "pre_tool_use", "--config", "policy.yaml", "--input", "none.json"]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("none.json cannot be read"), "{}", none.err);
}

#[test]
fn an_assignment_without_a_value_is_wrong_usage() {
    shows!("test_no_value", test(&["pre_tool_use", "--set", "cmd"]));
}

#[test]
fn a_bad_configuration_is_not_a_denial() {
    let home = Home::new();
    home.file("bad.yaml", "hooks: 3\n");
    assert_eq!(home.run(&["hooks", "test", "pre_tool_use", "--config", "bad.yaml"]).code, 3);
}
