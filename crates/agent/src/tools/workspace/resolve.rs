//! What a path leads to.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::CWD;
use rustix::fs::readlinkat;
use rustix::io::Errno;

/// Links that are followed, as many as the kernel follows.
const LINKS: usize = 40;

/// The path without links, `.` and `..` that `path` leads to from `base`, which has none. It may end in names that are
/// not there: what a link leads to that is not there yet is where it would be.
pub(super) fn resolve(base: &Path, path: &Path) -> Result<PathBuf, Errno> {
    let mut real = base.to_owned();
    // The next one last.
    let mut ahead: Vec<Part> = Vec::new();
    push(&mut ahead, path);
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        let name = match part {
            Part::Root => {
                real = PathBuf::from("/");
                continue;
            }
            Part::Up => {
                real.pop();
                continue;
            }
            Part::Name(name) => name,
        };
        let next = real.join(&name);
        match readlinkat(CWD, &next, Vec::new()) {
            Ok(target) => {
                links += 1;
                if links > LINKS {
                    return Err(Errno::LOOP);
                }
                push(&mut ahead, Path::new(OsStr::new(&OsString::from_vec(target.into_bytes()))));
            }
            // No link, or nothing there. If it is one that cannot be read, it cannot be opened either.
            Err(_) => real = next,
        }
    }
    Ok(real)
}

enum Part {
    Root,
    Up,
    Name(OsString),
}

fn push(ahead: &mut Vec<Part>, path: &Path) {
    let parts = path.components().rev().filter_map(|component| match component {
        Component::RootDir => Some(Part::Root),
        Component::ParentDir => Some(Part::Up),
        Component::Normal(name) => Some(Part::Name(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    });
    ahead.extend(parts);
}
