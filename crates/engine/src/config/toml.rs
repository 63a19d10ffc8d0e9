//! TOML into a [`Node`]. Tables come in the order they are written.

use std::ops::Range;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use super::diagnostic::{Diagnostic, DiagnosticKind, MAX_PROBLEMS};
use super::document::{Build, Key, Node, Read, Value};

/// Reads a text.
pub(crate) fn read(text: &str) -> Result<Node, Vec<Diagnostic>> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors.iter().take(MAX_PROBLEMS).map(|error| problem(error, text, root.get_ref())).collect());
    }
    let mut build = Build::default();
    let root = table(root.get_ref(), 0..text.len(), 1, &mut build);
    build.finish(root)
}

fn table(table: &DeTable<'_>, span: Range<usize>, depth: usize, build: &mut Build) -> Read<Node> {
    build.take(1, depth, &span)?;
    let mut entries = Vec::with_capacity(table.len());
    for (key, item) in table {
        let key = Key { text: key.get_ref().to_string(), span: key.span() };
        entries.push((key, value(item, depth + 1, build)?));
    }
    // The table is sorted by name; a file is read as it is written.
    entries.sort_by_key(|(key, _)| key.span.start);
    Ok(Node::new(span, Value::Map(entries)))
}

fn value(item: &Spanned<DeValue<'_>>, depth: usize, build: &mut Build) -> Read<Node> {
    let span = item.span();
    if let DeValue::Table(inner) = item.get_ref() {
        return table(inner, span, depth, build);
    }
    build.take(1, depth, &span)?;
    let value = match item.get_ref() {
        DeValue::String(text) => Value::Str(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Int(number),
            Err(_) => return Err(Box::new(syntax("this number does not fit into 64 bits", span))),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => Value::Float(number),
            Err(_) => return Err(Box::new(syntax("this is no number", span))),
        },
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(date) => Value::Str(date.to_string()),
        DeValue::Array(items) => {
            let items: Result<_, _> = items.iter().map(|item| self::value(item, depth + 1, build)).collect();
            Value::Seq(items?)
        }
        DeValue::Table(_) => Value::Null,
    };
    Ok(Node::new(span, value))
}

fn problem(error: &::toml::de::Error, text: &str, root: &DeTable<'_>) -> Diagnostic {
    let span = error.span().unwrap_or_default();
    if error.message() != "duplicate key" {
        return syntax(error.message(), span);
    }
    let name = text.get(span.clone()).unwrap_or_default();
    let problem = Diagnostic::new(DiagnosticKind::DuplicateKey, "", format!("`{name}` stands twice"));
    let problem = problem.at(span.clone()).help("keep one of them");
    // The parser does not say where the first one is. The tree does, unless there are several of that name.
    let mut others = Vec::new();
    keys_named(root, name, &mut others);
    others.retain(|other| other.start < span.start);
    match others.as_slice() {
        [first] => problem.see(first.clone(), "first here"),
        _ => problem,
    }
}

fn keys_named(table: &DeTable<'_>, name: &str, found: &mut Vec<Range<usize>>) {
    for (key, item) in table {
        if key.get_ref() == name {
            found.push(key.span());
        }
        match item.get_ref() {
            DeValue::Table(inner) => keys_named(inner, name, found),
            DeValue::Array(items) => {
                let tables = items.iter().filter_map(|item| item.get_ref().as_table());
                tables.for_each(|inner| keys_named(inner, name, found));
            }
            _ => {}
        }
    }
}

fn syntax(message: &str, span: Range<usize>) -> Diagnostic {
    Diagnostic::new(DiagnosticKind::Syntax, "", message).at(span)
}
