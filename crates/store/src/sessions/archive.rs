//! What was kept of sessions: asked for, and removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use gatehook_events::SessionHead;
use gatehook_events::journal::Kept;
use rusqlite::Connection;

use super::{SessionError, transcript};
use crate::database::Database;
use crate::schema::SESSIONS;
use crate::tables::{entries, sessions};

/// How many sessions are named where a beginning is not enough.
const NAMED: i64 = 5;

/// Reads and removes sessions. Those who keep them need not wait for readers.
#[derive(Debug)]
pub struct SessionArchive {
    database: Database,
    path: PathBuf,
}

/// Which sessions are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Of this folder alone.
    pub workspace: Option<Arc<str>>,
    /// That this session started; absent: that no other session started.
    pub parent: Option<Arc<str>>,
    /// That have begun a turn.
    pub with_turns: bool,
    /// At most so many.
    pub limit: usize,
}

impl Default for Filter {
    fn default() -> Self {
        Self { workspace: None, parent: None, with_turns: false, limit: 20 }
    }
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// What is known of it.
    pub head: SessionHead,
    /// When its last turn began or ended.
    pub touched: SystemTime,
    /// How many turns it has.
    pub turns: u64,
    /// How the user's first message begins.
    pub prompt: Option<Arc<str>>,
}

/// Whom an identity, or the beginning of one, names.
#[derive(Debug, Clone, PartialEq)]
pub enum Named {
    /// No session.
    Nobody,
    /// This one.
    One(Listed),
    /// Several; the identities of the first of them.
    Several(Vec<Arc<str>>),
}

impl SessionArchive {
    /// Opens a file; `None` where there is none, because no session was ever kept.
    pub fn open(path: &Path) -> Result<Option<Self>, SessionError> {
        Ok(Database::open(path, SESSIONS)?.map(|database| Self { database, path: path.to_owned() }))
    }

    /// The sessions of a kind, those with the newest turn first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Listed>, SessionError> {
        self.ask(|connection| sessions::select(connection, filter))
    }

    /// The session of this identity, or of the only one that begins so.
    pub fn head(&self, id: &str) -> Result<Named, SessionError> {
        let mut found = self.ask(|connection| sessions::named(connection, id, NAMED))?;
        Ok(match (found.pop(), found.is_empty()) {
            (None, _) => Named::Nobody,
            (Some(one), true) => Named::One(one),
            (Some(last), false) => Named::Several(found.into_iter().chain([last]).map(|it| it.head.id).collect()),
        })
    }

    /// The session of a folder with the newest turn, those of subagents aside.
    pub fn latest(&self, workspace: &str) -> Result<Option<Listed>, SessionError> {
        let filter = Filter { workspace: Some(workspace.into()), with_turns: true, limit: 1, ..Filter::default() };
        Ok(self.list(&filter)?.pop())
    }

    /// The entries of a session from a place on, from 1; none where there is no such session.
    pub fn entries(&self, id: &str, from: u64) -> Result<Vec<Kept>, SessionError> {
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        self.ask(|connection| {
            let mut kept = Vec::new();
            if let Some(number) = sessions::number(connection, id)? {
                entries::each(connection, number, from, |entry| {
                    kept.push(entry);
                    Ok::<(), rusqlite::Error>(())
                })?;
            }
            Ok(kept)
        })
    }

    /// Removes a session, those that it started, and their transcripts, and overwrites where they stood; says which. Whoever
    /// still keeps one of them is told with its next entry.
    pub fn remove(&self, id: &str) -> Result<Vec<Arc<str>>, SessionError> {
        let connection = &self.database.connection;
        let remove = || {
            connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
            let removed = sessions::delete(connection, id)?;
            connection.execute_batch("PRAGMA incremental_vacuum")?;
            // What was written ahead of the file holds them still; whoever reads it now keeps it until the next time.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            Ok(removed)
        };
        let removed = remove().map_err(|error| self.database.fault(&error))?;
        removed.iter().for_each(|id| transcript::remove(&self.path, id));
        Ok(removed)
    }

    /// Asks within one transaction, so that all answers are of one moment.
    fn ask<T>(&self, question: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, SessionError> {
        let ask = || {
            let transaction = self.database.connection.unchecked_transaction()?;
            question(&transaction)
        };
        ask().map_err(|error| self.database.fault(&error).into())
    }
}
