//! `cargo xtask bench handlers` runs this with the worker's program and the names of measurements, and reads one line of
//! JSON for each: `{"name":"worker_hook","value":12.3}`. Times are medians in microseconds.

#![allow(clippy::print_stdout, clippy::expect_used, clippy::panic, reason = "a bench answers its caller or stops")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::num::NonZeroU64;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gatehook_engine::definition::{CommandDefinition, Confinement, PythonDefinition, Sandbox, WorkerDefinition};
use gatehook_engine::events::{Event, Input, OutcomeKind, Profile};
use gatehook_engine::handler::Payload;
use gatehook_engine::{Executor, HandlerDefinition, HandlerEnv, HookDefinition, HookGroup, HooksConfig};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// A function, and a script around it.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/hook.py");
/// Reads its input and answers.
const SHELL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/hook.sh");
/// A loop around the same function.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/worker.py");

fn main() {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let Some(worker) = arguments.next() else { return };
    for name in arguments {
        println!(r#"{{"name":"{name}","value":{:.2}}}"#, measure(&name, &worker, &runtime));
    }
}

fn measure(name: &str, worker: &str, runtime: &Runtime) -> f64 {
    let program = |program: &str, args: &[&str]| CommandDefinition {
        command: program.to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        shell: false,
    };
    match name {
        "worker_hook" => hook(runtime, HandlerDefinition::Worker(WorkerDefinition::new(program(worker, &[])))),
        "worker_pipe" => pipe(Command::new(worker)),
        "script_hook" => hook(runtime, HandlerDefinition::Worker(WorkerDefinition::new(program("python3", &[SCRIPT])))),
        "script_pipe" => {
            let mut command = Command::new("python3");
            command.arg(SCRIPT);
            pipe(command)
        }
        "python_hook" => hook(runtime, HandlerDefinition::Python(PythonDefinition::new(PYTHON, Some("hook")))),
        "line_plain" => hook(runtime, line(SHELL)),
        "line_limited" => confined(runtime, line(SHELL), limits()),
        "line_sandboxed" => confined(runtime, line(SHELL), sandbox()),
        "program_plain" => hook(runtime, HandlerDefinition::Command(program(SHELL, &[]))),
        "program_limited" => confined(runtime, HandlerDefinition::Command(program(SHELL, &[])), limits()),
        "python_command" => hook(runtime, HandlerDefinition::Command(program("python3", &[PYTHON]))),
        other => panic!("no measurement `{other}`"),
    }
}

fn input() -> Input {
    let timestamp = Some("2026-01-01T00:00:00.00Z".into());
    Input { tool_name: Some("bash".into()), tool_use_id: Some("call-1".into()), timestamp, ..Input::default() }
}

fn line(line: &str) -> HandlerDefinition {
    HandlerDefinition::Command(CommandDefinition { command: line.to_owned(), args: vec![], shell: true })
}

fn limits() -> Confinement {
    Confinement {
        max_memory: Some(512 << 20),
        max_cpu_seconds: NonZeroU64::new(10),
        max_file_size: Some(1 << 20),
        ..Confinement::default()
    }
}

fn sandbox() -> Confinement {
    let sandbox = Sandbox { no_network: true, write: Some(vec![]), required: true };
    Confinement { sandbox: Some(sandbox), ..Confinement::default() }
}

/// One dispatch to one hook.
fn hook(runtime: &Runtime, handler: HandlerDefinition) -> f64 {
    confined(runtime, handler, Confinement::default())
}

/// The same within bounds.
fn confined(runtime: &Runtime, handler: HandlerDefinition, confinement: Confinement) -> f64 {
    let hooks = vec![HookDefinition { confinement, ..HookDefinition::new(Profile::Native, handler) }];
    let group = HookGroup { event: Event::ToolGuard, matcher: String::new(), hooks };
    let env = HandlerEnv::current().expect("a working directory");
    let executor = Executor::new(HooksConfig { groups: vec![group] }, env).expect("a hook that compiles");
    let (input, cancel) = (input(), CancellationToken::new());
    runtime.block_on(async {
        let mut times = vec![];
        for run in rounds() {
            let start = Instant::now();
            let verdict = executor.dispatch(Event::ToolGuard, &input, &cancel).await;
            let took = start.elapsed();
            assert!(verdict.allowed && verdict.outcomes.iter().all(|it| it.kind == OutcomeKind::Ok), "{verdict:?}");
            times.extend((run > 0).then_some(took));
        }
        median(times)
    })
}

/// The same line to the same worker, by hand.
fn pipe(mut worker: Command) -> f64 {
    let payload = Payload::new(Event::ToolGuard, "/home/user".into());
    let line = payload.line(&input()).expect("a line");
    let mut child = worker.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a worker");
    let (mut stdin, stdout) = child.stdin.take().zip(child.stdout.take()).expect("pipes");
    let (mut stdout, line) = (BufReader::new(stdout), [&line[..], b"\n"].concat());
    let (mut times, mut answer) = (vec![], String::new());
    for run in rounds() {
        answer.clear();
        let start = Instant::now();
        stdin.write_all(&line).expect("a worker that reads");
        stdout.read_line(&mut answer).expect("a worker that answers");
        let took = start.elapsed();
        assert!(answer.contains("true"), "{answer}");
        times.extend((run > 0).then_some(took));
    }
    drop(stdin);
    child.wait().expect("an end");
    median(times)
}

/// So many as fit into half a second, at least twenty beside the first.
fn rounds() -> impl Iterator<Item = usize> {
    let end = Instant::now() + Duration::from_millis(500);
    (0..).take_while(move |&run| run <= 20 || Instant::now() < end)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).expect("something was measured").as_secs_f64() * 1e6
}
