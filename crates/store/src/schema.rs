//! The schema, as the steps that lead to it. A file counts in `user_version` how many it has taken; one with more steps
//! than there are here was made by a newer version, and is left alone.
//!
//! A step that was released is never changed. To add a table or a column, add a step.

use rusqlite::{Connection, TransactionBehavior};

use crate::tables::{entries, outcomes, sessions, traces};

/// What a file is to hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema<'s> {
    /// Says in a file's header whose it is. An empty file is nobody's yet.
    application: i64,
    /// Each is taken as a whole or not at all.
    pub(crate) steps: &'s [&'s str],
}

/// Traces: "GtHk".
pub(crate) const TRACES: Schema<'static> =
    Schema { application: 0x4774_486B, steps: &[traces::CREATE, outcomes::CREATE] };

/// Sessions: "GtHs". They have a file of their own: traces are many, short-lived, and may be lost.
pub(crate) const SESSIONS: Schema<'static> =
    Schema { application: 0x4774_4873, steps: &[sessions::CREATE, entries::CREATE] };

/// Why a file is not brought to the newest schema.
#[derive(Debug)]
pub(crate) enum SchemaError {
    /// It has taken more steps than there are.
    Newer(i64),
    /// Another program made it.
    Foreign,
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for SchemaError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Takes the steps that are missing. Several processes may do so at once: one of them takes each step.
pub(crate) fn migrate(connection: &mut Connection, schema: Schema<'_>) -> Result<(), SchemaError> {
    while let Some((taken, step)) = next(connection, schema)? {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have taken it while this one waited.
        if version(&transaction)? == taken {
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "application_id", schema.application)?;
            transaction.pragma_update(None, "user_version", taken + 1)?;
            transaction.commit()?;
        }
    }
    Ok(())
}

/// How many steps a file has taken, and the next one.
fn next<'s>(connection: &Connection, schema: Schema<'s>) -> Result<Option<(i64, &'s str)>, SchemaError> {
    let taken = version(connection)?;
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = taken == 0 && tables == 0;
    match usize::try_from(taken).ok().map(|at| (schema.steps.get(at), at > schema.steps.len())) {
        _ if application != schema.application && !is_new => Err(SchemaError::Foreign),
        None => Err(SchemaError::Foreign),
        Some((_, true)) => Err(SchemaError::Newer(taken)),
        Some((step, false)) => Ok(step.map(|step| (taken, *step))),
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'s>(steps: &'s [&'s str]) -> Schema<'s> {
        Schema { steps, ..TRACES }
    }

    fn tables(connection: &Connection) -> Vec<String> {
        let mut names =
            connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").unwrap();
        names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn a_file_takes_the_steps_that_it_has_not_taken() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, of(&["CREATE TABLE a (x)"])).unwrap();
        connection.execute("INSERT INTO a VALUES (1)", []).unwrap();
        migrate(&mut connection, of(&["CREATE TABLE a (x)", "CREATE TABLE b (x)", "ALTER TABLE a ADD y"])).unwrap();
        assert_eq!((tables(&connection), version(&connection).unwrap()), (vec!["a".to_owned(), "b".to_owned()], 3));
        let kept: (i64, Option<i64>) =
            connection.query_row("SELECT x, y FROM a", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(kept, (1, None));
    }

    #[test]
    fn a_step_that_fails_leaves_nothing_of_itself() {
        let mut connection = Connection::open_in_memory().unwrap();
        let failed = migrate(&mut connection, of(&["CREATE TABLE a (x)", "CREATE TABLE b (x); CREATE TABLE a (x)"]));
        assert!(matches!(failed, Err(SchemaError::Sqlite(_))), "{failed:?}");
        assert_eq!((tables(&connection), version(&connection).unwrap()), (vec!["a".to_owned()], 1));
    }

    #[test]
    fn a_file_of_a_newer_version_or_of_another_program_is_left_alone() {
        let mut newer = Connection::open_in_memory().unwrap();
        migrate(&mut newer, of(&["CREATE TABLE a (x)", "CREATE TABLE b (x)"])).unwrap();
        assert!(matches!(migrate(&mut newer, of(&["CREATE TABLE a (x)"])), Err(SchemaError::Newer(2))));
        let mut foreign = Connection::open_in_memory().unwrap();
        foreign.execute_batch("CREATE TABLE theirs (x)").unwrap();
        assert!(matches!(migrate(&mut foreign, TRACES), Err(SchemaError::Foreign)));
        assert_eq!(tables(&foreign), ["theirs"]);
        let mut traces = Connection::open_in_memory().unwrap();
        migrate(&mut traces, TRACES).unwrap();
        assert!(matches!(migrate(&mut traces, SESSIONS), Err(SchemaError::Foreign)));
    }
}
