//! Figures that programs measure of themselves, by name, each held against another one, or none.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::report::{Bound, Row};
use super::{Options, median};
use crate::Outcome;
use crate::program::{Program, root, target};

/// A figure, and what it is held against.
pub(super) struct Comparison {
    pub(super) what: &'static str,
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) against: Option<(&'static str, &'static str)>,
    pub(super) bound: Bound,
}

/// Measures what the rows want, in turn, as often as asked; the medians count. `program` prints the figure of a name.
pub(super) fn measure(
    comparisons: &[Comparison],
    options: &Options,
    program: impl Fn(&str) -> Program,
) -> Outcome<Vec<Row>> {
    let mut names: Vec<&str> = vec![];
    for comparison in comparisons {
        names.extend([comparison.name].into_iter().chain(comparison.against.map(|(_, name)| name)));
    }
    names.sort_unstable();
    names.dedup();
    let mut measured: HashMap<&str, Vec<f64>> = HashMap::new();
    for round in 1..=options.rounds {
        println!("round {round} of {}", options.rounds);
        for name in &names {
            measured.entry(name).or_default().push(value(&program(name).read()?)?);
        }
    }
    let medians: HashMap<&str, f64> = measured.into_iter().map(|(name, values)| (name, median(values))).collect();
    Ok(comparisons.iter().map(|comparison| comparison.row(&medians)).collect())
}

impl Comparison {
    fn row(&self, medians: &HashMap<&str, f64>) -> Row {
        let figure = |name: &str| medians.get(name).copied().unwrap_or(f64::NAN);
        Row {
            what: self.what.to_owned(),
            value: figure(self.name),
            unit: self.unit,
            against: self.against.map(|(label, name)| (label.to_owned(), figure(name))),
            rounds: Vec::new(),
            bound: self.bound,
        }
    }
}

fn value(printed: &str) -> Outcome<f64> {
    let line: Value = serde_json::from_str(printed)?;
    line.get("value").and_then(Value::as_f64).ok_or_else(|| format!("no value in {printed}").into())
}

/// Compiles a program of `bench/`; where it is.
pub(super) fn compiled(name: &str) -> Outcome<PathBuf> {
    let program = target().join("bench").join(name);
    fs::create_dir_all(target().join("bench"))?;
    let source = root().join(format!("bench/{name}.c"));
    Program::new("cc").args(["-O2", "-Wall", "-Werror", "-o"]).arg(&program).arg(source).run()?;
    Ok(program)
}
