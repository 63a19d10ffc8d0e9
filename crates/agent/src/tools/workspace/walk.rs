//! A walk through a folder: sorted, without following links, past what the lists name.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, statat};
use rustix::io::Errno;

use super::ignored::Lists;
use super::open::Way;
use super::{Folder, Opened, READ, Tried, Trouble, Workspace, kind};
use crate::tools::ToolErrorKind;
use crate::tools::aside::Stop;

/// How deep folders are entered: each holds a file of the process.
const DEPTH: usize = 64;
/// Entries of one folder that are looked at.
const ENTRIES: usize = 200_000;
/// Entries in all.
const TOGETHER: usize = 2_000_000;

/// Why a walk ended whose time was over.
pub(crate) const TOO_LONG: &str = "it took too long";

/// How to walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    /// Whether names with a dot in front are met; `.git` never is.
    pub(crate) hidden: bool,
}

/// What is met.
pub(crate) struct Entry<'a> {
    way: Way,
    folder: &'a OwnedFd,
    name: &'a OsStr,
    pub(crate) path: &'a Path,
    pub(crate) kind: FileType,
    /// 1 for what is in the folder itself.
    pub(crate) depth: usize,
}

/// How to go on; the last is the most that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Go {
    On,
    /// Not into this folder.
    Past,
    /// No further.
    Stop,
}

impl Entry<'_> {
    /// Opens it, if it is a regular file.
    pub(crate) fn open(&self) -> Option<Opened> {
        let fd = self.way.below(self.folder.as_fd(), Path::new(self.name), READ, Mode::empty()).ok()?;
        let stat = fstat(&fd).ok()?;
        (kind(&stat) == FileType::RegularFile).then(|| Opened { file: fd.into(), stat, path: self.path.to_owned() })
    }
}

/// A folder on the way.
struct Frame {
    fd: OwnedFd,
    path: PathBuf,
    names: std::vec::IntoIter<(Vec<u8>, FileType)>,
}

impl Walk {
    /// Shows `visit` all that is in `start`, a folder before what is in it. What was left out for its number or depth is
    /// said.
    pub(crate) fn run(
        self,
        workspace: &Workspace,
        start: Folder,
        stop: &Stop,
        visit: &mut dyn FnMut(&Entry<'_>) -> Go,
    ) -> Tried<Option<&'static str>> {
        let way = workspace.way;
        let mut lists = Lists::down_to(way, &start.place)?;
        let mut cut = None;
        let path = start.place.path();
        let mut frames = vec![self.enter(start.fd, path, &mut lists, &mut cut)?];
        let mut met = 0;
        while let Some(frame) = frames.last_mut() {
            let Some((name, file_type)) = frame.names.next() else {
                frames.pop();
                lists.leave();
                continue;
            };
            met += 1;
            if met > TOGETHER {
                return Ok(Some("too many files"));
            }
            match stop.check() {
                Ok(()) => {}
                // What was met until then is worth something.
                Err(refused) if refused.kind == ToolErrorKind::Timeout => return Ok(Some(TOO_LONG)),
                Err(refused) => return Err(refused),
            }
            let name = OsStr::from_bytes(&name);
            let path = frame.path.join(name);
            let is_folder = file_type == FileType::Directory;
            if lists.keeps(&path, is_folder) || lists.ignores(&path, is_folder) {
                continue;
            }
            let depth = frames.len();
            let Some(frame) = frames.last() else { break };
            let entry = Entry { way, folder: &frame.fd, name, path: &path, kind: file_type, depth };
            match visit(&entry) {
                Go::Stop => return Ok(cut),
                Go::Past => continue,
                Go::On if !is_folder => continue,
                Go::On => {}
            }
            if depth >= DEPTH {
                cut = Some("folders too deep");
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let Ok(fd) = way.below(frame.fd.as_fd(), Path::new(name), flags, Mode::empty()) else {
                cut = Some("folders that cannot be read");
                continue;
            };
            match self.enter(fd, path, &mut lists, &mut cut) {
                Ok(frame) => frames.push(frame),
                Err(_) => cut = Some("folders that cannot be read"),
            }
        }
        Ok(cut)
    }

    /// Reads a folder. One that cannot be read has left nothing behind in `lists`.
    fn enter(self, fd: OwnedFd, path: PathBuf, lists: &mut Lists, cut: &mut Option<&'static str>) -> Tried<Frame> {
        let unreadable = |errno: Errno| Trouble::from(errno).at(&path.to_string_lossy());
        let names = self.names(&fd, cut).map_err(unreadable)?;
        lists.enter(fd.as_fd(), &path, true)?;
        Ok(Frame { fd, path, names: names.into_iter() })
    }

    fn names(self, fd: &OwnedFd, cut: &mut Option<&'static str>) -> Result<Vec<(Vec<u8>, FileType)>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(fd)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b".." | b".git") || (!self.hidden && name.starts_with(b".")) {
                continue;
            }
            if names.len() >= ENTRIES {
                *cut = Some("too many files in one folder");
                break;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match statat(fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => kind(&stat),
                    Err(_) => continue,
                },
                known => known,
            };
            names.push((name.to_vec(), kind));
        }
        names.sort_unstable_by(|(a, _): &(Vec<u8>, _), (b, _)| a.cmp(b));
        Ok(names)
    }
}
