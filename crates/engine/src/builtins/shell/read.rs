//! The reader of shell lines: lists of commands here, [`words`] and what they [expand](expansions) to, [`redirects`] with
//! the texts that they bring.

mod expansions;
mod redirects;
mod words;

use self::redirects::Document;
use super::{Command, DEPTH, LENGTH, Part, Script, Word};

/// Words that lead a command and are none.
const LEADING: &[&str] = &["if", "then", "else", "elif", "while", "until", "do", "!", "time", "{"];
/// Words that end a compound command.
const ENDING: &[&str] = &["fi", "done", "}"];

pub(super) fn parse(line: &str, depth: usize) -> Script {
    read(line, depth, |reader| reader.list(None))
}

fn read(text: &str, depth: usize, run: impl FnOnce(&mut Reader)) -> Script {
    let chars: Vec<char> = text.chars().take(LENGTH + 1).collect();
    let whole = chars.len() <= LENGTH && depth <= DEPTH;
    let script = Script { commands: Vec::new(), understood: whole };
    let mut reader = Reader { chars, at: 0, depth, script, documents: Vec::new() };
    if whole {
        run(&mut reader);
    }
    reader.script
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    script: Script,
    /// Here-documents whose text has not come yet: the command's place, the end, whether `$` counts, whether tabs go.
    documents: Vec<Document>,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn ahead(&self, count: usize) -> Option<char> {
        self.chars.get(self.at + count).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    fn take(&mut self, text: &str) -> bool {
        let is_here = text.chars().enumerate().all(|(place, char)| self.ahead(place) == Some(char));
        if is_here {
            self.at += text.chars().count();
        }
        is_here
    }

    fn doubt(&mut self) {
        self.script.understood = false;
    }

    /// A line that goes on within what is one sign: shells put it together, and this reader does not.
    fn whole_sign(&mut self) {
        if self.peek() == Some('\\') && self.ahead(1) == Some('\n') {
            self.doubt();
        }
    }

    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.ahead(1) == Some('\n') => self.at += 2,
                _ => return,
            }
        }
    }

    /// Commands up to `close`, or to the end.
    fn list(&mut self, close: Option<char>) {
        self.depth += 1;
        if self.depth > DEPTH {
            self.doubt();
            self.at = self.chars.len();
        }
        let mut command = Command::default();
        loop {
            self.blanks();
            let Some(char) = self.peek() else {
                if close.is_some() {
                    self.doubt();
                }
                self.end(&mut command);
                break;
            };
            if Some(char) == close {
                self.at += 1;
                self.end(&mut command);
                break;
            }
            self.step(char, &mut command);
        }
        self.depth -= 1;
    }

    fn step(&mut self, char: char, command: &mut Command) {
        match char {
            '\n' => {
                self.at += 1;
                self.end(command);
                self.texts();
            }
            ';' => {
                self.at += 1;
                self.end(command);
                if self.peek() == Some(';') {
                    self.doubt();
                }
            }
            '&' if self.ahead(1) == Some('>') => self.redirect(command),
            '&' => {
                self.at += if self.ahead(1) == Some('&') { 2 } else { 1 };
                self.end(command);
            }
            '|' if self.ahead(1) == Some('|') => {
                self.at += 2;
                self.end(command);
            }
            '|' => {
                self.at += if self.ahead(1) == Some('&') { 2 } else { 1 };
                command.reads = self.end(command);
                if command.reads.is_none() {
                    // What a group says is read; which of its commands says it is not known.
                    command.reads = self.script.commands.len().checked_sub(1);
                }
            }
            '(' => {
                // After a word that is a function, after an assignment an array.
                if !command.words.is_empty() || !command.assignments.is_empty() {
                    self.doubt();
                }
                self.at += 1;
                self.whole_sign();
                if self.take("(") {
                    self.doubt();
                }
                self.list(Some(')'));
            }
            ')' => {
                self.at += 1;
                self.doubt();
                self.end(command);
            }
            '#' => {
                while self.peek().is_some_and(|char| char != '\n') {
                    self.at += 1;
                }
            }
            '<' | '>' if self.ahead(1) == Some('(') => {
                self.at += 2;
                self.substitution();
                command.words.push(Word { parts: vec![Part::Unknown] });
            }
            '<' | '>' => self.redirect(command),
            _ => self.argument(command),
        }
    }

    /// Ends a command, and says where it stands in the list.
    fn end(&mut self, command: &mut Command) -> Option<usize> {
        let command = std::mem::take(command);
        let is_empty = command.words.is_empty() && command.assignments.is_empty() && command.redirects.is_empty();
        let place = self.script.commands.len();
        for document in self.documents.iter_mut().filter(|document| document.command.is_none()) {
            document.command = Some(place);
        }
        if is_empty && command.stdin.is_none() {
            return None;
        }
        self.script.commands.push(command);
        Some(place)
    }

    /// A word, a keyword, an assignment, or the number before a redirection.
    fn argument(&mut self, command: &mut Command) {
        let start = self.at;
        let word = self.word();
        let bare: String = self.chars.get(start..self.at).unwrap_or_default().iter().collect();
        if bare.chars().all(|char| char.is_ascii_digit()) && matches!(self.peek(), Some('<' | '>')) {
            return;
        }
        if command.words.is_empty() {
            if command.assignments.is_empty() && (LEADING.contains(&bare.as_str()) || ENDING.contains(&bare.as_str())) {
                return;
            }
            if let Some((name, value)) = assignment(&word) {
                command.assignments.push((name, value));
                return;
            }
        }
        if self.at == start {
            self.at += 1; // Never stands still.
            self.doubt();
            return;
        }
        command.words.push(word);
    }

    fn adopt(&mut self, inner: Script) {
        let by = self.script.commands.len();
        self.script.commands.extend(inner.commands.into_iter().map(|mut command| {
            command.reads = command.reads.map(|place| place + by);
            command
        }));
    }
}

/// `NAME=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let (name, rest) = word.beginning().split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let mut chars = name.chars();
    let begins = chars.next().is_some_and(|char| char.is_ascii_alphabetic() || char == '_');
    if !begins || !chars.all(|char| char.is_ascii_alphanumeric() || char == '_') {
        return None;
    }
    let mut value = word.clone();
    if let Some(first) = value.parts.first_mut() {
        *first = Part::Text(rest.to_owned());
    }
    Some((name.to_owned(), value))
}
