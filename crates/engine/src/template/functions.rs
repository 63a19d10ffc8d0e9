//! The functions of templates, and how values are written, compared and measured.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::RangeInclusive;

use serde_json::{Number, Value};

/// A value; `None` is what a map did not have.
pub(super) type Datum<'v> = Option<Cow<'v, Value>>;

type Run = for<'a, 'v> fn(&'a [Datum<'v>]) -> Result<Datum<'v>, String>;

/// A row of [`FUNCTIONS`].
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) name: &'static str,
    /// How many arguments it takes.
    pub(super) arguments: RangeInclusive<usize>,
    pub(super) run: Run,
}

const MANY: usize = 64;

const FUNCTIONS: &[(&str, RangeInclusive<usize>, Run)] = &[
    ("toJSON", 1..=1, to_json),
    ("truncate", 2..=2, truncate),
    ("default", 2..=2, default),
    ("printf", 1..=MANY, printf),
    ("print", 0..=MANY, print),
    ("len", 1..=1, len),
    ("index", 1..=MANY, index),
    ("eq", 2..=MANY, eq),
    ("ne", 2..=2, |arguments| Ok(truth(!equal(argument(arguments, 0), argument(arguments, 1))))),
    ("lt", 2..=2, |arguments| ordered(arguments, Ordering::is_lt)),
    ("le", 2..=2, |arguments| ordered(arguments, Ordering::is_le)),
    ("gt", 2..=2, |arguments| ordered(arguments, Ordering::is_gt)),
    ("ge", 2..=2, |arguments| ordered(arguments, Ordering::is_ge)),
    ("and", 1..=MANY, |arguments| Ok(first_or_last(arguments, |value| !is_filled(value)))),
    ("or", 1..=MANY, |arguments| Ok(first_or_last(arguments, is_filled))),
    ("not", 1..=1, |arguments| Ok(truth(!arguments.iter().any(is_filled)))),
];

/// The function of this name.
pub(super) fn named(name: &str) -> Option<Function> {
    let row = FUNCTIONS.iter().find(|(known, ..)| *known == name);
    row.map(|(name, arguments, run)| Function { name, arguments: arguments.clone(), run: *run })
}

impl Function {
    /// As in `2 arguments`.
    pub(super) fn takes(&self) -> String {
        match (*self.arguments.start(), *self.arguments.end()) {
            (1, 1) => "1 argument".to_owned(),
            (least, most) if least == most => format!("{least} arguments"),
            (least, most) => format!("{least} to {most} arguments"),
        }
    }
}

fn argument<'a, 'v>(arguments: &'a [Datum<'v>], place: usize) -> Option<&'a Value> {
    arguments.get(place)?.as_deref()
}

fn owned<'v>(value: impl Into<Value>) -> Datum<'v> {
    Some(Cow::Owned(value.into()))
}

fn truth<'v>(is: bool) -> Datum<'v> {
    owned(is)
}

fn to_json<'v>(arguments: &[Datum<'v>]) -> Result<Datum<'v>, String> {
    Ok(owned(argument(arguments, 0).unwrap_or(&Value::Null).to_string()))
}

/// `truncate N TEXT`: at most N bytes of it, and `…` where there is more; 0 and less leave it as it is.
fn truncate<'v>(arguments: &[Datum<'v>]) -> Result<Datum<'v>, String> {
    let length = argument(arguments, 0).and_then(Value::as_i64);
    let length = length.ok_or("`truncate` takes a whole number and a text")?;
    let text = text_of(arguments.get(1).unwrap_or(&None));
    let length = usize::try_from(length).unwrap_or(0);
    if length == 0 || text.len() <= length {
        return Ok(owned(text));
    }
    let cut = text.get(..text.floor_char_boundary(length)).unwrap_or_default();
    Ok(owned(format!("{cut}…")))
}

/// `default FALLBACK VALUE`.
fn default<'v>(arguments: &[Datum<'v>]) -> Result<Datum<'v>, String> {
    Ok(first_or_last(&arguments.iter().rev().cloned().collect::<Vec<_>>(), is_filled))
}

