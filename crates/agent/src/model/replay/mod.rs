//! Answers from a file, in the place of a server. They come as the bytes of a stream of chat completions, so that guards
//! see what they would see of a server.
//!
//! - `script`: the file.
//! - `wire`: an answer as the bytes of a stream.

mod script;
#[cfg(test)]
mod tests;
mod wire;

use std::cell::LazyCell;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::time::sleep;

use self::script::Scripted;
use super::exchange::Failed;
use super::{ModelError, fault};

pub use script::ReplayError;

/// A file of answers. Each is given once: to the first question that comes while it is the first one left that fits.
#[derive(Debug)]
pub struct Replay {
    file: String,
    answers: Vec<Scripted>,
    /// The answers that have been given.
    given: Mutex<Vec<bool>>,
}

impl Replay {
    /// Reads a file: JSON lines, or a list in YAML or JSON.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, with the file and the line.
    pub fn open(path: &Path) -> Result<Arc<Self>, ReplayError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ReplayError::whole(&file, error))?;
        Self::parse(&file, &text)
    }

    /// Reads a text of this name, whose extension says how it is written; without one its beginning does.
    ///
    /// # Errors
    ///
    /// As those of [`Replay::open`].
    pub fn parse(file: &str, text: &str) -> Result<Arc<Self>, ReplayError> {
        let answers = script::read(file, text)?;
        let given = Mutex::new(vec![false; answers.len()]);
        Ok(Arc::new(Self { file: file.to_owned(), answers, given }))
    }

    /// The file's name without its folder and extension.
    pub fn name(&self) -> &str {
        Path::new(&self.file).file_stem().and_then(|name| name.to_str()).unwrap_or("replay")
    }

    /// How many answers have not been given.
    pub fn left(&self) -> usize {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|given| !**given).count()
    }

    /// The answer to a question, after what it waits.
    pub(super) async fn answer(&self, question: &[u8], agent: Option<&str>) -> Result<Replayed, Failed> {
        let (place, answer) = self.take(question, agent)?;
        sleep(answer.wait).await;
        match answer.status {
            Some(status) => Err(fault::of_status(status, answer.error_body().as_bytes(), None)),
            None => Ok(Replayed { pieces: wire::pieces(answer, place), breaks: answer.breaks, pause: answer.pause }),
        }
    }

    /// Takes the first answer that fits, and says which one it is.
    fn take(&self, question: &[u8], agent: Option<&str>) -> Result<(usize, &Scripted), ModelError> {
        let texts = LazyCell::new(|| texts(question));
        let holds = |wanted: &str| texts.iter().any(|text| text.contains(wanted));
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = self.answers.iter().enumerate().filter(|(place, _)| given.get(*place) == Some(&false));
        match left.clone().find(|(_, answer)| answer.fits(agent, &holds)) {
            Some((place, answer)) => {
                given.get_mut(place).into_iter().for_each(|given| *given = true);
                Ok((place, answer))
            }
            None => Err(ModelError::Unreachable(self.none_left(left.next().map(|(_, answer)| answer), agent))),
        }
    }

    fn none_left(&self, next: Option<&Scripted>, agent: Option<&str>) -> String {
        let (file, count) = (&self.file, self.answers.len());
        let Some(next) = next else {
            return format!("{file} has no answer left: all {count} have been given");
        };
        let wants = [("agent", &next.agent), ("match", &next.holds)];
        let wants =
            wants.iter().filter_map(|(key, wanted)| Some(format!("`{key}: {}`", fault::plain(wanted.as_deref()?))));
        let wants = wants.collect::<Vec<_>>().join(" and ");
        let agent = agent.map(|agent| format!(" of the agent `{agent}`")).unwrap_or_default();
        format!(
            "{file} has no answer left that fits this question{agent}: the next one, in line {}, has {wants}",
            next.line
        )
    }
}

/// All texts of a question.
fn texts(question: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![serde_json::from_slice(question).unwrap_or(Value::Null)];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    found
}

/// An answer on its way.
pub(super) struct Replayed {
    pieces: VecDeque<Bytes>,
    breaks: bool,
    pause: Duration,
}

impl Replayed {
    /// What comes next; none at the end. Dropped while it waits it loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        if !self.pause.is_zero() {
            sleep(self.pause).await;
        }
        match self.pieces.pop_front() {
            None if self.breaks => Err(ModelError::Broken("broke off, as the replay has it".to_owned())),
            next => Ok(next),
        }
    }
}
