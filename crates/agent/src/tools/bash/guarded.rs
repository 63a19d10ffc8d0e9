//! The guard's own files in the workspace: what a program has made of them is taken back.
//!
//! A sandbox bounds folders, and the workspace is one that may be written; the name of a file that a program computes
//! cannot be seen in its line. So these files are read before it runs, and put back behind it. Until then a project's
//! changed hooks are not in force: they need a new approval.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// What is looked after, from the workspace.
const NAMES: [&str; 8] = [
    "gatehook.yaml",
    "gatehook.yml",
    "gatehook.json",
    "gatehook.toml",
    ".gatehook",
    ".ollama/settings.json",
    ".ollama/hooks",
    ".ollm/hooks",
];

/// The folders above them in the workspace.
const ABOVE: [&str; 2] = [".ollama", ".ollm"];

/// How many files there may be, how large one, and how deep folders.
const FILES: usize = 1024;
const BYTES: u64 = 1 << 20;
const DEPTH: usize = 8;

/// The files as they were.
pub(super) struct Guarded {
    workspace: PathBuf,
    before: BTreeMap<PathBuf, Entry>,
    /// Folders above them that were links before.
    links: Vec<PathBuf>,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    File {
        content: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    Folder,
    /// Neither, or too large to be kept.
    Other,
}

impl Guarded {
    /// Reads them. Blocks.
    pub(super) fn look(workspace: &Path) -> Self {
        let links = ABOVE.map(|name| workspace.join(name)).into_iter().filter(|above| above.is_symlink()).collect();
        Self { workspace: workspace.to_owned(), before: entries(workspace), links }
    }

    /// Puts back what is not as it was; the paths, from the workspace. Blocks.
    pub(super) fn restore(&self) -> Vec<PathBuf> {
        self.straighten();
        let after = entries(&self.workspace);
        let mut changed = Vec::new();
        // What is new goes, the deepest first.
        for path in after.keys().rev().filter(|path| !self.before.contains_key(*path)) {
            remove(&self.workspace.join(path));
            changed.push(path.clone());
        }
        for (path, entry) in self.before.iter().filter(|(path, entry)| after.get(*path) != Some(*entry)) {
            if after.contains_key(path) {
                remove(&self.workspace.join(path));
            }
            // One that cannot be put back is named all the same.
            let _ = put(&self.workspace, path, entry);
            changed.push(path.clone());
        }
        changed.sort();
        changed
    }
}

impl Guarded {
    /// Takes away links in the place of folders above what is looked after: nothing is read, or removed, through them.
    fn straighten(&self) {
        for above in ABOVE.map(|name| self.workspace.join(name)) {
            let was_link = self.links.contains(&above);
            if !was_link && above.is_symlink() {
                let _ = fs::remove_file(above);
            }
        }
    }
}

fn entries(workspace: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut entries = BTreeMap::new();
    for name in NAMES {
        add(workspace, Path::new(name), 0, &mut entries);
    }
    entries
}

fn add(workspace: &Path, path: &Path, depth: usize, entries: &mut BTreeMap<PathBuf, Entry>) {
    let at = workspace.join(path);
    let Ok(meta) = fs::symlink_metadata(&at) else { return };
    if entries.len() >= FILES || depth > DEPTH {
        return;
    }
    let entry = if meta.is_dir() {
        Entry::Folder
    } else if meta.is_symlink() {
        fs::read_link(&at).map_or(Entry::Other, Entry::Link)
    } else if meta.is_file() && meta.len() <= BYTES {
        let mode = meta.permissions().mode();
        read(&at).map_or(Entry::Other, |content| Entry::File { content, mode })
    } else {
        Entry::Other
    };
    let is_folder = entry == Entry::Folder;
    entries.insert(path.to_owned(), entry);
    if is_folder {
        for found in fs::read_dir(&at).into_iter().flatten().flatten() {
            add(workspace, &path.join(found.file_name()), depth + 1, entries);
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // What has become a pipe since must not block.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let mut content = Vec::new();
    file.take(BYTES + 1).read_to_end(&mut content)?;
    Ok(content)
}

fn remove(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    // What is left is seen again behind the next program.
    let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// Puts an entry at a path of the workspace. A folder above it that has become a link is a folder again.
fn put(workspace: &Path, path: &Path, entry: &Entry) -> io::Result<()> {
    let above: Vec<&Path> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    for folder in above.into_iter().rev().map(|above| workspace.join(above)) {
        if fs::symlink_metadata(&folder).is_ok_and(|meta| !meta.is_dir()) {
            fs::remove_file(&folder)?;
        }
        fs::create_dir_all(&folder)?;
    }
    let path = &workspace.join(path);
    match entry {
        Entry::File { content, mode } => {
            fs::write(path, content)?;
            fs::set_permissions(path, fs::Permissions::from_mode(*mode))
        }
        Entry::Link(to) => std::os::unix::fs::symlink(to, path),
        Entry::Folder => fs::create_dir_all(path),
        Entry::Other => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_made_or_taken_away_is_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at(".gatehook/hooks")).unwrap();
        for (name, text) in [("gatehook.yaml", "hooks: {}"), (".gatehook/hooks/a.sh", "a"), (".gatehook/b.sh", "b")] {
            fs::write(at(name), text).unwrap();
        }
        fs::write(at("notes.txt"), "mine").unwrap();
        let guarded = Guarded::look(folder.path());
        assert!(guarded.restore().is_empty());

        fs::write(at("gatehook.yaml"), "hooks: false").unwrap();
        fs::write(at("gatehook.json"), "{}").unwrap();
        fs::remove_dir_all(at(".gatehook/hooks")).unwrap();
        fs::remove_file(at(".gatehook/b.sh")).unwrap();
        fs::create_dir(at(".gatehook/b.sh")).unwrap();
        fs::write(at("notes.txt"), "theirs").unwrap();
        let changed = guarded.restore();
        let changed: Vec<_> = changed.iter().map(|path| path.to_str().unwrap()).collect();
        let expected = [".gatehook/b.sh", ".gatehook/hooks", ".gatehook/hooks/a.sh", "gatehook.json", "gatehook.yaml"];
        assert_eq!(changed, expected);
        for (name, text) in [("gatehook.yaml", "hooks: {}"), (".gatehook/hooks/a.sh", "a"), (".gatehook/b.sh", "b")] {
            assert_eq!(fs::read_to_string(at(name)).unwrap(), text);
        }
        assert!(!at("gatehook.json").exists());
        assert_eq!(fs::read_to_string(at("notes.txt")).unwrap(), "theirs");
    }

    #[test]
    fn a_folder_that_became_a_link_leads_nowhere() {
        for (name, file) in [(".gatehook", "a.sh"), (".ollama", "settings.json")] {
            let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let at = folder.path().join(name);
            fs::create_dir(&at).unwrap();
            fs::write(at.join(file), "ours").unwrap();
            fs::write(outside.path().join(file), "theirs").unwrap();
            let guarded = Guarded::look(folder.path());
            fs::remove_dir_all(&at).unwrap();
            std::os::unix::fs::symlink(outside.path(), &at).unwrap();
            guarded.restore();
            assert_eq!(fs::read_to_string(outside.path().join(file)).unwrap(), "theirs", "{name}");
            assert_eq!(fs::read_to_string(at.join(file)).unwrap(), "ours", "{name}");
            assert!(!at.is_symlink(), "{name}");
        }
    }
}
