//! `write`: a file as a whole.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::aside::Stop;
use super::builtin::spec;
use super::changes::{CONTENT, diff};
use super::on_files::on_files;
use super::workspace::{Refused, Tried, Workspace};
use super::{ChangeKind, Tool, ToolErrorKind, ToolOutput};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Writes a file: a new one, or all of one that is there. Folders above it are made. To change a \
                       part of a file use `edit`.";
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace or absolute"},
            "content": {"type": "string", "description": "All that it is to hold"},
        },
        "required": ["path", "content"],
        "additionalProperties": false,
    });
    on_files(spec("write", description, parameters), write)
}

fn write(workspace: &Workspace, given: &Arguments, stop: &Stop) -> Tried<ToolOutput> {
    if given.content.len() > CONTENT {
        let text = format!("`content` has {} bytes, and {CONTENT} are the most", given.content.len());
        return Err(Refused::new(ToolErrorKind::InvalidInput, text));
    }
    let mut target = workspace.target(&given.path)?;
    let _turn = target.turn(stop)?;
    let old = target.read()?;
    let name = workspace.shown(&target.path);
    let new = given.content.as_bytes();
    if target.exists() && old == new {
        return Ok(ToolOutput::text(format!("{name} holds that already")));
    }
    let change = target.put(new, stop)?;
    let done = if change.kind == ChangeKind::Created { "created" } else { "replaced" };
    let text = format!("{done} {name}: {} lines, {} bytes", given.content.lines().count(), new.len());
    Ok(ToolOutput { text, diff: diff(&name, &old, new), changes: vec![change], ..ToolOutput::default() })
}
