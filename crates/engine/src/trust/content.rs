//! What a hook is: its definition as it is written, and the files of the project that it names, with their content.

use std::path::Path;

use gatehook_events::Event;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::collect::Collected;
use super::project::Project;
use crate::config::fields::{ENV_POLICY, ON_ERROR};
use crate::definition::{EnvPolicy, HookDefinition};

/// A hook's content, as an approval covers it.
///
/// Covered are the definition as it is written (with the event, the matcher and the profile, and with what its file's
/// `defaults` add), and of every file of the project that it names the path, where its links lead, and the bytes. Named,
/// and not covered, are programs outside of the project in the folders of the system. Any other file outside of the
/// project is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// The definition.
    pub definition: Value,
    /// The files, by path.
    pub files: Vec<NamedFile>,
    /// Files of the system that it names.
    pub programs: Vec<String>,
    /// Words that say only while it runs which file they name.
    pub unknown: Vec<String>,
    /// Why it cannot be approved: each a sentence.
    pub refusals: Vec<String>,
    /// SHA-256 over definition and files, as in `sha256:0123…`.
    pub hash: String,
}

/// A file of the project that a hook names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// Its path from the project's folder, as it is named.
    pub path: String,
    /// Its path without links, where it is another.
    pub target: Option<String>,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
    /// Its text, where it is one, not long, and does not look like a secret.
    pub text: Option<String>,
}

impl Content {
    /// The content of a hook of this project, as it is now. Reads files.
    pub fn of(event: Event, matcher: &str, hook: &HookDefinition, project: &Project) -> Self {
        Self::collected(event, matcher, hook, project).0
    }

    /// The same, with what it was read from.
    pub(super) fn collected(
        event: Event,
        matcher: &str,
        hook: &HookDefinition,
        project: &Project,
    ) -> (Self, Collected) {
        let mut collected = Collected::of(hook, project);
        let definition = definition(event, matcher, hook, project);
        if hook.written.is_none() {
            collected.refusals.push("its definition cannot be shown as it is written".to_owned());
        }
        let files = collected.take_files();
        let mut content = Self {
            hash: hash(&definition, &files),
            definition,
            files,
            programs: collected.programs.iter().cloned().collect(),
            unknown: collected.unknown.iter().cloned().collect(),
            refusals: Vec::new(),
        };
        content.refusals.clone_from(&collected.refusals);
        (content, collected)
    }

    /// Whether an approval can cover it.
    pub fn is_whole(&self) -> bool {
        self.refusals.is_empty()
    }
}

/// What is approved of a definition: what is written, and what it becomes together with the rest of its file. Values that
/// come from the environment are not in it: a token that changes is not another hook.
fn definition(event: Event, matcher: &str, hook: &HookDefinition, project: &Project) -> Value {
    let mut all = Map::new();
    let mut put = |name: &str, value: Value| all.insert(name.to_owned(), value);
    put("event", event.name().into());
    put("matcher", matcher.into());
    put("profile", hook.profile.name().into());
    put("source", hook.origin.source.name().into());
    put("version", hook.version.as_deref().into());
    put("hook", hook.written.as_deref().cloned().unwrap_or_default());
    put("timeout_ms", hook.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)).into());
    let on_error = hook.on_error.and_then(|on_error| ON_ERROR.iter().find(|(_, it)| *it == on_error));
    put("on_error", on_error.map(|(word, _)| *word).into());
    put(
        "env_policy",
        match &hook.env_policy {
            EnvPolicy::Only(names) => json!({"only": names}),
            policy => ENV_POLICY.iter().find(|(_, it)| *it == policy).map(|(word, _)| *word).into(),
        },
    );
    if let Some(skill) = &hook.origin.skill {
        put("skill", (**skill).into());
    }
    if let Some(command) = hook.handler.command()
        && !command.shell
        && Path::new(&command.command).starts_with(project.root())
    {
        put("program", project.shown(Path::new(&command.command)).into());
    }
    Value::Object(all)
}

fn hash(definition: &Value, files: &[NamedFile]) -> String {
    let files: Vec<Value> = files.iter().map(|file| json!([file.path, file.target, file.sha256])).collect();
    let mut text = String::new();
    canonical(&json!({"version": 1, "definition": definition, "files": files}), &mut text);
    digest(text.as_bytes())
}

/// SHA-256 of bytes, as in `sha256:0123…`.
pub(super) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hexadecimal(&Sha256::digest(bytes)))
}

/// Bytes in hexadecimal.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with one spelling for each value: no spaces, keys sorted.
pub(super) fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (number, (key, value)) in entries.into_iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                canonical(&Value::String(key.clone()), out);
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                canonical(item, out);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}
