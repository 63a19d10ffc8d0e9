//! Reads a mapping by a table of its fields: the table says what there is, and validation, documentation and JSON
//! Schema come from it. Every part of a configuration file is read this way. All accessors are `None` where a field is
//! absent or null, and where it is wrong, which they report.

use std::ops::Range;
use std::time::Duration;

use super::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
use super::document::{Document, Key, Node, Value};
use super::{duration, size, suggest};

/// One row: a key that a mapping may have.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// What stands there.
    pub shape: Shape,
    /// What it says, in a sentence.
    pub doc: &'static str,
    /// What holds where it is left out, in words; empty where nothing does.
    pub default: &'static str,
    /// The `type:` values it belongs to; empty for all.
    pub only: &'static [&'static str],
}

/// What stands at a key.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Text.
    Text,
    /// Text; a whole number stands for its own spelling.
    Name,
    /// A number of bytes, or text such as `64MiB`.
    Size,
    /// A number of seconds, or text such as `500ms`.
    Duration,
    /// The same, or text such as `7d`.
    Age,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of texts; numbers and booleans stand for their own spelling.
    Texts,
    /// Text, or a list of texts.
    TextOrTexts,
    /// A mapping from names to texts; numbers and booleans stand for their own spelling.
    TextMap,
    /// A mapping from names to regular expressions.
    PatternMap,
    /// A mapping from names to texts, or to `{file: PATH}`.
    SecretMap,
    /// Text or `{file: PATH}`, or a list of them.
    Secrets,
    /// A mapping from names to numbers.
    NumberMap,
    /// A word of the first list, or `{KEY: [text, …]}` with the second as key.
    WordOrTexts(&'static [&'static str], &'static str),
    /// A mapping of these fields.
    Table(&'static [Field]),
    /// A list of mappings of these fields.
    Tables(&'static [Field]),
    /// A mapping from names to mappings of these fields.
    NamedTables(&'static [Field]),
    /// A hook or a list of hooks.
    Hooks,
    /// A mapping; whoever reads it checks it.
    Any,
    /// Any value.
    Json,
}

/// A document and where its problems go.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// What is read.
    pub document: &'a Document,
    /// What is wrong with it.
    pub diagnostics: &'a Diagnostics,
}

/// A mapping that is read by its table.
#[derive(Debug, Clone)]
pub struct Section<'a> {
    /// The document around it.
    pub context: Context<'a>,
    /// The mapping.
    pub node: &'a Node,
    /// Its path, as in `upstreams.local`.
    pub path: String,
    /// Its table.
    pub fields: &'static [Field],
}

impl Field {
    /// A key of all types without a default.
    pub const fn new(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self { name, shape, doc, default: "", only: &[] }
    }

    /// Says what holds where it is left out.
    #[must_use]
    pub const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    /// Says which `type:` values it belongs to.
    #[must_use]
    pub const fn only(mut self, types: &'static [&'static str]) -> Self {
        self.only = types;
        self
    }
}

/// The words of a table of words and values.
pub const fn words<T: Copy, const N: usize>(table: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut at = 0;
    while at < N {
        #[expect(clippy::indexing_slicing, reason = "both have N rows, and a constant fails at compile time")]
        {
            words[at] = table[at].0;
        }
        at += 1;
    }
    words
}

impl<'a> Section<'a> {
    /// Reads a mapping; keys that its table does not know are problems. `None` where it is no mapping, which is one too.
    pub fn read(
        context: Context<'a>,
        node: &'a Node,
        path: impl Into<String>,
        fields: &'static [Field],
    ) -> Option<Self> {
        let section = Self::open(context, node, path, fields)?;
        section.refuse_unknown(|_| false);
        Some(section)
    }

    /// The same, without a look at its keys.
    pub fn open(
        context: Context<'a>,
        node: &'a Node,
        path: impl Into<String>,
        fields: &'static [Field],
    ) -> Option<Self> {
        let section = Self { context, node, path: path.into(), fields };
        if matches!(node.value, Value::Map(_)) {
            return Some(section);
        }
        let what = if section.path.is_empty() { "the file".to_owned() } else { format!("`{}`", section.path) };
        let message = format!("{what} must be a mapping, not {}", node.value.type_name());
        section.report(section.problem(DiagnosticKind::WrongType, message).at(node.span.clone()));
        None
    }

    /// Reports keys that are neither in the table nor `known` elsewhere.
    pub fn refuse_unknown(&self, known: impl Fn(&str) -> bool) {
        for (key, _) in self.node.entries() {
            let name = key.text.as_str();
            if self.context.diagnostics.is_full() {
                return;
            }
            if !self.fields.iter().any(|field| field.name == name) && !known(name) {
                let problem = self.problem(DiagnosticKind::UnknownField, format!("there is no field `{name}` here"));
                let names = self.fields.iter().map(|field| field.name);
                self.report(problem.at(key.span.clone()).maybe_help(suggest::did_you_mean(name, names)));
            }
        }
    }

    /// A problem of this section. Give it a place, then [`report`](Self::report) it.
    pub fn problem(&self, kind: DiagnosticKind, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(kind, self.path.clone(), message)
    }

