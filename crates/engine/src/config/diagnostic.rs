//! What is wrong with a configuration, with its place: all problems of a file at once.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::document::{Document, Key};

macro_rules! kinds {
    ($( $(#[doc = $doc:literal])+ $kind:ident = $name:literal; )+) => {
        /// What a problem is, by a name that does not change between versions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum DiagnosticKind { $( $(#[doc = $doc])+ $kind, )+ }

        impl DiagnosticKind {
            /// All kinds.
            pub const ALL: &[DiagnosticKind] = &[$( DiagnosticKind::$kind, )+];

            /// The name, as in `unknown_event`.
            pub fn name(self) -> &'static str {
                match self { $( DiagnosticKind::$kind => $name, )+ }
            }
        }
    };
}

kinds! {
    /// The file cannot be read.
    Unreadable = "unreadable";
    /// Others could have written it than those whose word it is.
    WritableByOthers = "writable_by_others";
    /// The text is not UTF-8.
    NotUtf8 = "not_utf8";
    /// A bound on size, depth or number of values.
    TooLarge = "too_large";
    /// Not well-formed YAML, JSON or TOML.
    Syntax = "syntax";
    /// Well-formed, of a feature that configuration does not use.
    UnsupportedSyntax = "unsupported_syntax";
    /// A key stands twice in one mapping.
    DuplicateKey = "duplicate_key";
    /// Another type of value is wanted.
    WrongType = "wrong_type";
    /// The type is right, the value is not.
    InvalidValue = "invalid_value";
    /// A key that nothing reads.
    UnknownField = "unknown_field";
    /// A known key, where it means nothing.
    MisplacedField = "misplaced_field";
    /// What another program knows and this one does not do.
    Unsupported = "unsupported";
    /// A name that stands for nothing.
    UnknownName = "unknown_name";
    /// A name that stands for two things.
    DuplicateName = "duplicate_name";
    /// A field that must be there.
    FieldRequired = "field_required";
    /// No such profile.
    UnknownProfile = "unknown_profile";
    /// No such event, or not under this profile.
    UnknownEvent = "unknown_event";
    /// A flat event holds neither a hook nor a list.
    NotAHookOrList = "not_a_hook_or_list";
    /// A matched event holds neither a group nor a list.
    NotAMatcherOrList = "not_a_matcher_or_list";
    /// A group has no hooks.
    HooksRequired = "hooks_required";
    /// `on_error: block` where nothing can be blocked.
    OnErrorBlockUnsupported = "on_error_block_unsupported";
    /// `preempt_yolo` on another event than `pre_tool_use`.
    PreemptYoloUnsupported = "preempt_yolo_unsupported";
    /// A matcher that is no regular expression.
    InvalidMatcher = "invalid_matcher";
    /// A matcher where there is nothing to match.
    MatcherUnsupported = "matcher_unsupported";
    /// `on_error` has no such value.
    InvalidOnError = "invalid_on_error";
    /// A timeout below 0.
    NegativeTimeout = "negative_timeout";
    /// A timeout of 0.
    ZeroTimeout = "zero_timeout";
    /// A hook has no type.
    TypeRequired = "type_required";
    /// No such type of hook.
    UnsupportedType = "unsupported_type";
    /// A command hook has no command.
    CommandRequired = "command_required";
    /// A builtin hook names no builtin.
    BuiltinNameRequired = "builtin_name_required";
    /// A model hook names no model.
    ModelRequired = "model_required";
    /// A model hook has no prompt.
    PromptRequired = "prompt_required";
    /// A webhook has no address.
    UrlRequired = "url_required";
    /// No builtin has this name.
    UnknownBuiltin = "unknown_builtin";
    /// No HTTP or HTTPS address.
    InvalidUrl = "invalid_url";
    /// A header that HTTP does not allow.
    InvalidHeader = "invalid_header";
    /// The contract has no such event.
    ContractUnsupported = "contract_unsupported";
    /// A condition that is no regular expression.
    InvalidPattern = "invalid_pattern";
    /// The program of a command without a shell is nowhere.
    ProgramNotFound = "program_not_found";
    /// A prompt that is no template.
    InvalidTemplate = "invalid_template";
    /// No shape of a reply has this name.
    UnknownSchema = "unknown_schema";
    /// A variable of the environment is not set.
    MissingVariable = "missing_variable";
    /// A file that a value is read from is missing, too large or out of bounds.
    MissingFile = "missing_file";
}

/// One problem and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What it is.
    pub kind: DiagnosticKind,
    /// The definition at fault, as in `hooks.pre_tool_use[1].hooks[1]`; empty for the file as a whole.
    pub path: String,
    /// What is wrong, in a sentence fragment.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The offending text, in bytes; `None` where there is no text, as for the environment.
    pub span: Option<Range<usize>>,
    /// Other places that explain it, each with a word about it.
    pub related: Vec<(Range<usize>, String)>,
}

