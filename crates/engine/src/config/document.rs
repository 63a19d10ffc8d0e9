//! A configuration file as one small tree in which every value knows its place, whatever format it was written in.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::diagnostic::{ConfigError, Diagnostic, DiagnosticKind};
use super::{json, toml, yaml};

/// Bytes of a file.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Levels of nesting.
pub const MAX_DEPTH: usize = 64;
/// Values in a file, copies by alias included.
pub const MAX_NODES: usize = 100_000;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2, one document.
    Yaml,
    /// JSON (RFC 8259), without extensions.
    Json,
    /// TOML 1.1.
    Toml,
}

/// A file that was read, not yet understood.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its name, as it is shown.
    pub name: Arc<str>,
    /// Its text.
    pub text: Arc<str>,
    /// Its content; an empty file is `Null`.
    pub root: Node,
    /// Where its lines begin.
    lines: Arc<[usize]>,
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// In bytes of the text. A value that an alias repeats has the place of its anchor.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
}

/// A value of one of the types that all three formats share.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text; a date of TOML as it is written.
    Str(String),
    /// A list.
    Seq(Vec<Node>),
    /// A mapping, in the order it is written; no key stands twice.
    Map(Vec<(Key, Node)>),
}

/// A key of a mapping and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key.
    pub text: String,
    /// In bytes of the text.
    pub span: Range<usize>,
}

impl Format {
    /// The format of this file name's extension.
    pub fn of_path(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Some(Format::Yaml),
            "json" => Some(Format::Json),
            "toml" => Some(Format::Toml),
            _ => None,
        }
    }

    /// A guess from the first line that says something.
    pub fn of_text(text: &str) -> Format {
        let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        match first {
            Some(line) if line.starts_with('{') => Format::Json,
            Some(line) if is_toml_line(line) => Format::Toml,
            _ => Format::Yaml,
        }
    }
}

/// `[table]`, `[[table]]`, `key = value`.
fn is_toml_line(line: &str) -> bool {
    let key = line.split('=').next().unwrap_or_default().trim();
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '"'));
    line.starts_with('[') || (line.contains('=') && is_key)
}

impl Document {
    /// Reads a file. The format is that of its extension, else of its content.
    pub fn open(path: &Path) -> Result<Document, ConfigError> {
        let name = path.display().to_string();
        let bytes = read_bounded(path).map_err(|problem| ConfigError::one(&name, "", *problem))?;
        Self::from_bytes(&name, &bytes, Format::of_path(path))
    }

    /// Reads a text of this name.
    pub fn from_bytes(name: &str, bytes: &[u8], format: Option<Format>) -> Result<Document, ConfigError> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return Err(not_utf8(name, bytes, error.valid_up_to())),
        };
        Self::parse(name, text, format.unwrap_or_else(|| Format::of_text(text)))
    }

    /// Reads a text of this name and format.
    pub fn parse(name: &str, text: &str, format: Format) -> Result<Document, ConfigError> {
        if text.len() > MAX_BYTES {
            return Err(ConfigError::one(name, "", too_large("bytes", MAX_BYTES)));
        }
        let root = match format {
            Format::Yaml => yaml::read(text),
            Format::Json => json::read(text),
            Format::Toml => toml::read(text),
        };
        let root = root.map_err(|problems| ConfigError::new(name, text, &[], problems))?;
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Ok(Document { name: name.into(), text: text.into(), root, lines })
    }

    /// A document around a value that comes from elsewhere: its text is the value's JSON, which places refer to.
    pub fn from_json(name: &str, value: &serde_json::Value) -> Result<Document, ConfigError> {
        Self::parse(name, &value.to_string(), Format::Json)
    }

    /// The text of a place.
    pub fn text_at(&self, span: &Range<usize>) -> &str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    /// The line of a place, from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|&start| start <= offset)
    }
}

impl Node {
    pub(crate) fn new(span: Range<usize>, value: Value) -> Self {
        Self { span, value }
    }

