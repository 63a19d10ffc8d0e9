//! What the agent does with each event's verdict.

use serde_json::{Value, json};

use super::driven::{Driven, call, text};

fn block(reason: &str) -> Value {
    json!({"decision": "block", "reason": reason})
}

fn context(text: &str) -> Value {
    json!({"hook_specific_output": {"additional_context": text}})
}

fn reads() -> Driven {
    Driven::new([call("read", json!({"path": "a.txt"})), text("Done.")]).file("a.txt", "the file's text")
}

#[test]
fn a_block_before_the_model_is_asked_ends_the_run_and_turn_end_says_so() {
    for event in ["session_start", "user_prompt_submit", "before_llm_call", "pre_inference"] {
        let drove = Driven::new([text("Hello.")]).answers(event, block("not today")).run("Say hello.");
        assert_eq!((drove.ran.code, drove.reason()), (1, "hook_blocked"), "{event}: {}", drove.ran.shown());
        assert!(drove.notices().iter().any(|said| said.contains("not today")), "{event}: {:?}", drove.notices());
        assert!(drove.of("after_llm_call").is_empty(), "{event}");
        let turns = drove.of("turn_start").len();
        assert_eq!(drove.of("turn_end").len(), turns, "{event}");
        drove.of("turn_end").iter().for_each(|told| assert_eq!(told["reason"], "hook_blocked", "{event}"));
        assert_eq!((drove.of("notification").len(), drove.of("on_error").len()), (1, 1), "{event}");
        assert_eq!(drove.of("session_end").len(), 1, "{event}");
    }
}

#[test]
fn a_block_after_the_model_answered_calls_no_tool() {
    let drove = reads().answers("after_llm_call", block("no more")).run("Read a.txt.");
    assert_eq!((drove.ran.code, drove.reason()), (1, "hook_blocked"), "{}", drove.ran.shown());
    assert!(drove.of("tool_input_transform").is_empty());
}

#[test]
fn context_reaches_the_model() {
    for event in ["session_start", "user_prompt_submit", "turn_start"] {
        let drove = Driven::new([text("Hello.")]).answers(event, context("the moon is full")).run("Say hello.");
        assert!(drove.asked().contains("the moon is full"), "{event}: {}", drove.ran.shown());
    }
    for event in ["post_tool_use", "post_tool_use_failure"] {
        let path = if event == "post_tool_use" { "a.txt" } else { "none.txt" };
        let drove = Driven::new([call("read", json!({"path": path})), text("Done.")])
            .file("a.txt", "x")
            .answers(event, context("the moon is full"))
            .run("Read.");
        assert!(drove.asked().contains("the moon is full"), "{event}: {}", drove.ran.shown());
    }
}

#[test]
fn a_call_that_is_denied_does_not_run_and_the_model_is_told_why() {
    for event in ["tool_input_transform", "tool_guard", "pre_tool_use"] {
        let drove = reads().answers(event, block("hands off")).run("Read a.txt.");
        assert_eq!((drove.ran.code, drove.text()), (0, "Done."), "{event}: {}", drove.ran.shown());
        assert!(drove.asked().contains("hands off"), "{event}: {}", drove.asked());
        assert!(!drove.asked().contains("the file's text"), "{event}");
        assert_eq!(drove.one("on_tool_approval_decision")["approval_decision"], "deny", "{event}");
        assert!(drove.of("post_tool_use").is_empty(), "{event}");
        assert_eq!(drove.one("tool_response_transform")["tool_error"], true, "{event}");
    }
}

#[test]
fn rewritten_arguments_are_what_runs() {
    for event in ["tool_input_transform", "pre_tool_use"] {
        let other = json!({"hook_specific_output": {"updated_input": {"path": "b.txt"}}});
        let drove = reads().file("b.txt", "another text").answers(event, other).run("Read a.txt.");
        assert!(drove.asked().contains("another text"), "{event}: {}", drove.ran.shown());
        assert_eq!(drove.one("post_tool_use")["tool_input"]["path"], "b.txt", "{event}");
    }
}

