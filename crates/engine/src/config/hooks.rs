//! The `hooks:` mapping: events, groups, and the order in which they are judged.
//!
//! The order is docker-agent's (its package documentation and tests): for each event, `on_error: block` where nothing
//! can be blocked; for each group `preempt_yolo`, the matcher, the number of hooks; then each hook by itself.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_events::profile::PROFILES;
use gatehook_events::{Event, Profile, Subject};

use super::DiagnosticKind as Kind;
use super::diagnostic::{Diagnostic, Diagnostics};
use super::document::{Document, Key, Node, Value};
use super::draft::Draft;
use super::fields::GROUP;
use super::section::{Context, Section};
use super::{foreign, hook, pattern, suggest};
use crate::definition::{EnvPolicy, HookDefinition, HookGroup, HooksConfig, OnError, Source};

/// What the reader must know of the surroundings.
#[derive(Debug, Clone)]
pub struct ReadOptions<'a> {
    /// The contract the hooks were written for; a file's `dialect` goes before it.
    pub profile: Profile,
    /// Who answers for them.
    pub source: Source,
    /// Where programs with a relative path and files with a relative name are looked for.
    pub working_dir: PathBuf,
    /// The environment: `PATH`, and what `${env.NAME}` names.
    pub env: &'a BTreeMap<String, String>,
    /// Types of hooks that an embedder registered.
    pub types: &'a [&'a str],
    /// The names of all builtins; `None` checks none.
    pub builtins: Option<&'a [&'a str]>,
    /// The names of all shapes of replies; `None` checks none.
    pub schemas: Option<&'a [&'a str]>,
    /// Keys that a file may have at its top and that somebody else reads.
    pub sections: &'a [&'a str],
    /// What hooks leave out; a file's `defaults` go before it.
    pub defaults: Defaults,
    /// `false` leaves to dispatch what docker-agent finds out there when a configuration was not validated before:
    /// unknown types, missing names, impossible blocks, bad patterns.
    pub validate: bool,
    /// The file they stand in, for [`Origin`](crate::definition::Origin).
    pub file: Option<Arc<PathBuf>>,
    /// The agent that they belong to, for the same.
    pub agent: Option<Arc<str>>,
}

/// What hooks leave out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Defaults {
    /// Before the profile's.
    pub timeout: Option<std::time::Duration>,
    /// Before the profile's, where the event allows it.
    pub on_error: Option<OnError>,
    /// Before the source's.
    pub env_policy: Option<EnvPolicy>,
}

static NO_ENVIRONMENT: BTreeMap<String, String> = BTreeMap::new();

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        Self {
            profile: Profile::Native,
            source: Source::User,
            working_dir: PathBuf::from("."),
            env: &NO_ENVIRONMENT,
            types: &[],
            builtins: None,
            schemas: None,
            sections: &[],
            defaults: Defaults::default(),
            validate: true,
            file: None,
            agent: None,
        }
    }
}

/// Reads a `hooks:` mapping. What is wrong goes to `diagnostics`; the rest is returned, and only good for use where
/// nothing is wrong.
pub fn read_hooks(
    document: &Document,
    node: &Node,
    options: &ReadOptions<'_>,
    diagnostics: &Diagnostics,
) -> HooksConfig {
    let context = Context { document, diagnostics };
    let mut config = HooksConfig::default();
    if node.value == Value::Null {
        return config;
    }
    if options.profile.spec().is_foreign {
        return foreign::read_hooks(context, node, options);
    }
    if let Some(section) = Section::open(context, node, "hooks", &[]) {
        for (key, node) in section.node.entries() {
            if !diagnostics.is_full() {
                config.groups.extend(read_event(context, key, node, options));
            }
        }
    }
    config
}

/// Hooks with one matcher, as they are written.
struct Group<'a> {
    path: String,
    matcher: Option<(&'a str, &'a Node)>,
    preempt: Option<(bool, Range<usize>)>,
    hooks: Vec<Draft<'a>>,
    /// Where to point when it has no hooks.
    place: Range<usize>,
    /// Some of its hooks could not be read, which was said.
    is_refused: bool,
    /// Hooks as they are, without a group around them.
    is_flat: bool,
}

