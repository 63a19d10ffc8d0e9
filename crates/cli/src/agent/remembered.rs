//! Permission rules that the person took for good: for one workspace, in one file beside the user's configuration, which
//! the agent's own tools do not touch.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use gatehook_agent::approval::Rule;
use gatehook_engine::trust::atomic::{self, Lock};
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::places::home;

/// Bytes of the file at most.
const BOUND: u64 = 1024 * 1024;

/// The file: what is allowed, workspace by workspace.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Remembered(BTreeMap<String, Allowed>);

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    allow: Vec<String>,
}

/// Where rules are remembered; `None` where nobody says where configuration is.
pub(crate) fn path(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    home(env, "XDG_CONFIG_HOME", ".config").map(|folder| folder.join("gatehook/permissions.json"))
}

/// What the person took for good in the folder that the process works in.
pub(crate) fn here(env: &BTreeMap<String, String>) -> Result<Vec<Rule>, Failure> {
    let Some(path) = path(env) else { return Ok(Vec::new()) };
    let workspace = std::env::current_dir()?.canonicalize()?;
    read(&path, &workspace).map_err(|error| {
        let help = format!("mend {}, or remove it", path.display());
        Failure::new(Exit::Configuration, format!("remembered permissions cannot be read: {error}"), Some(help))
    })
}

/// The rules of a workspace.
pub(crate) fn read(path: &Path, workspace: &Path) -> io::Result<Vec<Rule>> {
    let mut remembered = whole(path)?;
    let allowed = remembered.0.remove(&*workspace.to_string_lossy()).unwrap_or_default().allow;
    allowed.iter().map(|rule| rule.parse().map_err(io::Error::other)).collect()
}

/// Remembers one more.
pub(crate) fn add(path: &Path, workspace: &Path, rule: &Rule) -> io::Result<()> {
    let lock = Lock::take(path)?;
    let mut remembered = whole(path)?;
    let allowed = &mut remembered.0.entry(workspace.to_string_lossy().into_owned()).or_default().allow;
    let rule = rule.to_string();
    if !allowed.contains(&rule) {
        allowed.push(rule);
    }
    let mut text = serde_json::to_string_pretty(&remembered)?;
    text.push('\n');
    atomic::replace(path, text.as_bytes(), &lock)
}

fn whole(path: &Path) -> io::Result<Remembered> {
    let Some(bytes) = atomic::read(path, BOUND)? else { return Ok(Remembered::default()) };
    Ok(serde_json::from_slice(&bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_remembered_for_its_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gatehook/permissions.json");
        let rule = |text: &str| text.parse::<Rule>().unwrap();
        assert_eq!(read(&file, Path::new("/a")).unwrap(), []);
        for text in ["bash:command=git push*", "bash:command=git push*", "edit"] {
            add(&file, Path::new("/a"), &rule(text)).unwrap();
        }
        add(&file, Path::new("/b"), &rule("write")).unwrap();
        assert_eq!(read(&file, Path::new("/a")).unwrap(), [rule("bash:command=git push*"), rule("edit")]);
        assert_eq!(read(&file, Path::new("/b")).unwrap(), [rule("write")]);
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("permissions.json");
        std::fs::write(&file, "{\"/a\": {\"alow\": []}}").unwrap();
        assert!(read(&file, Path::new("/a")).is_err());
        assert!(add(&file, Path::new("/a"), &"edit".parse().unwrap()).is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"/a\": {\"alow\": []}}");
    }
}
