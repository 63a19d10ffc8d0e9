//! Configuration files: YAML, JSON or TOML into [definitions](crate::definition), with everything that is wrong with
//! them at once, each with its place.
//!
//! A text becomes a [`Document`]: one small tree in which each value knows its place. A [`Section`] reads a mapping of
//! it by a table of [`Field`]s, from which the JSON Schema comes too; other crates read their own parts of a file the
//! same way. [`read_hooks`] reads the `hooks:` mapping of any [`Profile`]; [`docker_agent`], [`ollama_cli`] and [`ollm`]
//! know the files of those programs.
//!
//! ```
//! use gatehook_engine::config::{self, Format, ReadOptions};
//!
//! let text = "hooks:\n  pre_tool_usee: []\n";
//! let error = config::parse("gatehook.yaml", text, Format::Yaml, &ReadOptions::default()).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "gatehook.yaml:2:3: there is no event `pre_tool_usee` [unknown_event]
//!       pre_tool_usee: []
//!       ^^^^^^^^^^^^^
//!   help: did you mean `pre_tool_use`?"
//! );
//! ```
//!
//! Another part of the same file, so that all problems are told together:
//!
//! ```
//! use gatehook_engine::config::{self, Context, Diagnostics, Document, Field, Format, ReadOptions, Section, Shape};
//!
//! const ROOT: &[Field] = &[Field::new("upstreams", Shape::NamedTables(UPSTREAM), "Where models are.")];
//! const UPSTREAM: &[Field] = &[
//!     Field::new("url", Shape::Text, "Its address."),
//!     Field::new("connect_timeout", Shape::Duration, "How long connecting may take.").default("5s"),
//! ];
//!
//! let text = "upstreams: {local: {url: 'http://127.0.0.1:11434', connect_timeot: 2s}}\nhooks: {stop: 5}\n";
//! let document = Document::parse("gatehook.yaml", text, Format::Yaml).unwrap();
//! let diagnostics = Diagnostics::new();
//!
//! let options = ReadOptions { sections: &["upstreams"], ..ReadOptions::default() };
//! let file = config::read_file(&document, &options, &diagnostics);
//! let root = Section::open(Context { document: &document, diagnostics: &diagnostics }, &document.root, "", ROOT);
//! for (name, upstream) in root.unwrap().named_sections("upstreams", UPSTREAM) {
//!     assert_eq!((name, upstream.text("url")), ("local", Some("http://127.0.0.1:11434")));
//! }
//! let error = diagnostics.finish(&document, file).unwrap_err();
//! let paths: Vec<&str> = error.diagnostics.iter().map(|problem| problem.path.as_str()).collect();
//! assert_eq!(paths, ["hooks.stop", "upstreams.local"]);
//! ```

mod authority;
mod confinement;
mod diagnostic;
pub mod docker_agent;
mod document;
mod draft;
mod duration;
pub mod fields;
mod foreign;
mod hook;
mod hooks;
mod import;
mod json;
mod model;
mod ollama;
pub mod ollama_cli;
pub mod ollm;
mod pattern;
mod program;
mod reference;
mod section;
pub(crate) mod size;
pub(crate) mod suggest;
mod toml;
mod traces;
mod webhook;
mod yaml;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use gatehook_events::Profile;

pub use diagnostic::{ConfigError, Diagnostic, DiagnosticKind, Diagnostics, MAX_PROBLEMS};
pub use document::{Document, Format, Key, MAX_BYTES, MAX_DEPTH, MAX_NODES, Node, Value};
pub use duration::age;
pub use hooks::{Defaults, ReadOptions, read_hooks};
pub use import::{IMPORT, Import};
pub use ollama::{OLLAMA_VARIABLES, Variable, ollama_env};
pub use reference::{expanded, header_map};
pub use section::{Context, Field, Section, Shape, words};
pub use suggest::did_you_mean;
pub use traces::TraceSettings;

use crate::definition::HooksConfig;
use crate::trust::Required;
pub(crate) use fields::CONDITIONS;

/// What a file says to the engine.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Its hooks.
    pub hooks: HooksConfig,
    /// The contract its hooks were written for.
    pub profile: Profile,
    /// What its hooks leave out; already applied to them.
    pub defaults: Defaults,
    /// How many hooks run at once; `None` where it does not say.
    pub max_concurrent_hooks: Option<NonZeroUsize>,
    /// Hooks that must be in force.
    pub required: Vec<Required>,
    /// Settings that nothing else changes.
    pub locked: Vec<String>,
    /// Whether dispatches are remembered.
    pub traces: TraceSettings,
    /// Files of other systems that it names; whoever reads it reads them.
    pub imports: Vec<Import>,
    /// What it says to OLLM's hooks of other files, where it is one of OLLM's.
    pub ollm: ollm::OllmOptions,
    /// What somebody should know who believes that all of it is in force, a sentence each.
    pub notes: Vec<String>,
}

