//! `gatehook hooks replay`: recorded events against the hooks as they are now, and what would change.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::Path;

use gatehook_engine::Executor;
use gatehook_events::trace::Traces;
use gatehook_events::{Event, Input, Profile, Verb, Verdict};
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
use crate::sample::SampleError;
use crate::table::Table;

/// The most that is read of a file, in bytes.
const MAX_FILE: u64 = 256 << 20;

/// The verbs, from the mildest to the strictest.
const VERBS: [Verb; 6] = [Verb::Allow, Verb::Modify, Verb::Ask, Verb::ModifyUnsupported, Verb::Unavailable, Verb::Deny];

/// One recorded event.
struct Record {
    /// As in `trace 12` or `record 3`.
    name: String,
    event: Event,
    input: Input,
    then: Option<Answer>,
    /// Its input is what the hooks saw then.
    is_whole: bool,
}

/// What a verdict came to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    verb: Verb,
    rewritten: Vec<String>,
}

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
            replayed.push(replay(&executor, record, cancel).await);
        }
        replayed
    });
    let Some(replayed) = replayed? else { return Ok(Exit::Stopped) };
    show(&replayed, args.json, printer)?;
    let differs = replayed.iter().any(|it| it.change() == Change::Differs);
    Ok(if differs { Exit::No } else { Exit::Done })
}

/// Nothing of it is recorded, and observers are not shown it: it happened before.
async fn replay(executor: &Executor, record: Record, cancel: &CancellationToken) -> Replayed {
    let decides = |hook: &gatehook_engine::Selected<'_>| !hook.definition.observer;
    let verdict = executor.dispatch_some(record.event, &record.input, cancel, &|_| Ok(()), &decides).await;
    let now = Answer::of(&verdict);
    Replayed { record, now, message: verdict.message }
}

impl Answer {
    fn of(verdict: &Verdict) -> Self {
        Self { verb: verdict.verb, rewritten: verdict.rewritten.names().into_iter().map(str::to_owned).collect() }
    }

    /// From `{"verb": …, "rewritten": […]}`, or the verb alone.
    fn read(value: &Value) -> Option<Self> {
        let verb = value.as_str().or_else(|| value.get("verb")?.as_str())?;
        let verb = VERBS.into_iter().find(|known| known.name() == verb)?;
        let rewritten = value.get("rewritten").and_then(Value::as_array).into_iter().flatten();
        Some(Self { verb, rewritten: rewritten.filter_map(Value::as_str).map(str::to_owned).collect() })
    }

    fn shown(&self) -> String {
        match self.rewritten.as_slice() {
            [] => self.verb.name().to_owned(),
            rewritten => format!("{} ({})", self.verb.name(), rewritten.join(", ")),
        }
    }

    fn json(&self) -> Value {
        json!({"verb": self.verb.name(), "rewritten": self.rewritten})
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
        read(&trace::json(&found.ok_or_else(|| trace::missing(*id))?), format!("trace {id}"))
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
    let mut records = Vec::new();
    for value in Deserializer::from_reader(BufReader::new(opened.take(MAX_FILE))).into_iter::<Value>() {
        let values = match value.map_err(|error| unreadable(error.to_string()))? {
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in &values {
            let name = match value.get("id").and_then(Value::as_i64) {
                Some(id) => format!("trace {id}"),
                None => format!("record {}", records.len() + 1),
            };
            records.push(read(value, name)?);
        }
    }
    Ok(records)
}

fn read(value: &Value, name: String) -> Result<Record, Failure> {
    let event = value.get("event").and_then(Value::as_str);
    let event = event.ok_or_else(|| Failure::usage(format!("{name} has no `event`"), None))?;
    let event = raising::event(event, Profile::Native)?;
    let input = match value.get("input") {
        None => serde_json::Map::new(),
        Some(Value::Object(input)) => input.clone(),
        Some(_) => return Err(Failure::usage(format!("the input of {name} is no object"), None)),
    };
    let input =
        Input::read(input).map_err(|error| Failure::usage(format!("{name}: {}", SampleError::Field(error)), None));
    let is_cut = value.get("cut").and_then(Value::as_bool).unwrap_or(false);
    let has_lost = value.get("secrets").and_then(Value::as_u64).unwrap_or(0) > 0;
    let then = value.get("verdict").and_then(Answer::read);
    Ok(Record { event, input: input?, then, is_whole: !is_cut && !has_lost, name })
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
    let shown: Vec<&Replayed> = replayed.iter().filter(|it| it.change() != Change::Same).collect();
    for it in &shown {
        table.row([
            it.record.name.clone(),
            it.record.event.public_name().to_owned(),
            it.then().map_or_else(|| "-".to_owned(), Answer::shown),
            it.now.shown(),
            it.change().name().to_owned(),
            it.message.lines().next().unwrap_or_default().to_owned(),
        ]);
    }
    if !shown.is_empty() {
        printer.text(&table)?;
    }
    let mut note = format!("{}: {differ} differ", count(replayed.len(), "event"));
    if unsure > 0 {
        note.push_str(&format!(", {unsure} cannot be compared because something of the input was not kept"));
    }
    printer.note(&note);
    Ok(())
}
