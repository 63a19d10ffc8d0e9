//! The file that traces are written to, opened when there is something to write, and again when it fails.

use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

use gatehook_events::trace::{Fault, TraceError};
use rusqlite::TransactionBehavior;

use super::{Keep, Shared, Waiting};
use crate::database::Database;
use crate::kept::{self, Kept};
use crate::schema::TRACES;
use crate::tables::{outcomes, traces};

/// A file that failed is left alone so long.
const REST: Duration = Duration::from_secs(1);

/// How often the same failure is said.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// A file that is locked is tried again after so long; the statement itself has waited before.
const AGAIN: Duration = Duration::from_millis(20);

/// How often old traces are looked for: after so many new ones, or so long.
const PRUNE_AFTER: usize = 256;
const PRUNE_EVERY: Duration = Duration::from_secs(600);

/// How many are deleted at one time, so that new ones need not wait for long.
const PRUNE: usize = 1000;

/// What one thread writes to.
pub(super) struct Ledger<'s> {
    shared: &'s Shared,
    pub(super) database: Option<Database>,
    /// When it last failed, and how.
    failed: Option<(Instant, Fault)>,
    said: Option<(Instant, Fault)>,
    pruned: Option<Instant>,
    since_pruned: usize,
}

impl<'s> Ledger<'s> {
    pub(super) fn new(shared: &'s Shared) -> Self {
        Self { shared, database: None, failed: None, said: None, pruned: None, since_pruned: 0 }
    }

    /// Writes all of them or, where that cannot be, none. A file that is locked is waited for as long as anybody waits
    /// for the thread: until the queue is full, the host loses nothing by it.
    pub(super) fn write(&mut self, batch: &[Waiting]) {
        let count = batch.len() as u64;
        let kept: Vec<Kept> = batch.iter().map(|waiting| kept::input(&waiting.trace.input)).collect();
        loop {
            let error = match self.attempt(batch, &kept) {
                Ok(()) => break self.shared.settle(count),
                Err(error) => error,
            };
            let fault = error.fault;
            self.report(error);
            if fault != Fault::Locked || self.shared.has_given_up() {
                break self.shared.lose(count);
            }
            std::thread::sleep(AGAIN);
        }
        self.prune(batch.len());
    }

    fn attempt(&mut self, batch: &[Waiting], kept: &[Kept]) -> Result<(), TraceError> {
        if self.database.as_ref().is_some_and(|database| !database.is_there()) {
            tracing::warn!(path = %self.shared.path.display(), "the file of traces is gone: a new one is begun");
            self.database = None;
        }
        let plane = self.shared.plane;
        let database = self.open()?;
        let written = insert(database, batch, kept, plane).map_err(|error| database.fault(&error));
        if let Err(TraceError { fault, .. }) = &written
            && *fault != Fault::Locked
        {
            (self.database, self.failed) = (None, Some((Instant::now(), *fault)));
        }
        written
    }

    fn open(&mut self) -> Result<&mut Database, TraceError> {
        if self.database.is_none() {
            let rests = self.failed.is_some_and(|(failed, _)| failed.elapsed() < REST);
            let known = self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(error) = known.filter(|_| rests) {
                return Err(error);
            }
            let opened = Database::create(&self.shared.path, TRACES);
            let failed = opened.as_ref().err().map(|error| error.fault).filter(|fault| *fault != Fault::Locked);
            self.failed = failed.map(|fault| (Instant::now(), fault));
            self.database = Some(opened?);
        }
        self.database.as_mut().ok_or_else(|| TraceError {
            fault: Fault::Unreachable,
            place: self.shared.path.display().to_string(),
            detail: "it was closed".to_owned(),
        })
    }

    /// Remembers why traces are lost, and says it, but the same not too often.
    fn report(&mut self, error: TraceError) {
        if self.said.is_none_or(|(said, fault)| fault != error.fault || said.elapsed() > SAY_EVERY) {
            tracing::warn!(help = error.remedy(), "traces are not recorded: {error}");
            self.said = Some((Instant::now(), error.fault));
        }
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// Deletes what need not be kept, now and then. What is left is deleted after the next batch.
    fn prune(&mut self, written: usize) {
        self.since_pruned += written;
        let is_due =
            self.since_pruned >= PRUNE_AFTER || self.pruned.is_none_or(|pruned| pruned.elapsed() > PRUNE_EVERY);
        let Some(database) = self.database.as_ref().filter(|_| is_due) else { return };
        match prune(database, &self.shared.keep) {
            Ok(deleted) if deleted == PRUNE => {}
            Ok(_) => (self.pruned, self.since_pruned) = (Some(Instant::now()), 0),
            Err(error) => {
                let error = database.fault(&error);
                self.report(error);
            }
        }
    }
}

fn insert(database: &mut Database, batch: &[Waiting], kept: &[Kept], plane: &str) -> rusqlite::Result<()> {
    let transaction = database.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (Waiting { trace, .. }, kept) in batch.iter().zip(kept) {
        let failed = trace.outcomes.iter().any(outcomes::has_failed);
        let id = traces::insert(&transaction, trace, kept, plane, failed)?;
        outcomes::insert(&transaction, id, &trace.outcomes)?;
    }
    transaction.commit()
}

fn prune(database: &Database, keep: &Keep) -> rusqlite::Result<usize> {
    let deleted = traces::prune(&database.connection, keep, SystemTime::now(), PRUNE)?;
    if deleted > 0 {
        database.connection.execute_batch("PRAGMA incremental_vacuum(512)")?;
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests;
