use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use gatehook_events::trace::{Query, Traces};
use gatehook_events::{Event, Input, Trace, Verdict};

use super::*;
use crate::TraceReader;

fn shared(path: &Path, keep: Keep) -> Shared {
    Shared {
        path: path.to_owned(),
        plane: "agent",
        keep,
        waiting: AtomicU64::new(1_000_000),
        lost: AtomicU64::new(0),
        held: AtomicUsize::new(0),
        gave_up: AtomicBool::new(false),
        fault: Mutex::new(None),
    }
}

fn fault(shared: &Shared) -> Option<Fault> {
    shared.fault.lock().unwrap().as_ref().map(|error| error.fault)
}

fn lost(shared: &Shared) -> u64 {
    shared.lost.load(Ordering::Relaxed)
}

/// A trace that is so many seconds old.
fn aged(seconds: u64) -> Waiting {
    of(seconds, Input::default())
}

fn of(seconds: u64, input: Input) -> Waiting {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    Waiting { trace: Trace::of(Event::Custom, &input, &Verdict::allow(), time, Duration::ZERO), weight: 0 }
}

fn count(path: &Path) -> usize {
    let query = Query { limit: usize::MAX, ..Query::default() };
    TraceReader::open(path).unwrap().unwrap().traces(&query).unwrap().len()
}

#[test]
fn a_disk_that_is_full_loses_the_trace_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let shared = shared(&path, Keep::default());
    let mut ledger = Ledger::new(&shared);
    ledger.write(&[aged(0)]);
    let pages: i64 = {
        let connection = &ledger.database.as_ref().unwrap().connection;
        let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        connection.pragma_update_and_check(None, "max_page_count", pages, |row| row.get(0)).unwrap()
    };
    let large = || of(0, Input { data: Some("x ".repeat(4000).into()), ..Input::default() });
    ledger.write(&(0..50).map(|_| large()).collect::<Vec<_>>());
    assert_eq!((fault(&shared), lost(&shared)), (Some(Fault::Full), 50), "{pages} pages");
    assert_eq!(count(&path), 1, "what was there still is");
}

#[test]
fn after_a_failure_the_file_rests_and_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    std::fs::create_dir(&path).unwrap();
    let shared = shared(&path, Keep::default());
    let mut ledger = Ledger::new(&shared);
    ledger.write(&[aged(0)]);
    assert_eq!((fault(&shared), lost(&shared)), (Some(Fault::Unreachable), 1));
    std::fs::remove_dir(&path).unwrap();
    ledger.write(&[aged(0)]);
    assert_eq!(lost(&shared), 2, "it rests");
    ledger.failed = None;
    ledger.write(&[aged(0)]);
    assert_eq!((lost(&shared), count(&path)), (2, 1));
}

#[test]
fn a_file_that_is_gone_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/t.db");
    let shared = shared(&path, Keep::default());
    let mut ledger = Ledger::new(&shared);
    ledger.write(&[aged(0), aged(0)]);
    std::fs::remove_dir_all(folder.path().join("deep")).unwrap();
    ledger.write(&[aged(0)]);
    assert_eq!((lost(&shared), count(&path)), (0, 1));
}

#[test]
fn what_is_too_old_or_too_much_is_deleted_and_its_outcomes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let shared = shared(&path, Keep { age: Duration::from_secs(60), rows: 10 });
    let mut ledger = Ledger::new(&shared);
    ledger.write(&[aged(3600), aged(30), aged(0)]);
    assert_eq!(count(&path), 2, "one was too old");
    for _ in 0..4 {
        ledger.write(&(0..PRUNE_AFTER).map(|_| aged(0)).collect::<Vec<_>>());
    }
    assert_eq!(count(&path), 10);
    let connection = &ledger.database.as_ref().unwrap().connection;
    let orphans = "SELECT count(*) FROM outcomes WHERE trace NOT IN (SELECT id FROM traces)";
    assert_eq!(connection.query_row(orphans, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn more_than_one_round_of_old_traces_goes_round_by_round() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let many = shared(&path, Keep::default());
    let mut ledger = Ledger::new(&many);
    for _ in 0..10 {
        ledger.write(&(0..PRUNE / 4).map(|_| aged(0)).collect::<Vec<_>>());
    }
    let few = shared(&path, Keep { rows: 5, ..Keep::default() });
    let mut ledger = Ledger::new(&few);
    let left: Vec<usize> = (0..4)
        .map(|_| {
            ledger.write(&[aged(0)]);
            count(&path)
        })
        .collect();
    assert_eq!(left, [1501, 502, 5, 6], "then {PRUNE_AFTER} may come before it looks again");
}
