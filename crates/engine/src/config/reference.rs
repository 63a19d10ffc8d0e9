//! Values that stand elsewhere: `${env.NAME}` in variables and headers, `${file:PATH}` in headers. They are resolved
//! when the configuration is read, so that a missing secret stops the start and not a request.

use std::collections::BTreeMap;
use std::path::Path;

use gatehook_events::Profile;
use http::{HeaderName, HeaderValue};

use super::DiagnosticKind as Kind;
use super::document::{Key, Node, Value};
use super::draft::Draft;
use super::hooks::ReadOptions;
use super::section::Section;
use crate::handlers::webhook::sign;

/// Bytes of a file that holds a header's value.
const MAX_FILE: u64 = 64 * 1024;

/// Headers that belong to the connection or to the request's body.
const RESERVED: &[&str] = &["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"];

/// A reference that leads nowhere.
pub(super) struct Missing {
    pub(super) kind: Kind,
    pub(super) message: String,
}

/// The variables of a hook, expanded; `None` where one cannot be had, which is reported.
pub(crate) fn environment(draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<BTreeMap<String, String>> {
    let section = &draft.section;
    let mut variables = BTreeMap::new();
    let mut complete = true;
    for (key, text, span) in &draft.env {
        let name = &key.text;
        let is_bad = name.is_empty() || name.contains(['=', '\0']) || text.contains('\0');
        let value = match draft.profile {
            _ if is_bad => {
                let message = format!("`{name}` cannot be a variable of the environment");
                Err(Missing { kind: Kind::InvalidValue, message })
            }
            Profile::Native | Profile::OllamaCli | Profile::Ollm => {
                expand(text, &|reference| variable(reference, options))
            }
            // docker-agent: what is not set is empty.
            Profile::DockerAgent => expand(text, &|reference| match variable(reference, options) {
                Some(Err(_)) => Some(Ok(String::new())),
                found => found,
            }),
            Profile::DockerAgentV158 => Ok(text.clone()),
        };
        match value {
            Ok(value) => drop(variables.insert(name.clone(), value)),
            Err(missing) => {
                complete = false;
                section.report(section.problem(missing.kind, missing.message).at(span.clone()));
            }
        }
    }
    complete.then_some(variables)
}

/// The headers of a webhook, resolved and checked; `None` where one is wrong, which is reported without its value.
pub(crate) fn headers(draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<Vec<(String, String)>> {
    let section = &draft.section;
    let mut headers: Vec<(String, String)> = Vec::new();
    let before = section.context.diagnostics.len();
    for (key, node) in draft.headers {
        match header(key, node, options) {
            Ok(header) if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(&header.0)) => {
                let message = format!("the header `{}` stands twice", key.text);
                section.report(section.problem(Kind::InvalidHeader, message).at(key.span.clone()));
            }
            Ok(header) => headers.push(header),
            Err((missing, place)) => {
                section.report(section.problem(missing.kind, missing.message).at(place));
            }
        }
    }
    (section.context.diagnostics.len() == before).then_some(headers)
}

/// The keys that requests are signed with, resolved and checked; `None` where one is wrong, which is reported without
/// it.
pub(crate) fn secrets(draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<Vec<String>> {
    let section = &draft.section;
    let nodes = match section.node("secret") {
        None => return Some(Vec::new()),
        Some(Node { value: Value::Seq(items), .. }) => items.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let before = section.context.diagnostics.len();
    let mut secrets = Vec::new();
    for node in nodes {
        conceal(section, node);
        let secret = header_value(node, options).and_then(|secret| match sign::key(&secret) {
            Ok(_) => Ok(secret),
            Err(message) => Err(Missing { kind: Kind::InvalidValue, message: format!("`secret`: {message}") }),
        });
        match secret {
            Ok(secret) => secrets.push(secret),
            Err(Missing { kind: Kind::WrongType, .. }) => {
                section.wrong_type::<()>("secret", node, "text or `{file: PATH}`, or a list of them");
            }
            Err(missing) => section.report(section.problem(missing.kind, missing.message).at(node.span.clone())),
        }
    }
    (section.context.diagnostics.len() == before).then_some(secrets)
}

/// Text in which each `${env.NAME}` stands for a variable's value; `None` where there is no such variable, which is
/// reported at `node`.
pub fn expanded(section: &Section<'_>, node: &Node, text: &str, options: &ReadOptions<'_>) -> Option<String> {
    let found = expand(text, &|reference| variable(reference, options));
    let report = |missing: Missing| {
        section.report(section.problem(missing.kind, missing.message).at(node.span.clone()));
    };
    found.map_err(report).ok()
}

/// A mapping from names to texts as headers, with what `${env.NAME}` and `${file:PATH}` in them stand for. What is wrong
/// is reported without its value, and left out.
pub fn header_map(section: &Section<'_>, name: &str, options: &ReadOptions<'_>) -> Vec<(String, String)> {
    let Some(node) = section.node(name) else { return Vec::new() };
    if !matches!(node.value, Value::Map(_)) {
        return section.wrong_type(name, node, "a mapping from names to texts").unwrap_or_default();
    }
    let read = |(key, node): &(Key, Node)| {
        conceal(section, node);
        let report = |(missing, place): (Missing, Place)| {
            section.report(section.problem(missing.kind, missing.message).at(place));
        };
        header(key, node, options).map_err(report).ok()
    };
    node.entries().iter().filter_map(read).collect()
}

/// Keeps a value out of reports, unless it says only where a secret is.
pub(crate) fn conceal(section: &Section<'_>, node: &Node) {
    match &node.value {
        Value::Str(text) if text.contains("${env.") || text.contains("${file:") => {}
        Value::Map(_) => {}
        _ => section.context.diagnostics.conceal(node.span.clone()),
    }
}

type Place = std::ops::Range<usize>;

pub(super) fn header(key: &Key, node: &Node, options: &ReadOptions<'_>) -> Result<(String, String), (Missing, Place)> {
    check_name(&key.text).map_err(|message| (Missing { kind: Kind::InvalidHeader, message }, key.span.clone()))?;
    let at = |missing| (missing, node.span.clone());
    let value = header_value(node, options).map_err(at)?;
    check_value(&key.text, &value).map_err(|message| at(Missing { kind: Kind::InvalidHeader, message }))?;
    Ok((key.text.clone(), value))
}

/// What is wrong with a header's name.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is not a header name"))?;
    match RESERVED.contains(&parsed.as_str()) {
        true => Err(format!("the header `{name}` is set by the connection")),
        false => Ok(()),
    }
}

/// What is wrong with a header's value, which is not shown.
pub(crate) fn check_value(name: &str, value: &str) -> Result<(), String> {
    let is_visible = value.chars().all(|c| c == '\t' || (' '..='\u{7e}').contains(&c));
    match is_visible && HeaderValue::from_str(value).is_ok() {
        true => Ok(()),
        false => Err(format!("the value of `{name}` has characters that a header cannot carry")),
    }
}

fn header_value(node: &Node, options: &ReadOptions<'_>) -> Result<String, Missing> {
    let resolve = |reference: &str| {
        variable(reference, options).or_else(|| Some(file(reference.strip_prefix("file:")?, options)))
    };
    match (&node.value, node.entries()) {
        (Value::Str(text), _) => expand(text, &resolve),
        (_, [(key, Node { value: Value::Str(path), .. })]) if key.text == "file" => file(path, options),
        _ => Err(Missing { kind: Kind::WrongType, message: "a header must be text or `{file: PATH}`".into() }),
    }
}

type Resolved = Option<Result<String, Missing>>;

/// Replaces each `${…}` that `resolve` knows; others stand for themselves, and what was put in is not read again.
fn expand(text: &str, resolve: &dyn Fn(&str) -> Resolved) -> Result<String, Missing> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once("${") {
        expanded.push_str(before);
        let reference = tail.split_once('}').and_then(|(name, after)| Some((resolve(name)?, after)));
        match reference {
            Some((value, after)) => {
                expanded.push_str(&value?);
                rest = after;
            }
            None => {
                expanded.push_str("${");
                rest = tail;
            }
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn variable(reference: &str, options: &ReadOptions<'_>) -> Resolved {
    let name = reference.strip_prefix("env.")?;
    Some(options.env.get(name).cloned().ok_or_else(|| Missing {
        kind: Kind::MissingVariable,
        message: format!("the environment has no variable `{name}`"),
    }))
}

fn file(path: &str, options: &ReadOptions<'_>) -> Result<String, Missing> {
    let missing = |cause: String| Missing { kind: Kind::MissingFile, message: format!("the file `{path}` {cause}") };
    let folder = options.file.as_deref().and_then(|file| file.parent()).unwrap_or(&options.working_dir);
    let full = folder.join(path);
    let full = full.canonicalize().map_err(|error| missing(format!("cannot be read: {error}")))?;
    if options.source.needs_approval() && !is_within(&full, folder) {
        return Err(missing("lies outside of the workspace".into()));
    }
    read(&full).map_err(missing)
}

/// A workspace must not have a secret of the user's sent to an address of its own.
fn is_within(file: &Path, folder: &Path) -> bool {
    folder.canonicalize().is_ok_and(|folder| file.starts_with(folder))
}

fn read(path: &Path) -> Result<String, String> {
    use std::io::Read as _;
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let file = std::fs::File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err("is not a file".into());
    }
    let mut text = String::new();
    let read = file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(unreadable)?;
    if read as u64 > MAX_FILE {
        return Err(format!("is larger than {MAX_FILE} bytes"));
    }
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}
