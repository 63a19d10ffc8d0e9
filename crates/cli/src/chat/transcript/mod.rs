//! What was said and done, from the first line to the last: items folded from [`Report`]s. Only items that are seen are
//! laid out, so that a long session costs no more than a short one.

mod item;
mod tool;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use gatehook_agent::report::Report;
use ratatui::text::Line;

use self::item::{Item, Kind};
pub(crate) use self::item::{Look, duration, seconds};
use self::tool::Tool;
pub(crate) use self::tool::{arguments, diff_lines};

/// Items whose lines are kept at most. Those of the others are laid out again when they come into sight.
const LAID: usize = 512;

/// How far back the item is looked for that a report goes on with. Others tell things meanwhile, but not that many.
const NEAR: usize = 256;

/// The first row that is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Top {
    /// Whatever shows the last row.
    Follows,
    At {
        item: usize,
        row: usize,
    },
}

/// Items, and which of them are in sight.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// Whose it is.
    session: Option<Arc<str>>,
    items: Vec<Item>,
    /// Where calls stand that are not over.
    calls: HashMap<Arc<str>, usize>,
    top: Top,
    /// Items that were laid out, the oldest first.
    laid: VecDeque<usize>,
}

/// One row on the screen: how deep it stands, and its line. A blank row keeps items apart.
pub(crate) struct Row<'a> {
    pub(crate) depth: usize,
    /// It may be passed over.
    pub(crate) is_dim: bool,
    pub(crate) line: Option<&'a Line<'static>>,
}

impl Default for Transcript {
    fn default() -> Self {
        Self { session: None, items: Vec::new(), calls: HashMap::new(), top: Top::Follows, laid: VecDeque::new() }
    }
}

impl Transcript {
    /// One more thing happened.
    pub(crate) fn fold(&mut self, report: Report, now: Duration) {
        self.fold_at(report, now, &[]);
    }

    /// The person is told something that is no report.
    pub(crate) fn say(&mut self, level: &'static str, text: impl Into<Arc<str>>) {
        self.push(Item::new(&[], Kind::Notice { level, text: text.into() }), Duration::ZERO);
    }

    fn fold_at(&mut self, report: Report, now: Duration, agents: &[Arc<str>]) {
        match report {
            Report::Subagent { agent, report, .. } => {
                let mut deeper = agents.to_vec();
                deeper.push(agent);
                self.fold_at(*report, now, &deeper);
            }
            Report::Session { ref session_id, .. } if agents.is_empty() => {
                // What is on the screen belongs to the session before.
                if self.is_of_another(session_id) {
                    *self = Self::default();
                }
                self.session = Some(session_id.clone());
                self.push(Item::new(agents, Kind::of(report).unwrap_or_default()), now);
            }
            Report::Text { delta } => self.grow(agents, &delta, false, now),
            Report::Thinking { delta } => self.grow(agents, &delta, true, now),
            Report::Message { text } => self.whole(agents, &text, now),
            Report::ToolCall { id, name, input } => {
                self.calls.insert(id, self.items.len());
                self.push(Item::new(agents, Kind::Tool(Box::new(Tool::new(name, input)))), now);
            }
            Report::Approval { id, decision, source, input } => {
                self.call(&id, |tool| tool.settled(&decision, &source, input));
            }
            Report::ToolOutput { id, delta } => self.call(&id, |tool| tool.says(&delta)),
            Report::ToolResult { id, name, output, error, diff, duration } => {
                if !self.calls.contains_key(&id) {
                    self.calls.insert(id.clone(), self.items.len());
                    self.push(Item::new(agents, Kind::Tool(Box::new(Tool::new(name, Arc::default())))), now);
                }
                self.call(&id, |tool| tool.over(&output, error, diff, duration));
                self.calls.remove(&id);
            }
            report => {
                if let Some(kind) = Kind::of(report) {
                    self.push(Item::new(agents, kind), now);
                }
            }
        }
    }

    /// A piece of an answer goes to the one that is being said.
    fn grow(&mut self, agents: &[Arc<str>], delta: &str, thinking: bool, now: Duration) {
        let grown = self.latest(agents).filter(|item| item.kind.is_open(thinking));
        match grown {
            Some(item) => {
                item.kind.grow(delta);
                item.lines = None;
            }
            None => self.push(Item::new(agents, Kind::said(delta, thinking, now)), now),
        }
    }

    /// The last of an agent's items, but for what was told beside them.
    fn latest(&mut self, agents: &[Arc<str>]) -> Option<&mut Item> {
        let near = self.items.iter_mut().rev().take(NEAR);
        near.filter(|item| item.agents == agents).find(|item| !item.kind.is_aside())
    }

    /// The answer that was being said is whole.
    fn whole(&mut self, agents: &[Arc<str>], text: &str, now: Duration) {
        let said = self.items.iter_mut().rev().take(NEAR).take_while(|item| !item.kind.begins_anew());
        let open = said.filter(|item| item.agents == agents).find(|item| item.kind.is_open(false));
        match open {
            Some(item) => {
                item.kind.whole(text);
                item.lines = None;
            }
            None if text.trim().is_empty() => {}
            None => {
                let mut kind = Kind::said(text, false, now);
                kind.whole(text);
                self.push(Item::new(agents, kind), now);
            }
        }
    }

