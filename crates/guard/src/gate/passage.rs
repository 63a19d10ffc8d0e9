//! One text on its way through the gate: what of it is settled, judged and let go.

use std::ops::Range;

use gatehook_engine::events::{Segment, SegmentKind};
use gatehook_engine::{Held, Scan};
use gatehook_inference::{Relay, Track, TrackId, TrackKind, Unheld};
use tokio::time::Instant;

use super::change::Change;
use super::policy::Policy;
use super::restoring::Restoring;
use crate::placeholders::Placeholders;

/// One track's passage. Offsets are absolute, of what came.
pub(super) struct Passage {
    held: Held,
    /// One for each hook that scans, over what came from `scanned` on, and over `context` bytes before it.
    scans: Vec<Box<dyn Scan>>,
    scanned: usize,
    context: usize,
    /// How much of the track has been taken in.
    fed: usize,
    ended: bool,
    /// No continuation changes what scans find before this.
    settled: usize,
    /// Scans have found something, and nothing from here on.
    found: usize,
    /// A match has grown too long to be waited for.
    pub(super) too_long: bool,
    /// Hooks have been shown everything before this.
    judged: usize,
    /// Hooks have let go everything before this.
    cleared: usize,
    /// When the first of what no hook has been shown came.
    since: Option<Instant>,
    /// Segments that were shown.
    segments: u32,
    /// The end of what was let go.
    tail: String,
    overlap: usize,
    /// All that was let go, where somebody wants to see it.
    said: Option<String>,
    placeholders: Placeholders,
    restoring: Restoring,
}

/// What is to be done about a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    /// Everything before this may go as it is.
    Clear(usize),
    /// Hooks are to see this; `last`: nothing follows.
    Judge { range: Range<usize>, last: bool },
}

impl Passage {
    pub(super) fn new(
        kind: TrackKind,
        policy: &Policy,
        scans: Vec<Box<dyn Scan>>,
        keep: bool,
        placeholders: Placeholders,
    ) -> Self {
        Self {
            held: policy.held(kind),
            scans,
            scanned: 0,
            context: 0,
            fed: 0,
            ended: false,
            settled: 0,
            found: 0,
            too_long: false,
            judged: 0,
            cleared: 0,
            since: None,
            segments: 0,
            tail: String::new(),
            overlap: policy.overlap,
            said: keep.then(String::new),
            placeholders,
            restoring: Restoring::default(),
        }
    }

    /// Takes in what has come on the track. `again` makes new scans, for what comes behind an end that was none: the
    /// old ones have been told that nothing follows.
    pub(super) fn feed(&mut self, track: &Track, now: Instant, again: impl FnOnce() -> Vec<Box<dyn Scan>>) {
        let total = track.len_total();
        if total == self.fed && track.ended == self.ended {
            return;
        }
        if total > self.fed {
            self.since.get_or_insert(now);
            if self.ended && !self.scans.is_empty() {
                self.scans = again();
                (self.scanned, self.context) = (self.fed, self.tail.len());
                for scan in &mut self.scans {
                    scan.push(&self.tail, false);
                }
            }
        }
        let more = track.since(self.fed);
        let mut settled = total;
        for scan in &mut self.scans {
            let told = scan.push(more, track.ended);
            let upto = self.scanned + told.upto.saturating_sub(self.context);
            settled = settled.min(upto);
            self.too_long |= told.too_long;
            if !told.clean {
                self.found = self.found.max(upto);
            }
        }
        if track.ended && settled < total {
            // A scan that does not say so: hooks are shown what it has left.
            (self.found, settled) = (total, total);
        }
        self.settled = self.settled.max(settled);
        (self.fed, self.ended) = (total, track.ended);
    }

    /// What is to be done now.
    pub(super) fn due(&self, policy: &Policy, now: Instant) -> Option<Due> {
        if self.settled == self.cleared {
            return None;
        }
        let judge = Due::Judge { range: self.cleared..self.settled, last: self.ended && self.settled == self.fed };
        let new = self.settled > self.judged || self.ended;
        match self.held {
            Held::Buffer => None,
            Held::Observe => Some(Due::Clear(self.settled)),
            Held::Scan if self.found > self.cleared => new.then_some(judge),
            Held::Scan => Some(Due::Clear(self.settled)),
            Held::Window => {
                let full = self.settled - self.judged.min(self.settled) >= policy.size;
                let late = self.deadline(policy).is_some_and(|at| at <= now);
                (new && (full || late || self.ended)).then_some(judge)
            }
        }
    }

    /// Lets go what no hook need judge.
    pub(super) fn go_on(
        &mut self,
        relay: &mut Relay,
        id: TrackId,
        policy: &Policy,
        now: Instant,
    ) -> Result<(), Unheld> {
        match self.due(policy, now) {
            Some(Due::Clear(upto)) => self.clear(relay, id, self.cleared..upto, None, 0),
            _ if self.ended => self.let_go(relay, id),
            _ => Ok(()),
        }
    }

