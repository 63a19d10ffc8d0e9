//! The state of the screen, drawn: transcript, what is at work, the input or a question, the last line.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::super::clean;
use super::super::theme::Role;
use super::super::transcript::seconds;
use super::super::wrap::{Breaks, Lead, clip, wrap};
use super::View;
use super::dialog::{Dialog, Stage};

/// Rows of what is offered for completion at most.
const POPUP: usize = 8;

/// What moves while a turn runs.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Draws all of it.
pub(crate) fn draw(view: &mut View, frame: &mut Frame<'_>) {
    let area = frame.area();
    view.size = (area.width, area.height);
    if area.is_empty() {
        return;
    }
    let mut page = Page { buffer: frame.buffer_mut(), rest: area, cursor: None };
    if area.height >= 3 {
        view.draw_status(&mut page);
    }
    match view.dialogs.front() {
        Some(_) => view.draw_dialog(&mut page),
        None => view.draw_input(&mut page),
    }
    if page.rest.height >= 3 {
        view.draw_activity(&mut page);
    }
    let cursor = match view.overlay {
        Some(_) if view.dialogs.is_empty() => {
            view.draw_overlay(&mut page);
            None
        }
        _ => {
            view.draw_transcript(&mut page);
            page.cursor
        }
    };
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
}

/// The part of the screen that is left, taken from its end.
struct Page<'a> {
    buffer: &'a mut Buffer,
    rest: Rect,
    cursor: Option<(u16, u16)>,
}

impl Page<'_> {
    /// The last rows of what is left, as many as there are.
    fn take(&mut self, rows: usize) -> Rect {
        let rows = u16::try_from(rows).unwrap_or(u16::MAX).min(self.rest.height);
        self.rest.height = self.rest.height.saturating_sub(rows);
        Rect { y: self.rest.y.saturating_add(self.rest.height), height: rows, ..self.rest }
    }

    fn line(&mut self, area: Rect, row: usize, indent: u16, line: &Line<'_>) {
        let Some(y) = u16::try_from(row).ok().filter(|row| *row < area.height) else { return };
        let indent = indent.min(area.width);
        let (x, y) = (area.x.saturating_add(indent), area.y.saturating_add(y));
        if area.width > indent && self.buffer.area.contains((x, y).into()) {
            self.buffer.set_line(x, y, line, area.width.saturating_sub(indent));
        }
    }

    fn lines(&mut self, area: Rect, lines: &[Line<'_>]) {
        lines.iter().enumerate().for_each(|(row, line)| self.line(area, row, 0, line));
    }
}

