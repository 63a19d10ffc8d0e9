//! How a hook wants a streamed answer: what its handler can do, what its definition says, and what comes of both.

use std::time::Duration;

use gatehook_scan::is_plain;
pub use gatehook_scan::{HOLD_LIMIT, Settled};

use crate::definition::{HookDefinition, Stream, StreamMode, ToolCalls};

/// What a handler does with an answer that is streamed, where its definition says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Streaming {
    /// It judges the whole: nothing leaves before.
    #[default]
    Whole,
    /// It tells how far a text that grows is settled ([`Handler::scan`](crate::Handler::scan)): what is, may leave.
    Scan,
    /// It looks on, and decides nothing: nothing waits for it.
    Observe,
}

/// Follows one growing text, and tells how far it is settled.
///
/// One scan follows one track: the text, or the thinking, of one choice. Where text follows after all that was said to be
/// the last, a new scan is begun with up to 256 bytes of what came before.
///
/// ```
/// use gatehook_engine::{Scan, Settled};
///
/// /// Holds the last word.
/// #[derive(Default)]
/// struct Words {
///     came: usize,
///     upto: usize,
/// }
///
/// impl Scan for Words {
///     fn push(&mut self, more: &str, ended: bool) -> Settled {
///         let space = more.rfind(' ').map(|at| self.came + at + 1);
///         self.came += more.len();
///         self.upto = if ended { self.came } else { space.unwrap_or(self.upto) };
///         Settled { upto: self.upto, clean: false, too_long: false }
///     }
/// }
///
/// let mut words = Words::default();
/// assert_eq!(words.push("to be or n", false).upto, 9);
/// assert_eq!(words.push("ot", true).upto, 12);
/// ```
pub trait Scan: Send {
    /// More of the text; `ended`: nothing follows. Offsets are absolute, in bytes of all that was pushed.
    ///
    /// What is settled and [`clean`](Settled::clean) leaves at once, without a dispatch; what is not clean is shown to the
    /// hook first. Where a match is [`too_long`](Settled::too_long) the answer is refused. What is not settled is held by
    /// the host: a scan that settles nothing holds all, up to the host's bound.
    fn push(&mut self, more: &str, ended: bool) -> Settled;

    /// Text of the other kind has followed, and the text may go on behind that or not: whether `held`, what is not settled
    /// of it, stays held until then, or until the answer ends. It must where what is looked for may begin with it.
    ///
    /// `delays`: it is thinking, and the text behind it is the answer, which is not to wait for what any thinking may end
    /// in. By default a word does not stay then, nor a short number that a sentence ends with.
    fn waits(&self, held: &str, delays: bool) -> bool {
        !delays || !is_plain(held)
    }
}

impl Scan for gatehook_scan::Carry {
    fn push(&mut self, more: &str, ended: bool) -> Settled {
        self.push(more, ended)
    }

    fn waits(&self, held: &str, delays: bool) -> bool {
        if delays { self.has_begun(held) } else { self.may_begin(held) }
    }
}

impl Scan for gatehook_scan::Growing {
    fn push(&mut self, more: &str, ended: bool) -> Settled {
        self.push(more, ended)
    }

    /// Nothing is held but what a pattern has begun to fit.
    fn waits(&self, _: &str, _: bool) -> bool {
        true
    }
}

impl Scan for gatehook_scan::pii::Growing {
    fn push(&mut self, more: &str, ended: bool) -> Settled {
        self.push(more, ended)
    }

    fn waits(&self, held: &str, delays: bool) -> bool {
        !delays || self.has_begun(held)
    }
}

/// What of a track is held for a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// All of it, until it is over.
    Buffer,
    /// A window that moves over it.
    Window,
    /// What the hook's scan has not settled.
    Scan,
    /// Nothing; the hook is shown the whole at the end.
    Observe,
}

impl Held {
    /// Its word: `buffer`, `window`, `scan` or `observe`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Buffer => "buffer",
            Self::Window => "window",
            Self::Scan => "scan",
            Self::Observe => "observe",
        }
    }
}

/// How one hook is shown a streamed answer, with every default in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// What of the text is held.
    pub text: Held,
    /// What of the thinking is held.
    pub thinking: Held,
    /// Whether tool calls wait for it.
    pub tool_calls: ToolCalls,
    /// New bytes that make a window due; [`WINDOW_SIZE`] by default.
    pub size: usize,
    /// How long the first byte of a window may wait for it to fill; [`WINDOW_WAIT`] by default.
    pub max_wait: Duration,
    /// Bytes of what has left that are shown before a window, less than `size`; [`WINDOW_OVERLAP`] by default, or half of a
    /// `size` that is less than twice as much.
    pub overlap: usize,
    /// Characters at the end of a window that stay held for the next; 0 by default.
    pub holdback: usize,
}

