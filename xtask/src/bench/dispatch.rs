//! `cargo xtask bench dispatch`: what the engine adds to a hook.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::report::Bound::{self, AtMost};
use super::report::{Report, Row};
use super::{Options, built, median};
use crate::Outcome;
use crate::program::{Program, root, target};

/// One figure of `crates/engine/benches/dispatch.rs`, and what it is held against: another one, or none.
struct Comparison {
    what: &'static str,
    name: &'static str,
    unit: &'static str,
    against: Option<(&'static str, &'static str)>,
    bound: Bound,
}

#[rustfmt::skip]
const COMPARISONS: &[Comparison] = &[
    Comparison { what: "nothing configured for the event", name: "nothing", unit: "ns", against: None, bound: AtMost(50.0) },
    Comparison { what: "allocations of the same", name: "allocations", unit: "", against: None, bound: AtMost(0.0) },
    Comparison { what: "1,000 matchers, none fits", name: "matchers_1000", unit: "ns", against: Some(("1 matcher", "matchers_1")), bound: AtMost(2.0) },
    Comparison { what: "one builtin, 1 MiB of messages", name: "builtin_1m", unit: "ns", against: Some(("1 KiB", "builtin_1k")), bound: AtMost(1.5) },
    Comparison { what: "command hook, /bin/sh script", name: "command_1", unit: "µs", against: Some(("posix_spawn in C", "posix_spawn")), bound: AtMost(1.15) },
    Comparison { what: "8 command hooks, judging event", name: "command_8", unit: "µs", against: Some(("1 command hook", "command_1")), bound: AtMost(4.5) },
];

/// What the yardstick in C is called, among the engine's own measurements.
const YARDSTICK: &str = "posix_spawn";

/// Runs of the script for one median.
const RUNS: &str = "200";

pub(crate) fn run(options: &Options) -> Outcome<Report> {
    let (engine, spawn) = (built("gatehook-engine", "dispatch")?, spawn()?);
    let mut names: Vec<&str> = vec![];
    for comparison in COMPARISONS {
        names.extend([comparison.name].into_iter().chain(comparison.against.map(|(_, name)| name)));
    }
    names.sort_unstable();
    names.dedup();
    let mut measured: HashMap<&str, Vec<f64>> = HashMap::new();
    for round in 1..=options.rounds {
        println!("round {round} of {}", options.rounds);
        for name in &names {
            let program = if *name == YARDSTICK {
                Program::new(&spawn).arg(root().join("bench/hook.sh")).arg(RUNS)
            } else {
                Program::new(&engine).arg(name)
            };
            measured.entry(name).or_default().push(value(&program.read()?)?);
        }
    }
    let medians: HashMap<&str, f64> = measured.into_iter().map(|(name, values)| (name, median(values))).collect();
    Ok(Report::new("dispatch", &[], COMPARISONS.iter().map(|comparison| comparison.row(&medians)).collect()))
}

impl Comparison {
    fn row(&self, medians: &HashMap<&str, f64>) -> Row {
        let figure = |name: &str| medians.get(name).copied().unwrap_or(f64::NAN);
        Row {
            what: self.what.to_owned(),
            value: figure(self.name),
            unit: self.unit,
            against: self.against.map(|(label, name)| (label.to_owned(), figure(name))),
            bound: self.bound,
        }
    }
}

fn value(printed: &str) -> Outcome<f64> {
    let line: Value = serde_json::from_str(printed)?;
    line.get("value").and_then(Value::as_f64).ok_or_else(|| format!("no value in {printed}").into())
}

/// Compiles the yardstick; its program.
fn spawn() -> Outcome<PathBuf> {
    let program = target().join("bench/spawn");
    fs::create_dir_all(target().join("bench"))?;
    Program::new("cc").args(["-O2", "-Wall", "-Werror", "-o"]).arg(&program).arg(root().join("bench/spawn.c")).run()?;
    Ok(program)
}
