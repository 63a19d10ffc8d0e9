//! Sessions, kept as they happen: a bounded queue, and one thread that works it off. Whoever hands in entries waits until
//! they survive the end of the process.
//!
//! What was acknowledged survives SIGKILL at any moment: it has been handed to the system. A power failure may take the
//! last of it, up to what the system had not written yet (on Linux 30 seconds by default), and leaves the file whole. To
//! wait for the disk with each piece of an answer would cost more than the answer.

mod archive;
mod error;
mod keeper;
mod transcript;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use gatehook_events::Entry;
use gatehook_events::journal::{Journal, JournalError, Keeping, SessionHead};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::weight;
use keeper::Keeper;

pub use archive::{Filter, Listed, Named, SessionArchive};
pub use error::SessionError;

/// How many appends may wait.
const QUEUE: usize = 256;

/// How much memory they may hold, in bytes; a single one may hold more.
const QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// How many are written together, at most.
const BATCH: usize = 64;

/// Keeps sessions in a file, and of each a transcript for hooks to read. The file is opened, and the thread started, with
/// the first session. Several processes may keep sessions in one file; one session is one process's at a time: an
/// append after another process went on with it fails.
///
/// ```
/// use gatehook_events::{Entry, Journal, Message, SessionHead};
/// use gatehook_store::{SessionArchive, Sessions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("sessions.db");
/// let sessions = Sessions::new(path.clone());
/// let head = SessionHead {
///     id: "s-1".into(),
///     parent: None,
///     workspace: "/project".into(),
///     agent: "root".into(),
///     model: "ollama/llama3".into(),
///     started: std::time::SystemTime::now(),
/// };
/// let id = head.id.clone();
/// sessions.begin(head).await?;
/// sessions.append(&id, vec![Entry::Message { message: Message::new("user", "hi") }]).await?;
///
/// let archive = SessionArchive::open(&path)?.expect("it was made");
/// assert_eq!(archive.entries("s-1", 1)?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sessions {
    path: PathBuf,
    room: Arc<Semaphore>,
    queue: OnceLock<Result<mpsc::Sender<Job>, JournalError>>,
}

/// Something to keep, and who waits for it.
#[derive(Debug)]
struct Job {
    what: What,
    time: SystemTime,
    done: oneshot::Sender<Result<(), JournalError>>,
    _room: OwnedSemaphorePermit,
}

#[derive(Debug)]
enum What {
    Begin(SessionHead),
    Append { session: Arc<str>, entries: Vec<Entry> },
}

impl What {
    fn session(&self) -> &Arc<str> {
        match self {
            Self::Begin(head) => &head.id,
            Self::Append { session, .. } => session,
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Begin(_) => 1024,
            Self::Append { entries, .. } => entries.iter().map(weight::of_entry).sum(),
        }
    }
}

impl Sessions {
    /// Keeps them in `path`, and transcripts in the folder `transcripts` beside it.
    pub fn new(path: PathBuf) -> Self {
        Self { path, room: Arc::new(Semaphore::new(QUEUE_BYTES)), queue: OnceLock::new() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where hooks find the conversation of a session as JSON lines: `transcript_path`. It is there once the session has
    /// begun, and has each message as soon as it is kept.
    pub fn transcript(&self, session: &str) -> PathBuf {
        transcript::path(&self.path, session)
    }

    async fn keep(&self, what: What) -> Result<(), JournalError> {
        let time = SystemTime::now();
        let queue = self.queue.get_or_init(|| start(&self.path)).as_ref().map_err(Clone::clone)?;
        let weight = u32::try_from(what.weight().min(QUEUE_BYTES)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(weight).await.map_err(|_| self.ended())?;
        let (done, kept) = oneshot::channel();
        queue.send(Job { what, time, done, _room: room }).await.map_err(|_| self.ended())?;
        kept.await.map_err(|_| self.ended())?
    }

    fn ended(&self) -> JournalError {
        JournalError { message: format!("{} is not written any more: its thread has ended", self.path.display()) }
    }
}

impl Journal for Sessions {
    fn begin<'a>(&'a self, head: SessionHead) -> Keeping<'a> {
        Box::pin(self.keep(What::Begin(head)))
    }

    fn append<'a>(&'a self, session: &'a Arc<str>, entries: Vec<Entry>) -> Keeping<'a> {
        Box::pin(self.keep(What::Append { session: session.clone(), entries }))
    }

    fn transcript(&self, session: &str) -> Option<PathBuf> {
        Some(transcript::path(&self.path, session))
    }
}

fn start(path: &Path) -> Result<mpsc::Sender<Job>, JournalError> {
    let (queue, jobs) = mpsc::channel(QUEUE);
    let keeper = Keeper::new(path);
    let started = std::thread::Builder::new().name("gatehook-sessions".to_owned()).spawn(move || work(keeper, jobs));
    let failed = |error| JournalError { message: format!("{} cannot be written: no thread: {error}", path.display()) };
    started.map(|_| queue).map_err(failed)
}

fn work(mut keeper: Keeper, mut jobs: mpsc::Receiver<Job>) {
    while let Some(first) = jobs.blocking_recv() {
        let waiting = std::iter::from_fn(|| jobs.try_recv().ok()).take(BATCH - 1);
        let batch: Vec<Job> = std::iter::once(first).chain(waiting).collect();
        keeper.keep(batch);
    }
}

#[cfg(test)]
mod tests;
