//! The file: opened for its owner alone, in the newest schema, with what goes wrong in words.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gatehook_events::trace::{Fault, TraceError};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::schema::{self, Schema, SchemaError};

/// How long one statement waits for another process.
const BUSY: Duration = Duration::from_millis(250);

/// An open file.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) connection: Connection,
    path: PathBuf,
    /// Device and number of the file that was opened.
    file: (u64, u64),
}

impl Database {
    /// Opens a file, or makes it and its folders, for their owner alone.
    pub(crate) fn create(path: &Path, schema: Schema<'static>) -> Result<Self, TraceError> {
        let made = path.parent().map_or(Ok(()), |folder| DirBuilder::new().recursive(true).mode(0o700).create(folder));
        let made = made.and_then(|()| {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
            if file.metadata()?.mode() & 0o077 != 0 {
                file.set_permissions(Permissions::from_mode(0o600))?;
            }
            Ok(())
        });
        made.map_err(|error: io::Error| unreachable(path, &error))?;
        Self::connect(path, schema)
    }

    /// Opens a file; `None` where there is none.
    pub(crate) fn open(path: &Path, schema: Schema<'static>) -> Result<Option<Self>, TraceError> {
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreachable(path, &error)),
            Ok(_) => Self::connect(path, schema).map(Some),
        }
    }

    fn connect(path: &Path, schema: Schema<'static>) -> Result<Self, TraceError> {
        let file = fs::metadata(path).map_err(|error| unreachable(path, &error))?;
        let failed = |error: rusqlite::Error| fault(path, &error);
        // A path stands for itself, and names no mutex: each thread has a connection of its own.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        prepare(&connection).map_err(failed)?;
        schema::migrate(&mut connection, schema).map_err(|error| match error {
            SchemaError::Sqlite(error) => fault(path, &error),
            SchemaError::Foreign => TraceError {
                fault: Fault::Corrupted,
                place: path.display().to_string(),
                detail: "it holds the tables of another program, or others of gatehook's".to_owned(),
            },
            SchemaError::Newer(version) => TraceError {
                fault: Fault::Newer,
                place: path.display().to_string(),
                detail: format!("its schema is {version}, the newest known here is {}", schema.steps.len()),
            },
        })?;
        Ok(Self { connection, path: path.to_owned(), file: (file.dev(), file.ino()) })
    }

    /// Whether its path still leads to it.
    pub(crate) fn is_there(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.file)
    }

    /// What went wrong with it, in words.
    pub(crate) fn fault(&self, error: &rusqlite::Error) -> TraceError {
        fault(&self.path, error)
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    if connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? == 0 {
        // Space that is given up goes back to the system. It can be chosen only before there is a table.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // A command that writes one trace need not wait for the disk: the next one, or the thousandth page, brings it home.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // A file that was made to harm runs no function from its schema.
    connection.pragma_update(None, "trusted_schema", false)
}

fn unreachable(path: &Path, error: &io::Error) -> TraceError {
    let fault = if error.kind() == io::ErrorKind::StorageFull { Fault::Full } else { Fault::Unreachable };
    TraceError { fault, place: path.display().to_string(), detail: error.to_string() }
}

fn fault(path: &Path, error: &rusqlite::Error) -> TraceError {
    let fault = match error.sqlite_error_code() {
        None if matches!(error, rusqlite::Error::FromSqlConversionFailure(..)) => Fault::Corrupted,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Fault::Locked,
        Some(ErrorCode::DiskFull) => Fault::Full,
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Fault::Corrupted,
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => Fault::Unreachable,
        _ => Fault::Failed,
    };
    let detail = match error {
        rusqlite::Error::FromSqlConversionFailure(_, _, why) => why.to_string(),
        error => error.to_string(),
    };
    TraceError { fault, place: path.display().to_string(), detail }
}
