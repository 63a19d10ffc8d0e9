//! The repository beside a worktree.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gatehook_events::FailureKind;
use sha2::{Digest, Sha256};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::super::git;
use super::super::place::{read, state};
use super::unbounded;
use crate::handler::HandlerError;
use crate::handlers::command::tool::{Told, Tool, Until};
use crate::handlers::{command::describe, stopped};
use crate::repository;

/// Files over this many bytes are left out.
const FILE_LIMIT: u64 = 2 << 20;
/// Bytes that git may say: names of all files that have changed.
const OUTPUT: usize = 32 << 20;
/// How long what nobody asks for is kept.
const KEPT: Duration = Duration::from_secs(7 * 86_400);
/// Between two tidyings.
const TIDIED: Duration = Duration::from_secs(86_400);
/// Between two looks at a lock that another process has.
const RETRY: Duration = Duration::from_millis(20);

/// Configuration of every command: the user's and the system's are not read, and nothing runs but git.
const CONFIG: &[(&str, &str)] = &[
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_AUTHOR_NAME", "gatehook"),
    ("GIT_AUTHOR_EMAIL", "gatehook@localhost"),
    ("GIT_COMMITTER_NAME", "gatehook"),
    ("GIT_COMMITTER_EMAIL", "gatehook@localhost"),
];

/// The checkpoints of one worktree.
///
/// ```
/// use std::path::Path;
///
/// use gatehook_engine::builtins::snapshot::Snapshots;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let env = std::collections::BTreeMap::new();
/// // `env` says where `git` is (PATH) and where state is kept (XDG_STATE_HOME, HOME).
/// if let Some(snapshots) = Snapshots::open(Path::new("/no/such/worktree"), &env)? {
///     for checkpoint in snapshots.list("session").await? {
///         println!("{} {}", checkpoint.time, checkpoint.label);
///     }
///     let restored = snapshots.undo("session").await?;
///     println!("{:?}", restored.map(|restored| restored.files));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Snapshots {
    git: Tool,
    store: PathBuf,
    worktree: PathBuf,
}

/// What a worktree was like at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its identity, for git.
    pub id: String,
    /// When, in seconds since 1970.
    pub time: i64,
    /// The event it was kept at, and the tool, as in `post_tool_use shell`.
    pub label: String,
}

/// What an undo or a reset has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The checkpoint that the files are from.
    pub to: String,
    /// What was there before, which is kept for seven days.
    pub before: String,
    /// Files that were written, or removed because they had not been there, relative to the worktree.
    pub files: Vec<PathBuf>,
    /// Files that would have been, and are too large to be kept: they were left alone.
    pub left_alone: Vec<PathBuf>,
}

