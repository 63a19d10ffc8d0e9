//! Tool calls of a stream.

use gatehook_engine::HookDefinition;
use gatehook_engine::definition::{Stream, StreamMode, ToolCalls};
use gatehook_engine::events::output::HookSpecificOutput;
use gatehook_engine::events::{Event, Input, Output, Permission, PermissionDecision, SegmentKind};
use gatehook_inference::{ErrorKind, Route};
use serde_json::{Value, json};

use super::stream;
use crate::streams::{ROUTES, call, frames, has_more, text};
use crate::world::World;

fn routes() -> impl Iterator<Item = Route> {
    ROUTES.iter().copied().filter(|route| has_more(*route))
}

fn decides(decision: PermissionDecision) -> Output {
    Output::specific(HookSpecificOutput {
        permission_decision: Some(decision),
        permission_decision_reason: Some("no shells".into()),
        ..HookSpecificOutput::default()
    })
}

fn denies(tool: &'static str) -> impl Fn(&Input) -> Option<Output> + Send + Sync {
    move |input| (input.tool_name.as_deref() == Some(tool)).then(|| decides(PermissionDecision::Deny))
}

#[tokio::test]
async fn text_flows_while_calls_are_held_until_they_are_judged_as_wholes() {
    for route in routes() {
        let says = [text("Well, "), text("now."), call("c1", "shell", r#"{"command":"ls"}"#)];
        let world = World::new().hook(Event::ToolGuard, |_| None).hook(Event::PreToolUse, |_| None);
        let (exchange, came, _) = stream(world, route, &says).await;
        let frames = frames(route, &says);
        assert_eq!(came.text(), frames.concat(), "{route:?}");
        assert_eq!(exchange.seen.events(), [Event::ToolGuard, Event::PreToolUse], "{route:?}");
        let input = exchange.seen.inputs(Event::ToolGuard).remove(0);
        assert_eq!(input.tool_input.as_deref().unwrap()["command"], "ls", "{route:?}");
        assert_eq!((input.tool_name.as_deref(), input.plane.as_deref()), (Some("shell"), Some("wire")), "{route:?}");
        let first = frames.iter().position(|frame| frame.contains("Well")).unwrap();
        assert!(came.after[first] > 0, "{route:?}");
        // Of the arguments nothing has left before all of them had come.
        let named = frames.iter().position(|frame| frame.contains("shell")).unwrap();
        let before: usize = frames[..named].iter().map(String::len).sum();
        let whole =
            frames.iter().rposition(|frame| frame.contains("command") || frame.contains("}\"")).unwrap_or(named);
        assert!(
            whole == named || came.after[named..whole.min(named + 3)].iter().all(|after| *after <= before),
            "{route:?}"
        );
    }
}

#[tokio::test]
async fn a_denied_call_leaves_no_gap_and_a_note_rides_on_the_end() {
    for route in routes() {
        let says = [text("Well."), call("c1", "shell", r#"{"command":"rm"}"#), call("c2", "read", r#"{"p":1}"#)];
        let (_, came, gathered) = stream(World::new().hook(Event::ToolGuard, denies("shell")), route, &says).await;
        assert_eq!(gathered.text, "Well.", "{route:?}: {}", came.text());
        assert_eq!(gathered.calls.len(), 1, "{route:?}: {}", came.text());
        assert_eq!((&*gathered.calls[0].1, &*gathered.calls[0].2), ("read", r#"{"p":1}"#), "{route:?}");
        assert!(!came.text().contains("shell\"") && gathered.over, "{route:?}: {}", came.text());
        let hook = gathered.hook.unwrap_or_else(|| panic!("{route:?}: {}", came.text()));
        assert_eq!((&hook["permission"], &hook["user_message"]), (&"deny".into(), &"no shells".into()), "{route:?}");
        assert!(came.refusal.is_none(), "{route:?}");
    }
}

#[tokio::test]
async fn without_a_call_left_the_answer_has_stopped_by_itself() {
    for route in routes() {
        let says = [text("Well."), call("c1", "shell", r#"{"command":"rm"}"#)];
        let (_, came, gathered) = stream(World::new().hook(Event::PreToolUse, denies("shell")), route, &says).await;
        assert!(gathered.calls.is_empty(), "{route:?}: {}", came.text());
        assert_eq!(gathered.stop.as_deref(), Some(crate::streams::stop(route)), "{route:?}: {}", came.text());
        assert_eq!(gathered.text, "Well.", "{route:?}");
    }
}

#[tokio::test]
async fn a_call_is_rewritten_before_a_client_can_act_on_it() {
    for route in routes() {
        let rewrite = |_: &Input| {
            let Value::Object(patch) = json!({"command": "ls -l"}) else { return None };
            Some(Output::specific(HookSpecificOutput { updated_input: Some(patch), ..HookSpecificOutput::default() }))
        };
        let says = [call("c1", "shell", r#"{"command":"rm","cwd":"/"}"#)];
        let (_, came, gathered) = stream(World::new().hook(Event::PreToolUse, rewrite), route, &says).await;
        let arguments: Value = serde_json::from_str(&gathered.calls[0].2).unwrap();
        assert_eq!(arguments, json!({"command": "ls -l", "cwd": "/"}), "{route:?}: {}", came.text());
        assert!(!came.text().contains("rm"), "{route:?}: {}", came.text());
    }
}

#[tokio::test]
async fn a_call_that_a_person_has_to_decide_on_ends_the_answer() {
    for route in routes() {
        let ask = |_: &Input| Some(decides(PermissionDecision::Ask));
        let world = || World::new().hook(Event::ToolGuard, ask);
        let (_, came, _) = stream(world(), route, &[call("c1", "shell", "{}")]).await;
        assert_eq!(came.refusal.unwrap().kind, ErrorKind::ApprovalRequired, "{route:?}");
        assert!(came.bytes.is_empty(), "{route:?}: {}", String::from_utf8_lossy(&came.bytes));
        let (_, came, gathered) = stream(world(), route, &[text("Well."), call("c1", "shell", "{}")]).await;
        assert_eq!((&*gathered.text, gathered.calls.len()), ("Well.", 0), "{route:?}: {}", came.text());
        assert_eq!((&gathered.hook.unwrap()["permission"], gathered.over), (&"ask".into(), true), "{route:?}");
    }
}

#[tokio::test]
async fn hooks_of_the_answer_see_each_call_as_a_segment_and_come_first() {
    let define = |hook| HookDefinition { stream: Some(Stream::new(StreamMode::Window)), ..hook };
    for route in routes() {
        let drop_shell = |input: &Input| {
            let calls = input.tool_calls.as_deref()?;
            let left = calls.iter().filter(|call| &*call.function.name != "shell").cloned().collect();
            Some(Output { permission: Some(Permission::Modify), tool_calls: Some(left), ..Output::default() })
        };
        let world = World::new()
            .hook_with(Event::PostInference, "", define, move |input| Ok(drop_shell(input)))
            .hook(Event::ToolGuard, |_| None);
        let says = [text("Well."), call("c1", "shell", "{}"), call("c2", "read", "{}")];
        let (exchange, came, gathered) = stream(world, route, &says).await;
        assert_eq!(gathered.calls.len(), 1, "{route:?}: {}", came.text());
        let seen = exchange.seen.inputs(Event::PostInference);
        let calls = seen.iter().filter_map(|input| input.segment.filter(|_| input.tool_calls.is_some()));
        let calls: Vec<_> = calls.map(|segment| (segment.kind, segment.index)).collect();
        assert_eq!(calls, [(SegmentKind::ToolCall, 0), (SegmentKind::ToolCall, 1)], "{route:?}");
        let judged = exchange.seen.inputs(Event::ToolGuard);
        assert_eq!(judged.len(), 1, "{route:?}");
        assert_eq!(judged[0].tool_name.as_deref(), Some("read"), "{route:?}");
    }
}

#[tokio::test]
async fn a_hook_may_let_calls_pass() {
    let stream_of = |tool_calls| Stream { tool_calls, ..Stream::new(StreamMode::Observe) };
    for (tool_calls, shown) in [(ToolCalls::Hold, 2), (ToolCalls::Pass, 1)] {
        let define = |hook| HookDefinition { stream: Some(stream_of(tool_calls)), ..hook };
        let world = World::new().hook_with(Event::PostInference, "", define, |_| Ok(None));
        let says = [call("c1", "shell", r#"{"command":"ls"}"#)];
        let (exchange, came, _) = stream(world, Route::ChatCompletions, &says).await;
        assert_eq!(came.text(), frames(Route::ChatCompletions, &says).concat());
        exchange.settle().await;
        assert_eq!(exchange.seen.inputs(Event::PostInference).len(), shown, "{tool_calls:?}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_are_denied_where_a_guard_would_judge_them() {
    for route in [Route::ChatCompletions, Route::Responses] {
        let says = [text("Well."), call("c1", "shell", r#"{"command":"#)];
        let (exchange, came, gathered) = stream(World::new().hook(Event::ToolGuard, |_| None), route, &says).await;
        assert!(gathered.calls.is_empty() && exchange.seen.events().is_empty(), "{route:?}: {}", came.text());
        assert!(gathered.hook.unwrap()["user_message"].as_str().unwrap().contains("no JSON object"), "{route:?}");
    }
}

#[tokio::test]
async fn one_that_only_looks_on_decides_on_calls_alone_whatever_others_wait_for() {
    for route in routes() {
        let define = |hook| HookDefinition { stream: Some(Stream::new(StreamMode::Observe)), ..hook };
        let judge = |input: &Input| Ok(input.output_text.is_some().then(|| Output::block("no text")));
        let world =
            || World::new().hook(Event::PostInference, |_| None).hook_with(Event::PostInference, "", define, judge);
        let says = [text("Well."), call("c1", "shell", "{}")];
        let (exchange, came, _) = stream(world(), route, &says).await;
        assert_eq!(came.text(), frames(route, &says).concat(), "{route:?}");
        exchange.settle().await;
        let told = |input: &Input| (input.output_text.is_some(), input.tool_calls.is_some(), input.segment.is_some());
        let seen: Vec<_> = exchange.seen.inputs(Event::PostInference).iter().map(told).collect();
        // The one that waits for the whole, then the call, then the whole for the other.
        assert_eq!(seen, [(true, true, false), (false, true, true), (true, true, false)], "{route:?}");
    }
}
