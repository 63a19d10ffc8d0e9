//! Which files are looked at: not what `.gitignore` and `.ollamaignore` name, and nothing in `.git`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gatehook_engine::repository;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Files that say it; of one folder the later one has the last word.
const NAMES: &[&str] = &[".gitignore", ".ollamaignore"];

/// The rules of the workspace, by the folder that they stand in.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    top: PathBuf,
    /// A folder that nobody looks at.
    without: Option<PathBuf>,
    rules: HashMap<PathBuf, Vec<Gitignore>>,
}

impl Ignored {
    /// Those that stand above a workspace and in it. Reads files.
    pub(super) fn of(workspace: &Path, without: Option<&Path>) -> Self {
        let top = repository::root(workspace).unwrap_or_else(|| workspace.to_owned());
        let without = without.map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()));
        let mut ignored = Self { top: top.clone(), without, rules: HashMap::new() };
        for folder in workspace.ancestors().take_while(|folder| folder.starts_with(&top)) {
            ignored.read(folder);
        }
        // What the repository's owner keeps to themselves.
        if let Some(own) = rules(&top, &top.join(".git/info/exclude")) {
            ignored.rules.entry(top).or_default().insert(0, own);
        }
        ignored
    }

    /// Reads the rules of a folder once more.
    pub(super) fn read(&mut self, folder: &Path) {
        let of = NAMES.iter().filter_map(|name| rules(folder, &folder.join(name)));
        let of: Vec<Gitignore> = of.collect();
        if of.is_empty() {
            self.rules.remove(folder);
        } else {
            self.rules.insert(folder.to_owned(), of);
        }
    }

    /// Forgets a folder and what is below it.
    pub(super) fn forget(&mut self, folder: &Path) {
        self.rules.retain(|of, _| !of.starts_with(folder));
    }

    /// Whether a file of this name has rules in it.
    pub(super) fn is_rules(path: &Path) -> bool {
        path.file_name().is_some_and(|name| NAMES.iter().any(|known| name == *known))
    }

    /// Whether this is not looked at, whose folder is.
    pub(super) fn has(&self, path: &Path, is_folder: bool) -> bool {
        if path.file_name().is_some_and(|name| name == ".git") || self.without.as_deref() == Some(path) {
            return true;
        }
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.top)) {
            for rules in self.rules.get(folder).into_iter().flatten().rev() {
                match rules.matched(path, is_folder) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
        }
        false
    }
}

fn rules(folder: &Path, file: &Path) -> Option<Gitignore> {
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let mut builder = GitignoreBuilder::new(folder);
    // Of a list with a bad line the others hold.
    let _ = builder.add(file);
    builder.build().ok().filter(|rules| !rules.is_empty())
}
