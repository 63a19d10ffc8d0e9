//! `gatehook hooks explain`: which hooks would run on an event, in which order, and why the others would not.

use std::collections::BTreeMap;

use gatehook_engine::definition::HookDefinition;
use gatehook_engine::trust::Seal;
use gatehook_engine::{Executor, Fit, HookInfo};
use gatehook_events::{Event, Input};
use serde_json::{Value, json};

use crate::args::EventArgs;
use crate::commands::list::place;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{self, Policy, Reading};
use crate::print::Printer;
use crate::raising;
use crate::table::Table;

/// One hook of the event.
struct Row<'a> {
    definition: &'a HookDefinition,
    matcher: &'a str,
    /// Its turn among those that would run, from 1; observers have none.
    turn: Option<usize>,
    /// Whether it would run, the rest of the sentence why not.
    would: Result<&'static str, String>,
}

/// Runs `hooks explain`.
pub(crate) fn run(args: &EventArgs, env: &BTreeMap<String, String>, printer: &mut Printer) -> Result<Exit, Failure> {
    let profile = policy::profile(&args.dialect)?;
    let event = raising::event(&args.event, profile)?;
    let input = raising::input(args, event, profile)?;
    let policy = Reading::of(&args.config, &args.dialect, env)?.policy()?;
    let executor = policy.executor(env)?;
    let rows = rows(&executor, &policy, event, &input);
    let running = rows.iter().filter(|row| row.turn.is_some()).count();
    let in_turn = executor.runs_in_turn(event, &input) || running == 1;
    if args.json {
        let mode = if in_turn { "in_turn" } else { "side_by_side" };
        let hooks: Vec<Value> = rows.iter().map(Row::json).collect();
        printer.json(&json!({"event": event.public_name(), "mode": mode, "hooks": hooks}))?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        printer.note(&format!("no hook is configured for {}", event.public_name()));
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["TURN", "HOOK", "TYPE", "MATCHER", "WOULD", "PLACE"]);
    rows.iter().for_each(|row| table.row(row.cells()));
    printer.text(&table)?;
    let how = match running {
        0 => "none decides: the event is allowed",
        1 => "one decides",
        _ if in_turn => "they run one after another, each seeing the rewrites before it",
        _ => "they run side by side; the strictest answer stands",
    };
    printer.text(&format!("\n{how}\n"))?;
    Ok(Exit::Done)
}

/// All hooks of the event: those in force in the order in which they run, then the others.
fn rows<'a>(executor: &'a Executor, policy: &'a Policy, event: Event, input: &Input) -> Vec<Row<'a>> {
    let explained = executor.explain(event, input);
    let names: Vec<&str> = explained.iter().map(|(info, _)| info.definition.display_name()).collect();
    let mut turns = 0..;
    let in_force = explained.iter().map(|(info, fit)| {
        let would = would(info, fit, input, &names);
        let decides = would.is_ok() && !info.definition.observer;
        let turn = if decides { turns.next().map(|turn| turn + 1) } else { None };
        Row { definition: info.definition, matcher: info.matcher, turn, would }
    });
    let mut rows: Vec<Row<'_>> = in_force.collect();
    let waiting =
        policy.judgement.hooks.iter().filter(|judged| judged.event == event && !judged.standing.is_in_force());
    rows.extend(waiting.map(|judged| Row {
        definition: &judged.definition,
        matcher: &judged.matcher,
        turn: None,
        would: Err(format!("not in force: {}", judged.standing.why().unwrap_or_default())),
    }));
    rows
}

fn would(info: &HookInfo<'_>, fit: &Fit, input: &Input, names: &[&str]) -> Result<&'static str, String> {
    let definition = info.definition;
    match fit {
        // A required hook that is missing stands there to refuse.
        Fit::Runs if definition.seal.as_ref().and_then(Seal::absence).is_some() => {
            Ok("refuse: it is required and absent")
        }
        Fit::Runs if definition.observer => Ok("run in the background"),
        Fit::Runs => Ok("run"),
        Fit::Matcher => {
            let subject = definition.profile.subject(info.event).and_then(|subject| input.subject(subject));
            Err(match subject {
                Some(subject) => format!("its matcher does not fit `{subject}`"),
                None => "its matcher has nothing to fit: the input does not say".to_owned(),
            })
        }
        Fit::Condition(field) => Err(format!("its condition on `{field}` does not hold")),
        Fit::Duplicate(first) => {
            let first = names.get(*first).copied().unwrap_or_default();
            Err(format!("it is the same as `{first}` before it, which runs once"))
        }
    }
}

impl Row<'_> {
    fn cells(&self) -> [String; 6] {
        [
            self.turn.map_or_else(|| "-".to_owned(), |turn| turn.to_string()),
            self.definition.display_name().to_owned(),
            self.definition.handler.kind().to_owned(),
            if self.matcher.is_empty() { "*".to_owned() } else { self.matcher.to_owned() },
            match &self.would {
                Ok(would) => (*would).to_owned(),
                Err(why) => format!("not run: {why}"),
            },
            place(&self.definition.origin),
        ]
    }

    fn json(&self) -> Value {
        let origin = &self.definition.origin;
        json!({
            "turn": self.turn, "runs": self.would.is_ok(), "why": self.would.as_ref().err(),
            "observer": self.definition.observer, "name": self.definition.display_name(),
            "type": self.definition.handler.kind(), "matcher": self.matcher, "profile": self.definition.profile.name(),
            "source": origin.source.name(), "file": origin.file.as_deref(),
            "line": origin.file.is_some().then_some(origin.line),
        })
    }
}
