//! A store as its users meet it: what goes in, what comes out, and what goes wrong.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gatehook_events::trace::{Fault, Query, Recorded, TraceError, Traces};
use gatehook_events::{
    Event, FailureKind, Input, ModelOutput, Outcome, OutcomeKind, Profile, Recorder, Rewritten, TokenUsage, Trace,
    Verb, Verdict,
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::{Keep, QUEUE, QUEUE_BYTES, TraceReader, TraceWriter};

const GRACE: Duration = Duration::from_secs(20);

struct Place {
    _folder: TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gatehook/gatehook.db");
    Place { _folder: folder, path }
}

fn writer(path: &Path) -> TraceWriter {
    TraceWriter::new(path.to_owned(), "agent", Keep::default())
}

fn outcome(hook: &str, kind: OutcomeKind, millis: u64) -> Outcome {
    Outcome {
        name: hook.into(),
        handler: "command".into(),
        profile: Profile::Native,
        duration: Duration::from_millis(millis),
        exit_code: 0,
        kind,
        verb: Verb::Allow,
        recalled: false,
        reason: String::new(),
        stderr: String::new(),
        usage: None,
        cost: None,
    }
}

fn trace(event: Event, session: &str, outcomes: Vec<Outcome>) -> Trace {
    let input = Input { session_id: Some(session.into()), ..Input::default() };
    let verdict = Verdict { outcomes, ..Verdict::allow() };
    Trace::of(event, &input, &verdict, SystemTime::now(), Duration::from_millis(3))
}

fn write(path: &Path, traces: Vec<Trace>) {
    let writer = writer(path);
    traces.into_iter().for_each(|trace| writer.record(trace));
    assert_eq!(writer.drain(GRACE).lost, 0);
}

fn reader(path: &Path) -> TraceReader {
    TraceReader::open(path).unwrap().unwrap()
}

fn found(path: &Path, query: Query) -> Vec<String> {
    reader(path).traces(&query).unwrap().iter().map(|trace| trace.session.clone().unwrap_or_default()).collect()
}

#[test]
fn a_dispatch_is_kept_as_it_was() {
    let Place { _folder, path } = place();
    let key = format!("{}_{}", "ghp", "x7Qm2Zp9Lk4Vt8Rw3Ns6Yb1Hd5Jf0GcAe2Uo");
    let input = Input {
        session_id: Some("s-1".into()),
        plane: Some("wire".into()),
        prompt: Some(key.as_str().into()),
        ..Input::default()
    };
    let failed = OutcomeKind::Failed(FailureKind::Timeout);
    let verdict = Verdict {
        allowed: false,
        verb: Verb::Deny,
        message: format!("no {key}"),
        rewritten: Rewritten {
            output: Some(ModelOutput { text: Some("x".into()), ..ModelOutput::default() }),
            ..Rewritten::default()
        },
        outcomes: vec![
            Outcome {
                exit_code: 2,
                reason: "too dangerous".into(),
                verb: Verb::Deny,
                usage: Some(TokenUsage { input_tokens: 12, output_tokens: 3 }),
                cost: Some(0.25),
                ..outcome("guard", OutcomeKind::Blocked, 12)
            },
            Outcome {
                exit_code: -1,
                stderr: format!("token {key}"),
                profile: Profile::Ollm,
                ..outcome("slow", failed, 100)
            },
        ],
        ..Verdict::allow()
    };
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(4_000_000_000_123);
    write(&path, vec![Trace::of(Event::UserPromptSubmit, &input, &verdict, time, Duration::from_micros(112_345))]);
    let kept = reader(&path).trace(1).unwrap().unwrap();
    let Recorded { outcomes, ref input, .. } = kept;
    assert_eq!((kept.time, kept.duration), (time, Duration::from_micros(112_345)));
    assert_eq!((&*kept.event, kept.session.as_deref(), &*kept.plane), ("user_prompt_submit", Some("s-1"), "wire"));
    assert_eq!((kept.allowed, &*kept.verb, &*kept.message), (false, "deny", "no [REDACTED]"));
    assert_eq!(
        (kept.profiles, kept.rewritten),
        (vec!["native".to_owned(), "ollm".to_owned()], vec!["output_text".to_owned()])
    );
    assert_eq!((input["prompt"].as_str(), kept.secrets, kept.cut), (Some("[REDACTED]"), 1, false));
    let said: Vec<_> = outcomes.iter().map(|it| (&*it.hook, &*it.kind, it.failure.as_deref(), it.exit_code)).collect();
    assert_eq!(said, [("guard", "blocked", None, 2), ("slow", "failed", Some("timeout"), -1)]);
    assert_eq!((&*outcomes[0].reason, &*outcomes[1].stderr), ("too dangerous", "token [REDACTED]"));
    assert_eq!(outcomes[1].duration, Duration::from_millis(100));
    let used = Some(TokenUsage { input_tokens: 12, output_tokens: 3 });
    assert_eq!(
        [(outcomes[0].usage, outcomes[0].cost), (outcomes[1].usage, outcomes[1].cost)],
        [(used, Some(0.25)), (None, None)]
    );
    let costs: Vec<_> = reader(&path).stats(None).unwrap().iter().map(|hook| hook.cost).collect();
    assert_eq!(costs, [Some(0.25), None]);
    assert!(reader(&path).trace(2).unwrap().is_none());
}

#[test]
fn a_query_brings_what_it_asks_for_the_newest_first() {
    let Place { _folder, path } = place();
    let failed = OutcomeKind::Failed(FailureKind::NonzeroExit);
    let old = Trace { time: SystemTime::now() - Duration::from_secs(7200), ..trace(Event::Stop, "old", vec![]) };
    write(
        &path,
        vec![
            old,
            trace(Event::Stop, "a", vec![outcome("x", OutcomeKind::Ok, 1)]),
            trace(Event::PreToolUse, "b", vec![outcome("x", OutcomeKind::Ok, 1), outcome("y", failed, 1)]),
            trace(Event::PreToolUse, "c", vec![outcome("y", OutcomeKind::Ok, 1)]),
        ],
    );
    let query = Query::default();
    assert_eq!(found(&path, query.clone()), ["c", "b", "a", "old"]);
    assert_eq!(found(&path, Query { limit: 2, ..query.clone() }), ["c", "b"]);
    assert_eq!(found(&path, Query { event: Some("stop".into()), ..query.clone() }), ["a", "old"]);
    assert_eq!(found(&path, Query { hook: Some("x".into()), ..query.clone() }), ["b", "a"]);
    assert_eq!(found(&path, Query { session: Some("a".into()), ..query.clone() }), ["a"]);
    assert_eq!(found(&path, Query { failed: true, ..query.clone() }), ["b"]);
    let since = Some(SystemTime::now() - Duration::from_secs(3600));
    assert_eq!(found(&path, Query { since, ..query.clone() }), ["c", "b", "a"]);
    assert_eq!(found(&path, Query { since, hook: Some("y".into()), event: Some("stop".into()), ..query }).len(), 0);
}

#[test]
fn the_statistics_count_runs_failures_blocks_and_times() {
    let Place { _folder, path } = place();
    let failed = OutcomeKind::Failed(FailureKind::Timeout);
    let run = |kind, millis| trace(Event::PreToolUse, "s", vec![outcome("guard", kind, millis)]);
    let recalled = Outcome { recalled: true, ..outcome("guard", OutcomeKind::Ok, 0) };
    let mut traces: Vec<Trace> = (1..=98).map(|millis| run(OutcomeKind::Ok, millis)).collect();
    traces.extend([run(OutcomeKind::Blocked, 99), run(failed, 100), trace(Event::PreToolUse, "s", vec![recalled])]);
    traces.push(trace(Event::Stop, "s", vec![outcome("guard", OutcomeKind::Ok, 7)]));
    write(&path, traces);
    let stats = reader(&path).stats(None).unwrap();
    let hooks: Vec<_> = stats.iter().map(|it| (&*it.event, &*it.hook, it.runs, it.failures, it.blocks)).collect();
    assert_eq!(hooks, [("pre_tool_use", "guard", 100, 1, 1), ("stop", "guard", 1, 0, 0)]);
    let times = [stats[0].p50, stats[0].p95, stats[0].p99, stats[0].max];
    assert_eq!(times, [50, 95, 99, 100].map(Duration::from_millis));
    assert!(reader(&path).stats(Some(SystemTime::now() + GRACE)).unwrap().is_empty());
}

#[test]
fn the_statistics_of_a_time_leave_out_what_is_older_wherever_it_lies() {
    let Place { _folder, path } = place();
    let now = SystemTime::now();
    let run = |event, hours: u64, hook: &str| {
        let time = now - Duration::from_secs(3600 * hours);
        Trace {
            time,
            ..trace(event, "s", vec![outcome(hook, OutcomeKind::Ok, 1), outcome("last", OutcomeKind::Ok, 1)])
        }
    };
    write(
        &path,
        vec![
            run(Event::Stop, 9, "a"),
            run(Event::Stop, 1, "b"),
            run(Event::PreToolUse, 9, "c"),
            run(Event::PreToolUse, 1, "d"),
            run(Event::Stop, 9, "e"),
            run(Event::Stop, 1, "b"),
        ],
    );
    let since = Some(now - Duration::from_secs(3600 * 2));
    let stats = reader(&path).stats(since).unwrap();
    let hooks: Vec<_> = stats.iter().map(|it| (&*it.event, &*it.hook, it.runs)).collect();
    assert_eq!(hooks, [("pre_tool_use", "d", 1), ("pre_tool_use", "last", 1), ("stop", "b", 2), ("stop", "last", 2)]);
}

#[test]
fn the_file_and_its_folders_are_their_owners_alone() {
    let Place { _folder, path } = place();
    write(&path, vec![trace(Event::Stop, "s", vec![])]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    write(&path, vec![trace(Event::Stop, "s", vec![])]);
    assert_eq!(mode(&path), 0o600, "one that is wider is narrowed");
}

#[test]
fn nothing_is_made_before_there_is_something_to_write() {
    let Place { _folder, path } = place();
    writer(&path).drain(GRACE);
    assert!(!path.exists());
    assert!(TraceReader::open(&path).unwrap().is_none());
}

/// What becomes of one trace at this path.
fn refused(path: &Path) -> TraceError {
    let writer = writer(path);
    writer.record(trace(Event::Stop, "s", vec![]));
    let drained = writer.drain(Duration::from_millis(600));
    assert_eq!(drained.lost, 1);
    drained.fault.unwrap()
}

#[test]
fn a_file_that_another_program_holds_is_said_to_be_locked() {
    let Place { _folder, path } = place();
    write(&path, vec![trace(Event::Stop, "before", vec![])]);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = refused(&path);
    assert_eq!(error.fault, Fault::Locked);
    assert!(error.to_string().contains("is locked by another program"), "{error}");
    assert_eq!(found(&path, Query::default()), ["before"], "it can be read meanwhile");
}

#[test]
fn a_file_that_is_locked_for_a_while_gets_its_traces_afterwards() {
    let Place { _folder, path } = place();
    write(&path, vec![trace(Event::Stop, "before", vec![])]);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writer = Arc::new(writer(&path));
    writer.record(trace(Event::Stop, "after", vec![]));
    let draining = std::thread::spawn({
        let writer = writer.clone();
        move || writer.drain(GRACE)
    });
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(draining.join().unwrap().lost, 0);
    assert_eq!(found(&path, Query::default()), ["after", "before"]);
}

#[test]
fn a_damaged_file_is_said_to_be_damaged_and_is_left_as_it_is() {
    let Place { _folder, path } = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = "this is no database, ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    assert_eq!(refused(&path).fault, Fault::Corrupted);
    assert_eq!(TraceReader::open(&path).unwrap_err().fault, Fault::Corrupted);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let Place { _folder, path } = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let error = refused(&path);
    assert!(error.fault == Fault::Corrupted && error.detail.contains("another program"), "{error}");
}

#[test]
fn a_damaged_page_is_found_where_it_is_read() {
    let Place { _folder, path } = place();
    write(&path, (0..200).map(|_| trace(Event::Stop, "s", vec![outcome("h", OutcomeKind::Ok, 1)])).collect());
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE")
        .unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.iter_mut().skip(4096).for_each(|byte| *byte = 0xA5);
    std::fs::write(&path, bytes).unwrap();
    let error = TraceReader::open(&path).and_then(|reader| reader.unwrap().traces(&Query::default())).unwrap_err();
    assert_eq!(error.fault, Fault::Corrupted, "{error}");
    assert_eq!(refused(&path).fault, Fault::Corrupted);
}

#[test]
fn a_file_of_a_newer_version_is_left_alone() {
    let Place { _folder, path } = place();
    write(&path, vec![trace(Event::Stop, "s", vec![])]);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = refused(&path);
    assert_eq!(error.fault, Fault::Newer);
    assert!(error.to_string().contains("made by a newer gatehook: its schema is 99"), "{error}");
    assert_eq!(TraceReader::open(&path).unwrap_err().fault, Fault::Newer);
}

#[test]
fn a_place_that_cannot_be_had_is_said_to_be_one() {
    let Place { _folder, path } = place();
    std::fs::write(path.parent().unwrap().parent().unwrap().parent().unwrap().join("state"), "a file").unwrap();
    assert_eq!(refused(&path).fault, Fault::Unreachable);
}

#[test]
fn what_the_queue_has_no_room_for_is_dropped_and_counted() {
    let Place { _folder, path } = place();
    write(&path, vec![trace(Event::Stop, "s", vec![])]);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writer = writer(&path);
    // The thread takes some of them out of the queue, and can write none.
    (0..3 * QUEUE).for_each(|_| writer.record(trace(Event::Stop, "s", vec![])));
    let dropped = writer.lost();
    assert!((QUEUE as u64..3 * QUEUE as u64).contains(&dropped), "{dropped}");
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(writer.drain(GRACE).lost, dropped);
    let kept = reader(&path).traces(&Query { limit: usize::MAX, ..Query::default() }).unwrap().len();
    assert_eq!(kept as u64, 1 + 3 * QUEUE as u64 - dropped, "each is written, or counted");
}

#[test]
fn what_waits_is_bounded_in_bytes_too() {
    let Place { _folder, path } = place();
    write(&path, vec![trace(Event::Stop, "s", vec![])]);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writer = writer(&path);
    let text: Arc<str> = "x".repeat(QUEUE_BYTES / 4).into();
    let large = || {
        let input = Input { prompt: Some(text.clone()), ..Input::default() };
        Trace::of(Event::UserPromptSubmit, &input, &Verdict::allow(), SystemTime::now(), Duration::ZERO)
    };
    (0..8).for_each(|_| writer.record(large()));
    assert_eq!(writer.lost(), 5, "three fit");
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(writer.drain(GRACE).lost, 5);
}

#[test]
fn a_writer_that_was_drained_takes_nothing_more() {
    let Place { _folder, path } = place();
    let writer = writer(&path);
    writer.drain(GRACE);
    writer.record(trace(Event::Stop, "s", vec![]));
    assert_eq!(writer.drain(GRACE).lost, 1);
}

#[test]
fn several_writers_share_a_file() {
    let Place { _folder, path } = place();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| write(&path, (0..50).map(|_| trace(Event::Stop, "s", vec![])).collect()));
        }
    });
    assert_eq!(found(&path, Query { limit: 1000, ..Query::default() }).len(), 200);
}
