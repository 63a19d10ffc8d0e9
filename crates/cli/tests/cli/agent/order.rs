//! Which events come, and in which order.

use serde_json::json;

use super::driven::{Driven, call, text};

const BEGIN: [&str; 3] = ["setup", "session_start", "user_prompt_submit"];
const ASK: [&str; 3] = ["turn_start", "before_llm_call", "pre_inference"];
const ANSWERED: [&str; 2] = ["post_inference", "after_llm_call"];
const CALL: [&str; 6] = [
    "tool_input_transform",
    "tool_guard",
    "pre_tool_use",
    "on_tool_approval_decision",
    "tool_response_transform",
    "post_tool_use",
];

fn expected(parts: &[&[&'static str]]) -> Vec<&'static str> {
    parts.concat()
}

#[test]
fn a_run_without_tools_raises_each_event_once_in_order() {
    let drove = Driven::new([text("Hello.")]).run("Say hello.");
    assert_eq!((drove.ran.code, drove.text()), (0, "Hello."), "{}", drove.ran.shown());
    assert_eq!(drove.events(), expected(&[&BEGIN, &ASK, &ANSWERED, &["stop", "turn_end", "session_end"]]));
}

#[test]
fn a_tool_call_raises_its_events_between_two_calls_of_the_model() {
    let drove = Driven::new([call("read", json!({"path": "a.txt"})), text("Done.")])
        .file("a.txt", "the file's text")
        .run("Read a.txt.");
    let first = expected(&[&BEGIN, &ASK, &ANSWERED, &CALL, &["turn_end"]]);
    let second = expected(&[&ASK, &ANSWERED, &["stop", "turn_end", "session_end"]]);
    assert_eq!(drove.events(), [first, second].concat(), "{}", drove.ran.shown());
    let reasons: Vec<_> = drove.of("turn_end").iter().map(|told| told["reason"].clone()).collect();
    assert_eq!(reasons, ["continue", "normal"]);
    assert!(drove.asked().contains("the file's text"), "{}", drove.asked());
}

#[test]
fn a_tool_that_fails_raises_its_failure_behind_its_end() {
    let drove = Driven::new([call("read", json!({"path": "none.txt"})), text("Done.")]).run("Read none.txt.");
    let of_call = expected(&[&CALL, &["post_tool_use_failure", "turn_end"]]);
    assert_eq!(drove.events()[8..16], of_call, "{}", drove.ran.shown());
    assert_eq!(drove.one("post_tool_use_failure")["error_kind"], "not_found");
    assert_eq!(drove.one("post_tool_use")["tool_error"], true);
}

#[test]
fn every_payload_says_who_and_where() {
    let drove = Driven::new([call("read", json!({"path": "a.txt"})), text("Done.")]).file("a.txt", "x").run("Read.");
    for told in &drove.told {
        for field in ["schema_version", "session_id", "cwd", "hook_event_name", "timestamp", "agent_name", "model_id"] {
            assert!(!told[field].is_null(), "{field} is not in {told}");
        }
        assert_eq!(told["session_id"], drove.told[0]["session_id"], "{told}");
    }
}
