//! `load_context_files`: what a project tells every agent, from the outermost folder to the innermost.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_events::{Event, Input, Output};

use super::globs::{Globs, LIST_LIMIT};
use super::place::{self, Place, repository};
use super::{Arguments, Judge, Judging};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;

const GROUP: &str = "core/context-files";
const NAMES: &[&str] = &["OLLAMA.md", "AGENTS.md", "CLAUDE.md"];
const IGNORE: &str = ".ollamaignore";

/// Bytes of one file.
const LIMIT: usize = 64 << 10;
/// Bytes of all of them.
const TOGETHER: usize = 256 << 10;

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
            let texts = files.iter().map(|(path, text)| format!("Instructions from {}:\n\n{text}", path.display()));
            return Ok(Some(Output::additional_context(event, texts.collect::<Vec<_>>().join("\n\n"))));
        }
        let items = files.iter().map(|(path, text)| place::file_instruction(GROUP, path, text)).collect();
        Ok(Some(place::instructions(event, items)))
    }
}

impl LoadContextFiles {
    fn files(&self, dir: &Path) -> Vec<(PathBuf, String)> {
        let folders = folders(dir, self.place.home().as_deref());
        let lists: Vec<(&Path, Globs)> = folders
            .iter()
            .filter_map(|folder| {
                Some((folder.as_path(), Globs::of_lines(&place::read(&folder.join(IGNORE), LIST_LIMIT)?)))
            })
            .collect();
        let is_ignored = |path: &Path| {
            lists.iter().any(|(folder, list)| {
                path.strip_prefix(folder).is_ok_and(|relative| list.has(&relative.to_string_lossy()))
            })
        };
        let (mut files, mut size, mut seen) = (Vec::new(), 0, Vec::new());
        for path in folders.iter().flat_map(|folder| self.names.iter().map(|name| folder.join(name))) {
            // One file may have several of the names, by links.
            let Ok(real) = path.canonicalize() else { continue };
            if is_ignored(&path) || is_ignored(&real) || seen.contains(&real) || !is_trusted(&real, dir) {
                continue;
            }
            let Some(text) = place::read(&path, LIMIT) else { continue };
            size += text.len();
            if size > TOGETHER {
                tracing::warn!(path = %path.display(), "context files come to more than 256 KiB; the rest is left out");
                break;
            }
            seen.push(real);
            files.push((path, text));
        }
        files
    }
}

/// Where files may lie, the outermost first: from the repository's folder, else from the home directory or, outside of
/// it, from the root, to `dir`.
fn folders(dir: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let top = repository(dir).or_else(|| home.filter(|home| dir.starts_with(home)).map(Path::to_owned));
    let mut folders: Vec<PathBuf> = dir.ancestors().map(Path::to_owned).collect();
    folders.retain(|folder| top.as_deref().is_none_or(|top| folder.starts_with(top)));
    folders.reverse();
    folders
}

/// What strangers put above a folder, as into `/tmp`, instructs nobody: a file's owner is this user, root, or who owns
/// the folder that is worked in.
fn is_trusted(path: &Path, dir: &Path) -> bool {
    let owner = |path: &Path| path.metadata().ok().map(|metadata| metadata.uid());
    let us = rustix::process::geteuid().as_raw();
    owner(path).is_some_and(|of| of == us || of == 0 || Some(of) == owner(dir))
}
