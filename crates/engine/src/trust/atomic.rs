//! Files that two programs may write, and that are whole whenever somebody reads them.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long another writer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The whole file, `None` where there is none. One that is larger than `bound` bytes, that is no file, or that others
/// than its owner may write, is an error.
pub fn read(path: &Path, bound: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if meta.mode() & 0o022 != 0 {
        return Err(io::Error::other("others than its owner may write it"));
    }
    let mut bytes = Vec::new();
    file.take(bound + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bound {
        return Err(io::Error::other(format!("it is larger than {bound} bytes")));
    }
    Ok(Some(bytes))
}

/// Holds off other writers of `path` while it lives. The file beside it that says so stays.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for other writers, up to 5 s. Creates the folder, for its owner alone.
    pub fn take(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(beside(path, "lock"))?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => sleep(Duration::from_millis(20)),
                Err(TryLockError::WouldBlock) => return Err(io::Error::other("another program is writing it")),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

/// Puts `bytes` in the place of a file: whoever reads it sees the old or the new one, whole, whatever fails. It is its
/// owner's alone.
pub fn replace(path: &Path, bytes: &[u8], _lock: &Lock) -> io::Result<()> {
    let new = beside(path, &format!("{}.new", std::process::id()));
    let written = write_new(&new, bytes).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        // The old file stands; what was begun is of no use.
        let _ = std::fs::remove_file(&new);
    }
    written?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    // One that an ended process left may be wider.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}
