//! `cargo xtask bench dispatch`: what the engine adds to a hook. The figures are those of
//! `crates/engine/benches/dispatch.rs`, and of a yardstick in C.

use super::figures::{Comparison, compiled, measure};
use super::report::Bound::AtMost;
use super::report::Report;
use super::{Options, built};
use crate::Outcome;
use crate::program::{Program, root};

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
    let (engine, spawn) = (built("gatehook-engine", "dispatch")?, compiled("spawn")?);
    let rows = measure(COMPARISONS, options, |name| match name {
        YARDSTICK => Program::new(&spawn).arg(root().join("bench/hook.sh")).arg(RUNS),
        name => Program::new(&engine).arg(name),
    })?;
    Ok(Report::new("dispatch", &[], rows))
}
