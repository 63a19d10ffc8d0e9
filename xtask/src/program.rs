//! Running another program: its output streams through, and a failure names the whole command line.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::Outcome;

/// One program to run, in the root of the repository unless told otherwise.
pub(crate) struct Program {
    command: Command,
}

impl Program {
    /// `name` is looked up in `PATH`, or is a path.
    pub(crate) fn new(name: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(name);
        command.current_dir(root());
        Self { command }
    }

    pub(crate) fn arg(mut self, value: impl AsRef<OsStr>) -> Self {
        self.command.arg(value);
        self
    }

    pub(crate) fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, values: I) -> Self {
        self.command.args(values);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn in_directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Runs it to its end, its output going where ours goes.
    pub(crate) fn run(mut self) -> Outcome {
        let status = self.command.status().map_err(|error| self.not_started(&error))?;
        if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}", self.line()).into()) }
    }

    /// Runs it to its end and hands back what it printed on standard output.
    pub(crate) fn read(mut self) -> Outcome<String> {
        let Output { status, stdout, .. } =
            self.command.stderr(Stdio::inherit()).output().map_err(|error| self.not_started(&error))?;
        if !status.success() {
            return Err(format!("`{}` ended with {status}", self.line()).into());
        }
        Ok(String::from_utf8(stdout)?)
    }

    /// Whether it starts and ends well; prints nothing.
    pub(crate) fn succeeds(mut self) -> bool {
        self.command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn line(&self) -> String {
        let words = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
    }

    fn not_started(&self, error: &std::io::Error) -> String {
        format!("`{}` did not start: {error}", self.line())
    }
}

/// The cargo that runs us, with its first arguments. It does not see what it told us of ourselves: build scripts that
/// look at such variables would run anew after each cargo that a person starts.
pub(crate) fn cargo(arguments: &[&str]) -> Program {
    let mut program = Program::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            program.command.env_remove(name);
        }
    }
    program
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Cargo's target directory of this build; what is generated or installed for tests goes below it.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |directory| root().join(directory))
}

/// A binary of this workspace in the dev profile, which `cargo build --workspace` has built.
pub(crate) fn built(name: &str) -> PathBuf {
    target().join("debug").join(name)
}
