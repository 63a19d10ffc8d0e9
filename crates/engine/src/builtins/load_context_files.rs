//! `load_context_files`: what a project tells every agent, from the outermost folder to the innermost.

use std::path::Path;
use std::sync::Arc;

use gatehook_events::{Event, Input, Output};

use super::place::{self, Place};
use super::{Arguments, Judge, Judging};
use crate::context_files::{self, ContextFile};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;
use crate::repository;

const GROUP: &str = "core/context-files";
const NAMES: &[&str] = &["OLLAMA.md", "AGENTS.md", "CLAUDE.md"];

struct LoadContextFiles {
    place: Arc<Place>,
    names: Vec<String>,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    if arguments.args.iter().any(|name| name.is_empty() || name.contains('/')) {
        let message = "`load_context_files` takes names of files, without folders";
        return Err(Arguments::wrong(message, "as in `args: [GEMINI.md]`; without any it looks for the usual three"));
    }
    let names = match arguments.args {
        [] => NAMES.iter().map(|&name| name.to_owned()).collect(),
        given => given.to_vec(),
    };
    Ok(Judging::handler(LoadContextFiles { place: Place::of(arguments)?, names }))
}

impl Judge for LoadContextFiles {
    const READS_FILES: bool = true;

    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        let files = self.files(&self.place.dir(input));
        if files.is_empty() {
            return Ok(None);
        }
        if !self.place.instructs(event) {
            let texts = files
                .iter()
                .map(|ContextFile { path, text }| format!("Instructions from {}:\n\n{text}", path.display()));
            return Ok(Some(Output::additional_context(event, texts.collect::<Vec<_>>().join("\n\n"))));
        }
        let items = files.iter().map(|ContextFile { path, text }| place::file_instruction(GROUP, path, text)).collect();
        Ok(Some(place::instructions(event, items)))
    }
}

impl LoadContextFiles {
    /// From the repository's folder, else from the home directory or, outside of it, from the root, to `dir`.
    fn files(&self, dir: &Path) -> Vec<ContextFile> {
        let home = || self.place.home().filter(|home| dir.starts_with(home));
        let top = repository::root(dir).or_else(home);
        context_files::read(dir, top.as_deref(), &self.names)
    }
}
