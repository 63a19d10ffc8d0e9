//! A tree and an input into text.

use std::borrow::Cow;

use gatehook_events::input::{FIELDS, Field};
use serde_json::{Map, Value};

use super::functions::{Datum, is_filled, text_of};
use super::parse::{Expression, ExpressionKind, Node};
use super::{MAX_RENDERED, Missing, TemplateError};

/// Nodes that are gone through for one text; a `range` within a `range` over a long list could take for ever.
const MAX_STEPS: usize = 1_000_000;

/// The text of these nodes.
pub(super) fn render(nodes: &[Node], input: &Value, missing: Missing) -> Result<String, TemplateError> {
    let mut renderer = Renderer { input, missing, text: String::new(), steps: 0 };
    renderer.nodes(nodes, &Some(Cow::Borrowed(input)))?;
    Ok(renderer.text)
}

struct Renderer<'v> {
    input: &'v Value,
    missing: Missing,
    text: String,
    steps: usize,
}

impl<'v> Renderer<'v> {
    fn nodes(&mut self, nodes: &[Node], dot: &Datum<'v>) -> Result<(), TemplateError> {
        nodes.iter().try_for_each(|node| self.node(node, dot))
    }

    fn node(&mut self, node: &Node, dot: &Datum<'v>) -> Result<(), TemplateError> {
        match node {
            Node::Text(text) => self.write(0, text),
            Node::Show(value) => {
                let text = text_of(&self.value(value, dot)?);
                self.write(value.at, &text)
            }
            Node::If { value, body, otherwise } => {
                let holds = is_filled(&self.value(value, dot)?);
                self.nodes(if holds { body } else { otherwise }, dot)
            }
            Node::With { value, body, otherwise } => {
                let inner = self.value(value, dot)?;
                if is_filled(&inner) { self.nodes(body, &inner) } else { self.nodes(otherwise, dot) }
            }
            Node::Range { value, body, otherwise } => {
                let list = self.value(value, dot)?;
                let items = elements(list)
                    .ok_or_else(|| TemplateError::new(value.at, "`range` goes over a list, a map or a whole number"))?;
                if items.is_empty() {
                    return self.nodes(otherwise, dot);
                }
                items.into_iter().try_for_each(|item| {
                    self.step(value.at)?;
                    self.nodes(body, &item)
                })
            }
        }
    }

    fn write(&mut self, at: usize, text: &str) -> Result<(), TemplateError> {
        self.step(at)?;
        if self.text.len() + text.len() > MAX_RENDERED {
            return Err(TemplateError::new(at, format!("the text is longer than {MAX_RENDERED} bytes")));
        }
        self.text.push_str(text);
        Ok(())
    }

    fn step(&mut self, at: usize) -> Result<(), TemplateError> {
        self.steps += 1;
        if self.steps > MAX_STEPS { Err(TemplateError::new(at, "it takes too many steps")) } else { Ok(()) }
    }

