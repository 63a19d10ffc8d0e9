//! The agent through the real binary: every event at its moment, with its payload, and its verdict obeyed.

mod dialects;
mod driven;
mod long;
mod mcp;
mod order;
mod verdicts;
