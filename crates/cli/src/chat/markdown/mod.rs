//! Markdown as it streams. What is settled is laid out once; what may still change its meaning is laid out again with
//! each piece, and that is the last block alone.

mod blocks;

use ratatui::text::Line;

use self::blocks::{Writer, last_block};
use super::clean;
use super::theme::Theme;

/// Bytes of one block that may still change. What is longer is settled up to its last line, or its last word.
const OPEN: usize = 16 * 1024;

/// A text that grows, and its lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Markdown {
    source: String,
    laid: Option<Laid>,
}

/// What is laid out, for one width.
#[derive(Debug, Clone)]
struct Laid {
    width: u16,
    theme: Theme,
    lines: Vec<Line<'static>>,
    /// How many of the lines stay, and of how many bytes they are.
    settled: (usize, usize),
    /// The code block that is open behind them.
    fence: Option<Fence>,
    /// How long the source was.
    seen: usize,
}

/// How an open code block ends.
#[derive(Debug, Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

impl Markdown {
    pub(crate) fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), laid: None }
    }

    /// One more piece.
    pub(crate) fn push(&mut self, piece: &str) {
        self.source.push_str(piece);
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Forgets the lines, but not the text.
    pub(crate) fn forget(&mut self) {
        self.laid = None;
    }

    /// The lines as they were laid out last.
    pub(crate) fn laid(&self) -> &[Line<'static>] {
        self.laid.as_ref().map(|laid| &*laid.lines).unwrap_or_default()
    }

    /// The lines for a width.
    pub(crate) fn lines(&mut self, width: u16, theme: Theme) -> &[Line<'static>] {
        let laid = match self.laid.take() {
            Some(laid) if laid.width == width && laid.theme == theme => laid,
            _ => Laid { width, theme, lines: Vec::new(), settled: (0, 0), fence: None, seen: usize::MAX },
        };
        let laid = self.laid.insert(laid);
        if laid.seen != self.source.len() {
            laid.read(&self.source);
        }
        &laid.lines
    }
}

impl Laid {
    fn read(&mut self, source: &str) {
        self.seen = source.len();
        self.lines.truncate(self.settled.0);
        loop {
            let rest = source.get(self.settled.1..).unwrap_or_default();
            let went_on = match self.fence {
                Some(fence) => self.code(rest, fence),
                None => self.prose(rest),
            };
            if !went_on {
                return;
            }
        }
    }

    /// Takes whole lines of code, and shows what there is of the next one. Whether the block ended.
    fn code(&mut self, rest: &str, fence: Fence) -> bool {
        let mut writer = Writer::new(self.width, self.theme, &mut self.lines);
        let mut taken = 0usize;
        let mut open = None;
        for line in rest.split_inclusive('\n') {
            let text = line.strip_suffix('\n');
            match text {
                Some(text) if fence.is_closed_by(text) => {
                    writer.code_end();
                    taken = taken.saturating_add(line.len());
                    self.fence = None;
                    break;
                }
                Some(text) => {
                    writer.code_line(&clean::printed(text));
                    taken = taken.saturating_add(line.len());
                }
                None => open = Some(line),
            }
        }
        self.settle(taken);
        let Some(line) = open.filter(|_| self.fence.is_some()) else { return self.fence.is_none() };
        let mut writer = Writer::new(self.width, self.theme, &mut self.lines);
        if fence.is_closed_by(line) {
            writer.code_end()
        } else {
            writer.code_line(&clean::printed(line))
        }
        false
    }

    /// Takes whole blocks up to the next code block, and shows what there is of the last one. Whether code follows.
    fn prose(&mut self, rest: &str) -> bool {
        if let Some((before, opening, fence)) = next_fence(rest) {
            let mut writer = Writer::new(self.width, self.theme, &mut self.lines);
            writer.write(&clean::printed(before));
            let label = opening.trim_start_matches(fence.mark).trim();
            writer.code_begin(&clean::line(label));
            self.fence = Some(fence);
            self.settle(before.len().saturating_add(opening.len()).saturating_add(1));
            return true;
        }
        // A line that goes on may yet turn out to belong to the block before it.
        let lines = rest.rfind('\n').map_or("", |end| rest.get(..end.saturating_add(1)).unwrap_or_default());
        let done = last_block(lines);
        let open = rest.len().saturating_sub(done);
        let done = if open > OPEN { done.saturating_add(cut(rest.get(done..).unwrap_or_default())) } else { done };
        if let Some((settled, _)) = rest.split_at_checked(done).filter(|(settled, _)| !settled.is_empty()) {
            Writer::new(self.width, self.theme, &mut self.lines).write(&clean::printed(settled));
            self.settle(done);
        }
        let tail = rest.get(done..).unwrap_or_default();
        Writer::new(self.width, self.theme, &mut self.lines).write(&clean::printed(tail));
        false
    }

    fn settle(&mut self, bytes: usize) {
        self.settled = (self.lines.len(), self.settled.1.saturating_add(bytes));
    }
}

impl Fence {
    fn of(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = line.chars().take_while(|char| *char == mark).count();
        let label = line.get(length..).unwrap_or_default();
        (length >= 3 && !(mark == '`' && label.contains('`'))).then_some(Self { mark, length })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim_end();
        let indent = line.len().saturating_sub(line.trim_start_matches(' ').len());
        let marks = line.trim_start_matches(' ');
        indent < 4 && marks.len() >= self.length && marks.chars().all(|char| char == self.mark)
    }
}

/// The next code block that begins at the margin: what stands before it, the line that opens it, how it ends.
fn next_fence(text: &str) -> Option<(&str, &str, Fence)> {
    let mut at = 0usize;
    for line in text.split_inclusive('\n') {
        if let Some(opening) = line.strip_suffix('\n')
            && let Some(fence) = Fence::of(opening)
        {
            return Some((text.get(..at)?, opening, fence));
        }
        at = at.saturating_add(line.len());
    }
    None
}

/// Where a block that is too long is cut: before its last line that begins at the margin, else behind its last line,
/// else behind its last word.
fn cut(block: &str) -> usize {
    let lines = || block.match_indices('\n').map(|(at, _)| at.saturating_add(1));
    let at_margin =
        |at: &usize| block.get(*at..).is_some_and(|rest| !rest.is_empty() && !rest.starts_with([' ', '\t']));
    let word = || block.rfind(' ').map(|at| at.saturating_add(1));
    lines().rfind(at_margin).or_else(|| lines().next_back()).or_else(word).unwrap_or(block.len())
}

#[cfg(test)]
mod tests;
