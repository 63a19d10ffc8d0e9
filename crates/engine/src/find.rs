//! What hooks that redact find in a text, and what they know of each other.
//!
//! Of two that redact one after the other, the second sees what the first has left. There it may miss what it would have
//! found: the first has taken the name of a secret for the end of an address, say. So each is told of the others, and what
//! its own replacements would hide from them it takes out itself.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// What is found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it stands, in bytes, on character boundaries.
    pub range: Range<usize>,
    /// What is put in its place.
    pub word: Cow<'static, str>,
}

/// Finds what must not stay in a text.
pub trait Find: Send + Sync {
    /// All of it, in order, apart from each other. `name` is the key under which the text stands in JSON.
    fn find(&self, name: Option<&str>, text: &str) -> Vec<Found>;
}

/// The hooks of an event that redact, around one of them.
#[derive(Clone, Default)]
pub struct Others {
    /// Those that have seen a text before it.
    pub before: Vec<Arc<dyn Find>>,
    /// Those that see what it leaves.
    pub after: Vec<Arc<dyn Find>>,
}

impl Others {
    /// Those around the hook at `place`; none around one that finds nothing.
    pub(crate) fn around(finders: &[Option<Arc<dyn Find>>], place: usize) -> Self {
        let (before, rest) = finders.split_at(place.min(finders.len()));
        match rest.split_first() {
            Some((Some(_), after)) => {
                let each = |finders: &[Option<Arc<dyn Find>>]| finders.iter().flatten().cloned().collect();
                Self { before: each(before), after: each(after) }
            }
            _ => Self::default(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

impl std::fmt::Debug for Others {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Others").field("before", &self.before.len()).field("after", &self.after.len()).finish()
    }
}
