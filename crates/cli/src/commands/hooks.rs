//! `gatehook hooks`: which hooks are in force, whether files are in order, what hooks answer to an event.

use std::collections::BTreeMap;

use gatehook_events::{Event, Input, Profile};
use serde_json::json;

use crate::args::{FileArgs, HooksCommand, TestArgs};
use crate::commands::{list, trust};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::given::{self, GivenError};
use crate::policy::{self, Reading};
use crate::print::Printer;
use crate::raise;

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
    let event = given::event(&args.event, profile)?;
    let input = input(args, event, profile)?;
    let policy = Reading::of(&args.config, &args.dialect, env)?.policy()?;
    let executor = policy.executor(env)?;
    list::waiting(&policy).into_iter().for_each(|note| printer.note(&note));
    raise::and_show(&executor, event, &input, args.json, printer)
}

/// The caller's input, or a sample, with the caller's changes.
fn input(args: &TestArgs, event: Event, profile: Profile) -> Result<Input, Failure> {
    let mut input = match &args.input {
        Some(path) => given::spoken(given::from_file(path)?, event, profile)?,
        None => gatehook_events::sample::sample(event),
    };
    if let Some(tool) = &args.tool {
        input.insert("tool_name".to_owned(), json!(tool));
        if !args.set.is_empty() && args.input.is_none() {
            input.insert("tool_input".to_owned(), json!({}));
        }
    }
    for assignment in &args.set {
        given::set(&mut input, event, assignment)?;
    }
    Ok(Input::read(input).map_err(GivenError::from)?)
}
