//! One turn: a call of the model, and the tools that it calls.

use std::sync::Arc;

use gatehook_engine::events::{Event, Message};
use tokio_util::sync::CancellationToken;

use super::Session;
use super::context::{add, told};
use super::end::{End, Reason, why};
use super::run::Progress;

/// How often in a row a `stop` hook may want the model to go on.
const KEPT_ON: usize = 8;

/// What follows a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another one.
    Turn,
    /// Another one, for the user has said something.
    Steered,
    /// Another one, of the agent that takes over whenever this one is done.
    Handed,
    /// Nothing: the model is done.
    Done,
}

impl Next {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Turn => Reason::Continue,
            Self::Steered => Reason::Steered,
            Self::Handed => Reason::ForceHandoff,
            Self::Done => Reason::Normal,
        }
    }
}

impl Session {
    pub(super) async fn turn(&mut self, progress: &mut Progress, cancel: &CancellationToken) -> Result<Next, End> {
        let verdict = self.raise(Event::TurnStart, cancel, |_| {}).await;
        self.live(cancel)?;
        add(&mut self.contexts.turn, &told(&verdict));
        let message = self.ask(progress.iteration, cancel).await?;
        progress.text = message.content.clone().unwrap_or_default();
        let calls = message.tool_calls.unwrap_or_default();
        if calls.is_empty() {
            return self.stop(progress, cancel).await;
        }
        progress.kept_on = 0;
        let loops = progress.repeats.count(&calls, self.cast.agent.max_repeats);
        self.batch(&calls, cancel).await?;
        match loops {
            Some(times) => Err(End::Looped(times)),
            None if self.inbox.is_steered() => Ok(Next::Steered),
            None => Ok(Next::Turn),
        }
    }

    /// The model is done: hooks may want it to go on, and the user may have said more.
    async fn stop(&mut self, progress: &mut Progress, cancel: &CancellationToken) -> Result<Next, End> {
        let text = progress.text.clone();
        let verdict = self
            .raise(Event::Stop, cancel, |input| {
                input.stop_response = Some(text);
                input.last_user_message = self.last_said();
                input.messages = Some(self.last_messages());
            })
            .await;
        self.live(cancel)?;
        add(&mut self.contexts.run, &told(&verdict));
        if !verdict.allowed {
            progress.kept_on += 1;
            if progress.kept_on <= KEPT_ON {
                let why = Some(why(&verdict)).filter(|why| !why.is_empty());
                let text: Arc<str> = why.map_or_else(|| "A hook wants you to keep working.".into(), Into::into);
                self.keep_message(Message::new("user", &text)).await?;
                return Ok(Next::Turn);
            }
            let text = format!("A stop hook wanted the agent to keep working {KEPT_ON} times in a row; it stops now.");
            self.notify("warning", &text, "stop").await;
        }
        let next = self.cast.agent.force_handoff.as_deref().and_then(|name| self.setup.agents.named(name));
        if let Some(agent) = next.cloned() {
            self.hand_over(agent, "force_handoff", cancel).await?;
            return Ok(Next::Handed);
        }
        if self.inbox.is_steered() {
            return Ok(Next::Steered);
        }
        let Some(follow_up) = self.inbox.take_follow_up() else { return Ok(Next::Done) };
        progress.kept_on = 0;
        self.submit(Event::UserFollowupSubmit, &follow_up, cancel).await?;
        Ok(Next::Turn)
    }
}
