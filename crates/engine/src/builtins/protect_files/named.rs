//! Which paths a tool call names.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::super::globs::Globs;
use super::super::place::Place;
use super::super::safer_shell::{FIELDS, is_shell};
use super::super::shell::{self, Command, Part, Word};
use super::paths;

/// Paths that one event may name.
const MOST: usize = 4096;
/// Bytes of a path.
const LENGTH: usize = 4096;
/// How deep lines may stand in lines, and values in values.
const DEPTH: usize = 8;

/// Arguments that hold prose or a file's text: what stands there names no file that is touched.
const TEXTS: &[&str] = &[
    "content",
    "contents",
    "text",
    "body",
    "message",
    "prompt",
    "query",
    "question",
    "description",
    "title",
    "summary",
    "comment",
    "thought",
    "old_string",
    "new_string",
    "old_str",
    "new_str",
    "old_text",
    "new_text",
    "file_text",
    "insert_text",
    "replacement",
    "commit_message",
    "answer",
    "explanation",
];
/// Tools and those of their arguments that name no file whose content is touched: an expression over the lines of
/// files, a pattern that is answered with names.
const NO_FILES: &[(&str, &str)] = &[("grep", "pattern"), ("glob", "pattern")];
/// Arguments that hold addresses, as far as they are of the web.
const ADDRESSES: &[&str] = &["url", "urls", "uri"];
/// Arguments that hold programs.
const PROGRAMS: &[&str] = &["code", "source", "python", "javascript", "expression", "program"];
/// Arguments that hold changes of files, which they name in their lines.
const PATCHES: &[&str] = &["patch", "diff", "input", "changes", "patch_text"];

/// How such a line begins.
const PATCH_LINES: &[&str] = &[
    "*** Update File: ",
    "*** Add File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "+++ ",
    "--- ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "diff --git ",
];

/// What separates words, wherever the grammar of a line is not understood.
const SEPARATORS: &[char] = &[
    ' ', '\t', '\r', '\n', '"', '\'', '`', ';', '|', '&', '<', '>', '(', ')', '{', '}', '[', ']', '$', '=', ',', '@',
    '\\',
];

/// Options whose words are prose.
const MESSAGES: &[&str] = &["-m", "-am", "--message", "--body", "--title", "-b", "-t"];

/// Looks for a path that is protected.
pub(super) struct Search<'a> {
    place: &'a Place,
    globs: &'a Globs,
    /// Where relative paths may begin.
    bases: Vec<PathBuf>,
    looked: usize,
    found: Option<String>,
}

impl<'a> Search<'a> {
    pub(super) fn new(place: &'a Place, globs: &'a Globs, dir: PathBuf) -> Self {
        Self { place, globs, bases: vec![dir], looked: 0, found: None }
    }

    /// Why the event is refused, if it is.
    pub(super) fn found(self) -> Option<String> {
        self.found
    }

    /// A call with its arguments.
    pub(super) fn call(&mut self, tool: &str, category: Option<&str>, arguments: &Map<String, Value>) {
        let runs = is_shell(tool, category);
        let is_no_file = |key: &str| NO_FILES.iter().any(|(of, name)| tool.eq_ignore_ascii_case(of) && *name == key);
        for (key, value) in arguments.iter().filter(|(key, value)| !(value.is_string() && is_no_file(key))) {
            self.value(key, value, runs, 0);
        }
    }

