//! Sessions as whoever keeps and reads them meets them.

mod faults;
mod folded;
mod killed;
mod transcripts;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gatehook_events::{FunctionCall, Message, ToolCall};
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

struct Place {
    _folder: TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/gatehook/sessions.db");
    Place { _folder: folder, path }
}

fn head(id: &str) -> SessionHead {
    SessionHead {
        id: id.into(),
        parent: None,
        workspace: "/project".into(),
        agent: "root".into(),
        model: "ollama/llama3".into(),
        started: SystemTime::UNIX_EPOCH + Duration::from_millis(1_234_567),
    }
}

fn message(role: &str, text: &str) -> Entry {
    Entry::Message { message: Message::new(role, text) }
}

fn said(text: &str) -> Entry {
    Entry::Said { thinking: false, text: text.into() }
}

fn thought(text: &str) -> Entry {
    Entry::Said { thinking: true, text: text.into() }
}

fn turn(number: u64) -> Entry {
    Entry::Turn { number }
}

fn end() -> Entry {
    Entry::TurnEnd { reason: "normal".into() }
}

/// Keeps these entries, each for itself.
async fn keep(sessions: &Sessions, id: &str, entries: &[Entry]) {
    for entry in entries {
        sessions.append(&id.into(), vec![entry.clone()]).await.unwrap();
    }
}

/// A session with these entries.
async fn kept(path: &Path, id: &str, entries: &[Entry]) -> Sessions {
    let sessions = Sessions::new(path.to_owned());
    sessions.begin(head(id)).await.unwrap();
    keep(&sessions, id, entries).await;
    sessions
}

fn archive(path: &Path) -> SessionArchive {
    SessionArchive::open(path).unwrap().unwrap()
}

fn entries(path: &Path, id: &str) -> Vec<Entry> {
    archive(path).entries(id, 1).unwrap().into_iter().map(|kept| kept.entry).collect()
}

fn ids(listed: &[Listed]) -> Vec<&str> {
    listed.iter().map(|listed| &*listed.head.id).collect()
}

#[tokio::test]
async fn a_session_is_kept_as_it_happened() {
    let Place { _folder, path } = place();
    let tool_calls = Some(vec![ToolCall {
        id: Some("c-1".into()),
        kind: "function".into(),
        function: FunctionCall { name: "shell".into(), arguments: "{".into() },
        ..ToolCall::default()
    }]);
    let mut answer = Message { tool_calls, thinking: Some("hm\u{0}".into()), ..Message::new("assistant", "ä\n\"") };
    answer.extra.insert("signature".to_owned(), "abc".into());
    let entries = [
        turn(1),
        message("user", "hi"),
        Entry::Message { message: answer },
        Entry::Spent { input_tokens: u64::MAX, output_tokens: 2, cost: Some(0.25) },
        Entry::Spent { input_tokens: 0, output_tokens: 0, cost: None },
        Entry::Compacted { summary: "sum".into(), kept: 1, source: "auto".into() },
        Entry::Switched { agent: "helper".into() },
        Entry::Model { model: "openai/x".into() },
        Entry::Granted { rule: Some("shell".into()), mode: None },
        Entry::Notice { level: "info".into(), text: "t".into() },
        Entry::Undone { messages: 1 },
        Entry::Other { data: serde_json::json!({"type": "said", "x": [1]}) },
        end(),
    ];
    let before = SystemTime::now() - Duration::from_millis(1);
    drop(kept(&path, "s-1", &entries).await);
    let kept = archive(&path).entries("s-1", 1).unwrap();
    assert_eq!(kept.iter().map(|kept| kept.entry.clone()).collect::<Vec<_>>(), entries);
    assert_eq!(kept.iter().map(|kept| kept.place).collect::<Vec<_>>(), (1..=13).collect::<Vec<_>>());
    assert!(kept.iter().all(|kept| (before..=SystemTime::now()).contains(&kept.time)));
    let later = archive(&path).entries("s-1", 12).unwrap();
    assert_eq!(later.iter().map(|kept| kept.place).collect::<Vec<_>>(), [12, 13]);
    let Named::One(listed) = archive(&path).head("s-1").unwrap() else { panic!("it is not found") };
    assert_eq!(listed.head, head("s-1"));
    assert!(archive(&path).entries("s-2", 1).unwrap().is_empty());
}

