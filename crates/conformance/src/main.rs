//! Runs conformance vectors against the engine: `conformance [FILE…]`.
//!
//! A vector is one line of JSON: hooks, scripts, an event with its input, what a model says to it, and what the verdict
//! must be. No vector is known by name; `conformance/deviations.toml` lists the rules by which Gatehook differs on
//! purpose.
//! [`vector`] reads and runs one ([`contract`] under a foreign contract), [`expect`] compares, [`deviations`] excuses.
#![allow(clippy::print_stdout, reason = "the report is this program's output")]

mod actual;
mod builtin;
mod contract;
mod deviations;
mod expect;
mod fixtures;
mod model;
mod reader;
mod report;
mod vector;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use deviations::Deviations;
use report::Report;

/// The folder with the vectors and the deviations.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance");

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(std::env::args_os().skip(1).map(PathBuf::from).collect()).await {
        Ok(report) => report.print(),
        Err(error) => {
            println!("conformance: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run(mut files: Vec<PathBuf>) -> Result<Report, String> {
    let folder = Path::new(FOLDER);
    let deviations = Deviations::read(&folder.join("deviations.toml"))?;
    if files.is_empty() {
        files = all(&folder.join("vectors"))?;
    }
    let mut report = Report::default();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let vector = serde_json::from_str::<vector::Vector>(line)
                .map_err(|error| format!("{}:{}: {error}", file.display(), number + 1))?;
            vector::run(&vector, &deviations, &mut report).await;
        }
    }
    Ok(report)
}

fn all(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    files.sort();
    Ok(files)
}
