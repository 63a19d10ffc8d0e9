//! Plain tables for people: columns as wide as their content, nothing that a pipe would mind.

use gatehook_engine::text;

/// Rows of cells; the last column is as long as it likes.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table under this heading.
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    /// Adds a row. Cells come from files and hooks: no line breaks or controls of theirs reach the screen.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| text::plain(&cell).replace(['\n', '\t'], " ")).collect());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                let missing = width.saturating_sub(cell.chars().count());
                line.extend(std::iter::repeat_n(' ', missing + 2));
            }
            writeln!(formatter, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_content() {
        let mut table = Table::new(&["event", "hook"]);
        table.row(["pre_tool_use".to_owned(), "guard".to_owned()]);
        assert_eq!(table.to_string(), "event         hook\npre_tool_use  guard\n");
    }

    #[test]
    fn a_cell_is_one_line_without_controls() {
        let mut table = Table::default();
        table.row(["a\nb\u{1b}[2Jc".to_owned(), "d".to_owned()]);
        assert_eq!(table.to_string(), "a bc  d\n");
    }
}
