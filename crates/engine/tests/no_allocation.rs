//! Where no hook fits, an event costs no allocation.
#![allow(unsafe_code, reason = "an allocator that counts is an unsafe trait")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use gatehook_engine::events::{Event, Input, Recorder, Trace, Verdict};
use gatehook_engine::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig};
use tokio_util::sync::CancellationToken;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Takes traces, and makes nothing of them.
#[derive(Debug)]
struct Forgetful;

impl Recorder for Forgetful {
    fn record(&self, _: Trace) {}
}

fn executor(groups: Vec<HookGroup>) -> Executor {
    let env = HandlerEnv { working_dir: "/".into(), env: Default::default() };
    Executor::new(HooksConfig { groups }, env).unwrap()
}

/// How many allocations one dispatch makes, which must be ready at once.
fn allocations(executor: &Executor, event: Event, input: &Input) -> usize {
    let cancel = CancellationToken::new();
    let before = ALLOCATIONS.get();
    {
        let mut dispatch = pin!(executor.dispatch(event, input, &cancel));
        let ready = dispatch.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(ready, Poll::Ready(Verdict { allowed: true, .. })));
    }
    ALLOCATIONS.get() - before
}

#[test]
fn an_event_without_hooks_allocates_nothing() {
    let unrecorded = executor(Vec::new());
    let recorded = unrecorded.clone().recorded(std::sync::Arc::new(Forgetful));
    for event in Event::all() {
        assert_eq!(allocations(&unrecorded, event, &Input::default()), 0, "{event:?}");
        assert_eq!(allocations(&recorded, event, &Input::default()), 0, "{event:?}, recorded");
    }
}

#[test]
fn an_event_whose_hooks_do_not_fit_allocates_nothing() {
    let group = |name: usize| HookGroup {
        event: Event::PreToolUse,
        matcher: format!("tool_{name}|other_{name}.*"),
        hooks: vec![HookDefinition::builtin("redact_secrets", &[])],
    };
    let executor = executor((0..100).map(group).collect());
    let input = Input { tool_name: Some("shell".into()), ..Input::default() };
    // The first search of a thread makes the automaton's cache.
    allocations(&executor, Event::PreToolUse, &input);
    assert_eq!(allocations(&executor, Event::PreToolUse, &input), 0);
    let recorded = executor.recorded(std::sync::Arc::new(Forgetful));
    assert_eq!(allocations(&recorded, Event::PreToolUse, &input), 0, "recorded");
}
