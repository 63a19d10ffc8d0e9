//! Where input comes from and output goes, here-documents and their texts.

use super::super::{Command, Redirect, Script, Word};
use super::{Reader, read};

/// A here-document whose text has not come yet.
pub(super) struct Document {
    /// `None` until the command is complete.
    pub(super) command: Option<usize>,
    end: String,
    expands: bool,
    strips: bool,
}

impl Reader {
    pub(super) fn redirect(&mut self, command: &mut Command) {
        let operators: [(&str, bool); 12] = [
            ("<<<", false),
            ("<<-", false),
            ("<<", false),
            ("<>", true),
            ("<&", false),
            ("<", false),
            ("&>>", true),
            ("&>", true),
            (">>", true),
            (">|", true),
            (">&", true),
            (">", true),
        ];
        let Some((operator, writes)) = operators.into_iter().find(|(operator, _)| self.take(operator)) else {
            self.at += 1;
            return self.doubt();
        };
        self.whole_sign();
        self.blanks();
        let start = self.at;
        let target = self.word();
        if self.at == start {
            self.doubt();
        }
        match operator {
            "<<<" => match target.fixed() {
                Some(text) => command.stdin = Some(text),
                None => self.doubt(),
            },
            "<<" | "<<-" => {
                let raw = self.chars.get(start..self.at).unwrap_or_default();
                let expands = !raw.iter().any(|char| matches!(char, '\'' | '"' | '\\'));
                let end = target.fixed().unwrap_or_else(|| {
                    self.doubt();
                    String::new()
                });
                self.documents.push(Document { command: None, end, expands, strips: operator == "<<-" });
            }
            // A copy of another descriptor.
            ">&" | "<&" if target.fixed().is_some_and(|to| to.chars().all(|c| c.is_ascii_digit() || c == '-')) => {}
            _ => command.redirects.push(Redirect { writes, target }),
        }
    }

    /// The texts of here-documents, which begin behind the line that names them.
    pub(super) fn texts(&mut self) {
        for document in std::mem::take(&mut self.documents) {
            let mut text = String::new();
            loop {
                if self.peek().is_none() {
                    self.doubt();
                    break;
                }
                let mut line = self.line();
                // A line that goes on is one with the next.
                while document.expands && line.chars().rev().take_while(|char| *char == '\\').count() % 2 == 1 {
                    line.pop();
                    if self.peek().is_none() {
                        break;
                    }
                    line.push_str(&self.line());
                }
                let line = if document.strips { line.trim_start_matches('\t') } else { &line };
                if line == document.end {
                    break;
                }
                text.push_str(line);
                text.push('\n');
            }
            if document.expands && text.contains(['$', '`']) {
                let inner = expanded(&text, self.depth + 1);
                self.script.understood &= inner.understood;
                self.adopt(inner);
            }
            if let Some(command) = document.command.and_then(|place| self.script.commands.get_mut(place)) {
                command.stdin = Some(text);
            }
        }
    }

    /// What is left of a line; its end is gone past.
    fn line(&mut self) -> String {
        let mut line = String::new();
        while let Some(char) = self.next().filter(|char| *char != '\n') {
            line.push(char);
        }
        line
    }
}

/// The commands that the text of a here-document runs. Quotes mean nothing in it.
fn expanded(text: &str, depth: usize) -> Script {
    read(text, depth, |reader| {
        let mut word = Word::default();
        while let Some(char) = reader.peek() {
            match char {
                '$' => reader.dollar(&mut word, true),
                '`' => reader.backquoted(&mut word, true),
                _ => reader.at += if char == '\\' { 2 } else { 1 },
            }
        }
    })
}
