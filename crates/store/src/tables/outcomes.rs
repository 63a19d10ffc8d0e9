//! `outcomes`: a row for each hook of a dispatch, in configuration order. They go with their trace.

use std::collections::BTreeMap;
use std::time::SystemTime;

use gatehook_events::trace::{HookStats, RecordedOutcome};
use gatehook_events::{Outcome, OutcomeKind, TokenUsage};
use rusqlite::{Connection, Result, Row, params};

use super::{duration, micros, millis};
use crate::kept;

/// `place` is the hook's place in configuration order, from 0.
pub(crate) const CREATE: &str = "
    CREATE TABLE outcomes (
        trace       INTEGER NOT NULL REFERENCES traces (id) ON DELETE CASCADE,
        place       INTEGER NOT NULL,
        hook        TEXT NOT NULL,
        handler     TEXT NOT NULL,
        profile     TEXT NOT NULL,
        duration_us INTEGER NOT NULL,
        exit_code   INTEGER NOT NULL,
        kind        TEXT NOT NULL,
        failure     TEXT,
        verb        TEXT NOT NULL,
        recalled    INTEGER NOT NULL,
        reason      TEXT NOT NULL,
        stderr      TEXT NOT NULL,
        tokens_in   INTEGER,
        tokens_out  INTEGER,
        cost        REAL,
        PRIMARY KEY (trace, place)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX outcomes_hook ON outcomes (hook, trace);
";

const INSERT: &str = "
    INSERT INTO outcomes (trace, place, hook, handler, profile, duration_us, exit_code, kind, failure, verb, recalled,
        reason, stderr, tokens_in, tokens_out, cost)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";

/// Whether this is the outcome of a hook that failed.
pub(crate) fn has_failed(outcome: &Outcome) -> bool {
    matches!(outcome.kind, OutcomeKind::Failed(_))
}

/// Adds the rows of a trace.
pub(crate) fn insert(connection: &Connection, trace: i64, outcomes: &[Outcome]) -> Result<()> {
    let mut insert = connection.prepare_cached(INSERT)?;
    for (place, outcome) in outcomes.iter().enumerate() {
        let (kind, failure) = match outcome.kind {
            OutcomeKind::Ok => ("ok", None),
            OutcomeKind::Blocked => ("blocked", None),
            OutcomeKind::Failed(failure) => ("failed", Some(failure.name())),
        };
        insert.execute(params![
            trace,
            i64::try_from(place).unwrap_or(i64::MAX),
            kept::line(&outcome.name),
            &*outcome.handler,
            outcome.profile.name(),
            micros(outcome.duration),
            outcome.exit_code,
            kind,
            failure,
            outcome.verb.name(),
            outcome.recalled,
            kept::text(&outcome.reason),
            kept::text(&outcome.stderr),
            outcome.usage.map(|usage| whole(usage.input_tokens)),
            outcome.usage.map(|usage| whole(usage.output_tokens)),
            outcome.cost,
        ])?;
    }
    Ok(())
}

/// The rows of a trace, in their order.
pub(crate) fn of(connection: &Connection, trace: i64) -> Result<Vec<RecordedOutcome>> {
    let sql = "SELECT hook, handler, profile, duration_us, exit_code, kind, failure, verb, recalled, reason, stderr, \
               tokens_in, tokens_out, cost FROM outcomes WHERE trace = ?1 ORDER BY place";
    connection.prepare_cached(sql)?.query_map([trace], read)?.collect()
}

fn read(row: &Row<'_>) -> Result<RecordedOutcome> {
    let count = |at: usize| {
        Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(at)?.map(|count| u64::try_from(count).unwrap_or(0)))
    };
    let usage =
        count(11)?.zip(count(12)?).map(|(input_tokens, output_tokens)| TokenUsage { input_tokens, output_tokens });
    Ok(RecordedOutcome {
        hook: row.get(0)?,
        handler: row.get(1)?,
        profile: row.get(2)?,
        duration: duration(row.get(3)?),
        exit_code: row.get(4)?,
        kind: row.get(5)?,
        failure: row.get(6)?,
        verb: row.get(7)?,
        recalled: row.get(8)?,
        reason: row.get(9)?,
        stderr: row.get(10)?,
        usage,
        cost: row.get(13)?,
    })
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What became of the runs of one hook.
#[derive(Default)]
struct Runs {
    durations: Vec<i64>,
    failures: u64,
    blocks: u64,
    cost: Option<f64>,
}

/// What happened in a time.
#[derive(Default)]
struct Happened {
    /// Traces by number, each with its event's place below.
    traces: Vec<(i64, usize)>,
    /// By name.
    events: Vec<String>,
}

/// The index on event and time has all of that: no input, which can be large, is read.
fn happened(connection: &Connection, since: Option<SystemTime>) -> Result<Happened> {
    let sql = "SELECT id, event FROM traces INDEXED BY traces_event WHERE time_ms >= ?1";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([since.map_or(i64::MIN, millis)])?;
    let mut happened = Happened::default();
    while let Some(row) = rows.next()? {
        let event = row.get_ref(1)?.as_str()?;
        // They come event by event.
        if happened.events.last().is_none_or(|last| last != event) {
            happened.events.push(event.to_owned());
        }
        happened.traces.push((row.get(0)?, happened.events.len() - 1));
    }
    happened.traces.sort_unstable();
    Ok(happened)
}

/// Every hook that ran, by event and name. Both tables are read once in the order in which they lie, and put together
/// here: to look up each trace's rows takes more than twice as long.
pub(crate) fn stats(connection: &Connection, since: Option<SystemTime>) -> Result<Vec<HookStats>> {
    let Happened { traces, events } = happened(connection, since)?;
    let Some((first, _)) = traces.first() else { return Ok(Vec::new()) };
    let sql = "SELECT trace, hook, handler, duration_us, kind, cost FROM outcomes \
               WHERE trace >= ?1 AND NOT recalled ORDER BY trace";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([first])?;
    let mut traces = traces.iter().peekable();
    let mut hooks: BTreeMap<(usize, String, String), Runs> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let trace: i64 = row.get(0)?;
        while traces.next_if(|(id, _)| *id < trace).is_some() {}
        let Some((_, event)) = traces.peek().filter(|(id, _)| *id == trace) else { continue };
        let runs = hooks.entry((*event, row.get(1)?, row.get(2)?)).or_default();
        runs.durations.push(row.get(3)?);
        if let Some(cost) = row.get::<_, Option<f64>>(5)? {
            runs.cost = Some(runs.cost.unwrap_or(0.0) + cost);
        }
        match row.get_ref(4)?.as_str() {
            Ok("failed") => runs.failures += 1,
            Ok("blocked") => runs.blocks += 1,
            _ => {}
        }
    }
    let name = |event: usize| events.get(event).cloned().unwrap_or_default();
    Ok(hooks.into_iter().map(|((event, hook, handler), runs)| runs.summed([name(event), hook, handler])).collect())
}

impl Runs {
    fn summed(mut self, [event, hook, handler]: [String; 3]) -> HookStats {
        self.durations.sort_unstable();
        HookStats {
            event,
            hook,
            handler,
            runs: self.durations.len() as u64,
            failures: self.failures,
            blocks: self.blocks,
            p50: self.percentile(50),
            p95: self.percentile(95),
            p99: self.percentile(99),
            max: self.percentile(100),
            cost: self.cost,
        }
    }

    /// The least duration that so many of a hundred do not exceed.
    fn percentile(&self, percent: usize) -> std::time::Duration {
        let rank = (self.durations.len() * percent).div_ceil(100).saturating_sub(1);
        duration(self.durations.get(rank).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_least_duration_that_so_many_do_not_exceed() {
        let stats = |durations: Vec<i64>| {
            let stats = Runs { durations, ..Runs::default() }.summed(Default::default());
            [stats.p50, stats.p95, stats.p99, stats.max].map(micros)
        };
        assert_eq!(stats((1..=100).rev().collect()), [50, 95, 99, 100]);
        assert_eq!(stats((1..=3).collect()), [2, 3, 3, 3]);
        assert_eq!(stats(vec![7]), [7, 7, 7, 7]);
    }
}
