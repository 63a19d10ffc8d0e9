//! What became of files: told by the session's tools, or seen by somebody who looks.

use std::sync::Arc;
use std::time::SystemTime;

use gatehook_engine::events::{Event, Input, Verdict};
use gatehook_engine::repository;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::context::{add, told};
use crate::tools::FileChange;
use crate::watch::Settled;

impl Session {
    /// Raises `on_file_change`.
    pub(super) async fn changed(&self, change: &FileChange) -> Verdict {
        let workspace = &self.setup.scene.workspace;
        let path = change.path.strip_prefix(workspace).unwrap_or(&change.path);
        let now = gatehook_engine::time::rfc3339(SystemTime::now());
        let with = |about: &mut Input| {
            about.file = Some(path.to_string_lossy().into());
            about.changes = Some(json!({"type": change.kind.name(), "size": change.size, "timestamp": now}));
        };
        self.raise(Event::OnFileChange, &CancellationToken::new(), with).await
    }

    /// Raises it for what others have changed since the last turn; what hooks say of it is for the turn that comes.
    pub(super) async fn see_changes(&mut self) {
        // What happens while a subagent works is its caller's to hear of.
        if self.depth > 0 || !self.setup.changes.is_watched() {
            return;
        }
        let Settled { changes, missed, unheard } = self.setup.changes.take();
        for change in changes {
            let verdict = self.changed(&change).await;
            add(&mut self.contexts.turn, &told(&verdict));
        }
        if missed > 0 {
            let text = format!("Files changed faster than hooks could be told: {missed} changes were not raised.");
            self.notify("warning", &text, "on_file_change").await;
        }
        if let Some(text) = unheard {
            self.notify("warning", &text, "on_file_change").await;
        }
    }

    /// The same at the end, when nothing more is to come.
    pub(super) async fn see_last_changes(&mut self) {
        if self.depth == 0 && self.setup.changes.is_watched() {
            self.setup.changes.settled().await;
            self.see_changes().await;
        }
    }

    /// Looks which branch is checked out.
    pub(super) async fn look_at_branch(&mut self) {
        let workspace = self.setup.scene.workspace.clone();
        let branch = tokio::task::spawn_blocking(move || repository::branch(&workspace)).await;
        self.branch = branch.ok().flatten().map(Arc::from);
    }
}
