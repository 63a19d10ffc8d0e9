//! Real gateways on loopback, between a raw upstream and a raw client.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod attacks;
mod bounds;
mod concurrent;
mod doors;
mod faults;
#[allow(dead_code, reason = "streams are to come")]
mod feed;
mod holes;
mod life;
mod passing;
mod support;
mod verdicts;
