//! JSON that keeps its bytes: a table of nodes over the text, and edits of it.

mod edit;
mod fold;
mod reader;
#[cfg(test)]
mod tests;
mod unescape;
mod weight;

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Map, Number, Value};

pub(crate) use edit::Edits;
pub(crate) use fold::mistaken;
pub(crate) use reader::{Kind, NO_CHARACTER, plain_run};
use reader::{Node, scan};
pub(crate) use unescape::quote;
pub use weight::weight;

use crate::error::ReadError;

/// A node of a [`Document`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct At(u32);

/// One JSON value, its bytes and its nodes. No object in it has a key twice.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    bytes: Bytes,
    nodes: Vec<Node>,
}

impl Document {
    /// The value as a whole.
    pub(crate) const ROOT: At = At(0);

    /// Reads `bytes`, which must hold one value and no key twice.
    pub(crate) fn read(bytes: Bytes) -> Result<Self, ReadError> {
        let nodes = scan(&bytes)?;
        let document = Self { bytes, nodes };
        document.refuse_double_keys()?;
        Ok(document)
    }

    /// The bytes as they came.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    fn node(&self, at: At) -> Option<&Node> {
        self.nodes.get(at.0 as usize)
    }

    pub(crate) fn kind(&self, at: At) -> Kind {
        self.node(at).map_or(Kind::Null, |node| node.kind)
    }

    /// Where its bytes stand.
    pub(crate) fn range(&self, at: At) -> (usize, usize) {
        self.node(at).map_or((0, 0), |node| (node.start as usize, node.end as usize))
    }

    /// Its bytes.
    pub(crate) fn raw(&self, at: At) -> &str {
        let (start, end) = self.range(at);
        self.bytes.get(start..end).and_then(|raw| std::str::from_utf8(raw).ok()).unwrap_or_default()
    }

    /// The same, without a copy.
    pub(crate) fn slice(&self, at: At) -> Bytes {
        let (start, end) = self.range(at);
        self.bytes.slice(start..end)
    }

    /// The text of a string.
    pub(crate) fn text(&self, at: At) -> Option<Cow<'_, str>> {
        let node = self.node(at).filter(|node| node.kind == Kind::String)?;
        let inside = self.raw(at).get(1..(node.end - node.start) as usize - 1)?;
        Some(if node.escaped { unescape::unescape(inside) } else { Cow::Borrowed(inside) })
    }

    /// Whether a key or a string anywhere in it says `text`, which is ASCII, however it is written.
    pub(crate) fn has_string(&self, text: &str) -> bool {
        // An escape takes up to six bytes for a character.
        let (plain, escaped) = (text.len()..=text.len(), text.len() + 1..=6 * text.len());
        let says = |node: &Node, at: At| {
            let lengths = if node.escaped { &escaped } else { &plain };
            lengths.contains(&((node.end - node.start) as usize - 2)) && *self.key(at) == *text.as_bytes()
        };
        self.nodes.iter().zip(0..).any(|(node, at)| node.kind == Kind::String && says(node, At(at)))
    }

    /// The elements of an array; nothing for any other value.
    pub(crate) fn elements(&self, array: At) -> impl Iterator<Item = At> + '_ {
        self.children(array, Kind::Array)
    }

    /// Keys and values of an object; nothing for any other value.
    pub(crate) fn members(&self, object: At) -> impl Iterator<Item = (At, At)> + '_ {
        let mut children = self.children(object, Kind::Object);
        std::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    fn children(&self, container: At, kind: Kind) -> impl Iterator<Item = At> + '_ {
        let end = self.node(container).filter(|node| node.kind == kind).map_or(0, |node| node.next);
        let mut next = container.0 + 1;
        std::iter::from_fn(move || {
            let child = At(next);
            next = if next < end { self.node(child)?.next } else { return None };
            Some(child)
        })
    }

    /// The value under `key`.
    pub(crate) fn get(&self, object: At, key: &str) -> Option<At> {
        self.members(object).find(|(name, _)| *self.key(*name) == *key.as_bytes()).map(|(_, value)| value)
    }

    /// The bytes of a key's text: no UTF-8 is checked anew to compare two of them.
    pub(crate) fn key(&self, at: At) -> Cow<'_, [u8]> {
        match self.node(at) {
            Some(node) if !node.escaped => {
                let inside = self.bytes.get(node.start as usize + 1..node.end as usize - 1);
                Cow::Borrowed(inside.unwrap_or_default())
            }
            _ => Cow::Owned(self.text(at).unwrap_or_default().into_owned().into_bytes()),
        }
    }

    /// The value under `key` unless it is `null`.
    pub(crate) fn some(&self, object: At, key: &str) -> Option<At> {
        self.get(object, key).filter(|at| self.kind(*at) != Kind::Null)
    }

    /// The text under `key`, where it is a string.
    pub(crate) fn string(&self, object: At, key: &str) -> Option<Cow<'_, str>> {
        self.text(self.get(object, key)?)
    }

    /// A value as serde_json holds it. A number out of its range is shown as the text it is spelled with.
    pub(crate) fn value(&self, at: At) -> Value {
        match self.kind(at) {
            Kind::Null => Value::Null,
            Kind::True => Value::Bool(true),
            Kind::False => Value::Bool(false),
            Kind::Number => match self.raw(at).parse::<Number>() {
                Ok(number) => Value::Number(number),
                Err(_) => Value::String(self.raw(at).to_owned()),
            },
            Kind::String => Value::String(self.text(at).unwrap_or_default().into_owned()),
            Kind::Array => self.elements(at).map(|element| self.value(element)).collect(),
            Kind::Object => Value::Object(self.map(at)),
        }
    }

    /// An object as serde_json holds it.
    pub(crate) fn map(&self, object: At) -> Map<String, Value> {
        self.members(object)
            .map(|(key, value)| (self.text(key).unwrap_or_default().into_owned(), self.value(value)))
            .collect()
    }

    /// The way to a node, as in `messages[2].content`.
    pub(crate) fn place(&self, target: At) -> String {
        let mut place = String::new();
        let mut at = Self::ROOT;
        while at != target {
            let within = |child: At| self.node(child).is_some_and(|node| child <= target && target.0 < node.next);
            let step = match self.kind(at) {
                Kind::Array => self.elements(at).enumerate().find(|(_, child)| within(*child)).map(|(index, child)| {
                    place.push_str(&format!("[{index}]"));
                    child
                }),
                _ => self.members(at).find(|(key, value)| *key == target || within(*value)).map(|(key, value)| {
                    place.push_str(if place.is_empty() { "" } else { "." });
                    place.push_str(&self.text(key).unwrap_or_default());
                    if key == target { key } else { value }
                }),
            };
            match step {
                Some(child) => at = child,
                None => break,
            }
        }
        place
    }

    /// Two readers could take this for two things.
    pub(crate) fn ambiguous(&self, at: At, what: impl Into<String>) -> ReadError {
        ReadError::Ambiguous { place: self.place(at), what: what.into() }
    }

    /// This has a type that the route does not know.
    pub(crate) fn shape(&self, at: At, what: impl Into<String>) -> ReadError {
        ReadError::Shape { place: self.place(at), what: what.into() }
    }

    fn refuse_double_keys(&self) -> Result<(), ReadError> {
        let objects = self.nodes.iter().enumerate().filter(|(_, node)| node.kind == Kind::Object);
        let objects = objects.map(|(index, _)| At(index as u32)).filter(|object| !self.keys_differ(*object));
        for object in objects {
            let mut keys: Vec<_> = self.members(object).map(|(key, _)| (self.key(key), key)).collect();
            if let Some(double) = double(&mut keys) {
                return Err(self.ambiguous(double, "the key stands twice"));
            }
        }
        Ok(())
    }

    /// Whether the few plain keys of an object differ at first sight, as nearly all do.
    fn keys_differ(&self, object: At) -> bool {
        const FEW: usize = 16;
        let mut marks = [0; FEW];
        for (count, (key, _)) in self.members(object).enumerate() {
            let Some(node) = self.node(key).filter(|node| !node.escaped) else { return false };
            let inside = self.bytes.get(node.start as usize + 1..node.end as usize - 1).unwrap_or_default();
            let (mark, earlier) = (mark(inside), marks.get(..count).unwrap_or_default());
            if earlier.contains(&mark) {
                return false;
            }
            match marks.get_mut(count) {
                Some(place) => *place = mark,
                None => return false,
            }
        }
        true
    }
}

/// The same for equal keys, and seldom for others.
fn mark(key: &[u8]) -> u32 {
    let byte = |at: usize| key.get(at).copied().unwrap_or_default();
    u32::from_le_bytes([key.len() as u8, byte(0), byte(key.len() / 2), byte(key.len().wrapping_sub(1))])
}

/// A key that stands twice. Small objects are compared pair by pair, large ones are sorted.
fn double(keys: &mut [(Cow<'_, [u8]>, At)]) -> Option<At> {
    if keys.len() <= 16 {
        return keys
            .iter()
            .enumerate()
            .find_map(|(index, (key, at))| keys.iter().take(index).any(|(earlier, _)| earlier == key).then_some(*at));
    }
    keys.sort_unstable();
    keys.windows(2).find_map(|pair| match pair {
        [(one, _), (two, at)] if one == two => Some(*at),
        _ => None,
    })
}
