//! What `setup` hooks leave to later hooks of their project: variables, in one file of the user's.
//!
//! A hook appends `KEY=value` to the file that `GATEHOOK_ENV_FILE` names; the engine's [`env_file`] reads it. Who may
//! write variables may not weaken a guard by them: they hold for hooks of the source that wrote them and of weaker ones.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gatehook_engine::definition::{SOURCES, Source};
use gatehook_engine::trust::atomic::{self, Lock};
use gatehook_engine::{HookDefinition, env_file, text};
use serde::{Deserialize, Serialize};

use crate::places::home;

type Env = BTreeMap<String, String>;

/// Variables by which a hook knows where to write.
pub(crate) const ENV_FILE: &[&str] = &["GATEHOOK_ENV_FILE", "OLLAMA_ENV_FILE"];

/// Bytes of the file that keeps them.
const MAX_FILE: u64 = 16 << 20;
/// Its format.
const VERSION: u32 = 1;

/// Parts of names whose values are not shown.
const SECRET_PARTS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH"];

/// What one project's setup hooks left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variables {
    /// The weakest source of a hook that could write them.
    source: String,
    pub(crate) variables: BTreeMap<String, String>,
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    projects: BTreeMap<String, Variables>,
    /// When each was prepared last, in seconds since 1970.
    #[serde(default)]
    prepared: BTreeMap<String, u64>,
}

impl Default for Kept {
    fn default() -> Self {
        Self { version: VERSION, projects: BTreeMap::new(), prepared: BTreeMap::new() }
    }
}

/// Why there are no variables.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VariablesError {
    /// There is no place to keep them.
    #[error("variables of setup hooks cannot be kept: neither XDG_STATE_HOME nor HOME is set")]
    NoPlace,
    /// The file that keeps them is not to be had.
    #[error("the variables of setup hooks in {path} cannot be {doing}: {cause}", path = .path.display())]
    Kept { path: PathBuf, doing: &'static str, cause: String },
    /// What hooks wrote is no variables; one line for each that is wrong.
    #[error("what setup hooks wrote cannot be kept:\n{}", .0.join("\n"))]
    Written(Vec<String>),
}

impl VariablesError {
    /// What to do about it.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::NoPlace => "set HOME",
            Self::Kept { .. } => "move the file away and run `gatehook setup` again",
            Self::Written(_) => "a line is KEY=value; what was kept before is as it was",
        }
    }
}

impl Variables {
    /// What hooks of this source wrote.
    pub(crate) fn new(source: Source, variables: BTreeMap<String, String>) -> Self {
        Self { source: source.name().to_owned(), variables }
    }

    /// One name that is no source's makes it the weakest, whose variables hold for the fewest hooks.
    fn source(&self) -> Source {
        SOURCES.iter().find(|(name, _)| *name == self.source).map_or(Source::Downloaded, |(_, source)| *source)
    }

    /// These, and what was kept before of other names.
    pub(crate) fn or(mut self, before: Option<Variables>) -> Self {
        let Some(before) = before else { return self };
        self.source = self.source().max(before.source()).name().to_owned();
        for (name, value) in before.variables {
            self.variables.entry(name).or_insert(value);
        }
        self
    }

    /// Gives them to a hook of as much authority or less. What its own definition says stands.
    pub(crate) fn give(&self, hook: &mut HookDefinition) {
        if hook.origin.source < self.source() {
            return;
        }
        for (name, value) in &self.variables {
            hook.env.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }

    /// Names and values for people; of what may be a secret the name alone.
    pub(crate) fn shown(&self) -> BTreeMap<&str, String> {
        let shown = |name: &str, value: &str| match SECRET_PARTS.iter().any(|part| name.to_uppercase().contains(part)) {
            true => "…".to_owned(),
            false => text::plain(value).chars().take(80).collect(),
        };
        self.variables.iter().map(|(name, value)| (name.as_str(), shown(name, value))).collect()
    }
}

/// What is kept for a project.
pub(crate) fn of_project(root: &Path, env: &Env) -> Result<Option<Variables>, VariablesError> {
    let Ok(path) = path(env) else { return Ok(None) };
    Ok(read(&path)?.projects.remove(&*root.to_string_lossy()))
}

/// When a project was prepared last; `None` where it never was.
pub(crate) fn prepared(root: &Path, env: &Env) -> Result<Option<SystemTime>, VariablesError> {
    let Ok(path) = path(env) else { return Ok(None) };
    let seconds = read(&path)?.prepared.remove(&*root.to_string_lossy());
    Ok(seconds.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))))
}

