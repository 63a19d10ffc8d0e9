//! The thread's side: the file that sessions are kept in, opened when there is something to keep, and again when it fails.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use gatehook_events::journal::{JournalError, SoFar};
use gatehook_events::trace::Fault;
use gatehook_events::{Entry, Message, SessionHead};
use rusqlite::{Connection, TransactionBehavior};

use super::transcript::{self, Transcript};
use super::{Job, SessionError, What};
use crate::database::Database;
use crate::schema::SESSIONS;
use crate::tables::{entries, sessions};

/// How long a file that is locked is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// It is tried again after so long; the statement itself has waited before.
const AGAIN: Duration = Duration::from_millis(20);

/// Of how many sessions it is known where they are; of others that is looked up.
const KNOWN: usize = 256;

/// How much of the user's first message stands in lists, in bytes.
const PROMPT: usize = 200;

/// What one thread writes to.
#[derive(Debug)]
pub(super) struct Keeper {
    path: PathBuf,
    database: Option<Database>,
    places: HashMap<Arc<str>, Place>,
    transcripts: HashMap<Arc<str>, Transcript>,
}

/// Where a session is.
#[derive(Debug, Clone, Copy)]
struct Place {
    number: i64,
    /// The place of its last entry.
    last: i64,
    /// The first piece of an answer that is not over.
    said: Option<i64>,
}

/// Where sessions are within a transaction that may come to nothing.
struct Places<'k> {
    before: &'k HashMap<Arc<str>, Place>,
    moved: HashMap<Arc<str>, Place>,
}

impl Places<'_> {
    fn get(&self, session: &str) -> Option<Place> {
        self.moved.get(session).or_else(|| self.before.get(session)).copied()
    }
}

/// What became of a job: kept or, for a reason of its own, not.
type Told = Result<(), JournalError>;

impl Keeper {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), database: None, places: HashMap::new(), transcripts: HashMap::new() }
    }

    /// Keeps all of them in one transaction or, where that cannot be, each in one of its own; tells those who wait.
    pub(super) fn keep(&mut self, batch: Vec<Job>) {
        if self.places.len() > KNOWN {
            self.places.clear();
            self.transcripts.clear();
        }
        match self.write(&batch) {
            Ok(told) => {
                let mut fresh = HashSet::new();
                for (job, told) in batch.into_iter().zip(told) {
                    if told.is_ok() {
                        self.show(&job.what, &mut fresh);
                    }
                    // Whoever does not wait any more has given up.
                    let _ = job.done.send(told);
                }
            }
            // One that is too large for the disk must not take others with it.
            Err(error) if batch.len() > 1 && error.fault != Fault::Locked => {
                batch.into_iter().for_each(|job| self.keep(vec![job]));
            }
            Err(error) => {
                tracing::warn!(help = error.remedy(), "a session is not kept: {error}");
                batch.into_iter().for_each(|job| drop(job.done.send(Err(error.clone().into()))));
            }
        }
    }

    /// One result for each job, or an error that is of all.
    fn write(&mut self, batch: &[Job]) -> Result<Vec<Told>, SessionError> {
        let since = Instant::now();
        loop {
            match self.attempt(batch) {
                Err(error) if error.fault == Fault::Locked && since.elapsed() < PATIENCE => std::thread::sleep(AGAIN),
                Err(error) => {
                    // Where it is full it is in order.
                    if !matches!(error.fault, Fault::Locked | Fault::Full) {
                        self.database = None;
                    }
                    break Err(error);
                }
                done => break done,
            }
        }
    }

    fn attempt(&mut self, batch: &[Job]) -> Result<Vec<Told>, SessionError> {
        if self.database.as_ref().is_some_and(|database| !database.is_there()) {
            self.database = None;
            self.places.clear();
            self.transcripts.clear();
            let (place, detail) =
                (self.path.display().to_string(), "it was taken away while it was written".to_owned());
            return Err(SessionError { fault: Fault::Unreachable, place, detail });
        }
        if self.database.is_none() {
            self.database = Some(Database::create(&self.path, SESSIONS)?);
        }
        let Some(database) = &mut self.database else { return Ok(Vec::new()) };
        let mut places = Places { before: &self.places, moved: HashMap::new() };
        let mut write = || {
            let transaction = database.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let told = batch.iter().map(|job| keep(&transaction, &mut places, job)).collect::<Result<_, _>>()?;
            transaction.commit()?;
            Ok(told)
        };
        let told = write().map_err(|error| database.fault(&error))?;
        let moved = places.moved;
        self.places.extend(moved);
        Ok(told)
    }

    /// Writes what was kept into its transcript. Hooks judge by it: where it cannot be what it should, there is none. One
    /// that is `fresh` was written after all of the batch was kept.
    fn show(&mut self, what: &What, fresh: &mut HashSet<Arc<str>>) {
        let session = what.session();
        let (Some(database), Some(place)) = (&self.database, self.places.get(session)) else { return };
        let appended = match (what, self.transcripts.get_mut(session)) {
            (What::Append { entries, .. }, Some(transcript)) if !fresh.contains(session) => {
                transcript.append(entries).is_ok()
            }
            _ => fresh.contains(session),
        };
        if appended {
            return;
        }
        fresh.insert(session.clone());
        match Transcript::write(&database.connection, &self.path, session, place.number) {
            Ok(transcript) => drop(self.transcripts.insert(session.clone(), transcript)),
            Err(error) => {
                let path = transcript::path(&self.path, session);
                tracing::warn!(path = %path.display(), "a transcript is not written: {error}");
                self.transcripts.remove(session);
                transcript::remove(&self.path, session);
            }
        }
    }
}

