//! Six inference wire formats: read into one view for hooks, and rewritten in the bytes they came in.
//!
//! - [`Path`], [`Route`], [`TextRoute`], [`Wire`]: whose bodies are read, and what family they speak.
//! - [`Request::read`] and [`Response::read`]: bytes to view. What two readers could take for two different things
//!   is refused ([`ReadError`]).
//! - [`Request::rewrite`] and [`Response::rewrite`]: a changed view back into the bytes, by the smallest edit; what
//!   is not named keeps its bytes. What the route cannot hold is said ([`Unheld`]).
//! - [`Relay`]: a stream, shown as it comes and let go piece by piece.
//! - [`refusal_body`]: an error or refusal as the caller's own SDK reads it.
//!
//! No IO, no async runtime. A route is a file under `request` and one under `response`: a description of where its
//! texts stand. The reader and the edits under `json`, and the way back in `rewrite`, are shared by all.

mod alternatives;
mod error;
mod fingerprint;
mod json;
mod refusal;
mod request;
mod response;
mod rewrite;
mod route;
mod stream;
mod usage;
mod view;

pub use error::{ReadError, Unheld};
pub use json::weight;
pub use refusal::{ErrorKind, HookNote, Phase, refusal_body};
pub use request::{Request, RequestView, may_hold_approval};
pub use response::{Choice, Response};
pub use rewrite::{arguments_of, with_arguments};
pub use route::{Path, Route, TextRoute, Wire};
pub use stream::{
    Block, Call, CallId, Completion, Ending, FRAME_LIMIT, Fate, Fault, Framing, LOOK_BACK, Notes, Relay, Seal, Track,
    TrackId, TrackKind, keep_alive,
};
pub use usage::Tokens;
