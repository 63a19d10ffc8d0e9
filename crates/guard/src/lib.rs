//! What stands around one model call: hooks before it, and hooks after it. No IO of its own.
//!
//! The way of one call:
//!
//! 1. [`Guard::before`] reads the request's bytes, shows new tool results to the `tool_response_transform` hooks and the
//!    whole to the `pre_inference` hooks, and gives back the bytes for the upstream, the same or rewritten, as
//!    [`Admitted`]. [`Guard::beside`] asks those that judge while the upstream works.
//! 2. [`Guard::after`] does so with a whole answer: one `post_inference` for each choice, then `tool_guard` and
//!    `pre_tool_use` for each tool call.
//! 3. A [`Gate`] does so with a streamed one: bytes of the upstream in, what may leave out.
//!
//! Each gives a [`Refusal`] instead where a hook refuses, where none can judge, or where a body can be read in two ways.
//!
//! Where a hook asks, the guard refuses, unless its host has somebody who [`Permits`].
//!
//! A [`Call`] is who calls and what about; its [`Witness`] is told every verdict. [`session_of`] says which session an
//! exchange belongs to.

mod call;
mod gate;
mod guard;
mod heed;
mod permits;
mod placeholders;
mod refusal;
mod remembered;
mod results;
mod session;
mod tools;

pub use call::{Call, Caller, OwnedCall, Witness};
pub use gate::{Aside, Gate, GateSettings, UpstreamEnd, Work};
pub use guard::{Admitted, EVENTS, Guard, both};
pub use permits::{Permits, Permitting};
pub use refusal::Refusal;
pub use session::session_of;
