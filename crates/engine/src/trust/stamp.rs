//! Whether a file, or the list of a folder, is what it was, told from what the system knows without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How young a change is that a second one may hide behind: the clocks of file systems tick.
const TICK: Duration = Duration::from_secs(2);

/// A state of a file. The time of the last change of its inode is the system's own: nobody can set it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    dev: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// It was old enough when it was looked at, so that an equal stamp means an equal file.
    is_settled: bool,
}

impl Stamp {
    pub(super) fn of(meta: &Metadata) -> Self {
        let changed = (meta.ctime(), meta.ctime_nsec());
        let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().cast_signed() - changed.0;
        Self {
            dev: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed,
            is_settled: age > TICK.as_secs().cast_signed(),
        }
    }

    /// Whether what is at `path` now is certainly what was there then.
    pub(super) fn holds(&self, path: &Path) -> bool {
        let Ok(meta) = path.metadata() else { return false };
        self.is_settled && Self { is_settled: true, ..Self::of(&meta) } == *self
    }

    /// Whether both are states of one file, and nothing was written in between as far as the clock tells.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        Self { is_settled: other.is_settled, ..self.clone() } == *other
    }
}
