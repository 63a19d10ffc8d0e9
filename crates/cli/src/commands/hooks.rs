//! `gatehook hooks`: which hooks are in force, whether files are in order, what hooks answer to an event.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use gatehook_engine::Executor;
use gatehook_engine::handlers::command;
use gatehook_events::{Event, Input, Outcome, OutcomeKind, Profile, Verdict};
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::{FileArgs, HooksCommand, TestArgs};
use crate::commands::{list, trust};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{self, Reading};
use crate::print::Printer;
use crate::sample::{self, SampleError};
use crate::table::Table;

/// How long observers, and what hooks left behind, may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a `hooks` command.
pub(crate) fn run(command: HooksCommand, printer: &mut Printer) -> Result<Exit, Failure> {
    let env: BTreeMap<String, String> = policy::environment();
    match command {
        HooksCommand::List { files } => list::run(&files, &env, printer),
        HooksCommand::Check { files } => check(&files, &env, printer),
        HooksCommand::Test(args) => test(&args, &env, printer),
        HooksCommand::Trust(args) => trust::run(&args, &env, printer),
        HooksCommand::Untrust { file, .. } => trust::withdraw(file.as_deref(), &env, printer),
    }
}

fn check(args: &FileArgs, env: &BTreeMap<String, String>, printer: &mut Printer) -> Result<Exit, Failure> {
    let reading = Reading::of(&args.files, &args.dialect, env)?;
    let checked = reading.policy().and_then(|policy| Ok((policy.whole(env)?, list::waiting(&policy))));
    let failure = match checked {
        Ok((executor, waiting)) => {
            let (files, hooks) = (reading.places.len(), executor.hooks().count());
            waiting.into_iter().for_each(|note| printer.note(&note));
            if args.json {
                printer.json(&json!({"valid": true, "hooks": hooks, "problems": []}))?;
            } else {
                printer.note(&format!("{} in order: {}", count(files, "file"), count(hooks, "hook")));
            }
            return Ok(Exit::Done);
        }
        Err(error) => Failure::from(error),
    };
    if args.json {
        printer.json(&json!({"valid": false, "problems": failure.problems()}))?;
    } else {
        printer.failure(&failure);
    }
    Ok(Exit::No)
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn test(args: &TestArgs, env: &BTreeMap<String, String>, printer: &mut Printer) -> Result<Exit, Failure> {
    let profile = policy::profile(&args.dialect)?;
    let event = event(&args.event, profile)?;
    let input = input(args, event, profile)?;
    let policy = Reading::of(&args.config, &args.dialect, env)?.policy()?;
    let executor = policy.executor(env)?;
    list::waiting(&policy).into_iter().for_each(|note| printer.note(&note));
    // What a command hook leaves behind outside of its group becomes a child of this process, and is ended. Where the
    // system has no such thing, the group is all that is ended.
    let _ = command::adopt_orphans();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let verdict = runtime.block_on(until_told(&executor, event, &input));
    drop(runtime);
    command::end_leftovers(PATIENCE);
    let Some(verdict) = verdict? else { return Ok(Exit::Stopped) };
    if args.json {
        printer.json(&verdict)?;
    } else {
        printer.text(&shown(event, &verdict))?;
    }
    Ok(if verdict.allowed { Exit::Done } else { Exit::No })
}

/// The verdict, once observers have seen the event too; `None` where Ctrl-C or SIGTERM came first. Hooks run in process
/// groups of their own, which a terminal's Ctrl-C does not reach: they are ended here.
async fn until_told(executor: &Executor, event: Event, input: &Input) -> std::io::Result<Option<Verdict>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let cancel = CancellationToken::new();
    let told = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.cancel();
    };
    let dispatch = async {
        let verdict = executor.dispatch(event, input, &cancel).await;
        executor.drain(PATIENCE).await;
        verdict
    };
    let (mut told, mut dispatch) = (pin!(told), pin!(dispatch));
    tokio::select! {
        verdict = &mut dispatch => return Ok(Some(verdict)),
        () = &mut told => {}
    }
    // Hooks have 200 ms to end themselves; what still runs when this gives up is killed with the runtime.
    let ended = async { tokio::join!(dispatch, executor.drain(Duration::ZERO)) };
    let _ = tokio::time::timeout(Duration::from_secs(1), ended).await;
    Ok(None)
}

