//! The contract that the configuration spells out: a body with fields of the event in it, and rules on the reply.
//!
//! A denial goes before a failure: where one rule blocks, it does not matter that another cannot be asked.

use gatehook_events::{FailureKind, Output};
use regex::Regex;
use serde_json::{Map, Value};

use super::body::Body;
use super::{Asked, texts, unreadable, value};
use crate::definition::{Mapping, ReplyRules, RewriteFrom, Rule, Test};
use crate::handler::{DefinitionError, HandlerError};
use crate::matcher::anchored;

/// A mapping, read.
pub(super) struct Mapped {
    body: Body,
    block_status: Vec<u16>,
    block_when: Vec<Check>,
    ask_when: Vec<Check>,
    allow_when: Vec<Check>,
    reason: Option<String>,
    rewrite: Option<RewriteFrom>,
}

/// A rule, read.
struct Check {
    rule: Rule,
    pattern: Option<Regex>,
}

/// What is wrong with a body's templates.
pub(crate) fn check_body(body: &Value) -> Result<(), String> {
    Body::parse(body).map(drop)
}

/// What is wrong with the place of a value in a reply.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    match path.starts_with('/') {
        true => Ok(()),
        false => Err(format!("`{path}` is no place: write it as in `/result/flagged`")),
    }
}

impl Mapped {
    pub(super) fn of(mapping: Option<&Mapping>) -> Result<Self, DefinitionError> {
        let wrong = |field, message: String| DefinitionError { field, message, help: None };
        let Mapping { body, reply } =
            mapping.ok_or_else(|| wrong("request", "a mapped contract needs `request` and `reply`".to_owned()))?;
        let ReplyRules { block_status, block_when, ask_when, allow_when, reason, rewrite } = reply.clone();
        let checks = |rules: Vec<Rule>| {
            rules.into_iter().map(Check::of).collect::<Result<_, _>>().map_err(|message| wrong("reply", message))
        };
        Ok(Self {
            body: Body::parse(body).map_err(|message| wrong("request", message))?,
            block_status,
            block_when: checks(block_when)?,
            ask_when: checks(ask_when)?,
            allow_when: checks(allow_when)?,
            reason,
            rewrite,
        })
    }

    pub(super) fn question(&self, asked: &Asked<'_>) -> Result<Value, HandlerError> {
        let failed = |message: String| HandlerError::new(FailureKind::HandlerError, message);
        let fields = asked.input.to_json().map_err(|error| failed(format!("the input has no JSON: {error}")))?;
        let mut fields = if let Value::Object(fields) = fields { fields } else { Map::new() };
        fields.insert("hook_event_name".to_owned(), asked.event.public_name().into());
        fields.insert("text".to_owned(), asked.texts.joined().into());
        let texts = asked.texts.judged.iter().map(|text| Value::from(&*text.text));
        fields.insert("texts".to_owned(), texts.collect());
        let body = self.body.render(&Value::Object(fields));
        body.map_err(|error| failed(format!("its request cannot be made: {error}")))
    }

    /// Whether a status alone blocks.
    pub(super) fn blocks_by(&self, status: u16) -> bool {
        self.block_status.contains(&status)
    }

    /// The denial of a status that blocks; the body may say why.
    pub(super) fn blocked(&self, asked: &Asked<'_>, body: &[u8]) -> Output {
        self.deny(asked, &value(body).unwrap_or_default())
    }

    pub(super) fn answer(&self, asked: &Asked<'_>, reply: &Value) -> Result<Output, HandlerError> {
        if any(&self.block_when, reply)? {
            return Ok(self.deny(asked, reply));
        }
        if any(&self.ask_when, reply)? {
            return Ok(asked.ask(self.reason(reply).unwrap_or_default()));
        }
        if !self.allow_when.is_empty() && !any(&self.allow_when, reply)? {
            return Err(unreadable("no rule says what its reply means"));
        }
        self.rewritten(asked, reply)
    }

    fn deny(&self, asked: &Asked<'_>, reply: &Value) -> Output {
        asked.deny(self.reason(reply), "")
    }