    fn call(&mut self, id: &str, change: impl FnOnce(&mut Tool)) {
        if let Some(Item { kind: Kind::Tool(tool), lines, .. }) =
            self.calls.get(id).and_then(|place| self.items.get_mut(*place))
        {
            change(tool);
            *lines = None;
        }
    }

    fn push(&mut self, item: Item, now: Duration) {
        if !item.kind.is_aside()
            && let Some(before) = self.latest(&item.agents)
            && before.kind.ends(now)
        {
            before.lines = None;
        }
        self.items.push(item);
    }

    /// Whether it is that of another session.
    pub(crate) fn is_of_another(&self, session: &str) -> bool {
        self.session.as_deref().is_some_and(|known| known != session)
    }

    /// Whether the last row is in sight.
    pub(crate) fn follows(&self) -> bool {
        self.top == Top::Follows
    }

    /// Goes to the last row, and stays there.
    pub(crate) fn show_end(&mut self) {
        self.top = Top::Follows;
    }

    /// Goes to the first row.
    pub(crate) fn show_start(&mut self) {
        self.top = Top::At { item: 0, row: 0 };
    }

    /// Goes up by so many rows.
    pub(crate) fn up(&mut self, rows: usize, height: usize, look: Look) {
        let (item, row) = self.first(height, look);
        let (item, row) = self.back(item, row, rows, look);
        self.top = Top::At { item, row };
    }

    /// Goes down by so many rows, and follows from the last one on.
    pub(crate) fn down(&mut self, rows: usize, height: usize, look: Look) {
        let Top::At { mut item, mut row } = self.top else { return };
        let mut left = rows;
        while left > 0 && item < self.items.len() {
            let below = self.height(item, look).saturating_sub(row);
            if left < below {
                row = row.saturating_add(left);
                break;
            }
            left = left.saturating_sub(below);
            item = item.saturating_add(1);
            row = 0;
        }
        let end = self.back(self.items.len(), 0, height, look);
        self.top = if (item, row) >= end { Top::Follows } else { Top::At { item, row } };
    }

    /// The rows in sight, at most `height`, as they are now.
    pub(crate) fn rows(&mut self, height: usize, look: Look) -> Vec<Row<'_>> {
        let (first, skipped) = self.first(height, look);
        let (mut last, mut seen) = (first, 0usize);
        while seen < height.saturating_add(skipped) && last < self.items.len() {
            seen = seen.saturating_add(self.height(last, look));
            last = last.saturating_add(1);
        }
        self.forget(first, last);
        let items = self.items.get(first..last).unwrap_or_default().iter().enumerate();
        let rows = items.flat_map(|(place, item)| {
            let blanks = usize::from(item.kind.stands_apart() && first.saturating_add(place) > 0);
            let depth = item.agents.len();
            let (head, body) = item.laid();
            let blanks = if head.is_empty() && body.is_empty() { 0 } else { blanks };
            let blanks = (0..blanks).map(move |_| Row { depth, is_dim: false, line: None });
            let is_dim = item.kind.is_thinking();
            let head = head.iter().map(move |line| Row { depth, is_dim: false, line: Some(line) });
            let body = body.iter().map(move |line| Row { depth, is_dim, line: Some(line) });
            blanks.chain(head).chain(body)
        });
        rows.skip(skipped).take(height).collect()
    }

    /// The first row in sight. Where less is below it than there is room, the end is followed.
    fn first(&mut self, height: usize, look: Look) -> (usize, usize) {
        let end = self.back(self.items.len(), 0, height, look);
        match self.top {
            Top::At { item, row } if (item, row) < end => (item, row.min(self.height(item, look).saturating_sub(1))),
            _ => {
                self.top = Top::Follows;
                end
            }
        }
    }

    /// The row so many rows above another.
    fn back(&mut self, item: usize, row: usize, rows: usize, look: Look) -> (usize, usize) {
        let (mut item, mut row, mut left) = (item, row, rows);
        while left > row {
            left = left.saturating_sub(row);
            let Some(above) = item.checked_sub(1) else { return (0, 0) };
            item = above;
            row = self.height(item, look);
        }
        (item, row.saturating_sub(left))
    }

    /// Rows of one item.
    fn height(&mut self, place: usize, look: Look) -> usize {
        let Some(item) = self.items.get_mut(place) else { return 0 };
        item.lay(look);
        if !std::mem::replace(&mut item.is_listed, true) {
            self.laid.push_back(place);
        }
        let item = &*item;
        let (head, body) = item.laid();
        match head.len().saturating_add(body.len()) {
            0 => 0,
            lines => lines.saturating_add(usize::from(item.kind.stands_apart() && place > 0)),
        }
    }

    /// Lets go of lines that nobody looks at.
    fn forget(&mut self, first: usize, last: usize) {
        let mut looked_at = Vec::new();
        while self.laid.len() > LAID {
            let Some(place) = self.laid.pop_front() else { break };
            if (first..last).contains(&place) {
                looked_at.push(place);
            } else if let Some(item) = self.items.get_mut(place) {
                item.forget();
            }
        }
        self.laid.extend(looked_at);
    }
}

#[cfg(test)]
mod tests;