impl Diagnostic {
    /// A problem without a place yet.
    pub fn new(kind: DiagnosticKind, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, path: path.into(), message: message.into(), help: None, span: None, related: Vec::new() }
    }

    /// Says where it is, in bytes.
    #[must_use]
    pub fn at(mut self, span: Range<usize>) -> Self {
        self.span = Some(span);
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says what may have been meant, if anything.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    /// Says which other place explains it.
    #[must_use]
    pub fn see(mut self, span: Range<usize>, word: impl Into<String>) -> Self {
        self.related.push((span, word.into()));
        self
    }

    /// A key that stands twice.
    pub(crate) fn duplicate_key(key: &Key, first: &Range<usize>) -> Self {
        Self::new(DiagnosticKind::DuplicateKey, "", format!("`{}` stands twice", key.text))
            .at(key.span.clone())
            .see(first.clone(), "first here")
            .help("keep one of them")
    }
}

/// How many problems of one file are kept. Whoever has more mends these first.
pub const MAX_PROBLEMS: usize = 100;

/// Collects problems while a document is read, so that a reader goes on after one.
#[derive(Debug, Default)]
pub struct Diagnostics {
    found: RefCell<Vec<Diagnostic>>,
    secrets: RefCell<Vec<Range<usize>>>,
}

impl Diagnostics {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one. Beyond [`MAX_PROBLEMS`] they are not kept.
    pub fn report(&self, diagnostic: Diagnostic) {
        if !self.is_full() {
            self.found.borrow_mut().push(diagnostic);
        }
    }

    /// Whether there are so many that a reader may stop.
    pub fn is_full(&self) -> bool {
        self.len() >= MAX_PROBLEMS
    }

    /// Marks text that no report shows.
    pub fn conceal(&self, span: Range<usize>) {
        self.secrets.borrow_mut().push(span);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.found.borrow().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// `value` if nothing is wrong, else all that is.
    pub fn finish<T>(self, document: &Document, value: T) -> Result<T, ConfigError> {
        self.finish_text(&document.name, &document.text, value)
    }

    pub(crate) fn finish_text<T>(self, name: &str, text: &str, value: T) -> Result<T, ConfigError> {
        let diagnostics = self.found.into_inner();
        if diagnostics.is_empty() {
            return Ok(value);
        }
        Err(ConfigError::new(name, text, &self.secrets.into_inner(), diagnostics))
    }
}

/// A configuration that cannot be used, with everything that is wrong with it.
///
/// It displays as a compiler would: for each problem `file:line:column: message [kind]`, the line with a caret, the
/// remedy. Secrets in the text (user information of addresses, header values) are masked.
#[derive(Debug, Clone, thiserror::Error)]
pub struct ConfigError {
    /// The file, or `environment`.
    pub source_name: Arc<str>,
    /// Its text, secrets masked, byte for byte of the same length; empty where there is none.
    pub source_text: Arc<str>,
    /// What is wrong; never empty.
    pub diagnostics: Vec<Diagnostic>,
}

impl ConfigError {
    /// An error of one problem.
    pub fn one(source_name: &str, source_text: &str, diagnostic: Diagnostic) -> Self {
        Self::new(source_name, source_text, &[], vec![diagnostic])
    }

    pub(crate) fn new(name: &str, text: &str, secrets: &[Range<usize>], diagnostics: Vec<Diagnostic>) -> Self {
        Self { source_name: name.into(), source_text: mask(text, secrets), diagnostics }
    }

    /// The first problem's kind.
    pub fn kind(&self) -> Option<DiagnosticKind> {
        self.diagnostics.first().map(|diagnostic| diagnostic.kind)
    }

    /// Line and column of a place in the text, both from 1, columns in characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        position(&self.source_text, offset)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, diagnostic) in self.diagnostics.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            self.write_one(f, diagnostic)?;
        }
        if self.diagnostics.len() >= MAX_PROBLEMS {
            f.write_str("\nthere may be more")?;
        }
        Ok(())
    }
}

