//! `list`: a folder as a tree.

use std::sync::Arc;

use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::json;

use super::arguments::Count;
use super::aside::Stop;
use super::builtin::spec;
use super::on_files::on_files;
use super::workspace::{Entry, Go, Tried, Walk, Workspace, printable};
use super::{Tool, ToolOutput};

/// How deep a tree is, unless that is said.
const DEPTH: u64 = 2;
/// Entries that are named, and of one folder.
const ENTRIES: usize = 800;
const OF_FOLDER: usize = 200;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    depth: Option<Count>,
}

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Shows what is in a folder, as a tree: folders end in `/`, links in `@`. What .gitignore lists is \
                       left out.";
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The folder; the workspace if left out"},
            "depth": {"type": "integer", "minimum": 1, "description": "How deep; 2 if left out"},
        },
        "additionalProperties": false,
    });
    on_files(spec("list", description, parameters), list)
}

fn list(workspace: &Workspace, given: &Arguments, stop: &Stop) -> Tried<ToolOutput> {
    let folder = workspace.folder(given.path.as_deref().unwrap_or("."))?;
    let depth = given.depth.map_or(DEPTH, |count| count.0.max(1));
    let mut tree = Tree { text: format!("{}/\n", workspace.shown(&folder.path())), ..Tree::default() };
    let cut = Walk { hidden: true }.run(workspace, folder, stop, &mut |entry| {
        let go = tree.add(entry);
        if entry.depth as u64 >= depth { go.max(Go::Past) } else { go }
    })?;
    tree.close(0);
    let Tree { mut text, entries, .. } = tree;
    if entries == 0 {
        text.push_str("(nothing is in it)\n");
    }
    if entries > ENTRIES {
        text.push_str("(more follows: list a folder of it)\n");
    }
    if let Some(cut) = cut {
        text.push_str(&format!("(not all was looked at: {cut})\n"));
    }
    Ok(ToolOutput::text(text))
}

/// The tree so far.
#[derive(Default)]
struct Tree {
    text: String,
    entries: usize,
    /// Of each folder that is open, how many were met.
    of_folders: Vec<usize>,
}

impl Tree {
    fn add(&mut self, entry: &Entry<'_>) -> Go {
        self.close(entry.depth);
        self.of_folders.resize(entry.depth, 0);
        let Some(of_folder) = self.of_folders.last_mut() else { return Go::Stop };
        *of_folder += 1;
        if *of_folder > OF_FOLDER {
            return Go::Past;
        }
        self.entries += 1;
        if self.entries > ENTRIES {
            return Go::Stop;
        }
        let name = entry.path.file_name().map(|name| printable(&name.to_string_lossy())).unwrap_or_default();
        let mark = match entry.kind {
            FileType::Directory => "/",
            FileType::Symlink => "@",
            FileType::RegularFile => "",
            _ => " (no file)",
        };
        self.text.push_str(&format!("{:indent$}{name}{mark}\n", "", indent = entry.depth * 2));
        Go::On
    }

    /// Says what was left out of folders that are deeper than `depth`: nothing of them follows.
    fn close(&mut self, depth: usize) {
        while self.of_folders.len() > depth {
            let left = self.of_folders.pop().unwrap_or_default().saturating_sub(OF_FOLDER);
            if left > 0 {
                let indent = (self.of_folders.len() + 1) * 2;
                self.text.push_str(&format!("{:indent$}({left} more)\n", ""));
            }
        }
    }
}
