//! The hooks that a host picks, and those that run beside the model.

use super::*;

/// A verdict of the hooks of these names.
async fn picked(executor: &Executor, event: Event, input: &Input, names: &[&str]) -> Verdict {
    let pick = |hook: &crate::Selected<'_>| names.contains(&&**hook.name);
    executor.dispatch_some(event, input, &CancellationToken::new(), &|_| Ok(()), &pick).await
}

fn names(verdict: &Verdict) -> Vec<&str> {
    verdict.outcomes.iter().map(|outcome| &*outcome.name).collect()
}

#[tokio::test]
async fn a_host_runs_the_hooks_it_picks_in_their_order() {
    let reply = |permission: &str, reason: &str| json!({"direct": {"permission": permission, "reason": reason}});
    let hooks = vec![
        scripted("a", reply("ask", "first")),
        scripted("b", reply("deny", "second")),
        scripted("c", reply("allow", "third")),
    ];
    let executor = executor(Event::PostInference, hooks, Options::default(), &Registry::new());
    for (wanted, ran, verb) in [
        (&["c", "a"][..], &["a", "c"][..], Verb::Ask),
        (&["b", "c"], &["b"], Verb::Deny),
        (&["c"], &["c"], Verb::Allow),
        (&[], &[], Verb::Allow),
        (&["d"], &[], Verb::Allow),
    ] {
        let verdict = picked(&executor, Event::PostInference, &Input::default(), wanted).await;
        assert_eq!((names(&verdict), verdict.verb), (ran.to_vec(), verb), "{wanted:?}");
    }
}

#[tokio::test]
async fn a_definition_that_stands_twice_is_picked_once() {
    let hooks = vec![scripted("a", json!({"stdout": "x"})), scripted("a", json!({"stdout": "x"}))];
    let executor = executor(Event::TurnStart, hooks, Options::default(), &Registry::new());
    assert_eq!(executor.selected(Event::TurnStart, &Input::default()).len(), 1);
    assert_eq!(picked(&executor, Event::TurnStart, &Input::default(), &["a"]).await.additional_context, "x");
}

#[tokio::test]
async fn an_observer_that_is_not_picked_sees_nothing() {
    let seen = Arc::new(AtomicUsize::new(0));
    let (registry, count) = (Registry::new(), seen.clone());
    let watch = move || count.fetch_add(1, Ordering::SeqCst);
    registry
        .register_builtin("watch", move |_context, _input, _args| {
            watch();
            Ok(None)
        })
        .unwrap();
    for event in [Event::PostInference, Event::ToolGuard] {
        let before = seen.load(Ordering::SeqCst);
        let hooks = vec![
            HookDefinition { observer: true, ..HookDefinition::builtin("watch", &[]) },
            scripted("other", json!({})),
        ];
        let executor = executor(event, hooks, Options::default(), &registry);
        picked(&executor, event, &Input::default(), &["other"]).await;
        picked(&executor, event, &Input::default(), &["watch", "other"]).await;
        executor.drain(Duration::from_secs(10)).await;
        assert_eq!(seen.load(Ordering::SeqCst) - before, 1, "{event:?}");
    }
}

#[tokio::test]
async fn what_is_selected_is_what_a_dispatch_runs() {
    let when = vec![Condition { field: "model".into(), pattern: "gpt-.*".into() }];
    let hooks = vec![
        scripted("always", json!({})),
        HookDefinition { when, ..scripted("for gpt", json!({})) },
        HookDefinition { observer: true, ..scripted("observer", json!({})) },
    ];
    let executor = executor(Event::PostInference, hooks, Options::default(), &Registry::new());
    for (model, selected) in [("gpt-5", vec!["always", "for gpt", "observer"]), ("llama", vec!["always", "observer"])] {
        let input = Input { model_id: Some(model.into()), ..Input::default() };
        let found = executor.selected(Event::PostInference, &input);
        assert_eq!(found.iter().map(|hook| &**hook.name).collect::<Vec<_>>(), selected, "{model}");
        let held = found.last().map(|hook| (hook.policy().text, hook.scan().is_none()));
        assert_eq!(held, Some((crate::Held::Observe, true)), "{model}");
    }
    assert!(executor.selected(Event::PreInference, &Input::default()).is_empty());
}

#[tokio::test]
async fn a_concurrent_hook_judges_and_cannot_rewrite() {
    let modify = json!({"direct": {"permission": "modify", "messages": [{"role": "user", "content": "new"}]}});
    let hooks = vec![
        HookDefinition { concurrent: true, ..scripted("rewriter", modify) },
        HookDefinition { concurrent: true, ..scripted("judge", json!({"direct": {"permission": "allow"}})) },
    ];
    let executor = executor(Event::PreInference, hooks, Options::default(), &Registry::new());
    let input = Input { messages: Some([Message::new("user", "old")].into()), ..Input::default() };
    assert_eq!(picked(&executor, Event::PreInference, &input, &["judge"]).await.verb, Verb::Allow);
    let verdict = executor.dispatch(Event::PreInference, &input, &CancellationToken::new()).await;
    assert_eq!((verdict.verb, verdict.allowed, verdict.rewritten.is_empty()), (Verb::ModifyUnsupported, false, true));
    assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(FailureKind::UnsupportedRewrite));
}

#[tokio::test(start_paused = true)]
async fn concurrent_hooks_run_side_by_side() {
    let slow = |name: &str| HookDefinition { concurrent: true, ..scripted(name, json!({"delay": 100})) };
    let hooks = vec![slow("a"), scripted("first", json!({"delay": 10})), slow("b"), slow("c")];
    let options = Options { max_concurrent_hooks: 8.try_into().unwrap(), ..Options::default() };
    let executor = executor(Event::PreInference, hooks, options, &Registry::new());
    for (wanted, millis) in [(&["a", "b", "c"][..], 100), (&["first"], 10), (&["first", "a", "b"], 210)] {
        let start = Instant::now();
        picked(&executor, Event::PreInference, &Input::default(), wanted).await;
        assert_eq!(start.elapsed().as_millis(), millis, "{wanted:?}");
    }
}
