//! `read`: lines of a file, with their numbers.

use std::io::{BufRead, BufReader};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::arguments::Count;
use super::aside::{Stop, Stopped};
use super::builtin::spec;
use super::lines::Lines;
use super::on_files::on_files;
use super::workspace::{Opened, Refused, Tried, Workspace};
use super::{Tool, ToolErrorKind, ToolOutput, content};

/// Lines that one call gives, and bytes: more would be cut by `limit_large_tool_results`.
const LINES: u64 = 1500;
const BYTES: usize = 48 << 10;
/// Bytes of a line that are shown.
const WIDTH: usize = 2000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    #[serde(default)]
    offset: Option<Count>,
    #[serde(default)]
    limit: Option<Count>,
}

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Reads a text file and gives its lines with their numbers. Long files come in parts: go on with \
                       `offset`.";
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace or absolute"},
            "offset": {"type": "integer", "minimum": 1, "description": "The first line, from 1"},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines; 1500 at most"},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    on_files(spec("read", description, parameters), read)
}

fn read(workspace: &Workspace, given: &Arguments, stop: &Stop) -> Tried<ToolOutput> {
    let opened = workspace.file(&given.path)?;
    let name = workspace.shown(&opened.path);
    let (first, most) = (given.offset.map_or(1, |count| count.0.max(1)), given.limit.map_or(LINES, |count| count.0));
    let size = opened.stat.st_size;
    let mut reader = BufReader::with_capacity(64 << 10, Stopped { from: &opened.file, stop });
    let start = reader.fill_buf().map_err(|error| stop.broken(&name, &error))?;
    if let Some(kind) = content::binary(start) {
        let text = format!("{name} is {kind} of {size} bytes: it has no lines to show");
        let kind = (!content::is_image(kind)).then_some(ToolErrorKind::InvalidInput);
        return Ok(ToolOutput { text, error: kind, ..ToolOutput::default() });
    }
    Part { name, first, most: most.clamp(1, LINES) }.read(reader, &opened, stop)
}

/// Which lines are read of which file.
struct Part {
    name: String,
    first: u64,
    most: u64,
}

impl Part {
    fn read(&self, reader: impl BufRead, opened: &Opened, stop: &Stop) -> Tried<ToolOutput> {
        let mut lines = Lines::new(reader);
        let (mut line, mut text, mut number) = (Vec::new(), String::new(), 0_u64);
        let (mut has_returns, mut is_lossy, mut next) = (false, false, None);
        while let Some(found) = lines.next(&mut line, WIDTH).map_err(|error| stop.broken(&self.name, &error))? {
            number += 1;
            if number < self.first {
                continue;
            }
            let shown = shown(&line, found.size, &mut is_lossy);
            if number - self.first >= self.most || (text.len() + shown.len() + 8 > BYTES && number > self.first) {
                next = Some(number);
                break;
            }
            has_returns |= found.has_return;
            text.push_str(&format!("{number:>6}\t{shown}\n"));
        }
        if number == 0 {
            return Ok(ToolOutput::text(format!("({} is empty)", self.name)));
        }
        if number < self.first {
            let text = format!("{} has {number} lines: there is no line {}", self.name, self.first);
            return Err(Refused::new(ToolErrorKind::InvalidInput, text));
        }
        if let Some(next) = next {
            let size = opened.stat.st_size;
            text.push_str(&format!("(more follows, of {size} bytes in all: go on with offset {next})\n"));
        }
        for (is_so, note) in [
            (has_returns, "(lines end in \\r\\n)\n"),
            (is_lossy, "(not all of it is UTF-8: � stands for other bytes)\n"),
        ] {
            if is_so {
                text.push_str(note);
            }
        }
        Ok(ToolOutput::text(text))
    }
}

fn shown(line: &[u8], size: u64, is_lossy: &mut bool) -> String {
    let cut = size - (line.len() as u64).min(size);
    // A character that is cut in the middle is no other byte.
    let whole = match std::str::from_utf8(line) {
        Err(error) if cut > 0 && error.error_len().is_none() => line.get(..error.valid_up_to()).unwrap_or_default(),
        _ => line,
    };
    let text = String::from_utf8_lossy(whole);
    *is_lossy |= matches!(text, std::borrow::Cow::Owned(_));
    if cut == 0 { text.into_owned() } else { format!("{text}… ({cut} more bytes)") }
}
