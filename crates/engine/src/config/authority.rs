//! What only those with authority over others may say: `required` and `locked`.

use std::ops::Range;

use gatehook_events::{Event, Profile};

use super::DiagnosticKind as Kind;
use super::document::{Node, Value};
use super::hooks::ReadOptions;
use super::section::Section;
use super::suggest;
use crate::definition::{Origin, Source};
use crate::trust::Required;

/// `required: {pre_tool_use: [guard]}`: hooks that must be in force, by the event they guard.
pub(super) fn required(root: &Section<'_>, options: &ReadOptions<'_>) -> Vec<Required> {
    let Some(node) = root.node("required") else { return Vec::new() };
    if options.source.needs_approval() {
        refuse(root, "required", "what needs an approval itself cannot require hooks", "a managed or user file can");
        return Vec::new();
    }
    let Some(section) = Section::open(root.context, node, "required", &[]) else { return Vec::new() };
    let mut required = Vec::new();
    for (key, node) in section.node.entries() {
        let Some(event) = guarded(&section, &key.text, &key.span) else { continue };
        for (name, span) in names(&section, node) {
            let line = root.context.document.line(span.start);
            let origin = Origin { source: options.source, file: options.file.clone(), line, agent: None, skill: None };
            required.push(Required { event, name, origin });
        }
    }
    required
}

/// An event that can be blocked.
fn guarded(section: &Section<'_>, name: &str, span: &Range<usize>) -> Option<Event> {
    let event = Event::from_name(name).filter(|event| !event.is_lane());
    let capabilities = event.and_then(|event| event.capabilities(Profile::Native));
    match (event, capabilities) {
        (Some(event), Some(capabilities)) if capabilities.blocks => return Some(event),
        (Some(_), _) => {
            let problem = section.problem(Kind::OnErrorBlockUnsupported, format!("`{name}` cannot be blocked"));
            section.report(problem.at(span.clone()).help("a required hook guards an event that can be"));
        }
        (None, _) => {
            let known = Event::all().map(Event::name);
            let problem = section.problem(Kind::UnknownEvent, format!("there is no event `{name}`"));
            section.report(problem.at(span.clone()).maybe_help(suggest::did_you_mean(name, known)));
        }
    }
    None
}

fn names(section: &Section<'_>, node: &Node) -> Vec<(String, Range<usize>)> {
    let Value::Seq(items) = &node.value else {
        return section
            .wrong_type("required", node, "names of hooks, as in `{pre_tool_use: [guard]}`")
            .unwrap_or_default();
    };
    let name = |item: &Node| match &item.value {
        Value::Str(name) if !name.trim().is_empty() => Some((name.clone(), item.span.clone())),
        _ => section.wrong_type("required", item, "the name of a hook"),
    };
    items.iter().filter_map(name).collect()
}

/// `locked: [listen]`: settings of a managed file that nothing else changes.
pub(super) fn locked(root: &Section<'_>, options: &ReadOptions<'_>) -> Vec<String> {
    let Some(locked) = root.texts("locked") else { return Vec::new() };
    if options.source != Source::Managed {
        refuse(root, "locked", "only a managed file can lock settings", "remove it");
        return Vec::new();
    }
    let known: Vec<&str> =
        ["max_concurrent_hooks", "traces"].into_iter().chain(options.sections.iter().copied()).collect();
    for name in locked.iter().filter(|name| !known.contains(&name.as_str())) {
        let problem = root.problem(Kind::InvalidValue, format!("there is no setting `{name}`"));
        root.report(problem.at(root.place("locked")).help(suggest::one_of(name, &known)));
    }
    locked
}

fn refuse(root: &Section<'_>, name: &str, what: &str, help: &str) {
    root.report(root.problem(Kind::MisplacedField, what).at(root.place(name)).help(help));
}
