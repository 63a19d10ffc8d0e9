//! OLLM CLI's hooks (<https://github.com/Tecet/OLLM-CLI>): records of a program and its arguments, listed by event under
//! `hooks`, in a file of their own or in an extension's `manifest.json`; beside them the options `enabled`, `timeout` and
//! `trustWorkspace` of its YAML settings.

use std::time::Duration;

use gatehook_events::{Event, Profile};

use super::DiagnosticKind as Kind;
use super::diagnostic::{ConfigError, Diagnostics};
use super::document::{Document, Format, Key, Node, Value};
use super::foreign::{What, event, hook, items, required};
use super::hooks::ReadOptions;
use super::program;
use super::section::{Context, Field, Section, Shape};
use crate::definition::{CommandDefinition, HandlerDefinition, HookDefinition, HookGroup, HooksConfig, Source};

/// What stands beside the events under `hooks`.
const OPTIONS: &[Field] = &[
    Field::new("enabled", Shape::Any, "Whether its hooks run; or which of them do, by their `id`.").default("true"),
    Field::new("timeout", Shape::Integer, "How long a hook may take, in milliseconds.").default("5000"),
    Field::new("trustWorkspace", Shape::Bool, "Whether hooks of a workspace run unasked.").default("false"),
    Field::new("directories", Shape::Texts, "Where its own files are."),
    Field::new("trustWorkspaceHooks", Shape::Bool, "The same as `trustWorkspace`.").default("false"),
    Field::new("trustDownloadedHooks", Shape::Bool, "Whether downloaded hooks run unasked.").default("false"),
];

/// A hook.
const RECORD: &[Field] = &[
    Field::new("id", Shape::Text, "Its identity: letters, digits, `_` and `-`."),
    Field::new("name", Shape::Text, "Its name, which it is told."),
    Field::new("version", Shape::Text, "Its version, which it is told.").default("1.0.0"),
    Field::new("description", Shape::Text, "What it does, for people."),
    Field::new("command", Shape::Text, "A program: its path, or its name on PATH."),
    Field::new("args", Shape::Texts, "The program's arguments."),
    Field::new("timeout", Shape::Integer, "How long it may take, in milliseconds."),
    Field::new("enabled", Shape::Bool, "Whether it runs.").default("true"),
    Field::new("source", Shape::Word(SOURCES), "Where it came from."),
    Field::new("extensionName", Shape::Text, "The extension that brought it."),
    Field::new("sourcePath", Shape::Text, "The file that its trust is about."),
];

const SOURCES: &[&str] = &["builtin", "user", "workspace", "downloaded", "extension"];

/// What a file says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OllmFile {
    /// Its hooks, those that it switches off too.
    pub hooks: HooksConfig,
    /// Its options.
    pub options: OllmOptions,
}

/// The options of its settings; `None` where a file says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OllmOptions {
    /// Whether hooks run.
    pub enabled: Option<bool>,
    /// Hooks that do not, by their `id`; they may stand in other files.
    pub disabled: Vec<String>,
    /// How long a hook may take.
    pub timeout: Option<Duration>,
    /// Whether hooks of a workspace run unasked.
    pub trust_workspace: Option<bool>,
}

impl OllmOptions {
    /// What stands here, else what `weaker` says; hooks that either disables are.
    #[must_use]
    pub fn or(mut self, weaker: OllmOptions) -> Self {
        self.disabled.extend(weaker.disabled);
        Self {
            enabled: self.enabled.or(weaker.enabled),
            disabled: self.disabled,
            timeout: self.timeout.or(weaker.timeout),
            trust_workspace: self.trust_workspace.or(weaker.trust_workspace),
        }
    }

    /// What these options mean to hooks of this or another file: which are off, and how long those may take that do not
    /// say it themselves. What the administrator put into force stays. `by` names who says so.
    pub fn apply(&self, hooks: &mut HooksConfig, by: &str) {
        for hook in hooks.hooks_mut().filter(|hook| hook.profile == Profile::Ollm) {
            hook.timeout = hook.timeout.or(self.timeout);
            let id = hook.ignored.get("id").and_then(|id| id.as_str()).unwrap_or_else(|| hook.display_name());
            if self.enabled == Some(false) || self.disabled.iter().any(|off| off == id) {
                hook.switch_off(by);
            }
        }
    }
}

