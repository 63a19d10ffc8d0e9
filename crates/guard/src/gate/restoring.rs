//! The last stage: values in the place of their placeholders, in text that hooks have let go.

use std::collections::VecDeque;
use std::ops::Range;

use gatehook_inference::{Relay, TrackId, Unheld};

use crate::placeholders::Placeholders;

/// Text of a track that hooks have let go and that may still be the beginning of a placeholder.
#[derive(Debug)]
pub(super) struct Restoring {
    placeholders: Placeholders,
    parts: VecDeque<Part>,
}

/// A part of a track.
#[derive(Debug)]
struct Part {
    /// By absolute offsets of what came.
    range: Range<usize>,
    /// What it says now.
    text: String,
    /// It says what came.
    same: bool,
}

impl Restoring {
    pub(super) fn new(placeholders: Placeholders) -> Self {
        Self { placeholders, parts: VecDeque::new() }
    }

    /// The next part of the track: `text` stands where `range` came.
    pub(super) fn push(&mut self, range: Range<usize>, text: &str, same: bool) {
        self.parts.push_back(Part { range, text: text.to_owned(), same });
    }

    /// Lets go what is settled; all of it where the track is `over`: where it is only interrupted, a placeholder may go on.
    pub(super) fn settle(&mut self, over: bool, relay: &mut Relay, track: TrackId) -> Result<(), Unheld> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let placeholders = self.placeholders.clone();
        let text: String = self.parts.iter().map(|part| &*part.text).collect();
        let upto = if over { text.len() } else { placeholders.settled(&text) };
        let mut at = 0;
        for (place, value) in placeholders.find(text.get(..upto).unwrap_or_default()) {
            self.leave(place.start - at, relay, track)?;
            self.replace(place.len(), value, relay, track)?;
            at = place.end;
        }
        self.leave(upto - at, relay, track)
    }

    /// Lets the next `length` bytes go as they are.
    fn leave(&mut self, mut length: usize, relay: &mut Relay, track: TrackId) -> Result<(), Unheld> {
        while let Some(part) = self.parts.front_mut() {
            if part.text.len() > length && (part.same || length == 0) {
                part.text.drain(..length);
                part.range.start += length;
                relay.allow(track, part.range.start);
                return Ok(());
            }
            if part.text.len() > length {
                // Of a text that hooks have put there only the beginning: it stands alone, before the rest.
                let rest = part.text.split_off(length);
                relay.replace(track, part.range.start..part.range.start, &std::mem::replace(&mut part.text, rest))?;
                return Ok(());
            }
            length -= part.text.len();
            if !part.same {
                relay.replace(track, part.range.clone(), &part.text)?;
            }
            relay.allow(track, part.range.end);
            self.parts.pop_front();
        }
        Ok(())
    }

    /// Puts `value` in the place of the next `length` bytes.
    fn replace(&mut self, mut length: usize, value: &str, relay: &mut Relay, track: TrackId) -> Result<(), Unheld> {
        let Some(start) = self.parts.front().map(|part| part.range.start) else { return Ok(()) };
        let mut end = start;
        while let Some(part) = self.parts.front_mut().filter(|_| length > 0) {
            if part.text.len() > length {
                part.text.drain(..length);
                if part.same {
                    part.range.start += length;
                    end = part.range.start;
                }
                break;
            }
            length -= part.text.len();
            end = part.range.end;
            self.parts.pop_front();
        }
        relay.replace(track, start..end, value)?;
        relay.allow(track, end);
        Ok(())
    }
}
