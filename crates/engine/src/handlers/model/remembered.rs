//! Verdicts that a judge has given: bounded in number and bytes; what was not asked for longest goes first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

/// Half of the verdicts that are remembered.
const ENTRIES: usize = 1024;
/// Half of the bytes of replies that are remembered.
const BYTES: usize = 1 << 20;

/// A question by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Question([u8; 32]);

impl Question {
    /// Everything that the verdict depends on; the schema stands in the system message.
    pub(super) fn of(model: &str, system: &str, user: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [model, system, user] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

/// Replies that could be read as a verdict.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    halves: Mutex<Halves>,
}

/// What was asked since the last turn, and before. A full young half becomes the old one, and the old one is gone.
#[derive(Debug, Default)]
struct Halves {
    young: HashMap<Question, Arc<str>>,
    old: HashMap<Question, Arc<str>>,
    /// Bytes in the young half.
    bytes: usize,
}

impl Remembered {
    pub(super) fn recall(&self, question: Question) -> Option<Arc<str>> {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reply) = halves.young.get(&question) {
            return Some(reply.clone());
        }
        let reply = halves.old.remove(&question)?;
        halves.insert(question, reply.clone());
        Some(reply)
    }

    pub(super) fn learn(&self, question: Question, reply: Arc<str>) {
        self.halves.lock().unwrap_or_else(PoisonError::into_inner).insert(question, reply);
    }
}

impl Halves {
    fn insert(&mut self, question: Question, reply: Arc<str>) {
        if reply.len() > BYTES {
            return;
        }
        if self.young.len() >= ENTRIES || self.bytes + reply.len() > BYTES {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += reply.len();
        let before = self.young.insert(question, reply);
        self.bytes -= before.map_or(0, |reply| reply.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(number: usize) -> Question {
        Question::of("m", "", &number.to_string())
    }

    #[test]
    fn what_was_not_asked_for_longest_goes_first() {
        let remembered = Remembered::default();
        for number in 0..ENTRIES * 2 {
            remembered.learn(question(number), "{}".into());
            assert!(remembered.recall(question(0)).is_some(), "{number}");
        }
        assert!(remembered.recall(question(1)).is_none());
        let halves = remembered.halves.lock().unwrap();
        assert!(halves.young.len() <= ENTRIES && halves.old.len() <= ENTRIES);
    }

    #[test]
    fn replies_are_bounded_in_bytes() {
        let remembered = Remembered::default();
        remembered.learn(question(0), "x".repeat(BYTES + 1).into());
        assert!(remembered.recall(question(0)).is_none());
        for number in 0..8 {
            remembered.learn(question(number), "x".repeat(BYTES / 2).into());
        }
        let halves = remembered.halves.lock().unwrap();
        assert!(halves.young.len() + halves.old.len() <= 4 && halves.bytes <= BYTES);
    }

    #[test]
    fn parts_of_a_question_do_not_run_into_each_other() {
        assert_ne!(Question::of("ab", "c", ""), Question::of("a", "bc", ""));
    }
}
