//! A tool call: what it is called with, what became of it, what it says and changes.

use std::sync::Arc;
use std::time::Duration;

use ratatui::text::{Line, Span};
use serde_json::{Map, Value};

use super::super::clean;
use super::super::theme::{Role, Theme};
use super::super::wrap::{Breaks, Lead, clip, wrap};
use super::item::{Look, duration, more};

/// Bytes of its output that are kept: of more, the beginning and the end.
const OUTPUT: usize = 64 * 1024;

/// Lines that are seen without details: while it runs the last ones, then the first ones.
const RUNNING: usize = 5;
const RESULT: usize = 4;
const FAILED: usize = 8;
const DIFF: usize = 16;

/// Arguments that say most, the most telling first. They stand before the others, and without their names.
const TELLING: [&str; 9] = ["command", "cmd", "path", "file_path", "pattern", "url", "query", "name", "task"];

/// Columns that one argument takes at most, where there are several.
const ARGUMENT: usize = 60;

#[derive(Debug)]
pub(super) struct Tool {
    name: Arc<str>,
    input: Arc<Map<String, Value>>,
    /// A hook changed the arguments.
    is_changed: bool,
    state: State,
    output: String,
    diff: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    /// It is not settled whether it runs.
    Open,
    /// It runs, by whose word.
    Runs(Arc<str>),
    /// It does not run.
    Denied(Arc<str>),
    Cancelled,
    Over {
        by: Option<Arc<str>>,
        error: Option<&'static str>,
        took: f64,
    },
}

impl Tool {
    pub(super) fn new(name: Arc<str>, input: Arc<Map<String, Value>>) -> Self {
        Self { name, input, is_changed: false, state: State::Open, output: String::new(), diff: None }
    }

    pub(super) fn settled(&mut self, decision: &str, source: &Arc<str>, input: Option<Arc<Map<String, Value>>>) {
        self.is_changed = input.is_some();
        self.input = input.unwrap_or_else(|| self.input.clone());
        self.state = match decision {
            "allow" => State::Runs(source.clone()),
            "deny" => State::Denied(source.clone()),
            _ => State::Cancelled,
        };
    }

    pub(super) fn says(&mut self, delta: &str) {
        self.output.push_str(delta);
        if self.output.len() > OUTPUT.saturating_mul(2) {
            let from = self.output.ceil_char_boundary(self.output.len().saturating_sub(OUTPUT));
            self.output.drain(..from);
        }
    }

    pub(super) fn over(&mut self, output: &str, error: Option<&'static str>, diff: Option<Arc<str>>, took: f64) {
        self.output = bounded(output);
        self.diff = diff;
        self.state = match std::mem::replace(&mut self.state, State::Open) {
            State::Denied(source) => State::Denied(source),
            State::Cancelled => State::Cancelled,
            State::Runs(source) => State::Over { by: Some(source), error, took },
            State::Open | State::Over { .. } => State::Over { by: None, error, took },
        };
    }

    pub(super) fn lay(&self, look: Look, lines: &mut Vec<Line<'static>>) {
        self.head(look, lines);
        if let Some(diff) = self.diff.as_deref().filter(|diff| !diff.is_empty()) {
            let seen = if look.details { usize::MAX } else { DIFF };
            let diff = clean::printed(diff);
            let body = || diff.lines().skip_while(|line| is_header(line));
            for line in body().take(seen) {
                put(look, line, diff_role(line), lines);
            }
            return more(look, body().count().saturating_sub(seen), lines);
        }
        let output = clean::printed(&self.output);
        let output = output.trim_end();
        if output.is_empty() {
            return;
        }
        let (seen, role) = match self.state {
            State::Over { error: None, .. } => (RESULT, Role::Dim),
            State::Over { .. } | State::Denied(_) | State::Cancelled => (FAILED, Role::Plain),
            State::Open | State::Runs(_) => (RUNNING, Role::Dim),
        };
        let seen = if look.details { usize::MAX } else { seen };
        let count = output.lines().count();
        if matches!(self.state, State::Open | State::Runs(_)) {
            output.lines().skip(count.saturating_sub(seen)).for_each(|line| put(look, line, role, lines));
        } else {
            output.lines().take(seen).for_each(|line| put(look, line, role, lines));
            more(look, count.saturating_sub(seen), lines);
        }
    }

