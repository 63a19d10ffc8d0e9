//! One text on its way through the gate: what of it is settled, judged and let go.

use std::ops::Range;

use gatehook_engine::events::{Segment, SegmentKind};
use gatehook_engine::{Held, Scan};
use gatehook_inference::{LOOK_BACK, Relay, Track, TrackId, TrackKind, Unheld};
use gatehook_scan::{CONTEXT, context};
use tokio::time::Instant;

use super::change::Change;
use super::policy::Policy;
use super::restoring::Restoring;
use super::scans::Scans;
use crate::placeholders::Placeholders;

/// One track's passage. Offsets are absolute, of what came.
pub(super) struct Passage {
    held: Held,
    scans: Scans,
    /// It is thinking: the text behind it need not wait for its last word.
    yields: bool,
    /// How much of the track has been taken in.
    fed: usize,
    /// Nothing follows for now.
    ended: bool,
    /// Scans have been told so.
    rested: bool,
    /// Whether scans wait for more of what they hold, where that has been asked.
    waits: Option<bool>,
    /// More has followed after all.
    resumed: bool,
    /// Nothing follows at all; hooks that see windows have been told so.
    over: bool,
    told: bool,
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
    /// When the first of what no hook has been shown came, where windows are waited for.
    since: Option<Instant>,
    /// Segments that were shown.
    segments: u32,
    /// The end of what was let go, where the track does not have it: it was changed, or is longer than what stays.
    tail: Option<String>,
    overlap: usize,
    /// All that was let go, where somebody wants to see it.
    said: Option<String>,
    /// Where there is anything to restore.
    restoring: Option<Restoring>,
}

/// A segment that hooks are to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Show {
    pub(super) range: Range<usize>,
    /// Nothing follows for now: none of it is held for the next one.
    pub(super) flush: bool,
    /// Nothing follows at all.
    pub(super) last: bool,
}

impl Passage {
    /// `keep`: all that is let go.
    pub(super) fn new(
        kind: TrackKind,
        policy: &Policy,
        scans: Vec<Box<dyn Scan>>,
        keep: bool,
        placeholders: Placeholders,
    ) -> Self {
        Self {
            held: policy.held(kind),
            scans: Scans::new(scans, 0, ""),
            yields: kind == TrackKind::Thinking,
            fed: 0,
            ended: false,
            rested: false,
            waits: None,
            resumed: false,
            over: false,
            told: false,
            settled: 0,
            found: 0,
            too_long: false,
            judged: 0,
            cleared: 0,
            since: None,
            segments: 0,
            tail: (2 * policy.overlap > LOOK_BACK).then(String::new),
            overlap: policy.overlap,
            said: keep.then(String::new),
            restoring: (!placeholders.is_empty()).then(|| Restoring::new(placeholders)),
        }
    }

    /// Takes in what has come on the track; `over`: its choice has ended. What has been interrupted may go on, unless that
    /// would be in another block, or it has gone on before: two kinds of text may take turns with every frame. `again`
    /// makes new scans, for what comes behind an end that was none: the old ones have been told that nothing follows.
    pub(super) fn feed(&mut self, track: &Track, over: bool, again: impl Fn() -> Vec<Box<dyn Scan>>) {
        let total = track.len_total();
        let resumes = self.rested && total > self.fed;
        self.resumed |= resumes;
        self.over = over && track.ended;
        if total > self.fed {
            if self.held == Held::Window {
                self.since.get_or_insert_with(Instant::now);
            }
            if resumes && !self.scans.is_empty() {
                self.scan_again(track, again());
            }
            self.scan(track.since(self.fed), total, false);
            (self.fed, self.ended, self.rested, self.waits) = (total, false, false, None);
        }
        let rests = track.ended && (over || track.closed || !self.resumed);
        let ended = rests && (over || !self.is_waited_for(track));
        if ended && !self.rested {
            self.scan("", total, true);
            self.rested = true;
        }
        self.ended = ended;
    }