fn read_event(context: Context<'_>, key: &Key, node: &Node, options: &ReadOptions<'_>) -> Vec<HookGroup> {
    let Some(event) = known_event(context, key, options.profile) else {
        return Vec::new();
    };
    let groups = draft_event(context, event, node, options);
    refuse_impossible_blocks(context, event, &groups, options);
    groups.into_iter().filter_map(|group| judge(context, event, group, options)).collect()
}

fn known_event(context: Context<'_>, key: &Key, profile: Profile) -> Option<Event> {
    let name = key.text.as_str();
    let event = Event::from_name(name).filter(|event| !event.is_lane());
    if let Some(event) = event.filter(|event| event.capabilities(profile).is_some()) {
        return Some(event);
    }
    let problem = match event {
        Some(event) => {
            let owners = PROFILES.iter().filter(|owner| event.name_in(owner.profile) == Some(name));
            let owners: Vec<&str> = owners.map(|owner| owner.name).collect();
            unknown_event(profile, name, name).help(format!("hooks of {} have it", owners.join(" and ")))
        }
        None => {
            let known = Event::all().filter(|event| event.capabilities(profile).is_some()).map(Event::name);
            let problem = Diagnostic::new(Kind::UnknownEvent, name, format!("there is no event `{name}`"));
            let elsewhere = PROFILES.iter().find_map(|row| Event::from_name_in(row.profile, name)?.name_in(profile));
            let elsewhere = elsewhere.map(|own| format!("it is called `{own}` here"));
            problem.maybe_help(elsewhere.or_else(|| suggest::did_you_mean(name, known)))
        }
    };
    context.diagnostics.report(problem.at(key.span.clone()));
    None
}

fn unknown_event(profile: Profile, path: &str, name: &str) -> Diagnostic {
    Diagnostic::new(Kind::UnknownEvent, path, format!("{} has no event `{name}`", profile.name()))
}

fn draft_event<'a>(context: Context<'a>, event: Event, node: &'a Node, options: &ReadOptions<'_>) -> Vec<Group<'a>> {
    let profile = options.profile;
    let is_matched = profile.subject(event).is_some();
    let kind = if is_matched { Kind::NotAMatcherOrList } else { Kind::NotAHookOrList };
    let path = format!("hooks.{}", event.name());
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (path, item) in items(context, kind, &path, node) {
        let is_group = if profile == Profile::Native { is_group(item) } else { is_matched };
        if is_group {
            groups.extend(draft_group(context, path, item, options));
            continue;
        }
        let Some(draft) = Draft::read(context, item, path.clone(), options) else { continue };
        match groups.last_mut().filter(|group| group.is_flat) {
            Some(flat) => flat.hooks.push(draft),
            None => {
                let place = item.span.clone();
                groups.push(Group {
                    path,
                    matcher: None,
                    preempt: None,
                    hooks: vec![draft],
                    place,
                    is_refused: false,
                    is_flat: true,
                });
            }
        }
    }
    groups
}

/// A list's mappings, or a single one, with their paths.
fn items<'a>(context: Context<'a>, kind: Kind, path: &str, node: &'a Node) -> Vec<(String, &'a Node)> {
    let what = if kind == Kind::NotAMatcherOrList { "a matcher group" } else { "a hook" };
    let wrong = |path: &str, node: &Node, wanted: &str| {
        let message = format!("`{path}` must be {wanted}, not {}", node.value.type_name());
        context.diagnostics.report(Diagnostic::new(kind, path, message).at(node.span.clone()));
    };
    match &node.value {
        Value::Null => Vec::new(),
        Value::Map(_) => vec![(format!("{path}[0]"), node)],
        Value::Seq(items) => {
            let items = items.iter().enumerate().map(|(at, item)| (format!("{path}[{at}]"), item));
            let is_mapping = |(path, item): &(String, &Node)| {
                let is_mapping = matches!(item.value, Value::Map(_));
                if !is_mapping {
                    wrong(path, item, what);
                }
                is_mapping
            };
            items.filter(is_mapping).collect()
        }
        _ => {
            wrong(path, node, &format!("{what} or a list of them"));
            Vec::new()
        }
    }
}

