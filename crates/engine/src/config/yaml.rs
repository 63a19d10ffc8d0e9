//! YAML 1.2 (core schema) into a [`Node`]: one document, aliases and `<<` resolved within bounds, tags of the core
//! schema only, no key twice.

use std::collections::HashMap;
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::diagnostic::{Diagnostic, DiagnosticKind};
use super::document::{Build, Key, KeyIndex, Node, Read, Value};

/// Reads a text.
pub(crate) fn read(text: &str) -> Result<Node, Vec<Diagnostic>> {
    let mut reader = Reader::new(text);
    let root = reader.document();
    reader.build.finish(root)
}

struct Reader<'a> {
    text: &'a str,
    offsets: Offsets<'a>,
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    anchors: HashMap<usize, Anchored>,
    build: Build,
}

/// A value that aliases may repeat.
struct Anchored {
    node: Node,
    size: usize,
    height: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let body = text.trim_start_matches('\u{feff}');
        Self {
            text,
            offsets: Offsets { text, chars: 0, byte: text.len() - body.len(), start: text.len() - body.len() },
            parser: Parser::new_from_str(body),
            anchors: HashMap::new(),
            build: Build::default(),
        }
    }

    fn document(&mut self) -> Read<Node> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root.unwrap_or(Node::new(0..0, Value::Null))),
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                _ if root.is_some() => {
                    let problem = unsupported("a second document", span);
                    return Err(Box::new(problem.help("keep one document per file")));
                }
                event => root = Some(self.node(event, span, 1)?),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Range<usize>, depth: usize) -> Read<Node> {
        if let Event::Alias(anchor) = event {
            return self.alias(anchor, span, depth);
        }
        self.build.take(1, depth, &span)?;
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag.as_deref(), &span)?;
                (Node::new(span, value), anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                only_tag(tag.as_deref(), "seq", &span)?;
                (self.sequence(span, depth)?, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                only_tag(tag.as_deref(), "map", &span)?;
                (self.mapping(span, depth)?, anchor)
            }
            _ => return Err(Box::new(unsupported("this", span))),
        };
        self.keep(anchor, &node)?;
        Ok(node)
    }

    fn sequence(&mut self, start: Range<usize>, depth: usize) -> Read<Node> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                let end = self.end(span.end, start.start, items.last());
                return Ok(Node::new(start.start..end, Value::Seq(items)));
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn mapping(&mut self, start: Range<usize>, depth: usize) -> Read<Node> {
        let (mut entries, mut seen, mut merged) = (Vec::new(), KeyIndex::new(), Vec::new());
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                let end = self.end(span.end, start.start, entries.last().map(|(_, node)| node));
                let start = entries.first().map_or(start.start, |(key, _): &(Key, _)| start.start.min(key.span.start));
                self.merge(&mut entries, &mut seen, merged, depth)?;
                return Ok(Node::new(start..end, Value::Map(entries)));
            }
            let (key, style) = key(event, span)?;
            let (event, span) = self.next()?;
            let node = self.node(event, span, depth + 1)?;
            match style {
                ScalarStyle::Plain if key.text == "<<" => merged.push(node),
                _ => self.build.entry(&mut entries, &mut seen, key, node),
            }
        }
    }

    /// Adds what `<<` brings: keys that the mapping does not have itself, the first source first.
    fn merge(&mut self, to: &mut Vec<(Key, Node)>, seen: &mut KeyIndex, from: Vec<Node>, depth: usize) -> Read<()> {
        for node in from {
            let Node { span, value } = node;
            match value {
                Value::Map(entries) => {
                    for (key, node) in entries {
                        if !seen.contains_key(&key.text) {
                            self.build.entry(to, seen, key, node);
                        }
                    }
                }
                Value::Seq(items) if depth > 0 => self.merge(to, seen, items, 0)?,
                _ => return Err(Box::new(unsupported("`<<` with anything but a mapping or a list of mappings", span))),
            }
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: Range<usize>, depth: usize) -> Read<Node> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(Box::new(unsupported("an alias inside of what it repeats", span)));
        };
        self.build.take(anchored.size, depth + anchored.height - 1, &span)?;
        Ok(anchored.node.clone())
    }

    /// Keeps a copy for aliases. It counts, so that nested anchors cannot multiply what is kept.
    fn keep(&mut self, anchor: usize, node: &Node) -> Read<()> {
        if anchor == 0 {
            return Ok(());
        }
        let (size, height) = measure(node);
        self.build.take(size, height, &node.span)?;
        self.anchors.insert(anchor, Anchored { node: node.clone(), size, height });
        Ok(())
    }

    fn next(&mut self) -> Read<(Event<'a>, Range<usize>)> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let span = self.offsets.bytes(span);
                Ok((event, span))
            }
            Some(Err(error)) => Err(self.syntax(&error)),
            None => Ok((Event::StreamEnd, self.text.len()..self.text.len())),
        }
    }

    fn syntax(&mut self, error: &ScanError) -> Box<Diagnostic> {
        let at = self.offsets.byte(error.marker().index());
        let problem = Diagnostic::new(DiagnosticKind::Syntax, "", error.info().to_owned()).at(at..at);
        let line = self.text.get(at..).unwrap_or_default();
        Box::new(match line.starts_with('\t') {
            true => problem.help("YAML is indented by spaces, not by tabs"),
            false => problem,
        })
    }

    /// Where a collection ends: block collections end where the next thing begins, so their last value says more.
    fn end(&self, marker: usize, start: usize, last: Option<&Node>) -> usize {
        let closed = self.text.get(..marker).is_some_and(|text| text.ends_with([']', '}']));
        let is_flow = self.text.get(start..).is_some_and(|text| text.starts_with(['[', '{']));
        match last {
            Some(last) if !(closed && is_flow) && last.span.end >= start => last.span.end,
            _ => marker.max(start),
        }
    }
}

