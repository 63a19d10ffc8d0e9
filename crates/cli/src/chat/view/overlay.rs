//! What lies over the transcript: a list to choose from, or a text to read.

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::text::{Line, Span};

use super::super::clean;
use super::super::theme::{Role, Theme};
use super::super::wire::{Choice, Command};
use super::super::wrap::{Breaks, Lead, wrap};
use super::slash::SLASHES;

/// Keys and what they do, in the order of the help.
pub(crate) const KEYS: [(&str, &str); 20] = [
    ("Enter", "send; while a turn runs, put in a word"),
    ("Tab", "while a turn runs: send when it is over; else complete"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Esc", "interrupt the turn"),
    ("Ctrl-C", "interrupt the turn, or empty the input; twice: quit"),
    ("Ctrl-D", "quit, where nothing is written"),
    ("PageUp, PageDown", "scroll; Ctrl-Home and Ctrl-End to the ends"),
    ("Shift-Up, Shift-Down", "scroll by a line"),
    ("Ctrl-O", "details: thinking, whole outputs, every hook"),
    ("Up, Down", "lines of the input, then what was written before"),
    ("Ctrl-R", "search in what was written before"),
    ("@", "a file or an agent by name"),
    ("/", "a command"),
    ("Ctrl-A, Ctrl-E", "beginning and end of the line"),
    ("Alt-B, Alt-F", "a word back, a word on; Ctrl with arrows too"),
    ("Ctrl-W, Ctrl-U, Ctrl-K", "cut a word, to the beginning, to the end"),
    ("Ctrl-Y", "put in what was cut"),
    ("Ctrl-L", "draw anew"),
    ("Ctrl-Z", "stop; `fg` goes on"),
    ("F1, ?", "this help"),
];

#[derive(Debug)]
pub(crate) struct Overlay {
    pub(crate) title: &'static str,
    pub(crate) content: Content,
    /// The first row that is seen.
    pub(crate) top: usize,
}

#[derive(Debug)]
pub(crate) enum Content {
    Help,
    Text(Vec<String>),
    List { rows: Vec<Choice>, chosen: usize, picks: fn(String) -> Command },
}

/// What a key did.
pub(crate) enum Done {
    Stays,
    Closes,
    Picks(Command),
}

impl Overlay {
    pub(crate) fn help() -> Self {
        Self { title: "Help", content: Content::Help, top: 0 }
    }

    pub(crate) fn text(title: &'static str, lines: Vec<String>) -> Self {
        Self { title, content: Content::Text(lines), top: 0 }
    }

    pub(crate) fn list(title: &'static str, rows: Vec<Choice>, picks: fn(String) -> Command) -> Self {
        Self { title, content: Content::List { rows, chosen: 0, picks }, top: 0 }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Done {
        let step = match key.code {
            KeyCode::Esc | KeyCode::F(1) | KeyCode::Char('q' | '?') => return Done::Closes,
            KeyCode::Up => -1,
            KeyCode::Down => 1,
            KeyCode::PageUp => -10,
            KeyCode::PageDown | KeyCode::Char(' ') => 10,
            KeyCode::Home => isize::MIN,
            KeyCode::End => isize::MAX,
            KeyCode::Enter => {
                return match &self.content {
                    Content::List { rows, chosen, picks } => {
                        rows.get(*chosen).map_or(Done::Closes, |row| Done::Picks(picks(row.name.clone())))
                    }
                    _ => Done::Closes,
                };
            }
            _ => return Done::Stays,
        };
        match &mut self.content {
            Content::List { rows, chosen, .. } => {
                *chosen = chosen.saturating_add_signed(step).min(rows.len().saturating_sub(1));
            }
            _ => self.top = self.top.saturating_add_signed(step),
        }
        Done::Stays
    }

    /// All of its lines, and which of them is chosen.
    pub(crate) fn lines(&self, width: u16, theme: Theme) -> (Vec<Line<'static>>, Option<usize>) {
        let mut lines = Vec::new();
        let mut chosen_line = None;
        match &self.content {
            Content::Help => {
                let keys = KEYS.iter().map(|(key, what)| ((*key).to_owned(), *what));
                let slashes = SLASHES.iter().map(|slash| (format!("/{}", slash.name), slash.about));
                for (name, what) in keys.chain(std::iter::once((String::new(), ""))).chain(slashes) {
                    row(&name, what, 27, width, theme, Role::Name, &mut lines);
                }
            }
            Content::Text(texts) => {
                for text in texts {
                    let text = clean::shown(text);
                    text.lines().for_each(|line| {
                        wrap(&[Span::raw(line)], width, Breaks::Words, &Lead::default(), &mut lines);
                    });
                }
            }
            Content::List { rows, chosen, .. } => {
                for (number, choice) in rows.iter().enumerate() {
                    let is_chosen = number == *chosen;
                    if is_chosen {
                        chosen_line = Some(lines.len());
                    }
                    let name = format!("{} {}", if is_chosen { "›" } else { " " }, clean::line(&choice.name));
                    let role = if is_chosen { Role::Chosen } else { Role::Plain };
                    row(&name, &clean::line(&choice.about), 24, width, theme, role, &mut lines);
                }
            }
        }
        (lines, chosen_line)
    }
}

/// A name and what is to be said of it, in a column of its own where there is room for one.
fn row(name: &str, what: &str, column: u16, width: u16, theme: Theme, role: Role, lines: &mut Vec<Line<'static>>) {
    let taken = unicode_width::UnicodeWidthStr::width(name);
    let column = usize::from(column.min(width / 2));
    let gap = column.saturating_sub(taken).max(1);
    let lead = Lead {
        first: vec![Span::styled(name.to_owned(), theme.of(role)), Span::raw(" ".repeat(gap))],
        next: vec![Span::raw(" ".repeat(column))],
    };
    wrap(&[Span::styled(what.to_owned(), theme.of(Role::Dim))], width, Breaks::Words, &lead, lines);
}
