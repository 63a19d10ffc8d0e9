//! `--worktree`: a session in a working tree of its own, beside the repository.

use std::path::{Path, PathBuf};

use gatehook_engine::Executor;
use gatehook_events::{Event, Input};

use crate::commands::git::repository::line;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::Policy;
use crate::print::Printer;
use crate::raising;

/// A working tree, made for a session.
#[derive(Debug)]
pub(super) struct Worktree {
    /// The working tree that it was made from.
    source: PathBuf,
    path: PathBuf,
    branch: String,
    /// The branch was made with it.
    is_new: bool,
    /// Where the session works in it: the folder that somebody worked in, where it is there too.
    pub(super) workspace: PathBuf,
}

impl Worktree {
    /// Makes one on a branch, which is made too where there is none of this name.
    pub(super) fn make(branch: &str, here: &Path) -> Result<Self, Failure> {
        let source = PathBuf::from(line(here, &["rev-parse", "--show-toplevel"])?);
        let source = source.canonicalize().unwrap_or(source);
        let branch = line(&source, &["check-ref-format", "--branch", branch])
            .map_err(|_| Failure::usage(format!("`{branch}` cannot be the name of a branch"), None))?;
        let path = beside(&source, &branch)?;
        if path.symlink_metadata().is_ok() {
            let help = format!("work there, as in `cd {0}`, or remove it by `git worktree remove {0}`", path.display());
            return Err(Failure::usage(format!("{} is there already", path.display()), Some(help)));
        }
        let is_new = line(&source, &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).is_err();
        let shown = path.to_str().ok_or_else(|| Failure::usage("the repository's path is not UTF-8", None))?;
        match is_new {
            true => line(&source, &["worktree", "add", "--quiet", "-b", &branch, shown])?,
            false => line(&source, &["worktree", "add", "--quiet", shown, &branch])?,
        };
        let below = here.strip_prefix(&source).map(|below| path.join(below)).ok().filter(|folder| folder.is_dir());
        let workspace = below.unwrap_or_else(|| path.clone());
        let workspace = workspace.canonicalize().unwrap_or(workspace);
        Ok(Self { source, path, branch, is_new, workspace })
    }

    /// Raises `worktree_create`: what hooks want the model to know. Where they refuse it is gone again.
    pub(super) fn told(
        &self,
        policy: &Policy,
        executor: Executor,
        about: Input,
        printer: &mut Printer,
    ) -> Result<String, Failure> {
        let shown = |path: &Path| Some(path.to_string_lossy().into());
        let input = Input {
            cwd: shown(&self.workspace),
            worktree_path: shown(&self.path),
            worktree_branch: Some(self.branch.as_str().into()),
            worktree_source_dir: shown(&self.source),
            ..about
        };
        let verdict = raising::one(policy, executor, Event::WorktreeCreate, &input, printer);
        let refused = match verdict {
            Ok(Some(verdict)) if verdict.allowed => {
                verdict.system_message.lines().for_each(|line| printer.note(line));
                printer.note(&format!("working in {} on branch {}", self.path.display(), self.branch));
                return Ok(verdict.additional_context);
            }
            Ok(Some(verdict)) => {
                let why = [verdict.message, verdict.decision_reason].into_iter().find(|why| !why.trim().is_empty());
                let why = why.unwrap_or_else(|| "a worktree_create hook does not let it be made".to_owned());
                Failure::new(Exit::No, format!("no session in a worktree: {why}"), None)
            }
            Ok(None) => Failure::new(Exit::Stopped, "stopped while hooks looked at the worktree", None),
            Err(failure) => failure,
        };
        self.remove()?;
        Err(refused)
    }

    /// Takes it away, and its branch where that was made with it.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        let path = self.path.to_string_lossy();
        line(&self.source, &["worktree", "remove", "--force", &path])?;
        if self.is_new {
            line(&self.source, &["branch", "--quiet", "-D", &self.branch])?;
        }
        Ok(())
    }
}

/// What commits in a folder write beside it, where it is a working tree that `git worktree add` made. The repository's
/// hooks and configuration are not among it.
///
/// What the tree says of itself a tool may have written: its repository has to say the same.
pub(super) fn shared(workspace: &Path) -> Option<Vec<PathBuf>> {
    let said = |file: PathBuf| std::fs::read_to_string(file).ok();
    let mark = workspace.join(".git");
    let own = PathBuf::from(said(mark.clone())?.strip_prefix("gitdir: ")?.trim_end()).canonicalize().ok()?;
    let common = own.parent().filter(|above| above.ends_with("worktrees"))?.parent()?;
    let back = PathBuf::from(said(own.join("gitdir"))?.trim_end()).canonicalize().ok()?;
    let is_its = back == mark && common.join("HEAD").is_file() && common.join("objects").is_dir();
    let parts = ["objects", "refs", "logs"].map(|part| common.join(part));
    is_its.then(|| parts.into_iter().chain([own.clone()]).collect())
}

/// Beside the repository, by its name and the branch's.
fn beside(source: &Path, branch: &str) -> Result<PathBuf, Failure> {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let branch: String = branch.chars().map(plain).collect();
    let (Some(above), Some(name)) = (source.parent(), source.file_name()) else {
        return Err(Failure::usage("there is no room beside a repository at the root", None));
    };
    Ok(above.join(format!("{}-{branch}", name.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository and a working tree beside it.
    fn repository() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for args in [
            &["init", "-q", "main"][..],
            &["-C", "main", "-c", "user.name=T", "-c", "user.email=t@x", "commit", "-qm", "Begin", "--allow-empty"],
            &["-C", "main", "worktree", "add", "-q", "../tree"],
        ] {
            line(&root, args).unwrap();
        }
        (folder, root)
    }

    #[test]
    fn a_commit_in_a_working_tree_writes_neither_hooks_nor_configuration() {
        let (_folder, root) = repository();
        let git = root.join("main/.git");
        let expected = ["objects", "refs", "logs", "worktrees/tree"].map(|part| git.join(part));
        assert_eq!(shared(&root.join("tree")), Some(expected.to_vec()));
        assert_eq!(shared(&root.join("main")), None);
    }

    #[test]
    fn a_folder_that_only_says_it_is_a_working_tree_of_a_repository_shares_nothing() {
        let (_folder, root) = repository();
        let forged = root.join("forged");
        std::fs::create_dir_all(forged.join("own")).unwrap();
        for (own, back) in
            [(root.join("main/.git/worktrees/tree"), None), (forged.join("own"), Some(forged.join(".git")))]
        {
            std::fs::write(forged.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
            if let Some(back) = back {
                std::fs::write(own.join("gitdir"), back.display().to_string()).unwrap();
                std::fs::write(own.join("commondir"), root.join("main/.git").display().to_string()).unwrap();
            }
            assert_eq!(shared(&forged), None, "{}", own.display());
        }
    }
}
