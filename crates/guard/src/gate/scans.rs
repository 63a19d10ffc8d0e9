//! The scans of one text, of all hooks that scan it: up to where it can be cut without harm to any of them.

use std::ops::Range;

use gatehook_engine::Scan;

/// The scans of one text. Offsets are absolute, of what came.
pub(super) struct Scans {
    each: Vec<Following>,
    /// They see the text from `start` on, and `context` bytes before it.
    start: usize,
    context: usize,
}

/// One scan.
struct Following {
    scan: Box<dyn Scan>,
    upto: usize,
    /// Stretches in which it has found something. A cut inside of one could part a match.
    found: Vec<Range<usize>>,
}

/// What scans say of all that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// No continuation changes what any of them finds before this, and no match lies across it.
    pub(super) settled: usize,
    /// Some of them have found something, and nothing from here on; 0: nothing.
    pub(super) found: usize,
    /// A match has grown too long to be waited for.
    pub(super) too_long: bool,
}

impl Following {
    #[cold]
    fn finds(&mut self, upto: usize) {
        self.found.push(self.upto.min(upto)..upto);
    }
}

impl Scans {
    /// For a text that begins behind `before`, which came before `start`.
    pub(super) fn new(scans: Vec<Box<dyn Scan>>, start: usize, before: &str) -> Self {
        let each = scans.into_iter().map(|mut scan| {
            if !before.is_empty() {
                scan.push(before, false);
            }
            Following { scan, upto: start, found: Vec::new() }
        });
        Self { each: each.collect(), start, context: before.len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// Shows them more of the text, which is `total` bytes long now.
    pub(super) fn push(&mut self, more: &str, total: usize, ended: bool) -> Told {
        let mut told = Told { settled: total, found: 0, too_long: false };
        for following in &mut self.each {
            let said = following.scan.push(more, ended);
            let upto = self.start + said.upto.saturating_sub(self.context);
            if !said.clean {
                following.finds(upto);
                told.found = told.found.max(upto);
            }
            following.upto = upto;
            told.settled = told.settled.min(upto);
            told.too_long |= said.too_long;
        }
        if ended && told.settled < total {
            // A scan that does not say so: hooks are shown what it has left.
            (told.found, told.settled) = (total, total);
        }
        if self.each.iter().any(|following| !following.found.is_empty()) {
            told.settled = self.forget(told.settled);
        }
        told
    }

    /// Forgets what was found before the place up to `at` where no match is cut; gives that place.
    #[cold]
    fn forget(&mut self, at: usize) -> usize {
        let settled = self.uncut(at);
        self.each.iter_mut().for_each(|following| following.found.retain(|found| found.end > settled));
        settled
    }

    /// Whether any of them waits for more of what it has not settled of a text, which ends in `held`; `delays`: what follows
    /// it waits too.
    pub(super) fn wait(&self, held: &str, total: usize, delays: bool) -> bool {
        self.each.iter().filter(|following| following.upto < total).any(|Following { scan, upto, .. }| {
            let own = held.get(held.len().saturating_sub(total - upto)..).unwrap_or(held);
            scan.waits(own, delays)
        })
    }

    /// The last place up to `at` where no match of any of them is cut: one may have settled what another has not.
    fn uncut(&self, mut at: usize) -> usize {
        let found = || self.each.iter().flat_map(|following| &following.found);
        while let Some(start) =
            found().filter(|found| found.start < at && at < found.end).map(|found| found.start).min()
        {
            at = start;
        }
        at
    }
}
