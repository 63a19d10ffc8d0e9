//! What is kept of an input: no secret, and no more than there is room for.
//!
//! A text that is too long is cut where the scan is settled, so that no half of a secret is kept because its other half
//! was cut off. What was left out or taken out is counted: such an input cannot show again what its hooks saw.

use gatehook_events::Input;
use gatehook_scan::{Carry, MARKER, redact_in_place};
use serde_json::{Map, Value};

/// The most that is kept of an input, in bytes of its JSON.
pub const MAX_INPUT: usize = 64 * 1024;

/// The most that is kept of a message, a reason, a hook's stderr, in bytes.
const MAX_TEXT: usize = 4096;

/// The most that is kept of a name, in bytes.
const MAX_LINE: usize = 256;

/// How long a value may be for its name to tell that it is a secret.
const NAMED: std::ops::RangeInclusive<usize> = 8..=4096;

/// How much of each text, in bytes, and of each list is kept; the first that is narrow enough.
const BOUNDS: [(usize, usize); 4] = [(usize::MAX, usize::MAX), (16 * 1024, 64), (2 * 1024, 32), (256, 16)];

/// Texts that go on in the next segment of a stream.
const GROWING: [&str; 2] = ["output_text", "output_thinking"];

/// Fields that let whoever knows them pass.
const PASSES: [&str; 1] = ["approval"];

/// What is kept of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// A JSON object.
    pub(crate) json: String,
    /// How many secrets were taken out.
    pub(crate) secrets: i64,
    /// Something was left out.
    pub(crate) cut: bool,
}

/// What is kept of an input.
pub(crate) fn input(input: &Input) -> Kept {
    let fields = match input.to_json() {
        Ok(Value::Object(fields)) => fields,
        // Nothing in an input has no JSON; if it should, nothing of it is kept.
        _ => return Kept { json: "{}".to_owned(), secrets: 0, cut: true },
    };
    let is_over = input.segment.is_none_or(|segment| segment.final_);
    let is_large = measure(&fields) > MAX_INPUT;
    let mut narrowest = (Map::new(), 0, true);
    for (text, list) in BOUNDS.into_iter().skip(usize::from(is_large)) {
        let mut keeping = Keeping { text, list, is_over, secrets: 0, cut: false };
        let kept = keeping.object(&fields, true);
        narrowest = (kept, keeping.secrets, keeping.cut);
        if measure(&narrowest.0) <= MAX_INPUT {
            break;
        }
    }
    let (mut kept, secrets, mut cut) = narrowest;
    while measure(&kept) > MAX_INPUT {
        let largest = kept.iter().max_by_key(|(_, value)| value.to_string().len()).map(|(name, _)| name.clone());
        largest.and_then(|name| kept.remove(&name));
        cut = true;
    }
    Kept { json: Value::Object(kept).to_string(), secrets, cut }
}

/// A text for people, without secrets.
pub(crate) fn text(text: &str) -> String {
    bounded(text, MAX_TEXT)
}

/// A name.
pub(crate) fn line(text: &str) -> String {
    bounded(text, MAX_LINE)
}

fn bounded(text: &str, bound: usize) -> String {
    let mut kept = settled(text, bound, true).to_owned();
    redact_in_place(&mut kept);
    kept
}

/// The beginning of a text up to where its rest changes nothing that is found in it.
fn settled(text: &str, bound: usize, is_over: bool) -> &str {
    if is_over && text.len() <= bound {
        return text;
    }
    let head = text.get(..text.floor_char_boundary(bound)).unwrap_or(text);
    head.get(..Carry::new().push(head, false).upto).unwrap_or_default()
}

fn measure(fields: &Map<String, Value>) -> usize {
    serde_json::to_string(fields).map_or(0, |json| json.len())
}

/// Copies values without what is not kept of them.
struct Keeping {
    /// The most of a text, in bytes.
    text: usize,
    /// The most entries of a list.
    list: usize,
    /// No further segment follows.
    is_over: bool,
    secrets: i64,
    cut: bool,
}

impl Keeping {
    fn object(&mut self, fields: &Map<String, Value>, is_input: bool) -> Map<String, Value> {
        let mut kept = Map::new();
        for (name, value) in fields.iter().take(self.list) {
            let mut key = self.string(None, name, true);
            // Two that are redacted as keys of one object must not become one entry.
            while kept.contains_key(&key) {
                key.push('_');
            }
            let value = match value {
                Value::String(text) if is_input && GROWING.contains(&name.as_str()) => {
                    Value::String(self.string(Some(name), text, self.is_over))
                }
                Value::Array(items) if is_input && name == "messages" => self.last(items),
                Value::String(_) if is_input && PASSES.contains(&name.as_str()) => {
                    self.secrets += 1;
                    Value::from(MARKER)
                }
                value => self.value(Some(name), value),
            };
            kept.insert(key, value);
        }
        self.cut |= fields.len() > self.list;
        kept
    }

    fn value(&mut self, name: Option<&str>, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.string(name, text, true)),
            Value::Array(items) => {
                self.cut |= items.len() > self.list;
                Value::Array(items.iter().take(self.list).map(|item| self.value(name, item)).collect())
            }
            Value::Object(fields) => Value::Object(self.object(fields, false)),
            other => other.clone(),
        }
    }

    /// Of a conversation its end is what was new.
    fn last(&mut self, items: &[Value]) -> Value {
        let first = items.len().saturating_sub(self.list);
        self.cut |= first > 0;
        Value::Array(items.iter().skip(first).map(|item| self.value(None, item)).collect())
    }

    /// A text without secrets.
    fn string(&mut self, name: Option<&str>, text: &str, is_over: bool) -> String {
        let head = settled(text, self.text, is_over);
        let mut kept = head.to_owned();
        let found = redact_in_place(&mut kept);
        self.secrets = self.secrets.saturating_add(i64::try_from(found).unwrap_or(i64::MAX));
        if let Some(clean) = name.filter(|_| found == 0).and_then(|name| named(name, &kept)) {
            self.secrets += 1;
            kept = clean;
        }
        let left = text.len() - head.len();
        if left > 0 {
            self.cut = true;
            kept.push_str(&format!("… [{left} bytes left out]"));
        }
        kept
    }
}

/// What is kept of a value that is a secret by its name alone, as in `"password": "…"`.
fn named(name: &str, value: &str) -> Option<String> {
    if !NAMED.contains(&value.len()) || value.contains(char::is_whitespace) {
        return None;
    }
    let mut named = format!("{name}={value}");
    if redact_in_place(&mut named) == 0 {
        return None;
    }
    let rest = named.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    Some(rest.unwrap_or(MARKER).to_owned())
}

#[cfg(test)]
mod tests;
