//! HTML as plain text: for reading, not for keeping. Any text goes in, well-formed or not, in one pass.

use url::Url;

/// Elements whose content nobody reads.
const UNREAD: &[&str] = &["script", "style", "noscript", "template", "svg", "iframe", "object", "head"];
/// Elements that begin and end a line.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "html",
    "legend",
    "main",
    "nav",
    "ol",
    "option",
    "section",
    "select",
    "summary",
    "table",
    "tbody",
    "tfoot",
    "thead",
    "tr",
    "ul",
    "menu",
    "title",
];
/// Elements with an empty line around them.
const PARAGRAPHS: &[&str] = &["p", "pre", "h1", "h2", "h3", "h4", "h5", "h6"];

/// Names of characters that pages are full of; any other stays as it is written.
const ENTITIES: &[(&str, char)] = &[
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("ndash", '–'),
    ("mdash", '—'),
    ("hellip", '…'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("laquo", '«'),
    ("raquo", '»'),
    ("bull", '•'),
    ("middot", '·'),
    ("copy", '©'),
    ("reg", '®'),
    ("trade", '™'),
    ("deg", '°'),
    ("plusmn", '±'),
    ("times", '×'),
    ("divide", '÷'),
    ("frac12", '½'),
    ("euro", '€'),
    ("pound", '£'),
    ("sect", '§'),
    ("para", '¶'),
    ("larr", '←'),
    ("rarr", '→'),
    ("uarr", '↑'),
    ("darr", '↓'),
    ("auml", 'ä'),
    ("ouml", 'ö'),
    ("uuml", 'ü'),
    ("Auml", 'Ä'),
    ("Ouml", 'Ö'),
    ("Uuml", 'Ü'),
    ("szlig", 'ß'),
    ("eacute", 'é'),
    ("egrave", 'è'),
    ("agrave", 'à'),
    ("ccedil", 'ç'),
    ("ntilde", 'ñ'),
    ("shy", '\u{ad}'),
    ("zwnj", '\u{200c}'),
    ("zwj", '\u{200d}'),
    ("check", '✓'),
];
/// Bytes of a name between `&` and `;`.
const ENTITY: usize = 10;

/// Bytes of text: addresses that are made whole may be many times as long as they were.
const LONGEST: usize = 8 << 20;

/// The text of a page at `base`. Links stand behind their text, headings behind `#`, items behind `-`.
pub(super) fn text(html: &str, base: &Url) -> String {
    let mut writer = Writer { base, out: String::new(), space: false, preformatted: 0, links: Vec::new() };
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, tagged) = rest.split_at(at);
        writer.text(before);
        if writer.out.len() > LONGEST {
            rest = "";
            break;
        }
        rest = match Tag::read(tagged) {
            Some((Tag::None, rest)) => rest,
            Some((Tag::Open { name, attributes }, behind)) => {
                if UNREAD.contains(&name.as_str()) && !attributes.trim_end().ends_with('/') {
                    skip(behind, &name)
                } else {
                    writer.open(&name, attributes);
                    behind
                }
            }
            Some((Tag::Close { name }, behind)) => {
                writer.close(&name);
                behind
            }
            None => {
                writer.text("<");
                tagged.get(1..).unwrap_or_default()
            }
        };
    }
    writer.text(rest);
    writer.out.trim().to_owned()
}

/// What follows the end of an element whose content is not read. A head that is never closed ends where the body begins.
fn skip<'h>(html: &'h str, name: &str) -> &'h str {
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let tagged = rest.get(at..).unwrap_or_default();
        let behind = tagged.get(1..).unwrap_or_default();
        let begins = |text: &str, with: &str| text.get(..with.len()).is_some_and(|is| is.eq_ignore_ascii_case(with));
        if begins(behind, "/") && begins(behind.get(1..).unwrap_or_default(), name) {
            return tagged.split_once('>').map_or("", |(_, after)| after);
        }
        if name == "head" && begins(behind, "body") {
            return tagged;
        }
        rest = behind;
    }
    ""
}

enum Tag<'h> {
    Open {
        name: String,
        attributes: &'h str,
    },
    Close {
        name: String,
    },
    /// A comment, a declaration.
    None,
}