/// Whether a document is a hook of OLLM's panel, of `when` and `then`: those speak no hook protocol, and its own program
/// runs none of them.
pub fn is_of_panel(document: &Document) -> bool {
    document.root.get("when").is_some() && document.root.get("then").is_some()
}

/// Reads the text of a hook file, of an extension's manifest or of the settings.
///
/// ```
/// use gatehook_engine::config::{Format, ReadOptions, ollm};
/// use gatehook_engine::events::Event;
///
/// let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
/// let options = ReadOptions { env: &env, ..ReadOptions::default() };
/// let text = r#"{
///     "name": "safety", "version": "2.1.0", "description": "asks first",
///     "hooks": {"pre-tool-call": [{"name": "check", "command": "sh", "args": ["check.sh"]}]}
/// }"#;
/// let file = ollm::parse("manifest.json", text, Format::Json, &options)?;
/// let group = &file.hooks.groups[0];
/// assert_eq!((group.event, group.hooks[0].version.as_deref()), (Event::PreToolUse, Some("2.1.0")));
///
/// let settings = "hooks: {enabled: true, timeout: 30000, trustWorkspace: false}";
/// let file = ollm::parse("config.yaml", settings, Format::Yaml, &options)?;
/// assert_eq!(file.options.timeout, Some(std::time::Duration::from_secs(30)));
/// # Ok::<(), gatehook_engine::config::ConfigError>(())
/// ```
pub fn parse(name: &str, text: &str, format: Format, options: &ReadOptions<'_>) -> Result<OllmFile, ConfigError> {
    let document = Document::parse(name, text, format)?;
    let diagnostics = Diagnostics::new();
    let file = read(&document, options, &diagnostics);
    diagnostics.finish(&document, file)
}

/// Reads a hook file, a manifest or the settings as a document. Relative programs are looked for below
/// `options.working_dir`, which is an extension's own folder for its manifest.
pub fn read(document: &Document, options: &ReadOptions<'_>, diagnostics: &Diagnostics) -> OllmFile {
    let context = Context { document, diagnostics };
    let Some(root) = Section::open(context, &document.root, "", &[]) else { return OllmFile::default() };
    if is_of_panel(document) {
        let message = "a hook of `when` and `then` speaks no hook protocol";
        let help = "list a program by its event: `{\"hooks\": {\"pre-tool-call\": [{\"name\": …, \"command\": …}]}}`";
        root.report(root.problem(Kind::UnsupportedType, message).at(root.head()).help(help));
        return OllmFile::default();
    }
    let version = root.node("version").and_then(|_| root.text("version"));
    root.node("hooks").map(|node| read_file(context, node, version, options)).unwrap_or_default()
}

/// Reads what stands under `hooks`.
pub(super) fn read_hooks(context: Context<'_>, node: &Node, options: &ReadOptions<'_>) -> HooksConfig {
    read_file(context, node, None, options).hooks
}

fn read_file(context: Context<'_>, node: &Node, version: Option<&str>, options: &ReadOptions<'_>) -> OllmFile {
    let mut file = OllmFile::default();
    let Some(section) = Section::open(context, node, "hooks", OPTIONS) else { return file };
    let flags = section.node("enabled").filter(|node| matches!(node.value, Value::Map(_)));
    file.options = OllmOptions {
        enabled: if flags.is_some() { None } else { section.bool("enabled") },
        disabled: flags.map(disabled).unwrap_or_default(),
        timeout: milliseconds(&section),
        trust_workspace: section.bool("trustWorkspace").or(section.bool("trustWorkspaceHooks")),
    };
    let mut options = ReadOptions { profile: Profile::Ollm, ..options.clone() };
    options.defaults.timeout = file.options.timeout.or(options.defaults.timeout);
    for (key, records) in section.node.entries() {
        if context.diagnostics.is_full() {
            break;
        }
        if OPTIONS.iter().any(|field| field.name == key.text) {
            continue;
        }
        let Some(event) = event(context, key, Profile::Ollm) else { continue };
        file.hooks.groups.push(read_event(context, event, (&key.text, records), version, &options));
    }
    file.options.apply(&mut file.hooks, "`enabled` in its file");
    file
}

