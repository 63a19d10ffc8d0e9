//! What Gatehook remembers, in SQLite: traces of dispatches, and sessions of the agent. Each has a file of its own. Traces
//! come in masses, are thrown away after a while, hold no secrets, and nobody waits for them. Sessions hold what was said,
//! word for word, until somebody removes them, and whoever writes one waits for it: a lock or a damage of the one file
//! must not be the other's.
//!
//! - [`TraceWriter`]: takes traces from the engine without making it wait, and writes them on a thread of its own. It
//!   is a [`Recorder`](gatehook_events::Recorder).
//! - [`TraceReader`]: answers questions about them. It is a [`Traces`](gatehook_events::trace::Traces).
//! - [`Sessions`]: keeps sessions as they happen, on a thread of its own. It is a [`Journal`](gatehook_events::Journal).
//! - [`SessionArchive`]: answers questions about them, and removes them.
//!
//! A schema is a list of steps, of which a file counts how many it has taken: a new table is a file in `tables` and a step
//! in `schema.rs`. What is kept of an input in a trace holds no secret that `gatehook-scan` knows, and no more than
//! [`MAX_INPUT`] bytes. No hook and no verdict depends on traces: what fails there is said, counted, and left at that.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use gatehook_events::trace::{Query, Traces};
//! use gatehook_events::{Event, Input, Recorder, Trace, Verdict};
//! use gatehook_store::{Keep, TraceReader, TraceWriter};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("gatehook.db");
//! let writer = TraceWriter::new(path.clone(), "agent", Keep::default());
//! let input = Input { tool_name: Some("shell".into()), ..Input::default() };
//! writer.record(Trace::of(Event::PreToolUse, &input, &Verdict::allow(), SystemTime::now(), Duration::ZERO));
//! writer.drain(Duration::from_secs(5));
//!
//! let reader = TraceReader::open(&path)?.expect("it was made");
//! let traces = reader.traces(&Query::default())?;
//! assert_eq!(traces[0].input["tool_name"], "shell");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod database;
mod kept;
mod reader;
mod schema;
mod sessions;
mod tables;
mod weight;
mod writer;

pub use kept::MAX_INPUT;
pub use reader::TraceReader;
pub use sessions::{Filter, Listed, Named, SessionArchive, SessionError, Sessions};
pub use writer::{Drained, Keep, QUEUE, QUEUE_BYTES, TraceWriter};

#[cfg(test)]
mod tests;
