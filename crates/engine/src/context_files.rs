//! What a project tells every agent: files of known names, from the outermost folder to the innermost.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::builtins::globs::{Globs, LIST_LIMIT};
use crate::builtins::place;

const IGNORE: &str = ".ollamaignore";

/// Bytes of one file.
const LIMIT: usize = 64 << 10;
/// Bytes of all of them.
const TOGETHER: usize = 256 << 10;

/// A file, and what it says to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Its path, as it was looked for.
    pub path: PathBuf,
    /// Its text; of a long one the beginning.
    pub text: String,
}

/// The files of these names in `dir` and the folders above it, up to and with `top`: without one, up to the root. Left out
/// are files that an `.ollamaignore` on the way names, that strangers put there, and links out of `top`. Reads files.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let inner = folder.path().join("inner");
/// std::fs::create_dir(&inner)?;
/// std::fs::write(folder.path().join("AGENTS.md"), "Speak plainly.")?;
/// std::fs::write(inner.join("AGENTS.md"), "Test first.")?;
/// let files = gatehook_engine::context_files::read(&inner, Some(folder.path()), &["AGENTS.md"]);
/// let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
/// assert_eq!(texts, ["Speak plainly.", "Test first."]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read(dir: &Path, top: Option<&Path>, names: &[impl AsRef<str>]) -> Vec<ContextFile> {
    let folders = folders(dir, top);
    let list = |folder: &Path| Some(Globs::of_lines(&place::read(&folder.join(IGNORE), LIST_LIMIT)?));
    let lists: Vec<(&Path, Globs)> =
        folders.iter().filter_map(|folder| Some((folder.as_path(), list(folder)?))).collect();
    let is_ignored = |path: &Path| {
        lists
            .iter()
            .any(|(folder, list)| path.strip_prefix(folder).is_ok_and(|relative| list.has(&relative.to_string_lossy())))
    };
    let inside = top.and_then(|top| top.canonicalize().ok());
    let leads_out = |real: &Path| inside.as_ref().is_some_and(|top| !real.starts_with(top));
    let (mut files, mut size, mut seen) = (Vec::new(), 0, Vec::new());
    for path in folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name.as_ref()))) {
        // One file may have several of the names, by links.
        let Ok(real) = path.canonicalize() else { continue };
        if is_ignored(&path) || is_ignored(&real) || seen.contains(&real) || leads_out(&real) || !is_trusted(&real, dir)
        {
            continue;
        }
        let Some(text) = place::read(&path, LIMIT) else { continue };
        size += text.len();
        if size > TOGETHER {
            tracing::warn!(path = %path.display(), "context files come to more than 256 KiB; the rest is left out");
            break;
        }
        seen.push(real);
        files.push(ContextFile { path, text });
    }
    files
}

/// Where files may lie, the outermost first.
fn folders(dir: &Path, top: Option<&Path>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = dir.ancestors().map(Path::to_owned).collect();
    folders.retain(|folder| top.is_none_or(|top| folder.starts_with(top)));
    folders.reverse();
    folders
}

/// What strangers put above a folder, as into `/tmp`, instructs nobody: a file's owner is this user, root, or who owns
/// the folder that is worked in.
fn is_trusted(path: &Path, dir: &Path) -> bool {
    let owner = |path: &Path| path.metadata().ok().map(|metadata| metadata.uid());
    let us = rustix::process::geteuid().as_raw();
    owner(path).is_some_and(|of| of == us || of == 0 || Some(of) == owner(dir))
}