    /// [`Passage::feed`] and [`Passage::go_on`] for a text of which no more is to be known than what its scans say, as
    /// nearly all of most streams is. Says whether that was all: otherwise it has been scanned, and no more.
    pub(super) fn glide(&mut self, relay: &mut Relay, id: TrackId) -> bool {
        let Some(track) = relay.tracks().get(id.0).filter(|track| !track.ended) else { return false };
        if self.held != Held::Scan || self.rested || self.keeps_text() {
            return false;
        }
        let total = track.len_total();
        if total == self.fed {
            return false;
        }
        self.scan(track.since(self.fed), total, false);
        (self.fed, self.ended, self.waits) = (total, false, None);
        if !self.passes() || self.too_long {
            return false;
        }
        self.cleared = self.settled;
        relay.allow(id, self.cleared);
        true
    }

    /// Whether what is let go is needed as text.
    fn keeps_text(&self) -> bool {
        self.said.is_some() || self.tail.is_some() || self.restoring.is_some()
    }

    #[cold]
    fn scan_again(&mut self, track: &Track, scans: Vec<Box<dyn Scan>>) {
        self.scans = Scans::new(scans, self.fed, before(track, self.fed));
    }

    fn scan(&mut self, more: &str, total: usize, ended: bool) {
        let told = self.scans.push(more, total, ended);
        self.settled = self.settled.max(told.settled);
        self.found = self.found.max(told.found);
        self.too_long |= told.too_long;
    }

    /// Whether what scans hold of a text that has been interrupted stays held: its first half would have left when the
    /// second comes. It does beyond a tool call; beyond text of the other kind where a match may begin with it. But where
    /// that would keep all text waiting for the last word of the thinking before it, only what has begun to be one stays.
    fn is_waited_for(&mut self, track: &Track) -> bool {
        if self.scans.is_empty() || self.settled >= self.fed {
            return false;
        }
        let held = track.part(self.settled..self.fed).unwrap_or_default();
        !track.turned || *self.waits.get_or_insert_with(|| self.scans.wait(held, self.fed, self.yields))
    }

    /// What hooks are to see now.
    pub(super) fn due(&self, policy: &Policy) -> Option<Show> {
        let flush = self.ended && self.settled == self.fed;
        let show = || Show { range: self.cleared..self.settled, flush, last: flush && self.over };
        let waits = self.settled > self.cleared;
        // What hooks asked to see again is shown again with more, or when there is no more.
        let new = waits && (self.settled > self.judged || self.ended);
        match self.held {
            Held::Buffer | Held::Observe => None,
            Held::Scan => (new && !self.passes()).then(show),
            Held::Window if flush && self.over => (!self.told).then(show),
            Held::Window => {
                let full = self.settled - self.judged.min(self.settled) >= policy.size;
                let late = self.deadline(policy).is_some_and(|at| at <= Instant::now());
                (new && (full || late || self.ended)).then(show)
            }
        }
    }

    /// Lets go what no hook need judge.
    pub(super) fn go_on(&mut self, relay: &mut Relay, id: TrackId) -> Result<(), Unheld> {
        if self.passes() && self.settled > self.cleared {
            self.pass(relay, id, self.settled)
        } else if self.over && self.restoring.is_some() {
            // What may have been the beginning of a placeholder is none.
            self.let_go(relay, id)
        } else {
            Ok(())
        }
    }

    /// Whether what is settled need not be shown to hooks.
    fn passes(&self) -> bool {
        match self.held {
            Held::Observe => true,
            Held::Scan => self.found <= self.cleared,
            Held::Buffer | Held::Window => false,
        }
    }

    /// Whether nothing is due before more comes.
    pub(super) fn is_at_rest(&self) -> bool {
        match self.held {
            Held::Buffer => true,
            Held::Window => false,
            Held::Observe | Held::Scan => self.cleared == self.settled,
        }
    }

