//! Words and their quotes.

use super::super::{Part, Word};
use super::Reader;

impl Reader {
    pub(super) fn word(&mut self) -> Word {
        let mut word = Word::default();
        let mut braces = 0_usize;
        let start = self.at;
        while let Some(char) = self.peek() {
            match char {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(char) => text(&mut word, char),
                        None => self.doubt(),
                    }
                }
                '\'' => self.single(&mut word),
                '"' => self.double(&mut word),
                '$' => self.dollar(&mut word, false),
                '`' => self.backquoted(&mut word, false),
                '~' if self.at == start => self.tilde(&mut word),
                '*' | '?' | '[' | ']' => {
                    self.at += 1;
                    glob(&mut word, char);
                }
                '{' if self.ahead(1) == Some('}') => {
                    self.at += 2;
                    "{}".chars().for_each(|char| text(&mut word, char));
                }
                '{' | '}' | ',' if braces > 0 || char == '{' => {
                    self.at += 1;
                    braces = if char == '{' { braces + 1 } else { braces - usize::from(char == '}') };
                    glob(&mut word, char);
                }
                _ => {
                    self.at += 1;
                    text(&mut word, char);
                }
            }
        }
        word
    }

    /// `~` and `~/` are the home directory, `~name` is that of somebody.
    fn tilde(&mut self, word: &mut Word) {
        self.at += 1;
        let is_own = self.peek().is_none_or(|next| matches!(next, '/' | ' ' | '\t' | '\n' | ';' | '&' | '|' | ')'));
        word.parts.push(if is_own { Part::Variable("HOME".to_owned()) } else { Part::Unknown });
    }

    fn single(&mut self, word: &mut Word) {
        self.at += 1;
        quoted(word);
        loop {
            match self.next() {
                Some('\'') => return,
                Some(char) => text(word, char),
                None => return self.doubt(),
            }
        }
    }

    pub(super) fn double(&mut self, word: &mut Word) {
        self.at += 1;
        quoted(word);
        loop {
            match self.peek() {
                Some('"') => {
                    self.at += 1;
                    return;
                }
                Some('\\') => {
                    self.at += 1;
                    match self.next() {
                        Some(char @ ('$' | '`' | '"' | '\\')) => text(word, char),
                        Some('\n') => {}
                        Some(char) => {
                            text(word, '\\');
                            text(word, char);
                        }
                        None => return self.doubt(),
                    }
                }
                Some('$') => self.dollar(word, true),
                Some('`') => self.backquoted(word, true),
                Some(char) => {
                    self.at += 1;
                    text(word, char);
                }
                None => return self.doubt(),
            }
        }
    }

    /// `$'…'`: the escapes of C.
    pub(super) fn escaped(&mut self, word: &mut Word) {
        self.at += 1;
        quoted(word);
        loop {
            let char = match self.next() {
                None => return self.doubt(),
                Some('\'') => return,
                Some('\\') => self.escape(),
                char => char,
            };
            match char {
                Some(char) => text(word, char),
                None => self.doubt(),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let (digits, base) = match self.next()? {
            'n' => return Some('\n'),
            't' => return Some('\t'),
            'r' => return Some('\r'),
            'a' => return Some('\u{7}'),
            'b' => return Some('\u{8}'),
            'e' | 'E' => return Some('\u{1b}'),
            'f' => return Some('\u{c}'),
            'v' => return Some('\u{b}'),
            'x' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            '0'..='7' => {
                self.at -= 1;
                (3, 8)
            }
            char @ ('\\' | '\'' | '"' | '?') => return Some(char),
            _ => return None,
        };
        let mut value = 0_u32;
        let mut count = 0;
        while count < digits
            && let Some(digit) = self.peek().and_then(|char| char.to_digit(base))
        {
            (value, count) = (value.checked_mul(base)?.checked_add(digit)?, count + 1);
            self.at += 1;
        }
        char::from_u32(value).filter(|_| count > 0)
    }
}

/// Quotes without anything in them are a word too.
fn quoted(word: &mut Word) {
    if word.parts.is_empty() {
        word.parts.push(Part::Text(String::new()));
    }
}

pub(super) fn text(word: &mut Word, char: char) {
    match word.parts.last_mut() {
        Some(Part::Text(text)) => text.push(char),
        _ => word.parts.push(Part::Text(char.to_string())),
    }
}

fn glob(word: &mut Word, char: char) {
    match word.parts.last_mut() {
        Some(Part::Glob(glob)) => glob.push(char),
        _ => word.parts.push(Part::Glob(char.to_string())),
    }
}
