//! The agent through the real binary: every event at its moment, with its payload, and its verdict obeyed.

mod changes;
mod dialects;
mod driven;
mod long;
mod mcp;
mod order;
mod project;
mod skills;
mod verdicts;
mod worktrees;
