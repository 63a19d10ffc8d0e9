//! What people and scripts see: data on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Writes to both outputs.
pub(crate) struct Printer {
    out: io::Stdout,
    err: io::Stderr,
}

impl Printer {
    /// For this process.
    pub(crate) fn new() -> Self {
        Self { out: io::stdout(), err: io::stderr() }
    }

    /// Data for people.
    pub(crate) fn text(&mut self, text: &impl std::fmt::Display) -> Result<(), Failure> {
        self.out(&text.to_string())
    }

    /// Data for programs: indented on a terminal, one line otherwise.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        if self.out.is_terminal() {
            return self.document(value);
        }
        let line = serde_json::to_string(value).map_err(|error| Failure::output(&error.into()))?;
        self.out(&format!("{line}\n"))
    }

    /// A document of JSON, indented wherever it goes.
    pub(crate) fn document(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Failure::output(&error.into()))?;
        self.out(&format!("{text}\n"))
    }

    fn out(&mut self, text: &str) -> Result<(), Failure> {
        match self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            // Whoever read this has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| Failure::output(&error)),
        }
    }

    /// A word to the person, not part of the data.
    pub(crate) fn note(&mut self, text: &str) {
        // There is nobody left to tell when standard error is closed.
        let _ = writeln!(self.err, "{text}");
    }

    /// A question to the person; the answer stands in the same line.
    pub(crate) fn prompt(&mut self, text: &str) {
        // There is nobody left to ask when standard error is closed.
        let _ = write!(self.err, "{text}").and_then(|()| self.err.flush());
    }

    /// What went wrong.
    pub(crate) fn failure(&mut self, failure: &Failure) {
        self.note(&failure.shown(colour(&self.err)));
    }
}

/// Whether an output takes colour: a terminal does, unless `NO_COLOR` (<https://no-color.org>) is set.
pub(crate) fn colour(output: &impl IsTerminal) -> bool {
    output.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
