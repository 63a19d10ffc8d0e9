//! Raising events: what hooks are told of a session, and what the person is told of trouble.

use std::sync::Arc;
use std::time::SystemTime;

use gatehook_engine::events::{Entry, Event, Input, Message, Verdict};
use gatehook_engine::{Executor, Pick};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::end::End;
use super::{Session, Setup};
use crate::agents::Agent;
use crate::report::Report;

/// How many messages hooks are shown that are told of a conversation as a whole.
const SHOWN: usize = 50;

impl Session {
    /// What hooks of every event are told.
    pub(super) fn about(&self) -> Input {
        let about = about(&self.setup, &self.id, self.started, &self.cast.agent);
        Input { branch: self.branch.clone(), ..about }
    }

    /// Raises an event with the hooks of the agent at work.
    pub(super) async fn raise(
        &self,
        event: Event,
        cancel: &CancellationToken,
        with: impl FnOnce(&mut Input),
    ) -> Verdict {
        self.raise_with(&self.cast.executor, event, cancel, with).await
    }

    /// Raises an event with those hooks of the agent at work that `pick` wants.
    pub(super) async fn raise_some(
        &self,
        event: Event,
        cancel: &CancellationToken,
        pick: &Pick<'_>,
        with: impl FnOnce(&mut Input),
    ) -> Verdict {
        let executor = &self.cast.executor;
        if !executor.has(event) {
            return Verdict::allow();
        }
        let mut input = self.about();
        with(&mut input);
        Box::pin(executor.dispatch_some(event, &input, cancel, &|_| Ok(()), pick)).await
    }

    /// Raises an event with these hooks.
    pub(super) async fn raise_with(
        &self,
        executor: &Executor,
        event: Event,
        cancel: &CancellationToken,
        with: impl FnOnce(&mut Input),
    ) -> Verdict {
        if !executor.has(event) {
            return Verdict::allow();
        }
        let mut input = self.about();
        with(&mut input);
        Box::pin(executor.dispatch(event, &input, cancel)).await
    }

    /// The end of the conversation.
    pub(super) fn last_messages(&self) -> Arc<[Message]> {
        let messages = self.conversation.messages();
        messages.get(messages.len().saturating_sub(SHOWN)..).unwrap_or_default().into()
    }

    /// What its model is asked with, where anything is said of that.
    pub(super) fn options(&self) -> Option<Arc<Value>> {
        let options = &self.cast.agent.model.options;
        (!options.is_empty()).then(|| Arc::new(Value::Object((**options).clone())))
    }

    /// What the user said last.
    pub(super) fn last_said(&self) -> Option<Arc<str>> {
        let messages = self.conversation.messages();
        messages.iter().rev().find(|message| &*message.role == "user").and_then(|message| message.content.clone())
    }

    /// Tells the person, and the hooks that tell others: `notification`, and for an error `on_error`.
    pub(super) async fn notify(&mut self, level: &'static str, text: &str, doing: &str) {
        let entry = Entry::Notice { level: level.into(), text: text.into() };
        // What cannot be kept is told all the same: it may be about just that.
        let _ = self.keep(vec![entry]).await;
        self.tell(Report::Notice { level, text: text.into() });
        let cancel = CancellationToken::new();
        let noticed = |input: &mut Input| {
            input.notification_level = Some(level.into());
            input.notification_message = Some(text.into());
        };
        self.raise(Event::Notification, &cancel, noticed).await;
        if level == "error" {
            let failed = |input: &mut Input| {
                noticed(input);
                input.operation = Some(doing.into());
                input.error = Some(json!({"message": text, "code": doing, "stack": ""}));
            };
            self.raise(Event::OnError, &cancel, failed).await;
        }
    }

    /// Says that the caller gave up, where it did: hooks that were cut short for it have decided nothing.
    pub(super) fn live(&self, cancel: &CancellationToken) -> Result<(), End> {
        if cancel.is_cancelled() { Err(End::Canceled) } else { Ok(()) }
    }
}

/// What hooks of every event are told.
pub(super) fn about(setup: &Setup, id: &Arc<str>, started: SystemTime, agent: &Agent) -> Input {
    Input {
        session_id: Some(id.clone()),
        cwd: Some(setup.scene.workspace.to_string_lossy().into()),
        agent_name: Some(agent.name.clone()),
        model_id: Some(agent.model.id().clone()),
        provider: Some(agent.model.provider().into()),
        transcript_path: setup.journal.transcript(id).map(|path| path.to_string_lossy().into()),
        session_started_at: Some(gatehook_engine::time::rfc3339(started).into()),
        ..(*setup.about).clone()
    }
}
