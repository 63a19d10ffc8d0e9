//! A project: the folder whose content its owner approves.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::definition::HookDefinition;
use crate::handlers::command;

/// The variable by which every hook finds the project.
pub const PROJECT_DIR: &str = "GATEHOOK_PROJECT_DIR";

/// Variables that hooks of one system or another find the project by.
const PROJECT_VARIABLES: &[&str] = &[
    PROJECT_DIR,
    "OLLAMA_PROJECT_DIR",
    "QARIN_PROJECT_DIR",
    "CLAUDE_PROJECT_DIR",
    "CURSOR_PROJECT_DIR",
    "GEMINI_PROJECT_DIR",
];

/// Folders of the system. A program in one of them is named by an approval, not hashed: whoever can change it needs no
/// hook.
const SYSTEM: &[&str] = &[
    "/bin", "/sbin", "/usr", "/lib", "/lib64", "/opt", "/nix", "/snap", "/etc", "/dev", "/proc", "/System", "/Library",
];

/// A project, and what its hooks' lines are read by.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    env: Arc<BTreeMap<String, String>>,
    /// Folders of `PATH` in the project.
    pub(super) own_path: Vec<PathBuf>,
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    Inside,
    System,
    Outside,
}

impl Project {
    /// The project of this folder, which must exist; `env` has `HOME` and `PATH`.
    pub fn at(root: &Path, env: &BTreeMap<String, String>) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let path = env.get("PATH").map(String::as_str).unwrap_or_default();
        let own_path = std::env::split_paths(path).map(|folder| root.join(folder));
        let own_path = own_path.filter(|folder| folder.canonicalize().is_ok_and(|it| it.starts_with(&root))).collect();
        Ok(Self { env: Arc::new(env.clone()), own_path, root })
    }

    /// The project that `folder` is in: the nearest folder above that git keeps, else `folder` itself.
    pub fn around(folder: &Path, env: &BTreeMap<String, String>) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let root = folder.ancestors().find(|above| above.join(".git").exists()).unwrap_or(&folder);
        Self::at(root, env)
    }

    /// Its folder, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path as it is shown: from the project's folder, where it is inside.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// Where a hook of this project runs: from the project's folder, wherever somebody works in it.
    pub fn working_dir(&self, hook: &HookDefinition) -> PathBuf {
        match &hook.working_dir {
            Some(written) if hook.profile.spec().expands_references => {
                command::working_dir(written, &self.root, &self.env)
            }
            Some(written) => self.root.join(written),
            None => self.root.clone(),
        }
    }

    /// Where a path without links leads.
    pub(super) fn place(&self, path: &Path) -> Place {
        if path.starts_with(&self.root) {
            Place::Inside
        } else if SYSTEM.iter().any(|folder| path.starts_with(folder)) {
            Place::System
        } else {
            Place::Outside
        }
    }

    /// What a variable of a hook's line holds, where that can be known.
    pub(super) fn variable(&self, name: &str, working_dir: &Path) -> Option<PathBuf> {
        match name {
            "PWD" => Some(working_dir.to_owned()),
            "HOME" => self.env.get("HOME").map(PathBuf::from),
            name if PROJECT_VARIABLES.contains(&name) => Some(self.root.clone()),
            _ => None,
        }
    }
}