/// Why there is no checkpoint, or nothing was restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Git could not be run.
    #[error(transparent)]
    Git(#[from] HandlerError),
    /// Git refused.
    #[error("git {command} failed: {said}")]
    Refused {
        /// The subcommand.
        command: String,
        /// The last line it wrote.
        said: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Neither `XDG_STATE_HOME` nor `HOME` is set.
    #[error("neither XDG_STATE_HOME nor HOME says where to keep snapshots")]
    NoState,
}

type Result<T> = std::result::Result<T, SnapshotError>;

impl Snapshots {
    /// The checkpoints of the worktree that `dir` is in; `None` outside of one, and where there is no git. Reads a few
    /// files.
    pub fn open(dir: &Path, env: &BTreeMap<String, String>) -> Result<Option<Self>> {
        let Some(worktree) = repository::root(dir).and_then(|worktree| worktree.canonicalize().ok()) else {
            return Ok(None);
        };
        let Some(mut git) = git::find(env) else { return Ok(None) };
        let store =
            state(env).ok_or(SnapshotError::NoState)?.join("snapshots").join(digest(&worktree.to_string_lossy()));
        for (name, value) in CONFIG {
            git.env.insert((*name).to_owned(), (*value).to_owned());
        }
        for (name, path) in [("GIT_DIR", &store), ("GIT_WORK_TREE", &worktree)] {
            git.env.insert(name.to_owned(), path.display().to_string());
        }
        Ok(Some(Self { git, store, worktree }))
    }

    /// Keeps what the worktree is like; `None` where it is as at the session's last checkpoint. Cancel safe.
    pub async fn keep(&self, session: &str, label: &str) -> Result<Option<Checkpoint>> {
        self.keep_until(session, label, unbounded(&CancellationToken::new())).await
    }

    /// The session's checkpoints, the newest first. Cancel safe.
    pub async fn list(&self, session: &str) -> Result<Vec<Checkpoint>> {
        let cancel = CancellationToken::new();
        self.list_until(session, unbounded(&cancel)).await
    }

    /// Takes back the session's last step: files that differ between its last two checkpoints become what they were at
    /// the one before, all others stay. `None` where there is no step. Called again, it goes on.
    pub async fn undo(&self, session: &str) -> Result<Option<Restored>> {
        self.restore(session, false).await
    }

    /// Makes the worktree what it was at the session's first checkpoint. `None` where there is none.
    pub async fn reset(&self, session: &str) -> Result<Option<Restored>> {
        self.restore(session, true).await
    }

    pub(super) async fn keep_until(&self, session: &str, label: &str, until: Until<'_>) -> Result<Option<Checkpoint>> {
        let _lock = self.lock(until).await?;
        let tree = self.tree(until).await?;
        let name = reference(session);
        let last = self.known(&name, until).await?;
        if let Some(last) = &last
            && self.known(&format!("{last}^{{tree}}"), until).await?.as_ref() == Some(&tree)
        {
            return Ok(None);
        }
        let id = self.commit(&tree, last.as_deref(), label, until).await?;
        self.git(&["update-ref", &name, &id], until).await?;
        Ok(self.list_until(session, until).await?.into_iter().next())
    }

    async fn list_until(&self, session: &str, until: Until<'_>) -> Result<Vec<Checkpoint>> {
        let name = reference(session);
        if self.known(&name, until).await?.is_none() {
            return Ok(Vec::new());
        }
        let log = self.git(&["log", "--first-parent", "--format=%H %ct %s", &name], until).await?;
        let line = |line: &str| {
            let mut fields = line.splitn(3, ' ');
            let (id, time) = (fields.next()?.to_owned(), fields.next()?.parse().ok()?);
            Some(Checkpoint { id, time, label: fields.next()?.to_owned() })
        };
        Ok(log.lines().filter_map(line).collect())
    }

    async fn restore(&self, session: &str, to_the_first: bool) -> Result<Option<Restored>> {
        let cancel = CancellationToken::new();
        let until = unbounded(&cancel);
        let list = self.list_until(session, until).await?;
        let (Some(last), Some(target)) = (list.first(), if to_the_first { list.last() } else { list.get(1) }) else {
            return Ok(None);
        };
        let _lock = self.lock(until).await?;
        let present = self.tree(until).await?;
        let before = self.commit(&present, Some(&last.id), "before it was restored", until).await?;
        self.git(&["update-ref", &format!("refs/gatehook/kept/{before}"), &before], until).await?;
        let from = if to_the_first { &before } else { &last.id };
        let changed =
            self.git(&["diff-tree", "-r", "-z", "--no-renames", "--name-status", from, &target.id], until).await?;
        let (files, left_alone) = self.write(&changed, &target.id, until).await?;
        self.git(&["update-ref", &reference(session), &target.id], until).await?;
        Ok(Some(Restored { to: target.id.clone(), before, files, left_alone }))
    }

    /// Writes and removes files, by the lines of a diff towards `target`.
    async fn write(&self, changed: &str, target: &str, until: Until<'_>) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        let mut fields = changed.split('\0').map(str::to_owned);
        let mut changes = Vec::new();
        while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
            changes.push((status, path));
        }
        let worktree = self.worktree.clone();
        let sized = apart(move || {
            let sized = changes.into_iter().map(|(status, path)| (is_too_large(&worktree.join(&path)), status, path));
            sized.collect::<Vec<_>>()
        });
        let (mut written, mut removed, mut left_alone) = (Vec::new(), Vec::new(), Vec::new());
        for (is_too_large, status, path) in sized.await? {
            match status.as_str() {
                _ if is_too_large => left_alone.push(PathBuf::from(path)),
                "D" => removed.push(path),
                _ => written.push(path),
            }
        }
        let list = self.store.join("paths");
        for (paths, command) in
            [(&removed, &["rm", "-q", "--force", "--ignore-unmatch"][..]), (&written, &["checkout", "-q", target])]
        {
            if paths.is_empty() {
                continue;
            }
            self.write_file(&list, paths.join("\0")).await?;
            let from = format!("--pathspec-from-file={}", list.display());
            let args: Vec<&str> = ["--literal-pathspecs"]
                .iter()
                .chain(command)
                .copied()
                .chain([from.as_str(), "--pathspec-file-nul"])
                .collect();
            self.git(&args, until).await?;
        }
        Ok((removed.into_iter().chain(written).map(PathBuf::from).collect(), left_alone))
    }

    /// The worktree as a tree, but for files that are too large, or that the project ignores.
    async fn tree(&self, until: Until<'_>) -> Result<String> {
        let listed = ["ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard"];
        let changed = self.git(&listed, until).await?;
        let worktree = self.worktree.clone();
        let paths = apart(move || {
            let named = changed.split('\0').filter(|path| !path.is_empty() && !path.ends_with('/'));
            let mut paths: Vec<String> =
                named.filter(|path| !is_too_large(&worktree.join(path))).map(str::to_owned).collect();
            paths.dedup();
            paths
        });
        let paths = paths.await?;
        if !paths.is_empty() {
            let list = self.store.join("paths");
            self.write_file(&list, paths.join("\0")).await?;
            let from = format!("--pathspec-from-file={}", list.display());
            let add = ["--literal-pathspecs", "add", "--all", "--ignore-errors", &from, "--pathspec-file-nul"];
            // Files come and go meanwhile; what could be added is in the index.
            if let Err(error) = self.git(&add, until).await {
                let SnapshotError::Refused { .. } = error else { return Err(error) };
                tracing::debug!(%error, "some files are not in the snapshot");
            }
        }
        Ok(self.git(&["write-tree"], until).await?.trim().to_owned())
    }

    async fn commit(&self, tree: &str, parent: Option<&str>, label: &str, until: Until<'_>) -> Result<String> {
        let label: String = label.chars().map(|char| if char.is_control() { ' ' } else { char }).take(200).collect();
        let mut args = vec!["commit-tree", tree, "-m", &label];
        if let Some(parent) = parent {
            args.extend(["-p", parent]);
        }
        Ok(self.git(&args, until).await?.trim().to_owned())
    }

    /// Forgets what is older than seven days; once a day at most.
    pub(super) async fn tidy_until(&self, until: Until<'_>) -> Result<()> {
        let stamp = self.store.join("tidied");
        let looked = stamp.clone();
        let age = apart(move || looked.metadata().and_then(|it| it.modified()).ok().and_then(|at| at.elapsed().ok()));
        let age = age.await?;
        if age.is_some_and(|age| age < TIDIED) {
            return Ok(());
        }
        let _lock = self.lock(until).await?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let oldest = i64::try_from(now.saturating_sub(KEPT).as_secs()).unwrap_or(i64::MAX);
        let format = "--format=%(committerdate:unix) %(refname)";
        for line in self.git(&["for-each-ref", format, "refs/gatehook"], until).await?.lines() {
            if let Some((time, name)) = line.split_once(' ')
                && time.parse::<i64>().is_ok_and(|time| time < oldest)
            {
                self.git(&["update-ref", "-d", name], until).await?;
            }
        }
        self.git(&["gc", "--quiet", "--prune=7.days.ago"], until).await?;
        self.write_file(&stamp, String::new()).await
    }

    /// What git knows by this name.
    async fn known(&self, name: &str, until: Until<'_>) -> Result<Option<String>> {
        let told = self.run(&["rev-parse", "--quiet", "--verify", name], until).await?;
        let id = String::from_utf8_lossy(&told.stdout).trim().to_owned();
        Ok((told.exit_code == 0 && !id.is_empty()).then_some(id))
    }

    async fn git(&self, args: &[&str], until: Until<'_>) -> Result<String> {
        let told = self.run(args, until).await?;
        if told.exit_code == 0 && !told.cut {
            return Ok(String::from_utf8_lossy(&told.stdout).into_owned());
        }
        let command = args.iter().find(|arg| !arg.starts_with('-')).copied().unwrap_or_default().to_owned();
        let said =
            if told.cut { "it has too much to say" } else { told.stderr.trim().lines().last().unwrap_or_default() };
        Err(SnapshotError::Refused { command, said: said.to_owned() })
    }

    async fn run(&self, args: &[&str], until: Until<'_>) -> Result<Told> {
        let same_bytes =
            ["-c", "core.autocrlf=false", "-c", "core.attributesFile=/dev/null", "-c", "core.quotePath=false"];
        let all: Vec<&str> = same_bytes.iter().chain(args).copied().collect();
        Ok(git::run(&self.git, &all, &self.worktree, until, OUTPUT).await?)
    }

    /// One process at a time; makes the store where there is none. What a process that was ended has left is taken away.
    async fn lock(&self, until: Until<'_>) -> Result<File> {
        let store = self.store.clone();
        let opened = apart(move || {
            DirBuilder::new().recursive(true).mode(0o700).create(&store)?;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600).open(store.join("gatehook.lock"))
        });
        let file = opened.await?.map_err(|source| SnapshotError::Io { path: self.store.clone(), source })?;
        while file.try_lock().is_err() {
            tokio::select! {
                biased;
                kind = stopped(until.cancel, until.deadline) => return Err(HandlerError::new(kind, describe(kind)).into()),
                () = sleep(RETRY) => {}
            }
        }
        let store = self.store.clone();
        let is_new = apart(move || {
            let _ = std::fs::remove_file(store.join("index.lock"));
            !store.join("HEAD").exists()
        });
        if is_new.await? {
            // The worktree's variables would make it the worktree's own repository.
            let mut git = self.git.clone();
            git.env.retain(|name, _| name != "GIT_DIR" && name != "GIT_WORK_TREE");
            let store = self.store.display().to_string();
            git::run(&git, &["init", "--quiet", "--bare", &store], &self.worktree, until, OUTPUT).await?;
        }
        let (store, worktree) = (self.store.clone(), self.worktree.clone());
        apart(move || exclude(&store, &worktree)).await?;
        Ok(file)
    }

    async fn write_file(&self, path: &Path, text: String) -> Result<()> {
        let file = path.to_owned();
        let written = apart(move || std::fs::write(file, text)).await?;
        written.map_err(|source| SnapshotError::Io { path: path.to_owned(), source })
    }
}

/// On a thread that may wait for files.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let panicked = |_| HandlerError::new(FailureKind::HandlerError, "it panicked");
    Ok(tokio::task::spawn_blocking(work).await.map_err(panicked)?)
}

/// What the project ignores beside its `.gitignore` files.
fn exclude(store: &Path, worktree: &Path) {
    let own = read(&worktree.join(".git/info/exclude"), 1 << 20).unwrap_or_default();
    let path = store.join("info/exclude");
    if std::fs::read_to_string(&path).is_ok_and(|known| known == own) {
        return;
    }
    let _ = std::fs::create_dir_all(store.join("info"));
    let _ = std::fs::write(path, own);
}

fn is_too_large(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > FILE_LIMIT)
}

/// A session's name as that of a reference.
fn reference(session: &str) -> String {
    format!("refs/gatehook/sessions/{}", digest(session))
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
