use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use proptest::prelude::*;
use tempfile::TempDir;

use super::folder::Folder;
use super::ignored::Ignored;
use super::*;

/// Longer than any of these tests may wait.
const PATIENCE: Duration = Duration::from_secs(20);

fn workspace(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    files.iter().for_each(|(name, text)| write(&root, name, text));
    (folder, root)
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// What a session would be told, by names.
fn names(root: &Path, changes: impl IntoIterator<Item = FileChange>) -> Vec<(String, &'static str)> {
    let name = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    changes.into_iter().map(|change| (name(&change.path), change.kind.name())).collect()
}

/// A workspace that somebody really looks at.
struct Looked {
    _folder: TempDir,
    root: PathBuf,
    changes: Changes,
    _watching: Watching,
}

impl Looked {
    fn at(files: &[(&str, &str)]) -> Self {
        let (folder, root) = workspace(files);
        let changes = Changes::default();
        let watching = Watching::begin(&root, Some(&root.join("own")), &changes).unwrap();
        Self { _folder: folder, root, changes, _watching: watching }
    }

    /// What is told until all of these are.
    async fn told(&self, wanted: &[(&str, &str)]) -> BTreeSet<(String, &'static str)> {
        let (mut told, begun) = (BTreeSet::new(), Instant::now());
        let is_told = |told: &BTreeSet<(String, &str)>, name: &str, kind: &str| {
            told.iter().any(|(told_name, told_kind)| told_name == name && *told_kind == kind)
        };
        while begun.elapsed() < PATIENCE && !wanted.iter().all(|(name, kind)| is_told(&told, name, kind)) {
            self.changes.settled().await;
            told.extend(names(&self.root, self.changes.take().changes));
        }
        told
    }
}

fn set(of: &[(&str, &'static str)]) -> BTreeSet<(String, &'static str)> {
    of.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
}

#[tokio::test]
async fn what_others_do_is_told_and_what_is_ignored_is_not() {
    let looked = Looked::at(&[
        (".gitignore", "target/\n*.log\n"),
        (".ollamaignore", "secret.txt\n"),
        ("kept.txt", "1"),
        ("gone.txt", "1"),
        ("src/a.rs", "1"),
        ("target/x", "1"),
        (".git/HEAD", "ref: refs/heads/main\n"),
    ]);
    let root = &looked.root;
    write(root, "target/y", "2");
    write(root, "debug.log", "2");
    write(root, "own/kept.db", "2");
    write(root, "secret.txt", "2");
    write(root, ".git/index", "2");
    write(root, "kept.txt", "2");
    write(root, "src/b.rs", "2");
    write(root, "new/deep/c.rs", "2");
    std::fs::remove_file(root.join("gone.txt")).unwrap();
    let all =
        [("kept.txt", "modified"), ("src/b.rs", "created"), ("new/deep/c.rs", "created"), ("gone.txt", "deleted")];
    assert_eq!(looked.told(&all).await, set(&all));
}

#[tokio::test]
async fn a_file_that_is_replaced_is_modified_and_what_only_passes_by_is_nothing() {
    let looked = Looked::at(&[("a.txt", "1")]);
    write(&looked.root, "a.txt.tmp", "2");
    std::fs::rename(looked.root.join("a.txt.tmp"), looked.root.join("a.txt")).unwrap();
    assert_eq!(looked.told(&[("a.txt", "modified")]).await, set(&[("a.txt", "modified")]));
}

#[tokio::test]
async fn what_a_tool_of_the_session_did_is_not_told_again_and_what_follows_is() {
    let looked = Looked::at(&[("a.txt", "1"), ("b.txt", "1")]);
    write(&looked.root, "a.txt", "22");
    looked.changes.own(&looked.root.join("a.txt"));
    write(&looked.root, "b.txt", "22");
    assert_eq!(looked.told(&[("b.txt", "modified")]).await, set(&[("b.txt", "modified")]));
    write(&looked.root, "a.txt", "333");
    assert_eq!(looked.told(&[("a.txt", "modified")]).await, set(&[("a.txt", "modified")]));
}

#[tokio::test]
async fn a_folder_that_is_made_again_is_looked_at_again() {
    let looked = Looked::at(&[("dir/a.txt", "1")]);
    std::fs::rename(looked.root.join("dir"), looked.root.join("other")).unwrap();
    let moved = [("dir/a.txt", "deleted"), ("other/a.txt", "created")];
    assert_eq!(looked.told(&moved).await, set(&moved));
    write(&looked.root, "dir/b.txt", "1");
    assert_eq!(looked.told(&[("dir/b.txt", "created")]).await, set(&[("dir/b.txt", "created")]));
    write(&looked.root, "other/a.txt", "2");
    assert_eq!(looked.told(&[("other/a.txt", "modified")]).await, set(&[("other/a.txt", "modified")]));
}

#[test]
fn rules_hold_from_their_folder_down_and_the_nearest_has_the_last_word() {
    let (_folder, root) = workspace(&[
        (".git/HEAD", ""),
        (".git/info/exclude", "mine.txt\n"),
        (".gitignore", "*.gen\n/top.txt\n"),
        ("sub/.gitignore", "!kept.gen\nbuild/\n"),
        ("sub/.ollamaignore", "private/\n"),
        ("sub/build/x", ""),
    ]);
    let mut ignored = Ignored::of(&root.join("sub"), None);
    for (name, is_folder, expected) in [
        ("sub/a.gen", false, true),
        ("sub/kept.gen", false, false),
        ("sub/build", true, true),
        ("sub/build", false, false),
        ("sub/private", true, true),
        ("sub/mine.txt", false, true),
        ("sub/top.txt", false, false),
        ("sub/.git", true, true),
        ("sub/a.rs", false, false),
    ] {
        assert_eq!(ignored.has(&root.join(name), is_folder), expected, "{name}");
    }
    write(&root, "sub/.gitignore", "a.rs\n");
    ignored.read(&root.join("sub"));
    assert!(ignored.has(&root.join("sub/a.rs"), false));
}

#[test]
fn more_changes_than_may_wait_are_counted() {
    let changes = Changes::default();
    for number in 0..BOUND + 3 {
        changes.put(FileChange { path: format!("/w/{number}").into(), kind: ChangeKind::Created, size: 0 });
    }
    let settled = changes.take();
    assert_eq!((settled.changes.len(), settled.missed), (BOUND, 3));
    assert_eq!(changes.take(), Settled::default());
}

#[test]
fn a_file_that_never_rests_is_told_all_the_same() {
    let (_folder, root) = workspace(&[("a.log", "1")]);
    let changes = Changes::default();
    let mut folder = Folder::of(&root, None, changes.clone());
    folder.learn(&root, None, |_| {});
    let begun = Instant::now();
    for tenth in 0..=20 {
        let now = begun + Duration::from_millis(100 * tenth);
        folder.touch(root.join("a.log"), now);
        folder.settle(now);
    }
    assert_eq!(names(&root, changes.take().changes), [("a.log".to_owned(), "modified")]);
}

/// Something that happens to a file.
#[derive(Debug, Clone)]
enum Happens {
    Write(usize),
    Delete(usize),
    /// Time passes.
    Rest,
    /// The session takes what has settled.
    Take,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => (0..4usize).prop_map(Happens::Write),
        2 => (0..4usize).prop_map(Happens::Delete),
        1 => Just(Happens::Rest),
        1 => Just(Happens::Take),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whoever believes what is told knows in the end what is there.
    #[test]
    fn what_is_told_leads_from_what_was_there_to_what_is(all in prop::collection::vec(happens(), 0..24), was in 0..16u8) {
        let (_folder, root) = workspace(&[]);
        let name = |number: usize| format!("{number}.txt");
        let mut believed: BTreeMap<String, ()> = BTreeMap::new();
        for number in (0..4).filter(|number| was & (1 << number) != 0) {
            write(&root, &name(number), "0");
            believed.insert(name(number), ());
        }
        let changes = Changes::default();
        let mut folder = Folder::of(&root, None, changes.clone());
        folder.learn(&root, None, |_| {});
        let mut now = Instant::now();
        let mut take = |folder: &mut Folder, is_end: bool| {
            if is_end {
                now += DEBOUNCE;
                folder.settle(now);
            }
            for (name, kind) in names(&root, changes.take().changes) {
                let before = believed.contains_key(&name);
                let fits = match kind {
                    "created" => !before && believed.insert(name, ()).is_none(),
                    "deleted" => believed.remove(&name).is_some(),
                    _ => before,
                };
                assert!(fits, "{kind}");
            }
            believed.keys().cloned().collect::<Vec<_>>()
        };
        let mut later = Instant::now();
        for happens in &all {
            match happens {
                Happens::Write(number) => {
                    write(&root, &name(*number), "1");
                    folder.touch(root.join(name(*number)), later);
                }
                Happens::Delete(number) => {
                    let _ = std::fs::remove_file(root.join(name(*number)));
                    folder.touch(root.join(name(*number)), later);
                }
                Happens::Rest => {
                    later += DEBOUNCE;
                    folder.settle(later);
                }
                Happens::Take => drop(take(&mut folder, false)),
            }
        }
        folder.settle(later + DEBOUNCE);
        let known = take(&mut folder, true);
        let there: Vec<String> = (0..4).map(name).filter(|name| root.join(name).exists()).collect();
        prop_assert_eq!(known, there);
    }
}
