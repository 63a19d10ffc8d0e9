//! The line that the person writes, which may be many lines.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::clean;

/// Bytes of one input. What is beyond is not taken.
const MOST: usize = 256 * 1024;

/// A text and a place in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Input {
    text: String,
    /// Always between two characters.
    cursor: usize,
    /// What was cut last.
    cut: String,
}

/// The rows of an input that are seen, and where the cursor is among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) rows: Vec<String>,
    pub(crate) cursor: (u16, u16),
}

impl Input {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What stands before the cursor.
    pub(crate) fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    fn after(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    /// Replaces all of it; the cursor stands at the end.
    pub(crate) fn set(&mut self, text: &str) {
        self.text.clear();
        self.cursor = 0;
        self.insert(text);
    }

    /// All of it; nothing is left.
    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// What a keyboard or a clipboard gives. Line breaks are those of Unix; of characters that a terminal obeys only they
    /// and tabs are taken.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text: String = text.chars().filter(|char| matches!(char, '\n' | '\t') || !char.is_control()).collect();
        let room = MOST.saturating_sub(self.text.len());
        let text = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        self.text.insert_str(self.cursor, text);
        self.go(self.cursor.saturating_add(text.len()));
    }

    /// Goes to a place, or to the next one that is between two characters.
    fn go(&mut self, place: usize) {
        // A mark that was written may have become part of the character before it.
        let line = self.text.get(..self.text.floor_char_boundary(place)).and_then(|before| before.rfind('\n'));
        let from = line.map_or(0, |end| end.saturating_add(1));
        let rest = self.text.get(from..).unwrap_or_default();
        let ends = std::iter::once(from)
            .chain(rest.grapheme_indices(true).map(|(at, part)| from.saturating_add(at).saturating_add(part.len())));
        self.cursor = ends.into_iter().find(|end| *end >= place).unwrap_or(self.text.len());
    }

    pub(crate) fn left(&mut self) {
        self.cursor = self.cursor.saturating_sub(self.before().graphemes(true).next_back().map_or(0, str::len));
    }

    pub(crate) fn right(&mut self) {
        self.cursor = self.cursor.saturating_add(self.after().graphemes(true).next().map_or(0, str::len));
    }

    /// To the beginning of the word before.
    pub(crate) fn word_left(&mut self) {
        let before = self.before();
        let word = before.trim_end_matches(|char: char| !char.is_alphanumeric());
        self.cursor = word.trim_end_matches(char::is_alphanumeric).len();
    }

    /// Behind the next word.
    pub(crate) fn word_right(&mut self) {
        let after = self.after();
        let word = after.trim_start_matches(|char: char| !char.is_alphanumeric());
        let rest = word.trim_start_matches(char::is_alphanumeric).len();
        self.cursor = self.text.len().saturating_sub(rest);
    }

    /// To the beginning of the line.
    pub(crate) fn line_start(&mut self) {
        self.cursor = self.before().rfind('\n').map_or(0, |end| end.saturating_add(1));
    }

    /// To the end of the line.
    pub(crate) fn line_end(&mut self) {
        self.cursor = self.after().find('\n').map_or(self.text.len(), |end| self.cursor.saturating_add(end));
    }

    /// A line up; false in the first one.
    pub(crate) fn up(&mut self) -> bool {
        let column = self.column();
        let Some(end) = self.before().rfind('\n') else { return false };
        self.cursor = end;
        self.line_start();
        self.go_to_column(column);
        true
    }

    /// A line down; false in the last one.
    pub(crate) fn down(&mut self) -> bool {
        let column = self.column();
        let Some(end) = self.after().find('\n') else { return false };
        self.cursor = self.cursor.saturating_add(end).saturating_add(1);
        self.go_to_column(column);
        true
    }

    fn column(&self) -> usize {
        self.before().rsplit('\n').next().unwrap_or_default().width()
    }

    fn go_to_column(&mut self, column: usize) {
        let line = self.after().split('\n').next().unwrap_or_default();
        let (mut at, mut width) = (0usize, 0usize);
        for part in line.graphemes(true) {
            width = width.saturating_add(part.width());
            if width > column {
                break;
            }
            at = at.saturating_add(part.len());
        }
        self.cursor = self.cursor.saturating_add(at);
    }

    pub(crate) fn backspace(&mut self) {
        let end = self.cursor;
        self.left();
        self.text.drain(self.cursor..end);
    }

    pub(crate) fn delete(&mut self) {
        let from = self.cursor;
        self.right();
        self.text.drain(from..self.cursor);
        self.cursor = from;
    }

    /// Cuts from where `to` goes up to the cursor, or from the cursor up to there.
    pub(crate) fn cut(&mut self, to: fn(&mut Self)) {
        let here = self.cursor;
        to(self);
        let (from, end) = (here.min(self.cursor), here.max(self.cursor));
        self.cut = self.text.drain(from..end).collect();
        self.cursor = from;
    }

    /// Puts in what was cut last.
    pub(crate) fn yank(&mut self) {
        let cut = std::mem::take(&mut self.cut);
        self.insert(&cut);
        self.cut = cut;
    }

    /// Replaces what stands before the cursor from a place on.
    pub(crate) fn complete(&mut self, from: usize, text: &str) {
        if self.text.is_char_boundary(from) && from <= self.cursor {
            self.text.drain(from..self.cursor);
            self.cursor = from;
            self.insert(text);
        }
    }

