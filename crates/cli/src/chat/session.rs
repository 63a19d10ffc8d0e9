//! The session's side: it obeys commands one after another, and hears the person while a turn runs.

use std::pin::pin;
use std::sync::Arc;

use gatehook_agent::approval::SafetyMode;
use gatehook_agent::report::Report;
use gatehook_agent::session::Session;
use gatehook_events::JournalError;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use super::told::told;
use super::wire::{Command, Facts, Inbox, Told};
use crate::agent::{Begun, Ready};
use crate::exit::Exit;
use crate::failure::Failure;

/// What came of it.
pub(crate) struct Served {
    /// The last session, if anything was said in it.
    pub(crate) last: Option<Arc<str>>,
    /// How the worst of all turns ended.
    pub(crate) worst: Exit,
}

/// Leads sessions until the person leaves.
pub(crate) async fn serve(
    ready: &Ready,
    facts: Facts,
    commands: Receiver<Command>,
    inbox: Arc<Inbox>,
) -> Result<Served, Failure> {
    let Begun { session, note } = ready.session().await?;
    let mut serving = Serving { ready, facts, commands, inbox, session, leaves: false, worst: Exit::Done };
    serving.tell_facts();
    serving.tell_past(note);
    while !serving.leaves
        && let Some(command) = serving.commands.recv().await
    {
        serving.inbox.tell(Told::Begun);
        serving.obey(command).await;
        serving.inbox.tell(Told::Ready(serving.session.inbox().follow_ups()));
    }
    let Serving { session, worst, .. } = serving;
    let last = (session.conversation().turn() > 0).then(|| session.id().clone());
    session.end("prompt_input_exit").await;
    ready.close().await;
    Ok(Served { last, worst })
}

struct Serving<'a> {
    ready: &'a Ready,
    facts: Facts,
    commands: Receiver<Command>,
    inbox: Arc<Inbox>,
    session: Session,
    leaves: bool,
    worst: Exit,
}

impl Serving<'_> {
    async fn obey(&mut self, command: Command) {
        match command {
            // What was meant for a turn that has just ended begins the next one.
            Command::Prompt(text) | Command::Steer(text) | Command::FollowUp(text) => self.prompt(&text).await,
            Command::Compact => self.compact().await,
            Command::Clear => {
                let session = self.ready.cleared().await;
                self.replace(session, "clear").await;
            }
            Command::Resume(id) => {
                let session = self.ready.resumed(&id).await;
                self.replace(session, "other").await;
            }
            Command::Undo => match self.session.undo().await {
                Ok(Some(prompt)) => self.notice("info", format!("taken out of the conversation: {prompt}")),
                Ok(None) => self.notice("info", "there is nothing to undo"),
                Err(error) => self.unkept(&error),
            },
            Command::Agent(name) => match self.session.set_agent(&name).await {
                Ok(true) => {}
                Ok(false) => self.notice("error", format!("there is no agent `{name}`")),
                Err(error) => self.unkept(&error),
            },
            Command::Model(name) => match self.ready.model(&name) {
                Ok(model) => {
                    let kept = self.session.set_model(model).await;
                    kept.unwrap_or_else(|error| self.unkept(&error));
                }
                Err(failure) => self.notice("error", failure.to_string()),
            },
            Command::Mode(name) => self.mode(&name).await,
            Command::Interrupt => {}
            Command::Quit => self.leaves = true,
        }
    }

    /// Leads a turn, and hears the person meanwhile.
    async fn prompt(&mut self, text: &str) {
        let cancel = CancellationToken::new();
        let to = self.session.inbox();
        let mut done = pin!(self.session.prompt(text, &cancel));
        loop {
            tokio::select! {
                // What was typed before the turn went on is heard before it does.
                biased;
                command = self.commands.recv() => {
                    let is_taken = match command {
                        Some(Command::Steer(text) | Command::Prompt(text)) => to.steer(text),
                        Some(Command::FollowUp(text)) => to.follow_up(text),
                        Some(Command::Interrupt) => {
                            cancel.cancel();
                            true
                        }
                        Some(Command::Quit) | None => {
                            self.leaves = true;
                            cancel.cancel();
                            break;
                        }
                        Some(_) => false,
                    };
                    if !is_taken {
                        let text = "that was not taken: too much waits already, or a turn runs".into();
                        self.inbox.tell(Told::Report(Report::Notice { level: "warning", text }));
                    }
                }
                done = &mut done => {
                    self.worst = self.worst.max(done.reason.into());
                    return;
                }
            }
        }
        self.worst = self.worst.max(done.await.reason.into());
    }

    async fn compact(&mut self) {
        let cancel = CancellationToken::new();
        let mut done = pin!(self.session.compact(&cancel));
        loop {
            tokio::select! {
                biased;
                _ = &mut done => return,
                command = self.commands.recv() => match command {
                    Some(Command::Interrupt) => cancel.cancel(),
                    Some(Command::Quit) | None => {
                        self.leaves = true;
                        cancel.cancel();
                        break;
                    }
                    Some(_) => {}
                }
            }
        }
        done.await;
    }

    /// Ends the session, and goes on with another one.
    async fn replace(&mut self, next: Result<Begun, Failure>, reason: &str) {
        match next {
            Ok(Begun { session, note }) => {
                std::mem::replace(&mut self.session, session).end(reason).await;
                self.tell_past(note);
                self.tell_facts();
            }
            Err(failure) => self.notice("error", failure.to_string()),
        }
    }

    async fn mode(&mut self, name: &str) {
        let mode = SafetyMode::from_name(name);
        if mode.is_none() && name != "none" {
            return self.notice("error", format!("there is no safety mode `{name}`"));
        }
        match self.session.set_mode(mode).await {
            Ok(()) => self.tell_facts(),
            Err(error) => self.unkept(&error),
        }
    }

    /// What was said before, where the session goes on, and what is to be known of it.
    fn tell_past(&self, note: Option<Report>) {
        told(self.session.conversation())
            .into_iter()
            .chain(note)
            .for_each(|report| self.inbox.tell(Told::Report(report)));
    }

    fn tell_facts(&mut self) {
        self.facts.mode = self.session.mode().map_or("", SafetyMode::name).to_owned();
        self.inbox.tell(Told::Facts(self.facts.clone()));
    }

    fn notice(&self, level: &'static str, text: impl Into<Arc<str>>) {
        self.inbox.tell(Told::Report(Report::Notice { level, text: text.into() }));
    }

    fn unkept(&self, error: &JournalError) {
        self.notice("error", format!("the session cannot be kept: {error}"));
    }
}
