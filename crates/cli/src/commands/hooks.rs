//! `gatehook hooks`: which hooks are in force, whether files are in order, what hooks answer to an event.

use std::collections::BTreeMap;
use std::time::Duration;

use gatehook_events::{Event, Outcome, OutcomeKind, Verdict};
use serde_json::json;

use crate::args::{EventArgs, FileArgs, HooksCommand};
use crate::commands::{explain, list, replay, stats, trace, trust};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{self, Reading};
use crate::print::Printer;
use crate::raising;
use crate::table::Table;

/// Runs a `hooks` command.
pub(crate) fn run(command: HooksCommand, printer: &mut Printer) -> Result<Exit, Failure> {
    let env: BTreeMap<String, String> = policy::environment();
    match command {
        HooksCommand::List { files } => list::run(&files, &env, printer),
        HooksCommand::Check { files } => check(&files, &env, printer),
        HooksCommand::Test(args) => test(&args, &env, printer),
        HooksCommand::Trust(args) => trust::run(&args, &env, printer),
        HooksCommand::Explain(args) => explain::run(&args, &env, printer),
        HooksCommand::Trace(args) => trace::run(&args, &env, printer),
        HooksCommand::Stats(args) => stats::run(&args, &env, printer),
        HooksCommand::Replay(args) => replay::run(&args, &env, printer),
        HooksCommand::Untrust { file, .. } => trust::withdraw(file.as_deref(), &env, printer),
    }
}

fn check(args: &FileArgs, env: &BTreeMap<String, String>, printer: &mut Printer) -> Result<Exit, Failure> {
    let reading = Reading::of(&args.files, &args.dialect, env)?;
    let checked = reading.policy().and_then(|policy| {
        policy.team()?;
        Ok((policy.whole(env)?, list::waiting(&policy)))
    });
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

pub(super) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn test(args: &EventArgs, env: &BTreeMap<String, String>, printer: &mut Printer) -> Result<Exit, Failure> {
    let profile = policy::profile(&args.dialect)?;
    let event = raising::event(&args.event, profile)?;
    let input = raising::input(args, event, profile)?;
    let policy = Reading::of(&args.config, &args.dialect, env)?.policy()?;
    let executor = policy.executor(env)?;
    list::waiting(&policy).into_iter().for_each(|note| printer.note(&note));
    let Some(verdict) = raising::one(&policy, executor, event, &input, printer)? else { return Ok(Exit::Stopped) };
    show(event, &verdict, args.json, printer)
}

/// Shows a verdict; its exit code.
pub(super) fn show(event: Event, verdict: &Verdict, json: bool, printer: &mut Printer) -> Result<Exit, Failure> {
    if json {
        printer.json(verdict)?;
    } else {
        printer.text(&shown(event, verdict))?;
    }
    Ok(if verdict.allowed { Exit::Done } else { Exit::No })
}

/// Outcomes as a table, then the verdict and what it changes.
pub(super) fn shown(event: Event, verdict: &Verdict) -> String {
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
pub(super) fn push_field(text: &mut String, name: &str, value: &str) {
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
        millis(outcome.duration),
        outcome.reason.lines().next().unwrap_or_default().to_owned(),
    ]
}

/// A length of time as tables show it.
pub(super) fn millis(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
