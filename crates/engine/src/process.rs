//! Processes of a host's own, started and ended as those of hooks are: each in a group of its own, with a deadline,
//! within a sandbox where that is wanted, and nothing of it left behind.

pub use crate::definition::Sandbox;
pub use crate::handlers::command::environment::inherited;
pub use crate::handlers::command::job::{End, NoSandbox, Starter};
pub use crate::handlers::command::{adopt_orphans, end_leftovers};
pub use crate::handlers::worker::living::{Living, Pipes};
