//! The state of the screen: a value, folded from what happens. It knows no clock, no terminal and no session; what is to
//! be done outside it gives back as [`Effect`]s.

mod complete;
mod dialog;
mod draw;
mod keys;
mod overlay;
mod rules;
pub(crate) mod slash;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use gatehook_agent::report::Report;

use self::complete::Popup;
use self::dialog::PAUSE;
use self::overlay::Overlay;
use super::history::History;
use super::input::Input;
use super::theme::Theme;
use super::transcript::{Look, Transcript, duration};
use super::wire::{Command, Facts, Happening, Reply, Told};

pub(crate) use self::dialog::Dialog;
pub(crate) use self::draw::draw;
pub(crate) use self::keys::TRUST;

/// For how long a word at the bottom is seen, and a key is waited for that is pressed twice.
const FLASH: Duration = Duration::from_secs(3);

/// How often something moves while a turn runs.
const TICK: Duration = Duration::from_millis(100);

/// What is to be done outside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Command(Command),
    /// The answer to the question of this number.
    Answer(u64, Reply),
    /// A text for the history.
    Remember(String),
    /// The files of the workspace are wanted.
    Files,
    /// The terminal is to be drawn anew.
    Redraw,
    /// The process is to stop until it is continued.
    Suspend,
    /// The person leaves.
    Quit,
}

/// What was sent, and has not been seen to arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pending {
    is_later: bool,
    text: String,
}

/// What the last line says.
#[derive(Debug, Default)]
struct Status {
    agent: Arc<str>,
    model: Arc<str>,
    cost: Option<f64>,
    context: (u64, u64),
    /// What hooks of this turn did: how many, how long, and what the last ones were.
    hooks: (usize, Duration, String),
}

/// A search in what was written before.
#[derive(Debug, Default)]
struct Search {
    words: String,
    skipped: usize,
    /// What was written when it began.
    draft: String,
}

/// The screen's state.
#[derive(Debug)]
pub(crate) struct View {
    theme: Theme,
    size: (u16, u16),
    details: bool,
    transcript: Transcript,
    /// Rows of the transcript that were in sight.
    seen: usize,
    input: Input,
    history: History,
    search: Option<Search>,
    popup: Option<Popup>,
    overlay: Option<Overlay>,
    dialogs: VecDeque<Dialog>,
    pending: Vec<Pending>,
    /// Since when a command is at work.
    busy: Option<Duration>,
    is_stopping: bool,
    now: Duration,
    last_key: Option<Duration>,
    flash: Option<(String, Duration)>,
    /// Until when Ctrl-C quits.
    quits: Option<Duration>,
    facts: Facts,
    files: Arc<[String]>,
    status: Status,
    /// Why it is over.
    ended: Option<Option<String>>,
}

impl View {
    pub(crate) fn new(theme: Theme, size: (u16, u16), history: History) -> Self {
        Self {
            theme,
            size,
            details: false,
            transcript: Transcript::default(),
            seen: 1,
            input: Input::default(),
            history,
            search: None,
            popup: None,
            overlay: None,
            dialogs: VecDeque::new(),
            pending: Vec::new(),
            busy: None,
            is_stopping: false,
            now: Duration::ZERO,
            last_key: None,
            flash: None,
            quits: None,
            facts: Facts::default(),
            files: Arc::default(),
            status: Status::default(),
            ended: None,
        }
    }

    /// With a prompt that has been sent already.
    pub(crate) fn at_work(mut self, prompt: Option<String>) -> Self {
        self.busy = prompt.is_some().then_some(self.now);
        self.pending.extend(prompt.map(|text| Pending { is_later: false, text }));
        self
    }

    /// Something happened, so long after the beginning.
    pub(crate) fn fold(&mut self, happening: Happening, now: Duration) -> Vec<Effect> {
        self.tick(now);
        match happening {
            Happening::Key(key) => return self.key(key),
            Happening::Paste(text) => self.paste(&text),
            Happening::Told(told) => self.told(told),
            Happening::Resized | Happening::Line(_) | Happening::Signal(_) | Happening::Lost(_) => {}
        }
        Vec::new()
    }

