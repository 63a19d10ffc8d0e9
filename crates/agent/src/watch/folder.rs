//! What is known of the workspace, and what becomes of it: paths that something happened to, until they are at rest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::ignored::Ignored;
use super::{Changes, DEBOUNCE, LONGEST, Stamp};
use crate::tools::{ChangeKind, FileChange};

/// Folders and files that are known.
pub(super) const MAX_FOLDERS: usize = 8192;
pub(super) const MAX_FILES: usize = 100_000;
/// Paths that something happened to and that are not at rest.
const MAX_MOVING: usize = 4096;

/// A workspace as it was last seen.
#[derive(Debug)]
pub(super) struct Folder {
    ignored: Ignored,
    folders: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    /// When something first and last happened to it.
    moving: BTreeMap<PathBuf, (Instant, Instant)>,
    changes: Changes,
    /// There is more than is looked at.
    pub(super) is_too_large: bool,
}

impl Folder {
    /// A workspace that nothing is known of yet.
    pub(super) fn of(root: &Path, without: Option<&Path>, changes: Changes) -> Self {
        let ignored = Ignored::of(root, without);
        let (folders, files, moving) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        Self { ignored, folders, files, moving, changes, is_too_large: false }
    }

    /// Learns what is in a folder and below; the folders that are to be listened to, outermost first. What is found is
    /// `new` since somebody looked, or it was there.
    pub(super) fn learn(&mut self, folder: &Path, new: Option<Instant>, mut listen: impl FnMut(&Path)) {
        let mut next = vec![folder.to_owned()];
        while let Some(folder) = next.pop() {
            if self.folders.len() >= MAX_FOLDERS {
                self.is_too_large = true;
                return;
            }
            // Listened to first: what comes while it is read is heard of, and then told once.
            listen(&folder);
            self.ignored.read(&folder);
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            self.folders.insert(folder);
            for entry in entries {
                let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
                if self.ignored.has(&path, kind.is_dir()) {
                    continue;
                }
                match (kind.is_dir(), new) {
                    (true, _) => next.push(path),
                    (false, Some(now)) => self.touch(path, now),
                    (false, None) => self.know(path),
                }
            }
        }
    }

    /// Whether this is a folder that was there.
    pub(super) fn has(&self, folder: &Path) -> bool {
        self.folders.contains(folder)
    }

    /// Whether something in a folder that is looked at is looked at itself.
    pub(super) fn is_seen(&self, path: &Path, is_folder: bool) -> bool {
        path.parent().is_some_and(|folder| self.has(folder)) && !self.ignored.has(path, is_folder)
    }

    /// Something happened to a file.
    pub(super) fn touch(&mut self, path: PathBuf, now: Instant) {
        if Ignored::is_rules(&path)
            && let Some(folder) = path.parent()
        {
            self.ignored.read(folder);
        }
        if self.moving.len() >= MAX_MOVING && !self.moving.contains_key(&path) {
            return self.changes.miss();
        }
        self.moving.entry(path).and_modify(|(_, last)| *last = now).or_insert((now, now));
        self.changes.moving(true);
    }

    /// A folder is gone, and all that was in it; the folders that nobody need listen to.
    pub(super) fn gone(&mut self, folder: &Path, now: Instant) -> Vec<PathBuf> {
        let below = |path: &&PathBuf| path.starts_with(folder);
        let folders: Vec<PathBuf> = self.folders.range(folder.to_owned()..).take_while(below).cloned().collect();
        let files: Vec<PathBuf> = self.files.range(folder.to_owned()..).take_while(below).cloned().collect();
        self.folders.retain(|known| !known.starts_with(folder));
        files.into_iter().for_each(|file| self.touch(file, now));
        self.ignored.forget(folder);
        folders
    }

    /// When the next path is at rest.
    pub(super) fn due(&self) -> Option<Instant> {
        self.moving.values().map(|times| rest(*times)).min()
    }

    /// Tells of what is at rest.
    pub(super) fn settle(&mut self, now: Instant) {
        let due: Vec<PathBuf> =
            self.moving.iter().filter(|(_, times)| rest(**times) <= now).map(|(path, _)| path.clone()).collect();
        for path in due {
            self.moving.remove(&path);
            self.tell(path);
        }
        if self.moving.is_empty() {
            self.changes.moving(false);
        }
    }

    fn know(&mut self, file: PathBuf) {
        if self.files.len() < MAX_FILES {
            self.files.insert(file);
        } else {
            self.is_too_large = true;
        }
    }

    fn tell(&mut self, path: PathBuf) {
        let stamp = Stamp::of(&path);
        let before = self.files.contains(&path);
        let kind = match (before, stamp) {
            (false, None) => return,
            (false, Some(_)) => ChangeKind::Created,
            (true, Some(_)) => ChangeKind::Modified,
            (true, None) => ChangeKind::Deleted,
        };
        if stamp.is_none() {
            self.files.remove(&path);
        } else {
            self.know(path.clone());
        }
        if !self.changes.is_own(&path) {
            self.changes.put(FileChange { path, kind, size: stamp.map_or(0, |stamp| stamp.size) });
        }
    }
}

fn rest((first, last): (Instant, Instant)) -> Instant {
    (last + DEBOUNCE).min(first + LONGEST)
}
