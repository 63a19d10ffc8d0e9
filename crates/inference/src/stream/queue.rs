//! The frames that are held, in the order in which they came.
//!
//! Only the first frame of each lane can be the next one to leave, and only something that concerns its lane can free it:
//! what is looked at again after a decision does not grow with what is held.

use std::collections::{BTreeMap, VecDeque};

use super::frame::{Frame, Lane};

/// Frames are known by the number with which they came.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// In order. One that has left before another one leaves a gap; the first is none, and no more than half are.
    frames: VecDeque<(u64, Option<Frame>)>,
    gaps: usize,
    lanes: BTreeMap<Lane, VecDeque<u64>>,
    /// First frames of lanes that may be free, as far as is known. The first of them stands last.
    due: Vec<u64>,
    came: u64,
    /// What the frames weigh.
    weight: usize,
}

impl Queue {
    pub(super) fn push(&mut self, frame: Frame) {
        let number = self.came;
        self.came += 1;
        self.weight += frame.weight();
        let lane = self.lanes.entry(frame.lane).or_default();
        let is_first = lane.is_empty();
        lane.push_back(number);
        self.frames.push_back((number, Some(frame)));
        if is_first {
            self.now_due(number);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// All of them, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter_map(|(_, frame)| frame.as_ref())
    }

    pub(super) fn clear(&mut self) {
        *self = Self { came: self.came, ..Self::default() };
    }

    /// Gives its room back, where nothing is held and what comes now is held elsewhere.
    pub(super) fn release(&mut self) {
        if self.is_empty() && self.frames.capacity() > 0 {
            self.clear();
        }
    }

    /// Something was decided that concerns frames of a lane.
    pub(super) fn look_at(&mut self, lane: Lane) {
        match lane {
            // Nearly always there is one at most.
            _ if self.frames.len() < 2 => self.look_at_front(),
            Lane::All | Lane::Free => self.look_at_all(),
            _ => lane.crossing().for_each(|lane| self.first(lane).into_iter().for_each(|first| self.now_due(first))),
        }
    }

    /// Something was decided that may concern any.
    pub(super) fn look_at_all(&mut self) {
        self.due.extend(self.lanes.values().filter_map(|lane| lane.front()));
        self.due.sort_unstable_by(|one, two| two.cmp(one));
        self.due.dedup();
    }

    fn look_at_front(&mut self) {
        if let Some((first, _)) = self.frames.front() {
            self.now_due(*first);
        }
    }

    fn now_due(&mut self, number: u64) {
        if let Err(place) = self.due.binary_search_by(|due| number.cmp(due)) {
            self.due.insert(place, number);
        }
    }

    /// The next frame that is not behind another one, and that is `ready`. In order; none is asked about twice without
    /// something that concerns it.
    pub(super) fn next(&mut self, mut ready: impl FnMut(&Frame) -> bool) -> Option<Frame> {
        while let Some(number) = self.due.pop() {
            let Some(place) = self.place(number) else { continue };
            let Some((_, Some(frame))) = self.frames.get(place) else { continue };
            if !self.waits(number, frame.lane) && ready(frame) {
                return self.remove(place);
            }
        }
        None
    }

    fn place(&self, number: u64) -> Option<usize> {
        // Nearly always it is the first.
        match self.frames.front() {
            Some((first, _)) if *first == number => Some(0),
            _ => self.frames.binary_search_by_key(&number, |(number, _)| *number).ok(),
        }
    }

    /// Whether something is held that the first frame of a lane must not overtake.
    fn waits(&self, number: u64, lane: Lane) -> bool {
        let before = |other: u64| other < number;
        match lane {
            _ if !self.frames.front().is_some_and(|(first, _)| before(*first)) => false,
            // What says nothing stands in nobody's way, and leaves as soon as it is the first.
            Lane::All | Lane::Free => true,
            _ => lane.crossing().any(|lane| self.first(lane).is_some_and(before)),
        }
    }

    fn first(&self, lane: Lane) -> Option<u64> {
        self.lanes.get(&lane)?.front().copied()
    }

    fn remove(&mut self, place: usize) -> Option<Frame> {
        let frame = self.frames.get_mut(place)?.1.take()?;
        self.gaps += 1;
        self.weight = self.weight.saturating_sub(frame.weight());
        if let Some(lane) = self.lanes.get_mut(&frame.lane) {
            lane.pop_front();
        }
        if place == 0 {
            self.close_up();
            self.look_at_front();
        }
        match frame.lane {
            Lane::Free => self.first(Lane::Free).into_iter().for_each(|first| self.now_due(first)),
            lane => self.look_at(lane),
        }
        if 2 * self.gaps > self.frames.len() {
            self.frames.retain(|(_, frame)| frame.is_some());
            self.gaps = 0;
        }
        Some(frame)
    }

    /// The first is no gap again.
    fn close_up(&mut self) {
        while let Some((_, None)) = self.frames.front() {
            self.frames.pop_front();
            self.gaps -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TrackKind;
    use super::super::lines::{Fields, Framing, Raw};
    use super::*;

    fn frame(name: &str, lane: Lane) -> Frame {
        let raw = Raw::made(name.as_bytes().to_vec());
        let (mut frame, _) = Frame::new(Framing::Lines, (raw, Fields::default()));
        frame.lane = lane;
        frame
    }

    const TEXT: Lane = Lane::Track(0, TrackKind::Text);
    const THINKING: Lane = Lane::Track(0, TrackKind::Thinking);

    #[test]
    fn frames_leave_in_order_and_overtake_only_those_of_other_lanes() {
        let held = ["think 1", "text 1", "stop", "other", "comment", "usage", "text 2"];
        let lanes = [THINKING, TEXT, Lane::Choice(0), Lane::Track(1, TrackKind::Text), Lane::Free, Lane::All, TEXT];
        for (waits, expected) in [
            ("", &held[..]),
            ("think 1", &["text 1", "other"]),
            ("stop", &["think 1", "text 1", "other"]),
            ("other", &["think 1", "text 1", "stop"]),
            ("usage", &["think 1", "text 1", "stop", "other", "comment"]),
        ] {
            let mut queue = Queue::default();
            held.iter().zip(lanes).for_each(|(name, lane)| queue.push(frame(name, lane)));
            let mut left = Vec::new();
            while let Some(frame) = queue.next(|frame| frame.bytes() != waits.as_bytes()) {
                left.push(String::from_utf8(frame.bytes().to_vec()).unwrap());
            }
            assert_eq!(left, expected, "while {waits:?} waits");
            assert!(waits.is_empty() || queue.next(|_| true).is_none(), "nothing has been decided: {waits:?}");
            queue.look_at_all();
            let rest = std::iter::from_fn(|| queue.next(|_| true)).count();
            assert_eq!(left.len() + rest, held.len(), "after {waits:?} has waited");
            assert!(queue.is_empty() && queue.weight() == 0);
        }
    }

    #[test]
    fn what_is_looked_at_again_does_not_grow_with_what_is_held() {
        let (mut queue, mut looks, mut left) = (Queue::default(), 0, 0);
        for _ in 0..10_000 {
            queue.push(frame("held", THINKING));
            queue.push(frame("text", TEXT));
            queue.look_at(TEXT);
            while let Some(frame) = queue.next(|frame| {
                looks += 1;
                frame.lane == TEXT
            }) {
                left += 1;
                assert_eq!(frame.bytes(), b"text");
            }
        }
        assert_eq!(left, 10_000);
        assert!(looks <= 3 * left, "{looks} looks");
    }
}
