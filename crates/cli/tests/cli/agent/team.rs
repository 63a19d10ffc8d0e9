//! What a definition of agents says, and what becomes of it.

use serde_json::json;

use super::driven::{Driven, Drove, call, text};
use crate::support::{Home, Serve};

const TWO: &str = "agents:\n  root: {sub_agents: [helper], handoffs: [helper]}\n  helper: {description: helps, \
                   instruction: You are the helper.}";

fn kinds(drove: &Drove) -> Vec<&str> {
    drove.of("on_agent_switch").iter().filter_map(|told| told["agent_switch_kind"].as_str()).collect()
}

#[test]
fn a_task_goes_to_another_agent_and_comes_back() {
    let task = call("transfer_task", json!({"agent": "helper", "task": "Look at it."}));
    let drove = Driven::new([task, text("It says x."), text("Done.")]).config(TWO).run("Let the helper look.");
    assert_eq!((drove.ran.code, drove.text()), (0, "Done."), "{}", drove.ran.shown());
    assert_eq!(kinds(&drove), ["transfer_task", "transfer_task_return"]);
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

#[test]
fn an_agent_takes_over_whenever_another_one_is_done() {
    let chain = "agents:\n  root: {force_handoff: checker}\n  checker: {instruction: You check.}";
    let drove = Driven::new([text("A draft."), text("Checked.")]).config(chain).run("Write it.");
    assert_eq!((drove.ran.code, drove.text()), (0, "Checked."), "{}", drove.ran.shown());
    assert_eq!(kinds(&drove), ["force_handoff"]);
    let reasons: Vec<_> = drove.of("turn_end").iter().map(|told| told["reason"].clone()).collect();
    assert_eq!(reasons, ["force_handoff", "normal"]);
    assert!(drove.asked().contains("You check.") && drove.asked().contains("A draft."), "{}", drove.asked());
}

#[test]
fn a_prompt_with_a_name_is_said_in_full_and_hooks_see_that() {
    let commands = "agents:\n  root:\n    commands:\n      review: {description: looks it over, instruction: Review \
                    with care.}\n      short: Be short.";
    for (said, prompt) in [
        ("/review the tests", "Review with care.\n\nthe tests"),
        ("/short", "Be short."),
        ("/unknown the tests", "/unknown the tests"),
        ("please /review", "please /review"),
    ] {
        let drove = Driven::new([text("Done.")]).config(commands).run(said);
        assert_eq!((drove.ran.code, drove.text()), (0, "Done."), "{said}: {}", drove.ran.shown());
        assert_eq!(drove.one("user_prompt_submit")["prompt"], prompt, "{said}");
        let asked: Vec<serde_json::Value> = serde_json::from_str(&drove.asked()).unwrap();
        assert_eq!(asked.last().unwrap()["content"], prompt, "{said}");
    }
}

#[test]
fn the_same_calls_as_often_in_a_row_as_an_agent_may_are_a_loop() {
    let script: Vec<_> = (0..9).map(|_| call("read", json!({"path": "a.txt"}))).collect();
    let limit = "agents: {root: {max_consecutive_tool_calls: 2}}";
    let drove = Driven::new(script).file("a.txt", "x").config(limit).run("Read for ever.");
    assert_eq!((drove.ran.code, drove.reason()), (1, "loop_detected"), "{}", drove.ran.shown());
    assert_eq!(drove.of("turn_end").len(), 2);
}

#[test]
fn a_model_is_told_about_its_tools() {
    let tools = "agents: {root: {instruction: You work., toolsets: [{type: filesystem, instruction: Read before you \
                 write.}, {type: think}]}}";
    let drove = Driven::new([text("Done.")]).config(tools).run("Go.");
    assert!(drove.asked().contains("You work.\\n\\nRead before you write."), "{}", drove.ran.shown());
}

/// A first answer that fills half of the window, and a call that makes another turn follow.
fn filling(agent: &str) -> Drove {
    let config = format!("models: {{replay/script: {{window: 1000}}}}\nagents: {{root: {{{agent}}}}}");
    let first = json!({"tool_calls": [{"name": "think", "arguments": {"thought": "x"}}],
                       "usage": {"input_tokens": 500, "output_tokens": 10}});
    Driven::new([first, text("A summary."), text("Done.")]).config(&config).run("Think.")
}

#[test]
fn an_agent_says_when_its_conversation_is_compacted() {
    for (agent, reason) in [
        ("compaction_threshold: 0.4", Some("threshold")),
        ("compaction_threshold: 0.8", None),
        ("compaction_threshold: 0.4, session_compaction: false", None),
    ] {
        let drove = filling(agent);
        assert_eq!(drove.ran.code, 0, "{agent}: {}", drove.ran.shown());
        let told = drove.of("before_compaction");
        assert_eq!(told.first().and_then(|told| told["compaction_reason"].as_str()), reason, "{agent}");
    }
}

#[test]
fn where_nothing_is_compacted_a_conversation_that_does_not_fit_ends_the_run() {
    let long = json!({"status": 400, "error": "prompt is too long: 9000 tokens > 8192 maximum"});
    let never = "agents: {root: {session_compaction: false}}";
    let drove = Driven::new([long, text("Never."), text("Never.")]).config(never).run("Go.");
    assert_eq!((drove.ran.code, drove.reason()), (4, "error"), "{}", drove.ran.shown());
    assert_eq!((drove.of("on_context_overflow").len(), drove.of("pre_compact").len()), (1, 0));
}

#[test]
fn another_model_writes_the_summaries() {
    let upstream = Home::new();
    let echo = upstream.file("gatehook.yaml", "upstreams: {echo: {url: 'replay:'}}\n");
    let serve = Serve::start(&upstream, &["--config", echo.to_str().unwrap()]);
    let base = format!("{{base_url: 'http://{}/v1', window: 250}}", serve.address);
    let driven = Driven::new([]).config(&format!(
        "models: {{openai/first: {base}, openai/second: {base}}}\nagents: {{root: {{model: openai/first, \
         compaction_model: openai/second}}}}"
    ));
    let long = "word ".repeat(100);
    let mut first = driven.live_command(&["run", &long, "--json"]);
    let first = crate::support::ran(&mut first);
    assert_eq!(first.code, 0, "{}", first.shown());
    let mut again = driven.live_command(&["run", "And now?", "--json", "--continue"]);
    let again = crate::support::ran(&mut again);
    assert_eq!(again.code, 0, "{}", again.shown());
    let models: Vec<_> = driven
        .told()
        .iter()
        .filter(|told| told["hook_event_name"] == "pre_inference")
        .map(|told| told["model_id"].as_str().unwrap_or_default().to_owned())
        .collect();
    // Each prompt's answer, and before the second one's the summary.
    assert_eq!(models, ["openai/first", "openai/second", "openai/first"], "{}", again.shown());
}

#[test]
fn hooks_are_told_where_the_model_is_that_is_left() {
    let upstream = Home::new();
    let echo = upstream.file("gatehook.yaml", "upstreams: {echo: {url: 'replay:'}}\n");
    let serve = Serve::start(&upstream, &["--config", echo.to_str().unwrap()]);
    let base = format!("http://{}/v1", serve.address);
    let driven = Driven::new([]).config(&format!(
        "models: {{openai/first: {{base_url: '{base}'}}}}\nagents: {{root: {{model: openai/first, force_handoff: other}}, \
         other: {{model: openai/first}}}}"
    ));
    let ran = crate::support::ran(&mut driven.live_command(&["run", "Go.", "--json"]));
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let told = driven.told();
    let switch = told.iter().find(|told| told["hook_event_name"] == "on_agent_switch").unwrap();
    let expected = json!([{"provider": "openai", "model": "first", "base_url": base}]);
    assert_eq!(switch["from_agent_models"], expected, "{}", ran.shown());
}