    /// The value of a key; `None` where this is no mapping or the value is null.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let (_, node) = self.entries().iter().find(|(name, _)| name.text == key)?;
        (node.value != Value::Null).then_some(node)
    }

    /// The entries of a mapping; none of anything else.
    pub fn entries(&self) -> &[(Key, Node)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// This value as it would stand in JSON; a number without a place there is null.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::Str(value) => value.as_str().into(),
            Value::Seq(items) => items.iter().map(Node::to_json).collect(),
            Value::Map(entries) => {
                let entries = entries.iter().map(|(key, node)| (key.text.clone(), node.to_json()));
                serde_json::Value::Object(entries.collect())
            }
        }
    }
}

impl Value {
    /// The type's name in messages, as in `a list`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Str(_) => "text",
            Value::Seq(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

/// What a reader made, or the problem that ended it.
pub(crate) type Read<T> = Result<T, Box<Diagnostic>>;

/// What all three readers share: bounds, and problems that need not end the reading.
#[derive(Debug, Default)]
pub(crate) struct Build {
    nodes: usize,
    problems: Vec<Diagnostic>,
}

impl Build {
    /// Takes `nodes` values that end `depth` levels down, or refuses what goes over a bound.
    pub(crate) fn take(&mut self, nodes: usize, depth: usize, at: &Range<usize>) -> Read<()> {
        self.nodes = self.nodes.saturating_add(nodes);
        if depth > MAX_DEPTH {
            return Err(Box::new(too_large("levels of nesting", MAX_DEPTH).at(at.clone())));
        }
        if self.nodes > MAX_NODES {
            return Err(Box::new(too_large("values", MAX_NODES).at(at.clone())));
        }
        Ok(())
    }

    /// Adds an entry, unless its key is there already.
    pub(crate) fn entry(&mut self, entries: &mut Vec<(Key, Node)>, seen: &mut KeyIndex, key: Key, node: Node) {
        match seen.entry(key.text.clone()) {
            Entry::Occupied(first) => self.problem(Diagnostic::duplicate_key(&key, first.get())),
            Entry::Vacant(vacant) => {
                vacant.insert(key.span.clone());
                entries.push((key, node));
            }
        }
    }

    /// Notes a problem and goes on.
    pub(crate) fn problem(&mut self, problem: Diagnostic) {
        self.problems.push(problem);
    }

    /// The tree, if it is whole.
    pub(crate) fn finish(mut self, root: Read<Node>) -> Result<Node, Vec<Diagnostic>> {
        match root {
            Ok(root) if self.problems.is_empty() => Ok(root),
            Ok(_) => Err(self.problems),
            Err(last) => {
                self.problems.push(*last);
                Err(self.problems)
            }
        }
    }
}

/// The keys of a mapping that were seen so far, with their places.
pub(crate) type KeyIndex = HashMap<String, Range<usize>>;

fn too_large(what: &str, bound: usize) -> Diagnostic {
    Diagnostic::new(DiagnosticKind::TooLarge, "", format!("more than {bound} {what}"))
}

fn not_utf8(name: &str, bytes: &[u8], at: usize) -> ConfigError {
    let valid = bytes.get(..at).and_then(|head| std::str::from_utf8(head).ok()).unwrap_or_default();
    let problem = Diagnostic::new(DiagnosticKind::NotUtf8, "", format!("byte {at} is not UTF-8"));
    ConfigError::one(name, valid, problem.at(at..at).help("save the file as UTF-8"))
}

fn read_bounded(path: &Path) -> Read<Vec<u8>> {
    use std::io::Read as _;
    let unreadable = |error: std::io::Error| {
        Box::new(Diagnostic::new(DiagnosticKind::Unreadable, "", format!("the file cannot be read: {error}")))
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // One byte more than allowed tells a large file from one that just fits.
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_BYTES {
        return Err(Box::new(too_large("bytes", MAX_BYTES)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
