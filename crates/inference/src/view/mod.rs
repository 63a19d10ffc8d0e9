//! What a hook sees, and for each part of it the place in the bytes it came from.

mod calls;
mod draft;
mod media;

use gatehook_events::Message;

pub(crate) use calls::{CallSlot, Calls, read_calls, single_call};
pub(crate) use draft::{Draft, chosen, fields, is_image_note, is_note, literal, rest};
pub(crate) use media::{address, image, is_cipher, outline};

use crate::error::Unheld;
use crate::json::At;

/// Where a text stands.
#[derive(Debug, Clone, Default)]
pub(crate) enum Place {
    /// It has none here.
    #[default]
    Nowhere,
    /// In this value: a string, or `null` that a string may replace.
    In(At),
    /// In all of these, each the same.
    Repeated(Vec<At>),
    /// In an object, under a key that is not there yet.
    Under(At, &'static str),
    /// It can be dropped with all that carries it, never changed: why.
    Sealed(&'static str),
}

impl Place {
    /// The values that hold it.
    pub(crate) fn values(&self) -> &[At] {
        match self {
            Place::In(at) => std::slice::from_ref(at),
            Place::Repeated(places) => places,
            _ => &[],
        }
    }
}

/// Where the images of a message stand.
#[derive(Debug, Clone, Default)]
pub(crate) enum Images {
    /// It has none.
    #[default]
    None,
    /// In an array of an object.
    List { object: At, array: At, data: Vec<At> },
    /// The part is the image.
    Part { part: At, data: At },
}

impl Images {
    /// The strings that hold data or addresses, in the order of the view.
    pub(crate) fn data(&self) -> &[At] {
        match self {
            Images::None => &[],
            Images::List { data, .. } => data,
            Images::Part { data, .. } => std::slice::from_ref(data),
        }
    }
}

/// Where one shown message came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot {
    /// Which of the request's regions.
    pub(crate) region: usize,
    /// Each array it stands in and its element there, outermost first; empty for a lone string.
    pub(crate) path: Vec<(At, At)>,
    /// The object that its unnamed fields belong to.
    pub(crate) object: Option<At>,
    pub(crate) content: Place,
    pub(crate) thinking: Place,
    pub(crate) tool_call_id: Place,
    pub(crate) name: Place,
    pub(crate) calls: Calls,
    pub(crate) images: Images,
    /// Unnamed fields that can be changed.
    pub(crate) extra: Vec<(String, At)>,
    /// Why nothing of it can be changed; it can be dropped.
    pub(crate) sealed: Option<&'static str>,
    /// Members (object and value) that leave with it where the rest of its message stays.
    pub(crate) members: Vec<(At, At)>,
}

/// Looks an image's original value up by its fingerprint.
pub(crate) type Pictures<'a> = &'a dyn Fn(&str) -> Option<serde_json::Value>;

/// How a region takes messages that were not there before.
pub(crate) struct Form {
    /// Whether it has a place for this role.
    pub(crate) takes: fn(&str) -> bool,
    /// The role that a lone string speaks in.
    pub(crate) lone: &'static str,
    /// What a lone string becomes when others join it; none: it stays alone.
    pub(crate) wrap: Option<fn(&str) -> String>,
    /// A part of text, to stand where an image stood.
    pub(crate) text_part: fn(&str) -> String,
    /// Messages in a row as new elements.
    pub(crate) build: fn(&[&Message], Pictures<'_>) -> Result<Vec<String>, Unheld>,
    /// The number of messages cannot change.
    pub(crate) fixed: bool,
    /// It cannot be left empty.
    pub(crate) required: bool,
}

/// A place of the body that holds messages: a list, or a lone string.
#[derive(Clone)]
pub(crate) struct Region {
    /// Its key in the body.
    pub(crate) key: &'static str,
    /// Its value, where there is one.
    pub(crate) at: Option<At>,
    pub(crate) form: &'static Form,
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region").field("key", &self.key).field("at", &self.at).finish_non_exhaustive()
    }
}

/// How many messages a request may show; far above what a context holds.
pub(crate) const MAX_MESSAGES: usize = 1 << 16;

/// A conversation: what is shown, and where each message stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chat {
    pub(crate) messages: Vec<Message>,
    /// One for each message.
    pub(crate) slots: Vec<Slot>,
    /// In the order of the view.
    pub(crate) regions: Vec<Region>,
}

impl Chat {
    /// Adds a region; what is pushed next belongs to it.
    pub(crate) fn region(&mut self, key: &'static str, at: Option<At>, form: &'static Form) {
        self.regions.push(Region { key, at, form });
    }

    /// Makes room for so many messages, or a sensible part of it.
    pub(crate) fn expect(&mut self, count: usize) {
        self.messages.reserve(count.min(4096));
        self.slots.reserve(count.min(4096));
    }

    /// Adds a message to the last region. One more than may be is kept, so that their number is seen to be too large.
    pub(crate) fn push(&mut self, draft: Draft) {
        if self.messages.len() > MAX_MESSAGES {
            return;
        }
        let region = self.regions.len().saturating_sub(1);
        self.messages.push(draft.message);
        self.slots.push(Slot { region, ..draft.slot });
    }
}
