//! Hooks that want to see the whole.

use gatehook_engine::events::{Event, Output, Permission};
use gatehook_inference::{ErrorKind, Route};

use super::{gate, stream};
use crate::streams::{ROUTES, call, frames, stop, text, thinking};
use crate::world::{Exchange, World};

fn judged(run: impl Fn(&gatehook_engine::events::Input) -> Option<Output> + Send + Sync + 'static) -> World {
    World::new().hook(Event::PostInference, run)
}

#[tokio::test]
async fn without_hooks_there_is_no_gate() {
    let exchange = Exchange::from(World::new().hook(Event::PreInference, |_| None));
    assert!(gate(&exchange, Route::ChatCompletions).await.is_none());
}

#[tokio::test]
async fn nothing_leaves_before_the_verdict_and_then_everything_as_it_came() {
    for &route in ROUTES {
        let says = [thinking("hm"), text("Hel"), text("lo.")];
        let (exchange, came, _) = stream(judged(|_| None), route, &says).await;
        let frames = frames(route, &says);
        assert_eq!(came.text(), frames.concat(), "{route:?}");
        let before = came.after.iter().rev().nth(1).unwrap();
        assert_eq!(*before, 0, "{route:?}: {:?}", came.after);
        let seen = exchange.seen.inputs(Event::PostInference);
        assert_eq!(seen.len(), 1, "{route:?}");
        assert_eq!(seen[0].output_text.as_deref(), Some("Hello."), "{route:?}");
        assert_eq!((seen[0].segment, seen[0].stream), (None, Some(true)), "{route:?}");
        assert_eq!(seen[0].done_reason.as_deref(), Some(stop(route)), "{route:?}");
        assert!(seen[0].messages.is_some(), "{route:?}");
        assert_eq!(exchange.seen.verdicts().len(), 1, "{route:?}");
        if route == Route::ChatCompletions {
            assert_eq!(seen[0].output_thinking.as_deref(), Some("hm"));
            assert_eq!(seen[0].usage.as_ref().unwrap()["total_tokens"], 3);
        }
    }
}

#[tokio::test]
async fn a_denial_before_anything_left_is_a_plain_refusal() {
    for &route in ROUTES {
        let (_, came, _) = stream(judged(|_| Some(Output::block("no"))), route, &[text("Hello.")]).await;
        assert!(came.bytes.is_empty(), "{route:?}");
        let refusal = came.refusal.unwrap();
        assert_eq!((refusal.kind, &*refusal.message), (ErrorKind::Denied, "no"), "{route:?}");
    }
}

#[tokio::test]
async fn a_denial_after_the_status_line_ends_the_stream_by_its_protocol() {
    for &route in ROUTES {
        let exchange = Exchange::from(judged(|_| Some(Output::block("no"))));
        let mut gate = gate(&exchange, route).await.unwrap();
        gate.commit();
        let came = super::send(&mut gate, frames(route, &[text("Hello.")]).into_iter().map(Into::into)).await;
        let gathered = crate::streams::gather(route, &came.bytes);
        assert_eq!((gathered.text.as_str(), gathered.over), ("", true), "{route:?}: {}", came.text());
        let hook = gathered.hook.unwrap();
        assert_eq!((&hook["permission"], &hook["hook_name"]), (&"deny".into(), &"hook_0".into()), "{route:?}");
    }
}

#[tokio::test]
async fn what_a_person_has_to_decide_is_withheld() {
    let ask = |_: &_| Some(Output { permission: Some(Permission::Ask), ..Output::default() });
    let (_, came, _) = stream(judged(ask), Route::ChatCompletions, &[text("Hello.")]).await;
    let refusal = came.refusal.unwrap();
    assert_eq!(refusal.kind, ErrorKind::ApprovalRequired);
    assert!(refusal.hook.unwrap().fingerprint.is_some());
}