/// Whether a mapping of a native file is a group: it has hooks, or a matcher and no type.
fn is_group(node: &Node) -> bool {
    let has = |name: &str| node.entries().iter().any(|(key, _)| key.text == name);
    has("hooks") || (!has("type") && (has("matcher") || has("preempt_yolo")))
}

fn draft_group<'a>(context: Context<'a>, path: String, node: &'a Node, options: &ReadOptions<'_>) -> Option<Group<'a>> {
    let section = Section::open(context, node, path.clone(), GROUP)?;
    let is_hook = section.node("hooks").is_none() && section.node("type").is_some();
    if is_hook {
        let problem = section.problem(Kind::UnknownField, "this event takes groups, not hooks as they are");
        section
            .report(problem.at(section.head()).help("write `{matcher: …, hooks: […]}` and put the hook into `hooks`"));
        return None;
    }
    section.refuse_unknown(|_| false);
    let matcher = section.text("matcher").and_then(|text| Some((text, section.node("matcher")?)));
    let preempt = section.bool("preempt_yolo").map(|preempt| (preempt, section.place("preempt_yolo")));
    let before = context.diagnostics.len();
    let mut hooks = Vec::new();
    if let Some(node) = section.node("hooks") {
        let items = items(context, Kind::NotAHookOrList, &format!("{path}.hooks"), node);
        hooks.extend(items.into_iter().filter_map(|(path, item)| Draft::read(context, item, path, options)));
    }
    let is_refused = context.diagnostics.len() > before;
    Some(Group { path, matcher, preempt, hooks, place: section.head(), is_refused, is_flat: false })
}

impl ReadOptions<'_> {
    /// The folder of the file, else the working directory.
    pub(crate) fn file_dir(&self) -> &Path {
        self.file.as_deref().and_then(|file| file.parent()).unwrap_or(&self.working_dir)
    }

    /// Whether a hook of this profile is read without a look at its values: v1.58 checks little.
    pub(crate) fn is_lenient(&self, profile: Profile) -> bool {
        !self.validate || profile == Profile::DockerAgentV158
    }
}

fn refuse_impossible_blocks(context: Context<'_>, event: Event, groups: &[Group<'_>], options: &ReadOptions<'_>) {
    for draft in groups.iter().flat_map(|group| &group.hooks) {
        let Some(capabilities) = event.capabilities(draft.profile) else { continue };
        if draft.on_error == Some("block") && !capabilities.blocks && !options.is_lenient(draft.profile) {
            let message = format!("`{}` cannot be blocked", event.name());
            let problem = draft.section.problem(Kind::OnErrorBlockUnsupported, message);
            context.diagnostics.report(problem.at(draft.section.place("on_error")).help("use `warn` or `ignore`"));
        }
    }
}

fn judge(context: Context<'_>, event: Event, group: Group<'_>, options: &ReadOptions<'_>) -> Option<HookGroup> {
    let report =
        |kind, message: &str, place: Range<usize>| Diagnostic::new(kind, group.path.clone(), message).at(place);
    let has_lane = options.profile != Profile::DockerAgentV158 && event == Event::PreToolUse;
    if let Some((_, place)) = group.preempt.clone().filter(|_| !has_lane && options.validate) {
        let problem = report(Kind::PreemptYoloUnsupported, "`preempt_yolo` is for `pre_tool_use` alone", place);
        context.diagnostics.report(problem.help("remove it"));
    }
    judge_matcher(context, event, &group, options);
    if group.hooks.is_empty() && !group.is_refused && options.validate {
        let problem = report(Kind::HooksRequired, "this group has no hooks", group.place.clone());
        context.diagnostics.report(problem.help("list at least one under `hooks`"));
    }
    let hooks: Vec<HookDefinition> =
        group.hooks.iter().filter_map(|draft| judge_hook(context, event, &group, draft, options)).collect();
    let lane =
        if has_lane && group.preempt.is_some_and(|(preempt, _)| preempt) { Event::PreToolUsePreempt } else { event };
    let matcher = group.matcher.map_or_else(String::new, |(matcher, _)| matcher.to_owned());
    (!hooks.is_empty()).then_some(HookGroup { event: lane, matcher, hooks })
}

