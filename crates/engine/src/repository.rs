//! The repository around a folder, as its files tell of it: no program is asked.

use std::path::{Path, PathBuf};

use crate::builtins::place::read;

/// Bytes of a file that names a folder or a branch.
const LIMIT: usize = 4096;

/// The nearest folder with a `.git`, which is a file in linked worktrees and submodules. Reads files.
pub fn root(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find(|folder| git_folder(folder).is_some()).map(Path::to_owned)
}

/// The branch that is checked out; `None` outside of a repository, and where no branch is. Reads files.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// assert_eq!(gatehook_engine::repository::branch(folder.path()), None);
/// std::fs::create_dir(folder.path().join(".git"))?;
/// std::fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/feature/x\n")?;
/// assert_eq!(gatehook_engine::repository::branch(folder.path()).as_deref(), Some("feature/x"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn branch(dir: &Path) -> Option<String> {
    let git = dir.ancestors().find_map(git_folder)?;
    let head = read(&git.join("HEAD"), LIMIT)?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?;
    (!branch.is_empty() && !branch.contains(char::is_control)).then(|| branch.to_owned())
}

/// Where the repository of this folder's working tree is kept.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    match git.metadata() {
        Ok(metadata) if metadata.is_dir() => Some(git),
        Ok(metadata) if metadata.is_file() => {
            let text = read(&git, LIMIT)?;
            Some(folder.join(text.strip_prefix("gitdir:")?.trim()))
        }
        _ => None,
    }
}
