//! Writing a file: beside it first, then in its place, so that it is the old one or the new one at any moment.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{
    Access, AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid, accessat, fchmod, fchown, fdatasync, fstat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::open::Way;
use super::{Place, READ, Refused, Tried, Trouble, kind};
use crate::tools::aside::Stop;
use crate::tools::{ChangeKind, FileChange, ToolErrorKind};

/// Bytes of a file that is changed.
pub(crate) const LIMIT: u64 = 16 << 20;

/// Files that are being written, by this process.
static WRITTEN: (Mutex<BTreeSet<PathBuf>>, Condvar) = (Mutex::new(BTreeSet::new()), Condvar::new());

/// A file to be written, which may not be there yet.
#[derive(Debug)]
pub(crate) struct Target {
    folder: OwnedFd,
    name: OsString,
    pub(crate) path: PathBuf,
    way: Way,
    old: Option<Stat>,
}

/// Keeps other calls from a file until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(PathBuf);

impl Target {
    pub(super) fn open(way: Way, place: &Place) -> Result<Self, Trouble> {
        let Some(name) = place.below.file_name() else { return Err(Trouble::Folder) };
        let above = place.below.parent().unwrap_or(Path::new(""));
        let folder = way.make(&Place { root: place.root.clone(), below: above.to_owned() })?;
        let old = look(&folder, name)?;
        match old.as_ref().map(kind) {
            None | Some(FileType::RegularFile) => {}
            Some(FileType::Directory) => return Err(Trouble::Folder),
            Some(FileType::Symlink) => return Err(Errno::LOOP.into()),
            Some(other) => return Err(Trouble::Special(other)),
        }
        if old.is_some() {
            accessat(&folder, name, Access::WRITE_OK, AtFlags::empty())?;
        }
        Ok(Self { folder, name: name.to_owned(), path: place.path(), way, old })
    }

    pub(crate) fn exists(&self) -> bool {
        self.old.is_some()
    }

    /// Waits until no other call of this process writes the file.
    pub(crate) fn turn(&self, stop: &Stop) -> Tried<Turn> {
        let (files, changed) = &WRITTEN;
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        while files.contains(&self.path) {
            stop.check()?;
            let waited = changed.wait_timeout(files, Duration::from_millis(50));
            files = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(files, _)| files);
        }
        files.insert(self.path.clone());
        Ok(Turn(self.path.clone()))
    }

    /// What the file holds; nothing where it is not there.
    pub(crate) fn read(&mut self) -> Tried<Vec<u8>> {
        self.read_at().map_err(|trouble| trouble.at(&self.path.to_string_lossy()))
    }

    fn read_at(&mut self) -> Result<Vec<u8>, Trouble> {
        // Somebody may have had their turn since it was found.
        self.old = look(&self.folder, &self.name)?;
        if self.old.is_none() {
            return Ok(Vec::new());
        }
        let fd = self.way.below(self.folder.as_fd(), Path::new(&self.name), READ, Mode::empty())?;
        let stat = fstat(&fd)?;
        if kind(&stat) != FileType::RegularFile {
            return Err(Trouble::Special(kind(&stat)));
        }
        let size = stat.st_size.cast_unsigned();
        if size > LIMIT {
            return Err(Trouble::TooLong(size));
        }
        let mut content = Vec::new();
        File::from(fd).take(LIMIT).read_to_end(&mut content).map_err(errno)?;
        self.old = Some(stat);
        Ok(content)
    }

    /// Puts `content` in its place, with the mode and the owner of what was there. Where that is not what was looked at,
    /// or `stop` says so, it stays.
    pub(crate) fn put(&self, content: &[u8], stop: &Stop) -> Tried<FileChange> {
        let at = |trouble: Trouble| trouble.at(&self.path.to_string_lossy());
        let beside = self.beside(content).map_err(at)?;
        stop.check()?;
        if !self.is_unchanged() {
            let text = format!("{} was changed meanwhile: read it again", self.path.display());
            return Err(Refused::new(ToolErrorKind::Other, text));
        }
        match beside.become_(self) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                let text = format!("{} was made meanwhile: read it first", self.path.display());
                return Err(Refused::new(ToolErrorKind::Other, text));
            }
            Err(errno) => return Err(at(errno.into())),
        }
        let kind = if self.exists() { ChangeKind::Modified } else { ChangeKind::Created };
        Ok(FileChange { path: self.path.clone(), kind, size: content.len() as u64 })
    }

    fn beside(&self, content: &[u8]) -> Result<Beside<'_>, Trouble> {
        let name = format!(".gatehook-{:016x}.tmp", fastrand::u64(..));
        let mode = if self.exists() { 0o600 } else { 0o666 };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fd = self.way.below(self.folder.as_fd(), Path::new(&name), flags, Mode::from_raw_mode(mode))?;
        let beside = Beside { folder: &self.folder, name: Some(name) };
        if let Some(old) = &self.old {
            let new = fstat(&fd)?;
            if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
                // Who may not give it away keeps it.
                let _ = fchown(&fd, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
            }
            // Without the bits that lend rights: what is written now was never given them.
            fchmod(&fd, Mode::from_raw_mode(old.st_mode & 0o777))?;
        }
        let mut file = File::from(fd);
        file.write_all(content).map_err(errno)?;
        fdatasync(&file)?;
        Ok(beside)
    }

    fn is_unchanged(&self) -> bool {
        let same = |now: &Stat, then: &Stat| {
            let of = |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
            of(now) == of(then)
        };
        match (look(&self.folder, &self.name), &self.old) {
            (Ok(Some(now)), Some(then)) => same(&now, then),
            (Ok(None), None) => true,
            _ => false,
        }
    }
}

fn look(folder: &OwnedFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// A file that waits to take a place. Dropped before, it is gone.
struct Beside<'a> {
    folder: &'a OwnedFd,
    name: Option<String>,
}

impl Beside<'_> {
    fn become_(mut self, target: &Target) -> Result<(), Errno> {
        let Some(name) = self.name.as_deref() else { return Ok(()) };
        let moved = if target.exists() {
            renameat(self.folder, name, self.folder, &target.name)
        } else {
            match renameat_with(self.folder, name, self.folder, &target.name, RenameFlags::NOREPLACE) {
                // Not every file system can do that.
                Err(Errno::INVAL | Errno::NOSYS) => renameat(self.folder, name, self.folder, &target.name),
                other => other,
            }
        };
        if moved.is_ok() {
            self.name = None;
        }
        moved
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = unlinkat(self.folder, name.as_str(), AtFlags::empty());
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (files, changed) = &WRITTEN;
        files.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        changed.notify_all();
    }
}
