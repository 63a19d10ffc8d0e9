use std::sync::atomic::{AtomicUsize, Ordering};

use gatehook_events::{Decision, Message, OutcomeKind, Profile, Verb};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::definition::{Condition, HandlerDefinition, OnError};
use crate::handler::{DefinitionError, Run};
use crate::{Executor, Handler, HandlerEnv, HandlerFactory, HookDefinition, HookGroup, HooksConfig, Options, Registry};

mod joined;
mod picked;
mod recorded;

/// A handler that does what its definition says: `delay` in milliseconds, then `panic`, `fail`, `hang`, `direct` or a
/// process that wrote `stdout` and `stderr` and ended with `code`.
struct Scripted;

struct Script(Map<String, Value>);

impl HandlerFactory for Scripted {
    fn create(&self, definition: &HookDefinition, _env: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
        match &definition.handler {
            HandlerDefinition::Other { fields, .. } => Ok(Arc::new(Script(fields.clone()))),
            other => panic!("{other:?} is no script"),
        }
    }
}

impl Handler for Script {
    fn run<'a>(&'a self, _call: HookCall<'a>) -> Run<'a> {
        Box::pin(async {
            let text = |key| self.0.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let number = |key| self.0.get(key).and_then(Value::as_i64).unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(number("delay").unsigned_abs())).await;
            if self.0.contains_key("panic") {
                panic!("as it was told");
            }
            if self.0.contains_key("hang") {
                std::future::pending::<()>().await;
            }
            if self.0.contains_key("fail") {
                return Err(HandlerError::new(FailureKind::HandlerError, text("fail")));
            }
            match self.0.get("direct") {
                Some(output) => Ok(Reply::Direct(Some(serde_json::from_value(output.clone()).unwrap()))),
                None => {
                    let (stdout, exit_code) = (text("stdout").into(), i32::try_from(number("code")).unwrap());
                    Ok(Reply::Process { stdout, stderr: text("stderr"), exit_code })
                }
            }
        })
    }
}

fn scripted(name: &str, script: Value) -> HookDefinition {
    let Value::Object(fields) = script else { panic!("{script} is no script") };
    let handler = HandlerDefinition::Other { kind: "scripted".into(), fields };
    HookDefinition { name: Some(name.into()), ..HookDefinition::new(Profile::Native, handler) }
}

fn executor(event: Event, hooks: Vec<HookDefinition>, options: Options, registry: &Registry) -> Executor {
    registry.register("scripted", Arc::new(Scripted)).unwrap();
    let config = HooksConfig { groups: vec![HookGroup { event, matcher: String::new(), hooks }] };
    let env = HandlerEnv { working_dir: "/somewhere".into(), env: Default::default() };
    Executor::with_options(config, env, registry, options).unwrap()
}

async fn dispatched(event: Event, hooks: Vec<HookDefinition>, input: Value) -> Verdict {
    let input: Input = serde_json::from_value(input).unwrap();
    let executor = executor(event, hooks, Options::default(), &Registry::new());
    executor.dispatch(event, &input, &CancellationToken::new()).await
}

#[tokio::test]
async fn what_was_not_heard_is_said_before_the_hooks_own_message() {
    let reply = json!({"decision": "block", "system_message": "mine"}).to_string();
    let verdict = dispatched(Event::TurnEnd, vec![scripted("h", json!({ "stdout": reply }))], json!({})).await;
    assert_eq!(verdict.system_message, "turn_end hook \"h\": this event cannot be blocked\nmine");
}

#[tokio::test]
async fn strict_output_takes_an_empty_field_for_a_given_one() {
    for field in [json!({"metadata": {}}), json!({"instruction_context": []})] {
        let reply = json!({ "hook_specific_output": field }).to_string();
        let hook = HookDefinition { strict_output: true, ..scripted("h", json!({ "stdout": reply })) };
        let verdict = dispatched(Event::TurnEnd, vec![hook], json!({})).await;
        assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::UnsupportedOutput), "{field}");
    }
}

