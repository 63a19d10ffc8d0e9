//! `allow_tools`: only tools whose names fit.

use std::sync::Arc;

use gatehook_events::{Event, Input};
use regex_automata::meta::Regex;

use super::{Arguments, Judge, Judging, NoText, deny};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::matcher::anchored;
use crate::registry::BuiltinResult;
use crate::streaming::{Scan, Streaming};

struct AllowTools {
    names: Regex,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    if arguments.args.is_empty() {
        return Err(Arguments::wrong(
            "`allow_tools` takes patterns of tool names",
            "as in `args: [read_file, \"git_.*\"]`",
        ));
    }
    let wrong = |message: String| Arguments::wrong(message, "patterns are anchored at both ends");
    let patterns: Result<Vec<_>, _> = arguments.args.iter().map(|pattern| anchored(pattern, None)).collect();
    let patterns = patterns.map_err(|error| wrong(error.to_string()))?;
    let names = Regex::new_many(&patterns).map_err(|error| wrong(error.to_string()))?;
    Ok(Judging::handler(AllowTools { names }))
}

impl Judge for AllowTools {
    const STREAMS: Streaming = Streaming::Scan;

    fn scan(&self) -> Option<Box<dyn Scan>> {
        Some(Box::new(NoText::default()))
    }

    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        let named: Vec<&str> = match event {
            Event::ToolInputTransform
            | Event::ToolGuard
            | Event::PreToolUse
            | Event::PreToolUsePreempt
            | Event::PermissionRequest => {
                // A call without a name cannot be on the list.
                vec![input.tool_name.as_deref().unwrap_or_default()]
            }
            _ => input.tool_calls.iter().flat_map(|calls| calls.iter()).map(|call| &*call.function.name).collect(),
        };
        let refused = named.into_iter().find(|name| !self.names.is_match(*name));
        Ok(refused.map(|name| deny(event, format!("the tool `{name}` is not allowed"))))
    }
}
