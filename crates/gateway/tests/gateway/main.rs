//! Real gateways on loopback, between a raw upstream and a raw client.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod attacks;
mod bounds;
mod concurrent;
mod doors;
mod faults;
mod feed;
mod frames;
mod holes;
mod judges;
mod late;
mod leaks;
mod life;
mod passing;
mod stream_faults;
mod streams;
mod support;
mod verdicts;
