//! One file for each command.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod fire;
pub(crate) mod git;
pub(crate) mod hooks;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod setup;
pub(crate) mod stats;
pub(crate) mod trace;
pub(crate) mod trust;
