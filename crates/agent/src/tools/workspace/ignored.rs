//! Which files tools pass over: those of `.gitignore` where many are looked for, those of `.ollamaignore` always.
//!
//! `.ollamaignore` is read as `.gitignore` is (<https://git-scm.com/docs/gitignore>), and as Ollama CLI reads it: there a
//! `*` of a pattern with a `/` goes on over further ones. What either of both lists is listed. One that cannot be read
//! keeps all files of its folder, for what it lists is not known.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::open::Way;
use super::{Place, READ, Refused, Tried, kind};
use crate::tools::ToolErrorKind;

pub(super) const OLLAMAIGNORE: &str = ".ollamaignore";
const GITIGNORE: &str = ".gitignore";

/// Bytes of a list.
const LIMIT: u64 = 64 << 10;

/// The lists on the way to a folder, the innermost last.
#[derive(Debug, Default)]
pub(super) struct Lists {
    levels: Vec<Level>,
}

/// The lists of one folder.
#[derive(Debug)]
struct Level {
    folder: PathBuf,
    git: Gitignore,
    kept: Gitignore,
    /// Patterns of `.ollamaignore` as Ollama CLI reads them.
    loose: GlobSet,
}

impl Lists {
    /// Whether a `.ollamaignore` lists what is at `place`, or a folder above it.
    pub(super) fn keep(way: Way, place: &Place) -> Tried<bool> {
        let mut lists = Self::default();
        lists.lead(way, place, false)
    }

    /// The lists on the way to the folder at `place`, its own not yet; with those of git above the root.
    pub(super) fn down_to(way: Way, place: &Place) -> Tried<Self> {
        let mut lists = Self::default();
        lists.above(&place.root);
        lists.lead(way, place, true)?;
        Ok(lists)
    }

    /// Enters all folders above `place`; true where one of their `.ollamaignore` lists it or one of them.
    fn lead(&mut self, way: Way, place: &Place, with_git: bool) -> Tried<bool> {
        let (mut path, mut below) = (place.root.clone(), PathBuf::new());
        let mut rest = place.below.components();
        while let Some(component) = rest.next() {
            let at = Place { root: place.root.clone(), below: below.clone() };
            let folder = match way.open(&at, OFlags::RDONLY | OFlags::DIRECTORY) {
                Ok(folder) => folder,
                // What is not there yet has no list.
                Err(_) => return Ok(false),
            };
            self.enter(folder.as_fd(), &path, with_git)?;
            path.push(component);
            below.push(component);
            let is_folder = rest.clone().next().is_some() || is_folder(&folder, component.as_os_str());
            if self.keeps(&path, is_folder) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lists of git that stand above `root`, up to its repository's folder.
    fn above(&mut self, root: &Path) {
        let has_git = |folder: &Path| folder.join(".git").symlink_metadata().is_ok();
        let Some(top) = root.ancestors().find(|folder| has_git(folder)) else { return };
        let folders: Vec<&Path> = root.ancestors().skip(1).take_while(|folder| folder.starts_with(top)).collect();
        let open = |folder: &Path| {
            openat(rustix::fs::CWD, folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
        };
        if let Some(text) = open(&top.join(".git/info")).and_then(|info| read(info.as_fd(), "exclude", false).ok()?) {
            self.levels.push(Level::of(top, &text));
        }
        for folder in folders.into_iter().rev() {
            if let Some(text) = open(folder).and_then(|fd| read(fd.as_fd(), GITIGNORE, false).ok()?) {
                self.levels.push(Level::of(folder, &text));
            }
        }
    }

    /// Reads the lists of a folder.
    pub(super) fn enter(&mut self, folder: BorrowedFd<'_>, path: &Path, with_git: bool) -> Tried<()> {
        let unreadable = |why: String| {
            let text = format!("{}: {why}; what it lists is not known", path.join(OLLAMAIGNORE).display());
            Refused::new(ToolErrorKind::Permission, text)
        };
        let kept = read(folder, OLLAMAIGNORE, true).map_err(unreadable)?;
        // A list of git's guards nothing.
        let git = if with_git { read(folder, GITIGNORE, false).unwrap_or_default() } else { None };
        let mut level = Level::of(path, &git.unwrap_or_default());
        if let Some(text) = kept {
            level.keep(&text).map_err(unreadable)?;
        }
        self.levels.push(level);
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Whether a `.ollamaignore` lists this very path.
    pub(super) fn keeps(&self, path: &Path, is_folder: bool) -> bool {
        let said = self.levels.iter().rev().find_map(|level| level.says(&level.kept, path, is_folder));
        match said {
            Some(listed) => listed,
            None => self.levels.iter().any(|level| level.below(path).is_some_and(|below| level.loose.is_match(below))),
        }
    }

    /// Whether a `.gitignore` lists this very path.
    pub(super) fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        self.levels.iter().rev().find_map(|level| level.says(&level.git, path, is_folder)).unwrap_or(false)
    }
}

impl Level {
    fn of(folder: &Path, git: &str) -> Self {
        let mut builder = GitignoreBuilder::new("");
        for line in git.lines() {
            // A line that is no pattern says nothing, as for git.
            let _ = builder.add_line(None, line);
        }
        let git = builder.build().unwrap_or_else(|_| Gitignore::empty());
        Self { folder: folder.to_owned(), git, kept: Gitignore::empty(), loose: GlobSet::empty() }
    }

    /// Takes the lines of its `.ollamaignore`.
    fn keep(&mut self, text: &str) -> Result<(), String> {
        let mut builder = GitignoreBuilder::new("");
        let mut loose = GlobSetBuilder::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |error: &dyn std::fmt::Display| format!("line {} is no pattern: {error}", index + 1);
            builder.add_line(None, line).map_err(|error| wrong(&error))?;
            let line = line.trim();
            if line.contains('/') && !line.starts_with(['#', '!']) && !line.ends_with('/') {
                let glob = GlobBuilder::new(line.trim_start_matches("./").trim_start_matches('/'))
                    .literal_separator(false)
                    .allow_unclosed_class(true)
                    .build();
                loose.add(glob.map_err(|error| wrong(&error))?);
            }
        }
        self.kept = builder.build().map_err(|error| error.to_string())?;
        self.loose = loose.build().map_err(|error| error.to_string())?;
        Ok(())
    }

    fn says(&self, list: &Gitignore, path: &Path, is_folder: bool) -> Option<bool> {
        match list.matched(self.below(path)?, is_folder) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }

    fn below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.folder).ok()
    }
}

fn is_folder(folder: &OwnedFd, name: &OsStr) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| kind(&stat) == FileType::Directory)
}

/// The text of a list in `folder`; `None` where it has none.
fn read(folder: BorrowedFd<'_>, name: &str, follows: bool) -> Result<Option<String>, String> {
    let follow = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
    let fd = match openat(folder, name, READ | OFlags::CLOEXEC | follow, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(format!("it cannot be read: {errno}")),
    };
    let stat = fstat(&fd).map_err(|errno| errno.to_string())?;
    if kind(&stat) != FileType::RegularFile {
        return Err("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::from(fd);
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > LIMIT {
        return Err("it has more than 64 KiB".to_owned());
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
