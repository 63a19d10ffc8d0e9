//! Changes of files in the workspace, whoever makes them while a session runs.
//!
//! A thread ([`Watching`]) sees them and gathers what comes close together; a session takes from [`Changes`] what has
//! settled. `ignored`: which files are looked at. `folder`: what is known of the workspace, and what becomes of it.

mod folder;
mod ignored;
mod thread;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;

use crate::tools::{ChangeKind, FileChange};

pub use thread::{WatchError, Watching};

/// So long nothing more must happen to a file before its change is told.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// So long a change waits at most, of a file that never comes to rest.
const LONGEST: Duration = Duration::from_secs(2);
/// How many changes may wait for a session.
const BOUND: usize = 256;
/// Of how many files it is remembered that the session itself has changed them.
const OWN: usize = 1024;

/// Changes that wait for a session. A clone is another handle of the same.
#[derive(Debug, Clone, Default)]
pub struct Changes(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    settled: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Somebody looks.
    is_watched: bool,
    /// Something has happened that is not told yet.
    is_moving: bool,
    changes: VecDeque<FileChange>,
    missed: u64,
    /// Why some changes are not heard of, until that is told, and whether it was known before.
    unheard: Option<String>,
    is_unheard: bool,
    /// What the session's own tools have left.
    own: HashMap<PathBuf, Option<Stamp>>,
}

/// A file's state: another one is another change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// `None` where there is no file.
    fn of(path: &Path) -> Option<Self> {
        let meta = path.symlink_metadata().ok().filter(|meta| !meta.is_dir())?;
        Some(Self { size: meta.len(), modified: meta.modified().ok() })
    }
}

/// What has settled.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Settled {
    /// One for each file, the oldest first.
    pub(crate) changes: Vec<FileChange>,
    /// How many more there were.
    pub(crate) missed: u64,
    /// Why some are not heard of; told once.
    pub(crate) unheard: Option<String>,
}

impl Changes {
    /// Whether anybody looks.
    pub(crate) fn is_watched(&self) -> bool {
        self.lock().is_watched
    }

    /// A tool of the session has changed this file, and hooks are told so: nobody else is to tell them.
    pub(crate) fn own(&self, path: &Path) {
        let mut waiting = self.lock();
        if !waiting.is_watched {
            return;
        }
        waiting.changes.retain(|change| change.path != path);
        if waiting.own.len() >= OWN {
            // Files that nobody looks at.
            waiting.own.clear();
        }
        waiting.own.insert(path.to_owned(), Stamp::of(path));
    }

    /// What has settled since the last time.
    pub(crate) fn take(&self) -> Settled {
        let mut waiting = self.lock();
        Settled {
            changes: waiting.changes.drain(..).collect(),
            missed: std::mem::take(&mut waiting.missed),
            unheard: waiting.unheard.take(),
        }
    }

    /// Waits until all that has happened has settled, a bounded time.
    pub(crate) async fn settled(&self) {
        // What has just happened must be seen first.
        tokio::time::sleep(DEBOUNCE / 4).await;
        let all = async {
            loop {
                let settled = self.0.settled.notified();
                if !self.lock().is_moving {
                    return;
                }
                settled.await;
            }
        };
        // A file that never rests is not waited for.
        let _ = tokio::time::timeout(LONGEST + DEBOUNCE, all).await;
    }

    fn watched(&self, is_watched: bool) {
        let mut waiting = self.lock();
        waiting.is_watched = is_watched;
        waiting.is_moving = false;
        drop(waiting);
        self.0.settled.notify_waiters();
    }

    fn moving(&self, is_moving: bool) {
        self.lock().is_moving = is_moving;
        if !is_moving {
            self.0.settled.notify_waiters();
        }
    }

    /// Whether a file is as a tool of the session has left it. That is asked once.
    fn is_own(&self, path: &Path) -> bool {
        self.lock().own.remove(path).is_some_and(|left| left == Stamp::of(path))
    }

    fn put(&self, change: FileChange) {
        let mut waiting = self.lock();
        let before = waiting.changes.iter().position(|known| known.path == change.path);
        let before = before.and_then(|at| waiting.changes.remove(at));
        let kind = match (before.map(|before| before.kind), change.kind) {
            // It came and went, and nobody was told.
            (Some(ChangeKind::Created), ChangeKind::Deleted) => return,
            (Some(ChangeKind::Created), _) => ChangeKind::Created,
            (Some(ChangeKind::Deleted), ChangeKind::Created) => ChangeKind::Modified,
            (_, kind) => kind,
        };
        if waiting.changes.len() < BOUND {
            waiting.changes.push_back(FileChange { kind, ..change });
        } else {
            waiting.missed += 1;
        }
    }

    /// Not all changes are heard of. The first reason is told.
    fn unhear(&self, why: String) {
        let mut waiting = self.lock();
        if !std::mem::replace(&mut waiting.is_unheard, true) {
            waiting.unheard = Some(why);
        }
    }

    fn miss(&self) {
        self.lock().missed += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