    fn reason<'r>(&self, reply: &'r Value) -> Option<&'r str> {
        let found = select(reply, self.reason.as_deref()?);
        found.into_iter().find_map(Value::as_str).filter(|reason| !reason.is_empty())
    }

    fn rewritten(&self, asked: &Asked<'_>, reply: &Value) -> Result<Output, HandlerError> {
        let Some(from) = &self.rewrite else { return Ok(asked.allow()) };
        let (RewriteFrom::Text(path) | RewriteFrom::Texts(path)) = from;
        let Some(new) = select(reply, path).into_iter().find(|new| !new.is_null()) else { return Ok(asked.allow()) };
        match (from, new) {
            (RewriteFrom::Texts(_), new) => asked.texts.rewrite(&texts(new, "rewrite")?),
            (_, Value::String(new)) if *new == asked.texts.joined() => Ok(asked.allow()),
            (_, Value::String(new)) => asked.texts.rewrite(&asked.texts.parted(new)?),
            _ => Err(unreadable("the rewritten text of its reply is no text")),
        }
    }
}

/// Whether one of them holds. None holds, and one cannot be asked: nobody knows.
fn any(checks: &[Check], reply: &Value) -> Result<bool, HandlerError> {
    let mut unknown = None;
    for check in checks {
        match check.holds(reply) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => unknown = unknown.or(Some(error)),
        }
    }
    unknown.map_or(Ok(false), Err)
}

impl Check {
    fn of(rule: Rule) -> Result<Self, String> {
        check_path(&rule.path)?;
        let pattern = match &rule.test {
            Test::Matches(pattern) => {
                let anchored = anchored(pattern, None).map_err(|error| error.message)?;
                Some(Regex::new(&anchored).map_err(|error| error.to_string())?)
            }
            _ => None,
        };
        Ok(Self { rule, pattern })
    }

    fn holds(&self, reply: &Value) -> Result<bool, HandlerError> {
        let found: Vec<&Value> = select(reply, &self.rule.path).into_iter().filter(|value| !value.is_null()).collect();
        if let Test::Exists(wanted) = self.rule.test {
            return Ok(found.is_empty() != wanted);
        }
        if found.is_empty() && !self.rule.optional {
            return Err(unreadable(&format!("its reply has nothing at `{}`", self.rule.path)));
        }
        found.into_iter().try_fold(false, |holds, value| Ok(holds | self.fits(value)?))
    }

    fn fits(&self, value: &Value) -> Result<bool, HandlerError> {
        let wrong = || unreadable(&format!("its reply has another type of value at `{}`", self.rule.path));
        match (&self.rule.test, value) {
            (Test::Is(wanted), value) => same(wanted, value).ok_or_else(wrong),
            (Test::In(wanted), value) => {
                let known: Vec<bool> = wanted.iter().filter_map(|wanted| same(wanted, value)).collect();
                if known.is_empty() { Err(wrong()) } else { Ok(known.contains(&true)) }
            }
            (Test::AtLeast(least), Value::Number(number)) => number.as_f64().map(|it| it >= *least).ok_or_else(wrong),
            (Test::Matches(_), Value::String(text)) => {
                Ok(self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(text)))
            }
            _ => Err(wrong()),
        }
    }
}

/// Whether two values are the same; `None` where they are not of one type.
fn same(wanted: &Value, value: &Value) -> Option<bool> {
    match (wanted, value) {
        (Value::Bool(wanted), Value::Bool(value)) => Some(wanted == value),
        (Value::String(wanted), Value::String(value)) => Some(wanted == value),
        (Value::Number(wanted), Value::Number(value)) => Some(wanted.as_f64() == value.as_f64()),
        _ => None,
    }
}

/// The values at a place; `*` is every item of a list.
fn select<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    let mut found = vec![value];
    for step in path.split('/').skip(1) {
        let key = step.replace("~1", "/").replace("~0", "~");
        found = match step {
            "*" => found.into_iter().filter_map(Value::as_array).flatten().collect(),
            _ => found.into_iter().filter_map(|value| child(value, &key)).collect(),
        };
    }
    found
}

fn child<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    }
}
