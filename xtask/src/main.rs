//! `cargo xtask COMMAND`: everything a contributor or a CI job runs.
//!
//! | file | holds |
//! |---|---|
//! | `test.rs` | the steps of `cargo xtask test`, in order |
//! | `licences.rs` | the licence check, after `deny.toml` |
//! | `clients.rs` | Python and npm packages of the SDK tests, installed once per lock file |
//! | `fuzz.rs` | the fuzz targets, built and run without `cargo fuzz` |
//! | `bench.rs`, `bench/` | the benches, their tables and `docs/benchmarks.md` |
//! | `program.rs` | how another program is run |

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool speaks on its terminal")]

mod bench;
mod clients;
mod fuzz;
mod licences;
mod program;
mod test;

use std::process::ExitCode;

/// A step that failed says why in one sentence; what the program printed stands above it already.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [STEP…]           every check, in order, up to the first failure; or the named ones
  conformance [FILE…]    conformance vectors: the committed ones, or any file of that form
  fuzz [TARGET…]         runs every fuzz target, or the named ones, for a minute each [--seconds N]
  bench NAME             gateway, stream, dispatch, turns, handlers or agent: measures, prints a table, writes target/bench/NAME.json
                         [--rounds N] [--seconds S] [--write: the table into docs/benchmarks.md]
  generate               writes what is made from tables: documentation, schemas
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let outcome = match command.as_str() {
        "test" => test::run(rest),
        "conformance" => program::cargo(&["run", "--quiet", "--package", "conformance", "--"]).args(rest).run(),
        "fuzz" => fuzz::run(rest),
        "bench" => bench::run(rest),
        // Every such test writes when told to, and otherwise checks.
        "generate" => {
            program::cargo(&["test", "--workspace", "--test", "documentation"]).env("GATEHOOK_WRITE", "1").run()
        }
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        other => {
            eprint!("no command `{other}`\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
