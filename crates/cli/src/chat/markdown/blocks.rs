//! Blocks of Markdown as lines.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::super::clean;
use super::super::theme::{Role, Theme};
use super::super::wrap::{Breaks, Lead, wrap};

/// Columns of a table's cell at most.
const CELL: usize = 40;

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Where the last block begins.
pub(super) fn last_block(text: &str) -> usize {
    let (mut depth, mut last) = (0usize, 0);
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    last = range.start;
                }
                depth = depth.saturating_add(1);
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => last = range.start,
            _ => {}
        }
    }
    // Its indent belongs to it.
    text.get(..last).and_then(|before| before.rfind('\n')).map_or(0, |end| end.saturating_add(1))
}

/// What blocks stand in.
#[derive(Debug)]
enum Container {
    Quote,
    /// A list, and the number of its next item.
    List(Option<u64>),
    /// What stands before the item's first line; empty once it has been written.
    Item(String, usize),
}

/// Writes blocks behind lines that are there.
pub(super) struct Writer<'a> {
    width: u16,
    theme: Theme,
    lines: &'a mut Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    containers: Vec<Container>,
    /// Whether a blank line is due before the next block.
    gap: bool,
    code: bool,
    link: Option<(String, usize)>,
    table: Option<Table>,
}

/// A table while it is read: rows of cells.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: String,
}

impl<'a> Writer<'a> {
    pub(super) fn new(width: u16, theme: Theme, lines: &'a mut Vec<Line<'static>>) -> Self {
        let gap = !lines.is_empty();
        Self {
            width,
            theme,
            lines,
            spans: Vec::new(),
            styles: Vec::new(),
            containers: Vec::new(),
            gap,
            code: false,
            link: None,
            table: None,
        }
    }

    pub(super) fn write(&mut self, text: &str) {
        for event in Parser::new_ext(text, options()) {
            self.event(event);
        }
        self.flush();
    }

    /// The frame of a code block, its language in it.
    pub(super) fn code_begin(&mut self, label: &str) {
        self.begin();
        let label = if label.is_empty() { String::new() } else { format!(" {label} ") };
        self.rule("╭─", &label);
    }

    pub(super) fn code_line(&mut self, text: &str) {
        let lead = self.lead(Some("│ "));
        let code = Span::styled(text.to_owned(), self.theme.of(Role::Code));
        wrap(&[code], self.width, Breaks::Anywhere, &lead, self.lines);
    }

    pub(super) fn code_end(&mut self) {
        self.rule("╰─", "");
        self.gap = true;
    }