    /// The rows around the cursor, each at most `width` columns. Only lines that may be seen are laid out.
    pub(crate) fn shown(&self, width: u16, height: u16) -> Shown {
        let (width, height) = (usize::from(width).max(2), usize::from(height).max(1));
        let line_start = self.before().rfind('\n').map_or(0, |end| end.saturating_add(1));
        let above = self.text.get(..line_start).unwrap_or_default();
        let above = above
            .strip_suffix('\n')
            .map(|above| above.rsplit('\n').take(height).collect::<Vec<_>>())
            .unwrap_or_default();
        let mut rows = Vec::new();
        for line in above.into_iter().rev() {
            lay(line, usize::MAX, width, &mut rows);
        }
        let here = self.text.get(line_start..).unwrap_or_default();
        let mut lines = here.split('\n');
        let at = self.cursor.saturating_sub(line_start);
        let first = rows.len();
        let (row, column) = lay(lines.next().unwrap_or_default(), at, width, &mut rows);
        let row = first.saturating_add(row);
        for line in lines.take(height) {
            lay(line, usize::MAX, width, &mut rows);
        }
        // The cursor's row is seen, and as much before it as there is room for behind all that comes after.
        let from = rows.len().saturating_sub(height).min(row);
        let rows = rows.into_iter().skip(from).take(height).collect();
        let narrow = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        Shown { rows, cursor: (narrow(column), narrow(row.saturating_sub(from))) }
    }
}

/// Lays one line into rows; says in which row and column the character at `at` stands.
fn lay(line: &str, at: usize, width: usize, rows: &mut Vec<String>) -> (usize, usize) {
    let first = rows.len();
    let (mut row, mut used) = (String::new(), 0usize);
    let mut place = None;
    for (start, part) in line.grapheme_indices(true) {
        let part = if part == "\t" { "    ".into() } else { clean::shown(part) };
        // A row ends with its character; one that is seen as several is not torn but where it must be.
        for piece in part.graphemes(true) {
            let wide = piece.width();
            if used.saturating_add(wide) > width {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            if start >= at && place.is_none() {
                place = Some((rows.len().saturating_sub(first), used));
            }
            row.push_str(piece);
            used = used.saturating_add(wide);
        }
    }
    // Behind a full row the cursor stands in the next one.
    if place.is_none() && used >= width {
        rows.push(std::mem::take(&mut row));
        used = 0;
    }
    let place = place.unwrap_or((rows.len().saturating_sub(first), used));
    rows.push(row);
    place
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn input(text: &str) -> Input {
        let mut input = Input::default();
        input.insert(text);
        input
    }

    #[test]
    fn a_character_is_one_step() {
        let mut input = input("a👨‍👩‍👧‍👦e\u{301}");
        input.left();
        input.left();
        assert_eq!(input.before(), "a");
        input.delete();
        assert_eq!(input.text(), "ae\u{301}");
        input.line_end();
        input.backspace();
        assert_eq!(input.text(), "a");
    }

    #[test]
    fn words_and_lines() {
        let mut input = input("one two\nthree");
        assert!(input.up());
        assert_eq!(input.before(), "one t");
        input.word_left();
        assert_eq!(input.before(), "one ");
        input.word_right();
        assert_eq!(input.before(), "one two");
        input.cut(Input::word_left);
        assert_eq!(input.text(), "one \nthree");
        assert!(input.down());
        assert!(!input.down());
        input.line_end();
        input.yank();
        assert_eq!(input.text(), "one \nthreetwo");
    }

    #[test]
    fn what_is_pasted_obeys_no_terminal() {
        assert_eq!(input("a\r\nb\rc\u{1b}[31m\td").text(), "a\nb\nc[31m\td");
    }

    #[test]
    fn rows_hold_the_cursor() {
        let mut input = input("abcdef\ngh");
        assert_eq!(input.shown(4, 9), Shown { rows: ["abcd", "ef", "gh"].map(str::to_owned).to_vec(), cursor: (2, 2) });
        input.up();
        input.line_end();
        assert_eq!(input.shown(3, 2), Shown { rows: ["", "gh"].map(str::to_owned).to_vec(), cursor: (0, 0) });
        assert_eq!(Input::default().shown(4, 3), Shown { rows: vec![String::new()], cursor: (0, 0) });
    }

    proptest! {
        #[test]
        fn nothing_panics_and_the_cursor_is_seen(
            steps in prop::collection::vec((0u8..14, "[a-z \n\t日\u{301}\u{200d}👍\u{1b}]{0,4}"), 0..40),
            width in 0u16..12, height in 0u16..6,
        ) {
            let mut input = Input::default();
            for (step, text) in steps {
                match step {
                    0 => input.left(),
                    1 => input.right(),
                    2 => input.word_left(),
                    3 => input.word_right(),
                    4 => input.line_start(),
                    5 => input.line_end(),
                    6 => { input.up(); }
                    7 => { input.down(); }
                    8 => input.backspace(),
                    9 => input.delete(),
                    10 => input.cut(Input::word_left),
                    11 => input.cut(Input::line_end),
                    12 => input.yank(),
                    _ => input.insert(&text),
                }
                let shown = input.shown(width, height);
                prop_assert!(shown.rows.len() <= usize::from(height.max(1)));
                prop_assert!(usize::from(shown.cursor.1) < shown.rows.len(), "{shown:?}");
                prop_assert!(shown.cursor.0 <= width.max(2), "{shown:?}");
            }
        }
    }
}
