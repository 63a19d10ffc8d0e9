//! `gatehook hooks trust` and `untrust`: what a project's hooks would run, and their owner's word on it.

mod shown;

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;

use gatehook_engine::trust::content::Content;
use gatehook_engine::trust::store::{Store, StoreError};
use gatehook_engine::trust::{Ground, Judged, Standing};
use serde_json::{Value, json};

use crate::args::TrustArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{Policy, Reading};
use crate::print::Printer;
use crate::trust;

type Env = BTreeMap<String, String>;

/// Runs `hooks trust`.
pub(crate) fn run(args: &TrustArgs, env: &Env, printer: &mut Printer) -> Result<Exit, Failure> {
    let policy = Reading::of(&[], "native", env)?.policy()?;
    let ground = ground(&policy)?;
    let store = trust::store(env)?;
    if let Err(error) = &ground.approvals {
        return Err(error.clone().into());
    }
    let hooks = of_file(&policy, args.file.as_deref())?;
    let pending: Vec<&Judged> = hooks.iter().copied().filter(|judged| is_pending(judged)).collect();
    if args.json {
        let rows: Vec<Value> = hooks.iter().map(|judged| shown::json(judged, ground)).collect();
        let approved = if args.yes { approve(&pending, &store, env)? } else { 0 };
        let root = ground.project.root();
        printer.json(&json!({
            "project": root, "hash": policy.judgement.hash, "store": store.path(), "approved": approved, "hooks": rows,
        }))?;
        return Ok(exit(&hooks, approved));
    }
    let refused: Vec<&&Judged> = hooks.iter().filter(|judged| is_refused(judged)).collect();
    if pending.is_empty() && refused.is_empty() {
        let count = match hooks.len() {
            0 => "there are no hooks that need an approval".to_owned(),
            1 => "nothing to approve: 1 hook is in force".to_owned(),
            count => format!("nothing to approve: {count} hooks are in force"),
        };
        printer.note(&format!("{}: {count}", ground.project.root().display()));
        return Ok(Exit::Done);
    }
    let chosen = choose(args, &pending, ground, printer)?;
    if let Some(hash) = &policy.judgement.hash {
        printer.note(&format!("all hooks of this project together, for {}: {hash}", trust::NAMED));
    }
    for judged in refused {
        printer.text(&shown::refused(judged))?;
    }
    let approved = approve(&chosen, &store, env)?;
    if approved > 0 {
        printer.note(&format!("{} approved in {}", count(approved), store.path().display()));
    }
    Ok(exit(&hooks, approved))
}

/// Runs `hooks untrust`.
pub(crate) fn withdraw(file: Option<&Path>, env: &Env, printer: &mut Printer) -> Result<Exit, Failure> {
    let policy = Reading::of(&[], "native", env)?.policy()?;
    let ground = ground(&policy)?;
    let hooks = of_file(&policy, file)?;
    let of_hook = |id: &str| hooks.iter().any(|judged| judged.id == id);
    // Without a file also what was approved of hooks that are gone.
    let roots = || hooks.iter().filter_map(|judged| judged.project.as_ref()).chain([&ground.project]);
    let is_here = |project: &str| roots().any(|it| it.root().to_string_lossy() == project);
    let gone = trust::store(env)?.change(|all| {
        all.remove(|approval| is_here(&approval.project) && (file.is_none() || of_hook(&approval.hook)))
    })?;
    let keys: Vec<_> = hooks.iter().filter_map(|judged| judged.ollm_approval()).collect();
    if let Some(store) = trust::ollm_store(env).filter(|_| !keys.is_empty()) {
        store.change(|all| keys.iter().for_each(|key| all.remove(&key.source)))?;
    }
    printer.note(&match gone {
        0 => "there was no approval to withdraw".to_owned(),
        1 => "1 approval withdrawn".to_owned(),
        gone => format!("{gone} approvals withdrawn"),
    });
    Ok(Exit::Done)
}

