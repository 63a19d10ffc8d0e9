use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};

use super::*;
use crate::tools::aside::Stop;
use crate::tools::tests::Stage;
use crate::tools::{ChangeKind, ToolErrorKind};

/// A workspace with all that is hostile in it.
fn hostile() -> Stage {
    let stage = Stage::new();
    stage.write("a.txt", "inside\n");
    stage.write("dir/b.txt", "inside too\n");
    let outside = stage.outside.clone();
    for (target, link) in [
        (outside.join("secret"), "link"),
        (outside.clone(), "linked"),
        ("../outside/secret".into(), "up"),
        ("../../../../../../../../../../../etc/passwd".into(), "far"),
        ("/proc/self/root".into(), "root"),
        ("/proc/self/cwd".into(), "cwd"),
        ("circle2".into(), "circle1"),
        ("circle1".into(), "circle2"),
        ("itself/x".into(), "itself"),
        (outside.join("new"), "dangling"),
        (stage.path("dir"), "absolute"),
        ("dir/../a.txt".into(), "inner"),
        ("linked/../workspace/a.txt".into(), "out-and-in"),
    ] {
        symlink(target, stage.path(link)).unwrap();
    }
    for (name, kind) in [("pipe", FileType::Fifo), ("socket", FileType::Socket)] {
        mknodat(CWD, stage.path(name), kind, Mode::from_raw_mode(0o666), 0).unwrap();
    }
    stage
}

/// Paths that lead outside, however they are written.
fn paths_outside(stage: &Stage) -> Vec<String> {
    let outside = stage.outside.display();
    let mut paths: Vec<String> = [
        "link",
        "linked/secret",
        "linked/new",
        "up",
        "far",
        "root/etc/passwd",
        "cwd/Cargo.toml",
        "dangling",
        "../outside/secret",
        "dir/../../outside/secret",
        "absolute/../../outside/secret",
        "nowhere/../../outside/secret",
        "/etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/environ",
        "/proc/1/root/etc/passwd",
        "/dev/null",
        "..",
        "/",
    ]
    .map(str::to_owned)
    .into();
    paths.push(format!("{outside}/secret"));
    paths.push(format!("{outside}/../outside/./secret"));
    paths.push(format!("{}/../outside/secret", stage.scene.workspace.display()));
    paths
}

