//! What the files of foreign contracts have in common: events by their own names, and hooks that leave everything else to
//! their profile.

use std::sync::Arc;
use std::time::Duration;

use gatehook_events::profile::PROFILES;
use gatehook_events::{Event, Profile};

use super::DiagnosticKind as Kind;
use super::diagnostic::{Diagnostic, Diagnostics};
use super::document::{Document, Key, Node, Value};
use super::hooks::ReadOptions;
use super::section::{Context, Section};
use super::{ollama_cli, ollm, suggest};
use crate::definition::{EnvPolicy, HandlerDefinition, HookDefinition, HooksConfig, Origin, Source};

/// Reads a file of a foreign contract's program.
pub(super) fn read(
    document: &Document,
    options: &ReadOptions<'_>,
    diagnostics: &Diagnostics,
) -> (HooksConfig, ollm::OllmOptions) {
    match options.profile {
        Profile::Ollm => {
            let file = ollm::read(document, options, diagnostics);
            (file.hooks, file.options)
        }
        _ => (ollama_cli::read(document, options, diagnostics), ollm::OllmOptions::default()),
    }
}

/// Reads a `hooks` mapping of a foreign contract.
pub(super) fn read_hooks(context: Context<'_>, node: &Node, options: &ReadOptions<'_>) -> HooksConfig {
    match options.profile {
        Profile::Ollm => ollm::read_hooks(context, node, options),
        _ => ollama_cli::read_hooks(context, node, options),
    }
}

/// The event of a key, or a problem.
pub(super) fn event(context: Context<'_>, key: &Key, profile: Profile) -> Option<Event> {
    let name = key.text.as_str();
    let found = Event::from_name_in(profile, name);
    if found.is_none() {
        let problem = Diagnostic::new(Kind::UnknownEvent, name, format!("{} has no event `{name}`", profile.name()));
        // One that another contract calls so has its own name here, or none.
        let elsewhere = PROFILES.iter().find_map(|row| Event::from_name_in(row.profile, name));
        let help = match elsewhere.map(|event| event.name_in(profile)) {
            Some(Some(own)) => Some(format!("it is called `{own}` there")),
            Some(None) => None,
            None => suggest::did_you_mean(name, Event::all().filter_map(|event| event.name_in(profile))),
        };
        context.diagnostics.report(problem.at(key.span.clone()).maybe_help(help));
    }
    found
}

/// The items of a list, with their paths.
pub(super) fn items<'a>(context: Context<'_>, kind: Kind, path: &str, node: &'a Node) -> Vec<(String, &'a Node)> {
    match &node.value {
        Value::Null => Vec::new(),
        Value::Seq(items) => items.iter().enumerate().map(|(at, item)| (format!("{path}[{at}]"), item)).collect(),
        value => {
            let message = format!("`{path}` must be a list, not {}", value.type_name());
            context.diagnostics.report(Diagnostic::new(kind, path, message).at(node.span.clone()));
            Vec::new()
        }
    }
}

/// A hook of this section.
pub(super) fn hook(section: &Section<'_>, options: &ReadOptions<'_>, source: Source, what: What) -> HookDefinition {
    let What { name, version, handler, timeout } = what;
    let policy = if source.needs_approval() { EnvPolicy::Minimal } else { EnvPolicy::Inherit };
    HookDefinition {
        name,
        version,
        timeout: timeout.or(options.defaults.timeout),
        on_error: options.defaults.on_error,
        written: Some(Arc::new(section.node.to_json())),
        env_policy: options.defaults.env_policy.clone().unwrap_or(policy),
        origin: Origin {
            source,
            file: options.file.clone(),
            line: section.context.document.line(section.head().start),
            agent: options.agent.clone(),
            skill: None,
        },
        ..HookDefinition::new(options.profile, handler)
    }
}

/// What a foreign file says of a hook.
pub(super) struct What {
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) handler: HandlerDefinition,
    pub(super) timeout: Option<Duration>,
}

/// Text that must be there and say something.
pub(super) fn required<'a>(section: &Section<'a>, name: &str, kind: Kind, message: &str) -> Option<&'a str> {
    if section.node(name).is_none() {
        section.report(section.problem(kind, message).at(section.head()));
        return None;
    }
    let text = section.text(name)?;
    if text.trim().is_empty() {
        section.report(section.problem(kind, message).at(section.place(name)));
        return None;
    }
    Some(text)
}