    /// Bytes that have come, and that hooks are to be shown in a segment.
    pub(super) fn waiting(&self) -> usize {
        if self.held == Held::Buffer { 0 } else { self.fed - self.judged.min(self.fed) }
    }

    /// When what has come must be shown, full window or not.
    pub(super) fn deadline(&self, policy: &Policy) -> Option<Instant> {
        let waits = self.held == Held::Window && self.settled > self.judged;
        self.since.filter(|_| waits).and_then(|since| since.checked_add(policy.max_wait))
    }

    /// The text that has left before a segment, as hooks are shown it.
    pub(super) fn tail(&self) -> &str {
        let start = self.tail.len().saturating_sub(self.overlap);
        self.tail.get(self.tail.ceil_char_boundary(start)..).unwrap_or_default()
    }

    /// The next segment's name.
    pub(super) fn next_segment(&mut self, kind: TrackKind, last: bool) -> Segment {
        let kind = match kind {
            TrackKind::Text => SegmentKind::Text,
            TrackKind::Thinking => SegmentKind::Thinking,
        };
        let index = self.segments;
        self.segments += 1;
        Segment { index, final_: last, kind }
    }

    /// Hooks are being shown everything before `upto`.
    pub(super) fn shows(&mut self, upto: usize, now: Instant) {
        self.judged = upto;
        self.since = (self.fed > upto).then_some(now);
    }

    /// Hooks let `range` go, with a change; `holdback` characters at its end stay to be shown again.
    pub(super) fn clear(
        &mut self,
        relay: &mut Relay,
        id: TrackId,
        range: Range<usize>,
        change: Option<Change>,
        holdback: usize,
    ) -> Result<(), Unheld> {
        let Some(text) = relay.tracks().get(id.0).and_then(|track| track.part(range.clone())) else {
            return Err(Unheld { reason: "the text is not there any more".to_owned() });
        };
        let upto = free_until(text, holdback, change.as_ref());
        let change = change.filter(|change| change.range.end <= upto);
        let (before, after) = match &change {
            Some(change) => (0..change.range.start, change.range.end..upto),
            None => (0..upto, upto..upto),
        };
        self.keeps(range.start, text, before);
        let place = change.as_ref().map(|change| range.start + change.range.start..range.start + change.range.end);
        if let (Some(change), Some(place)) = (&change, &place) {
            self.says(&change.text);
            if !self.placeholders.is_empty() {
                self.restoring.push(place.clone(), &change.text, false);
            }
        }
        self.keeps(range.start, text, after);
        if let (Some(change), Some(place), true) = (change, place, self.placeholders.is_empty()) {
            relay.replace(id, place, &change.text)?;
        }
        self.cleared = range.start + upto;
        self.let_go(relay, id)
    }

    /// A part of `text`, which came at `start`, goes as it is.
    fn keeps(&mut self, start: usize, text: &str, part: Range<usize>) {
        let said = text.get(part.clone()).unwrap_or_default();
        self.says(said);
        if !self.placeholders.is_empty() && !said.is_empty() {
            self.restoring.push(start + part.start..start + part.end, said, true);
        }
    }

    fn says(&mut self, text: &str) {
        if let Some(said) = &mut self.said {
            said.push_str(text);
        }
        self.tail
            .push_str(text.get(text.ceil_char_boundary(text.len().saturating_sub(self.overlap))..).unwrap_or(text));
        if self.tail.len() > 2 * self.overlap {
            self.tail.drain(..self.tail.ceil_char_boundary(self.tail.len() - self.overlap));
        }
    }

    /// What hooks have not let go.
    pub(super) fn rest(&self) -> Range<usize> {
        self.cleared..self.fed
    }

    /// All that hooks have let go, where it was to be kept.
    pub(super) fn said(&self) -> &str {
        self.said.as_deref().unwrap_or_default()
    }

    /// Lets go what has been cleared and cannot be the beginning of a placeholder.
    pub(super) fn let_go(&mut self, relay: &mut Relay, id: TrackId) -> Result<(), Unheld> {
        if self.placeholders.is_empty() {
            relay.allow(id, self.cleared);
            return Ok(());
        }
        let ended = self.ended && self.cleared == self.fed;
        self.restoring.settle(&self.placeholders, ended, relay, id)
    }
}

/// Up to where a segment may go, if `holdback` characters of it stay. A change goes as a whole or stays as a whole.
fn free_until(text: &str, holdback: usize, change: Option<&Change>) -> usize {
    let Some(last) = holdback.checked_sub(1) else { return text.len() };
    let cut = text.char_indices().rev().nth(last).map_or(0, |(at, _)| at);
    match change {
        Some(change) if change.range.start < cut && cut < change.range.end => change.range.start,
        _ => cut,
    }
}
