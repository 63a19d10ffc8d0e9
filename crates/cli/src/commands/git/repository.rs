//! A repository, as git tells of it.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::exit::Exit;
use crate::failure::Failure;

/// Where somebody works.
#[derive(Debug)]
pub(super) struct Repository {
    /// The top of the working tree.
    pub(super) top: PathBuf,
    /// What all its working trees share.
    common: PathBuf,
}

/// Whose a folder of hooks is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The repository's own.
    Repository,
    /// It stands among the files of the working tree.
    Tree,
    /// It is elsewhere, where other repositories may use it.
    Others,
}

impl Repository {
    /// The one around the working directory.
    pub(super) fn here() -> Result<Self, Failure> {
        let here = std::env::current_dir()?;
        let top = here.join(line(&here, &["rev-parse", "--show-toplevel"])?);
        let common = real(&top.join(line(&top, &["rev-parse", "--git-common-dir"])?));
        Ok(Self { top: real(&top), common })
    }

    /// Where git looks for hooks: `core.hooksPath`, else the repository's own folder.
    pub(super) fn hooks(&self) -> Result<PathBuf, Failure> {
        Ok(self.top.join(line(&self.top, &["rev-parse", "--git-path", "hooks"])?))
    }

    /// The repository's own folder, whatever git is told.
    pub(super) fn own_hooks(&self) -> PathBuf {
        self.common.join("hooks")
    }

    pub(super) fn owner(&self, hooks: &Path) -> Owner {
        let hooks = real(hooks);
        if hooks.starts_with(&self.common) {
            Owner::Repository
        } else if hooks.starts_with(&self.top) {
            Owner::Tree
        } else {
            Owner::Others
        }
    }

    /// Whether a file belongs to what is committed.
    pub(super) fn tracks(&self, path: &Path) -> bool {
        let args = [OsStr::new("ls-files"), OsStr::new("--error-unmatch"), OsStr::new("--"), path.as_os_str()];
        git(&self.top, args).stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
    }
}

/// `git` with these arguments.
fn git<S: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("git");
    command.args(args).current_dir(folder);
    command
}

/// What git prints, without the line's end.
pub(crate) fn line(folder: &Path, args: &[&str]) -> Result<String, Failure> {
    let printed = String::from_utf8(bytes(folder, args, None)?);
    let printed = printed.map_err(|_| failed(args, "its answer is not UTF-8"))?;
    Ok(printed.strip_suffix('\n').unwrap_or(&printed).to_owned())
}

/// What git prints, with this on its standard input.
pub(super) fn bytes(folder: &Path, args: &[&str], input: Option<&[u8]>) -> Result<Vec<u8>, Failure> {
    let mut command = git(folder, args);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(args, &error.to_string()))?;
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        // git reads all of it before it writes; one that has ended says why.
        let _ = stdin.write_all(input);
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(failed(args, String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(output.stdout)
}

fn failed(args: &[&str], cause: &str) -> Failure {
    let what = args.first().copied().unwrap_or_default();
    Failure::new(Exit::System, format!("`git {what}`: {cause}"), None)
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match found {
        Some((above, real)) => path.strip_prefix(above).map_or(real.clone(), |rest| real.join(rest)),
        None => path.to_owned(),
    }
}
