//! What Gatehook remembers, in one SQLite file: traces of dispatches.
//!
//! - [`Database`]: the file. Its schema is a list of steps, of which a file counts how many it has taken.
//! - [`TraceWriter`]: takes traces from the engine without making it wait, and writes them on a thread of its own. It
//!   is a [`Recorder`](gatehook_events::Recorder).
//! - [`TraceReader`]: answers questions about them. It is a [`Traces`](gatehook_events::trace::Traces).
//!
//! What is kept of an input holds no secret that `gatehook-scan` knows, and no more than [`MAX_INPUT`] bytes. A new table
//! is a file in `tables` and a step in `schema.rs`. No hook and no verdict depends on any of this: what fails here is
//! said, counted, and left at that.
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
mod tables;
mod weight;
mod writer;

pub use database::Database;
pub use kept::MAX_INPUT;
pub use reader::TraceReader;
pub use writer::{Drained, Keep, QUEUE, QUEUE_BYTES, TraceWriter};

#[cfg(test)]
mod tests;