fn first_or_last<'v>(arguments: &[Datum<'v>], wanted: impl Fn(&Datum<'v>) -> bool) -> Datum<'v> {
    arguments.iter().find(|value| wanted(value)).or(arguments.last()).cloned().flatten()
}

fn printf<'v>(arguments: &[Datum<'v>]) -> Result<Datum<'v>, String> {
    let (format, values) = arguments.split_first().ok_or("`printf` takes a format")?;
    let format = text_of(format);
    let (mut written, mut values) = (String::with_capacity(format.len()), values.iter());
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            written.push(char);
            continue;
        }
        let verb = chars.next();
        if verb == Some('%') {
            written.push('%');
            continue;
        }
        let value = values.next().ok_or("`printf` has fewer values than its format")?;
        match verb {
            Some('s' | 'v') => written.push_str(&text_of(value)),
            Some('q') => written.push_str(&Value::from(text_of(value)).to_string()),
            Some('d') => match value.as_deref() {
                Some(Value::Number(number)) if !number.is_f64() => written.push_str(&number.to_string()),
                _ => return Err("`%d` wants a whole number".to_owned()),
            },
            _ => return Err("`printf` knows %s, %v, %d, %q and %%".to_owned()),
        }
    }
    match values.next() {
        None => Ok(owned(written)),
        Some(_) => Err("`printf` has more values than its format".to_owned()),
    }
}

fn print<'v>(arguments: &[Datum<'v>]) -> Result<Datum<'v>, String> {
    Ok(owned(arguments.iter().map(text_of).collect::<String>()))
}

fn len<'v>(arguments: &[Datum<'v>]) -> Result<Datum<'v>, String> {
    match argument(arguments, 0) {
        Some(Value::String(text)) => Ok(owned(text.len())),
        Some(Value::Array(items)) => Ok(owned(items.len())),
        Some(Value::Object(fields)) => Ok(owned(fields.len())),
        _ => Err("`len` wants a text, a list or a map".to_owned()),
    }
}

/// `index VALUE KEY…`.
fn index<'v>(arguments: &[Datum<'v>]) -> Result<Datum<'v>, String> {
    let (value, keys) = arguments.split_first().ok_or("`index` takes a value")?;
    let mut value = value.clone();
    for key in keys {
        value = match (value.as_deref(), key.as_deref()) {
            (None, _) => return Ok(None),
            (Some(Value::Object(_)), Some(Value::String(key))) => value.and_then(|value| member(value, key)),
            (Some(Value::Array(items)), Some(Value::Number(place))) => {
                let item = place.as_u64().and_then(|place| items.get(usize::try_from(place).ok()?));
                Some(Cow::Owned(item.ok_or("`index` is out of the list")?.clone()))
            }
            _ => return Err("`index` wants a map and a text, or a list and a number".to_owned()),
        };
    }
    Ok(value)
}

/// What a map has under a key.
pub(super) fn member<'v>(value: Cow<'v, Value>, key: &str) -> Datum<'v> {
    match value {
        Cow::Borrowed(value) => value.get(key).map(Cow::Borrowed),
        Cow::Owned(Value::Object(mut fields)) => fields.remove(key).map(Cow::Owned),
        Cow::Owned(_) => None,
    }
}

/// `eq A B C…`: A is one of the others.
fn eq<'v>(arguments: &[Datum<'v>]) -> Result<Datum<'v>, String> {
    let first = argument(arguments, 0);
    Ok(truth(arguments.iter().skip(1).any(|other| equal(first, other.as_deref()))))
}

fn equal(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a.unwrap_or(&Value::Null), b.unwrap_or(&Value::Null)) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_some_and(Ordering::is_eq),
        (a, b) => a == b,
    }
}

fn ordered<'v>(arguments: &[Datum<'v>], holds: fn(Ordering) -> bool) -> Result<Datum<'v>, String> {
    let order = match (argument(arguments, 0), argument(arguments, 1)) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => compare_numbers(a, b),
        (Some(Value::String(a)), Some(Value::String(b))) => Some(a.cmp(b)),
        _ => None,
    };
    order.map(|order| truth(holds(order))).ok_or_else(|| "two numbers or two texts are compared".to_owned())
}

fn compare_numbers(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// What an `if` takes for true: neither missing nor empty, 0 or `false`.
pub(super) fn is_filled(value: &Datum<'_>) -> bool {
    match value.as_deref() {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is)) => *is,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
    }
}

/// A value as it is written: texts as they are, maps and lists as Go writes them.
pub(super) fn text_of(value: &Datum<'_>) -> String {
    let mut text = String::new();
    match value.as_deref() {
        None | Some(Value::Null) => text.push_str("<no value>"),
        Some(value) => write(value, &mut text),
    }
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::String(string) => text.push_str(string),
        Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                text.push_str(if place > 0 { " " } else { "" });
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push_str("map[");
            for (place, (key, value)) in fields.iter().enumerate() {
                text.push_str(if place > 0 { " " } else { "" });
                text.push_str(key);
                text.push(':');
                write(value, text);
            }
            text.push(']');
        }
    }
}
