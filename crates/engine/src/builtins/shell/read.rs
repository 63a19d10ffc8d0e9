//! The reader of shell lines.

use super::{Command, DEPTH, LENGTH, Part, Redirect, Script, Word};

/// Words that lead a command and are none.
const LEADING: &[&str] = &["if", "then", "else", "elif", "while", "until", "do", "!", "time", "{"];
/// Words that end a compound command.
const ENDING: &[&str] = &["fi", "done", "}"];

pub(super) fn parse(line: &str, depth: usize) -> Script {
    read(line, depth, |reader| reader.list(None))
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

struct Document {
    /// `None` until the command is complete.
    command: Option<usize>,
    end: String,
    expands: bool,
    strips: bool,
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

    fn redirect(&mut self, command: &mut Command) {
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
    fn texts(&mut self) {
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

    fn adopt(&mut self, inner: Script) {
        let by = self.script.commands.len();
        self.script.commands.extend(inner.commands.into_iter().map(|mut command| {
            command.reads = command.reads.map(|place| place + by);
            command
        }));
    }

    fn word(&mut self) -> Word {
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

    fn double(&mut self, word: &mut Word) {
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

    fn dollar(&mut self, word: &mut Word, in_quotes: bool) {
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
    fn substitution(&mut self) {
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

    /// `$'…'`: the escapes of C.
    fn escaped(&mut self, word: &mut Word) {
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

    /// What is between backquotes, of which one pair of backslashes is taken off; within quotes shells differ in which.
    fn backquoted(&mut self, word: &mut Word, in_quotes: bool) {
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

/// Quotes without anything in them are a word too.
fn quoted(word: &mut Word) {
    if word.parts.is_empty() {
        word.parts.push(Part::Text(String::new()));
    }
}

fn text(word: &mut Word, char: char) {
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
