//! Where tools may be: the workspace, and the folders beside it that a rule allows.
//!
//! A path is judged by what it leads to: all links in it are followed first (`resolve.rs`), also those of folders above
//! a file that is not there yet. What is opened then is opened without following any (`open.rs`), so that a link that is
//! put in its way meanwhile leads nowhere. Nothing here waits for a pipe, a socket or a device: they are refused.

mod ignored;
mod open;
mod replace;
mod resolve;
#[cfg(test)]
mod tests;
mod walk;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use gatehook_engine::builtins::protect_files;
use rustix::fs::{FileType, OFlags, Stat, fstat};
use rustix::io::Errno;

use self::ignored::{Lists, OLLAMAIGNORE};
use self::open::Way;
pub(super) use self::replace::Target;
pub(super) use self::walk::{Entry, Go, TOO_LONG, Walk};
use super::{Scene, ToolErrorKind, ToolOutput};

/// How often a path is looked at anew that changes while it is opened.
const TRIES: usize = 3;
/// Bytes of a path.
const LENGTH: usize = 4096;

/// Why a file is not touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) kind: ToolErrorKind,
    pub(super) text: String,
}

pub(super) type Tried<T> = Result<T, Refused>;

impl Refused {
    pub(super) fn new(kind: ToolErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

impl From<Refused> for ToolOutput {
    fn from(refused: Refused) -> Self {
        Self::error(refused.kind, refused.text)
    }
}

/// The folders that tools may be in.
#[derive(Debug, Clone)]
pub(super) struct Workspace {
    /// All canonical; the first is where relative paths begin.
    roots: Vec<PathBuf>,
    way: Way,
}

/// Where a path leads: without links, and below one of the roots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    root: PathBuf,
    /// Relative to it, names only; empty is the root itself.
    below: PathBuf,
}

impl Place {
    pub(super) fn path(&self) -> PathBuf {
        if self.below.as_os_str().is_empty() { self.root.clone() } else { self.root.join(&self.below) }
    }
}

/// A regular file, open to be read.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) stat: Stat,
    pub(super) path: PathBuf,
}

/// A folder, open to be looked at.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    place: Place,
}

impl Folder {
    pub(super) fn path(&self) -> PathBuf {
        self.place.path()
    }
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Found {
    File(Opened),
    Folder(Folder),
}

impl Workspace {
    pub(super) fn of(scene: &Scene) -> Self {
        let roots = std::iter::once(scene.workspace.to_path_buf()).chain(scene.allowed.iter().cloned()).collect();
        Self { roots, way: Way::default() }
    }

