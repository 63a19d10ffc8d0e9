//! Raising events: what hooks are told of a session, and what the person is told of trouble.

use std::sync::Arc;

use gatehook_engine::events::{Entry, Event, Input, Message, Verdict};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::end::End;
use crate::report::Report;

/// How many messages hooks are shown that are told of a conversation as a whole.
const SHOWN: usize = 50;

impl Session {
    /// What hooks of every event are told.
    pub(super) fn about(&self) -> Input {
        let model = &self.cast.agent.model;
        Input {
            session_id: Some(self.id.clone()),
            cwd: Some(self.setup.scene.workspace.to_string_lossy().into()),
            agent_name: Some(self.cast.agent.name.clone()),
            model_id: Some(model.id().clone()),
            provider: Some(model.provider().into()),
            transcript_path: self.transcript(),
            session_started_at: Some(stamp(self.started)),
            ..(*self.setup.about).clone()
        }
    }

    fn transcript(&self) -> Option<Arc<str>> {
        self.setup.journal.transcript(&self.id).map(|path| path.to_string_lossy().into())
    }

    /// Raises an event with the hooks of the agent at work.
    pub(super) async fn raise(
        &self,
        event: Event,
        cancel: &CancellationToken,
        with: impl FnOnce(&mut Input),
    ) -> Verdict {
        if !self.cast.executor.has(event) {
            return Verdict::allow();
        }
        let mut input = self.about();
        with(&mut input);
        Box::pin(self.cast.executor.dispatch(event, &input, cancel)).await
    }

    /// The end of the conversation.
    pub(super) fn last_messages(&self) -> Arc<[Message]> {
        let messages = self.conversation.messages();
        messages.get(messages.len().saturating_sub(SHOWN)..).unwrap_or_default().into()
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

fn stamp(time: std::time::SystemTime) -> Arc<str> {
    gatehook_engine::time::rfc3339(time).into()
}
