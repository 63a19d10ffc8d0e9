//! What one hook remembers: bounded in entries and bytes; what was not asked for longest goes first.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use gatehook_events::Message;
use serde_json::Value;

use super::digest::Digest;

/// A content, and what it stood in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(super) content: Digest,
    /// [`Digest::NONE`] where that has no part in the judgement.
    pub(super) surroundings: Digest,
}

impl std::hash::Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Half of a digest is as good as all of it for a place in a table.
        state.write_u64(self.content.0 as u64);
    }
}

/// What a hook said of a content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Judged {
    /// It let it pass as it was.
    Passed,
    /// It put this message in its place.
    Message(Arc<Message>),
    /// It put this tool result in its place.
    Response(Arc<Value>),
    /// What it said of each message of a block, where it rewrote any.
    Block(Arc<[Judged]>),
}

/// Half of the entries that are remembered. A full memory takes about 5 MiB for each hook, and what was rewritten.
const ENTRIES: usize = 32 * 1024;
/// Half of the bytes of rewritten contents that are remembered.
const BYTES: usize = 2 * 1024 * 1024;

/// Contents that were judged.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    halves: Mutex<Halves>,
}

/// What was asked for since the last turn, and before. A full young half becomes the old one, and the old one is gone.
#[derive(Debug, Default)]
struct Halves {
    young: Entries,
    old: Entries,
    /// About how many bytes the young half keeps of rewritten contents.
    bytes: usize,
}

type Entries = HashMap<Key, Judged, BuildHasherDefault<AsItIs>>;

impl Memory {
    /// What is known of these, in their order.
    pub(super) fn recall(&self, keys: impl Iterator<Item = Key>) -> Vec<Option<Judged>> {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        keys.map(|key| halves.recall(key)).collect()
    }

    /// Remembers these.
    pub(super) fn learn(&self, learned: Vec<(Key, Judged)>) {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        learned.into_iter().for_each(|(key, judged)| halves.insert(key, judged));
    }
}

impl Halves {
    fn recall(&mut self, key: Key) -> Option<Judged> {
        if let Some(judged) = self.young.get(&key) {
            return Some(judged.clone());
        }
        let judged = self.old.remove(&key)?;
        self.insert(key, judged.clone());
        Some(judged)
    }

    fn insert(&mut self, key: Key, judged: Judged) {
        let bytes = size(&judged);
        if bytes > BYTES {
            return;
        }
        if self.young.len() >= ENTRIES || self.bytes + bytes > BYTES {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        let before = self.young.insert(key, judged);
        self.bytes -= before.as_ref().map_or(0, size);
    }
}

/// About how many bytes are kept.
fn size(judged: &Judged) -> usize {
    match judged {
        Judged::Passed => 0,
        Judged::Message(message) => 256 + of_message(message),
        Judged::Response(value) => 32 + of_value(value),
        Judged::Block(block) => block.iter().map(|judged| 32 + size(judged)).sum(),
    }
}

fn of_message(message: &Message) -> usize {
    let texts = [&message.content, &message.thinking, &message.name, &message.tool_call_id];
    let of_texts: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
    let calls = message.tool_calls.iter().flatten();
    let of_calls: usize = calls.map(|call| 256 + call.function.arguments.len() + of_map(&call.extra)).sum();
    let images = message.images.iter().flatten();
    let of_images: usize = images.map(|image| 256 + image.data.as_ref().map_or(0, |data| data.len())).sum();
    of_texts + of_calls + of_images + of_map(&message.extra)
}

fn of_map(map: &serde_json::Map<String, Value>) -> usize {
    map.iter().map(|(key, value)| 64 + key.len() + of_value(value)).sum()
}

fn of_value(value: &Value) -> usize {
    match value {
        Value::String(text) => 32 + text.len(),
        Value::Array(items) => items.iter().map(|item| 32 + of_value(item)).sum(),
        Value::Object(map) => of_map(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
    }
}

/// Takes the one word that is hashed for the hash: a digest is as random as a hash can be.
#[derive(Debug, Default, Clone, Copy)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key { content: Digest(number as u128), surroundings: Digest::NONE }
    }

    fn rewritten(bytes: usize) -> Judged {
        Judged::Response(Arc::new("x".repeat(bytes).into()))
    }

    fn knows(memory: &Memory, number: usize) -> bool {
        memory.recall(std::iter::once(key(number))) != [None]
    }

    #[test]
    fn what_is_asked_for_stays_and_the_oldest_goes() {
        let memory = Memory::default();
        memory.learn(vec![(key(0), Judged::Passed), (key(1), Judged::Passed)]);
        for number in 2..ENTRIES + 10 {
            memory.learn(vec![(key(number), Judged::Passed)]);
        }
        assert!(knows(&memory, 0));
        for number in ENTRIES + 10..2 * ENTRIES + 10 {
            memory.learn(vec![(key(number), Judged::Passed)]);
        }
        assert_eq!((knows(&memory, 0), knows(&memory, 1)), (true, false));
        let halves = memory.halves.lock().unwrap();
        assert!(halves.young.len() <= ENTRIES && halves.old.len() <= ENTRIES);
    }

    #[test]
    fn rewritten_contents_are_bounded_in_bytes() {
        let memory = Memory::default();
        for number in 0..100 {
            memory.learn(vec![(key(number), rewritten(BYTES / 10))]);
        }
        let halves = memory.halves.lock().unwrap();
        let kept: usize = halves.young.values().chain(halves.old.values()).map(size).sum();
        assert!(kept <= 2 * BYTES, "{kept}");
    }

    #[test]
    fn what_alone_is_over_the_bound_is_not_remembered_and_takes_nothing_away() {
        let memory = Memory::default();
        memory.learn(vec![(key(0), Judged::Passed), (key(1), rewritten(BYTES))]);
        assert_eq!((knows(&memory, 0), knows(&memory, 1)), (true, false));
    }

    #[test]
    fn other_surroundings_are_another_key() {
        let memory = Memory::default();
        memory.learn(vec![(key(0), Judged::Passed)]);
        let elsewhere = Key { surroundings: Digest(7), ..key(0) };
        assert_eq!(memory.recall([elsewhere].into_iter()), [None]);
    }
}