fn judge_matcher(context: Context<'_>, event: Event, group: &Group<'_>, options: &ReadOptions<'_>) {
    let profile = options.profile;
    let Some((matcher, node)) = group.matcher.filter(|(matcher, _)| !selects_all(matcher)) else {
        return;
    };
    let problem = match profile.subject(event) {
        None => {
            let message = format!("`{}` has nothing that a matcher selects", event.name());
            let problem = Diagnostic::new(Kind::MatcherUnsupported, group.path.clone(), message);
            Some(problem.at(node.span.clone()).help("remove the matcher"))
        }
        Some(_) if options.is_lenient(profile) => None,
        Some(subject) => pattern::check(matcher, Some(subject)).err().map(|error| {
            let is_glob = subject == Subject::Path;
            let what = if is_glob { "a glob" } else { "a regular expression" };
            let message = format!("the matcher is not {what}: {error}");
            let help = if is_glob {
                "`*`, `**`, `?`, `[…]` and `{a,b}` are known".to_owned()
            } else {
                pattern_help(matcher)
            };
            let problem = Diagnostic::new(Kind::InvalidMatcher, group.path.clone(), message);
            problem.at(place_within(context.document, &node.span, matcher, &error.span)).help(help)
        }),
    };
    if let Some(problem) = problem {
        context.diagnostics.report(problem);
    }
}

fn judge_hook(
    context: Context<'_>,
    event: Event,
    group: &Group<'_>,
    draft: &Draft<'_>,
    options: &ReadOptions<'_>,
) -> Option<HookDefinition> {
    let profile = draft.profile;
    let place = || draft.section.place("dialect");
    if event.capabilities(profile).is_none() {
        context.diagnostics.report(unknown_event(profile, &draft.section.path, event.name()).at(place()));
        return None;
    }
    let has_matcher = group.matcher.is_some_and(|(matcher, _)| !selects_all(matcher));
    if has_matcher && profile.subject(event).is_none() && options.profile.subject(event).is_some() {
        let message = format!("{} has no matcher on `{}`", profile.name(), event.name());
        let problem = draft.section.problem(Kind::MatcherUnsupported, message).at(place());
        context.diagnostics.report(problem.help("move the hook to a group without a matcher"));
    }
    hook::judge(event, draft, options)
}

fn selects_all(matcher: &str) -> bool {
    matcher.is_empty() || matcher == "*"
}

/// What to do about a pattern: the two mistakes that globs lead to.
pub(crate) fn pattern_help(pattern: &str) -> String {
    if pattern.starts_with('*') || pattern.contains("_*") {
        return "write `.*` for any text".to_owned();
    }
    "patterns are RE2 regular expressions, anchored at both ends".to_owned()
}

/// The place of a part of a text, where the file spells the text as it is.
pub(crate) fn place_within(document: &Document, place: &Range<usize>, text: &str, part: &Range<usize>) -> Range<usize> {
    let spelled = document.text_at(place);
    match spelled.find(text) {
        // As it is, or in quotes.
        Some(at) if spelled.len() - text.len() <= 2 => place.start + at + part.start..place.start + at + part.end,
        _ => place.clone(),
    }
}

/// The rest of the line at a place in a text of several lines; the whole text where it is spelled otherwise.
pub(crate) fn place_in_lines(document: &Document, place: &Range<usize>, text: &str, offset: usize) -> Range<usize> {
    let start = text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    match document.text_at(place).find(line) {
        Some(at) => place.start + at + offset - start..place.start + at + line.len().max(offset - start),
        None => place.clone(),
    }
}
