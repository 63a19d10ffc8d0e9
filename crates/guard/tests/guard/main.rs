//! What stands around one model call, with functions as hooks and no network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod results;
mod tools;
mod world;
