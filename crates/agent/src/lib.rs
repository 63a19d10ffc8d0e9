//! What an agent does around its tool calls. No IO of its own: hooks run in an
//! [`Executor`](gatehook_engine::Executor), and a person is asked through a trait.
//!
//! - [`approval`]: whether a call runs.

pub mod approval;
