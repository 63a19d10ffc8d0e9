//! What came of all vectors.

use std::collections::BTreeMap;
use std::process::ExitCode;

use crate::deviations::Deviation;

/// Counts, and what to say about the ones that failed.
#[derive(Debug, Default)]
pub(crate) struct Report {
    passed: usize,
    failures: Vec<String>,
    deviations: Vec<String>,
    not_run: BTreeMap<String, usize>,
}

impl Report {
    pub(crate) fn passed(&mut self) {
        self.passed += 1;
    }

    pub(crate) fn failed(&mut self, id: &str, profile: &str, differences: &[String]) {
        self.failures.push(format!("FAILED {id} ({profile})\n    {}", differences.join("\n    ")));
    }

    pub(crate) fn deviates(&mut self, id: &str, profile: &str, deviation: &Deviation) {
        let Deviation { rule, reason, .. } = deviation;
        self.deviations.push(format!("deviates {id} ({profile}), rule {rule}: {reason}"));
    }

    pub(crate) fn not_run(&mut self, kind: &str) {
        *self.not_run.entry(kind.to_owned()).or_default() += 1;
    }

    /// Prints everything; the counts stand alone on the last line.
    pub(crate) fn print(&self) -> ExitCode {
        for line in self.deviations.iter().chain(&self.failures) {
            println!("{line}");
        }
        for (kind, count) in &self.not_run {
            println!("{count} not run: kind {kind}");
        }
        println!("{} deviate on purpose", self.deviations.len());
        println!("{} passed, {} failed", self.passed, self.failures.len());
        if self.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
