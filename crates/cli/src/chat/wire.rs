//! What goes between the terminal and the session: nothing else connects them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gatehook_agent::approval::{Answer, Question, Rule};
use gatehook_agent::report::Report;
use gatehook_agent::session::Doubt;
use ratatui::crossterm::event::KeyEvent;

/// What the person wants of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Begins a turn.
    Prompt(String),
    /// Goes into the turn that runs.
    Steer(String),
    /// Waits until the turn that runs is over.
    FollowUp(String),
    Compact,
    Clear,
    Undo,
    /// Goes on with a session that was kept.
    Resume(String),
    Model(String),
    Agent(String),
    /// A safety mode, or `none`.
    Mode(String),
    Interrupt,
    Quit,
}

/// What the session tells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Told {
    Report(Report),
    /// The person is asked; the number goes with the reply.
    Asked(u64, Ask),
    /// Nobody waits for this answer any more.
    Unasked(u64),
    /// What there is to choose from.
    Facts(Facts),
    /// Files of the workspace, for completion.
    Files(Arc<[String]>),
    /// A command is at work, maybe one that was given while another one was.
    Begun,
    /// The last command is done, and the session waits; so do these follow-ups.
    Ready(Vec<String>),
    /// The session is over; why, if it did not end by command.
    Ended(Option<String>),
}

/// A question to the person.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ask {
    Permission(Box<Permission>),
    /// Whether to go on past so many model calls.
    GoOn(u64),
    /// Whether what a hook doubts may pass.
    Doubt(Box<Doubt>),
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Permission {
    pub(crate) question: Question,
    /// What it would change, as a unified diff.
    pub(crate) diff: Option<String>,
}

/// What the person said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Permission {
        answer: Answer,
        /// The rule that holds for later sessions too.
        remember: Option<Rule>,
    },
    /// Whether it goes on.
    GoOn(bool),
}

/// What there is to choose from, and to look at.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Facts {
    /// A line for each hook.
    pub(crate) hooks: Vec<String>,
    pub(crate) agents: Vec<Choice>,
    pub(crate) models: Vec<Choice>,
    /// Skills and prompts, by the names that stand behind a `/`.
    pub(crate) prompts: Vec<Choice>,
    /// The newest first.
    pub(crate) sessions: Vec<Choice>,
    /// The safety mode that holds; empty is none.
    pub(crate) mode: String,
    /// Where a rule that is remembered is written; without it none can be.
    pub(crate) rules_file: Option<String>,
}

/// One of several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Choice {
    /// As in a command.
    pub(crate) name: String,
    /// For the person.
    pub(crate) about: String,
}

/// What is done for the terminal outside of it.
pub(crate) trait Outside {
    fn command(&mut self, command: Command);

    /// The answer to the question of this number.
    fn answer(&mut self, number: u64, reply: Reply);

    /// Looks for the files of the workspace, and tells them.
    fn files(&mut self);

    /// Keeps a text that the person wrote. What goes wrong is theirs to know.
    fn remember(&mut self, text: &str);
}

/// How the terminal's part ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// By the person's word, or at the end of what they had to say.
    Quit,
    /// By a signal.
    Stopped,
    /// The session ended by itself.
    Session(String),
}

/// All that happens to a terminal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Happening {
    Key(KeyEvent),
    Paste(String),
    Resized,
    /// A line of standard input, where there is no terminal; `None` is its end.
    Line(Option<String>),
    Told(Told),
    Signal(Signal),
    /// The keyboard cannot be read.
    Lost(String),
}

/// A signal that was caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C, where the terminal makes a signal of it.
    Interrupt,
    /// The process is to end.
    End,
    /// It is to stop, until it is continued.
    Stop,
    /// It was continued.
    Continue,
}

/// Happenings in their order. Whoever puts one in never waits: small pieces of one text become one piece while they lie
/// there, and of the output of tools there lies only so much, so that a terminal that stands still costs little more
/// than what it will show.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Happening>,
    /// Bytes of tools' output among them.
    output: usize,
}

