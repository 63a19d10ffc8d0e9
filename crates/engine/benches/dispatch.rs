//! `cargo xtask bench dispatch` runs this with the names of measurements and reads one line of JSON for each:
//! `{"name":"nothing","value":12.3}`. Times are medians, in the unit that the table there states.

#![allow(clippy::print_stdout, clippy::expect_used, clippy::panic, reason = "a bench answers its caller or stops")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use gatehook_engine::definition::CommandDefinition;
use gatehook_engine::events::{Event, Input, Message, Profile};
use gatehook_engine::{Executor, HandlerDefinition, HandlerEnv, HookDefinition, HookGroup, HooksConfig, Registry};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// Reads its input and answers.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/hook.sh");

fn main() {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    for name in std::env::args().skip(1).filter(|argument| !argument.starts_with('-')) {
        println!(r#"{{"name":"{name}","value":{:.2}}}"#, measure(&name, &runtime));
    }
}

fn measure(name: &str, runtime: &Runtime) -> f64 {
    match name {
        "nothing" => fast(runtime, &Subject::tool(vec![])),
        "allocations" => allocations(runtime, &Subject::tool(vec![])),
        "matchers_1" => fast(runtime, &Subject::tool(matchers(1))),
        "matchers_1000" => fast(runtime, &Subject::tool(matchers(1000))),
        "builtin_1k" => fast(runtime, &Subject::conversation(1 << 10)),
        "builtin_1m" => fast(runtime, &Subject::conversation(1 << 20)),
        "command_1" => slow(runtime, &Subject::tool(commands(1))),
        "command_8" => slow(runtime, &Subject::tool(commands(8))),
        other => panic!("no measurement `{other}`"),
    }
}

/// An executor, an event and its input.
struct Subject {
    executor: Executor,
    event: Event,
    input: Input,
    cancel: CancellationToken,
}

impl Subject {
    fn tool(groups: Vec<HookGroup>) -> Self {
        let input = Input { tool_name: Some("bash".into()), tool_use_id: Some("call-1".into()), ..Input::default() };
        Self::new(Event::ToolGuard, input, groups)
    }

    /// One builtin, and a conversation of so many bytes.
    fn conversation(bytes: usize) -> Self {
        let text = "a word, ".repeat(128);
        let messages = (0..bytes / text.len()).map(|_| Message::new("user", &text)).collect();
        let input = Input { messages: Some(messages), ..Input::default() };
        Self::new(
            Event::PreInference,
            input,
            vec![group(Event::PreInference, "", HookDefinition::builtin("look", &[]))],
        )
    }

    fn new(event: Event, input: Input, groups: Vec<HookGroup>) -> Self {
        let registry = Registry::with_defaults();
        registry
            .register_builtin("look", |_, input, _| {
                black_box(input.messages.as_deref().map(<[Message]>::len));
                Ok(None)
            })
            .expect("a name");
        let env = HandlerEnv::current().expect("a working directory");
        let executor = Executor::with_registry(HooksConfig { groups }, env, &registry).expect("hooks that compile");
        Self { executor, event, input, cancel: CancellationToken::new() }
    }
}

fn group(event: Event, matcher: &str, hook: HookDefinition) -> HookGroup {
    HookGroup { event, matcher: matcher.to_owned(), hooks: vec![hook] }
}

/// None of them fits.
fn matchers(count: usize) -> Vec<HookGroup> {
    (0..count)
        .map(|number| group(Event::ToolGuard, &format!("tool_{number}|other_.*"), HookDefinition::builtin("look", &[])))
        .collect()
}

fn commands(count: usize) -> Vec<HookGroup> {
    let command = CommandDefinition { command: SCRIPT.to_owned(), args: vec![], shell: false };
    let hook = HookDefinition::new(Profile::Native, HandlerDefinition::Command(command));
    (0..count)
        .map(|number| HookDefinition { name: Some(format!("hook {number}")), ..hook.clone() })
        .map(|hook| group(Event::ToolGuard, "", hook))
        .collect()
}

fn once(runtime: &Runtime, subject: &Subject) {
    let verdict = runtime.block_on(subject.executor.dispatch(subject.event, &subject.input, &subject.cancel));
    assert!(verdict.allowed, "{}", verdict.message);
}

fn allocations(runtime: &Runtime, subject: &Subject) -> f64 {
    once(runtime, subject);
    runtime.block_on(async {
        let before = counting::allocations();
        black_box(subject.executor.dispatch(subject.event, &subject.input, &subject.cancel).await);
        (counting::allocations() - before) as f64
    })
}

/// Nanoseconds of one dispatch, from many batches inside one future.
fn fast(runtime: &Runtime, subject: &Subject) -> f64 {
    const BATCH: u32 = 1000;
    once(runtime, subject);
    let mut times = vec![];
    let end = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end {
        let took = runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..BATCH {
                let dispatch = subject.executor.dispatch(black_box(subject.event), &subject.input, &subject.cancel);
                black_box(dispatch.await);
            }
            start.elapsed()
        });
        times.push(took.as_secs_f64() * 1e9 / f64::from(BATCH));
    }
    median(&mut times)
}

/// Microseconds of one dispatch.
fn slow(runtime: &Runtime, subject: &Subject) -> f64 {
    const RUNS: usize = 200;
    once(runtime, subject);
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            once(runtime, subject);
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    median(&mut times)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().expect("something was measured")
}

/// Counts what the process allocates.
#[allow(unsafe_code, reason = "only a global allocator sees every allocation")]
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Counting;

    static COUNT: AtomicUsize = AtomicUsize::new(0);

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    // SAFETY: every call goes to the system's allocator as it came.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            COUNT.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller keeps the contract of `alloc`.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            // SAFETY: `pointer` came from `alloc` above, so from the system's allocator, with this layout.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    /// How many allocations there have been.
    pub(super) fn allocations() -> usize {
        COUNT.load(Ordering::Relaxed)
    }
}
