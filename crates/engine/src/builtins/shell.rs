//! What commands a shell line runs: as much of the POSIX grammar, and of what bash adds, as it takes to see each command
//! with its words, wherever it stands. What is not surely understood is said to be not understood.
//!
//! Quotes are taken off, expansions are kept as what they are, and the commands of substitutions stand in the same list
//! as those around them. Functions, `case`, arrays and arithmetic are not read: such lines are not understood, though
//! the commands that were found are given.

mod read;

/// Characters of a line that are read.
const LENGTH: usize = 64 << 10;
/// How deep substitutions and groups may nest.
const DEPTH: usize = 32;

/// A line, read.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) commands: Vec<Command>,
    /// Nothing of it was guessed or left out.
    pub(super) understood: bool,
}

/// One command.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Command {
    /// `NAME=value` before it.
    pub(super) assignments: Vec<(String, Word)>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
    /// The command whose output it reads, by its place in the list.
    pub(super) reads: Option<usize>,
    /// What stands in a here-document or here-string for it.
    pub(super) stdin: Option<String>,
}

/// Where output goes, or input comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Redirect {
    pub(super) writes: bool,
    pub(super) target: Word,
}

/// One word, without its quotes.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// As it stands.
    Text(String),
    /// A pattern over files, or a list in braces.
    Glob(String),
    /// `$NAME`; a `~` is `HOME`.
    Variable(String),
    /// What nobody can know before it runs.
    Unknown,
}

/// Reads a line.
pub(super) fn parse(line: &str) -> Script {
    read::parse(line, 0)
}

impl Word {
    /// The word, where it is known before it runs.
    pub(super) fn fixed(&self) -> Option<String> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Glob(_) | Part::Variable(_) | Part::Unknown => None,
            })
            .collect()
    }

    /// What is known of its beginning.
    pub(super) fn beginning(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests;