    /// Lets go everything before `upto` as it is.
    fn pass(&mut self, relay: &mut Relay, id: TrackId, upto: usize) -> Result<(), Unheld> {
        if self.keeps_text() {
            let start = self.cleared;
            let Some(text) = relay.tracks().get(id.0).and_then(|track| track.part(start..upto)) else {
                return Err(gone());
            };
            self.keeps(start, text, 0..text.len());
        }
        self.cleared = upto;
        self.let_go(relay, id)
    }

    /// Whether hooks that see windows have yet to be shown the end.
    pub(super) fn owes_a_last_segment(&self) -> bool {
        self.held == Held::Window && self.over && !self.told
    }

    /// When what has come must be shown, full window or not.
    pub(super) fn deadline(&self, policy: &Policy) -> Option<Instant> {
        let waits = self.held == Held::Window && self.settled > self.judged;
        self.since.filter(|_| waits).and_then(|since| since.checked_add(policy.max_wait))
    }

    /// The text that has left before a segment, as hooks are shown it: no more than scanning takes, or the overlap of a
    /// window.
    pub(super) fn tail<'t>(&'t self, track: &'t Track) -> &'t str {
        let tail = match &self.tail {
            Some(tail) => tail,
            None => end_before(track, self.cleared, 2 * self.overlap),
        };
        if self.held == Held::Scan {
            return context(tail);
        }
        let start = tail.len().saturating_sub(self.overlap);
        tail.get(tail.ceil_char_boundary(start)..).unwrap_or_default()
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

    /// Hooks are being shown this.
    pub(super) fn shows(&mut self, show: &Show) {
        self.judged = show.range.end;
        self.since = (self.fed > self.judged).then(Instant::now);
        self.told |= show.last;
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
        let Some((track, text)) = relay.tracks().get(id.0).and_then(|track| Some((track, track.part(range.clone())?)))
        else {
            return Err(gone());
        };
        if change.is_some() && self.tail.is_none() {
            self.tail = Some(end_before(track, range.start, 2 * self.overlap).to_owned());
        }
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
            if let Some(restoring) = &mut self.restoring {
                restoring.push(place.clone(), &change.text, false);
            }
        }
        self.keeps(range.start, text, after);
        if let (Some(change), Some(place), None) = (change, place, &self.restoring) {
            relay.replace(id, place, &change.text)?;
        }
        self.cleared = range.start + upto;
        self.let_go(relay, id)
    }

    /// A part of `text`, which came at `start`, goes as it is.
    fn keeps(&mut self, start: usize, text: &str, part: Range<usize>) {
        let said = text.get(part.clone()).unwrap_or_default();
        self.says(said);
        if let Some(restoring) = self.restoring.as_mut().filter(|_| !said.is_empty()) {
            restoring.push(start + part.start..start + part.end, said, true);
        }
    }

    fn says(&mut self, text: &str) {
        if let Some(said) = &mut self.said {
            said.push_str(text);
        }
        let Some(tail) = &mut self.tail else { return };
        tail.push_str(text.get(text.ceil_char_boundary(text.len().saturating_sub(self.overlap))..).unwrap_or(text));
        if tail.len() > 2 * self.overlap {
            tail.drain(..tail.ceil_char_boundary(tail.len() - self.overlap));
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
        match &mut self.restoring {
            Some(restoring) => restoring.settle(self.over && self.cleared == self.fed, relay, id),
            None => {
                relay.allow(id, self.cleared);
                Ok(())
            }
        }
    }
}

fn gone() -> Unheld {
    Unheld { reason: "the text is not there any more".to_owned() }
}

/// What came before a place, as much of it as may belong to a match.
fn before(track: &Track, place: usize) -> &str {
    end_before(track, place, CONTEXT)
}

/// The same as a search is to be shown it: from a word on.
pub(super) fn came_before(track: &Track, place: usize) -> &str {
    context(end_before(track, place, 2 * CONTEXT))
}

fn end_before(track: &Track, place: usize, length: usize) -> &str {
    let from = track.text.ceil_char_boundary((place - track.base.min(place)).saturating_sub(length));
    track.part(track.base + from..place).unwrap_or_default()
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
