//! What `gatehook run` prints: the model's words on standard output and everything else on standard error, or each
//! report as a line of JSON.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use gatehook_agent::report::{Report, Watches};
use gatehook_engine::text;
use serde_json::{Map, Value};

/// The longest line about a call, in characters.
const LINE: usize = 160;

/// Prints reports as they come.
pub(crate) struct Headless {
    json: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last line on standard output has no end yet.
    open: bool,
    /// Nobody reads standard output any more.
    closed: bool,
}

impl Headless {
    /// For people, or for programs.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, state: Mutex::default() }
    }
}

impl Watches for Headless {
    fn report(&self, report: Report) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.json {
            let line = serde_json::to_string(&report).unwrap_or_default();
            state.out(&format!("{line}\n"));
            return;
        }
        state.tell("", &report);
    }
}

impl State {
    fn tell(&mut self, whose: &str, report: &Report) {
        match report {
            Report::Text { delta } if whose.is_empty() => self.out(&text::plain(delta)),
            Report::Message { .. } => self.close(),
            Report::ToolCall { name, input, .. } => self.note(&format!("{whose}• {name} {}", line(input))),
            Report::ToolResult { name, error: Some(error), output, .. } => {
                self.note(&format!("{whose}✗ {name} ({error}): {}", first(output)));
            }
            Report::Notice { level, text } => self.note(&format!("{whose}{level}: {text}")),
            Report::Hooks { system_message, .. } if !system_message.is_empty() => self.note(system_message),
            Report::Compaction { source, .. } => {
                self.note(&format!("{whose}the conversation was compacted ({source})"))
            }
            Report::AgentSwitch { from, to, kind } => self.note(&format!("{whose}{from} → {to} ({kind})")),
            Report::Subagent { agent, report, .. } => self.tell(&format!("{whose}[{agent}] "), report),
            Report::Done { .. } => self.close(),
            _ => {}
        }
    }

    fn close(&mut self) {
        if self.open {
            self.out("\n");
        }
    }

    fn note(&mut self, text: &str) {
        self.close();
        // There is nobody left to tell when standard error is closed.
        let _ = writeln!(io::stderr(), "{}", text::plain(text));
    }

    fn out(&mut self, text: &str) {
        if self.closed || text.is_empty() {
            return;
        }
        self.open = !text.ends_with('\n');
        let mut out = io::stdout();
        self.closed = out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err();
    }
}

/// A call's arguments in one line.
fn line(input: &Map<String, Value>) -> String {
    let each = input.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={}", first(text)),
        value => format!("{name}={value}"),
    });
    each.collect::<Vec<_>>().join(" ").chars().take(LINE).collect()
}

fn first(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(LINE).collect()
}
