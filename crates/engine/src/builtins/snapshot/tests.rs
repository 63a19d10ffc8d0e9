use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::super::tests::{in_folder, surroundings, verdict_of};
use super::*;

/// A worktree, and a folder for everything that is kept.
struct Project {
    worktree: tempfile::TempDir,
    home: tempfile::TempDir,
}

impl Project {
    fn new() -> Self {
        let project = Self { worktree: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap() };
        let ran = Command::new("git").args(["init", "-q"]).current_dir(project.worktree.path()).status().unwrap();
        assert!(ran.success());
        project
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.worktree.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.worktree.path().join(path)).ok()
    }

    fn env(&self) -> BTreeMap<String, String> {
        surroundings(self.home.path()).env
    }

    fn snapshots(&self) -> Snapshots {
        Snapshots::open(self.worktree.path(), &self.env()).unwrap().unwrap()
    }
}

#[tokio::test]
async fn steps_are_undone_one_by_one_and_all_together() {
    let project = Project::new();
    let snapshots = project.snapshots();
    project.write("a", "1");
    project.write("deep/b", "1");
    assert!(snapshots.keep("s", "session_start").await.unwrap().is_some());
    assert!(snapshots.keep("s", "turn_start").await.unwrap().is_none(), "nothing has changed");
    project.write("a", "2");
    project.write("new", "2");
    snapshots.keep("s", "turn_end").await.unwrap();
    std::fs::remove_file(project.worktree.path().join("deep/b")).unwrap();
    snapshots.keep("s", "turn_end").await.unwrap();
    project.write("of the user", "x");
    let labels: Vec<_> = snapshots.list("s").await.unwrap().into_iter().map(|it| it.label).collect();
    assert_eq!(labels, ["turn_end", "turn_end", "session_start"]);

    let restored = snapshots.undo("s").await.unwrap().unwrap();
    assert_eq!(restored.files, [Path::new("deep/b")]);
    assert_eq!((project.read("deep/b"), project.read("a")), (Some("1".into()), Some("2".into())));
    snapshots.undo("s").await.unwrap().unwrap();
    assert_eq!((project.read("a"), project.read("new")), (Some("1".into()), None));
    assert_eq!(project.read("of the user"), Some("x".into()), "what no step touched stays");
    assert!(snapshots.undo("s").await.unwrap().is_none());

    project.write("a", "3");
    snapshots.keep("s", "turn_end").await.unwrap();
    project.write("a", "4");
    let restored = snapshots.reset("s").await.unwrap().unwrap();
    assert_eq!((project.read("a"), project.read("of the user")), (Some("1".into()), None));
    let kept =
        Command::new("git").args(["show", &format!("{}:a", restored.before)]).env("GIT_DIR", store(&project)).output();
    assert_eq!(kept.unwrap().stdout, b"4", "what was there before is kept");
    assert!(snapshots.reset("another").await.unwrap().is_none());
}

fn store(project: &Project) -> std::path::PathBuf {
    let stores = project.home.path().join("gatehook/snapshots");
    std::fs::read_dir(stores).unwrap().next().unwrap().unwrap().path()
}

#[tokio::test]
async fn what_is_large_or_ignored_is_left_alone() {
    let project = Project::new();
    let snapshots = project.snapshots();
    project.write(".gitignore", "ignored\n");
    project.write("ignored", "1");
    project.write("grows", "small");
    project.write("ends in \n a line", "1");
    snapshots.keep("s", "a").await.unwrap();
    project.write("ignored", "2");
    project.write("ends in \n a line", "2");
    project.write("large", &"x".repeat(3 << 20));
    snapshots.keep("s", "b").await.unwrap();
    project.write("grows", &"x".repeat(3 << 20));
    let restored = snapshots.undo("s").await.unwrap().unwrap();
    assert_eq!(restored.files, [Path::new("ends in \n a line")]);
    assert_eq!(project.read("ignored"), Some("2".into()));
    assert!(project.read("large").is_some_and(|text| text.len() == 3 << 20));
    assert!(project.read("grows").is_some_and(|text| text.len() == 3 << 20));
}

#[tokio::test]
async fn the_projects_own_repository_is_not_touched() {
    let project = Project::new();
    project.write("a", "1");
    let git_dir = project.worktree.path().join(".git");
    let before = entries(&git_dir);
    project.snapshots().keep("s", "a").await.unwrap();
    assert_eq!(entries(&git_dir), before);
}

fn entries(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            all.extend(entries(&entry.path()));
        }
        all.push(entry.path());
    }
    all.sort();
    all
}

#[tokio::test]
async fn the_hook_keeps_checkpoints_and_stops_nobody() {
    let project = Project::new();
    for (event, text) in
        [(Event::SessionStart, "1"), (Event::PreToolUse, "1"), (Event::PostToolUse, "2"), (Event::SessionEnd, "3")]
    {
        project.write("a", text);
        let executor = in_folder(event, "snapshot", &[], project.home.path());
        let input = json!({"session_id": "s", "cwd": project.worktree.path(), "tool_name": "shell"});
        let verdict = verdict_of(&executor, event, input).await;
        assert!(verdict.allowed && verdict.message.is_empty(), "{event:?}: {}", verdict.message);
    }
    let labels: Vec<_> = project.snapshots().list("s").await.unwrap().into_iter().map(|it| it.label).collect();
    assert_eq!(labels, ["session_end shell", "post_tool_use shell", "session_start shell"]);
    let outside = tempfile::tempdir().unwrap();
    let executor = in_folder(Event::PreToolUse, "snapshot", &[], outside.path());
    assert!(verdict_of(&executor, Event::PreToolUse, json!({"session_id": "s"})).await.allowed);
    assert!(!outside.path().join("gatehook").exists(), "no repository, no snapshot");
}

#[tokio::test]
async fn sessions_that_keep_at_once_wait_for_each_other() {
    let project = Project::new();
    project.write("a", "1");
    let (one, two) = (project.snapshots(), project.snapshots());
    let (first, second) = tokio::join!(one.keep("one", "x"), two.keep("two", "x"));
    assert!(first.unwrap().is_some() && second.unwrap().is_some());
}
