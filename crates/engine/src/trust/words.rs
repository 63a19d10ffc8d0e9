//! The words of a shell line, as far as they can be known without running it: more words than a shell would make, never
//! fewer.

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// As it stands.
    Text(String),
    /// `$NAME` or `${NAME…}`.
    Variable(String),
    /// What a command prints.
    Unknown,
}

/// One word, in pieces that stand side by side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
    /// It is what a shell matches against names of files.
    pub(super) is_pattern: bool,
    /// It only names where output goes.
    pub(super) is_output: bool,
}

impl Word {
    fn push(&mut self, char: char) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(char),
            _ => self.pieces.push(Piece::Text(char.to_string())),
        }
    }

    /// The word where nothing in it has to be run or looked up.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }
}

/// How deep commands stand in commands; what stands deeper is one unknown word.
const MAX_DEPTH: usize = 8;

/// All words of a line, those of commands inside it too.
pub(super) fn split(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    split_into(line, 0, &mut words);
    words
}

fn split_into(line: &str, depth: usize, words: &mut Vec<Word>) {
    if depth > MAX_DEPTH {
        words.push(Word { pieces: vec![Piece::Unknown], ..Word::default() });
        return;
    }
    let mut splitter =
        Splitter { rest: line, depth, word: None, to_output: false, writes: false, inner: Vec::new(), words };
    splitter.run();
}

struct Splitter<'a, 'w> {
    rest: &'a str,
    depth: usize,
    word: Option<Word>,
    /// The next word is where output goes.
    to_output: bool,
    /// The arguments of this command are where output goes.
    writes: bool,
    /// Words of commands inside this word.
    inner: Vec<Word>,
    words: &'w mut Vec<Word>,
}

/// Programs whose arguments are files that they write.
const WRITERS: &[&str] = &["tee", "mkdir", "touch"];