/// Keeps one job within a transaction.
fn keep(connection: &Connection, places: &mut Places<'_>, job: &Job) -> rusqlite::Result<Told> {
    match &job.what {
        What::Begin(head) => begin(connection, places, head),
        What::Append { session, entries } => append(connection, places, session, entries, job.time),
    }
}

fn begin(connection: &Connection, places: &mut Places<'_>, head: &SessionHead) -> rusqlite::Result<Told> {
    if !transcript::is_name(&head.id) {
        let message = format!("`{}` names no session: letters, digits, `-`, `_` and `.`, 128 at most", head.id);
        return Ok(Err(JournalError { message }));
    }
    sessions::insert(connection, head)?;
    let known = places.get(&head.id);
    if let Some(place) = find(connection, &head.id)? {
        // What is said of an answer goes on, unless somebody else went on with the session.
        let said = known.filter(|known| known.last == place.last).and_then(|known| known.said);
        places.moved.insert(head.id.clone(), Place { said, ..place });
    }
    Ok(Ok(()))
}

fn append(
    connection: &Connection,
    places: &mut Places<'_>,
    session: &Arc<str>,
    kept: &[Entry],
    time: SystemTime,
) -> rusqlite::Result<Told> {
    let known = match places.get(session) {
        Some(place) => Some(place),
        None => find(connection, session)?,
    };
    let last = known.map(|place| entries::last(connection, place.number)).transpose()?.flatten();
    let (Some(mut place), Some(last)) = (known, last) else {
        return Ok(Err(JournalError { message: format!("the session `{session}` was not begun, or was removed") }));
    };
    if last != place.last {
        let message = format!("another program went on with the session `{session}`: resume it to see what it did");
        return Ok(Err(JournalError { message }));
    }
    let texts: Result<Vec<String>, _> = kept.iter().map(serde_json::to_string).collect();
    let texts = match texts {
        Ok(texts) => texts,
        Err(error) => return Ok(Err(JournalError { message: format!("an entry cannot be written: {error}") })),
    };
    for (entry, text) in kept.iter().zip(texts) {
        place.last += 1;
        entries::insert(connection, place.number, place.last, time, &text)?;
        place.note(connection, entry, time)?;
    }
    places.moved.insert(session.clone(), place);
    Ok(Ok(()))
}

fn find(connection: &Connection, session: &str) -> rusqlite::Result<Option<Place>> {
    let Some(number) = sessions::number(connection, session)? else { return Ok(None) };
    let last = entries::last(connection, number)?.unwrap_or(0);
    Ok(Some(Place { number, last, said: None }))
}

impl Place {
    /// What else follows from an entry that stands at the last place.
    fn note(&mut self, connection: &Connection, entry: &Entry, time: SystemTime) -> rusqlite::Result<()> {
        match (entry.so_far(), self.said) {
            (SoFar::IsWhole, Some(first)) => entries::forget_said(connection, self.number, first, self.last)?,
            (SoFar::IsCut, Some(first)) => entries::join_said(connection, self.number, first, self.last)?,
            _ => {}
        }
        match entry {
            Entry::Said { .. } => self.said = self.said.or(Some(self.last)),
            entry if entry.so_far() != SoFar::GoesOn => self.said = None,
            _ => {}
        }
        match entry {
            Entry::Turn { number } => {
                sessions::turn(connection, self.number, *number)?;
                sessions::touch(connection, self.number, time)
            }
            Entry::TurnEnd { .. } => sessions::touch(connection, self.number, time),
            Entry::Message { message } if &*message.role == "user" => prompt(connection, self.number, message),
            _ => Ok(()),
        }
    }
}

fn prompt(connection: &Connection, number: i64, message: &Message) -> rusqlite::Result<()> {
    let text = message.content.as_deref().unwrap_or_default().trim_start();
    let line = text.get(..text.floor_char_boundary(PROMPT)).unwrap_or(text).lines().next().unwrap_or_default();
    if line.is_empty() { Ok(()) } else { sessions::prompt(connection, number, line) }
}

#[cfg(test)]
mod tests;
