//! The person, as the session knows them: questions go to the terminal, and answers come back.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatehook_agent::approval::{Answer, Asking, Asks, Question, Rule};
use gatehook_agent::report::Report;
use gatehook_agent::session::{Deciding, Doubt, Person};
use serde_json::Value;
use similar::TextDiff;
use tokio::sync::oneshot;

use super::wire::{Ask, Inbox, Permission, Reply, Told};
use crate::agent::remembered;

/// Bytes of a file that is compared with what is to be written in its place.
const FILE: u64 = 256 * 1024;

/// Questions that wait for an answer.
#[derive(Debug)]
pub(crate) struct Questions {
    inbox: Arc<Inbox>,
    workspace: PathBuf,
    /// Where rules are remembered.
    rules_file: Option<PathBuf>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    answers: HashMap<u64, oneshot::Sender<Reply>>,
}

/// A question that is being asked. Dropped, it is taken back.
struct Open<'a> {
    questions: &'a Questions,
    number: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.questions.waiting().answers.remove(&self.number).is_some() {
            self.questions.inbox.tell(Told::Unasked(self.number));
        }
    }
}

impl Questions {
    pub(crate) fn new(inbox: Arc<Inbox>, workspace: PathBuf, rules_file: Option<PathBuf>) -> Self {
        Self { inbox, workspace, rules_file, waiting: Mutex::default() }
    }

    /// The person has answered.
    pub(crate) fn answer(&self, number: u64, reply: Reply) {
        if let Some(answer) = self.waiting().answers.remove(&number) {
            // Whoever asked may have given up just now.
            let _ = answer.send(reply);
        }
    }

    async fn ask(&self, ask: Ask) -> Option<Reply> {
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut waiting = self.waiting();
            waiting.last = waiting.last.saturating_add(1);
            let number = waiting.last;
            waiting.answers.insert(number, answer);
            number
        };
        let _open = Open { questions: self, number };
        self.inbox.tell(Told::Asked(number, ask));
        answered.await.ok()
    }

    /// Keeps a rule for later sessions. It holds for this one in any case.
    async fn remember(&self, rule: Rule) {
        let Some(file) = self.rules_file.clone() else { return };
        let (workspace, text) = (self.workspace.clone(), rule.to_string());
        let done = tokio::task::spawn_blocking(move || remembered::add(&file, &workspace, &rule)).await;
        let problem = match done {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let text = format!("the rule {text} holds for this session, and is not remembered: {problem}").into();
        self.inbox.tell(Told::Report(Report::Notice { level: "warning", text }));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asks for Questions {
    fn ask<'a>(&'a self, question: &'a Question) -> Asking<'a> {
        Box::pin(async move {
            let (workspace, input) = (self.workspace.clone(), question.tool_input.clone());
            let diff = tokio::task::spawn_blocking(move || difference(&workspace, &input)).await.ok().flatten();
            let permission = Permission { question: question.clone(), diff };
            match self.ask(Ask::Permission(Box::new(permission))).await {
                Some(Reply::Permission { answer, remember }) => {
                    if let Some(rule) = remember {
                        self.remember(rule).await;
                    }
                    answer
                }
                _ => Answer::Reject { reason: String::new() },
            }
        })
    }
}

impl Person for Questions {
    fn goes_on<'a>(&'a self, iterations: u64) -> Deciding<'a> {
        Box::pin(async move { matches!(self.ask(Ask::GoOn(iterations)).await, Some(Reply::GoOn(true))) })
    }

    fn permits<'a>(&'a self, doubt: &'a Doubt) -> Deciding<'a> {
        let ask = Ask::Doubt(Box::new(doubt.clone()));
        Box::pin(async move { matches!(self.ask(ask).await, Some(Reply::GoOn(true))) })
    }
}

/// What a call changes that writes a whole file, as far as that can be said before it runs.
fn difference(workspace: &Path, input: &serde_json::Map<String, Value>) -> Option<String> {
    let path = ["path", "file_path"].iter().find_map(|name| input.get(*name)?.as_str())?;
    let content = input.get("content")?.as_str()?;
    let before = text(&workspace.join(path)).unwrap_or_default();
    let diff = TextDiff::configure().timeout(std::time::Duration::from_millis(200)).diff_lines(&*before, content);
    Some(diff.unified_diff().context_radius(3).to_string())
}

/// A file's text; of what is no file, or too long, none.
fn text(path: &Path) -> Option<String> {
    let is_file = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= FILE);
    let mut text = String::new();
    File::open(path).ok().filter(|_| is_file)?.take(FILE).read_to_string(&mut text).ok()?;
    Some(text)
}
