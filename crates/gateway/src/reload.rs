//! When a configuration has changed, so that [`Handle::reload`](crate::Handle::reload) is due.
//!
//! Files are looked at, not listened to: it works on every file system, through links and for files that do not exist
//! yet, and costs a `stat` a second.

use std::path::PathBuf;
use std::time::SystemTime;

/// Files and folders, and what they looked like.
#[derive(Debug)]
pub struct Watch {
    seen: Vec<(PathBuf, Option<Stamp>)>,
    unsettled: bool,
}

/// What changes with a file's content: time, size, and the file behind the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    size: u64,
    file: u64,
}

impl Watch {
    /// Begins with what is there now.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { seen: stamps(paths), unsettled: false }
    }

    /// Whether something has changed since the last such answer, and looks as it did at the last look: what is still
    /// being written waits. `paths` may differ from the last ones, which is a change too.
    pub fn look(&mut self, paths: impl IntoIterator<Item = PathBuf>) -> bool {
        let now = stamps(paths);
        if now != self.seen {
            self.seen = now;
            self.unsettled = true;
            return false;
        }
        std::mem::take(&mut self.unsettled)
    }
}

fn stamps(paths: impl IntoIterator<Item = PathBuf>) -> Vec<(PathBuf, Option<Stamp>)> {
    let stamped = |path: PathBuf| {
        let stamp = stamp(&path);
        (path, stamp)
    };
    paths.into_iter().map(stamped).collect()
}

fn stamp(path: &std::path::Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let file = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let file = 0;
    Some(Stamp { modified: metadata.modified().ok(), size: metadata.len(), file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_once_it_has_settled() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gatehook.yaml");
        let mut watch = Watch::new([file.clone()]);
        let mut look = || watch.look([file.clone()]);
        assert!(!look(), "nothing has changed");
        std::fs::write(&file, "a").unwrap();
        assert!(!look(), "it may still be written");
        std::fs::write(&file, "ab").unwrap();
        assert!(!look(), "it was still being written");
        assert!(look(), "now it has settled");
        assert!(!look(), "and counts once");
    }

    #[test]
    fn a_file_that_is_replaced_or_goes_away_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&file, "a").unwrap();
        std::fs::write(&other, "b").unwrap();
        let mut watch = Watch::new([file.clone()]);
        std::fs::rename(&other, &file).unwrap();
        let mut look = || watch.look([file.clone()]);
        assert!(!look() && look(), "replaced");
        std::fs::remove_file(&file).unwrap();
        assert!(!look() && look(), "gone");
        assert!(!watch.look([file.clone(), other.clone()]) && watch.look([file, other]), "another one is named");
    }
}