    /// Time goes by.
    pub(crate) fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
        if self.flash.as_ref().is_some_and(|(_, until)| *until <= self.now) {
            self.flash = None;
        }
        if self.quits.is_some_and(|until| until <= self.now) {
            self.quits = None;
        }
    }

    /// When it looks otherwise though nothing happens.
    pub(crate) fn changes_at(&self) -> Option<Duration> {
        let tick = self.busy.map(|_| self.now.saturating_add(TICK));
        let flash = self.flash.as_ref().map(|(_, until)| *until);
        let armed = self.dialogs.front().map(|dialog| dialog.armed).filter(|armed| *armed > self.now);
        [tick, flash, armed].into_iter().flatten().min()
    }

    /// Why it is over, once it is: by command, or for a reason.
    pub(crate) fn ended(&self) -> Option<Option<&str>> {
        self.ended.as_ref().map(Option::as_deref)
    }

    fn told(&mut self, told: Told) {
        match told {
            Told::Report(report) => self.report(report),
            Told::Asked(number, ask) => {
                let armed = self.last_key.map_or(self.now, |last| self.now.max(last.saturating_add(PAUSE)));
                self.dialogs.push_back(Dialog::new(number, ask, armed));
            }
            Told::Unasked(number) => self.dialogs.retain(|dialog| dialog.number != number),
            Told::Facts(facts) => self.facts = facts,
            Told::Files(files) => {
                self.files = files;
                self.complete();
            }
            Told::Begun => {
                self.busy.get_or_insert(self.now);
            }
            Told::Ready(later) => {
                self.busy = None;
                self.is_stopping = false;
                self.pending.retain(|pending| pending.is_later && later.contains(&pending.text));
            }
            Told::Ended(why) => self.ended = Some(why),
        }
    }

    fn report(&mut self, report: Report) {
        match &report {
            Report::Session { session_id, agent, model, .. } => {
                self.status.agent = agent.clone();
                self.status.model = model.clone();
                if self.transcript.is_of_another(session_id) {
                    self.status = Status { agent: agent.clone(), model: model.clone(), ..Status::default() };
                    self.pending.clear();
                }
            }
            Report::User { text } => {
                if let Some(place) = self.pending.iter().position(|pending| pending.text == **text) {
                    self.pending.remove(place);
                }
                self.status.hooks = Default::default();
                self.transcript.show_end();
            }
            Report::Usage { cost, context_used, context_limit, .. } => {
                self.status.cost = cost.or(self.status.cost);
                self.status.context = (*context_used, *context_limit);
            }
            Report::AgentSwitch { to, .. } => self.status.agent = to.clone(),
            Report::Hooks { .. } => self.hooks(&report),
            Report::Subagent { report, .. } => self.hooks(report),
            _ => {}
        }
        self.transcript.fold(report, self.now);
    }

    /// Counts hooks for the line that says what they do.
    fn hooks(&mut self, report: &Report) {
        let Report::Hooks { event, outcomes, .. } = report else { return };
        if outcomes.is_empty() {
            return;
        }
        let (count, took, last) = &mut self.status.hooks;
        *count = count.saturating_add(outcomes.len());
        *took = outcomes.iter().fold(*took, |took, outcome| took.saturating_add(outcome.duration));
        let names: Vec<_> = outcomes
            .iter()
            .map(|outcome| format!("{} {}", super::clean::line(&outcome.name), duration(outcome.duration)))
            .collect();
        *last = format!("{event}: {}", names.join(", "));
    }

    /// Begins a command of the session's, if none is at work or it may be given at any time.
    fn ask(&mut self, command: Command, any_time: bool) -> Vec<Effect> {
        if self.busy.is_some() && !any_time {
            self.flash("wait until the turn is over, or interrupt it with Esc");
            return Vec::new();
        }
        if !any_time {
            self.busy = Some(self.now);
        }
        vec![Effect::Command(command)]
    }

    fn flash(&mut self, text: impl Into<String>) {
        self.flash = Some((text.into(), self.now.saturating_add(FLASH)));
    }

    fn look(&self) -> Look {
        Look { width: self.size.0, theme: self.theme, details: self.details }
    }
}

#[cfg(test)]
mod tests;
