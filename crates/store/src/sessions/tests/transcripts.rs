//! What hooks find at `transcript_path`.

use gatehook_events::fold::{CUT, UNANSWERED};

use super::*;

fn texts(sessions: &Sessions, id: &str) -> Vec<String> {
    let text = std::fs::read_to_string(sessions.transcript(id)).unwrap();
    let messages = text.lines().map(|line| serde_json::from_str::<Message>(line).unwrap());
    messages.map(|message| format!("{}: {}", message.role, message.content.unwrap_or_default())).collect()
}

fn calls(ids: &[&str]) -> Entry {
    let call = |id: &&str| ToolCall { id: Some((*id).into()), ..ToolCall::default() };
    let tool_calls = Some(ids.iter().map(call).collect());
    Entry::Message { message: Message { tool_calls, ..Message::new("assistant", "so") } }
}

#[tokio::test]
async fn a_transcript_has_each_message_as_soon_as_it_is_kept() {
    let Place { _folder, path } = place();
    let sessions = kept(&path, "s", &[]).await;
    assert!(texts(&sessions, "s").is_empty(), "it is there from the beginning");
    keep(&sessions, "s", &[turn(1), message("user", "hi\nyou"), said("he")]).await;
    assert_eq!(texts(&sessions, "s"), ["user: hi\nyou"]);
    keep(&sessions, "s", &[message("assistant", "hello")]).await;
    let compacted = Entry::Compacted { summary: "sum".into(), kept: 0, source: "auto".into() };
    keep(&sessions, "s", &[end(), compacted]).await;
    assert_eq!(texts(&sessions, "s"), ["user: hi\nyou", "assistant: hello"], "the original stays");
}

#[tokio::test]
async fn what_was_undone_is_not_in_it() {
    let Place { _folder, path } = place();
    let [a, b] = ["a", "b"].map(|text| message("user", text));
    let sessions = kept(&path, "s", &[a, b.clone(), Entry::Undone { messages: 1 }]).await;
    assert_eq!(texts(&sessions, "s"), ["user: a"]);
    sessions.append(&"s".into(), vec![b.clone(), Entry::Undone { messages: 9 }, b]).await.unwrap();
    assert_eq!(texts(&sessions, "s"), ["user: b"]);
}

#[tokio::test]
async fn one_that_goes_on_is_whole_again() {
    let Place { _folder, path } = place();
    let results = Entry::Message { message: Message { tool_call_id: Some("a".into()), ..Message::new("tool", "1") } };
    drop(kept(&path, "s", &[message("user", "go"), calls(&["a", "b"]), results]).await);
    let first = Sessions::new(path.clone());
    std::fs::write(first.transcript("s"), "{\"half\": ").unwrap();
    let sessions = kept(&path, "s", &[turn(2), said("he"), end()]).await;
    let mended = [
        "user: go".to_owned(),
        "assistant: so".to_owned(),
        "tool: 1".to_owned(),
        format!("tool: {UNANSWERED}"),
        format!("assistant: he\n\n{CUT}"),
    ];
    assert_eq!(texts(&sessions, "s"), mended);
    assert_eq!(std::fs::read_dir(path.parent().unwrap().join("transcripts")).unwrap().count(), 1);
}

#[tokio::test]
async fn one_that_another_process_went_on_with_is_whole_again() {
    let Place { _folder, path } = place();
    let first = kept(&path, "s", &[message("user", "a")]).await;
    let second = kept(&path, "s", &[message("user", "b")]).await;
    first.begin(head("s")).await.unwrap();
    keep(&first, "s", &[message("user", "c")]).await;
    assert_eq!(texts(&second, "s"), ["user: a", "user: b", "user: c"]);
}

#[tokio::test]
async fn what_somebody_else_made_of_it_does_not_last() {
    let Place { _folder, path } = place();
    let sessions = kept(&path, "s", &[message("user", "a")]).await;
    std::fs::write(sessions.transcript("s"), "{}\n").unwrap();
    keep(&sessions, "s", &[message("user", "b")]).await;
    assert_eq!(texts(&sessions, "s"), ["user: a", "user: b"]);
    std::fs::remove_file(sessions.transcript("s")).unwrap();
    keep(&sessions, "s", &[message("user", "c")]).await;
    assert_eq!(texts(&sessions, "s"), ["user: a", "user: b", "user: c"]);
}

#[tokio::test]
async fn where_it_cannot_be_written_there_is_none_and_the_session_is_kept() {
    let Place { _folder, path } = place();
    let folder = path.parent().unwrap();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("transcripts"), "a file where a folder should be").unwrap();
    let sessions = kept(&path, "s", &[message("user", "a")]).await;
    assert!(!sessions.transcript("s").exists());
    std::fs::remove_file(folder.join("transcripts")).unwrap();
    keep(&sessions, "s", &[message("user", "b")]).await;
    assert_eq!(texts(&sessions, "s"), ["user: a", "user: b"]);
}

#[tokio::test]
async fn the_data_of_images_stays_where_it_is() {
    let Place { _folder, path } = place();
    let image = gatehook_events::Image {
        sha256: "ab".to_owned(),
        media_type: "image/png".to_owned(),
        bytes: 3,
        data: Some("AAAA".into()),
    };
    let with_image = Message { images: Some(vec![image]), ..Message::new("user", "look") };
    let sessions = kept(&path, "s", &[Entry::Message { message: with_image.clone() }]).await;
    let text = std::fs::read_to_string(sessions.transcript("s")).unwrap();
    assert!(text.contains("\"ab\"") && !text.contains("AAAA"), "{text}");
    assert_eq!(entries(&path, "s"), [Entry::Message { message: with_image }], "the model needs it");
}
