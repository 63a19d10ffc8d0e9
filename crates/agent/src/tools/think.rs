//! `think`: a place for a thought.

use serde::Deserialize;
use serde_json::json;

use super::builtin::spec;
use super::{Calling, Tool, ToolOutput, ToolSpec, Working, arguments};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    thought: String,
}

/// The tool.
pub(super) struct Think {
    spec: ToolSpec,
}

impl Think {
    pub(super) fn new() -> Self {
        let description = "Notes a thought: a plan, a doubt, what follows from what was seen. It changes nothing.";
        let parameters = json!({
            "type": "object",
            "properties": {"thought": {"type": "string"}},
            "required": ["thought"],
            "additionalProperties": false,
        });
        Self { spec: spec("think", description, parameters) }
    }
}

impl Tool for Think {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, call: Calling<'a>) -> Working<'a> {
        let given: Result<Arguments, _> = arguments::read(call.arguments);
        let output = given.map_or_else(ToolOutput::from, |given| ToolOutput::text(given.thought));
        Box::pin(std::future::ready(output))
    }
}