#[tokio::test]
async fn each_rewrite_is_seen_by_the_next_hook_and_the_callers_value_stays() {
    let registry = Registry::new();
    registry
        .register_builtin("append", |_context, input, args| {
            let command = input.tool_input.as_ref().unwrap()["cmd"].as_str().unwrap();
            let patch = json!({"hook_specific_output": {"updated_input": {"cmd": format!("{command}{}", args[0])}}});
            Ok(Some(serde_json::from_value(patch).unwrap()))
        })
        .unwrap();
    let hooks = vec![HookDefinition::builtin("append", &["b"]), HookDefinition::builtin("append", &["c"])];
    let executor = executor(Event::PreToolUse, hooks, Options::default(), &registry);
    let input: Input = serde_json::from_value(json!({"tool_input": {"cmd": "a", "cwd": "x"}})).unwrap();
    let before = input.clone();
    let verdict = executor.dispatch(Event::PreToolUse, &input, &CancellationToken::new()).await;
    let rewritten = Value::Object(verdict.rewritten.tool_input.unwrap().as_ref().clone());
    assert_eq!((rewritten, verdict.verb), (json!({"cmd": "abc", "cwd": "x"}), Verb::Modify));
    assert_eq!(input, before);
}

#[tokio::test]
async fn what_is_denied_before_a_model_call_is_shown_to_no_later_hook() {
    let hooks = vec![
        scripted("first", json!({"direct": {"permission": "ask"}})),
        scripted("second", json!({"direct": {"permission": "deny", "reason": "no", "user_message": "sorry"}})),
        scripted("third", json!({})),
    ];
    let verdict = dispatched(Event::PreInference, hooks, json!({})).await;
    let names: Vec<_> = verdict.outcomes.iter().map(|outcome| &*outcome.name).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!((verdict.verb, verdict.allowed, verdict.decision), (Verb::Deny, false, Some(Decision::Deny)));
    let refusal = verdict.refusal.unwrap();
    assert_eq!((&*refusal.hook_name, refusal.user_message.as_deref()), ("second", Some("sorry")));
}

#[tokio::test]
async fn a_judgement_on_a_tool_is_heard_from_all() {
    let deny = json!({"direct": {"hook_specific_output": {"permission_decision": "deny"}}});
    let hooks = vec![scripted("first", deny), scripted("second", json!({}))];
    assert_eq!(dispatched(Event::PreToolUse, hooks, json!({})).await.outcomes.len(), 2);
}

#[tokio::test]
async fn a_rewrite_counts_only_with_a_verb_that_lets_it() {
    for (permission, rewritten) in [(json!("modify"), true), (Value::Null, true), (json!("allow"), false)] {
        let reply = json!({"permission": permission, "output_text": "new"});
        let hooks = vec![scripted("h", json!({"stdout": reply.to_string()}))];
        let verdict = dispatched(Event::PostInference, hooks, json!({"output_text": "old"})).await;
        assert_eq!(verdict.rewritten.output.is_some(), rewritten, "{permission}");
    }
}

