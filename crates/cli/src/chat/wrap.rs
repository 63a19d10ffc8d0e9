//! Styled text in lines of a width, by what a terminal shows: grapheme by grapheme, a wide one in two columns.

use std::borrow::Cow;

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns from one tab stop to the next.
const TAB: usize = 4;

/// Bytes of one character with all its marks; what is longer is cut, for a terminal shows no more of it.
const GRAPHEME: usize = 64;

/// Where a line may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaks {
    /// Behind a word.
    Words,
    /// Anywhere: code stays as it is.
    Anywhere,
}

/// What stands before the first line, and before those that continue it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lead {
    pub(crate) first: Vec<Span<'static>>,
    pub(crate) next: Vec<Span<'static>>,
}

impl Lead {
    /// The same before each line.
    pub(crate) fn of(text: &'static str, style: Style) -> Self {
        let lead = vec![Span::styled(text, style)];
        Self { first: lead.clone(), next: lead }
    }
}

/// One character as it is seen.
struct Atom<'a> {
    text: &'a str,
    width: usize,
    style: Style,
}

/// Lays a text without line breaks into lines of at most `width` columns. There is always one line.
pub(crate) fn wrap(spans: &[Span<'_>], width: u16, breaks: Breaks, lead: &Lead, lines: &mut Vec<Line<'static>>) {
    let atoms = atoms(spans);
    let mut from = 0;
    let mut lead_now = &lead.first;
    loop {
        let lead_width: usize = lead_now.iter().map(Span::width).sum();
        // Where the lead leaves no room there is none.
        let (lead_spans, room) = match usize::from(width).checked_sub(lead_width) {
            Some(room) if room >= 2 => (lead_now.clone(), room),
            _ => (Vec::new(), usize::from(width).max(1)),
        };
        let rest = atoms.get(from..).unwrap_or_default();
        let (taken, skipped) = fit(rest, room, breaks);
        lines.push(line(lead_spans, rest.get(..taken).unwrap_or_default()));
        from = from.saturating_add(taken).saturating_add(skipped);
        if from >= atoms.len() {
            return;
        }
        lead_now = &lead.next;
    }
}

/// How many characters the next line takes, and how many blanks behind them none does.
fn fit(atoms: &[Atom<'_>], room: usize, breaks: Breaks) -> (usize, usize) {
    let mut used = 0usize;
    let mut good = None;
    for (index, atom) in atoms.iter().enumerate() {
        let after = index.saturating_add(1);
        let is_blank = atom.text == " ";
        if used.saturating_add(atom.width) > room {
            if breaks == Breaks::Anywhere {
                return (index.max(1), 0);
            }
            // Blanks at the end of a line are not seen, and do not begin the next one.
            let end = if is_blank { index } else { good.unwrap_or(index.max(1)) };
            let blanks = atoms.get(end..).unwrap_or_default().iter().take_while(|atom| atom.text == " ").count();
            return (end, blanks);
        }
        used = used.saturating_add(atom.width);
        // Scripts without blanks are written in wide characters, and break behind each.
        if (is_blank && index > 0) || atom.width > 1 {
            good = Some(after);
        }
    }
    (atoms.len(), 0)
}

fn atoms<'a>(spans: &'a [Span<'_>]) -> Vec<Atom<'a>> {
    let mut atoms = Vec::new();
    let mut column = 0usize;
    for span in spans {
        for text in span.content.graphemes(true) {
            if text == "\t" {
                let blanks = TAB.saturating_sub(column.checked_rem(TAB).unwrap_or_default());
                atoms.extend((0..blanks).map(|_| Atom { text: " ", width: 1, style: span.style }));
                column = column.saturating_add(blanks);
                continue;
            }
            let text = bounded(text);
            let width = text.width();
            if width > 0 {
                atoms.push(Atom { text, width, style: span.style });
                column = column.saturating_add(width);
            }
        }
    }
    atoms
}

fn bounded(grapheme: &str) -> &str {
    let end = grapheme.floor_char_boundary(GRAPHEME);
    grapheme.get(..end).unwrap_or(grapheme)
}

/// One line; characters of the same style together.
fn line(lead: Vec<Span<'static>>, atoms: &[Atom<'_>]) -> Line<'static> {
    let mut spans = lead;
    for run in atoms.chunk_by(|a, b| a.style == b.style) {
        let text: String = run.iter().map(|atom| atom.text).collect();
        spans.push(Span::styled(text, run.first().map(|atom| atom.style).unwrap_or_default()));
    }
    Line::from(spans)
}

/// A text cut to a width, its end marked where something is missing.
pub(crate) fn clip(text: &str, width: usize) -> Cow<'_, str> {
    if text.len() <= width && text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let (mut used, mut end, mut fits) = (0usize, 0usize, 0usize);
    for grapheme in text.graphemes(true) {
        used = used.saturating_add(grapheme.width());
        if used > width {
            let cut = text.get(..fits).unwrap_or_default();
            return Cow::Owned(if width == 0 { String::new() } else { format!("{cut}…") });
        }
        end = end.saturating_add(grapheme.len());
        if used < width {
            fits = end;
        }
    }
    Cow::Borrowed(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped(text: &str, width: u16, breaks: Breaks) -> Vec<String> {
        let mut lines = Vec::new();
        wrap(&[Span::raw(text.to_owned())], width, breaks, &Lead::default(), &mut lines);
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        assert_eq!(wrapped("one two three", 8, Breaks::Words), ["one two ", "three"]);
        assert_eq!(wrapped("one two", 7, Breaks::Words), ["one two"]);
        assert_eq!(wrapped("abcdefghij k", 4, Breaks::Words), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrapped("", 4, Breaks::Words), [""]);
    }

    #[test]
    fn code_breaks_anywhere_and_keeps_its_blanks() {
        assert_eq!(wrapped("  let x", 4, Breaks::Anywhere), ["  le", "t x"]);
        assert_eq!(wrapped("\tx", 80, Breaks::Anywhere), ["    x"]);
    }

    #[test]
    fn a_wide_character_takes_two_columns() {
        assert_eq!(wrapped("日本語", 5, Breaks::Words), ["日本", "語"]);
        assert_eq!(wrapped("👨‍👩‍👧‍👦x", 2, Breaks::Anywhere), ["👨‍👩‍👧‍👦", "x"]);
    }

    #[test]
    fn a_cut_is_marked() {
        assert_eq!(clip("hello", 5), "hello");
        assert_eq!(clip("hello", 4), "hel…");
        assert_eq!(clip("日本語", 4), "日…");
        assert_eq!(clip("x", 0), "");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_and_nothing_but_blanks_is_lost(text in "[a-z 日é\u{301}👍🏽]*", width in 2u16..40) {
            for breaks in [Breaks::Words, Breaks::Anywhere] {
                let lines = wrapped(&text, width, breaks);
                let seen = |text: &str| text.graphemes(true).filter(|part| part.width() > 0 && *part != " ").collect::<String>();
                // A base with a mark that is wide by itself may be wider than the line.
                let fits = |line: &str| line.width() <= usize::from(width) || line.graphemes(true).count() == 1;
                prop_assert!(lines.iter().all(|line| fits(line)), "{lines:?}");
                prop_assert_eq!(seen(&lines.concat()), seen(&text));
            }
            prop_assert!(clip(&text, usize::from(width)).width() <= usize::from(width));
        }
    }
}
