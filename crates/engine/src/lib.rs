//! Runs hooks on events and aggregates what they answer into one verdict.
//!
//! The way of one event: [`Executor::dispatch`] selects the hooks whose event, matcher and conditions fit, runs them
//! (side by side where they only judge, one after another where they rewrite), reads each reply, and folds all of them,
//! in configuration order, into one [`Verdict`](gatehook_events::Verdict).
//!
//! - [`config`]: files of YAML, JSON or TOML into [`definition`]s, with diagnostics that show the place.
//! - [`handler`]: what runs a hook; [`registry`]: which handlers and builtins there are; [`streaming`]: how a streamed
//!   answer is held for them.
//! - [`process`]: processes of a host's own. [`client`]: requests of a host's own.
//! - [`trust`]: which hooks of a project may run; [`env_file`]: what its `setup` hooks leave to later ones.
//!
//! It knows no HTTP server, no agent and no foreign dialect by name.

mod aggregate;
pub mod builtins;
pub mod client;
mod compiled;
pub mod config;
mod content;
pub mod context_files;
pub mod definition;
mod dispatch;
pub mod env_file;
mod event_class;
pub mod executor;
pub mod find;
pub mod handler;
pub mod handlers;
mod identity;
pub mod matcher;
mod observers;
pub mod process;
pub mod registry;
pub mod reply;
pub mod repository;
mod rewrite;
pub mod schema;
mod shown;
pub mod streaming;
pub mod template;
pub mod text;
pub mod time;
pub mod trust;
mod unrunnable;

/// The vocabulary: events, inputs, outputs and verdicts.
pub use gatehook_events as events;
pub(crate) use gatehook_events::unique;

pub use compiled::Fit;
pub use definition::{HandlerDefinition, HookDefinition, HookGroup, HooksConfig, OnError};
pub use dispatch::Hold;
pub use executor::{BuildError, Executor, HookInfo, Options, Pick, Selected};
pub use find::{Find, Found, Others};
pub use handler::{Handler, HandlerEnv, HandlerError, HandlerFactory, HookCall, Judgement, Payload, Reply};
pub use handlers::model::ModelClient;
pub use registry::{BuiltinContext, BuiltinResult, Registry};
pub use streaming::{Held, Policy, Scan, Settled, Streaming};