fn ground(policy: &Policy) -> Result<&Ground, Failure> {
    policy.ground.as_ref().ok_or_else(|| Failure::usage("there is no project here", None))
}

/// The hooks that need an approval, or those of them that stand in one file.
fn of_file<'p>(policy: &'p Policy, file: Option<&Path>) -> Result<Vec<&'p Judged>, Failure> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let wanted = file.map(real);
    let stands = |judged: &&Judged| match (&wanted, &judged.definition.origin.file) {
        (None, _) => true,
        (Some(wanted), Some(file)) => real(file) == *wanted,
        (Some(_), None) => false,
    };
    let of_project = policy.approvable().filter(|judged| judged.content.is_some());
    let hooks: Vec<&Judged> = of_project.filter(stands).collect();
    match file {
        Some(file) if hooks.is_empty() => {
            let message = format!("no hook that needs an approval stands in {}", file.display());
            let help = "name a file of this project, as `gatehook hooks list` shows it".to_owned();
            Err(Failure::usage(message, Some(help)))
        }
        _ => Ok(hooks),
    }
}

fn is_pending(judged: &Judged) -> bool {
    let is_whole = judged.content.as_ref().is_some_and(Content::is_whole);
    let waits = matches!(judged.standing, Standing::NotTrusted | Standing::Changed(_) | Standing::Unknown(_));
    is_whole && (waits || matches!(judged.standing, Standing::Named))
}

fn is_refused(judged: &Judged) -> bool {
    matches!(judged.standing, Standing::Refused(_))
}

/// Shows what waits and asks for it; all of it where nobody is to be asked.
fn choose<'p>(
    args: &TrustArgs,
    pending: &[&'p Judged],
    ground: &Ground,
    printer: &mut Printer,
) -> Result<Vec<&'p Judged>, Failure> {
    let asks = !args.yes && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let mut chosen = Vec::new();
    for (number, judged) in pending.iter().enumerate() {
        printer.text(&shown::hook(judged, ground, number + 1, pending.len()))?;
        if asks && !args.all && ask("Approve this hook?", printer)? {
            chosen.push(*judged);
        }
    }
    if args.yes || (asks && args.all && ask(&format!("Approve {}?", count(pending.len())), printer)?) {
        return Ok(pending.to_vec());
    }
    if !asks && !pending.is_empty() {
        printer.note("nothing was approved: this is no terminal; `--yes` approves what is shown");
    }
    Ok(chosen)
}

/// A question whose answer is no unless somebody says yes.
fn ask(question: &str, printer: &mut Printer) -> Result<bool, Failure> {
    printer.prompt(&format!("{question} [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer)?;
    if read == 0 {
        printer.note("");
    }
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Keeps approvals of exactly what was shown; says how many.
fn approve(hooks: &[&Judged], store: &Store, env: &Env) -> Result<usize, StoreError> {
    let at = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let by = ["USER", "USERNAME", "LOGNAME"].iter().find_map(|name| env.get(*name)).map_or("user", String::as_str);
    let approvals: Vec<_> = hooks.iter().filter_map(|judged| judged.approval(&at, by)).collect();
    let count = approvals.len();
    if count == 0 {
        return Ok(0);
    }
    store.change(|all| *all = approvals.into_iter().fold(std::mem::take(all), |all, approval| all.with(approval)))?;
    let of_ollm: Vec<_> = hooks.iter().filter_map(|judged| judged.ollm_approval()).collect();
    if let Some(store) = trust::ollm_store(env).filter(|_| !of_ollm.is_empty()) {
        store.change(|all| of_ollm.iter().for_each(|approval| all.add(approval, &at, by)))?;
    }
    Ok(count)
}

fn exit(hooks: &[&Judged], approved: usize) -> Exit {
    let waiting = hooks.iter().filter(|judged| is_pending(judged) || is_refused(judged)).count();
    if waiting > approved { Exit::No } else { Exit::Done }
}

fn count(number: usize) -> String {
    format!("{number} hook{}", if number == 1 { "" } else { "s" })
}
