//! A template as texts and actions, and an action as tokens.

use serde_json::Value;

use super::TemplateError;

/// A part of a template.
#[derive(Debug)]
pub(super) enum Piece {
    /// Text as it stands.
    Text(String),
    /// What stands between `{{` and `}}`.
    Action { at: usize, tokens: Vec<Token> },
}

/// A word of an action, and its place in the template.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// `.a.b`; `.` has no names.
    Dot(Vec<String>),
    /// `$.a.b`; `$` has no names.
    Root(Vec<String>),
    /// `a.b`: a function, a keyword, or a field of the payload.
    Word(Vec<String>),
    /// Text, a number.
    Literal(Value),
    Pipe,
    Open,
    Close,
}

/// Splits a template.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut lexer = Lexer { text, at: 0 };
    let mut trim_next = false;
    loop {
        let rest = lexer.rest();
        let found = rest.find("{{");
        let plain = rest.get(..found.unwrap_or(rest.len())).unwrap_or_default();
        let plain = if trim_next { plain.trim_start() } else { plain };
        let Some(place) = found else {
            push(&mut pieces, plain);
            return Ok(pieces);
        };
        let at = lexer.at + place;
        lexer.at = at + 2;
        let trims = lexer.rest().strip_prefix('-').is_some_and(|rest| rest.starts_with(char::is_whitespace));
        lexer.at += usize::from(trims);
        push(&mut pieces, if trims { plain.trim_end() } else { plain });
        let tokens = lexer.action(at)?;
        trim_next = lexer.close(at)?;
        if let Some(tokens) = tokens {
            pieces.push(Piece::Action { at, tokens });
        }
    }
}

fn push(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The tokens up to the end of an action; `None` for a comment.
    fn action(&mut self, at: usize) -> Result<Option<Vec<Token>>, TemplateError> {
        let before = self.at;
        self.skip_blanks();
        if self.rest().starts_with("/*") {
            let length = self.rest().find("*/").ok_or_else(|| TemplateError::new(at, "this comment has no end"))?;
            self.at += length + 2;
            return Ok(None);
        }
        self.at = before;
        let mut tokens = Vec::new();
        loop {
            self.skip_blanks();
            if self.rest().is_empty() || self.rest().starts_with("}}") || self.rest().starts_with("-}}") {
                return Ok(Some(tokens));
            }
            tokens.push(self.token()?);
        }
    }

    /// Goes past `}}`; says whether it trims what follows.
    fn close(&mut self, at: usize) -> Result<bool, TemplateError> {
        self.skip_blanks();
        for (end, trims) in [("}}", false), ("-}}", true)] {
            if self.rest().starts_with(end) {
                self.at += end.len();
                return Ok(trims);
            }
        }
        Err(TemplateError::new(at, "this `{{` has no `}}`"))
    }

    fn token(&mut self) -> Result<Token, TemplateError> {
        let at = self.at;
        let rest = self.rest();
        let first = rest.chars().next().unwrap_or_default();
        let negative = rest.strip_prefix(['-', '+']).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let kind = match first {
            '|' => self.one(Kind::Pipe),
            '(' => self.one(Kind::Open),
            ')' => self.one(Kind::Close),
            '"' => self.quoted()?,
            '`' => self.raw()?,
            '.' if !rest.get(1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) => {
                Kind::Dot(self.names()?)
            }
            '$' => {
                self.at += 1;
                if self.rest().starts_with(is_name) {
                    return Err(TemplateError::new(at, "there are no variables but `$`, the whole input"));
                }
                Kind::Root(self.names()?)
            }
            _ if negative || first == '.' || first.is_ascii_digit() => self.number()?,
            _ if is_name(first) => {
                let mut names = vec![self.name().to_owned()];
                names.extend(self.names()?);
                Kind::Word(names)
            }
            other => return Err(TemplateError::new(at, format!("`{}` has no meaning here", other.escape_debug()))),
        };
        Ok(Token { at, end: self.at, kind })
    }

    fn one(&mut self, kind: Kind) -> Kind {
        self.at += 1;
        kind
    }

    fn name(&mut self) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// `.a.b`; a dot alone is no name.
    fn names(&mut self) -> Result<Vec<String>, TemplateError> {
        let (start, mut names) = (self.at, Vec::new());
        while self.rest().starts_with('.') {
            self.at += 1;
            match self.name() {
                "" if names.is_empty() && start + 1 == self.at && !self.rest().starts_with('.') => break,
                "" => return Err(TemplateError::new(self.at - 1, "a name must follow this dot")),
                name => names.push(name.to_owned()),
            }
        }
        Ok(names)
    }

    fn number(&mut self) -> Result<Kind, TemplateError> {
        let (at, rest) = (self.at, self.rest());
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_');
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let text = rest.get(..length).unwrap_or_default();
        self.at += length;
        let value = text.parse::<i64>().map(Value::from).or_else(|_| {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            number.map(Value::from).ok_or_else(|| TemplateError::new(at, format!("`{text}` is no number")))
        });
        value.map(Kind::Literal)
    }

    /// A text in quotes, with the escapes of JSON.
    fn quoted(&mut self) -> Result<Kind, TemplateError> {
        let (at, rest) = (self.at, self.rest());
        let mut escaped = true; // The first quote opens.
        let end = rest.char_indices().find_map(|(place, char)| match char {
            _ if escaped => {
                escaped = false;
                None
            }
            '\\' => {
                escaped = true;
                None
            }
            '"' => Some(place + 1),
            _ => None,
        });
        let end = end.ok_or_else(|| TemplateError::new(at, "this text has no end"))?;
        self.at += end;
        let text = rest.get(..end).and_then(|spelled| serde_json::from_str::<String>(spelled).ok());
        let text = text.ok_or_else(|| TemplateError::new(at, "this text has an escape that there is not"))?;
        Ok(Kind::Literal(text.into()))
    }

    fn raw(&mut self) -> Result<Kind, TemplateError> {
        let at = self.at;
        let inside = self.rest().strip_prefix('`').and_then(|rest| rest.split_once('`'));
        let (text, _) = inside.ok_or_else(|| TemplateError::new(at, "this text has no end"))?;
        self.at += text.len() + 2;
        Ok(Kind::Literal(text.into()))
    }
}

fn is_name(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}