#[tokio::test]
async fn an_answer_may_be_emptied() {
    let hooks = vec![scripted("h", json!({"stdout": r#"{"permission":"modify","output_text":"","tool_calls":[]}"#}))];
    let output = dispatched(Event::PostInference, hooks, json!({"output_text": "old"})).await.rewritten.output.unwrap();
    assert_eq!((output.text.as_deref(), output.thinking, output.tool_calls.unwrap().len()), (Some(""), None, 0));
}

#[tokio::test]
async fn a_rewrite_that_cannot_be_held_is_not_made() {
    let reply = json!({"direct": {"permission": "modify", "messages": [{"role": "user", "content": "new"}]}});
    let hooks = vec![scripted("rewriter", reply), scripted("later", json!({"stdout": r#"{"permission":"ask"}"#}))];
    let executor = executor(Event::PreInference, hooks, Options::default(), &Registry::new());
    let input = Input { messages: Some([Message::new("user", "old")].into()), ..Input::default() };
    let hold = |_: &Rewritten| Err("two system messages".to_owned());
    let verdict = executor.dispatch_held(Event::PreInference, &input, &CancellationToken::new(), &hold).await;
    assert_eq!((verdict.verb, verdict.allowed), (Verb::ModifyUnsupported, false));
    assert!(verdict.rewritten.is_empty());
    assert_eq!(&*verdict.refusal.unwrap().hook_name, "rewriter");
    assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::UnsupportedRewrite));
}

#[tokio::test]
async fn a_failure_blocks_natively_where_the_event_can_be_blocked() {
    for (event, on_error, verb, told) in [
        (Event::UserPromptSubmit, None, Verb::Unavailable, false),
        (Event::UserPromptSubmit, Some(OnError::Warn), Verb::Allow, true),
        (Event::UserPromptSubmit, Some(OnError::Ignore), Verb::Allow, false),
        (Event::PreToolUse, Some(OnError::Ignore), Verb::Unavailable, false),
        (Event::PreInference, None, Verb::Unavailable, false),
        (Event::TurnEnd, None, Verb::Allow, true),
        (Event::TurnEnd, Some(OnError::Block), Verb::Allow, true),
    ] {
        let hook = HookDefinition { on_error, ..scripted("guard", json!({"code": 3, "stderr": "why"})) };
        let verdict = dispatched(event, vec![hook], json!({})).await;
        assert_eq!((verdict.verb, verdict.allowed), (verb, verb == Verb::Allow), "{event:?} {on_error:?}");
        let text = format!("{} hook \"guard\": it exited with code 3", event.name());
        assert_eq!(verdict.system_message == text, told, "{event:?} {on_error:?}");
        assert_eq!(verdict.message == text, verb != Verb::Allow, "{event:?} {on_error:?}");
        assert_eq!(verdict.outcomes[0].exit_code, 3);
    }
}

#[tokio::test]
async fn a_panic_is_a_failure_of_its_hook() {
    let verdict = dispatched(Event::PreToolUse, vec![scripted("h", json!({"panic": 1}))], json!({})).await;
    assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::HandlerError));
    assert!(!verdict.allowed);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_overruns_its_deadline_is_dropped() {
    let hook = HookDefinition { timeout: Some(Duration::from_secs(2)), ..scripted("h", json!({"hang": 1})) };
    let start = Instant::now();
    let verdict = dispatched(Event::PreToolUse, vec![hook], json!({})).await;
    assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::Timeout));
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_is_not_kept_waiting() {
    let executor =
        executor(Event::ToolGuard, vec![scripted("h", json!({"hang": 1}))], Options::default(), &Registry::new());
    let cancel = CancellationToken::new();
    cancel.cancel();
    let verdict = executor.dispatch(Event::ToolGuard, &Input::default(), &cancel).await;
    assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn judging_hooks_run_side_by_side_up_to_the_limit() {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let registry = Registry::new();
    let (now, peak) = (running.clone(), most.clone());
    registry
        .register_async_builtin("count", move |_context, _input, _args| {
            let (now, peak) = (now.clone(), peak.clone());
            Box::pin(async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(10)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(None)
            })
        })
        .unwrap();
    let hooks = (0..9).map(|place| HookDefinition::builtin("count", &[&place.to_string()])).collect();
    let options = Options { max_concurrent_hooks: 3.try_into().unwrap(), ..Options::default() };
    let executor = executor(Event::ToolGuard, hooks, options, &registry);
    let verdict = executor.dispatch(Event::ToolGuard, &Input::default(), &CancellationToken::new()).await;
    assert_eq!((verdict.outcomes.len(), most.load(Ordering::SeqCst)), (9, 3));
}

#[tokio::test]
async fn the_same_definition_runs_once() {
    let hook = scripted("h", json!({"stdout": "x"}));
    let mut elsewhere = hook.clone();
    elsewhere.origin.line = 9;
    let other = HookDefinition { timeout: Some(Duration::from_secs(1)), ..hook.clone() };
    let verdict = dispatched(Event::TurnStart, vec![hook, other, elsewhere], json!({})).await;
    assert_eq!(verdict.additional_context, "x\nx");
}

#[tokio::test]
async fn a_condition_narrows_and_a_missing_field_does_not() {
    let when = |field: &str, pattern: &str| vec![Condition { field: field.into(), pattern: pattern.into() }];
    let input = json!({"tool_name": "edit", "tool_input": {"path": "/etc/x", "opts": {"n": 3}}, "plane": "wire",
                       "client": {"key_name": "ci"}, "model_id": "llama3"});
    for (field, pattern, runs) in [
        ("tool_input.path", "/etc/.*", true),
        ("tool_input.path", "/etc", false),
        ("tool_input.opts.n", "3", true),
        ("tool_input.opts.n", "4", false),
        ("tool_input.absent", "x", true),
        ("tool_input.opts", "x", true),
        ("plane", "agent", false),
        ("key", "ci|cd", true),
        ("key", "prod", false),
        ("model", "llama.*", true),
        ("agent", "x", true),
    ] {
        let hook = HookDefinition { when: when(field, pattern), ..scripted("h", json!({})) };
        let verdict = dispatched(Event::ToolGuard, vec![hook], input.clone()).await;
        assert_eq!(verdict.outcomes.len(), usize::from(runs), "{field} {pattern}");
    }
}

#[tokio::test]
async fn exit_code_two_blocks_with_its_stderr_and_what_stdout_adds() {
    let script = json!({"code": 2, "stderr": " no \n", "stdout": r#"{"reason":"because","user_message":"u"}"#});
    let verdict = dispatched(Event::PreToolUse, vec![scripted("h", script.clone())], json!({})).await;
    assert_eq!((verdict.message.as_str(), verdict.exit_code, verdict.stderr.as_str()), ("no\nbecause", 2, " no \n"));
    assert_eq!(verdict.refusal.unwrap().user_message.as_deref(), Some("u"));
    let docker = HookDefinition { profile: Profile::DockerAgent, ..scripted("h", script) };
    assert_eq!(dispatched(Event::PreToolUse, vec![docker], json!({})).await.message, "no");
}

#[tokio::test]
async fn the_most_severe_exit_code_stands_with_its_stderr() {
    let hooks = vec![
        scripted("a", json!({"code": 2, "stderr": "one"})),
        scripted("b", json!({"code": 1, "stderr": "crash"})),
        scripted("c", json!({"code": 2})),
        scripted("d", json!({"stderr": "fine"})),
    ];
    let verdict = dispatched(Event::PreToolUse, hooks, json!({})).await;
    assert_eq!((verdict.exit_code, verdict.stderr.as_str()), (2, "one"));
}

#[tokio::test]
async fn text_for_people_has_no_escape_sequences_in_it() {
    let reply = json!({"system_message": "\u{1b}[2Jgone", "user_message": "\u{1b}]0;t\u{7}u", "permission": "deny",
                       "reason": "a\u{8}b"});
    let hooks = vec![scripted("h", json!({"stdout": reply.to_string(), "stderr": "\u{1b}[1mbold"}))];
    let verdict = dispatched(Event::PreInference, hooks, json!({})).await;
    assert_eq!((verdict.system_message.as_str(), verdict.message.as_str()), ("gone", "ab"));
    assert_eq!(verdict.refusal.unwrap().user_message.as_deref(), Some("u"));
    assert_eq!(verdict.outcomes[0].stderr, "bold");
}

#[tokio::test]
async fn observers_are_not_waited_for_until_the_queue_is_drained() {
    let (seen, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
    let registry = Registry::new();
    let (count, closed) = (seen.clone(), gate.clone());
    registry
        .register_async_builtin("watch", move |_context, _input, _args| {
            let (count, closed) = (count.clone(), closed.clone());
            Box::pin(async move {
                closed.acquire().await.unwrap().forget();
                count.fetch_add(1, Ordering::SeqCst);
                Ok(Some(gatehook_events::Output::block("nobody hears this")))
            })
        })
        .unwrap();
    let hook = HookDefinition { observer: true, ..HookDefinition::builtin("watch", &[]) };
    let options = Options { observer_queue: 2.try_into().unwrap(), ..Options::default() };
    let executor = executor(Event::PreToolUse, vec![hook], options, &registry);
    for _ in 0..7 {
        let verdict = executor.dispatch(Event::PreToolUse, &Input::default(), &CancellationToken::new()).await;
        assert_eq!(verdict, Verdict::allow());
    }
    let dropped = executor.dropped_observations();
    assert!((1..=5).contains(&dropped), "four run at most and the queue holds two: {dropped}");
    gate.add_permits(7);
    executor.drain(Duration::from_secs(5)).await;
    assert_eq!(seen.load(Ordering::SeqCst) as u64 + dropped, 7);
    executor.dispatch(Event::PreToolUse, &Input::default(), &CancellationToken::new()).await;
    assert_eq!(executor.dropped_observations(), dropped + 1, "after the end nothing is queued");
}

#[test]
fn an_observer_outlives_the_runtime_that_first_saw_its_event() {
    let (sender, seen) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let registry = Registry::new();
    registry
        .register_builtin("watch", move |_context, _input, _args| {
            sender.lock().unwrap().send(()).unwrap();
            Ok(None)
        })
        .unwrap();
    let hook = HookDefinition { observer: true, ..HookDefinition::builtin("watch", &[]) };
    let executor = executor(Event::TurnEnd, vec![hook], Options::default(), &registry);
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(executor.dispatch(Event::TurnEnd, &Input::default(), &CancellationToken::new()));
        drop(runtime);
        seen.recv_timeout(Duration::from_secs(20)).expect("it was seen");
    }
}

#[tokio::test]
async fn an_observer_sees_what_was_rewritten_before_it_and_nothing_that_was_denied() {
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let registry = Registry::new();
    registry
        .register_builtin("watch", move |_context, input, _args| {
            sender.send(input.messages.as_ref().unwrap()[0].content.clone().unwrap()).unwrap();
            Ok(None)
        })
        .unwrap();
    let watch = |name: &str| HookDefinition { observer: true, ..HookDefinition::builtin("watch", &[name]) };
    let rewrite = json!({"direct": {"permission": "modify", "messages": [{"role": "user", "content": "new"}]}});
    let deny = json!({"direct": {"permission": "deny"}});
    let hooks = vec![watch("1"), scripted("a", rewrite), watch("2"), scripted("b", deny), watch("3")];
    let executor = executor(Event::PreInference, hooks, Options::default(), &registry);
    let input = Input { messages: Some([Message::new("user", "old")].into()), ..Input::default() };
    executor.dispatch(Event::PreInference, &input, &CancellationToken::new()).await;
    executor.drain(Duration::from_secs(5)).await;
    let mut texts = Vec::new();
    while let Ok(text) = seen.try_recv() {
        texts.push(text.to_string());
    }
    texts.sort();
    assert_eq!(texts, ["new", "old"]);
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_does_not_end_is_given_up() {
    let hook = HookDefinition {
        observer: true,
        timeout: Some(Duration::from_secs(3600)),
        ..scripted("h", json!({"hang": 1}))
    };
    let executor = executor(Event::TurnEnd, vec![hook], Options::default(), &Registry::new());
    executor.dispatch(Event::TurnEnd, &Input::default(), &CancellationToken::new()).await;
    let start = Instant::now();
    executor.drain(Duration::from_secs(5)).await;
    assert!(start.elapsed() <= Duration::from_secs(7), "{:?}", start.elapsed());
}

#[tokio::test]
async fn who_stops_waiting_for_observers_may_end_them() {
    let hook = HookDefinition {
        observer: true,
        timeout: Some(Duration::from_secs(3600)),
        ..scripted("h", json!({"hang": 1}))
    };
    let executor = executor(Event::TurnEnd, vec![hook], Options::default(), &Registry::new());
    executor.dispatch(Event::TurnEnd, &Input::default(), &CancellationToken::new()).await;
    let patient = executor.drain(Duration::from_secs(3600));
    tokio::select! {
        biased;
        () = patient => panic!("the hook never ends"),
        () = tokio::task::yield_now() => {}
    }
    executor.drain(Duration::ZERO).await;
}

#[tokio::test]
async fn a_payload_says_what_the_host_left_out() {
    struct Show;
    impl HandlerFactory for Show {
        fn create(&self, _: &HookDefinition, _: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
            Ok(Arc::new(Show))
        }
    }
    impl Handler for Show {
        fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
            Box::pin(async move {
                let stdout = call.payload.line(call.input)?;
                assert_eq!(stdout, call.payload.line(call.input)?);
                Ok(Reply::Process {
                    stdout: [b"shown ", stdout.as_ref()].concat().into(),
                    stderr: "".into(),
                    exit_code: 0,
                })
            })
        }
    }
    let registry = Registry::new();
    registry.register("show", Arc::new(Show)).unwrap();
    let hook =
        HookDefinition::new(Profile::Native, HandlerDefinition::Other { kind: "show".into(), fields: Map::new() });
    let executor = executor(Event::TurnStart, vec![hook], Options::default(), &registry);
    let verdict = executor.dispatch(Event::TurnStart, &Input::default(), &CancellationToken::new()).await;
    let shown: Value = serde_json::from_str(verdict.additional_context.strip_prefix("shown ").unwrap()).unwrap();
    assert_eq!((&shown["schema_version"], &shown["hook_event_name"]), (&json!(1), &json!("turn_start")));
    assert_eq!(shown["cwd"], "/somewhere");
    assert!(shown["timestamp"].as_str().unwrap().ends_with('Z'), "{shown}");
}

fn any_script() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({"code": 2, "stderr": "two"})),
        Just(json!({"code": 1, "stderr": "one"})),
        Just(json!({"stdout": "{bad"})),
        Just(json!({"direct": {"system_message": "s"}})),
        Just(json!({"direct": {"decision": "block", "reason": "b"}})),
        Just(
            json!({"direct": {"hook_specific_output": {"permission_decision": "ask", "permission_decision_reason": "a"}}})
        ),
        Just(json!({"direct": {"hook_specific_output": {"permission_decision": "deny", "metadata": {"k": "1"}}}})),
        Just(json!({"direct": {"hook_specific_output": {"permission_decision": "allow", "metadata": {"k": "2"}}}})),
    ]
}

proptest! {
    #[test]
    fn the_verdict_does_not_depend_on_who_ends_first(scripts in prop::collection::vec((any_script(), 0..50_u64), 0..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let verdict = |delayed: bool| {
            let hooks = scripts.iter().enumerate().map(|(place, (script, delay))| {
                let mut script = script.clone();
                script["delay"] = json!(if delayed { *delay } else { 0 });
                scripted(&place.to_string(), script)
            });
            let mut verdict = runtime.block_on(dispatched(Event::ToolGuard, hooks.collect(), json!({})));
            verdict.outcomes.iter_mut().for_each(|outcome| outcome.duration = Duration::ZERO);
            verdict
        };
        prop_assert_eq!(verdict(true), verdict(false));
    }
}

#[tokio::test]
async fn the_most_that_a_hook_holds_back_is_held() {
    let hold =
        |name: &str, chars: Value| scripted(name, json!({"stdout": json!({"holdback_chars": chars}).to_string()}));
    for (first, second, held) in
        [(json!(3), json!(7), Some(7)), (json!(7), json!(null), Some(7)), (json!(0), json!(null), Some(0))]
    {
        let hooks = vec![hold("a", first.clone()), hold("b", second.clone())];
        let verdict = dispatched(Event::PostInference, hooks, json!({"output_text": "t"})).await;
        assert_eq!((verdict.holdback_chars, verdict.verb), (held, Verb::Allow), "{first} {second}");
    }
    let nobody = dispatched(Event::PostInference, vec![scripted("h", json!({}))], json!({})).await;
    assert_eq!(nobody.holdback_chars, None);
}

#[tokio::test]
async fn a_holdback_that_is_none_fails_its_hook() {
    for chars in [json!(-1), json!(1.5), json!("3"), json!(u64::MAX)] {
        let hook = scripted("h", json!({"stdout": json!({"holdback_chars": chars}).to_string()}));
        let verdict = dispatched(Event::PostInference, vec![hook], json!({})).await;
        assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::MalformedJson), "{chars}");
    }
    let hook = scripted("h", json!({"stdout": r#"{"holdback_chars": 3}"#}));
    let strict = HookDefinition { strict_output: true, ..hook };
    let verdict = dispatched(Event::PreInference, vec![strict], json!({})).await;
    assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::UnsupportedOutput));
}

#[tokio::test]
async fn placeholders_come_with_the_rewrite_that_holds_them_and_no_program_can_give_any() {
    let registry = Registry::new();
    let pair = |value: &str| (Arc::from("[EMAIL_1]"), Arc::from(value));
    let (known, kept) = (pair("a@b.c"), pair("a@b.c"));
    registry
        .register_builtin("mask", move |_context, _input, _args| {
            let messages = Some(vec![Message::new("user", "[EMAIL_1]")]);
            Ok(Some(gatehook_events::Output { messages, placeholders: vec![known.clone()], ..Default::default() }))
        })
        .unwrap();
    let program =
        json!({"stdout": r#"{"placeholders": [["x", "y"]], "messages": [{"role": "user", "content": "c"}]}"#});
    let hooks = vec![HookDefinition::builtin("mask", &[]), scripted("program", program)];
    let executor = executor(Event::PreInference, hooks, Options::default(), &registry);
    let input = Input { messages: Some([Message::new("user", "a@b.c")].into()), ..Input::default() };
    let cancel = CancellationToken::new();
    let verdict = executor.dispatch(Event::PreInference, &input, &cancel).await;
    assert_eq!(verdict.placeholders, [kept]);
    assert!(!serde_json::to_string(&verdict).unwrap().contains("a@b.c"));
    let unheld = executor.dispatch_held(Event::PreInference, &input, &cancel, &|_| Err("no".to_owned())).await;
    assert_eq!(unheld.placeholders, []);
}
