//! Messages as they stood in the last question. What a conversation says again is copied, not written anew, so that the
//! work of a turn follows what is new in it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gatehook_engine::events::Message;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::Chat;

/// What a model's server was asked last; a clone begins with nothing. It takes as much room as that question.
#[derive(Debug, Default)]
pub(in crate::model) struct Written(Mutex<Vec<Piece>>);

/// A message, and what became of it.
#[derive(Debug)]
pub(super) struct Piece {
    message: Message,
    goes_back: bool,
    /// A message for most servers; blocks of one for Anthropic's.
    pub(super) json: Vec<Box<RawValue>>,
}

impl Clone for Written {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Written {
    /// The messages of a chat in its order. From the first on that is not what it was, `write` is asked for each, with
    /// its place; what it says may follow from the messages before as well.
    pub(super) fn bring<'m, T: Serialize>(
        &self,
        chat: &Chat<'m>,
        write: impl Fn(usize, &'m Message, bool) -> Vec<T>,
    ) -> serde_json::Result<MutexGuard<'_, Vec<Piece>>> {
        let mut pieces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, (message, goes_back)) in chat.each().enumerate() {
            if pieces.get(place).is_some_and(|piece| piece.goes_back == goes_back && piece.message == *message) {
                continue;
            }
            pieces.truncate(place);
            let json = write(place, message, goes_back).iter().map(to_raw_value).collect::<Result<_, _>>()?;
            pieces.push(Piece { message: message.clone(), goes_back, json });
        }
        pieces.truncate(chat.messages.len());
        Ok(pieces)
    }
}
