//! `cargo xtask test`: one list of steps, cheap ones first, ending at the first failure.

use std::time::{Duration, Instant};

use crate::program::{Program, built, cargo};
use crate::{Outcome, clients, fuzz, licences};

struct Step {
    name: &'static str,
    title: &'static str,
    run: fn() -> Outcome,
}

const STEPS: &[Step] = &[
    Step { name: "format", title: "formatting", run: format },
    Step { name: "licences", title: "licences and sources of dependencies", run: licences::check },
    Step {
        name: "clippy",
        title: "lints",
        run: || cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"]).run(),
    },
    Step {
        name: "docs",
        title: "documentation builds without a warning",
        run: || cargo(&["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "--deny warnings").run(),
    },
    Step { name: "rust", title: "Rust tests", run: rust },
    Step { name: "fuzz", title: "fuzz targets, five seconds each", run: fuzz::glance },
    Step {
        name: "conformance",
        title: "conformance with published contracts",
        run: || build().and_then(|()| Program::new(built("conformance")).run()),
    },
    Step {
        name: "clients",
        title: "client SDKs against `gatehook serve`",
        run: || build().and_then(|()| clients::test(&built("gatehook"))),
    },
];

/// Runs the steps named, all when none is, and prints what each took.
pub(crate) fn run(names: &[String]) -> Outcome {
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != name.as_str())) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(format!("no step `{unknown}`; the steps are {}", known.join(", ")).into());
    }
    let chosen = STEPS.iter().filter(|step| names.is_empty() || names.iter().any(|name| name == step.name));
    let mut done: Vec<(&str, Duration)> = Vec::new();
    for step in chosen {
        println!("\n=== {}: {}", step.name, step.title);
        let start = Instant::now();
        let outcome = (step.run)();
        done.push((step.name, start.elapsed()));
        if let Err(error) = outcome {
            summarise(&done, Some(step.name));
            return Err(error);
        }
    }
    summarise(&done, None);
    Ok(())
}

/// Property tests make the same cases each time: a failure here is of the change. `cargo test` makes new ones.
fn rust() -> Outcome {
    cargo(&["test", "--workspace", "--locked"]).env("INSTA_UPDATE", "no").env("PROPTEST_RNG_SEED", "1").run()
}

/// The fuzz targets are a workspace of their own.
fn format() -> Outcome {
    cargo(&["fmt", "--all", "--check"]).run()?;
    cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]).run()
}

/// Built with the whole workspace selected, so that features, and with them dependencies, stay those of the tests.
fn build() -> Outcome {
    cargo(&["build", "--workspace", "--bins", "--locked"]).run()
}

fn summarise(done: &[(&str, Duration)], failed: Option<&str>) {
    println!("\n=== summary");
    for (name, took) in done {
        let mark = if Some(*name) == failed { "FAILED" } else { "ok" };
        println!("{name:<12} {mark:<7} {:>5.0} s", took.as_secs_f64());
    }
    if failed.is_none() {
        println!("every step passed");
    }
}
