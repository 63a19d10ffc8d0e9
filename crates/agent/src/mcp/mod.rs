//! Tools of MCP servers (<https://modelcontextprotocol.io>), over standard input and output, or HTTP.

mod definition;

pub use definition::{Naming, Reached, ServerDefinition};
