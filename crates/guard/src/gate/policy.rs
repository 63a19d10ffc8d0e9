//! How one answer is held: the strictest of what its hooks want, for each kind of content.

use std::time::Duration;

use gatehook_engine::definition::ToolCalls;
use gatehook_engine::events::SegmentKind;
use gatehook_engine::{Held, Scan, Selected, Streaming};
use gatehook_inference::TrackKind;

/// How one answer is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) text: Held,
    pub(super) thinking: Held,
    pub(super) calls: Calls,
    /// Bytes that make a window due.
    pub(super) size: usize,
    /// How long text may wait for a window to fill.
    pub(super) max_wait: Duration,
    /// How much of what has left is shown before a segment.
    pub(super) overlap: usize,
    /// Characters at the end of a segment that are held for the next one.
    pub(super) holdback: usize,
    /// Some hook looks on, and is shown the whole at the end.
    pub(super) observed: bool,
    /// One of these keeps a record, and has it before the client has the end.
    pub(super) recorded: bool,
}

/// What tool calls wait for, of the hooks of `post_inference`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Calls {
    /// The answer is judged as a whole, and they with it.
    pub(super) whole: bool,
    /// Each is judged by itself, when it is complete and what judges the whole has left it.
    pub(super) each: bool,
}

impl Policy {
    /// The strictest of these hooks.
    pub(super) fn of(hooks: &[Selected<'_>]) -> Self {
        let mut policy = Self {
            text: Held::Observe,
            thinking: Held::Observe,
            calls: Calls::default(),
            size: usize::MAX,
            max_wait: Duration::MAX,
            overlap: 0,
            holdback: 0,
            observed: false,
            recorded: false,
        };
        for hook in hooks {
            let own = hook.policy();
            // Who says that it scans and has no scan cannot tell how far a text is settled.
            let blind = |held| held == Held::Scan && hook.scan().is_none();
            let held = |held| if blind(held) { Held::Buffer } else { held };
            policy.text = stricter(policy.text, held(own.text));
            policy.thinking = stricter(policy.thinking, held(own.thinking));
            let looks_on = own.text == Held::Observe || own.thinking == Held::Observe;
            policy.observed |= looks_on;
            policy.recorded |= looks_on && keeps_record(hook);
            if own.text == Held::Scan || own.thinking == Held::Scan {
                policy.overlap = policy.overlap.max(gatehook_scan::CONTEXT);
            }
            if own.text == Held::Window || own.thinking == Held::Window {
                policy.size = policy.size.min(own.size);
                policy.max_wait = policy.max_wait.min(own.max_wait);
                policy.overlap = policy.overlap.max(own.overlap);
                policy.holdback = policy.holdback.max(own.holdback);
            }
        }
        for hook in hooks.iter().filter(|hook| holds_calls(hook)) {
            let whole = policy.judges_the_whole(hook);
            policy.calls.whole |= whole;
            policy.calls.each |= !whole;
        }
        policy
    }

    pub(super) fn held(&self, kind: TrackKind) -> Held {
        match kind {
            TrackKind::Text => self.text,
            TrackKind::Thinking => self.thinking,
        }
    }

    /// Whether hooks judge what the model says, and do not only look on.
    pub(super) fn judges_text(&self) -> bool {
        self.text != Held::Observe || self.thinking != Held::Observe
    }

    /// Whether anything waits for the end of the answer to be judged as a whole.
    pub(super) fn waits_for_the_whole(&self) -> bool {
        self.text == Held::Buffer || self.thinking == Held::Buffer
    }

    /// Whether this hook judges segments of this kind.
    pub(super) fn judges_segments(&self, hook: &Selected<'_>, kind: SegmentKind) -> bool {
        let of = |kind| self.held(kind) != Held::Buffer && matches!(held(hook, kind), Held::Window | Held::Scan);
        match kind {
            SegmentKind::Text => of(TrackKind::Text),
            SegmentKind::Thinking => of(TrackKind::Thinking),
            SegmentKind::ToolCall => holds_calls(hook) && !self.judges_the_whole(hook),
        }
    }

    /// Whether this hook judges the answer as a whole, because it wants to or because something it judges waits for one
    /// that does.
    pub(super) fn judges_the_whole(&self, hook: &Selected<'_>) -> bool {
        let of = |kind| self.held(kind) == Held::Buffer && held(hook, kind) != Held::Observe;
        of(TrackKind::Text) || of(TrackKind::Thinking)
    }

    /// Whether this hook is shown the whole when all is decided.
    pub(super) fn observes(&self, hook: &Selected<'_>) -> bool {
        let own = hook.policy();
        (own.text == Held::Observe || own.thinking == Held::Observe) && !self.judges_the_whole(hook)
    }
}

/// Whether a hook that looks on does so by its nature, as an audit does. Others see the answer in the background.
pub(super) fn keeps_record(hook: &Selected<'_>) -> bool {
    hook.streams() == Streaming::Observe && !hook.definition.observer
}

/// What of a kind is held for one hook.
fn held(hook: &Selected<'_>, kind: TrackKind) -> Held {
    match kind {
        TrackKind::Text => hook.policy().text,
        TrackKind::Thinking => hook.policy().thinking,
    }
}

/// The scans of one track, of all hooks that scan its kind.
pub(super) fn scans(hooks: &[Selected<'_>], kind: TrackKind) -> Vec<Box<dyn Scan>> {
    hooks.iter().filter(|hook| held(hook, kind) == Held::Scan).filter_map(Selected::scan).collect()
}

fn holds_calls(hook: &Selected<'_>) -> bool {
    hook.policy().tool_calls == ToolCalls::Hold
}

fn stricter(one: Held, other: Held) -> Held {
    let rank = |held| match held {
        Held::Buffer => 3,
        Held::Window => 2,
        Held::Scan => 1,
        Held::Observe => 0,
    };
    if rank(other) > rank(one) { other } else { one }
}