    fn value(&mut self, key: &str, value: &Value, runs: bool, depth: usize) {
        if depth > 64 {
            return self.refuse("its arguments nest too deep to be looked at".to_owned());
        }
        match value {
            Value::String(text) => self.text(key, text, runs),
            Value::Array(items) if FIELDS.contains(&key) && items.iter().all(Value::is_string) => {
                self.arguments(&items.iter().filter_map(Value::as_str).collect::<Vec<_>>());
            }
            Value::Array(items) => items.iter().for_each(|item| self.value(key, item, runs, depth + 1)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    if name.contains(['.', '/']) {
                        self.path(name);
                    }
                    self.value(name, value, runs, depth + 1);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, key: &str, text: &str, runs: bool) {
        let key = key.to_ascii_lowercase();
        let is_one_of = |names: &[&str]| names.contains(&key.as_str());
        if is_one_of(FIELDS) || (runs && !is_one_of(TEXTS)) {
            return self.line(text);
        }
        if is_one_of(ADDRESSES) && (text.starts_with("https://") || text.starts_with("http://")) {
            return;
        }
        if is_one_of(PROGRAMS) {
            return text.split(SEPARATORS).for_each(|token| self.path(token));
        }
        if is_one_of(PATCHES) {
            self.patch(text);
        }
        if !is_one_of(TEXTS) {
            self.path(text);
            self.pieces(text);
            // A line for another program, as `args` of a git tool.
            if text.contains([' ', ';', '|', '$', '`', '*', '?', '{']) && !text.contains('\n') {
                self.line(text);
            }
        }
    }

    fn patch(&mut self, text: &str) {
        for line in text.lines() {
            for named in PATCH_LINES.iter().filter_map(|begins| line.strip_prefix(begins)) {
                for path in std::iter::once(named).chain(named.split_whitespace()) {
                    self.path(path);
                    // git writes its sides as `a/` and `b/`.
                    path.strip_prefix("a/").or(path.strip_prefix("b/")).into_iter().for_each(|path| self.path(path));
                }
            }
        }
    }

    /// A shell line.
    pub(super) fn line(&mut self, text: &str) {
        self.line_at(text, 0);
    }

    fn line_at(&mut self, text: &str, depth: usize) {
        if depth > DEPTH {
            return self.refuse("its shell lines nest too deep to be looked at".to_owned());
        }
        let script = shell::parse(text);
        if !script.understood {
            for token in text.split(SEPARATORS) {
                self.path(token);
                self.pieces(token);
                // As in `${x:-y}`.
                token.split(':').for_each(|piece| self.path(piece.trim_start_matches(['-', '+', '?', '#', '%'])));
            }
        }
        // Where a line goes first counts for all that follows, and it may go back and forth.
        for command in &script.commands {
            self.goes(command);
        }
        for command in &script.commands {
            self.command(command, depth);
        }
    }

    fn goes(&mut self, command: &Command) {
        let [first, rest @ ..] = command.words.as_slice() else { return };
        if !matches!(first.fixed().as_deref(), Some("cd" | "pushd")) || self.bases.len() > 16 {
            return;
        }
        let targets = rest.iter().map(|word| self.expanded(word)).filter(|target| !target.starts_with('-'));
        let targets: Vec<PathBuf> =
            targets.flat_map(|to| self.bases.iter().map(move |base| base.join(&to)).collect::<Vec<_>>()).collect();
        self.bases.extend(targets);
    }

    fn command(&mut self, command: &Command, depth: usize) {
        let mut is_prose = false;
        let assigned = command.assignments.iter().map(|(_, value)| value);
        let redirected = command.redirects.iter().map(|redirect| &redirect.target);
        for word in assigned.chain(redirected) {
            self.word(word, depth);
        }
        for word in &command.words {
            if !std::mem::take(&mut is_prose) {
                self.word(word, depth);
            }
            is_prose = word.fixed().is_some_and(|text| MESSAGES.contains(&text.as_str()))
                && command
                    .words
                    .first()
                    .and_then(Word::fixed)
                    .is_some_and(|name| matches!(name.as_str(), "git" | "gh"));
        }
        if let Some(stdin) = &command.stdin {
            self.line_at(stdin, depth + 1);
        }
    }

    /// Words that are started without a shell.
    fn arguments(&mut self, words: &[&str]) {
        for text in words {
            self.word(&Word { parts: vec![Part::Text((*text).to_owned())] }, 0);
        }
    }

    fn word(&mut self, word: &Word, depth: usize) {
        let text = self.expanded(word);
        // A pattern in quotes is one for the program, as for `find -name`.
        if word.parts.iter().any(|part| matches!(part, Part::Glob(_))) || is_quoted_pattern(&text) {
            self.pattern(word);
        }
        self.path(&text);
        self.pieces(&text);
        if text.contains([' ', '\n', '\'', '"', '`', ';', '|', '&', '<', '>', '(']) {
            self.line_at(&text, depth + 1);
        }
    }

    /// A word as far as it is known; what is not known is nothing.
    fn expanded(&self, word: &Word) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) | Part::Glob(text) => text.clone(),
            Part::Variable(name) => self.variable(name),
            Part::Unknown => String::new(),
        };
        word.parts.iter().map(part).collect()
    }

    fn variable(&self, name: &str) -> String {
        match name {
            "PWD" => self.bases.first().map(|dir| dir.display().to_string()).unwrap_or_default(),
            name => self.place.variable(name).unwrap_or_default().to_owned(),
        }
    }

    fn pattern(&mut self, word: &Word) {
        let part = |part: &Part| match part {
            Part::Glob(glob) => glob.clone(),
            Part::Text(text) if is_quoted_pattern(text) => text.clone(),
            Part::Text(text) => escaped(text),
            Part::Variable(name) => escaped(&self.variable(name)),
            Part::Unknown => "*".to_owned(),
        };
        let pattern: String = word.parts.iter().map(part).collect();
        for pattern in paths::braces(&pattern) {
            if !pattern.contains(['*', '?', '[']) {
                let path = pattern.replace('\\', "");
                self.path(&path);
                self.pieces(&path);
                continue;
            }
            // As in `--file=.en?`.
            let values = pattern.match_indices(['=', ':', '@']).filter_map(|(at, _)| pattern.get(at + 1..));
            for pattern in std::iter::once(pattern.as_str()).chain(values) {
                for base in self.bases.clone() {
                    match paths::fitting(&base, pattern) {
                        Some(files) => files.iter().for_each(|file| self.file(file, pattern)),
                        None => self.refuse(format!("`{}` fits too many files to be looked at", shown(pattern))),
                    }
                }
            }
        }
    }

    /// Paths inside of a word: `if=x`, `HEAD:x`, `@x`, `-fx`.
    fn pieces(&mut self, text: &str) {
        if text.len() > LENGTH {
            return;
        }
        for (at, separator) in text.match_indices(['=', ':', '@', ',']) {
            let behind = text.get(at + separator.len()..).unwrap_or_default();
            self.path(behind);
            self.path(behind.split([',', ':']).next().unwrap_or_default());
        }
        if let Some((before, _)) = text.split_once([':', ',']) {
            self.path(before);
        }
        if let Some(option) = text.strip_prefix('-').filter(|option| !option.starts_with('-')) {
            self.path(option.get(1..).unwrap_or_default());
        }
    }

    fn path(&mut self, text: &str) {
        let text = text.trim().trim_matches(['"', '\'']);
        if text.is_empty() || text.len() > LENGTH || text.contains(['\0', '\n']) || self.found.is_some() {
            return;
        }
        self.looked += 1;
        if self.looked > MOST {
            return self.refuse(format!("it names more than {MOST} paths, too many to be looked at"));
        }
        let of_url = text.strip_prefix("file://").map(|rest| {
            let rest = rest.strip_prefix("localhost").unwrap_or(rest);
            percent_decode_str(rest).decode_utf8_lossy().into_owned()
        });
        let path = of_url.as_deref().unwrap_or(text);
        let home = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let at_home = home.and_then(|rest| Some(self.place.home()?.join(rest.trim_start_matches('/'))));
        for base in self.bases.clone() {
            let whole = at_home.clone().unwrap_or_else(|| base.join(path));
            self.file(&whole, text);
        }
    }

    fn file(&mut self, path: &Path, written: &str) {
        let is_protected = |path: &Path| {
            let path = path.to_string_lossy();
            self.globs.has(path.trim_start_matches('/'))
        };
        if is_protected(&paths::plain(path)) || is_protected(&paths::real(path)) {
            self.refuse(format!("`{}` is protected", shown(written)));
        }
    }

    fn refuse(&mut self, why: String) {
        self.found.get_or_insert(why);
    }
}

/// A short word with `*`, `?` or `[…]`, and nothing that makes it prose or a program.
fn is_quoted_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[']) && text.len() <= 256 && !text.contains([' ', '\n', '\'', '"', '(', ';', '\\', '$'])
}

fn escaped(text: &str) -> String {
    let special = |char| matches!(char, '*' | '?' | '[' | '\\' | '{' | '}' | ',');
    text.chars().flat_map(|char| special(char).then_some('\\').into_iter().chain([char])).collect()
}

fn shown(path: &str) -> String {
    path.escape_debug().to_string().chars().take(200).collect()
}
