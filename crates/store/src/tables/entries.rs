//! `entries`: a row for each thing that happened in a session.

use std::time::SystemTime;

use gatehook_events::Entry;
use gatehook_events::journal::Kept;
use rusqlite::types::Type;
use rusqlite::{Connection, Error, Result, params};

use super::{millis, time};

/// `entry` is JSON, `kind` its `type`. Places count up through a session.
pub(crate) const CREATE: &str = "
    CREATE TABLE entries (
        session INTEGER NOT NULL REFERENCES sessions (number) ON DELETE CASCADE,
        place   INTEGER NOT NULL,
        time_ms INTEGER NOT NULL,
        kind    TEXT AS (entry ->> 'type') VIRTUAL,
        entry   TEXT NOT NULL,
        PRIMARY KEY (session, place)
    ) STRICT;
";

/// Adds an entry.
pub(crate) fn insert(connection: &Connection, session: i64, place: i64, time: SystemTime, entry: &str) -> Result<()> {
    let sql = "INSERT INTO entries (session, place, time_ms, entry) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![session, place, millis(time), entry]).map(drop)
}

/// The place of a session's last entry; 0 where there is none, `None` where there is no session.
pub(crate) fn last(connection: &Connection, session: i64) -> Result<Option<i64>> {
    let sql = "SELECT (SELECT max(place) FROM entries WHERE session = number) FROM sessions WHERE number = ?1";
    let mut rows = connection.prepare_cached(sql)?;
    let mut rows = rows.query([session])?;
    rows.next()?.map(|row| Ok(row.get::<_, Option<i64>>(0)?.unwrap_or(0))).transpose()
}

/// Shows the entries of a session from a place on, one by one, until one fails.
pub(crate) fn each<E: From<Error>>(
    connection: &Connection,
    session: i64,
    from: i64,
    mut show: impl FnMut(Kept) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let sql = "SELECT place, time_ms, entry FROM entries WHERE session = ?1 AND place >= ?2 ORDER BY place";
    let mut rows = connection.prepare_cached(sql)?;
    let mut rows = rows.query([session, from])?;
    while let Some(row) = rows.next()? {
        let place = u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0);
        let entry = serde_json::from_str(row.get_ref(2)?.as_str().map_err(Error::from)?);
        // Whoever skipped what it cannot read would take the rest for the whole.
        let entry = entry.map_err(|error| {
            let detail = format!("entry {place} of the session cannot be read: {error}");
            Error::FromSqlConversionFailure(2, Type::Text, detail.into())
        })?;
        show(Kept { place, time: time(row.get(1)?), entry })?;
    }
    Ok(())
}

/// Deletes the pieces of an answer from one place up to another: the whole of it is kept.
pub(crate) fn forget_said(connection: &Connection, session: i64, from: i64, to: i64) -> Result<()> {
    let sql = "DELETE FROM entries WHERE session = ?1 AND place >= ?2 AND place < ?3 AND kind = 'said'";
    connection.prepare_cached(sql)?.execute([session, from, to]).map(drop)
}

/// Makes one piece of those of one kind that follow each other: no more comes of that answer.
pub(crate) fn join_said(connection: &Connection, session: i64, from: i64, to: i64) -> Result<()> {
    let sql = "SELECT place, time_ms, entry FROM entries
               WHERE session = ?1 AND place >= ?2 AND place < ?3 AND kind = 'said' ORDER BY place";
    let mut joined: Vec<(i64, i64, bool, String)> = Vec::new();
    let mut rows = connection.prepare_cached(sql)?;
    let mut rows = rows.query([session, from, to])?;
    while let Some(row) = rows.next()? {
        let Ok(Entry::Said { thinking, text }) = serde_json::from_str(row.get_ref(2)?.as_str()?) else { continue };
        match joined.last_mut().filter(|(_, _, kind, _)| *kind == thinking) {
            Some((.., all)) => all.push_str(&text),
            None => joined.push((row.get(0)?, row.get(1)?, thinking, text.to_string())),
        }
    }
    forget_said(connection, session, from, to)?;
    for (place, time_ms, thinking, text) in joined {
        let entry = serde_json::to_string(&Entry::Said { thinking, text: text.into() })
            .map_err(|error| Error::ToSqlConversionFailure(Box::new(error)))?;
        insert(connection, session, place, time(time_ms), &entry)?;
    }
    Ok(())
}
