//! Tokens into a tree, with everything that can be known to be wrong.

use std::vec::IntoIter;

use gatehook_events::input::FIELDS;
use serde_json::Value;

use super::TemplateError;
use super::functions::{self, Function};
use super::lex::{Kind, Piece, Token, pieces};

/// How deep blocks and parentheses may nest.
const MAX_DEPTH: usize = 64;

/// A part of a template.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Text as it stands.
    Text(String),
    /// A value.
    Show(Expression),
    /// `if`: the body where the value is not empty, else the other one.
    If { value: Expression, body: Vec<Node>, otherwise: Vec<Node> },
    /// `with`: the same, and the value is `.` in the body.
    With { value: Expression, body: Vec<Node>, otherwise: Vec<Node> },
    /// `range`: the body for each element.
    Range { value: Expression, body: Vec<Node>, otherwise: Vec<Node> },
}

/// What has a value.
#[derive(Debug, Clone)]
pub(super) struct Expression {
    /// Where it stands.
    pub(super) at: usize,
    pub(super) kind: ExpressionKind,
}

#[derive(Debug, Clone)]
pub(super) enum ExpressionKind {
    Literal(Value),
    /// Names that lead from `.`.
    Dot(Vec<String>),
    /// Names that lead from the whole input.
    Root(Vec<String>),
    /// Names that lead from a value in parentheses.
    Within(Box<Expression>, Vec<String>),
    Call(Function, Vec<Expression>),
}

/// Reads a template.
pub(super) fn parse(text: &str) -> Result<Vec<Node>, TemplateError> {
    let mut parser = Parser { pieces: pieces(text)?.into_iter() };
    match parser.nodes(0)? {
        (nodes, None) => Ok(nodes),
        (_, Some(end)) => Err(TemplateError::new(end.at, format!("nothing is open that `{}` could end", end.word))),
    }
}

/// What ended a body: `end` or `else`, and what follows the word.
struct End {
    at: usize,
    word: &'static str,
    rest: Tokens,
}

struct Parser {
    pieces: IntoIter<Piece>,
}

impl Parser {
    /// Everything up to an end; `None` is the end of the template.
    fn nodes(&mut self, depth: usize) -> Result<(Vec<Node>, Option<End>), TemplateError> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let (at, tokens) = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Piece::Action { at, tokens } => (at, tokens),
            };
            let mut tokens = Tokens { tokens: tokens.into_iter().peekable(), last: at + 2 };
            match tokens.keyword() {
                Some(word @ ("if" | "with" | "range")) => nodes.push(self.block(at, word, tokens, depth + 1)?),
                Some(word @ ("end" | "else")) => return Ok((nodes, Some(End { at, word, rest: tokens }))),
                Some(word) => return Err(TemplateError::new(at, format!("`{word}` is not supported"))),
                None => nodes.push(Node::Show(tokens.whole(depth)?)),
            }
        }
        Ok((nodes, None))
    }

    fn block(&mut self, at: usize, word: &str, mut tokens: Tokens, depth: usize) -> Result<Node, TemplateError> {
        if depth > MAX_DEPTH {
            return Err(TemplateError::new(at, format!("blocks stand deeper than {MAX_DEPTH}")));
        }
        let value = tokens.whole(depth)?;
        let (body, end) = self.nodes(depth)?;
        let otherwise = match end {
            None => return Err(open(at, word)),
            Some(end) if end.word == "end" => {
                end.rest.nothing()?;
                Vec::new()
            }
            Some(mut end) => match end.rest.keyword() {
                Some(again @ ("if" | "with")) if again == word => {
                    vec![self.block(end.at, again, end.rest, depth + 1)?]
                }
                _ => {
                    end.rest.nothing()?;
                    match self.nodes(depth)? {
                        (nodes, Some(End { word: "end", rest, .. })) => rest.nothing().map(|()| nodes)?,
                        (_, Some(end)) => return Err(TemplateError::new(end.at, "a block has one `else`")),
                        (_, None) => return Err(open(at, word)),
                    }
                }
            },
        };
        Ok(match word {
            "with" => Node::With { value, body, otherwise },
            "range" => Node::Range { value, body, otherwise },
            _ => Node::If { value, body, otherwise },
        })
    }
}

fn open(at: usize, word: &str) -> TemplateError {
    TemplateError::new(at, format!("this `{word}` has no `{{{{ end }}}}`"))
}

/// Words that lead a block, end one, or belong to what there is not.
const KEYWORDS: &[&str] = &["if", "with", "range", "end", "else", "define", "template", "block", "break", "continue"];

/// The tokens of one action.
struct Tokens {
    tokens: std::iter::Peekable<IntoIter<Token>>,
    /// Where the last token ended.
    last: usize,
}

