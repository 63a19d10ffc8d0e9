//! Tool calls on the wire.

use gatehook_engine::HookDefinition;
use gatehook_engine::events::output::HookSpecificOutput;
use gatehook_engine::events::{Event, Input, Output, PermissionDecision};
use gatehook_inference::{ErrorKind, Route};
use serde_json::{Value, json};

use crate::world::{Exchange, World};

/// One answer on each route that has tool calls, with these calls (id, name, arguments).
fn answers(calls: &[(&str, &str, &str)]) -> Vec<(Route, Value)> {
    let object = |arguments: &str| serde_json::from_str::<Value>(arguments).unwrap();
    let openai = |(id, name, arguments): &(&str, &str, &str)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let native =
        |(_, name, arguments): &(&str, &str, &str)| json!({"function": {"name": name, "arguments": object(arguments)}});
    let block = |(id, name, arguments): &(&str, &str, &str)| json!({"type": "tool_use", "id": id, "name": name, "input": object(arguments)});
    let item = |(id, name, arguments): &(&str, &str, &str)| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments});
    vec![
        (
            Route::ChatCompletions,
            json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "Well.",
                   "tool_calls": calls.iter().map(openai).collect::<Vec<_>>()}}]}),
        ),
        (
            Route::Chat,
            json!({"message": {"role": "assistant", "content": "Well.",
                   "tool_calls": calls.iter().map(native).collect::<Vec<_>>()}, "done": true, "done_reason": "tool_calls"}),
        ),
        (
            Route::Messages,
            json!({"content": after(json!({"type": "text", "text": "Well."}), calls.iter().map(block)),
                   "role": "assistant", "type": "message", "stop_reason": "tool_use"}),
        ),
        (
            Route::Responses,
            json!({"output": after(json!({"type": "message", "content": [{"type": "output_text", "text": "Well."}]}),
                   calls.iter().map(item)), "status": "completed"}),
        ),
    ]
}

fn after(first: Value, rest: impl Iterator<Item = Value>) -> Vec<Value> {
    std::iter::once(first).chain(rest).collect()
}

fn decides(decision: PermissionDecision, why: &str) -> Output {
    Output::specific(HookSpecificOutput {
        permission_decision: Some(decision),
        permission_decision_reason: Some(why.into()),
        ..HookSpecificOutput::default()
    })
}

fn rewrites(patch: Value) -> Output {
    let Value::Object(patch) = patch else { panic!("{patch}") };
    Output::specific(HookSpecificOutput { updated_input: Some(patch), ..HookSpecificOutput::default() })
}

fn command(input: &Input) -> &str {
    input.tool_input.as_deref().and_then(|map| map.get("command")?.as_str()).unwrap_or_default()
}

