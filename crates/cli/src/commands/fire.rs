//! `gatehook fire`: an event from outside, with the hooks that are in force here.

use std::path::Path;

use gatehook_events::input::FIELDS;
use gatehook_events::{Event, Input, Profile};
use serde_json::{Map, Value, json};

use crate::args::FireArgs;
use crate::commands::{hooks, list};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{self, Reading};
use crate::print::Printer;
use crate::raising;
use crate::sample::{self, SampleError};

/// Who raises a custom event, where nobody says.
const SOURCE: &str = "cli";

/// Raises the event.
pub(crate) fn run(args: &FireArgs, printer: &mut Printer) -> Result<Exit, Failure> {
    let env = policy::environment();
    let profile = policy::profile(&args.dialect)?;
    let event = raising::event(&args.event, profile)?;
    let input = input(args, event, profile)?;
    let policy = Reading::of(&[], "native", &env)?.policy()?;
    let executor = policy.executor(&env)?;
    list::waiting(&policy).into_iter().for_each(|note| printer.note(&note));
    let Some(verdict) = raising::one(&policy, executor, event, &input, printer)? else { return Ok(Exit::Stopped) };
    hooks::show(event, &verdict, args.json, printer)
}

/// What hooks are told: what the caller gives, and nothing made up.
fn input(args: &FireArgs, event: Event, profile: Profile) -> Result<Input, Failure> {
    let data = args.data.as_deref().map(data).transpose()?;
    let (fields, data) = if event == Event::Custom { (None, data) } else { (data.map(fields).transpose()?, None) };
    let payload = match (&args.input, fields) {
        (Some(_), Some(_)) => return Err(Failure::usage("`--input` and `--data` both give the event's fields", None)),
        (Some(path), None) => raising::given(path)?,
        (None, fields) => fields.unwrap_or_default(),
    };
    let mut input = if payload.is_empty() { payload } else { raising::spoken(payload, event, profile)? };
    if let Some(data) = data {
        input.insert("data".to_owned(), data);
    }
    name(args, event, &mut input)?;
    set(args, event, &mut input)?;
    Ok(Input::read(input).map_err(SampleError::from)?)
}

/// What `--data` says: JSON as it stands, or in a file.
fn data(text: &str) -> Result<Value, Failure> {
    let (name, text) = match text.strip_prefix('@') {
        Some(path) => raising::text(Path::new(path))?,
        None => ("`--data`".to_owned(), text.to_owned()),
    };
    serde_json::from_str(&text).map_err(|error| {
        let help = "a text of JSON stands in quotes of its own, as in '\"text\"'; @FILE reads a file";
        Failure::usage(format!("{name} is no JSON: {error}"), Some(help.to_owned()))
    })
}

fn fields(data: Value) -> Result<Map<String, Value>, Failure> {
    match data {
        Value::Object(fields) => Ok(fields),
        _ => Err(Failure::usage("`--data` is no JSON object", Some("only `custom` takes other data".to_owned()))),
    }
}

/// A custom event needs a name, and no other takes one.
fn name(args: &FireArgs, event: Event, input: &mut Map<String, Value>) -> Result<(), Failure> {
    match (&args.name, event) {
        (Some(name), Event::Custom) => drop(input.insert("event_name".to_owned(), json!(name))),
        (None, Event::Custom) if !input.contains_key("event_name") => {
            return Err(Failure::usage("a custom event needs a name", Some("gatehook fire custom NAME".to_owned())));
        }
        (Some(name), event) => {
            let help = format!("only `custom` has a name; `{}` takes `--set KEY=VALUE`", event.public_name());
            return Err(Failure::usage(format!("`{name}` is one word too many"), Some(help)));
        }
        _ => {}
    }
    if event == Event::Custom {
        input.entry("source").or_insert(json!(SOURCE));
    }
    Ok(())
}

fn set(args: &FireArgs, event: Event, input: &mut Map<String, Value>) -> Result<(), SampleError> {
    let has_tool = FIELDS.iter().any(|field| field.name == "tool_input" && field.is_on(event));
    let is_bare = has_tool && !input.contains_key("tool_input");
    if is_bare {
        input.insert("tool_input".to_owned(), json!({}));
    }
    args.set.iter().try_for_each(|assignment| sample::set(input, event, assignment))?;
    if is_bare && input.get("tool_input") == Some(&json!({})) {
        input.remove("tool_input");
    }
    Ok(())
}
