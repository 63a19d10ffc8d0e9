//! `cargo xtask fuzz`: the targets under `fuzz/`, built with the stable toolchain and run for a while each.
//!
//! They are libFuzzer's, so `cargo fuzz` runs them as well. Here they need no nightly compiler, for want of which they
//! go without the address sanitizer: the crates under test deny `unsafe`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::program::{Program, cargo, root, target};

/// What lets libFuzzer see which way an input went.
const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing";

/// Bounds of one input, in bytes, seconds and MiB.
const BOUNDS: [&str; 3] = ["-max_len=16384", "-timeout=10", "-rss_limit_mb=2048"];

/// Statistics at the end and findings, but no line for each input that is new.
const QUIET: [&str; 3] = ["-print_final_stats=1", "-verbosity=0", "-print_funcs=0"];

/// Seconds for each target, unless it is told.
const SECONDS: u32 = 60;

/// Reads `[TARGET…] [--seconds N]`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut names: Vec<String> = Vec::new();
    let mut seconds = SECONDS;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--seconds" {
            let value = words.next().and_then(|value| value.parse().ok()).filter(|seconds| *seconds > 0);
            seconds = value.ok_or("`--seconds` wants a whole number above 0")?;
        } else {
            names.push(word.clone());
        }
    }
    fuzz(&names, seconds, None)
}

/// A short look at every target for `cargo xtask test`, by the same chance each time: a failure there is of the change.
pub(crate) fn glance() -> Outcome {
    fuzz(&[], 5, Some(1))
}

/// Builds all targets and runs those named, all when none is, up to the first that finds something.
fn fuzz(names: &[String], seconds: u32, seed: Option<u32>) -> Outcome {
    let known = targets()?;
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("no fuzz target `{unknown}`; the targets are {}", known.join(", ")).into());
    }
    let binaries = build()?;
    for name in known.iter().filter(|name| names.is_empty() || names.contains(name)) {
        fuzz_one(&binaries, name, seconds, seed)?;
    }
    Ok(())
}

/// The binaries of `fuzz/Cargo.toml`.
fn targets() -> Outcome<Vec<String>> {
    let manifest: toml::Table = fs::read_to_string(root().join("fuzz/Cargo.toml"))?.parse()?;
    let binaries = manifest.get("bin").and_then(toml::Value::as_array).ok_or("fuzz/Cargo.toml has no `[[bin]]`")?;
    Ok(binaries.iter().filter_map(|binary| binary.get("name")?.as_str().map(str::to_owned)).collect())
}

/// Builds them all; where they are then.
fn build() -> Outcome<PathBuf> {
    let version = cargo(&["-vV"]).read()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("`cargo -vV` names no host")?;
    let directory = target().join("fuzz");
    // A named target keeps the flags away from build scripts, which have no libFuzzer to link.
    cargo(&["build", "--manifest-path", "fuzz/Cargo.toml", "--release", "--bins", "--locked", "--target", host])
        .arg("--target-dir")
        .arg(&directory)
        .env("RUSTFLAGS", COVERAGE)
        .run()?;
    Ok(directory.join(host).join("release"))
}

/// New inputs are kept below `target/fuzz/corpus`, where the next run finds them; the committed ones are only read.
fn fuzz_one(binaries: &Path, name: &str, seconds: u32, seed: Option<u32>) -> Outcome {
    println!("\n--- fuzzing {name} for {seconds} s");
    let home = target().join("fuzz");
    let (corpus, found) = (home.join("corpus").join(name), home.join("artifacts").join(name));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&found)?;
    Program::new(binaries.join(name))
        .args(BOUNDS)
        .arg(format!("-max_total_time={seconds}"))
        .args(seed.map(|seed| format!("-seed={seed}")))
        .args(QUIET)
        .arg(format!("-artifact_prefix={}/", found.display()))
        .args([corpus, root().join("fuzz/corpus").join(name)])
        .run()
        .map_err(|error| {
            format!("fuzz target `{name}`: {error}; its input is named above, below {}", found.display()).into()
        })
}
