//! `edit`: one text of a file becomes another.

mod closest;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use memchr::memmem;
use serde::Deserialize;
use serde_json::json;

use super::aside::Stop;
use super::builtin::spec;
use super::changes::{CONTENT, diff};
use super::on_files::on_files;
use super::workspace::{Refused, Tried, Workspace};
use super::{Tool, ToolErrorKind, ToolOutput, content};

/// Places that are named.
const NAMED: usize = 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: Option<bool>,
}

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Replaces a text of a file. `old_string` must be in it exactly as `read` shows it (without the \
                       line numbers), and once: take in lines around it, or set `replace_all`.";
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace or absolute"},
            "old_string": {"type": "string", "description": "What is there"},
            "new_string": {"type": "string", "description": "What is to be there"},
            "replace_all": {"type": "boolean", "description": "Wherever it is; else it must be there once"},
        },
        "required": ["path", "old_string", "new_string"],
        "additionalProperties": false,
    });
    on_files(spec("edit", description, parameters), edit)
}

fn edit(workspace: &Workspace, given: &Arguments, stop: &Stop) -> Tried<ToolOutput> {
    // A file that is not there is not made, nor the folders above it.
    workspace.file(&given.path)?;
    let mut target = workspace.target(&given.path)?;
    let _turn = target.turn(stop)?;
    let old = target.read()?;
    let name = workspace.shown(&target.path);
    if let Some(kind) = content::binary(&old) {
        return Err(invalid(format!("{name} is {kind}, not text")));
    }
    let all = given.replace_all.unwrap_or(false);
    let edited = replaced(&old, &given.old_string, &given.new_string, all);
    let Edited { content: new, lines } = edited.map_err(|wrong| invalid(wrong.told(&name, &old, &given.old_string)))?;
    if new.len() > CONTENT {
        return Err(invalid(format!("{name} would have {} bytes, and {CONTENT} are the most", new.len())));
    }
    let change = target.put(&new, stop)?;
    let text = match lines.as_slice() {
        [line] => format!("edited {name} at line {line}"),
        _ => format!("edited {name} at {} places: lines {}", lines.len(), listed(&lines)),
    };
    Ok(ToolOutput { text, diff: diff(&name, &old, &new), changes: vec![change], ..ToolOutput::default() })
}

fn invalid(text: String) -> Refused {
    Refused::new(ToolErrorKind::InvalidInput, text)
}

/// A text after an edit.
#[derive(Debug, PartialEq, Eq)]
struct Edited {
    content: Vec<u8>,
    /// Where it was edited.
    lines: Vec<usize>,
}

/// Why there is no edit.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    Empty,
    Same,
    Missing,
    /// It is there more than once, at these lines.
    Many(Vec<usize>),
}

/// `content` with `new` for `old`: for the one that is there, or for all of them, from the front. A file whose lines end
/// in `\r\n` has them so in both texts too.
fn replaced(content: &[u8], old: &str, new: &str, all: bool) -> Result<Edited, Wrong> {
    if old.is_empty() {
        return Err(Wrong::Empty);
    }
    if old == new {
        return Err(Wrong::Same);
    }
    match replaced_as_given(content, old.as_bytes(), new.as_bytes(), all) {
        Err(Wrong::Missing) if old.contains('\n') && !old.contains('\r') && content.contains(&b'\r') => {
            let with_returns = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
            replaced_as_given(content, with_returns(old).as_bytes(), with_returns(new).as_bytes(), all)
        }
        other => other,
    }
}

fn replaced_as_given(content: &[u8], old: &[u8], new: &[u8], all: bool) -> Result<Edited, Wrong> {
    let places = if all { memmem::find_iter(content, old).collect() } else { every_place(content, old) };
    if places.is_empty() {
        return Err(Wrong::Missing);
    }
    let lines = lines_of(content, &places);
    if !all && places.len() > 1 {
        return Err(Wrong::Many(lines));
    }
    let mut edited = Vec::with_capacity(content.len() + places.len() * new.len());
    let mut from = 0;
    for place in places {
        edited.extend_from_slice(content.get(from..place).unwrap_or_default());
        edited.extend_from_slice(new);
        from = place + old.len();
    }
    edited.extend_from_slice(content.get(from..).unwrap_or_default());
    Ok(Edited { content: edited, lines })
}

/// Where it is, also where one overlaps the next: which of both is meant is not known. Not more than are named, and one.
fn every_place(content: &[u8], old: &[u8]) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(place) = content.get(from..).and_then(|rest| finder.find(rest)).filter(|_| places.len() <= NAMED) {
        places.push(from + place);
        from += place + 1;
    }
    places
}

fn lines_of(content: &[u8], places: &[usize]) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    let mut lines = Vec::with_capacity(places.len());
    for place in places {
        line += memchr::memchr_iter(b'\n', content.get(from..*place).unwrap_or_default()).count();
        from = *place;
        lines.push(line);
    }
    lines
}

fn listed(lines: &[usize]) -> String {
    let named: Vec<String> = lines.iter().take(NAMED).map(usize::to_string).collect();
    let more = if lines.len() > NAMED { ", …" } else { "" };
    named.join(", ") + more
}

impl Wrong {
    fn told(&self, name: &str, content: &[u8], old: &str) -> String {
        match self {
            Self::Empty => "`old_string` is empty: name the text to replace, or use `write`".to_owned(),
            Self::Same => "`old_string` and `new_string` are the same".to_owned(),
            Self::Many(lines) => format!(
                "`old_string` is in {name} more than once, at lines {}: take in lines around it, or set `replace_all`",
                listed(lines)
            ),
            Self::Missing => {
                let closest = closest::told(&String::from_utf8_lossy(content), old);
                format!("`old_string` is not in {name}. {closest}")
            }
        }
    }
}
