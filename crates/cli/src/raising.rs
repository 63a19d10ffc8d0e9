//! Raising events from a command: by name, with an input, until they are over or somebody stops it.

use std::io::Read;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use gatehook_engine::Executor;
use gatehook_engine::handlers::command;
use gatehook_events::{Event, Input, Profile, Verdict};
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::EventArgs;
use crate::failure::Failure;
use crate::policy::{self, Policy};
use crate::print::Printer;
use crate::recording::Recording;
use crate::sample::{self, SampleError};

/// How long observers, and what hooks left behind, may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Names the session that a command works in.
const SESSION: &str = "GATEHOOK_SESSION_ID";

/// The event of a name, the dialect's own or the native one.
pub(crate) fn event(name: &str, profile: Profile) -> Result<Event, Failure> {
    let native = Event::from_name(name).filter(|event| !event.is_lane());
    Event::from_name_in(profile, name).or(native).ok_or_else(|| no_event(name, profile))
}

/// There is no event of this name.
pub(crate) fn no_event(name: &str, profile: Profile) -> Failure {
    let known = Event::all().filter_map(|event| event.name_in(profile)).chain(Event::all().map(Event::name));
    Failure::usage(format!("there is no event `{name}`"), gatehook_engine::config::did_you_mean(name, known))
}

/// The caller's input, or a sample, with the caller's changes.
pub(crate) fn input(args: &EventArgs, event: Event, profile: Profile) -> Result<Input, Failure> {
    let mut input = match &args.input {
        Some(path) => spoken(given(path)?, event, profile)?,
        None => gatehook_events::sample::sample(event),
    };
    if let Some(tool) = &args.tool {
        input.insert("tool_name".to_owned(), json!(tool));
        if !args.set.is_empty() && args.input.is_none() {
            input.insert("tool_input".to_owned(), json!({}));
        }
    }
    for assignment in &args.set {
        sample::set(&mut input, event, assignment)?;
    }
    Ok(Input::read(input).map_err(SampleError::from)?)
}

/// A payload of a foreign contract as a native one.
pub(crate) fn spoken(
    payload: Map<String, Value>,
    event: Event,
    profile: Profile,
) -> Result<Map<String, Value>, Failure> {
    let Some(dialect) = policy::registry().dialect(profile) else { return Ok(payload) };
    let (_, input) = dialect.read_payload(Some(event), Value::Object(payload)).map_err(SampleError::Payload)?;
    match input.to_json().map_err(|error| SampleError::Unwritable(error.to_string()))? {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

/// What a file or standard input says of an event; `-` is standard input.
pub(crate) fn given(path: &Path) -> Result<Map<String, Value>, Failure> {
    let (name, text) = text(path)?;
    serde_json::from_str(&text).map_err(|error| {
        let help = "an input is one JSON object; `gatehook schema EVENT` says what may be in it".to_owned();
        Failure::usage(format!("{name} is no input of an event: {error}"), Some(help))
    })
}

/// A file's name and text; `-` is standard input.
pub(crate) fn text(path: &Path) -> Result<(String, String), Failure> {
    let stdin = path == Path::new("-");
    let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let read = if stdin {
        std::io::stdin().lock().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| Failure::usage(format!("{name} cannot be read: {error}"), None))?;
    Ok((name, text))
}

/// Raises one event with the hooks of a policy, and remembers it; `None` where Ctrl-C or SIGTERM came first.
pub(crate) fn one(
    policy: &Policy,
    executor: Executor,
    event: Event,
    input: &Input,
    printer: &mut Printer,
) -> Result<Option<Verdict>, Failure> {
    let env = policy::environment();
    let recording = Recording::of_agent(policy.traces(), &env);
    let executor = recording.recorded(executor);
    // What a tool of an agent raises belongs to its session.
    let session = || env.get(SESSION).map(|id| id.as_str().into());
    let input = &Input { session_id: input.session_id.clone().or_else(session), ..input.clone() };
    let verdict = raise(&executor, async |cancel| executor.dispatch(event, input, cancel).await);
    recording.finish(printer);
    verdict
}

/// Does `work` that dispatches events, on a runtime of its own, and sees to it that nothing of it is left behind; `None`
/// where Ctrl-C or SIGTERM came first.
pub(crate) fn raise<T>(
    executor: &Executor,
    work: impl AsyncFnOnce(&CancellationToken) -> T,
) -> Result<Option<T>, Failure> {
    // What a command hook leaves behind outside of its group becomes a child of this process, and is ended. Where the
    // system has no such thing, the group is all that is ended.
    let _ = command::adopt_orphans();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(until_told(executor, work));
    drop(runtime);
    command::end_leftovers(PATIENCE);
    Ok(done?)
}

/// What came of the work, once observers have seen the events too; `None` where a signal came first. Hooks run in process
/// groups of their own, which a terminal's Ctrl-C does not reach: they are ended here.
async fn until_told<T>(
    executor: &Executor,
    work: impl AsyncFnOnce(&CancellationToken) -> T,
) -> std::io::Result<Option<T>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let cancel = CancellationToken::new();
    let told = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.cancel();
    };
    let work = async {
        let done = work(&cancel).await;
        executor.drain(PATIENCE).await;
        done
    };
    let (mut told, mut work) = (pin!(told), pin!(work));
    tokio::select! {
        done = &mut work => return Ok(Some(done)),
        () = &mut told => {}
    }
    // Hooks have 200 ms to end themselves; what still runs when this gives up is killed with the runtime.
    let ended = async { tokio::join!(work, executor.drain(Duration::ZERO)) };
    let _ = tokio::time::timeout(Duration::from_secs(1), ended).await;
    Ok(None)
}