/// Turns the parser's places, counted in characters, into bytes. Places come in nearly rising order.
struct Offsets<'a> {
    text: &'a str,
    start: usize,
    chars: usize,
    byte: usize,
}

impl Offsets<'_> {
    fn bytes(&mut self, span: Span) -> Range<usize> {
        let start = self.byte(span.start.index());
        let end = self.byte(span.end.index());
        start..end.max(start)
    }

    fn byte(&mut self, chars: usize) -> usize {
        while self.chars > chars && self.byte > self.start {
            let head = self.text.get(..self.byte).unwrap_or_default();
            self.byte -= head.chars().next_back().map_or(0, char::len_utf8);
            self.chars -= 1;
        }
        while self.chars < chars {
            let Some(next) = self.text.get(self.byte..).and_then(|tail| tail.chars().next()) else { break };
            self.byte += next.len_utf8();
            self.chars += 1;
        }
        self.byte
    }
}

fn key(event: Event<'_>, span: Range<usize>) -> Read<(Key, ScalarStyle)> {
    match event {
        Event::Scalar(text, style, 0, None) => Ok((Key { text: text.into_owned(), span }, style)),
        Event::Alias(_) => Err(Box::new(unsupported("an alias as a key", span))),
        Event::Scalar(..) => Err(Box::new(unsupported("an anchor or a tag on a key", span))),
        _ => Err(Box::new(unsupported("a list or a mapping as a key", span))),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Range<usize>) -> Read<Value> {
    let Some(tag) = tag else {
        return Ok(if style == ScalarStyle::Plain { plain(text) } else { Value::Str(text.to_owned()) });
    };
    let core = |suffix: &str| tag.is_yaml_core_schema() && tag.suffix == suffix;
    let is_as_tagged = |value: &Value| match value {
        Value::Null => core("null"),
        Value::Bool(_) => core("bool"),
        Value::Int(_) => core("int") || core("float"),
        Value::Float(_) => core("float"),
        _ => false,
    };
    match plain(text) {
        _ if core("str") || (tag.handle.is_empty() && tag.suffix == "!") => Ok(Value::Str(text.to_owned())),
        value if is_as_tagged(&value) => Ok(value),
        _ => Err(unknown_tag(tag, span)),
    }
}

/// What a plain scalar is in the core schema (<https://yaml.org/spec/1.2.2/#1032-tag-resolution>).
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Value::Float(f64::NAN),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Value::Float(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    let radix = |prefix, radix| text.strip_prefix(prefix).and_then(|digits| whole(digits, radix));
    if let Some(number) = radix("0o", 8).or_else(|| radix("0x", 16)) {
        return Value::Int(number);
    }
    if is_number(unsigned) {
        if let Ok(number) = text.parse() {
            return Value::Int(number);
        }
        if let Ok(number) = text.parse() {
            return Value::Float(number);
        }
    }
    Value::Str(text.to_owned())
}

fn whole(digits: &str, radix: u32) -> Option<i64> {
    let are_digits = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    are_digits.then(|| i64::from_str_radix(digits, radix).ok()).flatten()
}

/// `[0-9]+ ( . [0-9]* )? | . [0-9]+`, then `( [eE] [-+]? [0-9]+ )?`.
fn is_number(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

fn only_tag(tag: Option<&Tag>, suffix: &str, span: &Range<usize>) -> Read<()> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == suffix) => Err(unknown_tag(tag, span)),
        _ => Ok(()),
    }
}

fn unknown_tag(tag: &Tag, span: &Range<usize>) -> Box<Diagnostic> {
    Box::new(unsupported(&format!("the tag `{tag}` here"), span.clone()))
}

fn unsupported(what: &str, span: Range<usize>) -> Diagnostic {
    Diagnostic::new(DiagnosticKind::UnsupportedSyntax, "", format!("{what} is not supported")).at(span)
}

/// How many values there are, and how many levels of them.
fn measure(node: &Node) -> (usize, usize) {
    let mut inner: Box<dyn Iterator<Item = &Node>> = match &node.value {
        Value::Seq(items) => Box::new(items.iter()),
        Value::Map(entries) => Box::new(entries.iter().map(|(_, node)| node)),
        _ => return (1, 1),
    };
    let (size, height) = inner.by_ref().map(measure).fold((0, 0), |all, one| (all.0 + one.0, all.1.max(one.1)));
    (size + 1, height + 1)
}