#[test]
fn a_rewritten_result_is_what_hooks_model_and_session_are_told() {
    let other = json!({"hook_specific_output": {"updated_tool_response": "[taken out]"}});
    let drove = reads().answers("tool_response_transform", other).run("Read a.txt.");
    assert_eq!(drove.one("post_tool_use")["tool_response"], "[taken out]", "{}", drove.ran.shown());
    assert!(drove.asked().contains("[taken out]") && !drove.asked().contains("the file's text"));
    assert_eq!(drove.results()[0]["output"], "[taken out]");
}

#[test]
fn a_block_behind_a_tool_ends_the_run() {
    let drove = reads().answers("post_tool_use", block("enough")).run("Read a.txt.");
    assert_eq!((drove.ran.code, drove.reason()), (1, "hook_blocked"), "{}", drove.ran.shown());
    assert_eq!(drove.of("pre_inference").len(), 1);
    assert_eq!(drove.one("turn_end")["reason"], "hook_blocked");
}

#[test]
fn a_stop_hook_lets_the_model_go_on_eight_times_in_a_row() {
    let script: Vec<_> = (0..12).map(|number| text(&format!("Answer {number}."))).collect();
    let drove = Driven::new(script).answers("stop", block("keep going")).run("Work.");
    assert_eq!((drove.ran.code, drove.of("stop").len()), (0, 9), "{}", drove.ran.shown());
    assert!(drove.asked().contains("keep going"));
    assert!(drove.notices().iter().any(|said| said.contains("8 times")), "{:?}", drove.notices());
}

#[test]
fn a_permission_hook_answers_where_nobody_is_there_to_ask() {
    let writes = || Driven::new([call("write", json!({"path": "new.txt", "content": "x"})), text("Done.")]);
    let denied = writes().run("Write.");
    assert_eq!(denied.one("on_tool_approval_decision")["approval_source"], "non_interactive_deny");
    assert!(!denied.told.is_empty() && denied.of("on_file_change").is_empty());
    let consent = json!({"hook_specific_output": {"permission_decision": "allow"}});
    let allowed = writes().answers("permission_request", consent).run("Write.");
    let decision = allowed.one("on_tool_approval_decision");
    assert_eq!(decision["approval_source"], "permission_request_hook_allow", "{}", allowed.ran.shown());
    assert_eq!(allowed.one("on_file_change")["changes"]["type"], "created", "{:?}", allowed.events());
}

#[test]
fn the_cap_on_iterations_ends_a_run_without_a_person() {
    let again = || call("read", json!({"path": "a.txt"}));
    let drove = Driven::new([again(), again(), again()])
        .file("a.txt", "x")
        .args(&["--max-iterations", "2"])
        .run("Read again and again.");
    assert_eq!((drove.ran.code, drove.reason()), (1, "max_iterations"), "{}", drove.ran.shown());
    assert_eq!((drove.of("on_max_iterations").len(), drove.of("turn_end").len()), (1, 2));
    let events = drove.events();
    let at = events.iter().position(|event| *event == "on_max_iterations").unwrap();
    assert_eq!(events[at - 1], "notification");
}

#[test]
fn the_same_calls_five_times_in_a_row_are_a_loop() {
    let script: Vec<_> = (0..9).map(|_| call("read", json!({"path": "a.txt"}))).collect();
    let drove = Driven::new(script).file("a.txt", "x").run("Read for ever.");
    assert_eq!((drove.ran.code, drove.reason()), (1, "loop_detected"), "{}", drove.ran.shown());
    assert_eq!((drove.of("turn_end").len(), drove.of("on_error").len()), (5, 1));
}

