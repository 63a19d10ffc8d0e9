//! `grep`: lines of files by a regular expression.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use gatehook_engine::builtins::protect_files;
use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::json;

use super::arguments::Count;
use super::aside::{Stop, Stopped};
use super::builtin::spec;
use super::content;
use super::glob::Pattern;
use super::lines::Lines;
use super::on_files::on_files;
use super::workspace::{Found, Go, Opened, Refused, TOO_LONG, Tried, Walk, Workspace};
use super::{Tool, ToolErrorKind, ToolOutput};

/// Lines that fit, unless fewer are asked for, and bytes of all that is shown.
const MATCHES: usize = 200;
const BYTES: usize = 40 << 10;
/// Lines before and after.
const CONTEXT: u64 = 10;
/// Bytes of a line that are searched, and characters of it that are shown.
const SEARCHED: usize = 64 << 10;
const WIDTH: usize = 300;
/// Bytes of an expression, and of what it is compiled to.
const EXPRESSION: usize = 4000;
const COMPILED: usize = 4 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    include: Option<String>,
    #[serde(default)]
    ignore_case: Option<bool>,
    #[serde(default)]
    context: Option<Count>,
    #[serde(default)]
    limit: Option<Count>,
}

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    let description = "Searches the lines of files with a regular expression (of Rust's crate regex: no look-around, no \
                       back-references), and gives them with their numbers. What .gitignore lists, binary files, and \
                       names with a dot in front are left out, unless `path` or `include` names them.";
    let parameters = json!({
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "The expression, for a part of a line"},
            "path": {"type": "string", "description": "The file or folder to search; the workspace if left out"},
            "include": {"type": "string", "description": "Only files that fit, as `*.rs` or `src/**/*.{ts,tsx}`"},
            "ignore_case": {"type": "boolean"},
            "context": {"type": "integer", "minimum": 0, "description": "Lines to show before and after; 10 at most"},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines that fit; 200 at most"},
        },
        "required": ["pattern"],
        "additionalProperties": false,
    });
    on_files(spec("grep", description, parameters), grep)
}

fn grep(workspace: &Workspace, given: &Arguments, stop: &Stop) -> Tried<ToolOutput> {
    let include = given.include.as_deref().map(Pattern::new).transpose()?;
    let mut search = Search::new(given, stop)?;
    let mut cut = None;
    match workspace.find(given.path.as_deref().unwrap_or("."))? {
        Found::File(opened) => {
            search.file(&opened, &workspace.shown(&opened.path), true)?;
        }
        Found::Folder(folder) => {
            let start = folder.path();
            let walk = Walk { hidden: include.as_ref().is_some_and(|pattern| pattern.hidden) };
            let mut failed = None;
            cut = walk.run(workspace, folder, stop, &mut |entry| {
                let fits = |pattern: &Pattern| entry.path.strip_prefix(&start).is_ok_and(|below| pattern.fits(below));
                if entry.kind != FileType::RegularFile || !include.as_ref().is_none_or(fits) {
                    return Go::On;
                }
                let Some(opened) = entry.open() else { return Go::On };
                match search.file(&opened, &workspace.shown(entry.path), false) {
                    Ok(()) if search.is_full() => Go::Stop,
                    Ok(()) => Go::On,
                    Err(refused) if refused.kind == ToolErrorKind::Other => Go::On,
                    Err(refused) => {
                        failed = Some(refused);
                        Go::Stop
                    }
                }
            })?;
            match failed {
                Some(refused) if refused.kind == ToolErrorKind::Timeout => cut = Some(TOO_LONG),
                Some(refused) => return Err(refused),
                None => {}
            }
        }
    }
    Ok(ToolOutput::text(search.told(cut)))
}

/// What was found so far.
struct Search<'a> {
    regex: Regex,
    stop: &'a Stop,
    context: usize,
    limit: usize,
    text: String,
    found: usize,
    /// Files that a folder's search passed over, though lines of them fit.
    protected: usize,
}

