//! `gatehook git`: people's commits in real repositories.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Home, Ran, ran};

const KEEPER: &str = "hooks: {on_git_commit: [{name: keeper, type: command, command: 'cat > \"$TMPDIR/kept.json\"'}]}";
const GUARD: &str = "hooks:
  on_git_commit:
    - { name: guard, type: command, command: \"grep -q 'launch codes' && { echo 'not in a commit' >&2; exit 2; }; exit 0\" }
";

/// A repository whose hooks are the user's, so that the files of a commit are its own.
fn repository(policy: &str) -> Home {
    let home = Home::new();
    home.file("home/.config/gatehook/gatehook.yaml", policy);
    home.file("home/.gitconfig", "[user]\n name = A\n email = a@example.com\n[init]\n defaultBranch = main\n");
    git(&home, &["init", "-q", "repo"]);
    home
}

fn command(home: &Home, program: &str, folder: &str) -> Command {
    let mut command = home.command(program);
    command.current_dir(home.path().join(folder)).env("TMPDIR", home.path()).env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

fn git(home: &Home, args: &[&str]) -> Ran {
    let ran = ran(command(home, "git", "").args(args));
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.shown());
    ran
}

fn gatehook(home: &Home, folder: &str, args: &[&str]) -> Ran {
    ran(command(home, env!("CARGO_BIN_EXE_gatehook"), folder).args(args))
}

fn install(home: &Home) -> Ran {
    let ran = gatehook(home, "repo", &["git", "install"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    ran
}

/// Stages a file of this name, and commits it.
fn commit(home: &Home, name: &str, args: &[&str]) -> Ran {
    home.file(&format!("repo/{name}"), name);
    git(home, &["-C", "repo", "add", name]);
    ran(command(home, "git", "repo").args(["commit"]).args(args))
}

fn kept(home: &Home) -> Value {
    let text = std::fs::read_to_string(home.path().join("kept.json"));
    serde_json::from_str(&text.unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

fn hook(home: &Home, path: &str, text: &str) {
    let path = home.file(path, text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn lines(home: &Home, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(home.path().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn count(home: &Home) -> usize {
    let ran = ran(command(home, "git", "repo").args(["rev-list", "--count", "HEAD"]));
    ran.out.trim().parse().unwrap_or(0)
}

#[test]
fn a_commit_is_told_with_files_message_and_branch_and_a_denied_one_is_not_made() {
    let home = repository(KEEPER);
    install(&home);
    home.file("repo/sub/b c.txt", "b");
    git(&home, &["-C", "repo", "add", "."]);
    let made = commit(&home, "a.txt", &["-m", "Say hello\n\n# no comment"]);
    assert_eq!(made.code, 0, "{}", made.shown());
    let told = kept(&home);
    assert_eq!(told["files"], json!(["a.txt", "sub/b c.txt"]));
    assert_eq!((&told["message"], &told["branch"]), (&json!("Say hello\n\n# no comment\n"), &json!("main")));

    home.file("home/.config/gatehook/gatehook.yaml", GUARD);
    let denied = commit(&home, "b.txt", &["-m", "the launch codes"]);
    assert_eq!(denied.code, 1, "{}", denied.shown());
    assert!(denied.err.contains("gatehook: this commit is refused: not in a commit"), "{}", denied.shown());
    assert_eq!(count(&home), 1);
    assert_eq!(commit(&home, "b.txt", &["-m", "hello"]).code, 0);
    assert_eq!(commit(&home, "c.txt", &["-m", "the launch codes", "--no-verify"]).code, 0);
}

#[test]
fn the_files_are_those_of_the_commit_and_not_of_what_is_staged() {
    let home = repository(KEEPER);
    commit(&home, "old.txt", &["-qm", "first"]);
    install(&home);
    git(&home, &["-C", "repo", "mv", "old.txt", "new.txt"]);
    assert_eq!(commit(&home, "x.txt", &["-m", "moved"]).code, 0);
    assert_eq!(kept(&home)["files"], json!(["new.txt", "old.txt", "x.txt"]));
    // One file alone, with another staged; and what is not staged at all.
    home.file("repo/x.txt", "changed");
    home.file("repo/y.txt", "staged");
    git(&home, &["-C", "repo", "add", "y.txt"]);
    assert_eq!(ran(command(&home, "git", "repo").args(["commit", "-qm", "x alone", "x.txt"])).code, 0);
    assert_eq!(kept(&home)["files"], json!(["x.txt"]));
    assert_eq!(ran(command(&home, "git", "repo").args(["checkout", "-q", "--detach"])).code, 0);
    assert_eq!(commit(&home, "z.txt", &["-m", "z"]).code, 0);
    assert_eq!(kept(&home)["branch"], "HEAD");
}

#[test]
fn a_message_is_told_as_git_keeps_it() {
    let home = repository(KEEPER);
    install(&home);
    hook(&home, "editor.sh", "#!/bin/sh\nprintf 'Say hello\\n\\n# mine\\n' > new; cat \"$1\" >> new; mv new \"$1\"\n");
    let editor = home.path().join("editor.sh");
    for (args, message) in [
        (&["--edit", "-m", "given"][..], "Say hello\n\ngiven\n"),
        (&["--verbose"], "Say hello\n"),
        (&["--cleanup=verbatim", "-m", "# given"], "# given\n"),
    ] {
        home.file("repo/a.txt", message);
        git(&home, &["-C", "repo", "add", "."]);
        let mut command = command(&home, "git", "repo");
        let made = ran(command.env("GIT_EDITOR", &editor).arg("commit").args(args));
        assert_eq!(made.code, 0, "{args:?}: {}", made.shown());
        assert_eq!(kept(&home)["message"], message, "{args:?}");
    }
}

#[test]
fn hooks_that_were_there_run_first_and_come_back() {
    for (head, path) in [
        ("#!/bin/sh", "repo/.git/hooks"),
        ("#!/usr/bin/env bash", "repo/.git/hooks"),
        ("#!/bin/sh -e", "repo/.git/hooks"),
        ("", "repo/.git/hooks"),
    ] {
        let home = repository(GUARD);
        let script = format!(
            "{head}\necho \"$(basename \"$0\") $(basename \"$(dirname \"$0\")\") $#\" >> \"$TMPDIR/ran\"\n[ ! -e refuse ]\n"
        );
        hook(&home, &format!("{path}/pre-commit"), &script);
        hook(&home, &format!("{path}/commit-msg"), &script);
        let installed = install(&home);
        assert!(installed.out.contains("the hook that was there runs first"), "{}", installed.shown());
        install(&home);
        assert_eq!(commit(&home, "a.txt", &["-m", "hello"]).code, 0, "{head}");
        let folder = if head.is_empty() { "gatehook.kept" } else { "hooks" };
        assert_eq!(lines(&home, "ran"), [format!("pre-commit {folder} 0"), format!("commit-msg {folder} 1")], "{head}");
        assert_eq!(commit(&home, "b.txt", &["-m", "the launch codes"]).code, 1);
        // A no of theirs is one, and nobody is asked after it.
        home.file("repo/refuse", "");
        let refused = commit(&home, "b.txt", &["-m", "hello"]);
        assert_eq!((refused.code, count(&home)), (1, 1), "{head}: {}", refused.shown());

        assert_eq!(gatehook(&home, "repo", &["git", "uninstall"]).code, 0);
        for name in ["pre-commit", "commit-msg"] {
            let path = home.path().join(path).join(name);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), script);
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        }
        assert!(!home.path().join(path).join("gatehook.kept").exists());
        std::fs::remove_file(home.path().join("repo/refuse")).unwrap();
        assert_eq!(commit(&home, "b.txt", &["-m", "the launch codes"]).code, 0);
    }
}

#[test]
fn a_hook_that_is_a_link_or_is_off_comes_back_as_it_was() {
    let home = repository(GUARD);
    hook(
        &home,
        "repo/tools/check.sh",
        "#!/usr/bin/env python3\nimport os\nopen(os.environ['TMPDIR'] + '/ran', 'a').write('link\\n')\n",
    );
    let hooks = home.path().join("repo/.git/hooks");
    symlink("../../tools/check.sh", hooks.join("pre-commit")).unwrap();
    std::fs::write(hooks.join("commit-msg"), "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(hooks.join("commit-msg"), std::fs::Permissions::from_mode(0o644)).unwrap();
    install(&home);
    assert_eq!(commit(&home, "a.txt", &["-m", "hello"]).code, 0);
    assert_eq!(lines(&home, "ran"), ["link"]);
    assert_eq!(gatehook(&home, "repo", &["git", "uninstall"]).code, 0);
    assert_eq!(std::fs::read_link(hooks.join("pre-commit")).unwrap(), Path::new("../../tools/check.sh"));
    assert_eq!(hooks.join("commit-msg").metadata().unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn a_folder_of_husky_is_chained_under_its_own_name() {
    let home = repository(GUARD);
    // As husky 9 lays it out: a stub for each hook, which looks for the people's own by its name.
    let stub = "#!/usr/bin/env sh\n. \"$(dirname \"$0\")/h\"";
    let h = "n=$(basename \"$0\")\ns=$(dirname \"$(dirname \"$0\")\")/$n\n[ ! -f \"$s\" ] && exit 0\nsh -e \"$s\" \"$@\"\nexit $?\n";
    home.file("repo/.husky/_/h", h);
    home.file("repo/.husky/_/.gitignore", "*");
    hook(&home, "repo/.husky/_/pre-commit", stub);
    hook(&home, "repo/.husky/_/commit-msg", stub);
    home.file("repo/.husky/pre-commit", "echo husky >> \"$TMPDIR/ran\"\n");
    git(&home, &["-C", "repo", "config", "core.hooksPath", ".husky/_"]);
    std::fs::create_dir(home.path().join("repo/sub")).unwrap();
    let installed = gatehook(&home, "repo/sub", &["git", "install"]);
    assert_eq!(installed.code, 0, "{}", installed.shown());
    assert!(installed.err.contains("husky"), "{}", installed.shown());
    assert_eq!(commit(&home, "a.txt", &["-m", "hello"]).code, 0);
    assert_eq!(lines(&home, "ran"), ["husky"]);
    assert_eq!(commit(&home, "b.txt", &["-m", "the launch codes"]).code, 1);
    // husky has written its folder anew: what is kept is the same.
    hook(&home, "repo/.husky/_/pre-commit", stub);
    install(&home);
    assert_eq!(commit(&home, "b.txt", &["-m", "hello"]).code, 0);
    assert_eq!(lines(&home, "ran"), ["husky"; 3]);
}

#[test]
fn what_others_use_is_not_changed_unless_somebody_says_so() {
    let home = repository(GUARD);
    hook(&home, "repo/.githooks/pre-commit", "#!/bin/sh\nexit 0\n");
    git(&home, &["-C", "repo", "config", "core.hooksPath", ".githooks"]);
    git(&home, &["-C", "repo", "add", ".githooks"]);
    git(&home, &["-C", "repo", "commit", "-qm", "hooks"]);
    let refused = gatehook(&home, "repo", &["git", "install"]);
    assert_eq!(refused.code, 1, "{}", refused.shown());
    assert!(refused.err.contains("would change for everybody"), "{}", refused.shown());

    let shared = home.path().join("shared");
    git(&home, &["-C", "repo", "config", "core.hooksPath", shared.to_str().unwrap()]);
    let refused = gatehook(&home, "repo", &["git", "install"]);
    assert_eq!(refused.code, 1, "{}", refused.shown());
    assert!(refused.err.contains("other repositories"), "{}", refused.shown());
    assert!(!shared.exists());
    assert_eq!(gatehook(&home, "repo", &["git", "install", "--force"]).code, 0);
    assert_eq!(commit(&home, "b.txt", &["-m", "the launch codes"]).code, 1);
}

#[test]
fn of_two_hooks_to_keep_none_is_lost() {
    let home = repository(GUARD);
    hook(&home, "repo/.git/hooks/pre-commit", "#!/bin/sh\n# one\n");
    install(&home);
    hook(&home, "repo/.git/hooks/pre-commit", "#!/bin/sh\n# two\n");
    let refused = gatehook(&home, "repo", &["git", "install"]);
    assert_eq!(refused.code, 1, "{}", refused.shown());
    assert!(refused.err.contains("two hooks to keep"), "{}", refused.shown());
    assert_eq!(gatehook(&home, "repo", &["git", "install", "--force"]).code, 0);
    let kept =
        |name: &str| std::fs::read_to_string(home.path().join("repo/.git/hooks/gatehook.kept").join(name)).unwrap();
    assert_eq!((kept("pre-commit"), kept("pre-commit.1")), ("#!/bin/sh\n# two\n".into(), "#!/bin/sh\n# one\n".into()));
}

#[test]
fn a_guard_that_cannot_run_makes_no_commit_unless_somebody_says_so() {
    let home = repository("hooks: 3");
    install(&home);
    let closed = commit(&home, "a.txt", &["-m", "hello"]);
    assert_eq!((closed.code, count(&home)), (1, 0), "{}", closed.shown());
    assert!(closed.err.contains("gatehook.yaml") && closed.err.contains("so no commit is made"), "{}", closed.shown());
    git(&home, &["-C", "repo", "config", "gatehook.onError", "warn"]);
    let open = commit(&home, "a.txt", &["-m", "hello"]);
    assert_eq!(open.code, 0, "{}", open.shown());
    assert!(open.err.contains("the commit goes on"), "{}", open.shown());
    // A no stays one.
    home.file("home/.config/gatehook/gatehook.yaml", GUARD);
    assert_eq!(commit(&home, "b.txt", &["-m", "the launch codes"]).code, 1);
}

#[test]
fn a_program_that_is_gone_makes_no_commit() {
    let home = repository(GUARD);
    install(&home);
    for stage in ["pre-commit", "commit-msg"] {
        let path = home.path().join("repo/.git/hooks").join(stage);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(env!("CARGO_BIN_EXE_gatehook")), "{text}");
        std::fs::write(&path, text.replace(env!("CARGO_BIN_EXE_gatehook"), "/nowhere/gatehook")).unwrap();
    }
    home.file("repo/a.txt", "a");
    git(&home, &["-C", "repo", "add", "."]);
    let mut without = command(&home, "git", "repo");
    let ran = ran(without.env("PATH", "/usr/local/bin:/usr/bin:/bin").args(["commit", "-m", "hello"]));
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert!(ran.err.contains("so no commit is made"), "{}", ran.shown());
    // On PATH it is found.
    assert_eq!(commit(&home, "b.txt", &["-m", "hello"]).code, 0);
}

#[test]
fn all_working_trees_share_the_hooks_and_each_has_its_own_branch() {
    let home = repository(KEEPER);
    commit(&home, "a.txt", &["-qm", "first"]);
    git(&home, &["-C", "repo", "worktree", "add", "-q", "-b", "side", "../tree"]);
    let installed = gatehook(&home, "tree", &["git", "install"]);
    assert_eq!(installed.code, 0, "{}", installed.shown());
    home.file("tree/b.txt", "b");
    git(&home, &["-C", "tree", "add", "."]);
    assert_eq!(ran(command(&home, "git", "tree").args(["commit", "-qm", "b"])).code, 0);
    assert_eq!((&kept(&home)["branch"], &kept(&home)["files"]), (&json!("side"), &json!(["b.txt"])));
    assert_eq!(commit(&home, "c.txt", &["-m", "c"]).code, 0);
    assert_eq!(kept(&home)["branch"], "main");
}

#[test]
fn hooks_of_the_project_judge_its_commits_once_they_are_trusted() {
    let home = repository("hooks: {}");
    home.file("repo/gatehook.yaml", GUARD);
    install(&home);
    let open = commit(&home, "a.txt", &["-m", "the launch codes"]);
    assert_eq!(open.code, 0, "{}", open.shown());
    assert!(open.err.contains("1 hook is not in force"), "{}", open.shown());
    assert_eq!(gatehook(&home, "repo", &["hooks", "trust", "--yes"]).code, 0);
    assert_eq!(commit(&home, "b.txt", &["-m", "the launch codes"]).code, 1);
}

#[test]
fn there_is_no_commit_outside_of_a_repository() {
    let home = Home::new();
    let mut command = home.gatehook();
    let ran = ran(command.env("GIT_CEILING_DIRECTORIES", home.path()).args(["git", "install"]));
    assert_eq!(ran.code, 71, "{}", ran.shown());
    assert!(ran.err.contains("not a git repository"), "{}", ran.shown());
    let home = repository(GUARD);
    let ran = gatehook(&home, "repo", &["git", "uninstall"]);
    assert_eq!((ran.code, ran.err.contains("no hook of")), (0, true), "{}", ran.shown());
}