fn disabled(flags: &Node) -> Vec<String> {
    let is_off = |(_, flag): &&(Key, Node)| flag.value == Value::Bool(false);
    flags.entries().iter().filter(is_off).map(|(id, _)| id.text.clone()).collect()
}

fn read_event(
    context: Context<'_>,
    event: Event,
    (name, node): (&str, &Node),
    version: Option<&str>,
    options: &ReadOptions<'_>,
) -> HookGroup {
    let records = items(context, Kind::NotAHookOrList, &format!("hooks.{name}"), node);
    let hooks = records.into_iter().filter_map(|(path, node)| record(context, path, node, version, options));
    HookGroup { event, matcher: String::new(), hooks: hooks.collect() }
}

fn record(
    context: Context<'_>,
    path: String,
    node: &Node,
    version: Option<&str>,
    options: &ReadOptions<'_>,
) -> Option<HookDefinition> {
    let section = Section::read(context, node, path, RECORD)?;
    let name = required(&section, "name", Kind::FieldRequired, "a hook needs a `name`");
    let command = required(&section, "command", Kind::CommandRequired, "a hook needs a `command`");
    check_id(&section);
    let (args, timeout) = (section.texts("args"), milliseconds(&section));
    let source = source(&section, options);
    let enabled = section.bool("enabled").unwrap_or(true);
    let command = program::resolve(command?, None, options).map_err(|cause| {
        let problem = section.problem(Kind::ProgramNotFound, format!("the program {cause}"));
        let help = "give a program's path or its name on PATH, and put what follows it into `args`";
        section.report(problem.at(section.place("command")).help(help));
    });
    let command = CommandDefinition { command: command.ok()?, args: args.unwrap_or_default(), shell: false };
    let what = What {
        name: Some(name?.to_owned()),
        version: section.text("version").or(version).map(str::to_owned),
        handler: HandlerDefinition::Command(command),
        timeout,
    };
    let mut definition = hook(&section, options, source, what);
    definition.ignored.extend(section.text("id").map(|id| ("id".to_owned(), id.into())));
    definition.switched_off = (!enabled).then(|| "its own `enabled`".into());
    Some(definition)
}

fn check_id(section: &Section<'_>) {
    let is_good =
        |id: &str| !id.is_empty() && id.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-'));
    if section.text("id").is_some_and(|id| !is_good(id)) {
        let message = "an `id` is made of letters, digits, `_` and `-`";
        section.report(section.problem(Kind::InvalidValue, message).at(section.place("id")));
    }
}

/// Who answers for it: nobody stronger than who answers for the file, whatever it says itself.
fn source(section: &Section<'_>, options: &ReadOptions<'_>) -> Source {
    const CLAIMS: [(&str, Source); 5] = [
        ("builtin", Source::Builtin),
        ("user", Source::User),
        ("workspace", Source::Workspace),
        ("downloaded", Source::Downloaded),
        ("extension", Source::Extension),
    ];
    section.choice("source", &CLAIMS).map_or(options.source, |claimed| options.source.max(claimed))
}

/// `timeout` in milliseconds; 0 is none.
fn milliseconds(section: &Section<'_>) -> Option<Duration> {
    const YEAR: u64 = 365 * 24 * 3600 * 1000;
    let count = section.count("timeout", 0)?;
    let millis = u64::try_from(count).ok().filter(|millis| *millis <= YEAR);
    if millis.is_none() {
        let problem = section.problem(Kind::InvalidValue, "this timeout is longer than a year");
        section.report(problem.at(section.place("timeout")).help("it is in milliseconds"));
    }
    millis.filter(|millis| *millis > 0).map(Duration::from_millis)
}

#[cfg(test)]
mod tests;
