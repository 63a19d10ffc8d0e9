//! `--worktree`: a session in a working tree of its own.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::driven::{Driven, call, text};
use crate::support::{Ran, ran};

fn git(driven: &Driven, args: &[&str]) -> Ran {
    let mut git = driven.home.command("git");
    git.args(["-c", "user.name=T", "-c", "user.email=t@example.com"]).args(args);
    ran(&mut git)
}

/// A repository with one commit, in a folder that has room beside it.
fn repository(script: impl IntoIterator<Item = Value>) -> Driven {
    let driven = Driven::new(script).file("a.txt", "the file's text");
    for args in [&["init", "-q", "-b", "main"][..], &["add", "a.txt", ".gitignore"], &["commit", "-q", "-m", "Begin"]] {
        let ran = git(&driven, args);
        assert_eq!(ran.code, 0, "{}", ran.shown());
    }
    driven
}

fn tree(driven: &Driven, branch: &str) -> PathBuf {
    let root = driven.home.path().canonicalize().unwrap();
    root.with_file_name(format!("{}-{branch}", root.file_name().unwrap().to_str().unwrap()))
}

#[test]
fn a_session_works_in_a_new_worktree_that_hooks_hear_of_first() {
    let write = call("write", json!({"path": "new.txt", "content": "x"}));
    let answer = json!({"hook_specific_output": {"additional_context": "this is a copy"}});
    let driven = repository([write, text("Done.")]).answers("worktree_create", answer);
    let driven = driven.args(&["--mode", "autonomous", "--worktree", "feature/x"]);
    let drove = driven.run_again(&["run", "Go.", "--json"]);
    let path = tree(&driven, "feature-x");
    let told = drove.one("worktree_create");
    assert_eq!(drove.events()[..3], ["setup", "worktree_create", "session_start"], "{}", drove.ran.shown());
    assert_eq!(told["worktree_path"], json!(path));
    assert_eq!((&told["worktree_branch"], &told["cwd"]), (&json!("feature/x"), &json!(path)));
    assert_eq!(told["worktree_source_dir"], json!(driven.home.path().canonicalize().unwrap()));
    let start = drove.one("session_start");
    assert_eq!((&start["cwd"], &start["branch"]), (&json!(path), &json!("feature/x")));
    assert!(drove.asked().contains("this is a copy"));
    assert!(path.join("new.txt").exists() && !driven.home.path().join("new.txt").exists());
    assert!(drove.ran.err.contains(&format!("working in {} on branch feature/x", path.display())), "{}", drove.ran.err);
    // It is not made twice.
    let again = driven.run_again(&["run", "Go.", "--json"]);
    assert!(again.ran.code == 2 && again.ran.err.contains("is there already"), "{}", again.ran.shown());
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn what_a_session_did_in_a_worktree_can_be_committed_there() {
    let commit = "echo x > new.txt && git add new.txt && git -c user.name=T -c user.email=t@example.com commit -qm Add";
    let script = [call("bash", json!({"command": commit})), text("Done.")];
    let driven = repository(script.clone()).args(&["--mode", "autonomous", "--worktree", "x"]);
    let drove = driven.run_again(&["run", "Commit.", "--json"]);
    let log = git(&driven, &["log", "--format=%s", "x"]);
    assert_eq!(log.out, "Add\nBegin\n", "{}", drove.ran.shown());
    std::fs::remove_dir_all(tree(&driven, "x")).unwrap();
}

#[test]
fn a_block_removes_it_and_there_is_no_session() {
    let driven =
        repository([text("Done.")]).answers("worktree_create", json!({"decision": "block", "reason": "no room"}));
    let driven = driven.args(&["--worktree", "try"]);
    let drove = driven.run_again(&["run", "Go.", "--json"]);
    assert!(drove.ran.code == 1 && drove.ran.err.contains("no room"), "{}", drove.ran.shown());
    assert!(drove.of("session_start").is_empty() && !tree(&driven, "try").exists());
    assert!(!git(&driven, &["branch"]).out.contains("try"));
    assert_eq!(git(&driven, &["worktree", "list"]).out.lines().count(), 1);
}

#[test]
fn what_cannot_be_a_worktree_is_said_with_its_cause() {
    let outside = Driven::new([text("Done.")]).args(&["--worktree", "x"]).run("Go.");
    assert!(outside.ran.code != 0 && outside.ran.err.contains("not a git repository"), "{}", outside.ran.shown());
    let driven = repository([text("Done.")]).args(&["--worktree", "-rf"]);
    let named = driven.run_again(&["run", "Go.", "--json"]);
    assert!(named.ran.code == 2, "{}", named.ran.shown());
    let driven = repository([text("Done.")]).args(&["--worktree", "a..b"]);
    let named = driven.run_again(&["run", "Go.", "--json"]);
    assert!(named.ran.code == 2 && named.ran.err.contains("cannot be the name of a branch"), "{}", named.ran.shown());
}
