//! `cargo xtask bench turns`: what a long conversation, sent anew with each turn, costs hooks.

use std::collections::HashMap;

use serde_json::Value;

use super::report::Bound::{self, AtMost, Open};
use super::report::{Report, Row};
use super::stand::{SERVER_CORE, Stand};
use super::{Options, built, median};
use crate::Outcome;
use crate::program::Program;

/// A figure of `crates/guard/benches/turns.rs`: the last turn is held against the second.
struct Comparison {
    what: &'static str,
    name: &'static str,
    bound: Bound,
}

#[rustfmt::skip]
const COMPARISONS: &[Comparison] = &[
    Comparison { what: "turn 50 of a conversation of 200 KiB: work of all hooks", name: "hooks", bound: AtMost(1.5) },
    Comparison { what: "of it redact_secrets", name: "redact_secrets", bound: Open },
    Comparison { what: "of it redact_pii", name: "redact_pii", bound: Open },
    Comparison { what: "of it block_patterns", name: "block_patterns", bound: Open },
    Comparison { what: "of it a webhook with `cache: content`", name: "webhook", bound: Open },
    Comparison { what: "the guard's whole work, with reading the request", name: "guard", bound: Open },
];

pub(crate) fn run(options: &Options) -> Outcome<Report> {
    let bench = built("gatehook-guard", "turns")?;
    let mut stand = Stand::build(&["gatehook-bench"])?;
    let webhook = stand.upstream("hook")?.to_string();
    let core = SERVER_CORE.to_string();
    let mut measured: HashMap<String, Vec<f64>> = HashMap::new();
    for round in 1..=options.rounds {
        println!("round {round} of {}", options.rounds);
        for line in Program::new("taskset").args(["--cpu-list", &core]).arg(&bench).arg(&webhook).read()?.lines() {
            let line: Value = serde_json::from_str(line)?;
            let (name, value) = (line.get("name").and_then(Value::as_str), line.get("value").and_then(Value::as_f64));
            let (Some(name), Some(value)) = (name, value) else { return Err(format!("no figure: {line}").into()) };
            measured.entry(name.to_owned()).or_default().push(value);
        }
    }
    let figure = |name: String| measured.get(&name).cloned().map_or(f64::NAN, median);
    let rows = COMPARISONS.iter().map(|Comparison { what, name, bound }| Row {
        what: (*what).to_owned(),
        value: figure(format!("{name}_50")),
        unit: "µs",
        against: Some(("turn 2".to_owned(), figure(format!("{name}_2")))),
        rounds: Vec::new(),
        bound: *bound,
    });
    Ok(Report::new("turns", &[], rows.collect()))
}
