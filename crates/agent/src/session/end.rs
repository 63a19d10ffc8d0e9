//! How a turn ends, and how what the user began does.

use gatehook_engine::events::{Event, JournalError, Verdict};

/// Why a turn ended, as hooks read it in `reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The model is done.
    Normal,
    /// Another turn follows: tools have answered, or a hook wants it so.
    Continue,
    /// Another turn follows, for the user has said something meanwhile.
    Steered,
    /// Another turn follows, of the agent that takes over whenever this one is done.
    ForceHandoff,
    /// Something failed.
    Error,
    /// The person or the caller gave up.
    Canceled,
    /// A hook ended it.
    HookBlocked,
    /// The model calls the same tools again and again.
    LoopDetected,
    /// The cap on iterations is reached, and nobody let it go on.
    MaxIterations,
}

const NAMES: &[(Reason, &str)] = &[
    (Reason::Normal, "normal"),
    (Reason::Continue, "continue"),
    (Reason::Steered, "steered"),
    (Reason::ForceHandoff, "force_handoff"),
    (Reason::Error, "error"),
    (Reason::Canceled, "canceled"),
    (Reason::HookBlocked, "hook_blocked"),
    (Reason::LoopDetected, "loop_detected"),
    (Reason::MaxIterations, "max_iterations"),
];

impl Reason {
    /// As in `hook_blocked`.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(reason, _)| *reason == self).map_or("", |(_, name)| name)
    }
}

/// What ends a run before the model is done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    /// A hook of this event ended it, and says why.
    Blocked(Event, String),
    /// Something failed, while doing this.
    Failed(&'static str, String),
    /// The person or the caller gave up.
    Canceled,
    /// The same calls came so many times in a row.
    Looped(usize),
    /// So many iterations were the most.
    Capped(u64),
}

impl End {
    /// The reason of the turn that it ends.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Blocked(..) => Reason::HookBlocked,
            Self::Failed(..) => Reason::Error,
            Self::Canceled => Reason::Canceled,
            Self::Looped(_) => Reason::LoopDetected,
            Self::Capped(_) => Reason::MaxIterations,
        }
    }

    /// What was done, and what the person is told of it; `None` where they know.
    pub(super) fn said(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Blocked(event, why) if why.is_empty() => {
                Some((event.public_name(), format!("A {} hook has ended this.", event.public_name())))
            }
            Self::Blocked(event, why) => Some((event.public_name(), why.clone())),
            Self::Failed(doing, why) => Some((doing, why.clone())),
            Self::Looped(times) => {
                Some(("tool_call", format!("The model has made the same tool calls {times} times in a row.")))
            }
            Self::Canceled | Self::Capped(_) => None,
        }
    }
}

impl From<JournalError> for End {
    fn from(error: JournalError) -> Self {
        Self::Failed("session", format!("The session cannot be kept: {error}"))
    }
}

/// Lets a verdict pass that lets its host go on.
pub(super) fn pass(event: Event, verdict: Verdict) -> Result<Verdict, End> {
    if verdict.allowed { Ok(verdict) } else { Err(End::Blocked(event, why(&verdict))) }
}

/// Why a hook refused, in its own words.
pub(super) fn why(verdict: &Verdict) -> String {
    let said = [&verdict.message, &verdict.decision_reason].into_iter().find(|said| !said.trim().is_empty());
    said.cloned().unwrap_or_default()
}