impl View {
    fn styled(&self, text: impl Into<String>, role: Role) -> Span<'static> {
        Span::styled(text.into(), self.theme.of(role))
    }

    fn rule(&self, width: u16, title: Vec<Span<'static>>, role: Role) -> Line<'static> {
        let mut spans = vec![self.styled("─", role)];
        let has_title = !title.is_empty();
        spans.extend(title);
        if !has_title {
            spans.push(self.styled("─", role));
        }
        let used: usize = spans.iter().map(Span::width).sum();
        spans.push(self.styled("─".repeat(usize::from(width).saturating_sub(used)), role));
        Line::from(spans)
    }

    /// The last line: where one is, and how much of the window and of money is used.
    fn draw_status(&self, page: &mut Page<'_>) {
        let area = page.take(1);
        let width = usize::from(area.width);
        let status = &self.status;
        let (used, limit) = status.context;
        let mut right = Vec::new();
        if used > 0 || limit > 0 {
            right.push(gauge(used, limit));
        }
        if let Some(cost) = status.cost {
            right.push(format!("cost {cost:.4}"));
        }
        right.push("F1 help".to_owned());
        // What there is no room for: what it cost, then help.
        while right.len() > 1 && right.join(" · ").width() > width.saturating_mul(2) / 3 {
            right.remove(1);
        }
        let right = clip(&right.join(" · "), width).into_owned();
        let mode = if self.facts.mode.is_empty() { "" } else { &*self.facts.mode };
        let left = [&*status.model, &*status.agent, mode];
        let left =
            left.iter().filter(|part| !part.is_empty()).map(|part| clean::line(part)).collect::<Vec<_>>().join(" · ");
        let left = clip(&left, width.saturating_sub(right.width().saturating_add(2)));
        let gap = " ".repeat(width.saturating_sub(left.width()).saturating_sub(right.width()));
        page.line(area, 0, 0, &Line::from(self.styled(format!("{left}{gap}{right}"), Role::Dim)));
    }

    /// What is at work, and what hooks did.
    fn draw_activity(&self, page: &mut Page<'_>) {
        let width = usize::from(page.rest.width);
        let (count, took, last) = &self.status.hooks;
        let mut spans = Vec::new();
        if let Some(since) = self.busy {
            let turn = self.now.saturating_sub(since);
            let place = usize::try_from(turn.as_millis() / super::TICK.as_millis().max(1)).unwrap_or_default();
            let spinner =
                SPINNER.get(place.checked_rem(SPINNER.len()).unwrap_or_default()).copied().unwrap_or_default();
            let what = if self.is_stopping { "stopping" } else { "working" };
            spans.push(self.styled(format!("{spinner} "), Role::Person));
            let time = seconds(turn.as_secs() as f64).replace(".0", "");
            let esc = if self.is_stopping || self.dialogs.front().is_some() { "" } else { " · Esc interrupts" };
            spans.push(Span::raw(format!("{what} {time}{esc}")));
        }
        if let Some((flash, _)) = &self.flash {
            spans.push(self.styled(format!("{}{flash}", if spans.is_empty() { "" } else { " · " }), Role::Warning));
        } else if *count > 0 {
            let what = if self.busy.is_some() {
                last.clone()
            } else {
                let hooks = if *count == 1 { "hook" } else { "hooks" };
                format!("{count} {hooks}, {}; last {last}", super::duration(*took))
            };
            let gap = if spans.is_empty() { "" } else { " · " };
            spans.push(self.styled(format!("{gap}⚙ {what}"), Role::Dim));
        }
        if !self.transcript.follows() {
            spans.insert(0, self.styled("↓ more below (Ctrl-End) ", Role::Name));
        }
        if !spans.is_empty() {
            let area = page.take(1);
            let mut lines = Vec::new();
            let text: Vec<_> = spans
                .into_iter()
                .map(|span| Span::styled(clip(&span.content, width).into_owned(), span.style))
                .collect();
            wrap(&text, page.rest.width, Breaks::Anywhere, &Lead::default(), &mut lines);
            lines.first().into_iter().for_each(|line| page.line(area, 0, 0, line));
        }
    }

    /// The input, what waits above it, and what is offered.
    fn draw_input(&mut self, page: &mut Page<'_>) {
        let (width, height) = (page.rest.width, page.rest.height);
        let most = (height / 3).max(1);
        let shown = self.input.shown(width.saturating_sub(2), most);
        let area = page.take(shown.rows.len());
        for (row, text) in shown.rows.iter().enumerate() {
            let mark = if row == 0 { "› " } else { "  " };
            let text = match (self.input.is_empty(), self.placeholder()) {
                (true, text) => self.styled(clip(text, usize::from(width).saturating_sub(2)).into_owned(), Role::Dim),
                (false, _) => Span::raw(text.clone()),
            };
            page.line(area, row, 0, &Line::from(vec![self.styled(mark, Role::Person), text]));
        }
        if self.search.is_none() && area.height > 0 {
            let x = area.x.saturating_add(shown.cursor.0).saturating_add(2).min(area.right().saturating_sub(1));
            let y = area.y.saturating_add(shown.cursor.1).min(area.bottom().saturating_sub(1));
            page.cursor = Some((x, y));
        }
        if page.rest.height >= 2 {
            let title = match &self.search {
                Some(search) => {
                    vec![self.styled(format!(" search: {}▏", clean::line(&search.words)), Role::Name)]
                }
                None => Vec::new(),
            };
            let rule = self.rule(width, title, Role::Dim);
            let area = page.take(1);
            page.line(area, 0, 0, &rule);
        }
        if page.rest.height >= 4 {
            self.draw_pending(page);
            self.draw_popup(page);
        }
    }

    fn placeholder(&self) -> &'static str {
        match self.busy {
            Some(_) => "Enter puts in a word now, Tab sends it after the turn",
            None => "Ask for something; / commands, @ files, ? help",
        }
    }

    fn draw_pending(&self, page: &mut Page<'_>) {
        let room = usize::from(page.rest.height / 4);
        let width = usize::from(page.rest.width);
        let lines: Vec<_> = self
            .pending
            .iter()
            .map(|pending| {
                let mark = if pending.is_later { "↳ later: " } else { "↳ " };
                self.styled(clip(&format!("{mark}{}", clean::line(&pending.text)), width).into_owned(), Role::Dim)
            })
            .map(Line::from)
            .take(room)
            .collect();
        let area = page.take(lines.len());
        page.lines(area, &lines);
    }

    fn draw_popup(&self, page: &mut Page<'_>) {
        let Some(popup) = &self.popup else { return };
        let room = POPUP.min(usize::from(page.rest.height / 2)).max(1);
        let first = popup.chosen.saturating_add(1).saturating_sub(room);
        let width = usize::from(page.rest.width);
        let column = popup.rows.iter().skip(first).take(room).map(|row| row.name.width()).max().unwrap_or_default();
        let lines: Vec<_> = popup
            .rows
            .iter()
            .enumerate()
            .skip(first)
            .take(room)
            .map(|(number, row)| {
                let name = clip(&clean::line(&row.name), width.saturating_sub(2)).into_owned();
                let gap = column.saturating_sub(name.width()).saturating_add(2);
                let about = format!("{}{}", " ".repeat(gap), clean::line(&row.about));
                let is_chosen = number == popup.chosen;
                let mark = if is_chosen { "› " } else { "  " };
                let role = if is_chosen { Role::Chosen } else { Role::Name };
                Line::from(vec![
                    self.styled(mark, Role::Person),
                    self.styled(name, role),
                    self.styled(about, Role::Dim),
                ])
            })
            .collect();
        let area = page.take(lines.len());
        page.lines(area, &lines);
    }

    fn draw_transcript(&mut self, page: &mut Page<'_>) {
        let area = page.rest;
        let (look, theme) = (self.look(), self.theme);
        self.seen = usize::from(area.height);
        let rows = self.transcript.rows(usize::from(area.height), look);
        // What there is stands at the top while it does not fill the screen.
        for (number, row) in rows.iter().enumerate() {
            let Some(line) = row.line else { continue };
            let indent = u16::try_from(row.depth.saturating_mul(2)).unwrap_or(u16::MAX);
            for level in 0..row.depth {
                let x = u16::try_from(level.saturating_mul(2)).unwrap_or(u16::MAX);
                page.line(area, number, x, &Line::from(Span::styled("┊", theme.of(Role::Name))));
            }
            if row.is_dim {
                let dim = line.clone().patch_style(Style::new().add_modifier(Modifier::DIM));
                page.line(area, number, indent, &dim);
            } else {
                page.line(area, number, indent, line);
            }
        }
    }

    fn draw_overlay(&mut self, page: &mut Page<'_>) {
        let (theme, width) = (self.theme, page.rest.width);
        let Some(overlay) = &mut self.overlay else { return };
        let (lines, chosen) = overlay.lines(width, theme);
        let room = usize::from(page.rest.height).saturating_sub(1);
        let last = lines.len().saturating_sub(room);
        overlay.top = match chosen {
            Some(row) => overlay.top.min(row).max(row.saturating_add(1).saturating_sub(room)).min(last),
            None => overlay.top.min(last),
        };
        let (top, title) = (overlay.top, overlay.title);
        let more = if top < last { " · ↓ more" } else { "" };
        let close = if chosen.is_some() { "Enter takes, Esc closes" } else { "Esc closes" };
        let title =
            vec![self.styled(format!(" {title} "), Role::Strong), self.styled(format!("· {close}{more} "), Role::Dim)];
        let rule = self.rule(width, title, Role::Dim);
        let area = page.rest;
        page.line(area, 0, 0, &rule);
        lines
            .iter()
            .skip(top)
            .take(room)
            .enumerate()
            .for_each(|(row, line)| page.line(area, row.saturating_add(1), 0, line));
    }

    /// A question: what it is about, the keys that answer it, and where a reason is asked for, that.
    fn draw_dialog(&mut self, page: &mut Page<'_>) {
        let (theme, now, width) = (self.theme, self.now, page.rest.width);
        let waiting = self.dialogs.len().saturating_sub(1);
        let written = self.input.text().to_owned();
        let Some(dialog) = self.dialogs.front_mut() else { return };
        let is_armed = dialog.armed <= now;
        let body = dialog.body(width, theme);
        let mut choices = if is_armed {
            dialog.choices(width, theme, self.facts.rules_file.as_deref())
        } else {
            let text = "You are typing: stop for a moment, then answer.";
            vec![
                Line::from(Span::styled(text, theme.of(Role::Warning))),
                Line::from(clean::line(&written).into_owned()),
            ]
        };
        let mut cursor = None;
        if let Stage::Reason(reason) = &dialog.stage
            && is_armed
        {
            let shown = reason.shown(width.saturating_sub(5), 1);
            let text = shown.rows.first().cloned().unwrap_or_default();
            choices.insert(0, Line::from(vec![Span::styled("why? ", theme.of(Role::Person)), Span::raw(text)]));
            cursor = Some(shown.cursor.0.saturating_add(5).min(width.saturating_sub(1)));
        }
        let choices = folded(&choices, width);
        // What answers is seen in any case; of what it is about, as much as there is room for.
        let area = page.take(choices.len());
        page.lines(area, &choices);
        page.cursor = cursor.map(|x| (x, area.y)).filter(|_| area.height > 0);
        let room = usize::from(page.rest.height.saturating_sub(1)).saturating_sub(usize::from(page.rest.height / 4));
        dialog.top = dialog.top.min(body.len().saturating_sub(room));
        let seen = body.get(dialog.top..).unwrap_or_default();
        let hidden = seen.len().saturating_sub(room);
        let above = dialog.top;
        let seen: Vec<_> = seen.iter().take(room).cloned().collect();
        let title = self.dialogs.front().map(Dialog::title);
        let area = page.take(seen.len());
        page.lines(area, &seen);
        let Some((title, label)) = title else { return };
        let mut spans = vec![self.styled(format!(" {title} "), Role::Warning)];
        spans.extend(label.map(|(label, role)| self.styled(format!("[{label}] "), role)));
        let mut more = Vec::new();
        if above > 0 {
            more.push(format!("↑ {above}"));
        }
        if hidden > 0 {
            more.push(format!("↓ {hidden} more"));
        }
        if waiting > 0 {
            more.push(format!("{waiting} more to ask"));
        }
        if !more.is_empty() {
            spans.push(self.styled(format!("{} ", more.join(" · ")), Role::Name));
        }
        let rule = self.rule(width, spans, Role::Warning);
        let area = page.take(1);
        page.line(area, 0, 0, &rule);
    }
}

/// Lines that are broken where they are too long.
fn folded(lines: &[Line<'static>], width: u16) -> Vec<Line<'static>> {
    let mut folded = Vec::new();
    lines.iter().for_each(|line| wrap(&line.spans, width, Breaks::Words, &Lead::default(), &mut folded));
    folded
}

/// How full the window is.
fn gauge(used: u64, limit: u64) -> String {
    if limit == 0 {
        return format!("{} tokens", short(used));
    }
    let share = used.saturating_mul(100).checked_div(limit).unwrap_or_default();
    let full = usize::try_from(share.saturating_add(6).min(100) / 13).unwrap_or_default().min(8);
    let bar = format!("{}{}", "▰".repeat(full), "▱".repeat(8usize.saturating_sub(full)));
    format!("{bar} {share} % of {}", short(limit))
}

/// As in `12.3k`.
fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1}k", number as f64 / 1e3).replace(".0k", "k"),
        _ => format!("{:.1}M", number as f64 / 1e6).replace(".0M", "M"),
    }
}
