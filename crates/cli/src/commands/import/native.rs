//! What was read as native configuration, and what of it has no place there.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use gatehook_engine::HandlerDefinition;
use gatehook_engine::config::fields::HOOK;
use gatehook_engine::config::{Document, File, ollama_env};
use gatehook_engine::definition::{HookDefinition, HookGroup, HooksConfig, OnError};
use gatehook_engine::text;
use gatehook_events::{Event, Profile};
use serde_json::{Map, Value, json};

use super::yaml;
use crate::failure::Failure;

/// What hooks of OLLM are told where their file says no version.
const OLLM_VERSION: &str = "1.0.0";
/// What OLLM's files say beside events, and what becomes of it.
const OLLM_OPTIONS: &[(&str, &str)] = &[
    ("trustWorkspace", "hooks of a project run once their owner approved them"),
    ("trustWorkspaceHooks", "hooks of a project run once their owner approved them"),
    ("trustDownloadedHooks", "downloaded hooks run once their owner approved them"),
    ("directories", "hooks are read from their own files"),
];

/// Native configuration, as far as it is one.
#[derive(Debug)]
pub(super) struct Native {
    hooks: HooksConfig,
    /// What it was made from.
    origin: String,
    /// What could not be carried over and why, a sentence each.
    pub(super) notes: Vec<String>,
    /// Variables that must be set where it is read.
    pub(super) variables: Vec<String>,
    /// The project's folder, from which programs are named.
    root: String,
}

impl Native {
    /// What the `OLLAMA_HOOK_*` variables say.
    pub(super) fn of_environment(env: &BTreeMap<String, String>) -> Result<Self, Failure> {
        let hooks = ollama_env(env)?;
        let Some(hooks) = hooks else {
            return Err(Failure::usage(
                "no OLLAMA_HOOK_PRE_INFERENCE_URL and no OLLAMA_HOOK_POST_INFERENCE_URL is set",
                None,
            ));
        };
        let (mut notes, mut variables) = (Vec::new(), Vec::new());
        for name in headers(&hooks) {
            let variable = header_variable(name);
            notes.push(format!(
                "the value of the header `{name}` may be a secret and is not copied: set {variable} to it"
            ));
            variables.push(variable);
        }
        Ok(Self { hooks, origin: "the environment".to_owned(), notes, variables, root: String::new() })
    }

    /// What a file of this profile says.
    pub(super) fn of_file(document: &Document, file: &File, profile: Profile, root: &Path) -> Self {
        let root = root.to_string_lossy().into_owned();
        let mut notes = outside(document, profile);
        notes.extend(file.notes.iter().cloned());
        let mut hooks = file.hooks.clone();
        for group in &mut hooks.groups {
            let off = group.hooks.extract_if(.., |hook| hook.switched_off.is_some());
            notes.extend(off.map(|hook| {
                let (line, by) = (hook.origin.line, hook.switched_off.as_deref().unwrap_or_default());
                format!("line {line}: `{}`, which is switched off by {by}", hook.display_name())
            }));
        }
        for group in &hooks.groups {
            notes.extend(ignored_matcher(group));
            notes.extend(group.hooks.iter().flat_map(not_carried));
        }
        Self { hooks, origin: String::new(), notes, variables: Vec::new(), root }
    }

    pub(super) fn made_from(mut self, origin: &str) -> Self {
        self.origin = origin.to_owned();
        self
    }