    /// Its name and arguments in one line, and what became of it.
    fn head(&self, look: Look, lines: &mut Vec<Line<'static>>) {
        let (mark, role, word) = match &self.state {
            State::Open => ("○", Role::Warning, String::new()),
            State::Runs(_) => ("◐", Role::Warning, "running".to_owned()),
            State::Denied(_) => ("⊘", Role::Bad, "denied".to_owned()),
            State::Cancelled => ("⊘", Role::Warning, "cancelled".to_owned()),
            State::Over { error: None, took, .. } => ("✓", Role::Good, lasted(*took)),
            State::Over { error: Some(error), took, .. } => {
                ("✗", Role::Bad, format!("{} · {}", error.replace('_', " "), lasted(*took)))
            }
        };
        let by = match &self.state {
            State::Denied(source) => Some(source),
            State::Runs(source) | State::Over { by: Some(source), .. } if look.details => Some(source),
            _ => None,
        };
        let by = by.map(|source| format!(" by {}", whose(source))).unwrap_or_default();
        let changed = if self.is_changed { " · arguments changed by a hook" } else { "" };
        let word = if word.is_empty() { word } else { format!("  {word}{by}{changed}") };
        let style = |role| look.theme.of(role);
        let name = clean::line(&self.name);
        let used =
            [mark, " ", &*name, " ", &*word].iter().map(|part| unicode_width::UnicodeWidthStr::width(*part)).sum();
        let arguments = arguments(&self.input, self.diff.is_some());
        let room = usize::from(look.width).saturating_sub(used);
        let arguments =
            if look.details && room < arguments.len() { arguments } else { clip(&arguments, room).into_owned() };
        let spans = [
            Span::styled(format!("{mark} "), style(role)),
            Span::styled(format!("{name} "), style(Role::Name)),
            Span::raw(arguments),
            Span::styled(word, style(if role == Role::Good { Role::Dim } else { role })),
        ];
        let lead = Lead { first: Vec::new(), next: vec![Span::raw("  ")] };
        wrap(&spans, look.width, Breaks::Anywhere, &lead, lines);
    }
}

/// A line of what a tool says or changes. Without details it is cut at the margin.
fn put(look: Look, line: &str, role: Role, lines: &mut Vec<Line<'static>>) {
    let lead = Lead::of("  │ ", look.theme.of(Role::Dim));
    let line = line.replace('\t', "    ");
    let line = if look.details { line } else { clip(&line, usize::from(look.width).saturating_sub(4)).into_owned() };
    wrap(&[Span::styled(line, look.theme.of(role))], look.width, Breaks::Anywhere, &lead, lines);
}

/// The beginning and the end of a long text.
fn bounded(text: &str) -> String {
    if text.len() <= OUTPUT {
        return text.to_owned();
    }
    let head = text.get(..text.floor_char_boundary(OUTPUT / 2)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len().saturating_sub(OUTPUT / 2))..).unwrap_or_default();
    let hidden = text.len().saturating_sub(head.len()).saturating_sub(tail.len());
    format!("{head}\n… {hidden} bytes are not shown\n{tail}")
}

/// The lines of a diff that name its files: the call says it already.
fn is_header(line: &str) -> bool {
    line.starts_with("--- ") || line.starts_with("+++ ")
}

/// What a line of a diff is.
pub(crate) fn diff_role(line: &str) -> Role {
    match line.chars().next() {
        Some('+') => Role::Added,
        Some('-') => Role::Removed,
        Some('@') => Role::Heading,
        _ => Role::Dim,
    }
}

/// Who settled a call, in words.
fn whose(source: &str) -> String {
    match source {
        "user_rejected" | "user_approved" => "you".to_owned(),
        "user_approved_tool" => "you, for the session".to_owned(),
        "non_interactive_deny" => "default: nobody is there to ask".to_owned(),
        "yolo" => "mode autonomous".to_owned(),
        source => {
            let source = source.strip_suffix("_deny").or_else(|| source.strip_suffix("_allow")).unwrap_or(source);
            clean::line(source).replace('_', " ")
        }
    }
}

fn lasted(took: f64) -> String {
    duration(Duration::try_from_secs_f64(took).unwrap_or_default())
}

/// The arguments of a call in one line: all of them, or the most telling one alone.
pub(crate) fn arguments(input: &Map<String, Value>, telling_alone: bool) -> String {
    let telling = TELLING.iter().find_map(|name| input.get(*name).map(|value| (*name, value)));
    let first = telling.map(|(_, value)| text(value));
    let is_alone = input.len() == 1;
    let rest = input.iter().filter(|(name, _)| telling.is_none_or(|(first, _)| first != *name)).map(|(name, value)| {
        let value = text(value);
        let value = if is_alone { value.into() } else { clip(&value, ARGUMENT) };
        format!("{}={value}", clean::line(name))
    });
    let rest = rest.filter(|_| !telling_alone || telling.is_none());
    first.into_iter().chain(rest).collect::<Vec<_>>().join("  ")
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => clean::line(text).into_owned(),
        other => clean::line(&other.to_string()).into_owned(),
    }
}

/// The lines of a diff in their colours.
pub(crate) fn diff_lines(diff: &str, width: u16, theme: Theme, lines: &mut Vec<Line<'static>>) {
    for line in clean::shown(diff).lines() {
        let line = Span::styled(line.to_owned(), theme.of(diff_role(line)));
        wrap(&[line], width, Breaks::Anywhere, &Lead::default(), lines);
    }
}
