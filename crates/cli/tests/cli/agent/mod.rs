//! The agent through the real binary: every event at its moment, with its payload, and its verdict obeyed.

mod calls;
mod changes;
pub(crate) mod driven;
mod long;
mod matrix;
mod mcp;
mod order;
mod project;
mod skills;
mod team;
mod worktrees;