impl<'h> Tag<'h> {
    /// Reads what begins with `<`, and gives what follows; `None` where it is no tag.
    fn read(html: &'h str) -> Option<(Self, &'h str)> {
        if let Some(comment) = html.strip_prefix("<!--") {
            return Some((Self::None, comment.split_once("-->").map_or("", |(_, after)| after)));
        }
        let inside = html.get(1..)?;
        if inside.starts_with(['!', '?']) {
            return Some((Self::None, inside.split_once('>').map_or("", |(_, after)| after)));
        }
        let (closes, named) = inside.strip_prefix('/').map_or((false, inside), |named| (true, named));
        if !named.starts_with(|char: char| char.is_ascii_alphabetic()) {
            return None;
        }
        let end = end_of(named);
        let (tag, behind) = (named.get(..end)?, named.get(end..)?.strip_prefix('>').unwrap_or_default());
        let name_ends = tag.find(|char: char| char.is_whitespace() || char == '/').unwrap_or(tag.len());
        let (name, attributes) = (tag.get(..name_ends)?.to_ascii_lowercase(), tag.get(name_ends..)?);
        Some((if closes { Self::Close { name } } else { Self::Open { name, attributes } }, behind))
    }
}

/// Where a tag ends: at the first `>` that is in no quotes.
fn end_of(tag: &str) -> usize {
    let mut quote = None;
    for (at, char) in tag.char_indices() {
        match (quote, char) {
            (None, '>') => return at,
            // A quote that begins no value is a mistake of the page, and begins nothing.
            (None, '"' | '\'') if tag.get(..at).is_some_and(|before| before.trim_end().ends_with('=')) => {
                quote = Some(char)
            }
            (Some(open), _) if open == char => quote = None,
            _ => {}
        }
    }
    tag.len()
}

/// The value of an attribute.
fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    while let Some((key, value)) = rest.split_once('=') {
        let key = key.trim_end().rsplit(|char: char| char.is_whitespace()).next().unwrap_or_default();
        let value = value.trim_start();
        let (value, behind) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value.get(1..)?.split_once(quote)?,
            _ => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(unescaped(value));
        }
        rest = behind;
    }
    None
}

/// The text so far.
struct Writer<'a> {
    base: &'a Url,
    out: String,
    /// White space was met, and a word may follow.
    space: bool,
    /// `pre` elements that are open.
    preformatted: usize,
    /// Where the text of each open link begins, and where it leads.
    links: Vec<(usize, Option<String>)>,
}

impl Writer<'_> {
    fn text(&mut self, text: &str) {
        let text = unescaped(text);
        if self.preformatted > 0 {
            return self.out.push_str(&text);
        }
        for (index, word) in text.split(|char: char| char.is_whitespace()).enumerate() {
            self.space |= index > 0;
            if word.is_empty() {
                continue;
            }
            if self.space && !self.out.is_empty() && !self.out.ends_with(char::is_whitespace) {
                self.out.push(' ');
            }
            self.space = false;
            self.out.push_str(word);
        }
    }

    fn open(&mut self, name: &str, attributes: &str) {
        self.around(name);
        match name {
            // Two empty lines say as much as a thousand.
            "br" => self.out.push_str(if self.out.ends_with("\n\n\n") { "" } else { "\n" }),
            "hr" => {
                self.line(1);
                self.out.push_str("---\n");
            }
            "li" => {
                self.line(1);
                self.out.push_str("- ");
            }
            "td" | "th" => self.cell(),
            "pre" => self.preformatted += 1,
            "img" => {
                if let Some(alt) = attribute(attributes, "alt").filter(|alt| !alt.trim().is_empty()) {
                    self.text(&format!("[{alt}]"));
                }
            }
            "a" => {
                let link = attribute(attributes, "href").and_then(|href| self.base.join(href.trim()).ok());
                let link = link.filter(|link| matches!(link.scheme(), "http" | "https")).map(String::from);
                self.links.push((self.out.len(), link));
            }
            _ => {
                if let Some(level) = level(name) {
                    self.out.push_str(&"#".repeat(level));
                    self.out.push(' ');
                }
            }
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "pre" => self.preformatted = self.preformatted.saturating_sub(1),
            "a" => {
                let Some((from, Some(link))) = self.links.pop() else { return };
                let said = self.out.get(from..).unwrap_or_default().trim();
                // A link to a place of its own page, or one that says where it leads, says nothing more.
                let is_here = link.split('#').next() == self.base.as_str().split('#').next();
                if !said.is_empty() && said != link && !is_here {
                    self.out.push_str(&format!(" <{link}>"));
                }
            }
            _ => {}
        }
        self.around(name);
    }

    fn around(&mut self, name: &str) {
        if PARAGRAPHS.contains(&name) {
            self.line(2);
        } else if BLOCKS.contains(&name) {
            self.line(1);
        }
    }

    /// Begins a line, behind empty ones.
    fn line(&mut self, breaks: usize) {
        self.space = false;
        if self.preformatted == 0 {
            self.out.truncate(self.out.trim_end_matches([' ', '\t']).len());
        }
        if self.out.is_empty() {
            return;
        }
        let there = self.out.bytes().rev().take(breaks).take_while(|byte| *byte == b'\n').count();
        self.out.push_str(&"\n".repeat(breaks - there));
    }

    /// Begins a cell, which is not the first of its row.
    fn cell(&mut self) {
        self.space = false;
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push_str(" | ");
        }
    }
}