    /// The text of the file.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        comment(&mut text, "", &format!("Made by `gatehook import` from {}.", self.origin));
        comment(&mut text, "", "A hook with a `dialect` is told, and answers, as it was before.");
        if !self.notes.is_empty() {
            comment(&mut text, "", "Not carried over:");
            self.notes.iter().for_each(|note| comment(&mut text, "- ", note));
        }
        if self.hooks.is_empty() {
            text.push_str("hooks: {}\n");
            return text;
        }
        text.push_str("hooks:\n");
        let mut events: Vec<&'static str> = Vec::new();
        for group in self.hooks.groups.iter().filter(|group| !group.hooks.is_empty()) {
            let name = group.event.public_name();
            if !events.contains(&name) {
                events.push(name);
            }
        }
        for event in events {
            text.push_str(&format!("  {event}:\n"));
            let groups = self.hooks.groups.iter().filter(|it| it.event.public_name() == event && !it.hooks.is_empty());
            groups.for_each(|group| self.push_group(&mut text, group));
        }
        text
    }

    fn push_group(&self, text: &mut String, group: &HookGroup) {
        let matcher = Some(&group.matcher).filter(|_| ignored_matcher(group).is_none() && !selects_all(&group.matcher));
        let preempts = group.event.is_lane();
        if matcher.is_none() && !preempts {
            group.hooks.iter().for_each(|hook| self.push_hook(text, hook, 4));
            return;
        }
        let mut first = "    - ";
        if let Some(matcher) = matcher {
            text.push_str(&format!("{first}matcher: {}\n", yaml::scalar(&json!(matcher), 6)));
            first = "      ";
        }
        if preempts {
            text.push_str(&format!("{first}preempt_yolo: true\n"));
        }
        text.push_str("      hooks:\n");
        group.hooks.iter().for_each(|hook| self.push_hook(text, hook, 8));
    }

    fn push_hook(&self, text: &mut String, hook: &HookDefinition, indent: usize) {
        let pad = " ".repeat(indent);
        if let Some(description) = written(hook).get("description").and_then(Value::as_str) {
            comment(text, &pad, description);
        }
        let fields = self.fields(hook);
        let known = HOOK.iter().filter_map(|field| Some((field.name, fields.get(field.name)?)));
        for (number, (name, value)) in known.enumerate() {
            let lead = if number == 0 { "- " } else { "  " };
            text.push_str(&format!("{pad}{lead}{name}: {}\n", yaml::scalar(value, indent + 4)));
        }
    }

    /// What a hook says, by the names that native hooks have.
    fn fields(&self, hook: &HookDefinition) -> Map<String, Value> {
        let mut fields = match (&hook.handler, hook.profile) {
            (_, Profile::Ollm) => self.of_ollm(hook),
            (_, Profile::OllamaCli) => of_ollama_cli(hook),
            (HandlerDefinition::Webhook(_), Profile::Native) => of_variables(hook),
            _ => written(hook),
        };
        fields.retain(|_, value| !value.is_null());
        if hook.profile != Profile::Native {
            fields.insert("dialect".to_owned(), json!(hook.profile.name()));
        }
        fields
    }

    fn of_ollm(&self, hook: &HookDefinition) -> Map<String, Value> {
        let mut fields = Map::new();
        let Some(command) = hook.handler.command() else { return fields };
        let said = written(hook).remove("command");
        let said = said.as_ref().and_then(Value::as_str).unwrap_or_default();
        // A program on PATH stays one; a path is named from where the new file's hooks run.
        let inside = command.command.strip_prefix(&self.root).and_then(|rest| rest.strip_prefix('/'));
        let program = match inside {
            _ if !said.contains('/') => said.to_owned(),
            Some(inside) if !self.root.is_empty() => format!("./{}", inside.trim_start_matches("./")),
            _ => command.command.clone(),
        };
        fields.extend([
            ("type".to_owned(), json!("command")),
            ("command".to_owned(), json!(program)),
            ("shell".to_owned(), json!(false)),
            ("name".to_owned(), json!(hook.name)),
        ]);
        if !command.args.is_empty() {
            fields.insert("args".to_owned(), json!(command.args));
        }
        fields.extend(hook.timeout.map(|timeout| ("timeout".to_owned(), json!(length(timeout)))));
        fields
    }
}

/// A hook as its file has it.
fn written(hook: &HookDefinition) -> Map<String, Value> {
    hook.written.as_deref().and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The same words mean the same in native hooks, but for a program without a shell, whose words stand in one text.
fn of_ollama_cli(hook: &HookDefinition) -> Map<String, Value> {
    let mut fields = written(hook);
    if let Some(command) = hook.handler.command().filter(|command| !command.shell) {
        let line = fields.get("command").and_then(Value::as_str).unwrap_or_default();
        let program = line.split_whitespace().next().unwrap_or_default().to_owned();
        fields.insert("command".to_owned(), json!(program));
        fields.insert("args".to_owned(), json!(command.args));
    }
    if let HandlerDefinition::Webhook(webhook) = &hook.handler {
        fields.insert("method".to_owned(), json!(webhook.method));
    }
    fields
}

/// A webhook that variables name.
fn of_variables(hook: &HookDefinition) -> Map<String, Value> {
    let mut fields = Map::new();
    let HandlerDefinition::Webhook(webhook) = &hook.handler else { return fields };
    fields.extend([
        ("type".to_owned(), json!("webhook")),
        ("url".to_owned(), json!(webhook.url)),
        ("contract".to_owned(), json!(webhook.contract.name())),
    ]);
    fields.extend(hook.timeout.map(|timeout| ("timeout".to_owned(), json!(length(timeout)))));
    let on_error = match hook.on_error {
        Some(OnError::Warn) => "warn",
        Some(OnError::Ignore) => "ignore",
        Some(OnError::Block) | None => "block",
    };
    fields.insert("on_error".to_owned(), json!(on_error));
    if !webhook.headers.is_empty() {
        let value = |name: &str| json!(format!("${{env.{}}}", header_variable(name)));
        let headers: Map<String, Value> = webhook.headers.iter().map(|(name, _)| (name.clone(), value(name))).collect();
        fields.insert("headers".to_owned(), Value::Object(headers));
    }
    fields
}

/// Names of headers, each once.
fn headers(hooks: &HooksConfig) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for hook in hooks.groups.iter().flat_map(|group| &group.hooks) {
        let HandlerDefinition::Webhook(webhook) = &hook.handler else { continue };
        let new = webhook.headers.iter().map(|(name, _)| name.as_str());
        let new: Vec<&str> = new.filter(|name| !names.contains(name)).collect();
        names.extend(new);
    }
    names
}

