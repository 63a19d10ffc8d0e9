//! What the user says while a turn runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many messages of each kind may wait.
const BOUND: usize = 64;

/// Takes what the user says while a turn runs. A clone is another handle of the same.
#[derive(Debug, Clone, Default)]
pub struct Inbox(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    steering: VecDeque<String>,
    follow_ups: VecDeque<String>,
    compaction: bool,
}

impl Inbox {
    /// A message for the next call of the model. Says whether there was room for it.
    pub fn steer(&self, text: String) -> bool {
        put(&mut self.lock().steering, text)
    }

    /// A message for when the model is done. Says whether there was room for it.
    pub fn follow_up(&self, text: String) -> bool {
        put(&mut self.lock().follow_ups, text)
    }

    /// Wants the conversation compacted before the next call of the model.
    pub fn compact(&self) {
        self.lock().compaction = true;
    }

    /// The follow-ups that wait.
    pub fn follow_ups(&self) -> Vec<String> {
        self.lock().follow_ups.iter().cloned().collect()
    }

    pub(super) fn is_steered(&self) -> bool {
        !self.lock().steering.is_empty()
    }

    pub(super) fn take_steering(&self) -> Vec<String> {
        self.lock().steering.drain(..).collect()
    }

    pub(super) fn take_follow_up(&self) -> Option<String> {
        self.lock().follow_ups.pop_front()
    }

    pub(super) fn take_compaction(&self) -> bool {
        std::mem::take(&mut self.lock().compaction)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn put(queue: &mut VecDeque<String>, text: String) -> bool {
    let fits = queue.len() < BOUND;
    if fits {
        queue.push_back(text);
    }
    fits
}
