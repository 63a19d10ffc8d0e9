//! `gatehook hooks trace`: recorded dispatches, as a list or one of them whole.

use std::collections::BTreeMap;
use std::time::SystemTime;

use gatehook_events::trace::{Query, Recorded, RecordedOutcome, Traces};
use gatehook_events::{Event, Profile};
use gatehook_store::TraceReader;
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};

use crate::args::{MemoryArgs, TraceArgs};
use crate::commands::hooks::{millis, push_field};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::Reading;
use crate::print::Printer;
use crate::raising;
use crate::recording;
use crate::table::Table;

/// Runs `hooks trace`.
pub(crate) fn run(args: &TraceArgs, env: &BTreeMap<String, String>, printer: &mut Printer) -> Result<Exit, Failure> {
    let wanted = query(args)?;
    let memory = open(&args.memory, env)?;
    match (args.id, memory) {
        (Some(id), memory) => {
            let found = memory.map(|memory| memory.trace(id)).transpose()?.flatten();
            let trace = found.ok_or_else(|| missing(id))?;
            if args.memory.json { printer.json(&json(&trace))? } else { printer.text(&whole(&trace))? }
        }
        (None, None) => nothing(&args.memory, printer)?,
        (None, Some(memory)) => list(&memory.traces(&wanted)?, &args.memory, printer)?,
    }
    Ok(Exit::Done)
}

/// What remembers dispatches; `None` where nothing was ever recorded.
pub(super) fn open(args: &MemoryArgs, env: &BTreeMap<String, String>) -> Result<Option<TraceReader>, Failure> {
    let policy = Reading::of(&args.config, Profile::Native.name(), env)?.policy()?;
    let path = recording::path(policy.traces(), env);
    Ok(path.map(|path| TraceReader::open(&path)).transpose()?.flatten())
}

/// There is nothing to show.
pub(super) fn nothing(args: &MemoryArgs, printer: &mut Printer) -> Result<(), Failure> {
    if args.json {
        return printer.json(&json!([]));
    }
    printer.note("no dispatch is recorded: `gatehook hooks test` records some, `serve` where `traces.enabled` says so");
    Ok(())
}

/// There is no such trace.
pub(super) fn missing(id: i64) -> Failure {
    let help = "`gatehook hooks trace` lists those that are kept".to_owned();
    Failure::usage(format!("there is no trace {id}"), Some(help))
}

/// Since when, where somebody says how long ago.
pub(super) fn since(age: Option<std::time::Duration>) -> Option<SystemTime> {
    age.map(|age| SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH))
}

fn query(args: &TraceArgs) -> Result<Query, Failure> {
    let event = args.event.as_deref().map(|name| raising::event(name, Profile::Native)).transpose()?;
    Ok(Query {
        event: event.map(Event::public_name).map(str::to_owned),
        hook: args.hook.clone(),
        session: args.session.clone(),
        failed: args.failed,
        since: since(args.since),
        limit: args.limit,
    })
}

fn list(traces: &[Recorded], args: &MemoryArgs, printer: &mut Printer) -> Result<(), Failure> {
    if args.json {
        return printer.json(&traces.iter().map(json).collect::<Vec<_>>());
    }
    if traces.is_empty() {
        printer.note("no recorded dispatch is like that");
        return Ok(());
    }
    let mut table = Table::new(&["ID", "WHEN", "EVENT", "SESSION", "VERDICT", "TIME", "HOOKS", "MESSAGE"]);
    for trace in traces {
        let hooks: Vec<String> = trace.outcomes.iter().map(hook).collect();
        table.row([
            trace.id.to_string(),
            when(trace.time, Unit::Second),
            trace.event.clone(),
            trace.session.clone().unwrap_or_else(|| "-".to_owned()),
            trace.verb.clone(),
            millis(trace.duration),
            hooks.join(", "),
            trace.message.lines().next().unwrap_or_default().to_owned(),
        ]);
    }
    printer.text(&table)
}