#[tokio::test]
async fn the_pieces_of_an_answer_go_when_it_is_whole() {
    let Place { _folder, path } = place();
    let sessions = kept(&path, "s", &[turn(1), message("user", "hi"), thought("hm"), said("he"), said("l")]).await;
    assert_eq!(entries(&path, "s").len(), 5, "until then they are all that there is");
    keep(&sessions, "s", &[message("assistant", "hello"), end()]).await;
    assert_eq!(entries(&path, "s"), [turn(1), message("user", "hi"), message("assistant", "hello"), end()]);
}

#[tokio::test]
async fn the_pieces_of_an_answer_that_was_cut_off_are_joined() {
    let Place { _folder, path } = place();
    let notice = Entry::Notice { level: "info".into(), text: "slow".into() };
    let pieces = [thought("h"), thought("m"), said("he"), notice.clone(), said("llo"), end()];
    let sessions = kept(&path, "s", &pieces).await;
    assert_eq!(entries(&path, "s"), [thought("hm"), said("hello"), notice.clone(), end()]);
    keep(&sessions, "s", &[said("a"), said("b"), message("assistant", "ab")]).await;
    let all = [thought("hm"), said("hello"), notice, end(), message("assistant", "ab")];
    assert_eq!(entries(&path, "s"), all, "those of another answer stay");
}

#[tokio::test]
async fn what_comes_together_is_kept_together() {
    let Place { _folder, path } = place();
    let sessions = kept(&path, "s", &[]).await;
    sessions.append(&"s".into(), vec![said("a"), said("b"), message("assistant", "ab"), said("c")]).await.unwrap();
    assert_eq!(entries(&path, "s"), [message("assistant", "ab"), said("c")]);
    sessions.append(&"s".into(), Vec::new()).await.unwrap();
}

#[tokio::test]
async fn a_session_goes_on_in_another_process_and_only_there() {
    let Place { _folder, path } = place();
    let first = kept(&path, "s", &[message("user", "1")]).await;
    let second = kept(&path, "s", &[message("user", "2")]).await;
    let error = first.append(&"s".into(), vec![message("user", "x")]).await.unwrap_err();
    assert!(error.message.contains("another program went on with the session `s`"), "{error}");
    keep(&second, "s", &[message("user", "3")]).await;
    first.begin(head("s")).await.unwrap();
    keep(&first, "s", &[message("user", "4")]).await;
    assert_eq!(entries(&path, "s"), ["1", "2", "3", "4"].map(|text| message("user", text)));
}

#[tokio::test]
async fn a_session_that_is_known_stays_as_it_is() {
    let Place { _folder, path } = place();
    let sessions = kept(&path, "s", &[said("he")]).await;
    let other = SessionHead { workspace: "/other".into(), started: SystemTime::now(), ..head("s") };
    sessions.begin(other).await.unwrap();
    keep(&sessions, "s", &[message("assistant", "hello")]).await;
    assert_eq!(entries(&path, "s"), [message("assistant", "hello")]);
    assert_eq!(archive(&path).list(&Filter::default()).unwrap()[0].head, head("s"));
}

#[tokio::test]
async fn a_session_that_was_not_begun_is_not_kept() {
    let Place { _folder, path } = place();
    let sessions = Sessions::new(path.clone());
    let error = sessions.append(&"s".into(), vec![end()]).await.unwrap_err();
    assert!(error.message.contains("`s` was not begun"), "{error}");
    for id in ["", ".", "../x", "a/b", "a b", "ä", &"x".repeat(129)] {
        let error = sessions.begin(head(id)).await.unwrap_err();
        assert!(error.message.contains("names no session"), "{error}");
    }
    assert!(archive(&path).list(&Filter::default()).unwrap().is_empty());
}

