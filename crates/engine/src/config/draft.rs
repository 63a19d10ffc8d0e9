//! A hook as it is written: every field read by its type, nothing judged yet.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::Duration;

use gatehook_events::Profile;
use gatehook_events::profile::Shell;

use super::DiagnosticKind as Kind;
use super::document::{Key, Node, Value};
use super::fields::{
    BUILTIN, CACHE, COMMAND, CONTRACT, DOCKER_AGENT, ENV_POLICY, GROUP, HOOK, LATER, METHOD, MODEL, PATCH, PROCESSES,
    PROFILE_WORDS, PYTHON, STREAM, STREAM_MODE, TOOL_CALLS, TYPE_WORDS, WEBHOOK, WORKER,
};
use super::hooks::ReadOptions;
use super::section::{Context, Section};
use super::{confinement, reference, suggest};
use crate::definition::{Cache, Confinement, Contract, EnvPolicy, Patch, Stream, ToolCalls};
use crate::streaming::WINDOW_SIZE;

/// Processes of one hook.
const MAX_WORKERS: usize = 64;
/// Events that one process holds at a time.
const MAX_IN_FLIGHT: usize = 256;

/// A hook as it is written.
pub(crate) struct Draft<'a> {
    pub(crate) section: Section<'a>,
    /// Its own `dialect`, else the file's.
    pub(crate) profile: Profile,
    pub(crate) kind: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) command: Option<&'a str>,
    pub(crate) args: Vec<String>,
    pub(crate) shell: bool,
    pub(crate) module: Option<&'a str>,
    pub(crate) function: Option<&'a str>,
    pub(crate) python: Option<&'a str>,
    pub(crate) workers: Option<NonZeroUsize>,
    pub(crate) max_in_flight: Option<NonZeroUsize>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) url: Option<&'a str>,
    pub(crate) method: &'static str,
    pub(crate) headers: &'a [(Key, Node)],
    pub(crate) contract: Contract,
    /// In seconds, whatever its sign.
    pub(crate) timeout: Option<f64>,
    pub(crate) env: Vec<(&'a Key, String, Range<usize>)>,
    pub(crate) env_policy: Option<EnvPolicy>,
    pub(crate) confinement: Confinement,
    pub(crate) working_dir: Option<&'a str>,
    /// As it is written: its value is judged later.
    pub(crate) on_error: Option<&'a str>,
    pub(crate) strict_output: bool,
    pub(crate) observer: bool,
    pub(crate) when: Vec<(&'a Key, String, Range<usize>)>,
    pub(crate) patch: Patch,
    pub(crate) include_images: bool,
    pub(crate) model: Option<&'a str>,
    pub(crate) prompt: Option<&'a str>,
    pub(crate) schema: Option<&'a str>,
    pub(crate) stream: Option<Stream>,
    pub(crate) concurrent: bool,
    pub(crate) cache: Option<Cache>,
    /// What must be there is left to dispatch.
    pub(crate) is_unchecked: bool,
}

impl<'a> Draft<'a> {
    /// Reads a mapping. Whatever has a wrong type is reported and left out.
    pub(crate) fn read(context: Context<'a>, node: &'a Node, path: String, options: &ReadOptions<'_>) -> Option<Self> {
        let section = Section::open(context, node, path, HOOK)?;
        let profile = match options.profile {
            Profile::Native => dialect(&section).unwrap_or(Profile::Native),
            profile => profile,
        };
        refuse_unknown(&section, profile, options);
        let native = profile == Profile::Native;
        let headers = section.node("headers").and_then(|node| match &node.value {
            Value::Map(entries) => Some(entries.as_slice()),
            _ => section.wrong_type("headers", node, "a mapping from names to texts"),
        });
        // What a header holds itself may be a secret; what it refers to is not shown anyway.
        headers.unwrap_or_default().iter().for_each(|(_, node)| reference::conceal(&section, node));
        Some(Self {
            profile,
            kind: section.text("type"),
            name: section.text("name"),
            command: section.text("command"),
            args: section.texts("args").unwrap_or_default(),
            shell: section.bool("shell").unwrap_or(profile.spec().shell != Shell::None),
            module: section.text("module"),
            function: section.text("function"),
            python: section.text("python"),
            workers: number(&section, "workers", MAX_WORKERS),
            max_in_flight: number(&section, "max_in_flight", MAX_IN_FLIGHT),
            idle_timeout: section.duration("idle_timeout"),
            url: section.text("url"),
            method: section.choice("method", &METHOD).unwrap_or("POST"),
            headers: headers.unwrap_or_default(),
            contract: section.choice("contract", &CONTRACT).unwrap_or_default(),
            timeout: if native || profile.spec().is_foreign {
                section.seconds("timeout")
            } else {
                section.integer("timeout").map(|n| n as f64)
            },
            env: section.text_map("env").unwrap_or_default(),
            env_policy: env_policy(&section),
            confinement: if runs_processes(&section) { confinement::read(&section) } else { Confinement::default() },
            working_dir: section.text("working_dir"),
            on_error: section.text("on_error"),
            strict_output: section.bool("strict_output").unwrap_or(false),
            observer: section.bool("async").unwrap_or(false),
            when: section.text_map("when").unwrap_or_default(),
            patch: section.choice("patch", &PATCH).unwrap_or_default(),
            include_images: section.bool("include_images").unwrap_or(false),
            model: section.text("model"),
            prompt: section.text("prompt"),
            schema: section.text("schema"),
            stream: section.section("stream", STREAM).and_then(|section| stream(&section)),
            concurrent: section.bool("concurrent").unwrap_or(false),
            cache: section.choice("cache", &CACHE),
            is_unchecked: !options.validate,
            section,
        })
    }

    /// Whether its type is one of an embedder's.
    pub(crate) fn is_custom(&self, options: &ReadOptions<'_>) -> bool {
        self.kind.is_some_and(|kind| is_custom(kind, options))
    }
}

/// A number of at least 1.
fn number(section: &Section<'_>, name: &str, most: usize) -> Option<NonZeroUsize> {
    let number = NonZeroUsize::new(section.count(name, 1)?)?;
    if number.get() > most {
        let problem = section.problem(Kind::InvalidValue, format!("`{name}` is at most {most}, not {number}"));
        section.report(problem.at(section.place(name)));
        return None;
    }
    Some(number)
}

/// Whether it is of a type that has bounds: an embedder's may have fields of these names.
fn runs_processes(section: &Section<'_>) -> bool {
    matches!(section.node("type").map(|node| &node.value), Some(Value::Str(kind)) if PROCESSES.contains(&kind.as_str()))
}

fn is_custom(kind: &str, options: &ReadOptions<'_>) -> bool {
    options.types.contains(&kind) && !TYPE_WORDS.contains(&kind)
}

/// `dialect` on a hook of a native file.
fn dialect(section: &Section<'_>) -> Option<Profile> {
    profile_of(section, section.text("dialect")?)
}

/// The profile of a name, or a problem at `dialect`.
pub(crate) fn profile_of(section: &Section<'_>, name: &str) -> Option<Profile> {
    let profile = Profile::from_name(name);
    if profile.is_none() {
        let problem = section.problem(Kind::UnknownProfile, format!("there is no dialect `{name}`"));
        section.report(problem.at(section.place("dialect")).help(suggest::one_of(name, PROFILE_WORDS)));
    }
    profile
}

/// `inherit`, `minimal`, or `{only: [NAME, …]}`.
pub(crate) fn env_policy(section: &Section<'_>) -> Option<EnvPolicy> {
    let node = section.node("env_policy")?;
    if let Value::Str(word) = &node.value {
        return section.value_of(Kind::InvalidValue, "env_policy", word, &ENV_POLICY).cloned();
    }
    const ONLY: &[super::Field] = &[super::Field::new("only", super::Shape::Texts, "Names of variables.")];
    let section = section.section("env_policy", ONLY)?;
    let names = section.texts("only");
    if names.is_none() && section.node("only").is_none() {
        section.report(section.problem(Kind::FieldRequired, "`only` must name variables").at(node.span.clone()));
    }
    names.map(EnvPolicy::Only)
}

fn stream(section: &Section<'_>) -> Option<Stream> {
    let mode = section.choice("mode", &STREAM_MODE);
    if section.node("mode").is_none() {
        let words = super::section::words(&STREAM_MODE);
        let problem = section.problem(Kind::FieldRequired, "a stream needs a `mode`").at(section.head());
        section.report(problem.help(suggest::one_of("", &words)));
    }
    let size = section.count("size", 1);
    let overlap = section.count("overlap", 0);
    let window = size.unwrap_or(WINDOW_SIZE);
    if overlap.is_some_and(|overlap| overlap >= window) {
        let problem = section.problem(Kind::InvalidValue, format!("`overlap` must be less than `size`, {window}"));
        section.report(problem.at(section.place("overlap")).help("a window must bring something new"));
    }
    let thinking = section.choice("thinking", &STREAM_MODE);
    let tool_calls = section.choice("tool_calls", &TOOL_CALLS).unwrap_or(ToolCalls::Hold);
    let (max_wait, holdback) = (section.duration("max_wait"), section.count("holdback", 0));
    Some(Stream { mode: mode?, thinking, tool_calls, size, max_wait, overlap, holdback })
}

fn refuse_unknown(section: &Section<'_>, profile: Profile, options: &ReadOptions<'_>) {
    let kind = match section.node("type").map(|node| &node.value) {
        Some(Value::Str(kind)) => Some(kind.as_str()),
        _ => None,
    };
    if kind.is_some_and(|kind| is_custom(kind, options)) {
        return;
    }
    for (key, _) in section.node.entries() {
        if section.context.diagnostics.is_full() {
            return;
        }
        let problem = match profile {
            profile if profile == Profile::Native || profile.spec().is_foreign => {
                unknown_native(section, &key.text, kind)
            }
            _ => unknown_docker_agent(section, &key.text, options.profile, profile),
        };
        if let Some(problem) = problem {
            section.report(problem.at(key.span.clone()));
        }
    }
}

fn unknown_native(section: &Section<'_>, name: &str, kind: Option<&str>) -> Option<super::Diagnostic> {
    let unknown = |message: String| section.problem(Kind::UnknownField, message);
    let Some(field) = HOOK.iter().find(|field| field.name == name) else {
        return Some(if LATER.contains(&name) {
            unknown(format!("`{name}` is not supported by this version")).help("remove it: it would have no effect")
        } else if GROUP.iter().any(|field| field.name == name) {
            unknown(format!("`{name}` belongs to a group, not to a hook"))
                .help("write `{matcher: …, hooks: […]}` and put the hook into `hooks`")
        } else {
            let names = HOOK.iter().map(|field| field.name);
            unknown(format!("a hook has no field `{name}`")).maybe_help(suggest::did_you_mean(name, names))
        });
    };
    let kind = kind.filter(|kind| TYPE_WORDS.contains(kind))?;
    if field.only.is_empty() || field.only.contains(&kind) {
        return None;
    }
    let owners: Vec<String> = field.only.iter().map(|kind| format!("`type: {kind}`")).collect();
    let message = format!("`{name}` means nothing on `type: {kind}`");
    Some(section.problem(Kind::MisplacedField, message).help(format!("it belongs to {}", owners.join(" and "))))
}

fn unknown_docker_agent(section: &Section<'_>, name: &str, file: Profile, hook: Profile) -> Option<super::Diagnostic> {
    if DOCKER_AGENT.contains(&name) || (name == "dialect" && file == Profile::Native) {
        return None;
    }
    let problem = section.problem(Kind::UnknownField, format!("a {} hook has no field `{name}`", hook.name()));
    Some(if LATER.contains(&name) {
        problem
    } else if HOOK.iter().any(|field| field.name == name) {
        problem.help("it belongs to native hooks")
    } else if GROUP.iter().any(|field| field.name == name) {
        problem.help("this event takes hooks as they are, without a matcher around them")
    } else {
        problem.maybe_help(suggest::did_you_mean(name, DOCKER_AGENT.iter().copied()))
    })
}

/// The types a hook may have, for a suggestion.
pub(crate) fn types<'o>(profile: Profile, options: &ReadOptions<'o>) -> Vec<&'o str> {
    let stock: &[&'static str] = match profile {
        profile if profile == Profile::Native || profile.spec().is_foreign => {
            &[COMMAND, WORKER, PYTHON, WEBHOOK, BUILTIN, MODEL]
        }
        _ => &[COMMAND, BUILTIN, MODEL],
    };
    stock.iter().chain(options.types).copied().collect()
}