/// Default of [`Policy::size`], in bytes.
pub const WINDOW_SIZE: usize = 1024;
/// Default of [`Policy::max_wait`].
pub const WINDOW_WAIT: Duration = Duration::from_millis(50);
/// Default of [`Policy::overlap`], in bytes.
pub const WINDOW_OVERLAP: usize = 256;

impl Policy {
    /// What a definition and its handler come to. An `async` hook looks on, whatever else is said.
    pub fn of(definition: &HookDefinition, handler: Streaming) -> Self {
        let stream = definition.stream.filter(|_| !definition.observer);
        let handler = if definition.observer { Streaming::Observe } else { handler };
        let mode = stream.map(|stream| stream.mode);
        let size = stream.and_then(|stream| stream.size).unwrap_or(WINDOW_SIZE);
        let thinking = stream.and_then(|stream| stream.thinking).or(mode);
        Self {
            text: held(mode, handler),
            thinking: held(thinking, handler),
            tool_calls: match stream {
                Some(Stream { tool_calls, .. }) => tool_calls,
                None if handler == Streaming::Observe => ToolCalls::Pass,
                None => ToolCalls::Hold,
            },
            size,
            max_wait: stream.and_then(|stream| stream.max_wait).unwrap_or(WINDOW_WAIT),
            overlap: stream.and_then(|stream| stream.overlap).unwrap_or_else(|| WINDOW_OVERLAP.min(size / 2)),
            holdback: stream.and_then(|stream| stream.holdback).unwrap_or_default(),
        }
    }
}

/// What is written, else what the handler does. A window over what scans is a scan: it holds less and leaks nothing.
fn held(written: Option<StreamMode>, handler: Streaming) -> Held {
    match (written, handler) {
        (Some(StreamMode::Buffer), _) | (None, Streaming::Whole) => Held::Buffer,
        (Some(StreamMode::Window) | None, Streaming::Scan) => Held::Scan,
        (Some(StreamMode::Window), _) => Held::Window,
        (Some(StreamMode::Observe), _) | (None, Streaming::Observe) => Held::Observe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(stream: Option<Stream>, handler: Streaming) -> Policy {
        Policy::of(&HookDefinition { stream, ..HookDefinition::builtin("b", &[]) }, handler)
    }

    #[test]
    fn what_is_written_goes_before_what_the_handler_does_but_a_scan_stays_one() {
        use StreamMode::{Buffer, Observe, Window};
        for (written, whole, scan, observe) in [
            (None, Held::Buffer, Held::Scan, Held::Observe),
            (Some(Buffer), Held::Buffer, Held::Buffer, Held::Buffer),
            (Some(Window), Held::Window, Held::Scan, Held::Window),
            (Some(Observe), Held::Observe, Held::Observe, Held::Observe),
        ] {
            let stream = written.map(Stream::new);
            for (handler, held) in [(Streaming::Whole, whole), (Streaming::Scan, scan), (Streaming::Observe, observe)] {
                let policy = policy(stream, handler);
                assert_eq!((policy.text, policy.thinking), (held, held), "{written:?} {handler:?}");
            }
        }
    }

    #[test]
    fn thinking_may_be_held_otherwise_than_text() {
        let stream = Stream { thinking: Some(StreamMode::Observe), ..Stream::new(StreamMode::Buffer) };
        let policy = policy(Some(stream), Streaming::Whole);
        assert_eq!((policy.text, policy.thinking), (Held::Buffer, Held::Observe));
    }

    #[test]
    fn tool_calls_wait_for_every_hook_that_does_not_only_look_on() {
        let pass = Stream { tool_calls: ToolCalls::Pass, ..Stream::new(StreamMode::Buffer) };
        for (stream, handler, tool_calls) in [
            (None, Streaming::Whole, ToolCalls::Hold),
            (None, Streaming::Scan, ToolCalls::Hold),
            (None, Streaming::Observe, ToolCalls::Pass),
            (Some(Stream::new(StreamMode::Observe)), Streaming::Observe, ToolCalls::Hold),
            (Some(pass), Streaming::Whole, ToolCalls::Pass),
        ] {
            assert_eq!(policy(stream, handler).tool_calls, tool_calls, "{stream:?} {handler:?}");
        }
    }

    #[test]
    fn nothing_waits_for_an_async_hook() {
        let stream = Some(Stream::new(StreamMode::Buffer));
        let hook = HookDefinition { observer: true, stream, ..HookDefinition::builtin("b", &[]) };
        let policy = Policy::of(&hook, Streaming::Whole);
        assert_eq!((policy.text, policy.thinking, policy.tool_calls), (Held::Observe, Held::Observe, ToolCalls::Pass));
    }

    #[test]
    fn an_overlap_is_always_less_than_its_window() {
        for size in [None, Some(1), Some(2), Some(300), Some(100_000)] {
            let policy = policy(Some(Stream { size, ..Stream::new(StreamMode::Window) }), Streaming::Whole);
            assert!(policy.overlap < policy.size, "{policy:?}");
        }
    }
}
