//! `traces`: a row for each dispatch in which a hook ran.

use std::time::SystemTime;

use gatehook_events::Trace;
use gatehook_events::trace::{MOST, Query, Recorded};
use rusqlite::types::Value as Bound;
use rusqlite::{Connection, Result, Row, params, params_from_iter};
use serde_json::Value;

use super::{duration, micros, millis, time};
use crate::kept::{self, Kept};
use crate::writer::Keep;

/// Times are milliseconds since 1970, durations microseconds, lists JSON. The newest have the highest numbers, and a
/// number is never given twice.
pub(crate) const CREATE: &str = "
    CREATE TABLE traces (
        id          INTEGER PRIMARY KEY AUTOINCREMENT,
        time_ms     INTEGER NOT NULL,
        event       TEXT NOT NULL,
        profiles    TEXT NOT NULL,
        session     TEXT,
        plane       TEXT NOT NULL,
        input       TEXT NOT NULL,
        secrets     INTEGER NOT NULL,
        cut         INTEGER NOT NULL,
        allowed     INTEGER NOT NULL,
        verb        TEXT NOT NULL,
        message     TEXT NOT NULL,
        rewritten   TEXT NOT NULL,
        failed      INTEGER NOT NULL,
        duration_us INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX traces_time    ON traces (time_ms);
    CREATE INDEX traces_event   ON traces (event, id);
    CREATE INDEX traces_session ON traces (session, id) WHERE session IS NOT NULL;
    CREATE INDEX traces_failed  ON traces (id) WHERE failed;
";

const INSERT: &str = "
    INSERT INTO traces (time_ms, event, profiles, session, plane, input, secrets, cut, allowed, verb, message, rewritten,
        failed, duration_us)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";

const COLUMNS: &str = "id, time_ms, event, profiles, session, plane, input, secrets, cut, allowed, verb, message, rewritten, \
                       duration_us";

/// Adds a row and says its number.
pub(crate) fn insert(connection: &Connection, trace: &Trace, kept: &Kept, plane: &str, failed: bool) -> Result<i64> {
    let mut profiles: Vec<&str> = trace.outcomes.iter().map(|outcome| outcome.profile.name()).collect();
    profiles.sort_unstable();
    profiles.dedup();
    let plane = trace.input.plane.as_deref().unwrap_or(plane);
    connection.prepare_cached(INSERT)?.execute(params![
        millis(trace.time),
        trace.event.public_name(),
        Value::from(profiles).to_string(),
        trace.input.session_id.as_deref().map(kept::line),
        kept::line(plane),
        kept.json,
        kept.secrets,
        kept.cut,
        trace.allowed,
        trace.verb.name(),
        kept::text(&trace.message),
        Value::from(trace.rewritten.clone()).to_string(),
        failed,
        micros(trace.duration),
    ])?;
    Ok(connection.last_insert_rowid())
}

/// Deletes at most `limit` of the oldest rows that need not be kept, and says how many.
pub(crate) fn prune(connection: &Connection, keep: &Keep, now: SystemTime, limit: usize) -> Result<usize> {
    let oldest = now.checked_sub(keep.age).map_or(0, millis);
    let sql = "DELETE FROM traces WHERE id IN (
            SELECT id FROM traces WHERE time_ms < ?1
            UNION SELECT id FROM traces WHERE id <= (SELECT max(id) FROM traces) - ?2
            ORDER BY id LIMIT ?3)";
    let rows = i64::try_from(keep.rows).unwrap_or(i64::MAX);
    connection.prepare_cached(sql)?.execute(params![oldest, rows, i64::try_from(limit).unwrap_or(i64::MAX)])
}

/// The newest rows of a query, their outcomes left empty.
pub(crate) fn select(connection: &Connection, query: &Query) -> Result<Vec<Recorded>> {
    let mut wanted: Vec<(&str, Bound)> = Vec::new();
    if let Some(event) = &query.event {
        wanted.push(("event = ?", event.clone().into()));
    }
    if let Some(session) = &query.session {
        wanted.push(("session = ?", session.clone().into()));
    }
    if let Some(since) = query.since {
        wanted.push(("time_ms >= ?", millis(since).into()));
    }
    if let Some(hook) = &query.hook {
        wanted.push(("EXISTS (SELECT 1 FROM outcomes WHERE trace = traces.id AND hook = ?)", hook.clone().into()));
    }
    let mut terms: Vec<&str> = wanted.iter().map(|(term, _)| *term).collect();
    if query.failed {
        terms.push("failed");
    }
    let filter = if terms.is_empty() { String::new() } else { format!("WHERE {}", terms.join(" AND ")) };
    let limit = i64::try_from(query.limit.min(MOST)).unwrap_or(0);
    let sql = format!("SELECT {COLUMNS} FROM traces {filter} ORDER BY id DESC LIMIT {limit}");
    let mut rows = connection.prepare_cached(&sql)?;
    rows.query_map(params_from_iter(wanted.into_iter().map(|(_, value)| value)), read)?.collect()
}

/// One row by its number, its outcomes left empty.
pub(crate) fn one(connection: &Connection, id: i64) -> Result<Option<Recorded>> {
    let mut rows = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM traces WHERE id = ?1"))?;
    rows.query_map([id], read)?.next().transpose()
}

fn read(row: &Row<'_>) -> Result<Recorded> {
    let list =
        |at: usize| Ok::<_, rusqlite::Error>(serde_json::from_str(&row.get::<_, String>(at)?).unwrap_or_default());
    Ok(Recorded {
        id: row.get(0)?,
        time: time(row.get(1)?),
        event: row.get(2)?,
        profiles: list(3)?,
        session: row.get(4)?,
        plane: row.get(5)?,
        input: serde_json::from_str(&row.get::<_, String>(6)?).unwrap_or_default(),
        secrets: u64::try_from(row.get::<_, i64>(7)?).unwrap_or(0),
        cut: row.get(8)?,
        allowed: row.get(9)?,
        verb: row.get(10)?,
        message: row.get(11)?,
        rewritten: list(12)?,
        outcomes: Vec::new(),
        duration: duration(row.get(13)?),
    })
}
