//! `block_patterns`: texts that must not pass.

use std::sync::Arc;

use gatehook_events::{Event, Input};
use gatehook_scan::{Growing, Patterns};
use regex_automata::meta::Regex;

use super::{Arguments, Judge, Judging, deny, texts};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;
use crate::streaming::{Scan, Streaming};

struct BlockPatterns {
    regex: Regex,
    /// The same, for texts that grow.
    growing: Arc<Patterns>,
    /// How a refusal calls each pattern.
    names: Vec<String>,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    if arguments.args.is_empty() {
        return Err(Arguments::wrong("`block_patterns` takes patterns", "as in `args: [\"(?i)internal use only\"]`"));
    }
    let help = "a pattern is a regular expression; a first group with a name, as in `(?<codename>falcon)`, names it";
    let names: Result<Vec<_>, _> =
        arguments.args.iter().enumerate().map(|(place, pattern)| name(place, pattern)).collect();
    let names = names.map_err(|message| Arguments::wrong(message, help))?;
    let regex = Regex::new_many(arguments.args).map_err(|error| Arguments::wrong(error.to_string(), help))?;
    let growing = Patterns::new(arguments.args).map_err(|error| Arguments::wrong(error.to_string(), help))?;
    Ok(Judging::handler(BlockPatterns { regex, growing, names }))
}

/// By its first named group, else by its number, from 1: what was found is never repeated.
fn name(place: usize, pattern: &str) -> Result<String, String> {
    let regex = regex::Regex::new(pattern).map_err(|error| {
        // The error draws the pattern first, and says what is wrong with it last.
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("pattern {} is not a regular expression: {why}", place + 1)
    })?;
    let name = regex.capture_names().flatten().next();
    Ok(name.map_or_else(|| format!("pattern {}", place + 1), |name| format!("pattern `{name}`")))
}

impl Judge for BlockPatterns {
    const BY_CONTENT: bool = true;
    const STREAMS: Streaming = Streaming::Scan;

    fn scan(&self) -> Option<Box<dyn Scan>> {
        Some(Box::new(Growing::new(self.growing.clone())))
    }

    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        let mut found = None;
        texts::any(event, input, &mut |text| {
            found = self.regex.find(text).map(|found| found.pattern());
            found.is_some()
        });
        let name = found.and_then(|pattern| self.names.get(pattern.as_usize()));
        Ok(name.map(|name| deny(event, format!("blocked by {name}"))))
    }
}
