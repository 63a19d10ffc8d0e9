//! Where a builtin runs, and how it speaks to the model.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Event, Input, Output, Profile};
use serde_json::{Map, Value, json};

use super::Arguments;
use crate::handler::DefinitionError;
use crate::handlers::command::environment;

/// Directory, environment and contract of one hook.
#[derive(Debug)]
pub(super) struct Place {
    /// The hook's `working_dir`.
    own: Option<PathBuf>,
    base: PathBuf,
    pub(super) env: BTreeMap<String, String>,
    pub(super) profile: Profile,
}

impl Place {
    pub(super) fn of(arguments: &Arguments<'_>) -> Result<Arc<Self>, DefinitionError> {
        let Arguments { definition, env, .. } = arguments;
        let own = definition.working_dir.is_some().then(|| environment::dir_of_hook(definition, env));
        let variables = environment::of_hook(definition, &env.env)?;
        Ok(Arc::new(Self { own, base: env.working_dir.clone(), env: variables, profile: definition.profile }))
    }

    /// The hook's own directory, else where the event happened.
    pub(super) fn dir(&self, input: &Input) -> PathBuf {
        let happened = || input.cwd.as_deref().map_or_else(|| self.base.clone(), |cwd| self.base.join(cwd));
        self.own.clone().unwrap_or_else(happened)
    }

    /// Whether it is known where the event happened. docker-agent's builtins say nothing where it is not.
    pub(super) fn is_known(&self, input: &Input) -> bool {
        self.profile == Profile::Native || self.own.is_some() || input.cwd.as_deref().is_some_and(|cwd| !cwd.is_empty())
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// Whether `event` takes instructions under keys; elsewhere context is one text.
    pub(super) fn instructs(&self, event: Event) -> bool {
        event.capabilities(self.profile).is_some_and(|able| able.instructions)
    }

    /// Text for the model: one instruction under a key, or plain text.
    pub(super) fn say(&self, event: Event, key: &str, label: &str, text: String) -> Output {
        if self.instructs(event) {
            return instructions(event, vec![json!({"key": key, "label": label, "content": text})]);
        }
        Output::additional_context(event, text)
    }
}

/// The folder in which Gatehook keeps what outlives it: `gatehook` in `XDG_STATE_HOME`, else in `~/.local/state`.
pub(super) fn state(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let folder = |name| env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
    Some(state?.join("gatehook"))
}

/// Instructions for the model, each under a key.
pub(super) fn instructions(event: Event, items: Vec<Value>) -> Output {
    Output::specific(HookSpecificOutput {
        hook_event_name: Some(event.public_name().to_owned()),
        instruction_context: Some(items),
        ..HookSpecificOutput::default()
    })
}

/// One file as an instruction of a group that is complete as given.
pub(super) fn file_instruction(group: &str, path: &Path, content: &str) -> Value {
    let path = path.display();
    let content = format!("Instructions from {path}:\n\n{content}");
    let fields = [
        ("key", format!("{group}/{path}")),
        ("group", group.to_owned()),
        ("label", path.to_string()),
        ("content", content),
    ];
    let mut item: Map<String, Value> =
        fields.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    item.insert("complete_group".to_owned(), true.into());
    Value::Object(item)
}

/// At most `limit` bytes of a regular file; `None` where it cannot be read or is empty.
pub(crate) fn read(path: &Path, limit: usize) -> Option<String> {
    if !path.metadata().ok()?.is_file() {
        return None; // To open a pipe would wait for its other end.
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    let text = shortened(&String::from_utf8_lossy(&bytes), limit);
    Some(text).filter(|text| !text.trim().is_empty())
}

/// The text, or as many whole lines of its beginning as `limit` bytes have, and a mark.
pub(super) fn shortened(text: &str, limit: usize) -> String {
    let text = text.trim_end();
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = text.get(..text.floor_char_boundary(limit)).unwrap_or_default();
    let head = head.rsplit_once('\n').map_or(head, |(lines, _)| lines);
    format!("{head}\n… (truncated)")
}

#[cfg(test)]
impl Place {
    /// A place without anything.
    pub(super) fn of_test() -> Self {
        Self { own: None, base: "/nonexistent".into(), env: BTreeMap::new(), profile: Profile::Native }
    }
}