impl<'a> Search<'a> {
    fn new(given: &Arguments, stop: &'a Stop) -> Tried<Self> {
        let invalid = |why: String| Refused::new(ToolErrorKind::InvalidInput, why);
        if given.pattern.is_empty() || given.pattern.len() > EXPRESSION {
            return Err(invalid("`pattern` is empty, or longer than 4000 bytes".to_owned()));
        }
        let regex = RegexBuilder::new(&given.pattern)
            .case_insensitive(given.ignore_case.unwrap_or(false))
            .size_limit(COMPILED)
            .dfa_size_limit(COMPILED)
            .build()
            .map_err(|error| invalid(format!("`pattern` is no regular expression: {error}")))?;
        let count = |count: Option<Count>, most: u64| count.map_or(most, |count| count.0.min(most));
        let context = given.context.map_or(0, |count| count.0.min(CONTEXT));
        let limit = count(given.limit, MATCHES as u64).max(1);
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Self {
            regex,
            stop,
            context: size(context),
            limit: size(limit),
            text: String::new(),
            found: 0,
            protected: 0,
        })
    }

    fn is_full(&self) -> bool {
        self.found >= self.limit || self.text.len() >= BYTES
    }

    /// Searches one file. One that `protect_files` keeps from being named is shown only if it was named.
    fn file(&mut self, opened: &Opened, name: &str, is_named: bool) -> Tried<()> {
        let mut reader = BufReader::with_capacity(64 << 10, Stopped { from: &opened.file, stop: self.stop });
        let start = reader.fill_buf().map_err(|error| self.stop.broken(name, &error))?;
        if content::binary(start).is_some() {
            return Ok(());
        }
        let mut lines = Lines::new(reader);
        let (mut line, mut number) = (Vec::new(), 0_u64);
        let mut before: VecDeque<(u64, String)> = VecDeque::new();
        // The last line that was shown, and how many are still to be shown after a match.
        let (mut shown, mut after) = (None::<u64>, 0);
        while lines.next(&mut line, SEARCHED).map_err(|error| self.stop.broken(name, &error))?.is_some() {
            number += 1;
            let at = if self.is_full() { None } else { self.regex.find(&line) };
            if let Some(at) = at {
                if shown.is_none() && !is_named && protect_files::is_protected(&opened.path) {
                    self.protected += 1;
                    return Ok(());
                }
                if shown.is_none() {
                    self.text.push_str(&format!("{name}\n"));
                }
                let first = before.front().map_or(number, |(first, _)| *first);
                if self.context > 0 && shown.is_some_and(|shown| shown + 1 < first) {
                    self.text.push_str("  --\n");
                }
                for (number, line) in before.drain(..) {
                    self.text.push_str(&format!("{number:>6}- {line}\n"));
                }
                self.text.push_str(&format!("{number:>6}: {}\n", around(&line, at.start())));
                self.found += 1;
                (shown, after) = (Some(number), self.context);
            } else if after > 0 {
                self.text.push_str(&format!("{number:>6}- {}\n", around(&line, 0)));
                (shown, after) = (Some(number), after - 1);
            } else if self.is_full() {
                break;
            } else if self.context > 0 {
                before.push_back((number, around(&line, 0)));
                if before.len() > self.context {
                    before.pop_front();
                }
            }
        }
        Ok(())
    }

    fn told(self, cut: Option<&'static str>) -> String {
        let is_full = self.is_full();
        let mut text = self.text;
        if self.found == 0 {
            text.push_str("(no line fits)\n");
        }
        if self.protected > 0 {
            text.push_str(&format!("({} protected files were passed over)\n", self.protected));
        }
        if is_full {
            text.push_str("(there may be more: narrow the pattern, the path or `include`)\n");
        }
        if let Some(cut) = cut {
            text.push_str(&format!("(not all was searched: {cut})\n"));
        }
        text
    }
}

/// The line, as far as it is shown, with the byte `at` in it.
fn around(line: &[u8], at: usize) -> String {
    let text = String::from_utf8_lossy(line);
    if text.len() <= WIDTH {
        return text.into_owned();
    }
    let from = text.floor_char_boundary(at.saturating_sub(WIDTH / 3));
    let rest = text.get(from..).unwrap_or_default();
    let shown: String = rest.chars().take(WIDTH).collect();
    let (front, back) = (if from > 0 { "… " } else { "" }, if shown.len() < rest.len() { " …" } else { "" });
    format!("{front}{shown}{back}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tools::arguments;
    use crate::tools::tests::Stage;

    #[test]
    fn what_was_found_until_the_time_was_over_is_told() {
        let stage = Stage::new();
        stage.write("a.txt", "needle\n");
        let arguments = json!({"pattern": "needle"});
        let given: Arguments = arguments::read(arguments.as_object().unwrap()).unwrap();
        let output = grep(&Workspace::of(&stage.scene), &given, &Stop::after(Duration::ZERO)).unwrap();
        assert_eq!(output.text, "(no line fits)\n(not all was searched: it took too long)\n");
    }
}
