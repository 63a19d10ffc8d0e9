//! `gatehook setup`: prepares a project. What its hooks write becomes the environment of later hooks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gatehook_engine::definition::Source;
use gatehook_events::{Event, Input};
use serde_json::json;

use crate::args::SetupArgs;
use crate::commands::{hooks, list};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{self, Policy, Reading};
use crate::print::Printer;
use crate::raising;
use crate::variables::{self, ENV_FILE, EnvFile, Variables};

/// Raises `setup`, and keeps what its hooks wrote.
pub(crate) fn run(args: &SetupArgs, printer: &mut Printer) -> Result<Exit, Failure> {
    let env = policy::environment();
    let policy = Reading::of(&[], "native", &env)?.policy()?;
    let file = EnvFile::new(&env)?;
    let shown = file.path().display().to_string();
    let told: BTreeMap<String, String> = ENV_FILE.iter().map(|name| ((*name).to_owned(), shown.clone())).collect();
    let executor = policy.executor_with(&env, &told)?;
    list::waiting(&policy).into_iter().for_each(|note| printer.note(&note));
    let trigger = if args.maintenance { "maintenance" } else { "init" };
    let input = Input { trigger: Some(trigger.into()), env_file: Some(shown.into()), ..Input::default() };
    let Some(verdict) = raising::one(&policy, executor, Event::Setup, &input, printer)? else {
        return Ok(Exit::Stopped);
    };
    if !args.json {
        printer.text(&hooks::shown(Event::Setup, &verdict))?;
    }
    let kept = keep(args, &policy, &file, &env)?;
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

/// What is kept now, and where; `None` where no hook could write anything.
fn keep(
    args: &SetupArgs,
    policy: &Policy,
    file: &EnvFile,
    env: &BTreeMap<String, String>,
) -> Result<Option<(PathBuf, Variables)>, Failure> {
    let written = file.read()?;
    let hooks = policy.judgement.hooks.iter().filter(|it| it.event == Event::Setup && it.standing.is_in_force());
    let weakest: Option<Source> = hooks.map(|judged| judged.definition.origin.source).max();
    let Some(ground) = &policy.ground else { return Ok(None) };
    let root = ground.project.root();
    if weakest.is_none() && variables::of_project(root, env).map_err(policy::PolicyError::from)?.is_none() {
        return Ok(None);
    }
    // Where no hook is left that could write any, those of before go too.
    let written = Variables::new(weakest.unwrap_or_default(), written);
    let kept = variables::keep(root, env, |before| match args.maintenance {
        true => written.or(before),
        false => written,
    })?;
    Ok(Some(kept))
}
