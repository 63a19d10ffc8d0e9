//! What stands around one model call, with functions as hooks and no network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod gate;
mod permits;
mod placeholders;
mod recorded;
mod results;
mod streams;
mod tools;
mod world;
