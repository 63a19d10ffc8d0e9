//! An agent in which every lifecycle event happens: it asks a model, runs the tools that the model calls, and obeys the
//! verdicts of hooks at each step. A person is asked through a trait, and a session is kept through another.
//!
//! - [`session`]: from a prompt to the model's last word, with every event at its moment.
//! - [`agents`]: who works.
//! - [`approval`]: whether a call runs.
//! - [`conversation`]: what a session is, out of what was kept of it. [`export`]: the same for others to read.
//! - [`mcp`]: tools of MCP servers.
//! - [`model`]: one question to a model, with the hooks of the wire around it.
//! - [`report`]: what whoever looks on is told.
//! - [`skills`]: what an agent follows when it is asked to. [`watch`]: what becomes of files meanwhile.
//! - [`team`]: the agents as files define them.
//! - [`tools`]: what a model may call.

pub mod agents;
pub mod approval;
pub mod conversation;
pub mod export;
pub mod mcp;
pub mod model;
pub mod report;
pub mod session;
pub mod skills;
pub mod team;
pub mod tools;
pub mod watch;
