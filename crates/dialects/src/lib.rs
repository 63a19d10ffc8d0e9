//! Foreign hook contracts: how they spell events, inputs and answers. Tables, and the oddities by name.
//!
//! - [`ollama_cli`]: Ollama CLI, PascalCase events, an envelope with the facts flat beside it.
//! - [`ollm`]: OLLM CLI's hook protocol 1.0.0, kebab-case events, `{event, context, metadata}`.
//!
//! Each implements [`Dialect`]. What a contract means, as who may block, is its profile's; a host registers the dialects
//! that it wants:
//!
//! ```
//! use gatehook_events::{Event, Profile};
//!
//! let ollm = gatehook_dialects::all().into_iter().find(|dialect| dialect.profile() == Profile::Ollm).unwrap();
//! assert_eq!(ollm.event("pre-tool-call"), Some(Event::PreToolUse));
//! ```
//!
//! No IO. A new contract is a file here, a row in `events::profile` and its names in `events::catalogue`.

pub mod ollama_cli;
pub mod ollm;
mod path;
mod reply;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use gatehook_events::Dialect;

pub use ollama_cli::OllamaCli;
pub use ollm::Ollm;

/// Every contract of this crate.
pub fn all() -> Vec<Arc<dyn Dialect>> {
    vec![Arc::new(OllamaCli), Arc::new(Ollm)]
}
