//! What begins with `$`, and commands in backquotes.

use super::super::{Part, Word};
use super::words::text;
use super::{Reader, parse};

impl Reader {
    pub(super) fn dollar(&mut self, word: &mut Word, in_quotes: bool) {
        self.at += 1;
        self.whole_sign();
        match self.peek() {
            Some('(') => {
                self.at += 1;
                self.whole_sign();
                if self.peek() == Some('(') {
                    self.doubt();
                }
                self.substitution();
                word.parts.push(Part::Unknown);
            }
            Some('{') => self.braced(word),
            // Arithmetic, in which quotes hide nothing.
            Some('[') => {
                self.doubt();
                text(word, '$');
            }
            Some('\'') if !in_quotes => self.escaped(word),
            Some('"') if !in_quotes => self.double(word),
            Some(char) if char.is_ascii_alphabetic() || char == '_' => {
                let mut name = String::new();
                while let Some(char) = self.peek().filter(|char| char.is_ascii_alphanumeric() || *char == '_') {
                    self.at += 1;
                    name.push(char);
                }
                word.parts.push(Part::Variable(name));
            }
            Some(char) if char.is_ascii_digit() || "?$!#@*-".contains(char) => {
                self.at += 1;
                word.parts.push(Part::Unknown);
            }
            _ => text(word, '$'),
        }
    }

    /// The list of a `$(…)`; documents that were begun outside of it stay outside. Of one that was begun inside and has
    /// no text there, shells differ in what its text is.
    pub(super) fn substitution(&mut self) {
        let outside = std::mem::take(&mut self.documents);
        self.list(Some(')'));
        if !std::mem::replace(&mut self.documents, outside).is_empty() {
            self.doubt();
        }
    }

    /// `${NAME}`; what does more than name a variable may come to anything, and run commands.
    fn braced(&mut self, word: &mut Word) {
        self.at += 1;
        let mut inside = String::new();
        let mut depth = 1_usize;
        while let Some(char) = self.next() {
            depth = match char {
                '{' => depth + 1,
                '}' => depth - 1,
                _ => depth,
            };
            if depth == 0 {
                break;
            }
            inside.push(char);
        }
        let is_name = !inside.is_empty() && inside.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
        let is_length =
            inside.strip_prefix('#').is_some_and(|name| name.chars().all(|char| char.is_ascii_alphanumeric()));
        if depth > 0 || !(is_name || is_length) {
            self.doubt();
        }
        word.parts.push(if is_name { Part::Variable(inside) } else { Part::Unknown });
    }

    /// What is between backquotes, of which one pair of backslashes is taken off; within quotes shells differ in which.
    pub(super) fn backquoted(&mut self, word: &mut Word, in_quotes: bool) {
        self.at += 1;
        let mut inside = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(char @ ('`' | '\\' | '$')) => inside.push(char),
                    Some('"') if in_quotes => {
                        self.doubt();
                        inside.push('"');
                    }
                    Some(char) => inside.extend(['\\', char]),
                    None => return self.doubt(),
                },
                Some(char) => inside.push(char),
                None => return self.doubt(),
            }
        }
        let inner = parse(&inside, self.depth + 1);
        self.script.understood &= inner.understood;
        self.adopt(inner);
        word.parts.push(Part::Unknown);
    }
}
