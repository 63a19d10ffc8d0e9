//! Questions about what was remembered.

use std::path::Path;
use std::time::SystemTime;

use gatehook_events::trace::{HookStats, Query, Recorded, TraceError, Traces};
use rusqlite::{Connection, Result};

use crate::database::Database;
use crate::schema::TRACES;
use crate::tables::{outcomes, traces};

/// Reads the traces of a file. Writers need not wait for it.
#[derive(Debug)]
pub struct TraceReader {
    database: Database,
}

impl TraceReader {
    /// Opens a file; `None` where there is none, because nothing was ever recorded.
    pub fn open(path: &Path) -> std::result::Result<Option<Self>, TraceError> {
        Ok(Database::open(path, TRACES)?.map(|database| Self { database }))
    }

    /// Asks within one transaction, so that all answers are of one moment.
    fn ask<T>(&self, question: impl Fn(&Connection) -> Result<T>) -> std::result::Result<T, TraceError> {
        let ask = || {
            let transaction = self.database.connection.unchecked_transaction()?;
            question(&transaction)
        };
        ask().map_err(|error| self.database.fault(&error))
    }
}

fn whole(connection: &Connection, trace: Recorded) -> Result<Recorded> {
    Ok(Recorded { outcomes: outcomes::of(connection, trace.id)?, ..trace })
}

impl Traces for TraceReader {
    fn trace(&self, id: i64) -> std::result::Result<Option<Recorded>, TraceError> {
        self.ask(|connection| traces::one(connection, id)?.map(|trace| whole(connection, trace)).transpose())
    }

    fn traces(&self, query: &Query) -> std::result::Result<Vec<Recorded>, TraceError> {
        self.ask(|connection| {
            let found = traces::select(connection, query)?;
            found.into_iter().map(|trace| whole(connection, trace)).collect()
        })
    }

    fn stats(&self, since: Option<SystemTime>) -> std::result::Result<Vec<HookStats>, TraceError> {
        self.ask(|connection| outcomes::stats(connection, since))
    }
}