impl Tokens {
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.next()?;
        self.last = token.end;
        Some(token)
    }

    fn next_if(&mut self, wanted: impl FnOnce(&Token) -> bool) -> Option<Token> {
        let token = self.tokens.next_if(wanted)?;
        self.last = token.end;
        Some(token)
    }

    /// Takes a keyword.
    fn keyword(&mut self) -> Option<&'static str> {
        let Some(Token { kind: Kind::Word(names), .. }) = self.tokens.peek() else { return None };
        let [name] = names.as_slice() else { return None };
        let word = KEYWORDS.iter().copied().find(|word| word == name)?;
        self.next();
        Some(word)
    }

    fn nothing(mut self) -> Result<(), TemplateError> {
        match self.next() {
            None => Ok(()),
            Some(token) => Err(TemplateError::new(token.at, "nothing more is expected here")),
        }
    }

    /// One pipeline, and nothing behind it.
    fn whole(&mut self, depth: usize) -> Result<Expression, TemplateError> {
        let value = self.pipeline(depth)?;
        match self.next() {
            None => Ok(value),
            Some(token) => Err(TemplateError::new(token.at, "nothing is open that this could close")),
        }
    }

    /// `a | f | g b`: each value is the last argument of what follows.
    fn pipeline(&mut self, depth: usize) -> Result<Expression, TemplateError> {
        if depth > MAX_DEPTH {
            return Err(TemplateError::new(self.last, format!("parentheses stand deeper than {MAX_DEPTH}")));
        }
        let mut value = self.command(None, depth)?;
        while self.next_if(|token| token.kind == Kind::Pipe).is_some() {
            value = self.command(Some(value), depth)?;
        }
        Ok(value)
    }

    /// A function with its arguments, or one value.
    fn command(&mut self, piped: Option<Expression>, depth: usize) -> Result<Expression, TemplateError> {
        let Some(first) = self.next() else {
            return Err(TemplateError::new(self.last, "a value is missing here"));
        };
        let function = match &first.kind {
            Kind::Word(names) => named(names),
            _ => None,
        };
        let at = first.at;
        let first = match function {
            Some(_) => None,
            None => Some(self.operand(first, depth)?),
        };
        let mut arguments = Vec::new();
        while let Some(token) = self.next_if(|token| !matches!(token.kind, Kind::Pipe | Kind::Close)) {
            arguments.push(self.operand(token, depth)?);
        }
        match (function, first) {
            (Some(function), _) => {
                arguments.extend(piped);
                if !function.arguments.contains(&arguments.len()) {
                    let message = format!("`{}` takes {}, not {}", function.name, function.takes(), arguments.len());
                    return Err(TemplateError::new(at, message));
                }
                Ok(Expression { at, kind: ExpressionKind::Call(function, arguments) })
            }
            (None, Some(value)) if piped.is_none() && arguments.is_empty() => Ok(value),
            _ => Err(TemplateError::new(at, "this is no function")),
        }
    }

    fn operand(&mut self, token: Token, depth: usize) -> Result<Expression, TemplateError> {
        let at = token.at;
        let kind = match token.kind {
            Kind::Literal(value) => ExpressionKind::Literal(value),
            Kind::Dot(names) => ExpressionKind::Dot(names),
            Kind::Root(names) => ExpressionKind::Root(names),
            Kind::Word(names) => word(at, names)?,
            Kind::Open => return self.parenthesised(at, depth),
            Kind::Pipe | Kind::Close => return Err(TemplateError::new(at, "a value is missing here")),
        };
        Ok(Expression { at, kind })
    }

    /// `(…)`, or `(…).a.b`.
    fn parenthesised(&mut self, at: usize, depth: usize) -> Result<Expression, TemplateError> {
        let value = self.pipeline(depth + 1)?;
        let close = self.next().filter(|token| token.kind == Kind::Close);
        let close = close.ok_or_else(|| TemplateError::new(at, "this `(` has no `)`"))?;
        let touches =
            |token: &Token| token.at == close.end && matches!(&token.kind, Kind::Dot(names) if !names.is_empty());
        match self.next_if(touches) {
            Some(Token { kind: Kind::Dot(names), .. }) => {
                Ok(Expression { at, kind: ExpressionKind::Within(Box::new(value), names) })
            }
            _ => Ok(value),
        }
    }
}

fn named(names: &[String]) -> Option<Function> {
    match names {
        [name] => functions::named(name),
        _ => None,
    }
}

/// A constant, or a field of the payload by its own name.
fn word(at: usize, names: Vec<String>) -> Result<ExpressionKind, TemplateError> {
    let first = names.first().map(String::as_str).unwrap_or_default();
    match first {
        "true" | "false" if names.len() == 1 => Ok(ExpressionKind::Literal((first == "true").into())),
        "nil" if names.len() == 1 => Ok(ExpressionKind::Literal(Value::Null)),
        _ if FIELDS.iter().any(|field| field.name == first) => Ok(ExpressionKind::Root(names)),
        _ if functions::named(first).is_some() => {
            Err(TemplateError::new(at, format!("put `{first}` and its arguments into parentheses")))
        }
        _ => Err(TemplateError::new(at, format!("there is no function `{first}`"))),
    }
}
