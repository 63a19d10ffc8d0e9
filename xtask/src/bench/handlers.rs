//! `cargo xtask bench handlers`: processes that live on, and what rules and matchers cost by their number. The figures are
//! those of `handlers` and `dispatch` in `crates/engine/benches`, and of `crates/scan/benches/scan.rs`.

use super::figures::{Comparison, compiled, measure};
use super::report::Bound::{AtLeast, AtMost, Open};
use super::report::Report;
use super::{Options, built};
use crate::Outcome;
use crate::program::{Program, root};

#[rustfmt::skip]
const COMPARISONS: &[Comparison] = &[
    Comparison { what: "worker hook, a worker that does nothing", name: "worker_hook", unit: "µs", against: Some(("the same by hand", "worker_pipe")), bound: AtMost(1.5) },
    Comparison { what: "worker hook, a Python script", name: "script_hook", unit: "µs", against: Some(("the same by hand", "script_pipe")), bound: AtMost(1.5) },
    Comparison { what: "`python3 script.py` as a command hook", name: "python_command", unit: "µs", against: Some(("python hook", "python_hook")), bound: AtLeast(200.0) },
    Comparison { what: "python hook", name: "python_hook", unit: "µs", against: Some(("worker hook, a Python script", "script_hook")), bound: Open },
    Comparison { what: "shell line with limits", name: "line_limited", unit: "µs", against: Some(("without", "line_plain")), bound: AtMost(1.3) },
    Comparison { what: "program without a shell, with limits", name: "program_limited", unit: "µs", against: Some(("without", "program_plain")), bound: Open },
    Comparison { what: "shell line in a sandbox", name: "line_sandboxed", unit: "µs", against: Some(("without", "line_plain")), bound: AtMost(1.3) },
    Comparison { what: "1,000 matchers, none fits", name: "matchers_1000", unit: "ns", against: Some(("1 matcher", "matchers_1")), bound: AtMost(2.0) },
    Comparison { what: "221 secret rules, 1 MiB of prose", name: "prose_1m", unit: "µs", against: Some(("one pass with their literals", "prose_1m_literals")), bound: AtMost(1.3) },
    Comparison { what: "the same, source code", name: "code_1m", unit: "µs", against: Some(("one pass with their literals", "code_1m_literals")), bound: AtMost(1.3) },
    Comparison { what: "10 MiB of prose, for each MiB", name: "prose_10m", unit: "µs", against: Some(("1 MiB", "prose_1m")), bound: AtMost(1.5) },
    Comparison { what: "1 MiB of prose", name: "prose_1m", unit: "µs", against: Some(("64 KiB, for each MiB", "prose_64k")), bound: AtMost(1.2) },
];

pub(crate) fn run(options: &Options) -> Outcome<Report> {
    let worker = compiled("worker")?;
    let (dispatch, handlers) = (built("gatehook-engine", "dispatch")?, built("gatehook-engine", "handlers")?);
    let scan = built("gatehook-scan", "scan")?;
    let python = Program::new("python3").arg("--version").read()?.trim().to_owned();
    let rows = measure(COMPARISONS, options, |name| match name.split('_').next() {
        Some("worker" | "script" | "python" | "line" | "program") => {
            Program::new(&handlers).arg(&worker).arg(name).in_directory(&root())
        }
        Some("matchers") => Program::new(&dispatch).arg(name),
        _ => Program::new(&scan).arg(name),
    })?;
    Ok(Report::new("handlers", &[python], rows))
}
