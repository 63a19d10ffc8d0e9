//! Ollama CLI's `.ollama/settings.json` (<https://github.com/muah1987/ollama-cli>, `docs/hooks.md`): under `hooks`, for each
//! event, groups of a `matcher` and its hooks. The rest of the file is that program's.

use std::collections::BTreeMap;
use std::time::Duration;

use gatehook_events::{Event, Profile};

use super::DiagnosticKind as Kind;
use super::diagnostic::{ConfigError, Diagnostics};
use super::document::{Document, Format, Node, Value};
use super::fields::METHOD;
use super::foreign::{What, event, hook, items, required};
use super::hooks::{ReadOptions, place_within};
use super::section::{Context, Field, Section, Shape};
use super::webhook::check_url;
use super::{pattern, program, reference, suggest};
use crate::definition::{
    CommandDefinition, Contract, HandlerDefinition, HookDefinition, HookGroup, HooksConfig, PythonDefinition, Source,
    WebhookDefinition,
};
use crate::matcher::matches_all;

/// A group.
const GROUP: &[Field] = &[
    Field::new("matcher", Shape::Text, "A regular expression that is searched for in the tool's name; empty is all."),
    Field::new("hooks", Shape::Hooks, "The hooks."),
];

/// A hook of any type.
const HOOK: &[Field] = &[
    Field::new("type", Shape::Word(TYPES), "What runs."),
    Field::new("name", Shape::Text, "A label for people."),
    Field::new("timeout", Shape::Duration, "How long it may take.").default("60s"),
    Field::new("command", Shape::Text, "A shell line; where `shell` is false, a program and its words.").only(COMMAND),
    Field::new("shell", Shape::Bool, "Run the command by a shell.").default("true").only(COMMAND),
    Field::new("module", Shape::Text, "A module, or a function in one.").only(PYTHON),
    Field::new("function", Shape::Text, "The function.").only(PYTHON),
    Field::new("url", Shape::Text, "Where to send the event.").only(WEBHOOK),
    Field::new("method", Shape::Text, "The request's method.").default("POST").only(WEBHOOK),
    Field::new("headers", Shape::SecretMap, "Extra headers.").only(WEBHOOK),
];

const TYPES: &[&str] = &["command", "python", "webhook"];
const COMMAND: &[&str] = &["command"];
const PYTHON: &[&str] = &["python"];
const WEBHOOK: &[&str] = &["webhook"];

/// The variable that switches hooks of the user and the workspace off.
pub const HOOKS_ENABLED: &str = "OLLAMA_HOOKS_ENABLED";

/// Whether the environment switches hooks of this source off. Managed ones stay.
///
/// ```
/// use gatehook_engine::config::ollama_cli::is_switched_off;
/// use gatehook_engine::definition::Source;
///
/// let env = [("OLLAMA_HOOKS_ENABLED".to_owned(), "false".to_owned())].into();
/// assert!(is_switched_off(&env, Source::User));
/// assert!(!is_switched_off(&env, Source::Managed));
/// ```
pub fn is_switched_off(env: &BTreeMap<String, String>, source: Source) -> bool {
    const NO: [&str; 4] = ["false", "0", "no", "off"];
    let says_no = |value: &String| NO.contains(&value.trim().to_ascii_lowercase().as_str());
    source != Source::Managed && env.get(HOOKS_ENABLED).is_some_and(says_no)
}

/// Reads the text of a `settings.json`.
///
/// ```
/// use gatehook_engine::config::{ReadOptions, ollama_cli};
/// use gatehook_engine::events::Event;
///
/// let text = r#"{"hooks": {"PreToolUse": [{"matcher": "bash", "hooks": [{"type": "command", "command": "./guard"}]}]}}"#;
/// let hooks = ollama_cli::parse("settings.json", text, &ReadOptions::default())?;
/// assert_eq!(hooks.groups[0].event, Event::PreToolUse);
///
/// let typo = text.replace("PreToolUse", "PreTooluse");
/// let error = ollama_cli::parse("settings.json", &typo, &ReadOptions::default()).unwrap_err();
/// assert!(error.to_string().contains("did you mean `PreToolUse`?"));
/// # Ok::<(), gatehook_engine::config::ConfigError>(())
/// ```
pub fn parse(name: &str, text: &str, options: &ReadOptions<'_>) -> Result<HooksConfig, ConfigError> {
    let document = Document::parse(name, text, Format::Json)?;
    let diagnostics = Diagnostics::new();
    let hooks = read(&document, options, &diagnostics);
    diagnostics.finish(&document, hooks)
}

