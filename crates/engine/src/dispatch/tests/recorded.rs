//! What is remembered of dispatches, and what would run without one.

use std::sync::Mutex;

use gatehook_events::{Recorder, Trace};

use super::*;
use crate::Fit;

#[derive(Debug, Default)]
struct Memory(Mutex<Vec<Trace>>);

impl Recorder for Memory {
    fn record(&self, trace: Trace) {
        self.0.lock().unwrap().push(trace);
    }
}

fn shell() -> Input {
    Input { tool_name: Some("shell".into()), session_id: Some("s".into()), ..Input::default() }
}

async fn dispatch(executor: &Executor, event: Event) -> Verdict {
    executor.dispatch(event, &shell(), &CancellationToken::new()).await
}

#[tokio::test(start_paused = true)]
async fn a_dispatch_is_recorded_as_its_host_saw_it() {
    let hooks = vec![
        scripted("rewrites", json!({"direct": {"hook_specific_output": {"updated_input": {"quiet": true}}}})),
        scripted("denies", json!({"delay": 5, "direct": {"decision": "block", "reason": "no"}})),
    ];
    let memory = Arc::new(Memory::default());
    let plain = executor(Event::PreToolUse, hooks, Options::default(), &Registry::new());
    let recorded = plain.clone().recorded(memory.clone());
    dispatch(&plain, Event::PreToolUse).await;
    assert!(memory.0.lock().unwrap().is_empty(), "another handle of the same executor is not recorded");
    let verdict = dispatch(&recorded.clone(), Event::PreToolUse).await;
    let traces = memory.0.lock().unwrap();
    let [trace] = traces.as_slice() else { panic!("{traces:?}") };
    assert_eq!((trace.event, &trace.input), (Event::PreToolUse, &shell()), "before any rewrite");
    assert_eq!((trace.allowed, trace.verb, &trace.message), (false, Verb::Deny, &verdict.message));
    assert_eq!((&*trace.rewritten, &trace.outcomes), (&["tool_input"][..], &verdict.outcomes));
    assert_eq!(trace.outcomes.len(), 2);
}

#[tokio::test]
async fn an_event_that_no_hook_fits_leaves_no_trace() {
    let memory = Arc::new(Memory::default());
    let hooks = vec![scripted("a", json!({}))];
    let executor = executor(Event::TurnStart, hooks, Options::default(), &Registry::new()).recorded(memory.clone());
    dispatch(&executor, Event::TurnEnd).await;
    assert!(memory.0.lock().unwrap().is_empty());
    dispatch(&executor, Event::TurnStart).await;
    assert_eq!(memory.0.lock().unwrap().len(), 1);
}

#[test]
fn each_hook_is_said_to_run_or_why_it_does_not() {
    let when = |pattern: &str| HookDefinition {
        when: vec![Condition { field: "tool_input.cmd".into(), pattern: pattern.into() }],
        ..scripted("conditional", json!({}))
    };
    let group = |matcher: &str, hooks| HookGroup { event: Event::PreToolUse, matcher: matcher.into(), hooks };
    let groups = vec![
        group("read_.*", vec![scripted("twice", json!({})), scripted("reads", json!({}))]),
        group("shell", vec![scripted("twice", json!({})), when("ls.*"), when("rm.*")]),
        group("*", vec![scripted("twice", json!({}))]),
    ];
    let registry = Registry::new();
    registry.register("scripted", Arc::new(Scripted)).unwrap();
    let executor = Executor::with_registry(HooksConfig { groups }, HandlerEnv::current().unwrap(), &registry).unwrap();
    let arguments = json!({"cmd": "ls -l"}).as_object().cloned().unwrap();
    let input = Input { tool_input: Some(Arc::new(arguments)), ..shell() };
    let fits: Vec<Fit> = executor.explain(Event::PreToolUse, &input).into_iter().map(|(_, fit)| fit).collect();
    let condition = Fit::Condition("tool_input.cmd".into());
    let expected = [Fit::Matcher, Fit::Matcher, Fit::Runs, Fit::Runs, condition, Fit::Duplicate(2)];
    assert_eq!(fits, expected);
    let running = executor.selected(Event::PreToolUse, &input).len();
    assert_eq!(running, fits.iter().filter(|fit| **fit == Fit::Runs).count(), "as a dispatch would have it");
    assert!(executor.explain(Event::Stop, &input).is_empty());
}
