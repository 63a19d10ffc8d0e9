//! JSON (RFC 8259) into a [`Node`]: nothing but the standard, places kept, duplicate keys refused.

use std::ops::Range;

use super::diagnostic::{Diagnostic, DiagnosticKind};
use super::document::{Build, Key, KeyIndex, Node, Read, Value};

/// Reads a text.
pub(crate) fn read(text: &str) -> Result<Node, Vec<Diagnostic>> {
    let mut reader = Reader { text, at: 0, build: Build::default() };
    // RFC 8259 §8.1 lets a reader ignore a byte order mark.
    reader.at = text.len() - text.trim_start_matches('\u{feff}').len();
    let root = reader.document();
    reader.build.finish(root)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    build: Build,
}

impl Reader<'_> {
    fn document(&mut self) -> Read<Node> {
        self.space();
        if self.peek().is_none() {
            return Ok(Node::new(self.at..self.at, Value::Null));
        }
        let root = self.value(1)?;
        self.space();
        match self.peek() {
            None => Ok(root),
            Some(_) => Err(self.syntax("there is more text after the end of the value")),
        }
    }

    fn value(&mut self, depth: usize) -> Read<Node> {
        let start = self.at;
        self.build.take(1, depth, &(start..start + 1))?;
        let value = match self.peek() {
            Some('{') => self.object(depth)?,
            Some('[') => self.array(depth)?,
            Some('"') => Value::Str(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            Some(letter) if letter.is_ascii_alphabetic() => self.word()?,
            Some(_) => return Err(self.syntax("a value is expected here")),
            None => return Err(self.syntax("the text ends where a value is expected")),
        };
        Ok(Node::new(start..self.at, value))
    }

    fn object(&mut self, depth: usize) -> Read<Value> {
        let (mut entries, mut seen) = (Vec::new(), KeyIndex::new());
        self.step();
        self.space();
        if self.eat('}') {
            return Ok(Value::Map(entries));
        }
        loop {
            self.space();
            let start = self.at;
            if self.peek() != Some('"') {
                return Err(self.syntax("a key in double quotes is expected here"));
            }
            let key = Key { text: self.string()?, span: start..self.at };
            self.space();
            if !self.eat(':') {
                return Err(self.syntax("`:` is expected after a key"));
            }
            self.space();
            let node = self.value(depth + 1)?;
            self.build.entry(&mut entries, &mut seen, key, node);
            if self.ends('}', "`,` or `}` is expected here")? {
                return Ok(Value::Map(entries));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Read<Value> {
        let mut items = Vec::new();
        self.step();
        self.space();
        if self.eat(']') {
            return Ok(Value::Seq(items));
        }
        loop {
            self.space();
            items.push(self.value(depth + 1)?);
            if self.ends(']', "`,` or `]` is expected here")? {
                return Ok(Value::Seq(items));
            }
        }
    }

    /// Whether a list ends after this item; it goes on after a comma.
    fn ends(&mut self, close: char, expected: &str) -> Read<bool> {
        self.space();
        if self.eat(close) {
            return Ok(true);
        }
        if self.eat(',') { Ok(false) } else { Err(self.syntax(expected)) }
    }

    fn word(&mut self) -> Read<Value> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric()) {
            self.step();
        }
        match self.text.get(start..self.at) {
            Some("null") => Ok(Value::Null),
            Some("true") => Ok(Value::Bool(true)),
            Some("false") => Ok(Value::Bool(false)),
            _ => Err(syntax("text needs double quotes", start..self.at)),
        }
    }

    fn number(&mut self) -> Read<Value> {
        let start = self.at;
        self.eat('-');
        let leads_with_zero = self.peek() == Some('0');
        let digits = self.digits()?;
        if leads_with_zero && digits > 1 {
            return Err(syntax("a number does not begin with 0", start..self.at));
        }
        let mut whole = true;
        if self.eat('.') {
            whole = false;
            self.digits()?;
        }
        if self.eat('e') || self.eat('E') {
            whole = false;
            let _ = self.eat('+') || self.eat('-');
            self.digits()?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if let (true, Ok(value)) = (whole, text.parse()) {
            return Ok(Value::Int(value));
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Value::Float).ok_or_else(|| syntax("this number is too large", start..self.at))
    }

    fn digits(&mut self) -> Read<usize> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.step();
        }
        match self.at - start {
            0 => Err(self.syntax("a digit is expected here")),
            digits => Ok(digits),
        }
    }

    fn string(&mut self) -> Read<String> {
        let start = self.at;
        self.step();
        let mut text = String::new();
        loop {
            let at = self.at;
            match self.step() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape(at)?),
                Some(control) if control < ' ' => {
                    return Err(syntax("a control character in text must be escaped", at..self.at));
                }
                Some(character) => text.push(character),
                None => return Err(syntax("this text has no closing quote", start..start + 1)),
            }
        }
    }

    fn escape(&mut self, start: usize) -> Read<char> {
        match self.step() {
            Some(same @ ('"' | '\\' | '/')) => Ok(same),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('u') => self.unicode(start),
            _ => Err(syntax("there is no such escape", start..self.at)),
        }
    }

    /// `XXXX`, or a surrogate pair `XXXX\uXXXX`.
    fn unicode(&mut self, start: usize) -> Read<char> {
        let lone = |end| syntax("half a surrogate pair is no character", start..end);
        let first = self.hex(start)?;
        let code = match first {
            0xD800..=0xDBFF => {
                if !(self.eat('\\') && self.eat('u')) {
                    return Err(lone(self.at));
                }
                match self.hex(start)? {
                    second @ 0xDC00..=0xDFFF => 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00),
                    _ => return Err(lone(self.at)),
                }
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| lone(self.at))
    }

    fn hex(&mut self, start: usize) -> Read<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.step().and_then(|c| c.to_digit(16));
            let digit = digit.ok_or_else(|| syntax("`\\u` needs four hexadecimal digits", start..self.at))?;
            code = code * 16 + digit;
        }
        Ok(code)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.step();
        }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn step(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.step();
        }
        found
    }

    fn syntax(&self, message: &str) -> Box<Diagnostic> {
        let width = self.peek().map_or(0, char::len_utf8);
        syntax(message, self.at..self.at + width)
    }
}

fn syntax(message: &str, span: Range<usize>) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(DiagnosticKind::Syntax, "", message).at(span))
}