/// Reads a `settings.json` as a document.
pub fn read(document: &Document, options: &ReadOptions<'_>, diagnostics: &Diagnostics) -> HooksConfig {
    let context = Context { document, diagnostics };
    let root = Section::open(context, &document.root, "", &[]);
    match root.as_ref().and_then(|root| root.node("hooks")) {
        Some(hooks) => read_hooks(context, hooks, options),
        None => HooksConfig::default(),
    }
}

/// Reads what stands under `hooks`.
pub(super) fn read_hooks(context: Context<'_>, node: &Node, options: &ReadOptions<'_>) -> HooksConfig {
    let options = ReadOptions { profile: Profile::OllamaCli, ..options.clone() };
    let mut config = HooksConfig::default();
    let Some(section) = Section::open(context, node, "hooks", &[]) else { return config };
    for (key, groups) in section.node.entries() {
        if context.diagnostics.is_full() {
            break;
        }
        let Some(event) = event(context, key, Profile::OllamaCli) else { continue };
        let path = format!("hooks.{}", key.text);
        let groups = items(context, Kind::NotAMatcherOrList, &path, groups);
        config.groups.extend(groups.into_iter().filter_map(|(path, node)| group(context, event, path, node, &options)));
    }
    if is_switched_off(options.env, options.source) {
        config.hooks_mut().for_each(|hook| hook.switch_off(HOOKS_ENABLED));
    }
    config
}

fn group(
    context: Context<'_>,
    event: Event,
    path: String,
    node: &Node,
    options: &ReadOptions<'_>,
) -> Option<HookGroup> {
    let section = Section::open(context, node, path.clone(), GROUP)?;
    if section.node("hooks").is_none() && section.node("type").is_some() {
        let problem = section.problem(Kind::UnknownField, "an event takes groups, not hooks as they are");
        let help = "write `{\"matcher\": \"\", \"hooks\": […]}` and put the hook into `hooks`";
        section.report(problem.at(section.head()).help(help));
        return None;
    }
    section.refuse_unknown(|_| false);
    let matcher = section.text("matcher").unwrap_or_default();
    judge_matcher(&section, event, matcher);
    let hooks = section.node("hooks").map(|node| items(context, Kind::NotAHookOrList, &format!("{path}.hooks"), node));
    let hooks = hooks.into_iter().flatten().filter_map(|(path, node)| read_hook(context, path, node, options));
    Some(HookGroup { event, matcher: matcher.to_owned(), hooks: hooks.collect() })
}

/// On events without a subject a matcher selects everything, so that no guard is silently left out.
fn judge_matcher(section: &Section<'_>, event: Event, matcher: &str) {
    let Some(subject) = Profile::OllamaCli.subject(event).filter(|_| !matches_all(matcher)) else { return };
    if let Err(error) = pattern::check(matcher, Some(subject)) {
        let message = format!("the matcher is not a regular expression: {error}");
        let span = section.place("matcher");
        let place = place_within(section.context.document, &span, matcher, &error.span);
        section.report(
            section.problem(Kind::InvalidMatcher, message).at(place).help("matchers are RE2 regular expressions"),
        );
    }
}

fn read_hook(context: Context<'_>, path: String, node: &Node, options: &ReadOptions<'_>) -> Option<HookDefinition> {
    let section = Section::read(context, node, path, HOOK)?;
    let message = "a hook needs a `type`";
    let kind = required(&section, "type", Kind::TypeRequired, message)?;
    refuse_misplaced(&section, kind);
    let timeout = timeout(&section);
    let handler = match kind {
        "command" => command(&section, options),
        "python" => python(&section),
        "webhook" => webhook(&section, options),
        kind => {
            let problem = section.problem(Kind::UnsupportedType, format!("there is no type `{kind}`"));
            section.report(problem.at(section.place("type")).help(suggest::one_of(kind, TYPES)));
            None
        }
    };
    let name = section.text("name").filter(|name| !name.is_empty()).map(str::to_owned);
    Some(hook(&section, options, options.source, What { name, version: None, handler: handler?, timeout }))
}