/// Keeps the variables of a project, as `change` makes them of what is kept, and where it `is_prepared` that it is; says
/// where.
pub(crate) fn keep(
    root: &Path,
    env: &Env,
    is_prepared: bool,
    change: impl FnOnce(Option<Variables>) -> Variables,
) -> Result<(PathBuf, Variables), VariablesError> {
    let path = path(env)?;
    let unwritable = |error: io::Error| fault(&path, "written", error);
    let lock = Lock::take(&path).map_err(unwritable)?;
    let mut kept = read(&path)?;
    let root = root.to_string_lossy().into_owned();
    let variables = change(kept.projects.remove(&root));
    if !variables.variables.is_empty() {
        kept.projects.insert(root.clone(), variables.clone());
    }
    if let Ok(now) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)
        && is_prepared
    {
        kept.prepared.insert(root, now.as_secs());
    }
    // Texts alone: there is always JSON for them.
    let text = serde_json::to_string_pretty(&kept).unwrap_or_default() + "\n";
    atomic::replace(&path, text.as_bytes(), &lock).map_err(unwritable)?;
    Ok((path, variables))
}

fn path(env: &Env) -> Result<PathBuf, VariablesError> {
    let folder = home(env, "XDG_STATE_HOME", ".local/state").ok_or(VariablesError::NoPlace)?;
    Ok(folder.join("gatehook/variables.json"))
}

fn read(path: &Path) -> Result<Kept, VariablesError> {
    let bytes = match atomic::read(path, MAX_FILE) {
        // Where a file stands for one of its folders nothing was ever kept.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => None,
        read => read.map_err(|error| fault(path, "read", error))?,
    };
    let Some(bytes) = bytes else { return Ok(Kept::default()) };
    let kept: Kept = serde_json::from_slice(&bytes).map_err(|error| fault(path, "read", error))?;
    match kept.version {
        VERSION => Ok(kept),
        version => Err(fault(path, "read", format!("version {version} is not known"))),
    }
}

fn fault(path: &Path, doing: &'static str, cause: impl ToString) -> VariablesError {
    VariablesError::Kept { path: path.to_owned(), doing, cause: cause.to_string() }
}

/// The file that hooks append to: their owner's alone, and gone with this.
#[derive(Debug)]
pub(crate) struct EnvFile(PathBuf);

impl EnvFile {
    /// An empty one.
    pub(crate) fn new(env: &Env) -> Result<Self, VariablesError> {
        let kept = path(env)?;
        let path = kept.with_file_name(format!("setup.{}.env", std::process::id()));
        let folder = path.parent().unwrap_or(Path::new("."));
        let unwritable = |error: io::Error| fault(&path, "written", error);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unwritable)?;
        // One that a process of this number left behind, which ended before it could take it away.
        let _ = std::fs::remove_file(&path);
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(unwritable)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What hooks wrote.
    pub(crate) fn read(&self) -> Result<BTreeMap<String, String>, VariablesError> {
        let wrong = |cause: String| VariablesError::Written(vec![cause]);
        // A hook may have put something else in its place, or taken it away.
        match std::fs::symlink_metadata(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Ok(meta) if meta.is_file() => {}
            Ok(_) => return Err(wrong("it is no file any more".to_owned())),
            Err(error) => return Err(wrong(error.to_string())),
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(&self.0).map_err(|error| wrong(error.to_string()))?;
        let bound = env_file::MAX_BYTES as u64 + 1;
        file.take(bound).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
        env_file::read(&bytes).map_err(VariablesError::Written)
    }
}

impl Drop for EnvFile {
    fn drop(&mut self) {
        // A hook may have taken it away.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use gatehook_engine::definition::Origin;

    use super::*;

    #[test]
    fn variables_hold_for_hooks_of_their_source_and_weaker_ones_and_replace_nothing() {
        let given = Variables::new(Source::Workspace, [("A".to_owned(), "new".to_owned())].into());
        for (source, expected) in [
            (Source::Managed, None),
            (Source::User, None),
            (Source::Workspace, Some("new")),
            (Source::Extension, Some("new")),
        ] {
            let mut hook = HookDefinition::builtin("x", &[]);
            hook.origin = Origin { source, ..Origin::default() };
            given.give(&mut hook);
            assert_eq!(hook.env.get("A").map(String::as_str), expected, "{source:?}");
            hook.env.insert("A".to_owned(), "own".to_owned());
            given.give(&mut hook);
            assert_eq!(hook.env["A"], "own");
        }
    }

    #[test]
    fn what_is_added_later_is_as_weak_as_its_weakest_writer() {
        let variables = |source, name: &str| Variables::new(source, [(name.to_owned(), "1".to_owned())].into());
        let both = variables(Source::User, "A").or(Some(variables(Source::Workspace, "B")));
        assert_eq!((both.source(), both.variables.len()), (Source::Workspace, 2));
    }

    #[test]
    fn a_value_that_may_be_a_secret_is_not_shown() {
        let variables = env_file::read(b"API_KEY=hunter2\ndb_password=hunter2\nREGION=eu").unwrap();
        let variables = Variables::new(Source::User, variables);
        assert_eq!(
            variables.shown(),
            [("API_KEY", "…"), ("db_password", "…"), ("REGION", "eu")].map(|(n, v)| (n, v.to_owned())).into()
        );
    }
}