    /// As a person writes it: relative to the workspace where it is in there. It is one line, whatever its name is.
    pub(super) fn shown(&self, path: &Path) -> String {
        let below = self.roots.first().and_then(|root| path.strip_prefix(root).ok());
        match below {
            Some(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Some(below) => printable(&below.to_string_lossy()),
            None => printable(&path.to_string_lossy()),
        }
    }

    /// The file at `path`.
    pub(super) fn file(&self, path: &str) -> Tried<Opened> {
        match self.find(path)? {
            Found::File(opened) => Ok(opened),
            Found::Folder(_) => {
                let text = format!("`{}` is a folder: use `list`", printable(path));
                Err(Refused::new(ToolErrorKind::InvalidInput, text))
            }
        }
    }

    /// The folder at `path`.
    pub(super) fn folder(&self, path: &str) -> Tried<Folder> {
        match self.find(path)? {
            Found::Folder(folder) => Ok(folder),
            Found::File(_) => {
                let text = format!("`{}` is a file, not a folder", printable(path));
                Err(Refused::new(ToolErrorKind::InvalidInput, text))
            }
        }
    }

    /// The file or the folder at `path`.
    pub(super) fn find(&self, path: &str) -> Tried<Found> {
        self.at(path, |place| {
            let probe = self.way.open(place, OFlags::PATH)?;
            let kind = kind(&fstat(&probe)?);
            match kind {
                FileType::RegularFile => {
                    let fd = self.way.open(place, READ)?;
                    let stat = fstat(&fd)?;
                    // It may be another one by now.
                    if self::kind(&stat) != FileType::RegularFile {
                        return Err(Errno::LOOP.into());
                    }
                    Ok(Found::File(Opened { file: fd.into(), stat, path: place.path() }))
                }
                FileType::Directory => {
                    let fd = self.way.open(place, OFlags::RDONLY | OFlags::DIRECTORY)?;
                    Ok(Found::Folder(Folder { fd, place: place.clone() }))
                }
                FileType::Symlink => Err(Errno::LOOP.into()),
                other => Err(Trouble::Special(other)),
            }
        })
    }

    /// What `path` means to somebody who writes: the file there, or the one that would be. Folders above it are made.
    pub(super) fn target(&self, path: &str) -> Tried<Target> {
        self.at(path, |place| {
            let at = place.path();
            if protect_files::is_own(&at) {
                return Err(Trouble::Own);
            }
            if at.file_name().is_some_and(|name| name == OLLAMAIGNORE) {
                return Err(Trouble::List);
            }
            Target::open(self.way, place)
        })
    }

    /// Leads `path` to its place and does something there. Where the place has changed meanwhile, once more.
    fn at<T>(&self, path: &str, act: impl Fn(&Place) -> Result<T, Trouble>) -> Tried<T> {
        for _ in 0..TRIES {
            let place = self.place(path)?;
            if self.is_kept(path, &place)? {
                let text = format!("`{}` is listed in {OLLAMAIGNORE}: tools leave it alone", printable(path));
                return Err(Refused::new(ToolErrorKind::Permission, text));
            }
            match act(&place) {
                Ok(done) => return Ok(done),
                Err(Trouble::Errno(Errno::LOOP | Errno::XDEV | Errno::AGAIN)) => {}
                Err(trouble) => return Err(trouble.at(path)),
            }
        }
        Err(Refused::new(ToolErrorKind::Other, format!("`{}` changes while it is looked at", printable(path))))
    }

    /// Where `path` leads.
    pub(super) fn place(&self, path: &str) -> Tried<Place> {
        let invalid = |why: &str| Refused::new(ToolErrorKind::InvalidInput, format!("`{}` {why}", printable(path)));
        if path.is_empty() || path.len() > LENGTH || path.contains('\0') {
            return Err(invalid("is no path"));
        }
        if path == "~" || path.starts_with("~/") {
            return Err(invalid("begins with `~`, which means nothing here: write the folder out"));
        }
        let Some(workspace) = self.roots.first() else { return Err(invalid("is outside of the workspace")) };
        let real = resolve::resolve(workspace, Path::new(path)).map_err(|errno| Trouble::Errno(errno).at(path))?;
        let within = self.roots.iter().filter_map(|root| Some((root, real.strip_prefix(root).ok()?)));
        let nearest = within.min_by_key(|(_, below)| below.components().count());
        let Some((root, below)) = nearest else {
            let text = format!("`{}` is outside of the workspace {}", printable(path), workspace.display());
            return Err(Refused::new(ToolErrorKind::Permission, text));
        };
        Ok(Place { root: root.clone(), below: below.to_owned() })
    }

    /// Whether a `.ollamaignore` lists it: as it is written, or as what it leads to.
    fn is_kept(&self, path: &str, place: &Place) -> Tried<bool> {
        if Lists::keep(self.way, place)? {
            return Ok(true);
        }
        let Some(workspace) = self.roots.first() else { return Ok(false) };
        let plain = plain(&workspace.join(path));
        match plain.strip_prefix(workspace) {
            Ok(below) if plain != place.path() => {
                Lists::keep(self.way, &Place { root: workspace.clone(), below: below.to_owned() })
            }
            _ => Ok(false),
        }
    }
}

/// A file that is read. What is no regular file is not waited for, and does not become our terminal.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The path without `.` and `..`, as it is written.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// A name in one line.
pub(super) fn printable(name: &str) -> String {
    let mut line = String::with_capacity(name.len());
    for char in name.chars() {
        if char.is_control() { line.extend(char.escape_default()) } else { line.push(char) }
    }
    line
}

/// What stands against an act at a place.
#[derive(Debug)]
enum Trouble {
    Errno(Errno),
    /// It is a pipe, a socket or a device.
    Special(FileType),
    /// It is a folder, where a file is written.
    Folder,
    /// It is longer than is worked on, by these bytes.
    TooLong(u64),
    /// It is the guard's own configuration.
    Own,
    /// It is a `.ollamaignore`.
    List,
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl Trouble {
    fn at(self, path: &str) -> Refused {
        let path = printable(path);
        let (kind, text) = match self {
            Self::Errno(Errno::NOENT) => (ToolErrorKind::NotFound, format!("there is no `{path}`")),
            Self::Errno(Errno::NOTDIR) => {
                (ToolErrorKind::NotFound, format!("there is no `{path}`: a part of it is a file"))
            }
            Self::Errno(Errno::LOOP) => {
                (ToolErrorKind::InvalidInput, format!("the links of `{path}` lead in a circle"))
            }
            Self::Errno(Errno::NAMETOOLONG) => (ToolErrorKind::InvalidInput, format!("`{path}` is too long")),
            Self::Errno(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
                (ToolErrorKind::Permission, format!("`{path}` may not be touched: {errno}"))
            }
            Self::Errno(errno) => (ToolErrorKind::Other, format!("`{path}`: {errno}")),
            Self::Special(kind) => (ToolErrorKind::InvalidInput, format!("`{path}` is {}, not a file", word(kind))),
            Self::Folder => (ToolErrorKind::InvalidInput, format!("`{path}` is a folder")),
            Self::TooLong(size) => {
                (ToolErrorKind::InvalidInput, format!("`{path}` has {size} bytes, too many to be worked on"))
            }
            Self::Own => (
                ToolErrorKind::Permission,
                format!("`{path}` is the guard's own configuration: tools leave it alone, a person may change it"),
            ),
            Self::List => {
                (ToolErrorKind::Permission, format!("`{path}` says what tools leave alone: a person may change it"))
            }
        };
        Refused { kind, text }
    }
}

fn word(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Directory => "a folder",
        _ => "something else",
    }
}
