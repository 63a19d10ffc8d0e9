use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};

use super::*;
use crate::sessions::SessionArchive;

type Kept = oneshot::Receiver<Told>;

fn job(what: What) -> (Job, Kept) {
    let (done, kept) = oneshot::channel();
    let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    (Job { what, time: SystemTime::now(), done, _room: room }, kept)
}

fn begin_of(id: &str) -> (Job, Kept) {
    let [workspace, agent, model] = ["/w", "a", "m"].map(Arc::from);
    let started = SystemTime::now();
    job(What::Begin(SessionHead { id: id.into(), parent: None, workspace, agent, model, started }))
}

fn say(id: &str, text: &str) -> (Job, Kept) {
    job(What::Append { session: id.into(), entries: vec![Entry::Message { message: Message::new("user", text) }] })
}

/// What became of each job of a batch.
fn told(keeper: &mut Keeper, batch: Vec<(Job, Kept)>) -> Vec<Told> {
    let (jobs, kept): (Vec<Job>, Vec<Kept>) = batch.into_iter().unzip();
    keeper.keep(jobs);
    kept.into_iter().map(|mut kept| kept.try_recv().unwrap()).collect()
}

#[test]
fn what_waits_is_kept_together_and_what_cannot_be_does_not_harm_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let mut keeper = Keeper::new(&path);
    let batch = vec![begin_of("a"), say("a", "1"), say("b", "x"), begin_of("../b"), begin_of("c"), say("a", "2")];
    let kept: Vec<bool> = told(&mut keeper, batch).iter().map(Result::is_ok).collect();
    assert_eq!(kept, [true, true, false, false, true, true]);
    let archive = SessionArchive::open(&path).unwrap().unwrap();
    assert_eq!(archive.entries("a", 1).unwrap().len(), 2);
    let transcript = || std::fs::read_to_string(transcript::path(&path, "a")).unwrap().lines().count();
    assert_eq!(transcript(), 2, "each once");
    std::fs::remove_file(transcript::path(&path, "a")).unwrap();
    told(&mut keeper, vec![say("a", "3"), say("a", "4")]);
    assert_eq!(transcript(), 4, "each once");
}

#[test]
fn what_a_full_disk_has_no_room_for_takes_nothing_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let mut keeper = Keeper::new(&path);
    told(&mut keeper, vec![begin_of("a"), begin_of("b")]);
    let full = |keeper: &mut Keeper| {
        let connection = &keeper.database.as_ref().unwrap().connection;
        let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        let most = pages + 4;
        connection.pragma_update_and_check(None, "max_page_count", most, |row| row.get::<_, i64>(0)).unwrap();
    };
    full(&mut keeper);
    let large = "x".repeat(100_000);
    let refused = told(&mut keeper, vec![say("a", &large)]).pop().unwrap().unwrap_err();
    assert!(refused.message.contains("has no room left") && refused.message.contains("sessions rm"), "{refused}");
    told(&mut keeper, vec![say("a", "small")]);
    full(&mut keeper);
    let told = told(&mut keeper, vec![say("a", "1"), say("b", &large), say("a", "2")]);
    assert_eq!(told.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    let archive = SessionArchive::open(&path).unwrap().unwrap();
    assert_eq!((archive.entries("a", 1).unwrap().len(), archive.entries("b", 1).unwrap().len()), (3, 0));
}

#[test]
fn a_session_that_is_not_in_mind_any_more_is_looked_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let mut keeper = Keeper::new(&path);
    told(&mut keeper, vec![begin_of("first"), say("first", "1")]);
    for number in 0..=KNOWN {
        told(&mut keeper, vec![begin_of(&format!("s-{number}"))]);
    }
    assert!(keeper.places.len() <= KNOWN + 1, "{}", keeper.places.len());
    assert!(told(&mut keeper, vec![say("first", "2")]).pop().unwrap().is_ok());
    let text = std::fs::read_to_string(transcript::path(&path, "first")).unwrap();
    assert_eq!(text.lines().count(), 2);
}