impl File {
    /// One that says nothing.
    pub fn new(options: &ReadOptions<'_>) -> Self {
        Self {
            hooks: HooksConfig::default(),
            profile: options.profile,
            defaults: options.defaults.clone(),
            max_concurrent_hooks: None,
            required: Vec::new(),
            locked: Vec::new(),
            imports: Vec::new(),
            ollm: ollm::OllmOptions::default(),
            notes: Vec::new(),
            traces: TraceSettings::default(),
        }
    }
}

/// Reads a file that has nothing but hooks.
pub fn load(path: &Path, options: &ReadOptions<'_>) -> Result<File, ConfigError> {
    let document = Document::open(path)?;
    let options = ReadOptions { file: Some(Arc::new(path.to_owned())), ..options.clone() };
    finish(&document, &options)
}

/// Reads a text that has nothing but hooks.
pub fn parse(name: &str, text: &str, format: Format, options: &ReadOptions<'_>) -> Result<File, ConfigError> {
    finish(&Document::parse(name, text, format)?, options)
}

/// Reads a value as what stands under `hooks:`.
pub fn hooks_from_json(hooks: &serde_json::Value, options: &ReadOptions<'_>) -> Result<HooksConfig, ConfigError> {
    let document = Document::from_json("hooks", hooks)?;
    let diagnostics = Diagnostics::new();
    let hooks = read_hooks(&document, &document.root, options, &diagnostics);
    diagnostics.finish(&document, hooks)
}

fn finish(document: &Document, options: &ReadOptions<'_>) -> Result<File, ConfigError> {
    let diagnostics = Diagnostics::new();
    let file = read_file(document, options, &diagnostics);
    diagnostics.finish(document, file)
}

/// Reads what a document says to the engine. Keys named in `options.sections` are left to whoever reads them; all
/// others are problems.
pub fn read_file(document: &Document, options: &ReadOptions<'_>, diagnostics: &Diagnostics) -> File {
    let context = Context { document, diagnostics };
    let mut file = File::new(options);
    if document.root.value == Value::Null {
        return file;
    }
    // The files of foreign programs hold more than hooks, and none of that is ours.
    if options.profile.spec().is_foreign {
        (file.hooks, file.ollm) = foreign::read(document, options, diagnostics);
        return file;
    }
    if docker_agent::is_of(options.profile) && docker_agent::is_own(document) {
        let found = docker_agent::find(context);
        let hooks = found.hooks.map(|node| read_hooks(document, node, options, diagnostics));
        file.hooks = hooks.unwrap_or_default();
        let note = |name: &&str| format!("hooks of the agent `{name}` are not read: a host runs those of one agent");
        file.notes = found.others.iter().map(note).collect();
        return file;
    }
    let Some(root) = Section::open(context, &document.root, "", fields::FILE) else {
        return file;
    };
    refuse_unknown_sections(&root, options);
    if let Some(profile) = root.text("dialect").and_then(|name| draft::profile_of(&root, name)) {
        file.profile = profile;
    }
    file.max_concurrent_hooks = root.count("max_concurrent_hooks", 1).and_then(NonZeroUsize::new);
    file.required = authority::required(&root, options);
    file.locked = authority::locked(&root, options);
    file.imports = import::imports(&root, options);
    file.traces = TraceSettings::read(&root, options);
    if let Some(section) = root.section("defaults", fields::DEFAULTS) {
        file.defaults = defaults(&section, &file.defaults);
    }
    if let Some(hooks) = root.node("hooks") {
        let options = ReadOptions { profile: file.profile, defaults: file.defaults.clone(), ..options.clone() };
        file.hooks = read_hooks(document, hooks, &options, diagnostics);
    }
    file
}

fn refuse_unknown_sections(root: &Section<'_>, options: &ReadOptions<'_>) {
    let known: Vec<&str> = root.fields.iter().map(|field| field.name).chain(options.sections.iter().copied()).collect();
    for (key, _) in root.node.entries() {
        let name = key.text.as_str();
        if !known.contains(&name) && !root.context.diagnostics.is_full() {
            let problem = root.problem(DiagnosticKind::UnknownField, format!("a file has no section `{name}`"));
            let is_event = gatehook_events::Event::from_name(name).is_some();
            let help = if is_event {
                Some("events stand under `hooks:`".to_owned())
            } else {
                did_you_mean(name, known.clone())
            };
            root.report(problem.at(key.span.clone()).maybe_help(help));
        }
    }
}

fn defaults(section: &Section<'_>, outer: &Defaults) -> Defaults {
    let timeout = section.duration("timeout");
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        let problem = section.problem(DiagnosticKind::ZeroTimeout, "a timeout of 0 leaves no time to run");
        section.report(problem.at(section.place("timeout")));
    }
    Defaults {
        timeout: timeout.or(outer.timeout),
        on_error: section.choice("on_error", &fields::ON_ERROR).or(outer.on_error),
        env_policy: draft::env_policy(section).or_else(|| outer.env_policy.clone()),
    }
}

#[cfg(test)]
mod tests;