impl ConfigError {
    fn write_one(&self, f: &mut fmt::Formatter<'_>, diagnostic: &Diagnostic) -> fmt::Result {
        let Diagnostic { kind, message, help, span, related, .. } = diagnostic;
        let name = printable(&self.source_name);
        match span {
            Some(span) => {
                let (line, column) = self.position(span.start);
                write!(f, "{name}:{line}:{column}: {} [{}]", printable(message), kind.name())?;
                write!(f, "{}", Excerpt::of(&self.source_text, span))?;
            }
            None => write!(f, "{name}: {} [{}]", printable(message), kind.name())?,
        }
        for (span, word) in related {
            let (line, column) = self.position(span.start);
            write!(f, "\n  {name}:{line}:{column}: {word}{}", Excerpt::of(&self.source_text, span))?;
        }
        match help {
            Some(help) => write!(f, "\n  help: {}", printable(help)),
            None => Ok(()),
        }
    }
}

/// One line of the text and what of it is meant.
struct Excerpt<'a> {
    line: &'a str,
    /// In characters.
    column: usize,
    width: usize,
}

/// Characters of a line that are shown around the place.
const SHOWN: usize = 100;

impl<'a> Excerpt<'a> {
    fn of(text: &'a str, span: &Range<usize>) -> Self {
        let start = floor(text, span.start);
        let end = floor(text, span.end).max(start);
        let head = text.get(..start).unwrap_or_default();
        let from = head.rfind('\n').map_or(0, |at| at + 1);
        let line = text.get(from..).unwrap_or_default().lines().next().unwrap_or_default();
        let column = text.get(from..start).unwrap_or_default().chars().count();
        let meant = text.get(start..end).unwrap_or_default().lines().next().unwrap_or_default();
        Self { line, column, width: meant.chars().count().max(1) }
    }
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line.trim().is_empty() {
            return Ok(());
        }
        let is_long = self.line.chars().count() > SHOWN;
        let skipped = if is_long { self.column.saturating_sub(SHOWN / 2) } else { 0 };
        let shown: String = self.line.chars().skip(skipped).take(SHOWN).collect();
        let column = self.column - skipped;
        let width = self.width.min(SHOWN.saturating_sub(column)).max(1);
        write!(f, "\n    {}\n    {}{}", printable(shown.trim_end()), " ".repeat(column), "^".repeat(width))
    }
}

/// Text without control characters, so that no file writes to a terminal's controls.
fn printable(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\t' => ' ',
            character if character.is_control() => '\u{fffd}',
            character => character,
        })
        .collect()
}

/// The character boundary at or before `offset`.
fn floor(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Line and column of a byte offset, both from 1, columns in characters.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let head = text.get(..floor(text, offset)).unwrap_or_default();
    let line_start = head.rfind('\n').map_or(0, |at| at + 1);
    let line = head.bytes().filter(|&byte| byte == b'\n').count() + 1;
    (line, head.get(line_start..).unwrap_or_default().chars().count() + 1)
}

/// The text with secrets and the user information of all addresses starred, byte for byte of the same length.
fn mask(text: &str, secrets: &[Range<usize>]) -> Arc<str> {
    let mut spans = user_information(text);
    spans.extend(secrets.iter().cloned());
    spans.sort_by_key(|span| span.start);
    let mut masked = String::with_capacity(text.len());
    let mut spans = spans.into_iter().peekable();
    let mut hidden_to = 0;
    for (at, character) in text.char_indices() {
        while let Some(span) = spans.next_if(|span| span.start <= at) {
            hidden_to = hidden_to.max(span.end);
        }
        if at < hidden_to && character != '\n' {
            masked.extend(std::iter::repeat_n('*', character.len_utf8()));
        } else {
            masked.push(character);
        }
    }
    masked.into()
}

/// What stands between `//` and `@` in addresses.
fn user_information(text: &str) -> Vec<Range<usize>> {
    let starts = text.match_indices("//").map(|(at, slashes)| at + slashes.len());
    starts
        .filter_map(|start| {
            let authority = text.get(start..)?;
            let end = authority.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '\\'));
            let at = authority.get(..end.unwrap_or(authority.len()))?.rfind('@')?;
            (at > 0).then(|| start..start + at)
        })
        .collect()
}

#[cfg(test)]
mod tests;
