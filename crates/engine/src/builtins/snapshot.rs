//! `snapshot`: what a worktree was like before and after each step, so that steps can be undone.
//!
//! The hook keeps checkpoints; a host lists, undoes and resets by [`Snapshots`]. Nothing of it touches the repository
//! itself: files, index and history of a checkpoint are kept in a repository of its own beside Gatehook's state.

mod store;

use std::sync::Arc;

use gatehook_events::Event;
use tokio_util::sync::CancellationToken;

pub use self::store::{Checkpoint, Restored, SnapshotError, Snapshots};
use super::Arguments;
use super::place::Place;
use crate::handler::{DefinitionError, Handler, HandlerError, HookCall, Reply, Run};
use crate::handlers::command::tool::Until;

struct Snapshot(Arc<Place>);

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    arguments.none("snapshot")?;
    Ok(Arc::new(Snapshot(Place::of(arguments)?)))
}

impl Handler for Snapshot {
    /// A checkpoint that cannot be kept stops nobody: it is logged.
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(async move {
            let kept = self.keep(call).await;
            if let Err(error) = kept {
                tracing::warn!(%error, event = call.event.name(), "no snapshot was made");
            }
            Ok(Reply::Direct(None))
        })
    }
}

impl Snapshot {
    async fn keep(&self, call: HookCall<'_>) -> Result<(), SnapshotError> {
        let dir = self.0.dir(call.input);
        let env = self.0.env.clone();
        let opened = super::aside(call, move || Snapshots::open(&dir, &env)).await.map_err(SnapshotError::Git)?;
        let Some(snapshots) = opened? else { return Ok(()) };
        let session = call.input.session_id.as_deref().unwrap_or_default();
        let tool = call.input.tool_name.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
        let label = format!("{}{tool}", call.event.public_name());
        snapshots.keep_until(session, &label, call.into()).await?;
        if call.event == Event::SessionEnd {
            snapshots.tidy_until(call.into()).await?;
        }
        Ok(())
    }
}

/// Until nobody's deadline: the caller sets one around it.
fn unbounded(cancel: &CancellationToken) -> Until<'_> {
    /// As good as for ever, and no overflow.
    const LONG: std::time::Duration = std::time::Duration::from_secs(3600);
    Until { cancel, deadline: tokio::time::Instant::now() + LONG }
}

impl From<SnapshotError> for HandlerError {
    fn from(error: SnapshotError) -> Self {
        Self::new(gatehook_events::FailureKind::HandlerError, error.to_string())
    }
}

#[cfg(test)]
mod tests;