/// A hook, and what became of it where that is worth a word.
fn hook(outcome: &RecordedOutcome) -> String {
    match outcome.kind.as_str() {
        "ok" => outcome.hook.clone(),
        _ => format!("{} ({})", outcome.hook, came(outcome)),
    }
}

fn came(outcome: &RecordedOutcome) -> String {
    match (outcome.kind.as_str(), &outcome.failure) {
        ("failed", Some(failure)) => format!("failed: {failure}"),
        ("ok", _) if outcome.recalled => "recalled".to_owned(),
        ("ok", _) => outcome.verb.clone(),
        (kind, _) => kind.to_owned(),
    }
}

/// RFC 3339 in UTC.
pub(super) fn when(time: SystemTime, unit: Unit) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    time.round(unit).unwrap_or(time).to_string()
}

/// One trace with everything that is known of it.
fn whole(trace: &Recorded) -> String {
    let (when, duration) = (when(trace.time, Unit::Millisecond), millis(trace.duration));
    let mut text = String::new();
    let mut table = Table::new(&["HOOK", "TYPE", "PROFILE", "OUTCOME", "EXIT", "TIME", "REASON"]);
    for outcome in &trace.outcomes {
        table.row([
            outcome.hook.clone(),
            outcome.handler.clone(),
            outcome.profile.clone(),
            came(outcome),
            outcome.exit_code.to_string(),
            millis(outcome.duration),
            outcome.reason.lines().next().unwrap_or_default().to_owned(),
        ]);
    }
    let input = serde_json::to_string_pretty(&trace.input).unwrap_or_default();
    let missing = match (trace.secrets, trace.cut) {
        (0, false) => String::new(),
        (0, true) => "it was too large, or not over: something is left out".to_owned(),
        (secrets, cut) => format!("secrets taken out: {secrets}{}", if cut { "; something is left out" } else { "" }),
    };
    for (name, value) in [
        ("trace", trace.id.to_string()),
        ("time", when),
        ("event", trace.event.clone()),
        ("session", trace.session.clone().unwrap_or_default()),
        ("plane", trace.plane.clone()),
        ("took", duration),
        ("verdict", trace.verb.clone()),
        ("message", trace.message.clone()),
        ("rewritten", trace.rewritten.join(", ")),
        ("input", input),
        ("of the input", missing),
    ] {
        push_field(&mut text, name, &gatehook_engine::text::plain(&value));
    }
    text.push_str(&format!("\n{table}"));
    for outcome in trace.outcomes.iter().filter(|outcome| !outcome.stderr.is_empty()) {
        let name = format!("stderr of {}", gatehook_engine::text::plain(&outcome.hook));
        push_field(&mut text, &name, gatehook_engine::text::plain(&outcome.stderr).trim_end());
    }
    text
}

/// One trace as `hooks replay` reads it.
pub(super) fn json(trace: &Recorded) -> Value {
    let outcomes = trace.outcomes.iter().enumerate().map(|(order, outcome)| {
        json!({
            "name": outcome.hook, "type": outcome.handler, "profile": outcome.profile, "order": order,
            "duration_us": micros(outcome.duration), "exit_code": outcome.exit_code, "kind": outcome.kind,
            "failure": outcome.failure, "verb": outcome.verb, "recalled": outcome.recalled, "reason": outcome.reason,
            "stderr": outcome.stderr, "usage": outcome.usage, "cost": outcome.cost,
        })
    });
    json!({
        "id": trace.id, "time": when(trace.time, Unit::Millisecond), "event": trace.event, "profiles": trace.profiles,
        "session_id": trace.session, "plane": trace.plane, "duration_us": micros(trace.duration),
        "allowed": trace.allowed,
        "verdict": {"verb": trace.verb, "message": trace.message, "rewritten": trace.rewritten},
        "input": trace.input, "secrets": trace.secrets, "cut": trace.cut, "outcomes": outcomes.collect::<Vec<_>>(),
    })
}

/// In microseconds.
pub(super) fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