fn level(name: &str) -> Option<usize> {
    let level = name.strip_prefix('h')?.parse().ok()?;
    (1..=6).contains(&level).then_some(level)
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        out.push_str(before);
        let named = behind.get(..behind.floor_char_boundary(ENTITY)).and_then(|start| start.split_once(';'));
        match named.and_then(|(name, _)| Some((character(name)?, name.len() + 1))) {
            Some((char, length)) => {
                out.push(char);
                rest = behind.get(length..).unwrap_or_default();
            }
            None => {
                out.push('&');
                rest = behind;
            }
        }
    }
    out + rest
}

fn character(name: &str) -> Option<char> {
    let number = match name.strip_prefix('#') {
        None => return ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, char)| *char),
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        },
    };
    char::from_u32(number).filter(|char| !char.is_control() || *char == '\n' || *char == '\t')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(html: &str) -> String {
        text(html, &Url::parse("https://example.com/dir/page").unwrap())
    }

    #[test]
    fn a_page_is_read_as_text() {
        let page = "<!DOCTYPE html><html><head><title>no</title><style>p{}</style></head><body>\
                    <h1>A  title</h1><p>One &amp; <b>two</b>,\n three&#33;</p><script>x < y</script>\
                    <ul><li>a <a href='x.html'>link</a><li>b</ul><pre>  fn x() {\n  }</pre>\
                    <table><tr><th>k<th>v</tr><tr><td>1<td>2</table>end<br>line</body></html>";
        let expected = "# A title\n\nOne & two, three!\n\n- a link <https://example.com/dir/x.html>\n- b\n\n  fn x() {\n  }\n\n\
                        k | v\n1 | 2\nend\nline";
        assert_eq!(read(page), expected);
    }

    #[test]
    fn what_is_no_html_stays() {
        for (html, expected) in [
            ("", ""),
            ("a < b && c > d", "a < b && c > d"),
            ("&unknown; &#xZZ; &", "&unknown; &#xZZ; &"),
            ("&#0;&#27;", "&#0;&#27;"),
            ("<p", ""),
            ("x<!-- never closed", "x"),
            ("<script>never closed", ""),
            ("<head><title>t<body>text", "text"),
            ("<a href=\"javascript:x()\">run</a>", "run"),
            ("<a href=#top>top</a>", "top"),
            ("<a href='https://a.b/?x=1&amp;y=2'>q</a>", "q <https://a.b/?x=1&y=2>"),
            ("<img src=x alt='a cat'>", "[a cat]"),
            ("<p title='a > b'>text</p>", "text"),
            ("it's <b>5</b>&nbsp;%", "it's 5 %"),
            ("<svg/>text", "text"),
        ] {
            assert_eq!(read(html), expected, "{html}");
        }
    }

    #[test]
    fn no_page_takes_long_or_becomes_many_times_as_long() {
        let base = Url::parse(&format!("https://example.com/{}/", "x".repeat(8000))).unwrap();
        let begin = std::time::Instant::now();
        for piece in [
            "<br><p>",
            "<pre>\n<p>",
            "<a href=b>c</a>",
            "<a href=b>",
            "<head>",
            "<a x='",
            "&#",
            "<!--",
            "<li> ",
            "<pre> <p>",
        ] {
            let read = text(&piece.repeat(100_000), &base);
            assert!(read.len() <= LONGEST + 10_000, "{piece}: {}", read.len());
        }
        assert!(begin.elapsed() < std::time::Duration::from_secs(60), "{:?}", begin.elapsed());
    }

    proptest! {
        #[test]
        fn any_text_is_read(html in r#"(<|>|/|a|pre|script|head|body|h1|p|li|!--|-->|"|'|=|&|amp;|#x41;|ü| |\n|.){0,40}"#) {
            read(&html);
        }
    }
}
