//! A model that says what a vector says.

use std::sync::{Mutex, PoisonError};

use gatehook_engine::handlers::model::{Asking, ModelClient, ModelReply, ResponseSchema};
use gatehook_engine::{HandlerError, events::FailureKind};

/// Always gives the same answer, and keeps the last question.
pub(crate) struct FakeModel {
    reply: Result<String, String>,
    prompt: Mutex<Option<String>>,
}

impl FakeModel {
    /// One that fails where there is an error, and says nothing where there is no reply.
    pub(crate) fn new(reply: Option<String>, error: Option<String>) -> Self {
        Self { reply: error.map_or(Ok(reply.unwrap_or_default()), Err), prompt: Mutex::default() }
    }

    pub(crate) fn last_prompt(&self) -> Option<String> {
        self.prompt.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ModelClient for FakeModel {
    fn ask<'a>(
        &'a self,
        _model: &'a str,
        _system: &'a str,
        user: &'a str,
        _schema: Option<&'a ResponseSchema>,
    ) -> Asking<'a> {
        *self.prompt.lock().unwrap_or_else(PoisonError::into_inner) = Some(user.to_owned());
        let reply = self.reply.clone();
        let failed = |error| HandlerError::new(FailureKind::HandlerError, error);
        Box::pin(async move { reply.map(ModelReply::new).map_err(failed) })
    }
}
