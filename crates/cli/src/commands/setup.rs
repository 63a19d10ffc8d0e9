//! `gatehook setup`: prepares a project. What its hooks write becomes the environment of later hooks.

use gatehook_events::{Event, Input};
use serde_json::json;

use crate::args::SetupArgs;
use crate::commands::{hooks, list};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{self, Reading};
use crate::preparing::{Prepared, Trigger, prepare};
use crate::print::Printer;

/// Raises `setup`, and keeps what its hooks wrote.
pub(crate) fn run(args: &SetupArgs, printer: &mut Printer) -> Result<Exit, Failure> {
    let env = policy::environment();
    let policy = Reading::of(&[], "native", &env)?.policy()?;
    list::waiting(&policy).into_iter().for_each(|note| printer.note(&note));
    let trigger = if args.maintenance { Trigger::Maintenance } else { Trigger::Init };
    let Some(prepared) = prepare(&policy, trigger, Input::default(), &env, printer)? else {
        return Ok(Exit::Stopped);
    };
    let Prepared { verdict, kept } = prepared;
    if !args.json {
        printer.text(&hooks::shown(Event::Setup, &verdict))?;
    }
    match kept {
        Some((path, variables)) if args.json => {
            let shown = variables.shown();
            printer.json(&json!({"verdict": verdict, "variables": shown, "kept_in": path}))?;
        }
        Some((path, variables)) if !variables.variables.is_empty() => {
            let shown = variables.shown();
            shown.iter().try_for_each(|(name, value)| printer.text(&format!("{name}={value}\n")))?;
            printer.note(&format!("kept for later hooks of this project in {}", path.display()));
        }
        Some(_) => printer.note("no variables are kept for later hooks of this project"),
        None if args.json => printer.json(&json!({"verdict": verdict, "variables": {}, "kept_in": null}))?,
        None => {}
    }
    Ok(if verdict.allowed { Exit::Done } else { Exit::No })
}
