//! Hooks of two executors in one.

use gatehook_events::Output;

use super::*;

/// An executor whose builtin says how often it was asked, which it remembers.
fn counting(event: Event, name: &str, asked: &Arc<AtomicUsize>) -> Executor {
    let (registry, asked, said) = (Registry::with_defaults(), asked.clone(), name.to_owned());
    registry
        .register_builtin(name, move |context, _input, _args| {
            let times = asked.fetch_add(1, Ordering::Relaxed) + 1;
            Ok(Some(Output::additional_context(context.event, format!("{said} {times}"))))
        })
        .unwrap();
    let hooks = vec![HookDefinition::builtin(name, &[])];
    let config = HooksConfig { groups: vec![HookGroup { event, matcher: String::new(), hooks }] };
    Executor::with_registry(config, HandlerEnv::current().unwrap(), &registry).unwrap()
}

async fn context(executor: &Executor, event: Event) -> String {
    executor.dispatch(event, &Input::default(), &CancellationToken::new()).await.additional_context
}

#[tokio::test]
async fn hooks_of_both_run_in_order_and_remember_in_both() {
    let (first, second) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let standing = counting(Event::TurnStart, "first", &first);
    let more = counting(Event::TurnStart, "second", &second);
    let both = standing.joined(&more).unwrap();
    assert_eq!(context(&both, Event::TurnStart).await, "first 1\nsecond 1");
    assert_eq!(context(&standing, Event::TurnStart).await, "first 2");
    assert_eq!(context(&both, Event::TurnStart).await, "first 3\nsecond 2");
    // What is the same hook twice runs once.
    let again = both.joined(&more).unwrap();
    assert_eq!(again.hooks().count(), 3);
    assert_eq!(context(&again, Event::TurnStart).await, "first 4\nsecond 3");
}

#[tokio::test]
async fn events_of_one_alone_are_those_of_both() {
    let none = Arc::new(AtomicUsize::new(0));
    let both = counting(Event::TurnStart, "first", &none).joined(&counting(Event::Stop, "second", &none)).unwrap();
    assert!(both.has(Event::TurnStart) && both.has(Event::Stop) && !both.has(Event::SessionEnd));
}