/// The event of a name, the dialect's own or the native one.
fn event(name: &str, profile: Profile) -> Result<Event, Failure> {
    let native = Event::from_name(name).filter(|event| !event.is_lane());
    Event::from_name_in(profile, name).or(native).ok_or_else(|| {
        let known = Event::all().filter_map(|event| event.name_in(profile)).chain(Event::all().map(Event::name));
        Failure::usage(format!("there is no event `{name}`"), gatehook_engine::config::did_you_mean(name, known))
    })
}

/// The caller's input, or a sample, with the caller's changes.
fn input(args: &TestArgs, event: Event, profile: Profile) -> Result<Input, Failure> {
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
fn spoken(payload: Map<String, Value>, event: Event, profile: Profile) -> Result<Map<String, Value>, Failure> {
    let Some(dialect) = policy::registry().dialect(profile) else { return Ok(payload) };
    let (_, input) = dialect.read_payload(Some(event), Value::Object(payload)).map_err(SampleError::Payload)?;
    match input.to_json().map_err(|error| SampleError::Unwritable(error.to_string()))? {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

/// What a file or standard input says of an event.
fn given(path: &Path) -> Result<Map<String, Value>, Failure> {
    let stdin = path == Path::new("-");
    let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let read = if stdin {
        std::io::stdin().lock().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| Failure::usage(format!("{name} cannot be read: {error}"), None))?;
    serde_json::from_str(&text).map_err(|error| {
        let help = "an input is one JSON object; `gatehook schema EVENT` says what may be in it".to_owned();
        Failure::usage(format!("{name} is no input of an event: {error}"), Some(help))
    })
}

/// Outcomes as a table, then the verdict and what it changes.
fn shown(event: Event, verdict: &Verdict) -> String {
    let mut text = String::new();
    if verdict.outcomes.is_empty() {
        text.push_str(&format!("no hook fits this {}\n", event.name()));
    } else {
        let mut table = Table::new(&["HOOK", "TYPE", "OUTCOME", "EXIT", "TIME", "REASON"]);
        for outcome in &verdict.outcomes {
            table.row(outcome_row(outcome));
        }
        text.push_str(&table.to_string());
    }
    text.push('\n');
    let refusal = verdict.refusal.as_ref();
    let rewritten = (!verdict.rewritten.is_empty()).then(|| serde_json::to_string_pretty(&verdict.rewritten));
    for (name, value) in [
        ("verdict", Some(verdict.verb.name())),
        ("message", Some(verdict.message.as_str())),
        (
            "to the user",
            refusal.and_then(|refusal| refusal.user_message.as_deref()).filter(|it| *it != verdict.message),
        ),
        ("to the agent", refusal.and_then(|refusal| refusal.agent_message.as_deref())),
        ("context", Some(verdict.additional_context.as_str())),
        ("notice", Some(verdict.system_message.as_str())),
        ("summary", Some(verdict.summary.as_str())),
        ("rewritten", rewritten.and_then(Result::ok).as_deref()),
    ] {
        push_field(&mut text, name, value.unwrap_or_default());
    }
    text
}

/// `name: value`; a value of several lines stands below, indented.
fn push_field(text: &mut String, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    text.push_str(name);
    text.push(':');
    let several = value.contains('\n');
    for line in value.lines() {
        text.push_str(if several { "\n  " } else { " " });
        text.push_str(line);
    }
    text.push('\n');
}

fn outcome_row(outcome: &Outcome) -> [String; 6] {
    [
        outcome.name.to_string(),
        outcome.handler.to_string(),
        match outcome.kind {
            OutcomeKind::Ok => outcome.verb.name().to_owned(),
            OutcomeKind::Blocked => "blocked".to_owned(),
            OutcomeKind::Failed(kind) => format!("failed: {}", kind.name()),
        },
        outcome.exit_code.to_string(),
        format!("{:.1} ms", outcome.duration.as_secs_f64() * 1000.0),
        outcome.reason.lines().next().unwrap_or_default().to_owned(),
    ]
}
