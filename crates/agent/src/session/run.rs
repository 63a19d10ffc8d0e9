//! From a prompt to the model's last word.

use std::sync::Arc;

use gatehook_engine::events::{Entry, Event, Input, Message};
use tokio_util::sync::CancellationToken;

use super::context::{add, told};
use super::end::{End, Reason, pass};
use super::repeats::Repeats;
use super::turn::Next;
use super::{Contexts, Session};
use crate::report::Report;

/// By how many a cap is raised that the person lets be passed.
const MORE: u64 = 10;

/// What came of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// How its last turn ended, or would have.
    pub reason: Reason,
    /// The model's last text.
    pub text: Arc<str>,
}

/// How far a run has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// How often the model was asked.
    pub(super) iteration: u64,
    /// After so many the person is asked.
    pub(super) cap: Option<u64>,
    /// How often in a row a hook wanted it to go on.
    pub(super) kept_on: usize,
    pub(super) repeats: Repeats,
    /// The model's last text.
    pub(super) text: Arc<str>,
}

impl Session {
    /// Does what the user wants. On `cancel` what runs is stopped, `turn_end` is still raised, and the session can go on.
    pub async fn prompt(&mut self, text: &str, cancel: &CancellationToken) -> Done {
        self.lead(Some(Event::UserPromptSubmit), text, cancel).await
    }

    /// A task of another agent's: nobody has submitted a prompt.
    pub(super) async fn task(&mut self, text: &str, cancel: &CancellationToken) -> Done {
        self.lead(None, text, cancel).await
    }

    async fn lead(&mut self, event: Option<Event>, text: &str, cancel: &CancellationToken) -> Done {
        let mut progress = Progress { cap: self.cast.agent.max_iterations, ..Progress::default() };
        self.look_at_branch().await;
        let reason = match Box::pin(self.run(event, text, &mut progress, cancel)).await {
            Ok(()) => Reason::Normal,
            Err(end) => {
                if let Some((doing, said)) = end.said() {
                    self.notify("error", &said, doing).await;
                }
                end.reason()
            }
        };
        // What cannot be kept has been told already, or is told by the next prompt.
        let _ = self.keep(vec![Entry::TurnEnd { reason: reason.name().into() }]).await;
        self.stop_following();
        self.contexts = Contexts { session: std::mem::take(&mut self.contexts.session), ..Contexts::default() };
        if self.depth == 0 && self.setup.person.is_some() {
            self.raise(Event::OnUserInput, &CancellationToken::new(), |_| {}).await;
        }
        self.tell(Report::Done { text: progress.text.clone(), reason: reason.name() });
        Done { reason, text: progress.text }
    }

    async fn run(
        &mut self,
        event: Option<Event>,
        text: &str,
        progress: &mut Progress,
        cancel: &CancellationToken,
    ) -> Result<(), End> {
        self.begin(cancel).await?;
        match event {
            Some(event) => self.submit(event, text, cancel).await?,
            None => self.turns(text).await?,
        }
        if let Some((agent, task)) = event.and_then(|_| self.addressed(text)) {
            return self.relay(&agent, &task, progress, cancel).await;
        }
        loop {
            self.compact_if_full(cancel).await?;
            self.count(progress, cancel).await?;
            self.contexts.turn.clear();
            self.see_changes().await;
            self.steer(cancel).await?;
            let turn = self.turn(progress, cancel).await;
            let reason = turn.as_ref().map_or_else(End::reason, Next::reason);
            self.end_turn(reason).await;
            if turn? == Next::Done {
                return Ok(());
            }
        }
    }

    /// Raises `session_start`, once.
    async fn begin(&mut self, cancel: &CancellationToken) -> Result<(), End> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let (source, messages, options) = (self.source, self.last_messages(), self.options());
        let verdict = self
            .raise(Event::SessionStart, cancel, |input| {
                input.source = Some(source.into());
                input.messages = Some(messages);
                input.options = options;
            })
            .await;
        self.live(cancel)?;
        let verdict = pass(Event::SessionStart, verdict)?;
        self.contexts.session = told(&verdict);
        Ok(())
    }

    /// Shows a text of the user's to hooks, and then puts it into the conversation.
    pub(super) async fn submit(&mut self, event: Event, text: &str, cancel: &CancellationToken) -> Result<(), End> {
        let text = &*self.commanded(text).await?;
        let messages = self.last_messages();
        let verdict = self
            .raise(event, cancel, |input| {
                input.prompt = Some(text.into());
                input.messages = Some(messages);
            })
            .await;
        self.live(cancel)?;
        let verdict = pass(event, verdict)?;
        add(&mut self.contexts.run, &told(&verdict));
        match self.called(text) {
            Some((skill, args)) => {
                let said = self.follow_for_user(skill, args, cancel).await?;
                self.turns(&said).await
            }
            None => self.turns(text).await,
        }
    }

    /// Begins with a text.
    async fn turns(&mut self, text: &str) -> Result<(), End> {
        self.keep(vec![Entry::Turn { number: self.conversation.turn() + 1 }]).await?;
        self.say(text).await
    }

    async fn say(&mut self, text: &str) -> Result<(), End> {
        self.keep_message(Message::new("user", text)).await?;
        self.tell(Report::User { text: text.into() });
        Ok(())
    }

    /// What the user said meanwhile, for the turn that comes.
    async fn steer(&mut self, cancel: &CancellationToken) -> Result<(), End> {
        let texts = self.inbox.take_steering();
        if texts.is_empty() {
            return Ok(());
        }
        let event = Event::UserSteeringMessagesSubmit;
        let verdict = self.raise(event, cancel, |input| input.steering_messages = Some(texts.clone())).await;
        self.live(cancel)?;
        let verdict = pass(event, verdict)?;
        add(&mut self.contexts.turn, &told(&verdict));
        for text in texts {
            self.say(&text).await?;
        }
        Ok(())
    }

    /// Counts the calls of the model; at the cap the person says whether it goes on.
    async fn count(&mut self, progress: &mut Progress, cancel: &CancellationToken) -> Result<(), End> {
        if let Some(cap) = progress.cap.filter(|cap| progress.iteration >= *cap) {
            let text = format!("The agent has asked its model {cap} times, which is the most it may.");
            self.notify("warning", &text, "max_iterations").await;
            let noticed = |input: &mut Input| {
                input.notification_level = Some("warning".into());
                input.notification_message = Some(text.as_str().into());
            };
            self.raise(Event::OnMaxIterations, cancel, noticed).await;
            let Some(person) = self.setup.person.clone() else { return Err(End::Capped(cap)) };
            self.raise(Event::OnUserInput, cancel, |_| {}).await;
            let goes_on = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(End::Canceled),
                goes_on = person.goes_on(cap) => goes_on,
            };
            if !goes_on {
                return Err(End::Capped(cap));
            }
            let new = progress.iteration.saturating_add(MORE);
            progress.cap = Some(new);
            let resumed = |input: &mut Input| {
                (input.previous_max_iterations, input.new_max_iterations) = (Some(cap), Some(new));
            };
            self.raise(Event::OnSessionResume, cancel, resumed).await;
        }
        progress.iteration += 1;
        Ok(())
    }

    /// Raises `turn_end`, on whatever way the turn ended.
    async fn end_turn(&self, reason: Reason) {
        // Told whatever else was given up.
        self.raise(Event::TurnEnd, &CancellationToken::new(), |input| input.reason = Some(reason.name().into())).await;
        self.tell(Report::TurnEnd { reason: reason.name() });
    }
}