#[tokio::test]
async fn a_call_is_shown_with_its_arguments_as_an_object_on_every_route() {
    for (route, body) in answers(&[("c1", "shell", r#"{"command":"ls"}"#)]) {
        let exchange = Exchange::from(World::new().hook(Event::ToolGuard, |_| None).hook(Event::PreToolUse, |_| None));
        let body = body.to_string();
        assert_eq!(exchange.answer(route, &body).await.unwrap(), body, "{route:?}");
        assert_eq!(exchange.seen.events(), [Event::ToolGuard, Event::PreToolUse], "{route:?}");
        for input in [Event::ToolGuard, Event::PreToolUse].map(|event| exchange.seen.inputs(event).remove(0)) {
            assert_eq!(input.tool_name.as_deref(), Some("shell"), "{route:?}");
            assert_eq!(command(&input), "ls", "{route:?}");
            assert_eq!(input.plane.as_deref(), Some("wire"), "{route:?}");
            assert_eq!(input.route.as_deref(), Some(route.path()), "{route:?}");
            assert_eq!(input.model_id.as_deref(), Some("m"), "{route:?}");
            let id = (route != Route::Chat).then_some("c1");
            assert_eq!(input.tool_use_id.as_deref(), id, "{route:?}");
            assert!(input.session_id.is_some() && input.messages.is_none(), "{route:?}");
        }
        assert_eq!(exchange.seen.verdicts().len(), 2, "{route:?}");
    }
}

#[tokio::test]
async fn a_denied_call_is_removed_and_the_rest_of_the_answer_goes_on() {
    for (route, body) in answers(&[("c1", "shell", r#"{"command":"rm"}"#), ("c2", "read", "{}")]) {
        let deny = |_: &Input| Ok(Some(decides(PermissionDecision::Deny, "no shells")));
        let exchange = Exchange::from(World::new().hook_with(Event::ToolGuard, "shell", |hook| hook, deny));
        let answer = exchange.answer(route, &body.to_string()).await.unwrap();
        assert!(!answer.contains("shell\"") && answer.contains("read") && answer.contains("Well."), "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["hook"]["permission"], "deny", "{answer}");
        assert_eq!(answer["hook"]["user_message"], "no shells", "{answer}");
        assert_eq!(answer["hook"]["hook_name"], "hook_0", "{answer}");
        assert_eq!(answer["hook"]["request_id"], "r1", "{answer}");
    }
}

#[tokio::test]
async fn without_any_call_left_the_answer_has_stopped_by_itself() {
    for (route, body) in answers(&[("c1", "shell", "{}")]) {
        let exchange = Exchange::from(World::new().hook(Event::PreToolUse, |_| Some(Output::block("no"))));
        let answer = exchange.answer(route, &body.to_string()).await.unwrap();
        assert!(!answer.contains("tool_use") && !answer.contains(r#":"tool_calls""#), "{answer}");
        assert!(answer.contains("Well.") && !answer.contains("c1"), "{answer}");
    }
}

#[tokio::test]
async fn a_rewritten_call_is_judged_once_more() {
    let world = |denied: &'static str| {
        let judge = move |input: &Input| (command(input) == denied).then(|| Output::block("not that"));
        World::new()
            .hook(Event::ToolGuard, judge)
            .hook(Event::PreToolUse, |_| Some(rewrites(json!({"command": "ls -l"}))))
    };
    for (route, body) in answers(&[("c1", "shell", r#"{"command":"ls","cwd":"/"}"#)]) {
        let exchange = Exchange::from(world("rm"));
        let answer = exchange.answer(route, &body.to_string()).await.unwrap();
        assert!(answer.contains("ls -l") && answer.contains("cwd"), "{answer}");
        assert_eq!(exchange.seen.events(), [Event::ToolGuard, Event::PreToolUse, Event::ToolGuard]);
        let exchange = Exchange::from(world("ls -l"));
        let answer = exchange.answer(route, &body.to_string()).await.unwrap();
        assert!(!answer.contains("cwd") && answer.contains("not that"), "{answer}");
    }
}

#[tokio::test]
async fn a_rewrite_that_changes_nothing_leaves_every_byte() {
    for (route, body) in answers(&[("c1", "shell", r#"{ "command" : "ls" }"#)]) {
        let exchange =
            Exchange::from(World::new().hook(Event::PreToolUse, |_| Some(rewrites(json!({"command": "ls"})))));
        let body = body.to_string();
        assert_eq!(exchange.answer(route, &body).await.unwrap(), body, "{route:?}");
    }
}

#[tokio::test]
async fn a_call_that_a_person_has_to_decide_on_refuses_the_answer() {
    for (route, body) in answers(&[("c1", "shell", "{}")]) {
        let ask = |_: &Input| Some(decides(PermissionDecision::Ask, "really?"));
        let refusal = Exchange::from(World::new().hook(Event::ToolGuard, ask)).answer(route, &body.to_string()).await;
        let refusal = refusal.unwrap_err();
        assert_eq!((refusal.kind, &*refusal.message), (ErrorKind::ApprovalRequired, "really?"), "{route:?}");
        assert!(refusal.hook.unwrap().fingerprint.is_some(), "{route:?}");
    }
}

#[tokio::test]
async fn a_guard_that_fails_lets_no_call_pass() {
    let fails = |_: &Input| {
        Err(gatehook_engine::HandlerError::new(gatehook_engine::events::FailureKind::HandlerError, "it is broken"))
    };
    let world = World::new().hook_with(Event::PreToolUse, "", |hook| hook, fails);
    let (route, body) = answers(&[("c1", "shell", "{}")]).remove(0);
    let refusal = Exchange::from(world).answer(route, &body.to_string()).await.unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::HookUnavailable);
}

#[tokio::test]
async fn arguments_that_cannot_be_read_in_one_way_are_denied_where_a_guard_would_judge_them() {
    for arguments in ["{\"command\":\"ls\"", "[]", r#"{"command":"ls","command":"rm"}"#] {
        let body = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "shell", "arguments": arguments}}]}}]});
        let body = body.to_string();
        let world = |matcher: &str, observer: bool| {
            let define = |hook| HookDefinition { observer, ..hook };
            Exchange::from(World::new().hook_with(Event::ToolGuard, matcher, define, |_| Ok(None)))
        };
        let answer = world("shell", false).answer(Route::ChatCompletions, &body).await.unwrap();
        assert!(!answer.contains("c1") && answer.contains("no JSON object"), "{answer}");
        for (matcher, observer) in [("other", false), ("shell", true)] {
            let answer = world(matcher, observer).answer(Route::ChatCompletions, &body).await.unwrap();
            assert_eq!(answer, body, "{matcher} {observer}");
        }
    }
}

#[tokio::test]
async fn calls_that_the_server_makes_itself_are_judged_and_leave_with_their_results() {
    let body = json!({"content": [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "text", "text": "Found."}], "role": "assistant", "type": "message", "stop_reason": "end_turn"});
    let exchange = Exchange::from(World::new().hook_with(
        Event::ToolGuard,
        "web_search",
        |hook| hook,
        |_| Ok(Some(Output::block("no"))),
    ));
    let answer: Value =
        serde_json::from_str(&exchange.answer(Route::Messages, &body.to_string()).await.unwrap()).unwrap();
    assert_eq!(answer["content"], json!([{"type": "text", "text": "Found."}]));
}

#[tokio::test]
async fn post_inference_hooks_come_first_and_what_they_removed_is_not_judged() {
    let world = World::new()
        .hook(Event::PostInference, |_| {
            let permission = Some(gatehook_engine::events::Permission::Modify);
            Some(Output { permission, tool_calls: Some(Vec::new()), ..Output::default() })
        })
        .hook(Event::ToolGuard, |_| None);
    let exchange = Exchange::from(world);
    let (route, body) = answers(&[("c1", "shell", "{}")]).remove(0);
    let answer = exchange.answer(route, &body.to_string()).await.unwrap();
    assert!(!answer.contains("shell"), "{answer}");
    assert_eq!(exchange.seen.events(), [Event::PostInference]);
}
