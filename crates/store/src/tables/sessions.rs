//! `sessions`: a row for each session.

use std::sync::Arc;
use std::time::SystemTime;

use gatehook_events::SessionHead;
use rusqlite::types::Value as Bound;
use rusqlite::{Connection, OptionalExtension, Result, Row, params, params_from_iter};

use super::{millis, time};
use crate::sessions::{Filter, Listed};

/// Times are milliseconds since 1970. A number is never given twice: whoever still writes to a session that was removed
/// must not write into another one.
pub(crate) const CREATE: &str = "
    CREATE TABLE sessions (
        number     INTEGER PRIMARY KEY AUTOINCREMENT,
        id         TEXT NOT NULL UNIQUE,
        parent     TEXT,
        workspace  TEXT NOT NULL,
        agent      TEXT NOT NULL,
        model      TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        touched_ms INTEGER NOT NULL,
        turns      INTEGER NOT NULL DEFAULT 0,
        prompt     TEXT
    ) STRICT;
    CREATE INDEX sessions_touched   ON sessions (touched_ms);
    CREATE INDEX sessions_workspace ON sessions (workspace, touched_ms);
    CREATE INDEX sessions_parent    ON sessions (parent, touched_ms);
";

const COLUMNS: &str = "id, parent, workspace, agent, model, started_ms, touched_ms, turns, prompt";

/// Adds a session; one that is known stays as it is.
pub(crate) fn insert(connection: &Connection, head: &SessionHead) -> Result<()> {
    let sql = "INSERT INTO sessions (id, parent, workspace, agent, model, started_ms, touched_ms)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) ON CONFLICT (id) DO NOTHING";
    let started = millis(head.started);
    let values = params![head.id, head.parent, head.workspace, head.agent, head.model, started];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

/// The number of a session.
pub(crate) fn number(connection: &Connection, id: &str) -> Result<Option<i64>> {
    let mut found = connection.prepare_cached("SELECT number FROM sessions WHERE id = ?1")?;
    found.query_row([id], |row| row.get(0)).optional()
}

/// Something happened in a session.
pub(crate) fn touch(connection: &Connection, number: i64, time: SystemTime) -> Result<()> {
    let sql = "UPDATE sessions SET touched_ms = max(touched_ms, ?2) WHERE number = ?1";
    connection.prepare_cached(sql)?.execute(params![number, millis(time)]).map(drop)
}

/// A turn began.
pub(crate) fn turn(connection: &Connection, number: i64, turn: u64) -> Result<()> {
    let sql = "UPDATE sessions SET turns = max(turns, ?2) WHERE number = ?1";
    let turn = i64::try_from(turn).unwrap_or(i64::MAX);
    connection.prepare_cached(sql)?.execute(params![number, turn]).map(drop)
}

/// The user said something; the first of it stays.
pub(crate) fn prompt(connection: &Connection, number: i64, prompt: &str) -> Result<()> {
    let sql = "UPDATE sessions SET prompt = ?2 WHERE number = ?1 AND prompt IS NULL";
    connection.prepare_cached(sql)?.execute(params![number, prompt]).map(drop)
}

/// The sessions that are wanted, those with the newest turn first.
pub(crate) fn select(connection: &Connection, filter: &Filter) -> Result<Vec<Listed>> {
    let (sql, values) = statement(filter);
    let mut rows = connection.prepare_cached(&sql)?;
    rows.query_map(params_from_iter(values), read)?.collect()
}

/// A filter in SQL. Each is answered along one index from its newest end, however many rows there are.
fn statement(filter: &Filter) -> (String, Vec<Bound>) {
    let mut terms = Vec::new();
    let mut values: Vec<Bound> = Vec::new();
    match &filter.parent {
        Some(parent) => {
            terms.push("parent = ?");
            values.push(parent.to_string().into());
        }
        None if filter.workspace.is_some() => terms.push("+parent IS NULL"),
        None => terms.push("parent IS NULL"),
    }
    if let Some(workspace) = &filter.workspace {
        terms.push("workspace = ?");
        values.push(workspace.to_string().into());
    }
    if filter.with_turns {
        terms.push("turns > 0");
    }
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions WHERE {} ORDER BY touched_ms DESC, number DESC LIMIT {limit}",
        terms.join(" AND ")
    );
    (sql, values)
}

/// The session of this identity, or else those, at most so many, whose identity begins so.
pub(crate) fn named(connection: &Connection, id: &str, limit: i64) -> Result<Vec<Listed>> {
    let exact = format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1");
    let found = connection.prepare_cached(&exact)?.query_row([id], read).optional()?;
    if let Some(found) = found {
        return Ok(vec![found]);
    }
    // Nothing sorts behind all that begins so but what begins with the last character there is.
    let sql =
        format!("SELECT {COLUMNS} FROM sessions WHERE id >= ?1 AND id < ?1 || char(1114111) ORDER BY id LIMIT ?2");
    connection.prepare_cached(&sql)?.query_map(params![id, limit], read)?.collect()
}

/// Deletes a session, those that it started, and theirs; says which.
pub(crate) fn delete(connection: &Connection, id: &str) -> Result<Vec<Arc<str>>> {
    let sql = "WITH RECURSIVE gone (id) AS (
                   SELECT id FROM sessions WHERE id = ?1
                   UNION SELECT child.id FROM sessions AS child JOIN gone ON child.parent = gone.id)
               DELETE FROM sessions WHERE id IN (SELECT id FROM gone) RETURNING id";
    connection.prepare_cached(sql)?.query_map([id], |row| row.get(0))?.collect()
}

fn read(row: &Row<'_>) -> Result<Listed> {
    let head = SessionHead {
        id: row.get(0)?,
        parent: row.get(1)?,
        workspace: row.get(2)?,
        agent: row.get(3)?,
        model: row.get(4)?,
        started: time(row.get(5)?),
    };
    let turns = u64::try_from(row.get::<_, i64>(7)?).unwrap_or(0);
    Ok(Listed { head, touched: time(row.get(6)?), turns, prompt: row.get(8)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{SESSIONS, migrate};

    #[test]
    fn no_list_sorts_or_reads_rows_that_an_index_could_spare_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, SESSIONS).unwrap();
        let any = Filter::default();
        for (filter, index) in [
            (any.clone(), "sessions_parent"),
            (Filter { workspace: Some("/w".into()), with_turns: true, ..any.clone() }, "sessions_workspace"),
            (Filter { parent: Some("p".into()), ..any }, "sessions_parent"),
        ] {
            let (sql, values) = statement(&filter);
            let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = explained.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
            let plan = steps.map(Result::unwrap).collect::<Vec<_>>().join("; ");
            assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{filter:?}: {plan}");
        }
    }
}
