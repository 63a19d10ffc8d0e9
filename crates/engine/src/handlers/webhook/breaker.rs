use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Deadlines missed in a row that open the circuit.
const THRESHOLD: u32 = 5;

/// How long it stays open before one call may try again.
const OPEN_FOR: Duration = Duration::from_secs(1);

/// Keeps callers from waiting for a webhook that hangs: after five missed deadlines in a row nothing is sent for a
/// second, then one call at a time, until one is answered. A webhook that refuses or errs costs nobody time, and is
/// asked again at once.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// When the next call may be tried; `None` while the circuit is closed.
    open_until: Option<Instant>,
    probing: bool,
}

/// Leave to make one call. Dropped without a result, it counts as neither success nor failure.
pub(super) struct Permit<'a> {
    breaker: &'a Breaker,
    probe: bool,
}

impl Breaker {
    /// `None` while the circuit is open.
    pub(super) fn admit(&self, now: Instant) -> Option<Permit<'_>> {
        self.with(|state| {
            let probe = match state.open_until {
                None => false,
                Some(until) if until <= now && !state.probing => true,
                Some(_) => return None,
            };
            state.probing = probe;
            Some(Permit { breaker: self, probe })
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Permit<'_> {
    pub(super) fn succeeded(self) {
        self.breaker.with(|state| *state = State { probing: state.probing, ..State::default() });
    }

    pub(super) fn failed(self, now: Instant) {
        self.breaker.with(|state| {
            state.failures = state.failures.saturating_add(1);
            if state.failures >= THRESHOLD {
                state.open_until = Some(now + OPEN_FOR);
            }
        });
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.probe {
            self.breaker.with(|state| state.probing = false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(breaker: &Breaker, times: u32, now: Instant) {
        for _ in 0..times {
            breaker.admit(now).unwrap().failed(now);
        }
    }

    #[test]
    fn five_failures_in_a_row_open_it_for_five_seconds() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        fail(&breaker, 5, start);
        assert!(breaker.admit(start).is_none());
        assert!(breaker.admit(start + Duration::from_millis(999)).is_none());
        assert!(breaker.admit(start + OPEN_FOR).is_some());
    }

    #[test]
    fn a_success_in_between_starts_the_count_anew() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..3 {
            fail(&breaker, 4, now);
            breaker.admit(now).unwrap().succeeded();
        }
        assert!(breaker.admit(now).is_some());
    }

    #[test]
    fn one_probe_at_a_time_closes_or_opens_it_again() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        fail(&breaker, 5, start);
        let later = start + OPEN_FOR;
        let probe = breaker.admit(later).unwrap();
        assert!(breaker.admit(later).is_none());
        probe.failed(later);
        assert!(breaker.admit(later).is_none());
        breaker.admit(later + OPEN_FOR).unwrap().succeeded();
        fail(&breaker, 4, later);
        assert!(breaker.admit(later).is_some());
    }

    #[test]
    fn a_probe_that_was_given_up_lets_the_next_one_try() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        fail(&breaker, 5, start);
        drop(breaker.admit(start + OPEN_FOR));
        assert!(breaker.admit(start + OPEN_FOR).is_some());
    }
}