#[test]
fn a_model_that_calls_what_is_not_there_or_cannot_be_read_is_told_so() {
    for (answer, said) in [
        (call("no_such_tool", json!({})), "There is no tool"),
        (json!({"tool_calls": [{"name": "read", "arguments": "{\"path\": "}]}), "cannot be read"),
    ] {
        let drove = Driven::new([answer, text("Done.")]).run("Go.");
        assert_eq!((drove.ran.code, drove.text()), (0, "Done."), "{}", drove.ran.shown());
        assert!(drove.asked().contains(said), "{}", drove.asked());
        assert!(drove.of("on_tool_approval_decision").is_empty());
    }
}

#[test]
fn a_subagent_does_its_task_with_its_events() {
    let task = json!({"prompt": "Look at a.txt."});
    let drove = Driven::new([call("task", task), text("It says x."), text("Done.")]).run("Let somebody look.");
    assert_eq!((drove.ran.code, drove.text()), (0, "Done."), "{}", drove.ran.shown());
    let (started, stopped) = (drove.one("subagent_start"), drove.one("subagent_stop"));
    assert_eq!(started["prompt"], "Look at a.txt.");
    assert_eq!(stopped["stop_response"], "It says x.");
    assert_eq!(started["parent_session_id"], drove.told[0]["session_id"]);
    assert_eq!(drove.of("user_prompt_submit").len(), 1, "nobody submitted a prompt to it");
    assert!(drove.asked().contains("It says x."));
    let refused = Driven::new([call("task", json!({"prompt": "Look."})), text("Done.")])
        .answers("subagent_start", block("not alone"))
        .run("Let somebody look.");
    assert!(refused.asked().contains("not alone"), "{}", refused.ran.shown());
    assert!(refused.of("subagent_stop").is_empty());
}

const TWO: &str = "agents:\n  root: {sub_agents: [helper], handoffs: [helper]}\n  helper: {description: helps, \
                   instruction: You are the helper.}";

#[test]
fn a_task_goes_to_another_agent_and_comes_back() {
    let task = call("transfer_task", json!({"agent": "helper", "task": "Look at it."}));
    let drove = Driven::new([task, text("It says x."), text("Done.")]).config(TWO).run("Let the helper look.");
    assert_eq!((drove.ran.code, drove.text()), (0, "Done."), "{}", drove.ran.shown());
    let kinds: Vec<_> = drove.of("on_agent_switch").iter().map(|told| told["agent_switch_kind"].clone()).collect();
    assert_eq!(kinds, ["transfer_task", "transfer_task_return"]);
    assert_eq!(drove.one("subagent_stop")["agent_name"], "helper");
    let events = drove.events();
    let at = |name: &str| events.iter().position(|event| *event == name).unwrap();
    assert!(at("on_agent_switch") < at("subagent_start") && at("subagent_start") < at("subagent_stop"));
}

#[test]
fn a_conversation_is_handed_over_with_all_that_was_said() {
    let handoff = call("handoff", json!({"agent": "helper"}));
    let drove = Driven::new([handoff, text("The helper here.")]).config(TWO).run("I want the helper.");
    assert_eq!((drove.ran.code, drove.text()), (0, "The helper here."), "{}", drove.ran.shown());
    let switch = drove.one("on_agent_switch");
    assert_eq!((&switch["from_agent"], &switch["to_agent"]), (&json!("root"), &json!("helper")));
    assert_eq!(switch["agent_switch_kind"], "handoff");
    assert!(drove.asked().contains("You are the helper.") && drove.asked().contains("I want the helper."));
    assert_eq!(drove.of("turn_start").last().unwrap()["agent_name"], "helper");
    assert!(drove.of("subagent_start").is_empty());
}

#[test]
fn a_prompt_for_a_subagent_is_answered_by_it() {
    let drove = Driven::new([text("The helper here.")]).config(TWO).run("@helper Who are you?");
    assert_eq!((drove.ran.code, drove.text()), (0, "The helper here."), "{}", drove.ran.shown());
    assert_eq!(drove.one("subagent_start")["prompt"], "Who are you?");
    assert_eq!(drove.of("user_prompt_submit").len(), 1);
}
