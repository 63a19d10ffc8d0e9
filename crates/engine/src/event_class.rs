//! Which events the engine itself treats in their own way.

use gatehook_events::Event;

/// Whether an event stands around one model call. There `permission` is honoured, a rewrite that cannot be held
/// refuses, and a denial ends the sequence.
pub(crate) fn is_inference(event: Event) -> bool {
    matches!(event, Event::PreInference | Event::PostInference)
}
