//! The binary as its users meet it: commands, outputs, exit codes, and a gateway that serves.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod agent;
mod agents;
mod answers;
mod chat;
mod check;
mod cookbook;
mod demo;
mod dialects;
mod discovery;
mod fire;
mod git;
mod import;
mod judging;
mod list;
mod living;
mod misbehaving;
mod output;
mod pages;
mod payloads;
mod published;
mod reload;
mod remembering;
mod replaying;
mod schema;
mod serve;
mod sessions;
mod setup;
mod starting;
mod support;
mod trust;
mod trying;
