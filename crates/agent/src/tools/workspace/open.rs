//! Opening what lies below a root, without following any link on the way.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
use rustix::io::Errno;

use super::Place;

/// Whether the kernel has `openat2` (Linux 5.6), as far as is known.
static HAS_OPENAT2: AtomicBool = AtomicBool::new(true);

const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW);
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// How places are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Way {
    /// In one call of the kernel, which holds the bounds; where it has none, step by step.
    #[default]
    Best,
    /// Step by step.
    #[cfg(test)]
    Steps,
}

impl Way {
    /// Opens what is at `place`.
    pub(super) fn open(self, place: &Place, flags: OFlags) -> Result<OwnedFd, Errno> {
        let root = self.root(&place.root)?;
        self.below(root.as_fd(), &place.below, flags, Mode::empty())
    }

    /// Opens the folder at `place`, and makes it where it is not there, with those above it.
    pub(super) fn make(self, place: &Place) -> Result<OwnedFd, Errno> {
        let mut folder = self.root(&place.root)?;
        for component in place.below.components() {
            let name = Path::new(component.as_os_str());
            let next = match self.below(folder.as_fd(), name, STEP, Mode::empty()) {
                Err(Errno::NOENT) => {
                    match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno),
                    }
                    self.below(folder.as_fd(), name, STEP, Mode::empty())
                }
                other => other,
            };
            folder = next?;
        }
        Ok(folder)
    }

    fn root(self, root: &Path) -> Result<OwnedFd, Errno> {
        let below = root.strip_prefix("/").map_err(|_| Errno::XDEV)?;
        let top = openat(CWD, "/", STEP | ALWAYS, Mode::empty())?;
        self.below(top.as_fd(), below, STEP, Mode::empty())
    }

    /// Opens `path`, of names only, below `folder`.
    pub(super) fn below(
        self,
        folder: BorrowedFd<'_>,
        path: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        if self == Self::Best && HAS_OPENAT2.load(Ordering::Relaxed) {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(folder, path, flags | ALWAYS, mode, resolve) {
                Err(Errno::NOSYS) => HAS_OPENAT2.store(false, Ordering::Relaxed),
                // What filters system calls may answer so for any that it does not know.
                Err(Errno::PERM) => {}
                other => return other,
            }
        }
        steps(folder, path, flags, mode)
    }
}

/// Opens name after name: one that is a link is no folder.
fn steps(folder: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut names = Vec::new();
    for component in path.components() {
        let Component::Normal(name) = component else { return Err(Errno::XDEV) };
        names.push(name);
    }
    let (last, above) = names.split_last().map_or((OsStr::new("."), [].as_slice()), |(last, above)| (*last, above));
    let mut at: Option<OwnedFd> = None;
    for name in above {
        let next = openat(at.as_ref().map_or(folder, AsFd::as_fd), *name, STEP | ALWAYS, Mode::empty());
        at = Some(next?);
    }
    openat(at.as_ref().map_or(folder, AsFd::as_fd), last, flags | ALWAYS, mode)
}