fn calls(path: &str) -> [(&'static str, Value); 6] {
    [
        ("read", json!({"path": path})),
        ("write", json!({"path": path, "content": "x"})),
        ("edit", json!({"path": path, "old_string": "secret", "new_string": "x"})),
        ("list", json!({"path": path})),
        ("glob", json!({"pattern": "*", "path": path})),
        ("grep", json!({"pattern": "e", "path": path})),
    ]
}

#[tokio::test]
async fn no_path_leads_outside() {
    let stage = hostile();
    for path in paths_outside(&stage) {
        for (tool, arguments) in calls(&path) {
            let (kind, text) = stage.refused(tool, arguments).await;
            assert_eq!(kind, ToolErrorKind::Permission, "{tool} {path}: {text}");
            assert!(text.contains("is outside of the workspace"), "{tool} {path}: {text}");
        }
    }
    assert_eq!(std::fs::read_to_string(stage.outside.join("secret")).unwrap(), "the secret\n");
    assert_eq!(std::fs::read_dir(&stage.outside).unwrap().count(), 1);
}

#[tokio::test]
async fn links_within_the_workspace_are_followed() {
    let stage = hostile();
    for path in ["inner", "absolute/../a.txt", "out-and-in", "./dir/.././a.txt", "nowhere/../a.txt"] {
        assert!(stage.done("read", json!({"path": path})).await.contains("inside"), "{path}");
    }
    let absolute = stage.path("absolute/b.txt").display().to_string();
    assert!(stage.done("read", json!({"path": absolute})).await.contains("inside too"));
    stage.done("write", json!({"path": "inner", "content": "changed\n"})).await;
    assert_eq!(stage.read("a.txt"), "changed\n");
    assert!(stage.path("inner").is_symlink());
}

#[tokio::test]
async fn what_is_no_file_is_refused_and_not_waited_for() {
    let stage = hostile();
    for path in ["pipe", "socket"] {
        for (tool, arguments) in calls(path) {
            let (kind, text) = stage.refused(tool, arguments).await;
            assert_eq!(kind, ToolErrorKind::InvalidInput, "{tool} {path}: {text}");
        }
    }
    for path in ["circle1", "itself", "circle2/x"] {
        for (tool, arguments) in calls(path) {
            let (kind, text) = stage.refused(tool, arguments).await;
            assert_eq!((kind, text.contains("circle")), (ToolErrorKind::InvalidInput, true), "{tool} {path}: {text}");
        }
    }
    for path in ["", "a\0b", "~/x", &"x/".repeat(5000), &"x".repeat(300)] {
        let (kind, text) = stage.refused("read", json!({ "path": path })).await;
        assert_eq!(kind, ToolErrorKind::InvalidInput, "{path}: {text}");
    }
    // Walks pass all of this by.
    assert!(stage.done("grep", json!({"pattern": "."})).await.contains("a.txt"));
    assert!(stage.done("glob", json!({"pattern": "**/*"})).await.contains("dir/b.txt"));
    let tree = stage.done("list", json!({})).await;
    assert!(tree.contains("  linked@\n") && tree.contains("  pipe (no file)\n") && !tree.contains("secret"), "{tree}");
}

#[tokio::test]
async fn a_device_in_the_workspace_is_not_opened() {
    let stage = Stage::new();
    let made = mknodat(CWD, stage.path("zero"), FileType::CharacterDevice, Mode::from_raw_mode(0o666), 0x105);
    if made.is_err() {
        assert!(!rustix::process::geteuid().is_root(), "root makes devices: {made:?}");
        return;
    }
    for (tool, arguments) in calls("zero") {
        assert!(
            stage.refused(tool, arguments).await.1.contains("device") || tool == "list" || tool == "glob",
            "{tool}"
        );
    }
}

#[tokio::test]
async fn folders_that_are_allowed_are_as_the_workspace() {
    let mut stage = hostile();
    stage.scene.allowed = Arc::from([stage.outside.clone()]);
    assert!(stage.done("read", json!({"path": "link"})).await.contains("the secret"));
    stage.done("write", json!({"path": stage.outside.join("n/e/w"), "content": "x"})).await;
    assert_eq!(std::fs::read_to_string(stage.outside.join("n/e/w")).unwrap(), "x");
    stage.done("write", json!({"path": "dangling", "content": "y"})).await;
    assert_eq!(std::fs::read_to_string(stage.outside.join("new")).unwrap(), "y");
    assert!(stage.done("list", json!({"path": "linked"})).await.contains("secret"));
    assert_eq!(stage.refused("read", json!({"path": "far"})).await.0, ToolErrorKind::Permission);
}

#[tokio::test]
async fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
    let stage = Stage::new();
    stage.write("run.sh", "old\n");
    std::fs::set_permissions(stage.path("run.sh"), std::fs::Permissions::from_mode(0o751)).unwrap();
    let opened = std::fs::File::open(stage.path("run.sh")).unwrap();
    let output = stage.call("write", json!({"path": "run.sh", "content": "new\n"})).await;
    assert_eq!(output.text, "replaced run.sh: 1 lines, 4 bytes");
    assert_eq!(output.changes[0].kind, ChangeKind::Modified);
    assert_eq!(output.diff.unwrap(), "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-old\n+new\n");
    assert_eq!(std::fs::metadata(stage.path("run.sh")).unwrap().permissions().mode() & 0o7777, 0o751);
    assert_eq!(std::io::read_to_string(opened).unwrap(), "old\n", "who has it open reads the old one");

    let output = stage.call("write", json!({"path": "deep/er/new.txt", "content": ""})).await;
    assert_eq!(
        output.changes,
        [crate::tools::FileChange { path: stage.path("deep/er/new.txt"), kind: ChangeKind::Created, size: 0 }]
    );
    let output = stage.call("write", json!({"path": "run.sh", "content": "new\n"})).await;
    assert!(output.changes.is_empty() && output.diff.is_none() && output.error.is_none());
    for wrong in ["deep", "run.sh/below", "."] {
        stage.refused("write", json!({"path": wrong, "content": "x"})).await;
    }
    let names: Vec<_> = std::fs::read_dir(stage.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing is left beside: {names:?}");
}

#[tokio::test]
async fn the_guards_own_configuration_is_not_written() {
    let stage = Stage::new();
    stage.write("gatehook.yaml", "hooks: {}\n");
    symlink("gatehook.yaml", stage.path("innocent.txt")).unwrap();
    for path in ["gatehook.yaml", "innocent.txt", ".gatehook/new", "sub/GATEHOOK.JSON", ".ollama/hooks/x.sh"] {
        let (kind, text) = stage.refused("write", json!({"path": path, "content": "x"})).await;
        assert_eq!((kind, text.contains("guard's own")), (ToolErrorKind::Permission, true), "{path}: {text}");
    }
    let edit = json!({"path": "innocent.txt", "old_string": "hooks", "new_string": "x"});
    assert_eq!(stage.refused("edit", edit).await.0, ToolErrorKind::Permission);
    assert_eq!(stage.read("gatehook.yaml"), "hooks: {}\n");
}

#[tokio::test]
async fn what_ollamaignore_lists_is_left_alone() {
    let stage = Stage::new();
    stage.write(".ollamaignore", "# mine\nprivate/\n*.tmp\nsrc/gen*.rs\n/top.txt\n");
    stage.write("sub/.ollamaignore", "only-here\n!kept.tmp\n");
    let listed =
        ["private/a/b.txt", "x.tmp", "sub/y.tmp", "src/gen.rs", "src/gen/deep/z.rs", "top.txt", "sub/only-here"];
    let others = ["sub/kept.tmp", "only-here", "sub/top.txt", "src/main.rs", "a/private.txt"];
    for path in listed.iter().chain(&others) {
        stage.write(path, "needle\n");
    }
    symlink("x.tmp", stage.path("innocent")).unwrap();
    for path in listed.iter().chain(&["private", "private/new", "innocent", "./sub/../x.tmp"]) {
        for (tool, arguments) in calls(path) {
            let (kind, text) = stage.refused(tool, arguments).await;
            assert_eq!(
                (kind, text.contains(".ollamaignore")),
                (ToolErrorKind::Permission, true),
                "{tool} {path}: {text}"
            );
        }
    }
    let found = stage.done("grep", json!({"pattern": "needle"})).await;
    let names = stage.done("glob", json!({"pattern": "**/*"})).await;
    let tree = stage.done("list", json!({"depth": 9})).await;
    let has = |text: &str, path: &str| text.lines().any(|line| line == path);
    for path in listed {
        assert!(!has(&found, path) && !has(&names, path), "{path}: {found}{names}");
    }
    for path in others {
        assert!(has(&found, path) && has(&names, path), "{path}: {found}{names}");
        assert!(stage.done("read", json!({ "path": path })).await.contains("needle"));
    }
    assert!(!tree.contains("private/") && tree.contains("kept.tmp"), "{tree}");
    let (kind, _) = stage.refused("write", json!({"path": "sub/.ollamaignore", "content": ""})).await;
    assert_eq!(kind, ToolErrorKind::Permission);
}

#[tokio::test]
async fn a_list_that_cannot_be_read_keeps_everything() {
    let stage = Stage::new();
    stage.write("a.txt", "needle\n");
    mknodat(CWD, stage.path(".ollamaignore"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    for (tool, arguments) in calls("a.txt") {
        assert!(stage.refused(tool, arguments).await.1.contains("what it lists is not known"), "{tool}");
    }
    std::fs::remove_file(stage.path(".ollamaignore")).unwrap();
    stage.write("sub/b.txt", "needle\n");
    stage.write("sub/.ollamaignore", "x".repeat(100 << 10));
    mknodat(CWD, stage.path(".gitignore"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    let found = stage.done("grep", json!({"pattern": "needle"})).await;
    assert!(found.contains("a.txt") && !found.contains("b.txt") && found.contains("cannot be read"), "{found}");
}

#[tokio::test]
async fn searches_pass_over_what_git_ignores() {
    let stage = Stage::new();
    stage.write(".git/info/exclude", "excluded\n");
    stage.write(".git/config", "needle\n");
    stage.write(".gitignore", "target/\n*.log\n");
    stage.write("src/.gitignore", "!kept.log\n");
    let listed = ["target/x", "a.log", "src/b.log", "excluded", ".hidden/x"];
    let others = ["src/kept.log", "main.rs"];
    for path in listed.iter().chain(&others) {
        stage.write(path, "needle\n");
    }
    let found = stage.done("grep", json!({"pattern": "needle"})).await;
    let names = stage.done("glob", json!({"pattern": "**/*"})).await;
    for (path, is_met) in listed.map(|path| (path, false)).into_iter().chain(others.map(|path| (path, true))) {
        assert_eq!((found.contains(path), names.contains(path)), (is_met, is_met), "{path}: {found}{names}");
        assert!(stage.done("read", json!({ "path": path })).await.contains("needle"), "it is no secret: {path}");
    }
    // Whoever names it means it.
    assert!(stage.done("grep", json!({"pattern": "needle", "path": "target"})).await.contains("target/x"));
    assert!(stage.done("glob", json!({"pattern": ".hidden/*"})).await.contains(".hidden/x"));
    assert!(!stage.done("glob", json!({"pattern": ".*/**"})).await.contains(".git/"));
}

#[tokio::test]
async fn names_of_other_bytes_are_shown_in_one_line() {
    let stage = Stage::new();
    for name in [b"caf\xe9".as_slice(), b"two\nlines", b"esc\x1b[2J"] {
        std::fs::write(stage.path(".").join(std::ffi::OsStr::from_bytes(name)), "needle").unwrap();
    }
    for (tool, arguments) in
        [("list", json!({})), ("glob", json!({"pattern": "*"})), ("grep", json!({"pattern": "needle"}))]
    {
        let text = stage.done(tool, arguments).await;
        assert!(
            text.contains("caf\u{fffd}") && text.contains("two\\nlines") && text.contains("esc\\u{1b}[2J"),
            "{text}"
        );
        assert!(!text.contains('\x1b'), "{text:?}");
    }
}

#[tokio::test]
async fn a_link_that_is_swapped_in_leads_nowhere() {
    let stage = Stage::new();
    stage.write("dir/secret", "inside\n");
    let (dir, link) = (stage.path("dir"), stage.path("link"));
    symlink(&stage.outside, &link).unwrap();
    let done = tokio_util::sync::CancellationToken::new();
    let swapping = {
        let done = done.clone();
        std::thread::spawn(move || {
            while !done.is_cancelled() {
                renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        })
    };
    for way in [Way::Best, Way::Steps] {
        let workspace = Workspace { way, ..Workspace::of(&stage.scene) };
        for _ in 0..2000 {
            if let Ok(opened) = workspace.file("dir/secret") {
                assert_eq!(std::io::read_to_string(opened.file).unwrap(), "inside\n");
            }
            if let Ok(mut target) = workspace.target("dir/secret") {
                assert_ne!(target.read().unwrap_or_default(), b"the secret\n");
            }
        }
    }
    for number in 0..100 {
        stage.call("write", json!({"path": format!("dir/new{number}"), "content": "x"})).await;
        let found = stage.call("grep", json!({"pattern": "secret"})).await;
        assert!(!found.text.contains("the secret"), "{}", found.text);
    }
    done.cancel();
    swapping.join().unwrap();
    assert_eq!(std::fs::read_dir(&stage.outside).unwrap().count(), 1, "nothing was written outside");
}

#[tokio::test]
async fn two_writers_of_one_file_take_turns() {
    let stage = Arc::new(Stage::new());
    stage.write("count.txt", (0..20).map(|number| format!("<{number}>\n")).collect::<String>());
    let edits = (0..20).map(|number| {
        let stage = Arc::clone(&stage);
        let arguments =
            json!({"path": "count.txt", "old_string": format!("<{number}>"), "new_string": format!("done {number}")});
        tokio::spawn(async move { stage.done("edit", arguments).await })
    });
    for edit in edits.collect::<Vec<_>>() {
        edit.await.unwrap();
    }
    assert!(!stage.read("count.txt").contains('<'), "{}", stage.read("count.txt"));
}

#[tokio::test]
async fn a_call_that_is_given_up_changes_nothing() {
    let stage = Stage::new();
    stage.cancel.cancel();
    let output = stage.call("write", json!({"path": "a.txt", "content": "x"})).await;
    // It had not begun, or it was done: both are said truly.
    assert_eq!(output.error.is_some(), !stage.path("a.txt").exists(), "{}", output.text);
    let stop = Stop::after(Duration::ZERO);
    let workspace = Workspace::of(&stage.scene);
    let target = workspace.target("b.txt").unwrap();
    assert_eq!(target.put(b"x", &stop).unwrap_err().kind, ToolErrorKind::Timeout);
    assert!(!stage.path("b.txt").exists());
    let left = std::fs::read_dir(stage.path(".")).unwrap();
    assert!(left.flatten().all(|entry| entry.file_name() == "a.txt"), "nothing is left beside");
}

#[test]
fn what_is_changed_meanwhile_is_not_overwritten() {
    let stage = Stage::new();
    let workspace = Workspace::of(&stage.scene);
    let stop = Stop::after(Duration::from_secs(60));
    let target = workspace.target("new.txt").unwrap();
    stage.write("new.txt", "somebody else's");
    assert!(target.put(b"x", &stop).unwrap_err().text.contains("meanwhile"));
    let mut target = workspace.target("new.txt").unwrap();
    target.read().unwrap();
    stage.write("new.txt", "once more");
    assert!(target.put(b"x", &stop).unwrap_err().text.contains("meanwhile"));
    assert_eq!(stage.read("new.txt"), "once more");
}

/// Names that lead about: a few, so that they meet.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "..", ".", "d"]).prop_map(str::to_owned)
}

fn relative() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..5).prop_map(|names| names.join("/"))
}

/// Where a link leads: up, down, absolute, outside.
fn target() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => relative(),
        1 => relative().prop_map(|path| format!("WORKSPACE/{path}")),
        1 => relative().prop_map(|path| format!("OUTSIDE/{path}")),
        1 => Just("/proc/self/root".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_nesting_of_links_leads_outside(
        folders in prop::collection::vec(relative(), 0..4),
        files in prop::collection::vec(relative(), 0..4),
        links in prop::collection::vec((relative(), target()), 0..8),
        asked in prop::collection::vec(target(), 1..6),
    ) {
        let stage = Stage::new();
        let place = |path: &str| {
            path.replace("WORKSPACE", &stage.scene.workspace.to_string_lossy())
                .replace("OUTSIDE", &stage.outside.to_string_lossy())
        };
        std::fs::create_dir_all(stage.outside.join("a/b")).unwrap();
        for outside in ["b", "c", "d", "a/c", "a/b/c"] {
            std::fs::write(stage.outside.join(outside), "outside").unwrap();
        }
        // Made as far as that is possible: all folders before the first link, so that none of them is made outside.
        let at = |path: &str| stage.scene.workspace.join(path.replace("..", "d"));
        for folder in &folders {
            let _ = std::fs::create_dir_all(at(folder));
        }
        for path in files.iter().chain(links.iter().map(|(link, _)| link)) {
            let _ = std::fs::create_dir_all(at(path).parent().unwrap());
        }
        for file in &files {
            let _ = std::fs::write(at(file), "inside");
        }
        for (link, target) in &links {
            let _ = symlink(place(target), at(link));
        }
        let before = count(&stage.outside);
        for asked in asked {
            let asked = place(&asked);
            let real = stage.scene.workspace.join(&asked).canonicalize();
            for way in [Way::Best, Way::Steps] {
                let workspace = Workspace { way, ..Workspace::of(&stage.scene) };
                let found = workspace.find(&asked);
                match (&real, &found) {
                    // Where the kernel gets to is where we get, if it is inside, and nowhere else.
                    (Ok(real), Ok(Found::File(opened))) => prop_assert_eq!(real, &opened.path),
                    (Ok(real), Ok(Found::Folder(folder))) => prop_assert_eq!(real, &folder.path()),
                    (Ok(real), Err(refused)) => {
                        prop_assert!(!real.starts_with(&stage.scene.workspace), "{}: {:?}", asked, refused);
                    }
                    (Err(_), _) => {}
                }
                if let Ok(Found::File(opened)) = found {
                    prop_assert_eq!(std::io::read_to_string(opened.file).unwrap(), "inside", "{}", asked);
                }
                if let Ok(target) = workspace.target(&asked) {
                    prop_assert!(target.path.starts_with(&stage.scene.workspace));
                    let _ = target.put(b"inside", &Stop::after(Duration::from_secs(60)));
                }
            }
        }
        prop_assert_eq!(count(&stage.outside), before);
    }
}

/// What is in a folder, and what it holds.
fn count(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let held = match kind {
            kind if kind.is_dir() => {
                all.extend(count(&path));
                String::new()
            }
            kind if kind.is_symlink() => path.read_link().unwrap().display().to_string(),
            _ => std::fs::read_to_string(&path).unwrap(),
        };
        all.push((path, held));
    }
    all.sort();
    all
}
