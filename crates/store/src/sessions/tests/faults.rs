//! Where sessions cannot be kept: who waits is told, and nothing is lost that was there.

use gatehook_events::trace::Fault;

use super::*;
use crate::TraceReader;

/// Why nothing can be kept there.
async fn refused(path: &Path) -> String {
    Sessions::new(path.to_owned()).begin(head("s")).await.unwrap_err().message
}

#[tokio::test]
async fn a_file_that_another_program_holds_is_waited_for() {
    let Place { _folder, path } = place();
    let sessions = kept(&path, "s", &[message("user", "before")]).await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let id = "s".into();
    let (kept, ()) = tokio::join!(sessions.append(&id, vec![message("user", "after")]), async {
        other.execute_batch("COMMIT").unwrap();
    });
    kept.unwrap();
    assert_eq!(entries(&path, "s").len(), 2);
}

#[tokio::test]
async fn a_file_that_another_program_does_not_let_go_is_said_to_be_locked() {
    let Place { _folder, path } = place();
    let sessions = kept(&path, "s", &[message("user", "before")]).await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = sessions.append(&"s".into(), vec![message("user", "lost")]).await.unwrap_err();
    assert!(error.message.contains("sessions.db is locked by another program"), "{error}");
    assert_eq!(entries(&path, "s").len(), 1, "it can be read meanwhile");
    other.execute_batch("COMMIT").unwrap();
    keep(&sessions, "s", &[message("user", "after")]).await;
    assert_eq!(entries(&path, "s"), ["before", "after"].map(|text| message("user", text)));
}

#[tokio::test]
async fn a_damaged_file_is_said_to_be_damaged_and_is_left_as_it_is() {
    let Place { _folder, path } = place();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = "this is no database, ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let message = refused(&path).await;
    assert!(message.contains("is damaged or no database") && message.contains("move it away"), "{message}");
    assert_eq!(SessionArchive::open(&path).unwrap_err().fault, Fault::Corrupted);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_file_of_traces_takes_no_sessions() {
    let Place { _folder, path } = place();
    drop(kept(&path, "s", &[]).await);
    assert_eq!(TraceReader::open(&path).unwrap_err().fault, Fault::Corrupted);
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_left_alone() {
    let Place { _folder, path } = place();
    drop(kept(&path, "s", &[]).await);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(refused(&path).await.contains("was made by a newer gatehook"));
    assert_eq!(SessionArchive::open(&path).unwrap_err().fault, Fault::Newer);
}

#[tokio::test]
async fn a_place_that_cannot_be_had_is_said_to_be_one() {
    let Place { _folder, path } = place();
    std::fs::write(path.parent().unwrap().parent().unwrap(), "a file").unwrap();
    let message = refused(&path).await;
    assert!(message.contains("cannot be opened") && message.contains("XDG_STATE_HOME"), "{message}");
}

#[tokio::test]
async fn a_file_that_is_taken_away_is_missed() {
    let Place { _folder, path } = place();
    let sessions = kept(&path, "s", &[message("user", "a")]).await;
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let error = sessions.append(&"s".into(), vec![end()]).await.unwrap_err();
    assert!(error.message.contains("was taken away"), "{error}");
    let error = sessions.append(&"s".into(), vec![end()]).await.unwrap_err();
    assert!(error.message.contains("was not begun, or was removed"), "{error}");
    sessions.begin(head("new")).await.unwrap();
    keep(&sessions, "new", &[end()]).await;
    assert_eq!(entries(&path, "new"), [end()]);
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_not_passed_over() {
    let Place { _folder, path } = place();
    drop(kept(&path, "s", &[turn(1), end()]).await);
    let unknown = r#"UPDATE entries SET entry = '{"type":"of_tomorrow"}' WHERE place = 2"#;
    Connection::open(&path).unwrap().execute_batch(unknown).unwrap();
    let error = archive(&path).entries("s", 1).unwrap_err();
    assert_eq!(error.fault, Fault::Corrupted);
    assert!(
        error.to_string().contains("entry 2 of the session cannot be read: unknown variant `of_tomorrow`"),
        "{error}"
    );
}