fn refuse_misplaced(section: &Section<'_>, kind: &str) {
    for (key, _) in section.node.entries() {
        let field = HOOK.iter().find(|field| field.name == key.text);
        if field.is_some_and(|field| !field.only.is_empty() && !field.only.contains(&kind)) && TYPES.contains(&kind) {
            let message = format!("`{}` means nothing on `type: {kind}`", key.text);
            section.report(section.problem(Kind::MisplacedField, message).at(key.span.clone()));
        }
    }
}

fn timeout(section: &Section<'_>) -> Option<Duration> {
    let timeout = section.duration("timeout")?;
    if timeout.is_zero() {
        let problem = section.problem(Kind::ZeroTimeout, "a timeout of 0 leaves no time to run");
        section.report(problem.at(section.place("timeout")).help("leave it out for the default"));
        return None;
    }
    Some(timeout)
}

fn command(section: &Section<'_>, options: &ReadOptions<'_>) -> Option<HandlerDefinition> {
    let line = required(section, "command", Kind::CommandRequired, "a command hook needs a `command`")?;
    if section.bool("shell").unwrap_or(true) {
        let command = CommandDefinition { command: line.to_owned(), args: Vec::new(), shell: true };
        return Some(HandlerDefinition::Command(command));
    }
    let mut words = line.split_whitespace();
    match program::resolve(words.next()?, None, options) {
        Ok(command) => {
            let args = words.map(str::to_owned).collect();
            Some(HandlerDefinition::Command(CommandDefinition { command, args, shell: false }))
        }
        Err(cause) => {
            let problem = section.problem(Kind::ProgramNotFound, format!("the program {cause}"));
            section.report(problem.at(section.place("command")));
            None
        }
    }
}

fn python(section: &Section<'_>) -> Option<HandlerDefinition> {
    let module = required(section, "module", Kind::FieldRequired, "a python hook needs a `module`")?;
    Some(HandlerDefinition::Python(PythonDefinition::new(module, section.text("function"))))
}

/// A webhook that is sent this contract's payload and answers as this contract's hooks do.
fn webhook(section: &Section<'_>, options: &ReadOptions<'_>) -> Option<HandlerDefinition> {
    let url = required(section, "url", Kind::UrlRequired, "a webhook needs a `url`")?;
    if let Err(cause) = check_url(url) {
        section.context.diagnostics.conceal(section.place("url"));
        section.report(section.problem(Kind::InvalidUrl, cause).at(section.place("url")));
        return None;
    }
    let method = match section.text("method").map(str::to_ascii_uppercase) {
        Some(method) => section.value_of(Kind::InvalidValue, "method", &method, &METHOD)?,
        None => "POST",
    };
    let headers = headers(section, options)?;
    let webhook = WebhookDefinition::new(url, Contract::Native);
    Some(HandlerDefinition::Webhook(WebhookDefinition { method: method.to_owned(), headers, ..webhook }))
}

fn headers(section: &Section<'_>, options: &ReadOptions<'_>) -> Option<Vec<(String, String)>> {
    let Some(node) = section.node("headers") else { return Some(Vec::new()) };
    if !matches!(node.value, Value::Map(_)) {
        return section.wrong_type("headers", node, "a mapping from names to texts");
    }
    // What a header holds may be a secret.
    node.entries().iter().for_each(|(_, value)| section.context.diagnostics.conceal(value.span.clone()));
    let read = |(key, node)| {
        let problem = |(missing, place): (reference::Missing, _)| {
            section.report(section.problem(missing.kind, missing.message).at(place));
        };
        reference::header(key, node, options).map_err(problem).ok()
    };
    // Not short-circuiting: each bad one is reported.
    let headers: Vec<_> = node.entries().iter().map(|(key, node)| read((key, node))).collect();
    headers.into_iter().collect()
}

#[cfg(test)]
mod tests;
