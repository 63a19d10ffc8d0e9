//! `cargo xtask bench NAME`: measures, prints one table, keeps it as JSON, and on request in `docs/benchmarks.md`.

mod agent;
mod comparison;
mod dispatch;
mod figures;
mod gateway;
mod handlers;
mod report;
mod running;
mod stand;
mod stream;
mod turns;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::Outcome;
use crate::program::cargo;

/// How long and how often things are measured, and where the table goes.
pub(crate) struct Options {
    /// Every row is measured this often, both sides in turn; the medians count.
    rounds: usize,
    /// One measurement of one side.
    seconds: Duration,
    /// Whether `docs/benchmarks.md` gets the table.
    write: bool,
}

pub(crate) const USAGE: &str =
    "cargo xtask bench gateway|stream|dispatch|turns|handlers|agent [--rounds N] [--seconds S] [--write]";

/// Runs the bench that the first argument names.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let Some((name, rest)) = arguments.split_first() else { return Err(format!("usage: {USAGE}").into()) };
    let options = options(rest)?;
    warn_if_busy();
    let report = match name.as_str() {
        "gateway" => gateway::run(&options)?,
        "stream" => stream::run(&options)?,
        "dispatch" => dispatch::run(&options)?,
        "turns" => turns::run(&options)?,
        "handlers" => handlers::run(&options)?,
        "agent" => agent::run(&options)?,
        other => return Err(format!("no bench `{other}`; usage: {USAGE}").into()),
    };
    report.print();
    report.save()?;
    if options.write { report.write_to_docs() } else { Ok(()) }
}

fn options(arguments: &[String]) -> Outcome<Options> {
    let mut options = Options { rounds: 5, seconds: Duration::from_secs(2), write: false };
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{option} needs a value"));
        match option.as_str() {
            "--rounds" => options.rounds = value()?.parse::<usize>()?.max(1),
            "--seconds" => options.seconds = Duration::try_from_secs_f64(value()?.parse()?)?,
            "--write" => options.write = true,
            other => return Err(format!("no option `{other}`; usage: {USAGE}").into()),
        }
    }
    Ok(options)
}

/// Figures measured beside other work are not worth keeping.
fn warn_if_busy() {
    let average = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = average.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0);
    if load > 0.5 {
        println!("this machine is busy (load average {load}): wait, or do not trust what follows");
    }
}

/// Builds a bench of a package; its program.
fn built(package: &str, name: &str) -> Outcome<PathBuf> {
    let bench = ["bench", "--package", package, "--bench", name, "--no-run", "--locked"];
    let printed = cargo(&bench).arg("--message-format=json-render-diagnostics").read()?;
    let mut programs = printed.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    });
    programs.next_back().ok_or_else(|| "cargo built no bench".into())
}

/// The middle one; of an even number, the lower of the two in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}