#[tokio::test]
async fn lists_are_of_what_was_asked_for_the_newest_first() {
    let Place { _folder, path } = place();
    let sessions = Sessions::new(path.clone());
    let old = SystemTime::UNIX_EPOCH;
    for (id, workspace, parent) in
        [("a", "/one", None), ("b", "/two", None), ("c", "/one", None), ("d", "/one", None), ("b-1", "/one", Some("b"))]
    {
        let parent = parent.map(Arc::from);
        sessions.begin(SessionHead { workspace: workspace.into(), parent, started: old, ..head(id) }).await.unwrap();
    }
    for id in ["c", "b", "b-1", "a"] {
        let long = format!("{} and so on\nand on", "ä".repeat(100));
        keep(&sessions, id, &[turn(1), message("system", "s"), message("user", &long), turn(2), end()]).await;
        // Milliseconds decide.
        let now = SystemTime::now();
        while now.elapsed().unwrap() < Duration::from_millis(2) {}
    }
    let archive = archive(&path);
    let all = Filter::default();
    assert_eq!(ids(&archive.list(&all).unwrap()), ["a", "b", "c", "d"]);
    assert_eq!(ids(&archive.list(&Filter { limit: 1, ..all.clone() }).unwrap()), ["a"]);
    assert_eq!(ids(&archive.list(&Filter { with_turns: true, ..all.clone() }).unwrap()), ["a", "b", "c"]);
    let here = Filter { workspace: Some("/one".into()), ..all.clone() };
    assert_eq!(ids(&archive.list(&here).unwrap()), ["a", "c", "d"]);
    let children = Filter { parent: Some("b".into()), ..all.clone() };
    assert_eq!(ids(&archive.list(&children).unwrap()), ["b-1"]);
    let latest = archive.latest("/one").unwrap().unwrap();
    assert_eq!((&*latest.head.id, latest.turns, latest.prompt), ("a", 2, Some("ä".repeat(100).into())));
    assert!(latest.touched > old);
    assert!(archive.latest("/none").unwrap().is_none());
}

#[tokio::test]
async fn a_session_is_found_by_the_beginning_of_its_identity() {
    let Place { _folder, path } = place();
    let sessions = Sessions::new(path.clone());
    for id in ["ab", "abc", "abd", "b%", "c"].into_iter().filter(|id| transcript::is_name(id)) {
        sessions.begin(head(id)).await.unwrap();
    }
    let archive = archive(&path);
    let named = |id: &str| match archive.head(id).unwrap() {
        Named::Nobody => Vec::new(),
        Named::One(listed) => vec![listed.head.id],
        Named::Several(ids) => ids,
    };
    for (id, found) in [
        ("abc", &["abc"][..]),
        ("ab", &["ab"]),
        ("a", &["ab", "abc", "abd"]),
        ("c", &["c"]),
        ("", &["ab", "abc", "abd", "c"]),
        ("x", &[]),
        ("%", &[]),
        ("A", &[]),
    ] {
        assert_eq!(named(id).iter().map(|id| &**id).collect::<Vec<_>>(), found, "{id:?}");
    }
}

#[tokio::test]
async fn what_is_removed_is_gone_with_all_that_it_started() {
    let Place { _folder, path } = place();
    let secret = "the-secret-that-was-said";
    let sessions = kept(&path, "a", &[message("user", secret)]).await;
    for (id, parent) in [("a-1", "a"), ("a-1-1", "a-1"), ("b", "x")] {
        sessions.begin(SessionHead { parent: Some(parent.into()), ..head(id) }).await.unwrap();
        keep(&sessions, id, &[message("user", secret)]).await;
    }
    let mut removed = archive(&path).remove("a").unwrap();
    removed.sort();
    assert_eq!(removed, ["a".into(), "a-1".into(), "a-1-1".into()]);
    assert!(archive(&path).remove("a").unwrap().is_empty());
    let error = sessions.append(&"a".into(), vec![end()]).await.unwrap_err();
    assert!(error.message.contains("was removed"), "{error}");
    assert_eq!(entries(&path, "b").len(), 1);
    archive(&path).remove("b").unwrap();
    drop(sessions);
    let folders = [path.parent().unwrap().to_owned(), path.parent().unwrap().join("transcripts")];
    for file in folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let file = file.unwrap().path();
        let bytes = std::fs::read(&file).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|it| it == secret.as_bytes()), "{}", file.display());
    }
}

