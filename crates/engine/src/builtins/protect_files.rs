//! `protect_files`: no tool call may name a file with secrets, the history of a repository, or the guard's own
//! configuration.
//!
//! A path is judged as it is written and as what it leads to, through links, `..` and `~`, in any case; in shell lines
//! (read by `shell.rs`) also behind quotes, variables, patterns and `cd`. What a program computes while it runs is out of
//! sight, and so is what a folder holds that is named as a whole: this keeps a model from what it was not meant to
//! touch, and is no sandbox.

mod named;
mod paths;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use gatehook_events::{Event, Input};
use serde_json::{Map, Value};

use self::named::Search;
use super::globs::Globs;
use super::place::{Place, state};
use super::{Arguments, Judge, Judging, NoText, deny};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;
use crate::streaming::{Scan, Streaming};

/// What is protected by itself, at any depth.
const PROTECTED: &[&str] = &[
    ".env*",
    ".git",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    "**/.config/gcloud",
    "**/.config/gh",
    "**/.docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".vault-token",
];

/// The guard's own, whatever the arguments say.
const OWN: &[&str] = &[
    "gatehook.yaml",
    "gatehook.yml",
    "gatehook.json",
    "gatehook.toml",
    ".gatehook",
    "**/.ollama/hooks",
    "**/.ollama/settings.json",
    "**/.ollm/trusted-hooks.json",
    "**/.config/gatehook",
];

/// Whether this path, written without links and `..`, is the guard's own configuration: what a tool that writes files
/// leaves alone, whatever its hooks say.
pub fn is_own(path: &Path) -> bool {
    static GLOBS: LazyLock<Option<Globs>> = LazyLock::new(|| Globs::new(OWN.iter().copied(), true).ok());
    has(&GLOBS, path)
}

/// Whether this path, written without links and `..`, is protected where no arguments say otherwise: what a tool that
/// searches a whole folder passes over.
pub fn is_protected(path: &Path) -> bool {
    static GLOBS: LazyLock<Option<Globs>> = LazyLock::new(|| Globs::new(PROTECTED.iter().copied(), true).ok());
    is_own(path) || has(&GLOBS, path)
}

fn has(globs: &LazyLock<Option<Globs>>, path: &Path) -> bool {
    let path = path.to_string_lossy();
    globs.as_ref().is_none_or(|globs| globs.has(path.trim_start_matches('/')))
}

struct ProtectFiles {
    place: Arc<Place>,
    globs: Globs,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let place = Place::of(arguments)?;
    let home = place.home();
    let given = arguments.args.iter().map(|pattern| absolute(pattern, home.as_deref()));
    let own = own(&place, arguments.definition.origin.file.as_deref().map(PathBuf::as_path));
    let patterns: Vec<String> = PROTECTED
        .iter()
        .map(|&pattern| pattern.to_owned())
        .chain(given)
        .chain(OWN.iter().map(|&pattern| pattern.to_owned()))
        .chain(own)
        .collect();
    let globs = Globs::new(patterns.iter().map(String::as_str), true);
    let help = "as in `args: [\"secrets/**\", \"!.env.example\"]`: patterns as in .gitignore, `!` takes out again";
    let globs = globs.map_err(|message| Arguments::wrong(message, help))?;
    Ok(Judging::handler(ProtectFiles { place, globs }))
}

/// A pattern of the arguments as one over absolute paths: `/x` and `~/x` are there, `a/b` is anywhere.
fn absolute(pattern: &str, home: Option<&Path>) -> String {
    let (takes_out, body) = pattern.strip_prefix('!').map_or(("", pattern), |body| ("!", body));
    match (body.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => format!("{takes_out}{}/{below}", literal(home)),
        _ if body.trim_end_matches('/').contains('/') && !body.starts_with(['/', '*']) => {
            format!("{takes_out}**/{body}")
        }
        _ => pattern.to_owned(),
    }
}

/// Where the hook was configured, and where Gatehook keeps what it knows.
fn own(place: &Place, file: Option<&Path>) -> Vec<String> {
    let config = place.variable("XDG_CONFIG_HOME").map(|folder| Path::new(folder).join("gatehook"));
    // A file may be named from where the host was started.
    let file = file.and_then(|file| std::path::absolute(file).ok());
    let known = [file, config, state(&place.env)].into_iter().flatten();
    let absolute = known.filter(|path| path.is_absolute());
    absolute.flat_map(|path| [paths::plain(&path), paths::real(&path)]).map(|path| literal(&path)).collect()
}

/// A pattern that fits this path alone.
fn literal(path: &Path) -> String {
    let mut pattern = String::new();
    for char in path.to_string_lossy().chars() {
        if matches!(char, '*' | '?' | '[' | '\\' | '!') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern
}

impl Judge for ProtectFiles {
    const READS_FILES: bool = true;
    const STREAMS: Streaming = Streaming::Scan;

    fn scan(&self) -> Option<Box<dyn Scan>> {
        Some(Box::new(NoText::default()))
    }

    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        let mut search = Search::new(&self.place, &self.globs, self.place.dir(input));
        if event == Event::PostInference {
            for call in input.tool_calls.iter().flat_map(|calls| calls.iter()) {
                match serde_json::from_str::<Map<String, Value>>(&call.function.arguments) {
                    Ok(arguments) => search.call(&call.function.name, None, &arguments),
                    // What is no JSON may be repaired by whoever runs it.
                    Err(_) => search.line(&call.function.arguments),
                }
            }
        } else if let Some(arguments) = input.tool_input.as_deref() {
            search.call(input.tool_name.as_deref().unwrap_or_default(), input.tool_category.as_deref(), arguments);
        }
        Ok(search.found().map(|found| deny(event, found)))
    }
}

#[cfg(test)]
mod tests;
