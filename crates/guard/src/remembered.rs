//! What was found out once and need not be again: bounded, the least used goes first.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

/// The content that something was found out about.
pub(crate) type Key = [u8; 32];

/// SHA-256 over all parts, each with its length.
pub(crate) fn key_of<'p>(parts: impl IntoIterator<Item = &'p str>) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// Values by content. Two generations: what is used moves into the young one; when that is full, it becomes the old
/// one, and what nobody has used since goes.
#[derive(Debug)]
pub(crate) struct Remembered<V> {
    generations: Mutex<Generations<V>>,
    /// Entries of one generation, and bytes of their values.
    bounds: (usize, usize),
}

#[derive(Debug)]
struct Generations<V> {
    young: HashMap<Key, (V, usize)>,
    old: HashMap<Key, (V, usize)>,
    bytes: usize,
}

impl<V: Clone> Remembered<V> {
    /// Holds at most twice these entries and bytes.
    pub(crate) fn new(entries: usize, bytes: usize) -> Self {
        let generations = Generations { young: HashMap::new(), old: HashMap::new(), bytes: 0 };
        Self { generations: Mutex::new(generations), bounds: (entries, bytes) }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<V> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((value, _)) = generations.young.get(key) {
            return Some(value.clone());
        }
        let (value, size) = generations.old.remove(key)?;
        generations.put(self.bounds, *key, value.clone(), size);
        Some(value)
    }

    /// `size`: bytes of the value.
    pub(crate) fn put(&self, key: Key, value: V, size: usize) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.put(self.bounds, key, value, size);
    }
}

impl<V> Generations<V> {
    fn put(&mut self, (entries, bytes): (usize, usize), key: Key, value: V, size: usize) {
        if size > bytes {
            return;
        }
        if self.young.len() >= entries || self.bytes + size > bytes {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += size;
        if let Some((_, before)) = self.young.insert(key, (value, size)) {
            self.bytes = self.bytes.saturating_sub(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_what_is_not_goes() {
        let remembered = Remembered::new(2, 100);
        let keys: Vec<Key> = (0..6).map(|number: u8| [number; 32]).collect();
        remembered.put(keys[0], 0, 1);
        for (number, key) in keys.iter().enumerate().skip(1) {
            remembered.put(*key, number, 1);
            assert_eq!(remembered.get(&keys[0]), Some(0), "after {number}");
        }
        assert_eq!(remembered.get(&keys[1]), None);
    }

    #[test]
    fn a_value_too_large_is_not_kept_and_bytes_are_bounded() {
        let remembered = Remembered::new(100, 10);
        for number in 0..50_u8 {
            remembered.put([number; 32], number, 4);
        }
        remembered.put([99; 32], 99, 11);
        let kept = (0..100_u8).filter(|number| remembered.get(&[*number; 32]).is_some()).count();
        assert!((1..=4).contains(&kept), "{kept}");
    }

    #[test]
    fn parts_of_a_key_do_not_run_into_each_other() {
        assert_ne!(key_of(["ab", "c"]), key_of(["a", "bc"]));
    }
}