/// Pieces are put together up to so many bytes.
const PIECE: usize = 4096;

/// Bytes of tools' output that wait at most. What is beyond is not shown while the tool runs, only with its result.
const OUTPUT: usize = 1024 * 1024;

impl Inbox {
    pub(crate) fn put(&self, happening: Happening) {
        let mut queue = self.queue();
        queue.put(happening);
        drop(queue);
        self.arrived.notify_one();
    }

    pub(crate) fn tell(&self, told: Told) {
        self.put(Happening::Told(told));
    }

    /// All that has come, as soon as there is any, or nothing at the deadline. Without one it waits as long as it takes.
    pub(crate) fn take(&self, deadline: Option<Instant>) -> VecDeque<Happening> {
        let mut queue = self.queue();
        while queue.waiting.is_empty() {
            queue = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => break,
                Some(left) => self.arrived.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        std::mem::take(&mut *queue).waiting
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn put(&mut self, happening: Happening) {
        if let Happening::Told(Told::Report(report)) = &happening {
            let output = output_of(report);
            if output > 0 && self.output.saturating_add(output) > OUTPUT {
                return;
            }
            self.output = self.output.saturating_add(output);
        }
        let joined = match (self.waiting.back_mut(), &happening) {
            (Some(Happening::Told(Told::Report(last))), Happening::Told(Told::Report(next))) => join(last, next),
            (Some(Happening::Resized), Happening::Resized) => true,
            _ => false,
        };
        if !joined {
            self.waiting.push_back(happening);
        }
    }
}

fn output_of(report: &Report) -> usize {
    match report {
        Report::ToolOutput { delta, .. } => delta.len(),
        Report::Subagent { report, .. } => output_of(report),
        _ => 0,
    }
}

/// Puts a piece to the one before, where both are of one text.
fn join(last: &mut Report, next: &Report) -> bool {
    match (last, next) {
        (Report::Text { delta }, Report::Text { delta: more })
        | (Report::Thinking { delta }, Report::Thinking { delta: more }) => append(delta, more),
        (Report::ToolOutput { id, delta }, Report::ToolOutput { id: same, delta: more }) if id == same => {
            append(delta, more)
        }
        (Report::Subagent { session_id, report, .. }, Report::Subagent { session_id: same, report: more, .. })
            if session_id == same =>
        {
            join(report, more)
        }
        _ => false,
    }
}

fn append(text: &mut Arc<str>, more: &str) -> bool {
    let fits = text.len().saturating_add(more.len()) <= PIECE;
    if fits {
        *text = [&**text, more].concat().into();
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(delta: &str) -> Happening {
        Happening::Told(Told::Report(Report::Text { delta: delta.into() }))
    }

    #[test]
    fn pieces_of_one_text_lie_as_one() {
        let inbox = Inbox::default();
        let thinking = Happening::Told(Told::Report(Report::Thinking { delta: "hm".into() }));
        [text("a"), text("b"), thinking.clone(), text("c")].into_iter().for_each(|happening| inbox.put(happening));
        assert_eq!(inbox.take(None), [text("ab"), thinking, text("c")]);
    }

    #[test]
    fn output_that_nobody_looks_at_is_bounded() {
        let inbox = Inbox::default();
        let piece: Arc<str> = "y\n".repeat(4096).into();
        for _ in 0..1000 {
            inbox.tell(Told::Report(Report::ToolOutput { id: "1".into(), delta: piece.clone() }));
        }
        inbox.tell(Told::Ready(Vec::new()));
        let waiting = inbox.take(None);
        assert!(waiting.len() <= OUTPUT / piece.len() + 1, "{}", waiting.len());
        assert_eq!(waiting.back(), Some(&Happening::Told(Told::Ready(Vec::new()))));
    }

    #[test]
    fn nothing_comes_at_the_deadline() {
        assert!(Inbox::default().take(Some(Instant::now())).is_empty());
    }
}