/// The variable that holds a header's value.
fn header_variable(name: &str) -> String {
    let word = |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_uppercase() } else { '_' };
    format!("OLLAMA_HOOK_HEADER_{}", name.chars().map(word).collect::<String>())
}

/// As configuration has it.
fn length(timeout: Duration) -> String {
    match timeout.subsec_millis() {
        0 => format!("{}s", timeout.as_secs()),
        _ => format!("{}ms", timeout.as_millis()),
    }
}

fn selects_all(matcher: &str) -> bool {
    matches!(matcher, "" | "*")
}

/// A matcher where nothing is selected, which its program takes and has no use for.
fn ignored_matcher(group: &HookGroup) -> Option<String> {
    let profile = group.hooks.first()?.profile;
    let line = group.hooks.first()?.origin.line;
    let is_ignored = profile.subject(group.event).is_none() && !selects_all(&group.matcher);
    is_ignored.then(|| {
        let event = group.event.public_name();
        format!("line {line}: the matcher `{}`, for `{event}` has nothing that one selects", group.matcher)
    })
}

/// Keys of an extension's manifest that say what it is.
const MANIFEST: &[&str] = &["name", "version", "description"];
/// Keys that hooks stand under.
const HOLDERS: &[&str] = &["hooks", "agents", "settings"];

/// What stands beside the hooks.
fn outside(document: &Document, profile: Profile) -> Vec<String> {
    let root = &document.root;
    let is_drop_in = HOLDERS.iter().all(|name| root.get(name).is_none());
    let is_beside = |name: &&str| {
        let is_known = HOLDERS.contains(name) || (profile == Profile::Ollm && MANIFEST.contains(name));
        let is_event = is_drop_in && Event::from_name(name).is_some();
        !is_known && !is_event
    };
    let names = root.entries().iter().map(|(key, _)| key.text.as_str()).filter(is_beside);
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let mut notes = Vec::new();
    if !names.is_empty() {
        let names = names.join(", ");
        notes.push(format!("{names}: about other things than hooks, which are {}'s", profile.name()));
    }
    if profile == Profile::Ollm {
        let hooks = root.get("hooks");
        let said = |name: &str| hooks.is_some_and(|hooks| hooks.get(name).is_some());
        let options = OLLM_OPTIONS.iter().filter(|(name, _)| said(name));
        notes.extend(options.map(|(name, why)| format!("`{name}`: {why}")));
    }
    notes
}

/// What a hook says that native hooks cannot.
fn not_carried(hook: &HookDefinition) -> Vec<String> {
    let mut notes = Vec::new();
    let (line, name) = (hook.origin.line, hook.display_name());
    if hook.profile == Profile::Ollm {
        if let Some(version) = hook.version.as_deref().filter(|version| *version != OLLM_VERSION) {
            notes.push(format!("line {line}: the version {version} of `{name}`, which will be told {OLLM_VERSION}"));
        }
        let written = written(hook);
        for key in ["id", "source", "sourcePath", "extensionName"] {
            if written.get(key).is_some_and(|value| !value.is_null()) {
                notes
                    .push(format!("line {line}: `{key}` of `{name}`, for a hook is known by its file, event and name"));
            }
        }
    }
    notes
}

/// A line of comment, whatever is in it.
fn comment(text: &mut String, lead: &str, said: &str) {
    let pad = if lead.trim().is_empty() { lead } else { "" };
    let lead = if lead.trim().is_empty() { "" } else { lead };
    for line in text::plain(said).lines() {
        text.push_str(&format!("{pad}# {lead}{}\n", line.trim_end()));
    }
}
