//! Whose file is it? By what stands in it, and where it is.

use std::collections::BTreeMap;
use std::path::Path;

use gatehook_engine::config::{Document, OLLAMA_VARIABLES};
use gatehook_events::profile::{NAMES, PROFILES};
use gatehook_events::{Event, Profile};

use crate::failure::Failure;

/// What `--from` calls the `OLLAMA_HOOK_*` variables.
const ENVIRONMENT: &str = "environment";
/// Bytes of a file of variables.
const MAX_VARIABLES: u64 = 64 << 10;
/// Folders of systems whose events look like another's.
const STRANGERS: &[&str] = &[".claude", ".cursor", ".gemini", ".codex", ".copilot", ".qarin"];

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Profile(Profile),
    Environment,
}

impl From {
    /// What `--from` says.
    pub(super) fn named(name: &str) -> Result<Self, Failure> {
        match (name, Profile::from_name(name)) {
            (ENVIRONMENT, _) => Ok(Self::Environment),
            (_, Some(Profile::Native)) => Err(Failure::usage("a native file needs no import", None)),
            (_, Some(profile)) => Ok(Self::Profile(profile)),
            (_, None) => {
                let known = NAMES.into_iter().filter(|name| *name != Profile::Native.name()).chain([ENVIRONMENT]);
                let known: Vec<&str> = known.collect();
                Err(Failure::usage(format!("nothing is imported from `{name}`; known are {}", known.join(", ")), None))
            }
        }
    }
}

/// The profile that has most of the events of a file.
pub(super) fn profile(file: &Path, document: &Document) -> Result<Profile, Failure> {
    let unknown = |message: String| {
        let known: Vec<&str> =
            PROFILES.iter().filter(|row| row.profile != Profile::Native).map(|row| row.name).collect();
        Failure::usage(message, Some(format!("name whose it is: `--from` {}", known.join(", "))))
    };
    let is_in = |folder: &str| file.components().any(|part| part.as_os_str() == folder);
    if let Some(folder) = STRANGERS.iter().find(|folder| is_in(folder)) {
        return Err(unknown(format!("hooks of a system that keeps them in `{folder}` are not known")));
    }
    let root = &document.root;
    if root.get("agents").is_some() || root.get("settings").is_some() {
        return Ok(Profile::DockerAgent);
    }
    let events = root.get("hooks").map_or_else(|| root.entries(), |hooks| hooks.entries());
    let names = || events.iter().map(|(key, _)| key.text.as_str());
    let count = |profile: Profile| names().filter(|name| Event::from_name_in(profile, name).is_some()).count();
    let foreign = PROFILES.iter().filter(|row| row.is_foreign).map(|row| (count(row.profile), row.profile));
    // `custom` is a word that several have.
    let best = foreign.max_by_key(|(count, _)| *count).filter(|(count, _)| *count > 0);
    match best {
        Some((_, profile)) if names().any(|name| Event::from_name(name).is_none()) || is_in(".ollm") => Ok(profile),
        _ if root.get("hooks").is_none() && names().any(|name| Event::from_name(name).is_some()) => {
            Ok(Profile::DockerAgent)
        }
        _ => Err(unknown(format!("nothing in {} says whose hooks they are", file.display()))),
    }
}

/// The variables of a file of `NAME=value` lines; `None` where it is no such file, and nobody said that it is.
pub(super) fn variables(file: &Path, is_said: bool) -> Result<Option<BTreeMap<String, String>>, Failure> {
    use std::io::Read as _;
    let unreadable =
        |error: std::io::Error| Failure::usage(format!("{} cannot be read: {error}", file.display()), None);
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    opened.take(MAX_VARIABLES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let value = ['"', '\''].iter().find_map(|it| value.strip_prefix(*it)?.strip_suffix(*it)).unwrap_or(value);
        Some((name.trim().to_owned(), value.to_owned()))
    };
    let pairs: BTreeMap<String, String> = lines.filter_map(pair).collect();
    let is_one = pairs.keys().any(|name| OLLAMA_VARIABLES.iter().any(|variable| variable.name == name));
    if !is_one && is_said {
        let names: Vec<&str> = OLLAMA_VARIABLES.iter().map(|variable| variable.name).collect();
        return Err(Failure::usage(format!("{} sets none of {}", file.display(), names.join(", ")), None));
    }
    Ok(is_one.then_some(pairs))
}