#[tokio::test]
async fn the_file_its_folder_and_transcripts_are_their_owners_alone() {
    let Place { _folder, path } = place();
    let sessions = kept(&path, "s", &[message("user", "hi")]).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = path.parent().unwrap();
    assert_eq!((mode(folder), mode(&folder.join("transcripts"))), (0o700, 0o700));
    for file in [path.clone(), path.with_extension("db-wal"), path.with_extension("db-shm"), sessions.transcript("s")] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn many_appends_at_once_are_all_kept_in_the_order_of_each_session() {
    let Place { _folder, path } = place();
    let sessions = Arc::new(Sessions::new(path.clone()));
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..20 {
        let sessions = sessions.clone();
        tasks.spawn(async move {
            let id: Arc<str> = format!("s-{task}").into();
            sessions.begin(head(&id)).await.unwrap();
            for number in 0..30 {
                sessions.append(&id, vec![turn(number)]).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    for task in 0..20 {
        assert_eq!(entries(&path, &format!("s-{task}")), (0..30).map(turn).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn an_entry_may_be_larger_than_what_may_wait() {
    let Place { _folder, path } = place();
    let large = message("tool", &"x".repeat(QUEUE_BYTES + 1));
    let sessions = kept(&path, "s", &[large.clone(), end()]).await;
    assert_eq!(entries(&path, "s"), [large, end()]);
    assert_eq!(sessions.room.available_permits(), QUEUE_BYTES);
}

#[tokio::test]
async fn an_append_that_nobody_waits_for_is_whole_or_not_at_all() {
    let Place { _folder, path } = place();
    let sessions = kept(&path, "s", &[]).await;
    for number in 0..50 {
        let id = "s".into();
        let mut append = sessions.append(&id, vec![turn(number), end()]);
        let once = std::future::poll_fn(|context| std::task::Poll::Ready(append.as_mut().poll(context)));
        let _ = once.await;
    }
    keep(&sessions, "s", &[message("user", "last")]).await;
    let kept = entries(&path, "s");
    assert_eq!(kept.len() % 2, 1);
    assert!(kept.chunks_exact(2).all(|pair| matches!(pair, [Entry::Turn { .. }, Entry::TurnEnd { .. }])));
}

/// One turn with three answers and their tools, as an agent keeps it. Says how long each append took.
async fn whole_turn(sessions: &Sessions, id: &str, number: u64) -> Vec<Duration> {
    let mut entries = vec![turn(number), message("user", "do it")];
    for answer in ["first", "second", "third"] {
        entries.extend((0..10).map(|at| said(&format!("{answer} {at}"))));
        entries.extend([message("assistant", answer), message("tool", &"result ".repeat(100))]);
    }
    entries.push(end());
    let id = id.into();
    let mut times = Vec::new();
    for entry in entries {
        let begun = Instant::now();
        sessions.append(&id, vec![entry]).await.unwrap();
        times.push(begun.elapsed());
    }
    times
}

#[tokio::test]
async fn a_turn_costs_the_same_after_five_hundred() {
    let Place { _folder, path } = place();
    let sessions = kept(&path, "long", &[]).await;
    for number in 0..500 {
        whole_turn(&sessions, "long", number).await;
    }
    assert_eq!(entries(&path, "long").len(), 500 * 9, "pieces are gone");
    sessions.begin(head("short")).await.unwrap();
    let (mut long, mut short) = (Vec::new(), Vec::new());
    for number in 0..60 {
        short.push(whole_turn(&sessions, "short", number).await);
        long.push(whole_turn(&sessions, "long", 500 + number).await);
    }
    // What an append costs is what it takes where nothing else has the machine: the least of its times.
    let least = |turns: &[Vec<Duration>]| -> Duration {
        (0..turns[0].len()).map(|at| turns.iter().map(|times| times[at]).min().unwrap()).sum()
    };
    let (long, short) = (least(&long), least(&short));
    println!("39 appends: {short:?} in a new session, {long:?} after 500 turns");
    assert!(long < short * 3 / 2, "{long:?} against {short:?}");
}