#[tokio::test]
async fn texts_and_calls_are_rewritten_before_they_leave() {
    let rewrite = |input: &gatehook_engine::events::Input| {
        let mut calls = input.tool_calls.clone().unwrap().to_vec();
        calls[1].function.arguments = r#"{"x":2}"#.into();
        calls.remove(0);
        let (output_text, output_thinking) = (Some("Bye.".into()), Some("".into()));
        let permission = Some(Permission::Modify);
        Some(Output { permission, output_text, output_thinking, tool_calls: Some(calls), ..Output::default() })
    };
    let says = [thinking("hm"), text("Hello."), call("c1", "rm", "{}"), call("c2", "ls", "{}")];
    let (_, came, gathered) = stream(judged(rewrite), Route::ChatCompletions, &says).await;
    assert_eq!((&*gathered.text, &*gathered.thinking), ("Bye.", ""), "{}", came.text());
    assert_eq!(gathered.calls, [("c2".into(), "ls".into(), r#"{"x":2}"#.into())], "{}", came.text());
    assert_eq!(gathered.stop.as_deref(), Some("tool_calls"));
}

#[tokio::test]
async fn a_hook_may_speak_where_the_model_did_not() {
    let says = |_: &_| {
        let permission = Some(Permission::Modify);
        Some(Output { permission, output_text: Some("Said by a hook.".into()), ..Output::default() })
    };
    let (_, came, gathered) = stream(judged(says), Route::ChatCompletions, &[call("c1", "ls", "{}")]).await;
    assert_eq!(gathered.text, "Said by a hook.", "{}", came.text());
    assert_eq!(gathered.calls.len(), 1, "{}", came.text());
}

#[tokio::test]
async fn a_hook_that_fails_lets_nothing_pass_unless_it_is_configured_to() {
    use gatehook_engine::events::FailureKind;
    use gatehook_engine::{HandlerError, HookDefinition, OnError};
    for (on_error, passes) in [(None, false), (Some(OnError::Warn), true)] {
        let define = |hook| HookDefinition { on_error, ..hook };
        let fails = |_: &_| Err(HandlerError::new(FailureKind::HandlerError, "it is broken"));
        let world = World::new().hook_with(Event::PostInference, "", define, fails);
        let (_, came, gathered) = stream(world, Route::ChatCompletions, &[text("Hello.")]).await;
        assert_eq!(gathered.text == "Hello.", passes);
        assert_eq!(came.refusal.map(|refusal| refusal.kind), (!passes).then_some(ErrorKind::HookUnavailable));
    }
}

/// Two choices of chat completions, the second of which says `second`.
fn two_choices(second: &str) -> String {
    let chunk = |index: u32, delta: &str, stop: &str| {
        format!(
            "data: {{\"id\":\"c\",\"choices\":[{{\"index\":{index},\"delta\":{delta},\"finish_reason\":{stop}}}]}}\n\n"
        )
    };
    let says = |index, text: &str| chunk(index, &format!("{{\"content\":\"{text}\"}}"), "null");
    let stops = |index| chunk(index, "{}", "\"stop\"");
    [says(0, "one "), says(1, second), says(0, "more"), stops(0), stops(1), "data: [DONE]\n\n".to_owned()].concat()
}

fn bad(input: &gatehook_engine::events::Input) -> Option<Output> {
    input.output_text.as_deref().is_some_and(|text| text.contains("bad")).then(|| Output::block("no bad words"))
}

#[tokio::test(start_paused = true)]
async fn no_choice_leaves_before_all_of_them_are_judged() {
    let takes = std::time::Duration::from_millis(5);
    let exchange = Exchange::from(World::new().slow_hook(Event::PostInference, |hook| hook, takes, bad));
    let mut gate = gate(&exchange, Route::ChatCompletions).await.unwrap();
    let came = super::send(&mut gate, [two_choices("bad").into()]).await;
    assert!(came.bytes.is_empty(), "{}", came.text());
    assert_eq!(came.refusal.unwrap().kind, ErrorKind::Denied);
    let mut gate = super::gate(&exchange, Route::ChatCompletions).await.unwrap();
    let came = super::send(&mut gate, [two_choices("good").into()]).await;
    assert_eq!(came.text(), two_choices("good"));
}

#[tokio::test]
async fn a_denial_of_one_choice_ends_all_of_them() {
    use gatehook_engine::HookDefinition;
    use gatehook_engine::definition::{Stream, StreamMode};
    let stream = Stream { size: Some(1), ..Stream::new(StreamMode::Window) };
    let define = |hook| HookDefinition { stream: Some(stream), ..hook };
    let exchange = Exchange::from(World::new().hook_with(Event::PostInference, "", define, |input| Ok(bad(input))));
    let mut gate = gate(&exchange, Route::ChatCompletions).await.unwrap();
    let stream = two_choices("bad");
    let came = super::send(&mut gate, stream.split_inclusive("\n\n").map(|frame| frame.to_owned().into())).await;
    assert!(came.text().contains("one ") && !came.text().contains("bad\""), "{}", came.text());
    assert!(!came.text().contains("more") && came.text().ends_with("data: [DONE]\n\n"), "{}", came.text());
    assert_eq!(came.text().matches(r#""finish_reason":"stop""#).count(), 2, "{}", came.text());
}

#[tokio::test]
async fn a_long_reason_is_cut_in_the_stream_too() {
    let exchange = Exchange::from(judged(|_| Some(Output::block("é".repeat(1000)))));
    let mut gate = gate(&exchange, Route::ChatCompletions).await.unwrap();
    gate.commit();
    let came = super::send(&mut gate, [frames(Route::ChatCompletions, &[text("Hello.")]).concat().into()]).await;
    let gathered = crate::streams::gather(Route::ChatCompletions, &came.bytes);
    assert_eq!(gathered.refusal.chars().count(), 256);
}