    fn value(&mut self, expression: &Expression, dot: &Datum<'v>) -> Result<Datum<'v>, TemplateError> {
        let at = expression.at;
        self.step(at)?;
        match &expression.kind {
            ExpressionKind::Literal(value) => Ok(Some(Cow::Owned(value.clone()))),
            ExpressionKind::Dot(names) => self.path(at, dot.clone(), names),
            ExpressionKind::Root(names) => self.path(at, Some(Cow::Borrowed(self.input)), names),
            ExpressionKind::Within(value, names) => {
                let value = self.value(value, dot)?;
                self.path(at, value, names)
            }
            ExpressionKind::Call(function, arguments) => {
                let values: Result<Vec<_>, _> = arguments.iter().map(|argument| self.value(argument, dot)).collect();
                let value = (function.run)(&values?).map_err(|message| TemplateError::new(at, message))?;
                match (&value, self.missing) {
                    (None, Missing::Error) => Err(TemplateError::new(at, "there is no such key")),
                    _ => Ok(value),
                }
            }
        }
    }

    fn path(&self, at: usize, from: Datum<'v>, names: &[String]) -> Result<Datum<'v>, TemplateError> {
        names.iter().try_fold(from, |value, name| self.field(at, value, name))
    }

    fn field(&self, at: usize, value: Datum<'v>, name: &str) -> Result<Datum<'v>, TemplateError> {
        let Some(value) = value else { return Ok(None) };
        let is_input = matches!(value, Cow::Borrowed(value) if std::ptr::eq(value, self.input));
        if is_input {
            return field_of_input(self.input, name)
                .ok_or_else(|| TemplateError::new(at, format!("the input has no field `{name}`")));
        }
        let key = match &*value {
            Value::Object(fields) => key_of(fields, name),
            Value::Null => None,
            _ => return Err(TemplateError::new(at, format!("nothing can be named `{name}` in this value"))),
        };
        match (key.and_then(|key| super::functions::member(value, &key)), self.missing) {
            (None, Missing::Error) => Err(TemplateError::new(at, format!("there is no key `{name}`"))),
            (found, _) => Ok(found),
        }
    }
}

/// A field of the payload, by its own name or docker-agent's; empty where it is not filled.
fn field_of_input<'v>(input: &'v Value, name: &str) -> Option<Datum<'v>> {
    let known = FIELDS.iter().find(|field| field.name == name || go_name(field.name) == name);
    let key = known.map_or(name, |field| field.name);
    match (input.get(key), known) {
        (Some(value), _) => Some(Some(Cow::Borrowed(value))),
        (None, Some(field)) => Some(empty(field).map(Cow::Owned)),
        (None, None) => None,
    }
}

/// Whether a payload may have a field of this name.
pub(super) fn is_field(name: &str) -> bool {
    FIELDS.iter().any(|field| field.name == name || go_name(field.name) == name)
}

/// What a field is that is not filled. A cost that nobody knows is not 0.
fn empty(field: &Field) -> Option<Value> {
    match field.json {
        "string" => Some("".into()),
        "integer" => Some(0.into()),
        "boolean" => Some(false.into()),
        "array" => Some(Value::Array(Vec::new())),
        "object" => Some(Value::Object(Map::new())),
        _ => None,
    }
}

/// The key of that name, as it is or as docker-agent names it.
fn key_of(fields: &Map<String, Value>, name: &str) -> Option<String> {
    if fields.contains_key(name) {
        return Some(name.to_owned());
    }
    fields.keys().find(|key| go_name(key) == name).cloned()
}

/// Parts of names that Go writes in capitals.
const INITIALS: &[(&str, &str)] = &[("id", "ID"), ("url", "URL"), ("api", "API")];

/// `tool_use_id` as `ToolUseID`.
fn go_name(name: &str) -> String {
    let part = |part: &str| match INITIALS.iter().find(|(word, _)| *word == part) {
        Some((_, capitals)) => (*capitals).to_owned(),
        None => {
            let mut chars = part.chars();
            chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
        }
    };
    name.split('_').map(part).collect()
}

/// What a `range` goes over.
fn elements<'v>(value: Datum<'v>) -> Option<Vec<Datum<'v>>> {
    let Some(value) = value else { return Some(Vec::new()) };
    match value {
        Cow::Borrowed(Value::Array(items)) => Some(items.iter().map(|item| Some(Cow::Borrowed(item))).collect()),
        Cow::Borrowed(Value::Object(fields)) => Some(fields.values().map(|value| Some(Cow::Borrowed(value))).collect()),
        Cow::Owned(Value::Array(items)) => Some(items.into_iter().map(|item| Some(Cow::Owned(item))).collect()),
        Cow::Owned(Value::Object(fields)) => Some(fields.into_values().map(|value| Some(Cow::Owned(value))).collect()),
        other => match &*other {
            Value::Null => Some(Vec::new()),
            Value::Number(number) => {
                let count = number.as_i64()?.clamp(0, i64::try_from(MAX_STEPS).ok()?);
                Some((0..count).map(|number| Some(Cow::Owned(number.into()))).collect())
            }
            _ => None,
        },
    }
}
