//! Processes that write, and are killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use gatehook_events::Fold;
use gatehook_events::fold::Change;

use super::*;

const FILE: &str = "GATEHOOK_TEST_FILE";
const SESSION: &str = "GATEHOOK_TEST_SESSION";

/// This test alone, in a process of its own that writes until it is killed.
fn writer(path: &Path, session: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "sessions::tests::killed::writes_and_says_what_was_kept", "--ignored", "--nocapture"]);
    command.env(FILE, path).env(SESSION, session).stdout(Stdio::piped()).spawn().unwrap()
}

/// What it says, by whole lines: its death may cut the last one.
fn said_by(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    std::iter::from_fn(move || {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        line.strip_suffix('\n').map(str::to_owned)
    })
}

#[tokio::test]
#[ignore = "other tests run it in a process of its own"]
async fn writes_and_says_what_was_kept() {
    let (Some(file), Ok(id)) = (std::env::var_os(FILE), std::env::var(SESSION)) else { return };
    let sessions = kept(Path::new(&file), &id, &[]).await;
    for number in 1..=50 {
        keep(&sessions, &id, &[turn(number)]).await;
        let text = format!("user-{number}");
        keep(&sessions, &id, &[message("user", &text)]).await;
        println!("kept message {text}");
        let mut answer = String::new();
        for piece in 0..fastrand::usize(..20) {
            let text = format!("{number}-{piece}-{}", "x".repeat(fastrand::usize(..3).pow(10)));
            keep(&sessions, &id, &[said(&text)]).await;
            println!("kept piece {text}");
            answer.push_str(&text);
        }
        keep(&sessions, &id, &[message("assistant", &answer)]).await;
        println!("kept message {answer}");
        keep(&sessions, &id, &[end()]).await;
    }
    println!("kept all");
}

/// What it said: its messages, and what it had said of an answer when it ended.
#[derive(Debug, Default)]
struct Told {
    messages: Vec<String>,
    piece: String,
    all: bool,
}

impl Told {
    /// False for what is no news.
    fn hear(&mut self, line: &str) -> bool {
        let Some((_, news)) = line.split_once("kept ") else { return false };
        match news.split_once(' ') {
            Some(("message", text)) => {
                self.messages.push(text.to_owned());
                self.piece.clear();
            }
            Some((_, text)) => self.piece.push_str(text),
            None => self.all = true,
        }
        true
    }
}

/// The texts of a session's messages, and the piece of an answer behind them.
fn stored(path: &Path, id: &str) -> (Vec<String>, String) {
    let (mut fold, mut texts, mut piece) = (Fold::default(), Vec::new(), String::new());
    for entry in entries(path, id) {
        match &entry {
            Entry::Said { text, .. } => piece.push_str(text),
            Entry::Message { .. } => piece.clear(),
            _ => {}
        }
        for change in fold.apply(&entry) {
            let Change::Add(message) = change else { continue };
            texts.push(message.content.as_deref().unwrap_or_default().to_owned());
        }
    }
    (texts, piece)
}

#[test]
fn what_was_acknowledged_survives_sigkill_at_any_moment() {
    let Place { _folder, path } = place();
    let mut cut = 0;
    for round in 0..25 {
        let id = format!("s-{round}");
        let mut child = writer(&path, &id);
        let mut lines = said_by(&mut child);
        let mut told = Told::default();
        for _ in 0..fastrand::usize(1..300) {
            while lines.next().is_some_and(|line| !told.hear(&line)) {}
        }
        (0..fastrand::u32(..100_000)).for_each(|_| std::hint::spin_loop());
        child.kill().unwrap();
        child.wait().unwrap();
        // What stands in the pipe was said before.
        lines.for_each(|line| _ = told.hear(&line));
        cut += u32::from(!told.all);
        let (texts, piece) = stored(&path, &id);
        assert_eq!(texts.get(..told.messages.len()), Some(&told.messages[..]), "round {round}");
        let after = texts.get(told.messages.len()).unwrap_or(&piece);
        assert!(after.starts_with(&told.piece), "round {round}: {:?} of {after:?}", told.piece);
    }
    assert!(cut > 5, "only {cut} were killed at work");
}

#[test]
fn a_session_that_was_killed_goes_on() {
    let Place { _folder, path } = place();
    for _ in 0..5 {
        let before = archived(&path);
        let mut child = writer(&path, "s");
        let mut lines = said_by(&mut child);
        let mut told = Told::default();
        for _ in 0..fastrand::usize(5..40) {
            while lines.next().is_some_and(|line| !told.hear(&line)) {}
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (texts, _) = stored(&path, "s");
        assert!(texts.len() >= before.len() + told.messages.len());
        assert_eq!(texts.get(..before.len()), Some(&before[..]));
    }
}

/// The messages so far; none before there is a file.
fn archived(path: &Path) -> Vec<String> {
    if path.exists() { stored(path, "s").0 } else { Vec::new() }
}

#[test]
fn two_processes_write_two_sessions_at_once() {
    let Place { _folder, path } = place();
    let children = ["one", "two"].map(|id| (id, writer(&path, id)));
    // Each is heard by a thread of its own, so that none waits for the other's reader.
    let ended = children.map(|(id, child)| (id, std::thread::spawn(|| child.wait_with_output().unwrap())));
    for (id, output) in ended {
        let output = output.join().unwrap();
        let mut told = Told::default();
        String::from_utf8(output.stdout).unwrap().lines().for_each(|line| _ = told.hear(line));
        assert!(output.status.success() && told.all, "{id}: {told:?}");
        assert_eq!(stored(&path, id), (told.messages, String::new()), "{id}");
    }
    assert_eq!(archive(&path).list(&Filter::default()).unwrap().len(), 2);
}
