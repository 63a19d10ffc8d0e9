//! `add_prompt_files`: instructions that lie in the project, by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_events::{Event, Input, Output};
use serde_json::json;

use super::place::{self, Place};
use super::{Arguments, Judge, Judging};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;

const GROUP: &str = "core/prompt-files";
const INDEX: &str = "core/prompt-file-index";

/// Bytes of one file.
const LIMIT: usize = 256 << 10;
/// Folders that are looked into for the index.
const FOLDERS: usize = 10_000;
/// Files that the index has.
const LISTED: usize = 100;
/// How deep the index may look.
const MAX_DEPTH: usize = 16;

/// Folders that the index leaves out, beside hidden ones: what is in them was not written for this project.
const PASSED_OVER: &[&str] = &["node_modules", "target", "vendor", "dist", "build", "__pycache__"];

struct AddPromptFiles {
    place: Arc<Place>,
    names: Vec<String>,
    /// How many folders deep the index looks; 0 makes none.
    depth: usize,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let mut names = arguments.args;
    let mut depth = 0;
    if let Some((first, rest)) = names.split_first()
        && let Some(given) = first.strip_prefix("--depth=")
    {
        let read = given.trim().parse().ok().filter(|depth| (1..=MAX_DEPTH).contains(depth));
        if read.is_none() && arguments.is_native() {
            let message = format!("`--depth` takes a number from 1 to {MAX_DEPTH}");
            return Err(Arguments::wrong(message, "as in `args: [--depth=2, PROMPT.md]`"));
        }
        (depth, names) = (read.unwrap_or(0), rest);
    }
    if names.is_empty() && arguments.is_native() {
        return Err(Arguments::wrong("`add_prompt_files` takes names of files", "as in `args: [PROMPT.md]`"));
    }
    Ok(Judging::handler(AddPromptFiles { place: Place::of(arguments)?, names: names.to_vec(), depth }))
}

impl Judge for AddPromptFiles {
    const READS_FILES: bool = true;

    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        if self.names.is_empty() || !self.place.is_known(input) {
            return Ok(None);
        }
        let dir = self.place.dir(input);
        let mut files: Vec<(PathBuf, String)> = Vec::new();
        for name in self.names.iter().filter(|name| !name.trim().is_empty()) {
            let nearest = dir.ancestors().map(|folder| folder.join(name)).find(|path| path.is_file());
            let at_home = self.place.home().map(|home| home.join(name));
            for path in nearest.into_iter().chain(at_home) {
                if !files.iter().any(|(known, _)| *known == path)
                    && let Some(text) = place::read(&path, LIMIT)
                {
                    files.push((path, text));
                }
            }
        }
        let nested = if self.depth > 0 { self.nested(&dir) } else { Vec::new() };
        Ok(self.said(event, &files, &nested))
    }
}

impl AddPromptFiles {
    fn said(&self, event: Event, files: &[(PathBuf, String)], nested: &[String]) -> Option<Output> {
        let index = (!nested.is_empty()).then(|| {
            format!("More instructions lie below; read them before you work beside them:\n{}", nested.join("\n"))
        });
        if !self.place.instructs(event) {
            let texts = files.iter().map(|(_, text)| text.clone()).chain(index).collect::<Vec<_>>();
            return (!texts.is_empty()).then(|| Output::additional_context(event, texts.join("\n\n")));
        }
        let mut items: Vec<_> = files.iter().map(|(path, text)| place::file_instruction(GROUP, path, text)).collect();
        if items.is_empty() {
            // Files that were there in an earlier turn are gone.
            items.push(json!({"key": GROUP, "group": GROUP, "complete_group": true, "set_marker": true}));
        }
        items.extend(index.map(|text| json!({"key": INDEX, "label": "Prompt files", "content": text})));
        Some(place::instructions(event, items))
    }

    /// Files of these names in folders below, by their paths from here.
    fn nested(&self, dir: &Path) -> Vec<String> {
        let (mut found, mut looked) = (Vec::new(), 0);
        let mut level = vec![dir.to_owned()];
        for _ in 0..self.depth {
            let mut next = Vec::new();
            for folder in level {
                looked += 1;
                if looked > FOLDERS || found.len() >= LISTED {
                    return found;
                }
                next.extend(folders(&folder));
            }
            for folder in &next {
                let paths = self.names.iter().map(|name| folder.join(name)).filter(|path| path.is_file());
                let shown = paths.filter_map(|path| Some(path.strip_prefix(dir).ok()?.to_string_lossy().into_owned()));
                found.extend(shown.map(|path| path.escape_debug().to_string()));
            }
            level = next;
        }
        found.truncate(LISTED);
        found
    }
}

/// The folders in a folder, sorted; no links, so that the way is never a circle.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_looked_into = |name: &str| !name.starts_with('.') && !PASSED_OVER.contains(&name);
    let folders = entries.filter(|entry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_looked_into(&entry.file_name().to_string_lossy())
    });
    let mut folders: Vec<_> = folders.map(|entry| entry.path()).take(FOLDERS).collect();
    folders.sort_unstable();
    folders
}
