//! What a builtin remembers of each session, or of whatever else it counts by: bounded, the oldest goes first.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How many are remembered.
const REMEMBERED: usize = 4096;

/// A value for each name.
#[derive(Debug)]
pub(super) struct Sessions<T> {
    all: Mutex<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
    values: HashMap<String, (u64, T)>,
    /// Counts uses, so that the one not used for longest is known.
    uses: u64,
}

impl<T> Default for Sessions<T> {
    fn default() -> Self {
        Self { all: Mutex::new(Known { values: HashMap::new(), uses: 0 }) }
    }
}

impl<T: Default> Sessions<T> {
    /// Looks at the value of this name and may change it.
    pub(super) fn with<R>(&self, name: &str, look: impl FnOnce(&mut T) -> R) -> R {
        let mut known = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        known.uses += 1;
        let now = known.uses;
        if !known.values.contains_key(name) {
            known.make_room();
            known.values.insert(name.to_owned(), (now, T::default()));
        }
        let mut absent = (now, T::default());
        let (used, value) = known.values.get_mut(name).unwrap_or(&mut absent);
        *used = now;
        look(value)
    }
}

impl<T> Known<T> {
    /// Forgets an eighth at once, so that it is not sorted for each newcomer.
    fn make_room(&mut self) {
        if self.values.len() < REMEMBERED {
            return;
        }
        let mut uses: Vec<u64> = self.values.values().map(|(used, _)| *used).collect();
        let (_, newest_to_go, _) = uses.select_nth_unstable(REMEMBERED / 8);
        let newest_to_go = *newest_to_go;
        self.values.retain(|_, (used, _)| *used > newest_to_go);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_bounded_and_forgets_what_was_used_longest_ago() {
        let sessions = Sessions::<u32>::default();
        for number in 0..REMEMBERED * 3 {
            sessions.with("in use", |count| *count += 1);
            sessions.with(&number.to_string(), |count| *count += 1);
            assert!(sessions.all.lock().unwrap().values.len() <= REMEMBERED);
        }
        assert_eq!(sessions.with("in use", |count| *count) as usize, REMEMBERED * 3);
        assert_eq!(sessions.with("0", |count| *count), 0);
    }
}
