//! Matches under way: a pattern begun at places of a growing text, byte by byte.

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::{PatternID, StateID};

/// What is kept of a growing text. Offsets are absolute; a first byte that is not the text's stands behind others that
/// are kept, so that no pattern takes the beginning of what is kept for that of the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'t> {
    pub(crate) text: &'t [u8],
    /// The offset of the first byte.
    pub(crate) base: usize,
    /// Nothing follows.
    pub(crate) ended: bool,
}

impl<'t> View<'t> {
    pub(crate) fn end(&self) -> usize {
        self.base + self.text.len()
    }

    /// The text from `at` on.
    pub(crate) fn from(&self, at: usize) -> &'t [u8] {
        self.text.get(at.saturating_sub(self.base)..).unwrap_or_default()
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at.checked_sub(self.base)?).copied()
    }
}

/// The matches of one automaton that may still come about.
///
/// A simulation of the automaton: the states that can be reached, each with the earliest place it can be reached from;
/// what began later and is in the same state has the same future. So there are never more than the automaton has
/// states, and the time is linear in the text. Assertions about what follows (`$`, `\b`) wait for it.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    /// Where the simulation stands.
    at: usize,
    /// In order of `start`, each state once.
    threads: Vec<Thread>,
    /// The threads behind the next byte, while they are gathered.
    next: Vec<Thread>,
    /// By state: the round in which it was reached last.
    seen: Vec<u32>,
    round: u32,
    stack: Vec<StateID>,
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    state: StateID,
    start: usize,
}

/// What a simulation comes upon.
pub(crate) trait Watch {
    /// A match of `pattern` from `start` to `end`; longer ones from the same place may follow.
    fn matched(&mut self, pattern: PatternID, start: usize, end: usize);
    /// What stands at `at` decides whether a match goes on there, or ends.
    fn hinges(&mut self, at: usize);
}

impl Growth {
    /// None under way, at `at`.
    pub(crate) fn new(at: usize) -> Self {
        Self { at, ..Self::default() }
    }

    /// Whether nothing is under way.
    pub(crate) fn is_over(&self) -> bool {
        self.threads.is_empty()
    }

    /// Where the simulation stands.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The earliest place at which something under way began.
    pub(crate) fn earliest(&self) -> Option<usize> {
        self.threads.first().map(|thread| thread.start)
    }

    /// Lets go of all, and stands at `at`.
    pub(crate) fn restart(&mut self, at: usize) {
        self.threads.clear();
        self.at = at;
    }

    /// Stands at `at`, if nothing is under way.
    pub(crate) fn stand(&mut self, at: usize) {
        if self.threads.is_empty() {
            self.at = at;
        }
    }

    /// Begins the patterns here, as of `start`.
    pub(crate) fn begin(&mut self, nfa: &NFA, view: View<'_>, start: usize, watch: &mut impl Watch) {
        self.seen.resize(nfa.states().len(), 0); // at the first time only
        self.mark();
        let threads = std::mem::take(&mut self.threads);
        for thread in &threads {
            self.reach(thread.state);
        }
        self.enter(nfa, view, nfa.start_anchored(), start, watch);
        self.threads = threads;
        self.threads.append(&mut self.next);
    }

    /// Steps on to `to`, or until nothing is under way.
    pub(crate) fn advance(&mut self, nfa: &NFA, view: View<'_>, to: usize, watch: &mut impl Watch) {
        self.resolve(nfa, view, watch);
        while self.at < to && !self.threads.is_empty() {
            let Some(byte) = view.byte(self.at) else { break };
            self.step(nfa, view, byte, watch);
        }
    }

    /// Adds what is under way in `other`, which stands at the same place.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.mark();
        let mut threads = std::mem::take(&mut self.threads);
        threads.extend(other.threads);
        threads.sort_by_key(|thread| thread.start);
        threads.retain(|thread| self.reach(thread.state));
        self.threads = threads;
    }

    /// Steps over `byte`, the next.
    pub(crate) fn step(&mut self, nfa: &NFA, view: View<'_>, byte: u8, watch: &mut impl Watch) {
        self.at += 1;
        self.mark();
        let threads = std::mem::take(&mut self.threads);
        for &Thread { state, start } in &threads {
            if let Some(state) = target(nfa.state(state), byte) {
                self.enter(nfa, view, state, start, watch);
            }
        }
        self.threads = threads;
        self.take_next();
    }

    /// Resolves the assertions that waited for what has come.
    pub(crate) fn resolve(&mut self, nfa: &NFA, view: View<'_>, watch: &mut impl Watch) {
        let waits = |thread: &Thread| matches!(nfa.state(thread.state), State::Look { .. });
        if (self.at >= view.end() && !view.ended) || !self.threads.iter().any(waits) {
            return;
        }
        self.mark();
        let threads = std::mem::take(&mut self.threads);
        for &Thread { state, start } in &threads {
            self.enter(nfa, view, state, start, watch);
        }
        self.threads = threads;
        self.take_next();
    }

    /// Adds `state` and all that can be reached from it without a byte.
    fn enter(&mut self, nfa: &NFA, view: View<'_>, state: StateID, start: usize, watch: &mut impl Watch) {
        self.stack.push(state);
        while let Some(state) = self.stack.pop() {
            if !self.reach(state) {
                continue;
            }
            match nfa.state(state) {
                State::Union { alternates } => self.stack.extend(alternates.iter().rev()),
                State::BinaryUnion { alt1, alt2 } => self.stack.extend([*alt2, *alt1]),
                State::Capture { next, .. } => self.stack.push(*next),
                State::Fail => {}
                State::Match { pattern_id } => watch.matched(*pattern_id, start, self.at),
                State::Look { look, next } => {
                    watch.hinges(self.at);
                    let at = self.at.saturating_sub(view.base);
                    if at >= view.text.len() && !view.ended {
                        self.next.push(Thread { state, start });
                    } else if at <= view.text.len() && nfa.look_matcher().matches(*look, view.text, at) {
                        self.stack.push(*next);
                    }
                }
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => self.next.push(Thread { state, start }),
            }
        }
    }

    /// Begins a round.
    fn mark(&mut self) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.seen.fill(0);
            self.round = 1;
        }
    }

    /// Whether `state` is reached for the first time in this round.
    fn reach(&mut self, state: StateID) -> bool {
        let Some(seen) = self.seen.get_mut(state.as_usize()) else { return false };
        std::mem::replace(seen, self.round) != self.round
    }

    fn take_next(&mut self) {
        std::mem::swap(&mut self.threads, &mut self.next);
        self.next.clear();
    }
}

/// The state behind `byte`.
pub(crate) fn target(state: &State, byte: u8) -> Option<StateID> {
    match state {
        State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
        State::Sparse(sparse) => sparse.matches_byte(byte),
        State::Dense(dense) => dense.matches_byte(byte),
        _ => None,
    }
}
