//! `gatehook hooks replay`: recorded events against the hooks as they are now, and what would change.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::Path;

use gatehook_engine::Executor;
use gatehook_events::Profile;
use gatehook_events::replay::{self, Answer, Fault, Record, RecordError};
use gatehook_events::trace::Traces;
use serde_json::{Deserializer, Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::{MemoryArgs, ReplayArgs};
use crate::commands::hooks::count;
use crate::commands::{list, trace};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::Reading;
use crate::print::Printer;
use crate::raising;
use crate::table::Table;

/// The most that is read of a file, in bytes.
const MAX_FILE: u64 = 256 << 20;

/// What became of one event.
struct Replayed {
    record: Record,
    now: Answer,
    message: String,
}

/// How then and now compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Same,
    Differs,
    /// It differs, but something of the input was not kept, and a hook may have judged just that.
    Unsure,
    /// Nobody knows what it was.
    New,
}

/// Runs `hooks replay`.
pub(crate) fn run(args: &ReplayArgs, env: &BTreeMap<String, String>, printer: &mut Printer) -> Result<Exit, Failure> {
    let records = match &args.file {
        Some(file) => of_file(file)?,
        None => of_traces(args, env)?,
    };
    let policy = Reading::of(&args.config, &args.dialect, env)?.policy()?;
    let executor = policy.executor(env)?;
    list::waiting(&policy).into_iter().for_each(|note| printer.note(&note));
    let replayed = raising::raise(&executor, async |cancel| {
        let mut replayed = Vec::new();
        for record in records {
            replayed.push(again(&executor, record, cancel).await);
        }
        replayed
    });
    let Some(replayed) = replayed? else { return Ok(Exit::Stopped) };
    show(&replayed, args.json, printer)?;
    let differs = replayed.iter().any(|it| it.change() == Change::Differs);
    Ok(if differs { Exit::No } else { Exit::Done })
}

/// Nothing of it is recorded, and observers are not shown it: it happened before.
async fn again(executor: &Executor, record: Record, cancel: &CancellationToken) -> Replayed {
    let decides = |hook: &gatehook_engine::Selected<'_>| !hook.definition.observer;
    let verdict = executor.dispatch_some(record.event, &record.input, cancel, &|_| Ok(()), &decides).await;
    let now = Answer::of(&verdict);
    Replayed { record, now, message: verdict.message }
}

/// A verdict for people.
fn shown(answer: &Answer) -> String {
    match answer.rewritten.as_slice() {
        [] => answer.verb.name().to_owned(),
        rewritten => format!("{} ({})", answer.verb.name(), rewritten.join(", ")),
    }
}

impl Change {
    fn name(self) -> &'static str {
        match self {
            Change::Same => "same",
            Change::Differs => "differs",
            Change::Unsure => "unsure",
            Change::New => "new",
        }
    }
}

impl Replayed {
    fn change(&self) -> Change {
        match &self.record.then {
            None => Change::New,
            Some(then) if *then == self.now => Change::Same,
            // What was taken out can make a verdict milder, not stricter.
            Some(then) if !self.record.is_whole && self.now.verb <= then.verb => Change::Unsure,
            Some(_) => Change::Differs,
        }
    }

    fn then(&self) -> Option<&Answer> {
        self.record.then.as_ref()
    }
}

/// The recorded dispatches that were named.
fn of_traces(args: &ReplayArgs, env: &BTreeMap<String, String>) -> Result<Vec<Record>, Failure> {
    let memory = trace::open(&MemoryArgs { config: args.config.clone(), json: args.json }, env)?;
    let record = |id: &i64| {
        let found = memory.as_ref().map(|memory| memory.trace(*id)).transpose()?.flatten();
        let found = trace::json(&found.ok_or_else(|| trace::missing(*id))?);
        Record::read(&found, format!("trace {id}")).map_err(refused)
    };
    args.trace.iter().map(record).collect()
}

/// The events of a file: JSON values one after another, each an event or a list of events.
fn of_file(path: &Path) -> Result<Vec<Record>, Failure> {
    let stdin = path == Path::new("-");
    let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
    let unreadable = |cause: String| {
        let help = "it is JSON lines of {\"event\": …, \"input\": {…}}, or what `gatehook hooks trace --json` prints";
        Failure::usage(format!("{name} cannot be replayed: {cause}"), Some(help.to_owned()))
    };
    let opened: Box<dyn Read> = if stdin {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?)
    };
    let values = Deserializer::from_reader(BufReader::new(opened.take(MAX_FILE))).into_iter();
    replay::read(values).map_err(|error| match error {
        RecordError::Text(cause) => unreadable(cause),
        error => refused(error),
    })
}

fn refused(error: RecordError) -> Failure {
    match &error {
        RecordError::Record(_, Fault::UnknownEvent(event)) => raising::no_event(event, Profile::Native),
        error => Failure::usage(error.to_string(), None),
    }
}

/// What changes, and in the end how much does.
fn show(replayed: &[Replayed], json: bool, printer: &mut Printer) -> Result<(), Failure> {
    let number = |change| replayed.iter().filter(|it| it.change() == change).count();
    let (differ, unsure) = (number(Change::Differs), number(Change::Unsure));
    if json {
        let results = replayed.iter().map(|it| {
            json!({
                "record": it.record.name, "event": it.record.event.public_name(), "then": it.then().map(Answer::json),
                "now": it.now.json(), "message": it.message, "result": it.change().name(),
            })
        });
        let results: Vec<Value> = results.collect();
        return printer.json(&json!({
            "events": replayed.len(), "differ": differ, "unsure": unsure, "results": results,
        }));
    }
    let mut table = Table::new(&["RECORD", "EVENT", "THEN", "NOW", "RESULT", "MESSAGE"]);
    let changed: Vec<&Replayed> = replayed.iter().filter(|it| it.change() != Change::Same).collect();
    for it in &changed {
        table.row([
            it.record.name.clone(),
            it.record.event.public_name().to_owned(),
            it.then().map_or_else(|| "-".to_owned(), shown),
            shown(&it.now),
            it.change().name().to_owned(),
            it.message.lines().next().unwrap_or_default().to_owned(),
        ]);
    }
    if !changed.is_empty() {
        printer.text(&table)?;
    }
    let mut note = format!("{}: {differ} differ", count(replayed.len(), "event"));
    if unsure > 0 {
        note.push_str(&format!(", {unsure} cannot be compared because something of the input was not kept"));
    }
    printer.note(&note);
    Ok(())
}
