//! A file of answers, and what is wrong with it.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use gatehook_engine::config::{Document, Format, Value as Written};
use serde::Deserialize;
use serde_json::{Value, json};

/// Why a file of answers cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ReplayError {
    /// The file.
    pub file: String,
    /// The line, from 1; absent is the file as a whole.
    pub line: Option<usize>,
    /// What is wrong there.
    pub message: String,
}

impl ReplayError {
    pub(super) fn whole(file: &str, message: impl fmt::Display) -> Self {
        Self { file: file.to_owned(), line: None, message: message.to_string() }
    }

    fn at(file: &str, line: usize, message: impl fmt::Display) -> Self {
        Self { line: Some(line), ..Self::whole(file, message) }
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// One answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scripted {
    /// Where it stands.
    #[serde(skip)]
    pub(super) line: usize,
    /// Whose question it answers; anybody's by default.
    pub(super) agent: Option<String>,
    /// A text that the question holds.
    #[serde(rename = "match")]
    pub(super) holds: Option<String>,
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) thinking: String,
    #[serde(default)]
    pub(super) tool_calls: Vec<ScriptedCall>,
    pub(super) done_reason: Option<String>,
    pub(super) usage: Option<ScriptedUsage>,
    /// Into how many pieces each text is cut.
    #[serde(default = "one")]
    pub(super) pieces: NonZeroUsize,
    /// The stream's bytes as they stand, in place of all that.
    pub(super) chunks: Option<Vec<String>>,
    /// An HTTP error.
    pub(super) status: Option<u16>,
    /// Its text, or body; without a status the error that ends the stream.
    pub(super) error: Option<Value>,
    /// It breaks off.
    #[serde(default, rename = "break")]
    pub(super) breaks: bool,
    /// Before it begins, in milliseconds.
    #[serde(default, deserialize_with = "milliseconds")]
    pub(super) wait: Duration,
    /// Before each of its pieces.
    #[serde(default, deserialize_with = "milliseconds")]
    pub(super) pause: Duration,
}

fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

fn milliseconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

/// A call of a tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedCall {
    pub(super) name: String,
    /// An object, or text as the model would write it.
    #[serde(default)]
    arguments: Value,
    pub(super) id: Option<String>,
}

impl ScriptedCall {
    /// As they stand on the wire.
    pub(super) fn arguments(&self) -> String {
        match &self.arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedUsage {
    #[serde(default)]
    pub(super) input_tokens: u64,
    #[serde(default)]
    pub(super) output_tokens: u64,
}

impl Scripted {
    /// Whether it answers a question of this agent, whose texts `holds` looks through.
    pub(super) fn fits(&self, agent: Option<&str>, holds: &dyn Fn(&str) -> bool) -> bool {
        self.agent.as_deref().is_none_or(|wanted| Some(wanted) == agent) && self.holds.as_deref().is_none_or(holds)
    }

    /// The error as servers write it.
    pub(super) fn error_body(&self) -> String {
        let error = match &self.error {
            None => json!({ "message": "an error of the replay" }),
            Some(Value::String(text)) => json!({ "message": text }),
            Some(other) => other.clone(),
        };
        json!({ "error": error }).to_string()
    }

    fn says(&self) -> bool {
        !self.text.is_empty() || !self.thinking.is_empty() || !self.tool_calls.is_empty()
    }

    /// What contradicts itself.
    fn check(&self) -> Result<(), String> {
        match self.status {
            Some(status) if !(400..600).contains(&status) => {
                return Err(format!("`status` is that of an HTTP error, from 400 to 599, not {status}"));
            }
            Some(_) if self.says() || self.chunks.is_some() || self.breaks => {
                return Err("an answer with a `status` is an HTTP error, and says nothing".to_owned());
            }
            _ => {}
        }
        if self.chunks.is_some() && self.says() {
            return Err(
                "`chunks` are all of an answer: `text`, `thinking` and `tool_calls` have no place there".to_owned()
            );
        }
        if self.tool_calls.iter().any(|call| call.name.is_empty()) {
            return Err("a tool call needs a `name`".to_owned());
        }
        Ok(())
    }
}

/// The answers of a file.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<Scripted>, ReplayError> {
    let begins = |char| text.trim_start_matches('\u{feff}').trim_start().starts_with(char);
    let answers = match Format::of_path(Path::new(file)) {
        Some(Format::Yaml) => list(file, text, Format::Yaml),
        _ if begins('[') => list(file, text, Format::Json),
        _ if begins('{') => lines(file, text),
        _ => list(file, text, Format::Yaml),
    }?;
    if answers.is_empty() {
        return Err(ReplayError::whole(file, "there is no answer in it"));
    }
    Ok(answers)
}

fn lines(file: &str, text: &str) -> Result<Vec<Scripted>, ReplayError> {
    let lines = text.trim_start_matches('\u{feff}').lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(line, number)| {
            let read = serde_json::from_str::<Scripted>(line);
            let answer = read.map_err(|error| ReplayError::at(file, number, reason(&error)))?;
            checked(file, number, answer)
        })
        .collect()
}

fn list(file: &str, text: &str, format: Format) -> Result<Vec<Scripted>, ReplayError> {
    let document = Document::parse(file, text, format).map_err(|error| {
        let line =
            error.diagnostics.first().and_then(|first| first.span.as_ref()).map(|span| line_of(text, span.start));
        let what = error.diagnostics.first().map_or_else(|| error.to_string(), |first| first.message.clone());
        ReplayError { line, ..ReplayError::whole(file, what) }
    })?;
    let Written::Seq(items) = &document.root.value else {
        let found = document.root.value.type_name();
        return Err(ReplayError::at(file, 1, format!("a list of answers is expected, not {found}")));
    };
    items
        .iter()
        .map(|item| {
            let number = document.line(item.span.start);
            let answer = serde_json::from_value::<Scripted>(item.to_json());
            checked(file, number, answer.map_err(|error| ReplayError::at(file, number, reason(&error)))?)
        })
        .collect()
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// The parser's sentence without a place: it counts within the line alone.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

fn checked(file: &str, line: usize, answer: Scripted) -> Result<Scripted, ReplayError> {
    answer.check().map_err(|message| ReplayError::at(file, line, message))?;
    Ok(Scripted { line, ..answer })
}