impl Splitter<'_, '_> {
    fn run(&mut self) {
        while let Some(char) = self.next() {
            match char {
                '\'' => self.quoted(),
                '"' => self.double_quoted(),
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(char) => self.word().push(char),
                },
                '$' if self.rest.starts_with('\'') => {
                    self.next();
                    self.escaped();
                }
                // Quotes of a text that may be translated.
                '$' if self.rest.starts_with('"') => {}
                '$' | '`' => self.expansion(char),
                '>' => self.output(),
                ';' | '|' | '&' | '(' | ')' | '\n' => self.end_command(),
                '<' => self.end_word(),
                char if char.is_whitespace() => self.end_word(),
                char => {
                    let is_pattern = matches!(char, '*' | '?' | '[' | '{');
                    let word = self.word();
                    word.is_pattern |= is_pattern;
                    word.push(char);
                }
            }
        }
        self.end_word();
    }

    fn next(&mut self) -> Option<char> {
        let char = self.rest.chars().next()?;
        self.rest = self.rest.get(char.len_utf8()..).unwrap_or_default();
        Some(char)
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        let Some(mut word) = self.word.take() else { return };
        word.is_output = std::mem::take(&mut self.to_output) || self.writes;
        self.writes |=
            word.literal().is_some_and(|text| WRITERS.contains(&text.rsplit('/').next().unwrap_or_default()));
        self.words.push(word);
        self.words.append(&mut self.inner);
    }

    fn end_command(&mut self) {
        self.end_word();
        (self.writes, self.to_output) = (false, false);
    }

    /// `>`, `>>`, `>|`, `>&`, `2>`: what follows is written.
    fn output(&mut self) {
        self.end_word();
        self.rest = self.rest.trim_start_matches(['>', '|', '&']);
        self.to_output = true;
    }

    fn quoted(&mut self) {
        self.word();
        while let Some(char) = self.next().filter(|char| *char != '\'') {
            self.word().push(char);
        }
    }

    fn double_quoted(&mut self) {
        self.word();
        while let Some(char) = self.next() {
            match char {
                '"' => return,
                '$' | '`' => self.expansion(char),
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(char @ ('$' | '`' | '"' | '\\')) => self.word().push(char),
                    Some(char) => ['\\', char].into_iter().for_each(|char| self.word().push(char)),
                    None => return,
                },
                char => self.word().push(char),
            }
        }
    }

    /// `$'…'`: quoted, with the escapes of C.
    fn escaped(&mut self) {
        self.word();
        while let Some(char) = self.next().filter(|char| *char != '\'') {
            let char = if char == '\\' { self.escape() } else { Some(char) };
            char.into_iter().for_each(|char| self.word().push(char));
        }
    }

    fn escape(&mut self) -> Option<char> {
        let (digits, base) = match self.next()? {
            'x' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            digit @ '0'..='7' => {
                let rest = self.digits(2, 8);
                return u32::from_str_radix(&format!("{digit}{rest}"), 8).ok().and_then(char::from_u32);
            }
            // No name of a file has one of these.
            'a' | 'b' | 'e' | 'E' | 'f' | 'n' | 'r' | 't' | 'v' => return Some(' '),
            char => return Some(char),
        };
        u32::from_str_radix(self.digits(digits, base), base).ok().and_then(char::from_u32)
    }

    /// At most so many digits of what follows.
    fn digits(&mut self, most: usize, base: u32) -> &str {
        let count = self.rest.chars().take(most).take_while(|char| char.is_digit(base)).count();
        let (digits, rest) = self.rest.split_at_checked(count).unwrap_or_default();
        self.rest = rest;
        digits
    }

    fn expansion(&mut self, opener: char) {
        if opener == '`' {
            let (inside, rest) = self.rest.split_once('`').unwrap_or((self.rest, ""));
            self.rest = rest;
            return self.command(inside);
        }
        if let Some(inside) = self.rest.strip_prefix('(') {
            let inside = self.enclosed(inside, '(', ')');
            return self.command(inside);
        }
        if let Some(inside) = self.rest.strip_prefix('{') {
            let inside = self.enclosed(inside, '{', '}');
            let end = inside.find(|c: char| !is_name(c)).unwrap_or(inside.len());
            let (name, default) = inside.split_at(end);
            split_into(default.trim_start_matches([':', '-', '=', '+', '?']), self.depth + 1, &mut self.inner);
            return self.word().pieces.push(Piece::Variable(name.to_owned()));
        }
        let end = self.rest.find(|c: char| !is_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            return self.word().push('$');
        }
        self.rest = rest;
        self.word().pieces.push(Piece::Variable(name.to_owned()));
    }

    fn command(&mut self, inside: &str) {
        split_into(inside, self.depth + 1, &mut self.inner);
        self.word().pieces.push(Piece::Unknown);
    }

    /// What stands before the closing sign that belongs to an opening one; all of it where there is none.
    fn enclosed<'i>(&mut self, inside: &'i str, open: char, close: char) -> &'i str
    where
        Self: 'i,
    {
        let mut depth = 1usize;
        for (at, char) in inside.char_indices() {
            if char == open {
                depth += 1;
            } else if char == close {
                depth -= 1;
                if depth == 0 {
                    let end = self.rest.len() - inside.len() + at + close.len_utf8();
                    self.rest = self.rest.get(end..).unwrap_or_default();
                    return inside.get(..at).unwrap_or_default();
                }
            }
        }
        self.rest = "";
        inside
    }
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words as text, with `‹name›` for variables and `…` for what commands print.
    fn shown(line: &str) -> Vec<String> {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Variable(name) => format!("‹{name}›"),
            Piece::Unknown => "…".to_owned(),
        };
        let words = split(line).into_iter().filter(|word| !word.is_output);
        words.map(|word| word.pieces.iter().map(piece).collect()).collect()
    }

    #[test]
    fn words_are_those_of_a_shell() {
        for (line, words) in [
            ("sh hooks/a.sh --x=1", vec!["sh", "hooks/a.sh", "--x=1"]),
            ("'a b' \"c d\" e\\ f", vec!["a b", "c d", "e f"]),
            ("\"$DIR\"/x.py ${D:-sub/y.py}/z", vec!["‹DIR›/x.py", "‹D›/z", "sub/y.py"]),
            ("cd a&&./b;(c)|d", vec!["cd", "a", "./b", "c", "d"]),
            ("$(git x)/a.py `b.sh`", vec!["…/a.py", "git", "x", "…", "b.sh"]),
            ("cat <in.txt >>out.log 2>&1", vec!["cat", "in.txt", "2"]),
            ("x | tee -a log; y", vec!["x", "tee", "y"]),
            ("", vec![]),
            ("sh $'hooks/\\x61\\056sh' $\"b.sh\" $'it\\'s'", vec!["sh", "hooks/a.sh", "b.sh", "it's"]),
            ("sh \"hooks/\\\na.sh\" \"a\\b\\$\"", vec!["sh", "hooks/a.sh", "a\\b$"]),
            ("'unclosed", vec!["unclosed"]),
            ("$(unclosed", vec!["…", "unclosed"]),
        ] {
            assert_eq!(shown(line), words, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_has_words(line in "[ a-z$(){}'\"`\\\\<>|;&*./é-]{0,200}") {
            split(&line);
        }

        #[test]
        fn a_quoted_text_is_one_word(text in "[^'\0]{1,40}") {
            let words = split(&format!("x '{text}' y"));
            prop_assert_eq!(words[1].literal(), Some(text.as_str()));
        }
    }
}