    /// Adds a problem.
    pub fn report(&self, problem: Diagnostic) {
        self.context.diagnostics.report(problem);
    }

    /// The place of a field's value, else that of the section.
    pub fn place(&self, name: &str) -> Range<usize> {
        self.node(name).map_or_else(|| self.head(), |node| node.span.clone())
    }

    /// The place of the section's first key, which shows it better than all of its lines.
    pub fn head(&self) -> Range<usize> {
        self.node.entries().first().map_or_else(|| self.node.span.clone(), |(key, _)| key.span.clone())
    }

    /// A field as it stands; `None` where it is absent or null.
    pub fn node(&self, name: &str) -> Option<&'a Node> {
        self.node.get(name)
    }

    /// Text.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        let node = self.node(name)?;
        match &node.value {
            Value::Str(text) => Some(text),
            _ => self.wrong_type(name, node, "text"),
        }
    }

    /// `true` or `false`.
    pub fn bool(&self, name: &str) -> Option<bool> {
        let node = self.node(name)?;
        match node.value {
            Value::Bool(value) => Some(value),
            _ => self.wrong_type(name, node, "`true` or `false`"),
        }
    }

    /// A whole number.
    pub fn integer(&self, name: &str) -> Option<i64> {
        let node = self.node(name)?;
        match node.value {
            Value::Int(value) => Some(value),
            _ => self.wrong_type(name, node, "a whole number"),
        }
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<f64> {
        let node = self.node(name)?;
        match node.value {
            Value::Int(value) => Some(value as f64),
            Value::Float(value) if value.is_finite() => Some(value),
            _ => self.wrong_type(name, node, "a number"),
        }
    }

    /// A whole number of at least `least`.
    pub fn count(&self, name: &str, least: usize) -> Option<usize> {
        let number = self.integer(name)?;
        let count = usize::try_from(number).ok().filter(|&count| count >= least);
        if count.is_none() {
            let message = format!("`{name}` must be at least {least}, not {number}");
            self.report(self.problem(DiagnosticKind::InvalidValue, message).at(self.place(name)));
        }
        count
    }

    /// A length of time of at least 0.
    pub fn duration(&self, name: &str) -> Option<Duration> {
        self.bounded(name, self.seconds(name)?)
    }

    /// The same, in days too.
    pub fn age(&self, name: &str) -> Option<Duration> {
        let node = self.node(name)?;
        let Value::Str(text) = &node.value else { return self.duration(name) };
        let seconds = duration::parse_age(text);
        let wanted = "a number of seconds, or text such as `30m`, `12h`, `7d`";
        self.bounded(name, seconds.or_else(|| self.wrong_type(name, node, wanted))?)
    }

    fn bounded(&self, name: &str, seconds: f64) -> Option<Duration> {
        let duration = duration::of_seconds(seconds);
        if duration.is_none() {
            let message = format!("`{name}` must be between 0 and {} days", duration::MAX.as_secs() / 86_400);
            self.report(self.problem(DiagnosticKind::InvalidValue, message).at(self.place(name)));
        }
        duration
    }

    /// A length of time in seconds, whatever its sign.
    pub fn seconds(&self, name: &str) -> Option<f64> {
        let node = self.node(name)?;
        let seconds = match &node.value {
            Value::Int(seconds) => Some(*seconds as f64),
            Value::Float(seconds) => Some(*seconds).filter(|seconds| seconds.is_finite()),
            Value::Str(text) => duration::parse(text),
            _ => None,
        };
        seconds.or_else(|| self.wrong_type(name, node, "a number of seconds, or text such as `500ms`, `2s`, `1m30s`"))
    }

    /// A number of bytes of at least `least`.
    pub fn size(&self, name: &str, least: u64) -> Option<u64> {
        let node = self.node(name)?;
        let bytes = match &node.value {
            Value::Int(bytes) => u64::try_from(*bytes).ok(),
            Value::Str(text) => size::parse(text),
            _ => None,
        };
        let Some(bytes) = bytes else {
            return self.wrong_type(name, node, "a number of bytes, or text such as `64MiB`");
        };
        if bytes < least {
            let message = format!("`{name}` must be at least {}, not {bytes} bytes", size::spelled(least));
            self.report(self.problem(DiagnosticKind::InvalidValue, message).at(self.place(name)));
            return None;
        }
        Some(bytes)
    }

    /// Text, or a whole number as it is spelled.
    pub fn name(&self, name: &str) -> Option<String> {
        let node = self.node(name)?;
        match &node.value {
            Value::Str(text) => Some(text.clone()),
            Value::Int(_) => Some(self.context.document.text_at(&node.span).to_owned()),
            _ => self.wrong_type(name, node, "text"),
        }
    }

    /// One of a table's words, by its value.
    pub fn choice<T: Copy>(&self, name: &str, table: &[(&'static str, T)]) -> Option<T> {
        let word = self.text(name)?;
        self.value_of(DiagnosticKind::InvalidValue, name, word, table)
    }

    /// The value of a word, or a problem of this kind.
    pub fn value_of<T: Copy>(&self, kind: DiagnosticKind, name: &str, word: &str, table: &[(&str, T)]) -> Option<T> {
        let found = table.iter().find(|(known, _)| *known == word);
        if found.is_none() {
            let words: Vec<&str> = table.iter().map(|(known, _)| *known).collect();
            let problem = self.problem(kind, format!("`{name}` has no value `{word}`")).at(self.place(name));
            self.report(problem.help(suggest::one_of(word, &words)));
        }
        found.map(|(_, value)| *value)
    }

    /// A list of texts.
    pub fn texts(&self, name: &str) -> Option<Vec<String>> {
        let node = self.node(name)?;
        let Value::Seq(items) = &node.value else {
            return self.wrong_type(name, node, "a list of texts");
        };
        // Not short-circuiting: each bad item is reported.
        let items: Vec<_> = items.iter().map(|item| self.spelling(name, item)).collect();
        items.into_iter().collect()
    }

    /// Text, or a list of texts.
    pub fn text_or_texts(&self, name: &str) -> Option<Vec<String>> {
        let node = self.node(name)?;
        match &node.value {
            Value::Str(text) => Some(vec![text.clone()]),
            Value::Seq(_) => self.texts(name),
            _ => self.wrong_type(name, node, "text, or a list of texts"),
        }
    }

    /// A mapping from names to texts, in the order it is written.
    pub fn text_map(&self, name: &str) -> Option<Vec<(&'a Key, String, Range<usize>)>> {
        let node = self.node(name)?;
        let Value::Map(entries) = &node.value else {
            return self.wrong_type(name, node, "a mapping from names to texts");
        };
        let entry = |(key, node): &'a (Key, Node)| Some((key, self.spelling(name, node)?, node.span.clone()));
        // Not short-circuiting: each bad entry is reported.
        let entries: Vec<_> = entries.iter().map(entry).collect();
        entries.into_iter().collect()
    }

    /// A mapping with a table of its own.
    pub fn section(&self, name: &str, fields: &'static [Field]) -> Option<Section<'a>> {
        let node = self.node(name)?;
        Section::read(self.context, node, self.path_of(name), fields)
    }

    /// Text that is read further, as an address is; `wanted` says what it must be, as in `an address, as in …`.
    pub fn parsed<T: std::str::FromStr>(&self, name: &str, wanted: &str) -> Option<T> {
        let text = self.text(name)?;
        text.parse().ok().or_else(|| {
            let message = format!("`{name}` must be {wanted}, not `{text}`");
            self.report(self.problem(DiagnosticKind::InvalidValue, message).at(self.place(name)));
            None
        })
    }

    /// Reports that a field must be there, where it is not.
    pub fn require(&self, name: &str) {
        if self.node(name).is_none() {
            let problem = self.problem(DiagnosticKind::FieldRequired, format!("`{name}` must be set"));
            self.report(problem.at(self.head()));
        }
    }

    /// A list of mappings, each with the same table.
    pub fn sections(&self, name: &str, fields: &'static [Field]) -> Vec<Section<'a>> {
        let items = match self.node(name).map(|node| (node, &node.value)) {
            None => return Vec::new(),
            Some((_, Value::Seq(items))) => items,
            Some((node, _)) => return self.wrong_type(name, node, "a list of mappings").unwrap_or_default(),
        };
        let path = |at| format!("{}[{at}]", self.path_of(name));
        items.iter().enumerate().filter_map(|(at, item)| Section::read(self.context, item, path(at), fields)).collect()
    }

    /// A mapping from names to mappings, each with the same table.
    pub fn named_sections(&self, name: &str, fields: &'static [Field]) -> Vec<(&'a str, Section<'a>)> {
        let outer = self.node(name).and_then(|node| Section::open(self.context, node, self.path_of(name), &[]));
        let Some(outer) = outer else {
            return Vec::new();
        };
        let named = |(key, node): &'a (Key, Node)| {
            let path = format!("{}.{}", outer.path, key.text);
            Some((key.text.as_str(), Section::read(self.context, node, path, fields)?))
        };
        outer.node.entries().iter().filter_map(named).collect()
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Text, or a number or boolean as it is spelled in the file.
    fn spelling(&self, name: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::Str(text) => Some(text.clone()),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                Some(self.context.document.text_at(&node.span).to_owned())
            }
            _ => {
                let message = format!("a value of `{name}` must be text, not {}", node.value.type_name());
                self.report(self.problem(DiagnosticKind::WrongType, message).at(node.span.clone()));
                None
            }
        }
    }

    /// Reports that another type is wanted.
    pub fn wrong_type<T>(&self, name: &str, node: &Node, wanted: &str) -> Option<T> {
        let given = match &node.value {
            Value::Str(text) if text.chars().count() <= 40 => format!("`{text}`"),
            value => value.type_name().to_owned(),
        };
        let message = format!("`{name}` must be {wanted}, not {given}");
        self.report(self.problem(DiagnosticKind::WrongType, message).at(node.span.clone()));
        None
    }
}
