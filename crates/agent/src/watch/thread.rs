//! The thread that listens to the system.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use notify::event::{EventKind, ModifyKind};
use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::Changes;
use super::folder::{Folder, MAX_FILES, MAX_FOLDERS};

/// How many events of the system may wait.
const QUEUE: usize = 8192;
/// How long a session waits until all of a workspace is listened to; of a large one the rest follows.
const PATIENCE: Duration = Duration::from_millis(150);
/// How long the thread sleeps where nothing happens.
const IDLE: Duration = Duration::from_secs(3600);

/// Why nobody looks.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The system does not tell.
    #[error("changes of files are not heard of: {0}")]
    Unheard(#[from] notify::Error),
    /// There is no thread to be had.
    #[error("changes of files are not heard of: {0}")]
    NoThread(#[from] std::io::Error),
}

/// Somebody who looks. Dropped, they look no more.
#[derive(Debug)]
pub struct Watching {
    says: SyncSender<Told>,
    ends: Arc<AtomicBool>,
    changes: Changes,
}

/// What the thread is told.
enum Told {
    Event(notify::Result<notify::Event>),
    End,
}

impl Watching {
    /// Looks at a workspace, by its canonical path, but not at what is in the folder `without`, and tells `changes`.
    pub fn begin(workspace: &Path, without: Option<&Path>, changes: &Changes) -> Result<Self, WatchError> {
        let (says, told) = sync_channel(QUEUE);
        let (ends, overflows) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (events, overflowing) = (says.clone(), overflows.clone());
        let watcher = RecommendedWatcher::new(
            move |event: notify::Result<notify::Event>| {
                // To look at a workspace is heard of too.
                if event.as_ref().is_ok_and(|event| !is_change(event)) {
                    return;
                }
                if let Err(TrySendError::Full(_)) = events.try_send(Told::Event(event)) {
                    overflowing.store(true, Ordering::Relaxed);
                }
            },
            Config::default().with_follow_symlinks(false),
        )?;
        let (ready, is_ready) = sync_channel(1);
        let mut listener = Listener {
            root: workspace.to_owned(),
            folder: Folder::of(workspace, without, changes.clone()),
            watcher,
            told,
            ends: ends.clone(),
            overflows,
            changes: changes.clone(),
        };
        changes.watched(true);
        let thread = std::thread::Builder::new().name("watching".to_owned()).spawn(move || {
            listener.learn(&listener.root.clone(), None);
            // Nobody waits any more for a large workspace.
            let _ = ready.send(());
            listener.run();
        });
        if let Err(error) = thread {
            changes.watched(false);
            return Err(error.into());
        }
        let _ = is_ready.recv_timeout(PATIENCE);
        Ok(Self { says, ends, changes: changes.clone() })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.changes.watched(false);
        self.ends.store(true, Ordering::Relaxed);
        // Where the queue is full the thread is awake, and sees that it has ended.
        let _ = self.says.try_send(Told::End);
    }
}

struct Listener {
    root: PathBuf,
    folder: Folder,
    watcher: RecommendedWatcher,
    told: Receiver<Told>,
    ends: Arc<AtomicBool>,
    /// Events were lost.
    overflows: Arc<AtomicBool>,
    changes: Changes,
}

impl Listener {
    fn run(&mut self) {
        while !self.ends.load(Ordering::Relaxed) {
            let wait = self.folder.due().map_or(IDLE, |due| due.saturating_duration_since(Instant::now()));
            match self.told.recv_timeout(wait) {
                Ok(Told::Event(Ok(event))) => self.take(event),
                Ok(Told::Event(Err(error))) => tracing::warn!(%error, "a change of a file was not heard of"),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Told::End) | Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            if self.overflows.swap(false, Ordering::Relaxed) {
                self.changes.miss();
                self.learn(&self.root.clone(), Some(now));
            }
            self.folder.settle(now);
        }
    }

    fn take(&mut self, event: notify::Event) {
        let now = Instant::now();
        if event.need_rescan() {
            self.overflows.store(true, Ordering::Relaxed);
        }
        // One that is made again is another folder, of which the system tells nothing yet.
        let is_renewed =
            matches!(event.kind, EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
        for path in event.paths {
            self.happened(path, is_renewed, now);
        }
    }

    fn happened(&mut self, path: PathBuf, is_renewed: bool, now: Instant) {
        let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let was_folder = self.folder.has(&path);
        if was_folder && (is_renewed || !is_folder) {
            for gone in self.folder.gone(&path, now) {
                // The system has mostly forgotten it already.
                let _ = self.watcher.unwatch(&gone);
            }
        }
        match is_folder {
            true if (is_renewed || !was_folder) && self.folder.is_seen(&path, true) => self.learn(&path, Some(now)),
            true => {}
            false if !was_folder && self.folder.is_seen(&path, false) => self.folder.touch(path, now),
            false => {}
        }
    }

    fn learn(&mut self, folder: &Path, new: Option<Instant>) {
        let was_too_large = self.folder.is_too_large;
        let watcher = &mut self.watcher;
        let mut unheard = None;
        self.folder.learn(folder, new, |folder| {
            if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                unheard = Some(error);
            }
        });
        if let Some(error) = unheard {
            tracing::warn!(%error, "not all folders of the workspace are listened to");
            self.changes.unhear(format!("Changes in some folders of the workspace are not raised: {error}."));
        }
        if self.folder.is_too_large && !was_too_large {
            tracing::warn!("the workspace is too large: changes in some of its folders are not heard of");
            self.changes.unhear(format!(
                "The workspace has more than {MAX_FOLDERS} folders or {MAX_FILES} files: changes in the rest of it are not raised."
            ));
        }
    }
}

/// Whether anything is otherwise than before, or the system says that it cannot tell.
fn is_change(event: &notify::Event) -> bool {
    match event.kind {
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => event.need_rescan(),
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    }
}
