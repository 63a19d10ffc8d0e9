//! `add_directory_listing`: the model knows what lies before it.

use std::sync::Arc;

use gatehook_events::{Event, Input};

use super::place::Place;
use super::{Arguments, Judge, Judging};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;

/// Entries that are shown.
const SHOWN: usize = 100;
/// Entries that are read.
const READ: usize = 100_000;

struct AddDirectoryListing(Arc<Place>);

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    arguments.none("add_directory_listing")?;
    Ok(Judging::handler(AddDirectoryListing(Place::of(arguments)?)))
}

impl Judge for AddDirectoryListing {
    const READS_FILES: bool = true;

    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        let dir = self.0.dir(input);
        let Ok(entries) = std::fs::read_dir(&dir) else { return Ok(None) };
        let named = entries.take(READ).flatten().map(|entry| {
            let slash = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
            // A name may hold line breaks, and must not look like several.
            (entry.file_name().to_string_lossy().escape_debug().to_string(), slash)
        });
        let mut names: Vec<_> =
            named.filter(|(name, _)| !name.starts_with('.')).map(|(name, slash)| name + slash).collect();
        if names.is_empty() {
            return Ok(None);
        }
        names.sort_unstable();
        let more = names.len().saturating_sub(SHOWN);
        names.truncate(SHOWN);
        if more > 0 {
            names.push(format!("… and {more} more"));
        }
        let text = format!("Files in {}:\n{}", dir.display(), names.join("\n"));
        Ok(Some(self.0.say(event, "core/directory", "Files", text)))
    }
}
