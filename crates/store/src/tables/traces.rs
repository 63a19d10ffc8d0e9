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
    CREATE INDEX traces_event   ON traces (event, time_ms);
    CREATE INDEX traces_session ON traces (session, time_ms) WHERE session IS NOT NULL;
    CREATE INDEX traces_failed  ON traces (time_ms) WHERE failed;
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

/// Deletes at most `limit` of the rows that are too many and as many that are too old, the oldest first; says how many of
/// either, the larger number.
pub(crate) fn prune(connection: &Connection, keep: &Keep, now: SystemTime, limit: usize) -> Result<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let many = "DELETE FROM traces WHERE id IN (
            SELECT id FROM traces WHERE id <= (SELECT max(id) FROM traces) - ?1 ORDER BY id LIMIT ?2)";
    let old = "DELETE FROM traces WHERE id IN (
            SELECT id FROM traces WHERE time_ms < ?1 ORDER BY time_ms LIMIT ?2)";
    let rows = i64::try_from(keep.rows).unwrap_or(i64::MAX);
    let oldest = now.checked_sub(keep.age).map_or(0, millis);
    let deleted = |sql, bound: i64| connection.prepare_cached(sql)?.execute(params![bound, limit]);
    Ok(deleted(many, rows)?.max(deleted(old, oldest)?))
}

/// The newest rows of a query, their outcomes left empty.
pub(crate) fn select(connection: &Connection, query: &Query) -> Result<Vec<Recorded>> {
    let (sql, values) = statement(query);
    let mut rows = connection.prepare_cached(&sql)?;
    rows.query_map(params_from_iter(values), read)?.collect()
}

/// A query in SQL. Each is answered along one index from its newest end, however many rows there are.
fn statement(query: &Query) -> (String, Vec<Bound>) {
    let mut wanted: Vec<(&str, Bound)> = Vec::new();
    let (mut from, mut order) = ("traces", "time_ms DESC, id DESC");
    if let Some(hook) = &query.hook {
        // From the hook's own runs, of which there may be few among many.
        (from, order) = ("outcomes CROSS JOIN traces ON id = trace", "trace DESC");
        wanted.push(("hook = ?", hook.clone().into()));
        // Of hooks of one name in one dispatch the first stands for all.
        let first = "place = (SELECT min(place) FROM outcomes AS same WHERE same.trace = id AND same.hook = ?)";
        wanted.push((first, hook.clone().into()));
    }
    if let Some(event) = &query.event {
        wanted.push(("event = ?", event.clone().into()));
    }
    if let Some(session) = &query.session {
        wanted.push(("session = ?", session.clone().into()));
    }
    if let Some(since) = query.since {
        wanted.push(("time_ms >= ?", millis(since).into()));
    }
    let mut terms: Vec<&str> = wanted.iter().map(|(term, _)| *term).collect();
    if query.failed {
        terms.push("failed");
    }
    let filter = if terms.is_empty() { String::new() } else { format!("WHERE {}", terms.join(" AND ")) };
    let limit = query.limit.min(MOST);
    let columns = COLUMNS.replace("duration_us", "traces.duration_us").replace("verb", "traces.verb");
    let sql = format!("SELECT {columns} FROM {from} {filter} ORDER BY {order} LIMIT {limit}");
    (sql, wanted.into_iter().map(|(_, value)| value).collect())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{TRACES, migrate};

    /// What SQLite would do for a query.
    fn plan(connection: &Connection, query: &Query) -> String {
        let (sql, values) = statement(query);
        let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = explained.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn no_query_sorts_or_reads_rows_that_an_index_could_spare_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, TRACES).unwrap();
        let any = Query::default();
        let [event, session, hook] = ["pre_tool_use", "s", "guard"].map(|name| Some(name.to_owned()));
        let since = Some(SystemTime::now());
        for (query, index) in [
            (any.clone(), "traces_time"),
            (Query { since, ..any.clone() }, "traces_time"),
            (Query { event: event.clone(), since, ..any.clone() }, "traces_event"),
            (Query { session, ..any.clone() }, "traces_session"),
            (Query { failed: true, since, ..any.clone() }, "traces_failed"),
            (Query { hook, event, since, ..any }, "outcomes_hook"),
        ] {
            let plan = plan(&connection, &query);
            assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{query:?}: {plan}");
        }
    }
}