    fn rule(&mut self, corner: &'static str, label: &str) {
        let mut spans = self.lead(None).first;
        let used: usize = spans.iter().map(Span::width).sum::<usize>().saturating_add(corner.width());
        let room = usize::from(self.width).saturating_sub(used);
        let label = super::super::wrap::clip(label, room);
        let dashes = "─".repeat(room.saturating_sub(label.width()));
        spans.push(Span::styled(format!("{corner}{label}{dashes}"), self.theme.of(Role::Dim)));
        self.lines.push(Line::from(spans));
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.code => text.lines().for_each(|line| self.code_line(line)),
            Event::Text(text) => self.text(&text, Style::new()),
            Event::Code(code) => self.text(&code, self.theme.of(Role::Code)),
            Event::Html(html) | Event::InlineHtml(html) => {
                let mut lines = html.lines();
                lines.next().into_iter().for_each(|line| self.text(line, self.theme.of(Role::Dim)));
                lines.for_each(|line| {
                    self.flush();
                    self.text(line, self.theme.of(Role::Dim));
                });
            }
            Event::SoftBreak => self.text(" ", Style::new()),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.begin();
                self.rule("──", "");
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }, Style::new()),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text, Style::new());
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin(),
            Tag::Heading { level, .. } => {
                self.begin();
                let style = self.theme.of(Role::Heading);
                self.styles.push(match level {
                    HeadingLevel::H1 => style.add_modifier(Modifier::UNDERLINED),
                    HeadingLevel::H2 => style,
                    _ => style.add_modifier(Modifier::ITALIC),
                });
            }
            Tag::BlockQuote(_) => {
                self.begin();
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let label = match &kind {
                    CodeBlockKind::Fenced(label) => clean::line(label).into_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code_begin(&label);
                self.code = true;
            }
            Tag::List(first) => {
                self.flush();
                if self.containers.is_empty() {
                    self.begin();
                } else {
                    self.gap = false;
                }
                self.containers.push(Container::List(first));
            }
            Tag::Item => self.item(),
            Tag::Table(_) => {
                self.begin();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.push_style(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push_style(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.push_style(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.push_style(self.theme.of(Role::Link));
                self.link = Some((dest_url.to_string(), self.spans.len()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.finish(),
            TagEnd::Heading(_) => {
                self.finish();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                self.code = false;
                self.code_end();
            }
            TagEnd::List(_) => {
                self.containers.pop();
                self.gap = self.gap || self.containers.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                // An item without a text has its mark all the same.
                if matches!(self.containers.last(), Some(Container::Item(mark, _)) if !mark.is_empty()) {
                    self.put(Vec::new());
                }
                self.containers.pop();
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.table(&table.rows);
                }
                self.gap = true;
            }
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    let cell = std::mem::take(&mut table.cell);
                    table.rows.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.link_end(),
            _ => {}
        }
    }

    fn item(&mut self) {
        self.flush();
        let mark = match self.containers.last_mut() {
            Some(Container::List(Some(number))) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "• ".to_owned(),
        };
        let width = mark.width();
        self.containers.push(Container::Item(mark, width));
    }

    /// Says where a link leads, where its text does not.
    fn link_end(&mut self) {
        self.styles.pop();
        let Some((target, from)) = self.link.take() else { return };
        let text: String = self.spans.get(from..).unwrap_or_default().iter().map(|span| &*span.content).collect();
        if text != target && !target.is_empty() && target.strip_prefix("mailto:") != Some(&*text) {
            self.text(&format!(" ({target})"), self.theme.of(Role::Dim));
        }
    }

    fn push_style(&mut self, style: Style) {
        let under = self.styles.last().copied().unwrap_or_default();
        self.styles.push(under.patch(style));
    }

    fn text(&mut self, text: &str, style: Style) {
        if let Some(table) = &mut self.table {
            table.cell.push_str(text);
            return;
        }
        let under = self.styles.last().copied().unwrap_or_default();
        // What an entity stands for may be a character that a terminal obeys.
        let text = clean::shown(text).replace('\n', " ");
        self.spans.push(Span::styled(text, under.patch(style)));
    }

    /// A block begins.
    fn begin(&mut self) {
        self.flush();
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            let is_item = matches!(self.containers.last(), Some(Container::Item(mark, _)) if !mark.is_empty());
            if !is_item {
                let lead = self.lead(None).next;
                self.lines.push(Line::from(lead));
            }
        }
    }

    /// A block that others are kept apart from ends.
    fn finish(&mut self) {
        self.flush();
        self.gap = true;
    }

    fn flush(&mut self) {
        if !self.spans.is_empty() {
            let spans = std::mem::take(&mut self.spans);
            self.put(spans);
        }
    }

    fn put(&mut self, spans: Vec<Span<'static>>) {
        let lead = self.lead(None);
        wrap(&spans, self.width, Breaks::Words, &lead, self.lines);
    }

    /// What stands before a line by the containers it is in. Marks of items are written once.
    fn lead(&mut self, inner: Option<&'static str>) -> Lead {
        let dim = self.theme.of(Role::Dim);
        let mut lead = Lead::default();
        for container in &mut self.containers {
            match container {
                Container::Quote => {
                    lead.first.push(Span::styled("▎ ", dim));
                    lead.next.push(Span::styled("▎ ", dim));
                }
                Container::List(_) => {}
                Container::Item(mark, width) => {
                    let blank = " ".repeat(*width);
                    let first = if mark.is_empty() { blank.clone() } else { std::mem::take(mark) };
                    lead.first.push(Span::styled(first, self.theme.of(Role::Heading)));
                    lead.next.push(Span::raw(blank));
                }
            }
        }
        if let Some(inner) = inner {
            lead.first.push(Span::styled(inner, dim));
            lead.next.push(Span::styled(inner, dim));
        }
        lead
    }

    /// Columns side by side where they fit, else one row under the other.
    fn table(&mut self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or_default()
            })
            .map(|width| width.min(CELL))
            .collect();
        for (number, row) in rows.iter().enumerate() {
            let style = self.theme.of(if number == 0 { Role::Strong } else { Role::Plain });
            let cells = widths.iter().enumerate().map(|(column, width)| {
                let cell = row.get(column).map(|cell| clean::line(cell)).unwrap_or_default();
                format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width())))
            });
            let text = cells.collect::<Vec<_>>().join("  ");
            self.put(vec![Span::styled(text.trim_end().to_owned(), style)]);
            if number == 0 {
                let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("  ");
                self.put(vec![Span::styled(rule, self.theme.of(Role::Dim))]);
            }
        }
    }
}
