//! What the mock upstream and the load generator of `cargo xtask bench` share.
//!
//! Both are one thread around epoll and do as little as HTTP allows, so that what stands between them is what a
//! measurement shows. Sockets stay blocking: a socket is read once each time it is ready, and what is written fits its
//! send buffer, or the other side is reading.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "both binaries answer on their standard output")]

pub mod exchange;
pub mod message;
pub mod ready;
pub mod response;
pub mod stream;
