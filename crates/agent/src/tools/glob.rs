//! `glob`: files by their names.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::json;

use super::aside::Stop;
use super::builtin::spec;
use super::on_files::on_files;
use super::workspace::{Go, Refused, Tried, Walk, Workspace, printable};
use super::{Tool, ToolErrorKind, ToolOutput};

/// Files that are named.
const FILES: usize = 500;
/// Bytes of a pattern.
const PATTERN: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
}

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Finds files by name, as with `**/*.rs` or `src/{a,b}*.ts`: `*` stays within a folder, `**` does \
                       not. What .gitignore lists is left out, and so are names with a dot in front unless the pattern \
                       has one.";
    let parameters = json!({
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "Over paths relative to `path`; one without `/` is over names"},
            "path": {"type": "string", "description": "The folder to look in; the workspace if left out"},
        },
        "required": ["pattern"],
        "additionalProperties": false,
    });
    on_files(spec("glob", description, parameters), glob)
}

/// A pattern over paths, and whether it is meant for hidden ones too.
pub(super) struct Pattern {
    glob: GlobMatcher,
    pub(super) hidden: bool,
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Tried<Self> {
        let invalid = |why: &str| {
            let shown: String = pattern.chars().take(100).collect();
            Refused::new(ToolErrorKind::InvalidInput, format!("`{}` is no pattern: {why}", printable(&shown)))
        };
        if pattern.is_empty() || pattern.len() > PATTERN {
            return Err(invalid("it is empty, or longer than 1000 bytes"));
        }
        let trimmed = pattern.trim_start_matches("./");
        if trimmed.starts_with('/') || trimmed.split('/').any(|part| part == "..") {
            return Err(invalid("it is over paths below `path`: set that to the folder"));
        }
        let whole = if trimmed.contains('/') { trimmed.to_owned() } else { format!("**/{trimmed}") };
        let glob = GlobBuilder::new(&whole).literal_separator(true).build();
        let glob = glob.map_err(|error| invalid(&error.kind().to_string()))?.compile_matcher();
        let hidden = trimmed.split(['/', '{', ',']).any(|part| part.starts_with('.'));
        Ok(Self { glob, hidden })
    }

    pub(super) fn fits(&self, below: &std::path::Path) -> bool {
        self.glob.is_match(below)
    }
}

fn glob(workspace: &Workspace, given: &Arguments, stop: &Stop) -> Tried<ToolOutput> {
    let pattern = Pattern::new(&given.pattern)?;
    let folder = workspace.folder(given.path.as_deref().unwrap_or("."))?;
    let start = folder.path();
    let (mut text, mut found) = (String::new(), 0_usize);
    let cut = Walk { hidden: pattern.hidden }.run(workspace, folder, stop, &mut |entry| {
        let is_file = matches!(entry.kind, FileType::RegularFile | FileType::Symlink);
        if is_file && entry.path.strip_prefix(&start).is_ok_and(|below| pattern.fits(below)) {
            found += 1;
            if found > FILES {
                return Go::Stop;
            }
            text.push_str(&workspace.shown(entry.path));
            text.push('\n');
        }
        Go::On
    })?;
    if found == 0 {
        text.push_str("(no file fits)\n");
    }
    if found > FILES {
        text.push_str("(there are more than 500: narrow the pattern or the path)\n");
    }
    if let Some(cut) = cut {
        text.push_str(&format!("(not all was looked at: {cut})\n"));
    }
    Ok(ToolOutput::text(text))
}
