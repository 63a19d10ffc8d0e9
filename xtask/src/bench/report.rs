//! A table of measurements: what was measured, against what, and what was wanted.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::median;
use crate::Outcome;
use crate::program::{Program, root, target};

/// What a figure has to keep to: as a ratio where it stands against a yardstick.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// So much more than the yardstick, at most; `None` wants it of nobody.
    MoreBy(Option<f64>),
    /// Measured to be seen, wanted of nobody.
    Open,
}

/// A figure with what it was held against in the same run.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The yardstick and its figure in the same unit. Without one the bound holds for the value.
    pub(crate) against: Option<(String, f64)>,
    /// Both sides of each round, where they were measured one right after the other: then the median of what they come to
    /// beside each other is what the bound is about.
    pub(crate) rounds: Vec<(f64, f64)>,
    pub(crate) bound: Bound,
}

/// All rows of one bench, and where they were measured.
pub(crate) struct Report {
    name: &'static str,
    place: String,
    rows: Vec<Row>,
}

impl Row {
    /// Resident memory in MiB.
    pub(crate) fn memory(what: &str, value: f64, bound: Bound) -> Self {
        Self { what: what.to_owned(), value, unit: "MiB", against: None, rounds: Vec::new(), bound }
    }

    /// What the bound is about.
    fn figure(&self) -> f64 {
        let beside = |value: f64, yardstick: f64| match self.bound {
            Bound::MoreBy(_) => value - yardstick,
            _ => value / yardstick,
        };
        match &self.against {
            None => self.value,
            Some((_, yardstick)) if self.rounds.is_empty() => beside(self.value, *yardstick),
            Some(_) => median(self.rounds.iter().map(|(value, yardstick)| beside(*value, *yardstick)).collect()),
        }
    }

    /// Whether the bound is kept; nothing where none was wanted.
    fn passes(&self) -> Option<bool> {
        match self.bound {
            Bound::AtLeast(least) => Some(self.figure() >= least),
            Bound::AtMost(most) | Bound::MoreBy(Some(most)) => Some(self.figure() <= most),
            Bound::MoreBy(None) | Bound::Open => None,
        }
    }

    /// The cells of the table.
    fn cells(&self) -> [String; 6] {
        let (against, yardstick, compared) =
            self.against.as_ref().map_or_else(Default::default, |(name, yardstick)| {
                let compared = match self.bound {
                    Bound::MoreBy(_) => format!("{:+.2} {}", self.figure(), self.unit),
                    _ => format!("{:.2} ×", self.figure()),
                };
                (name.clone(), rounded(*yardstick), compared)
            });
        let times = if self.against.is_some() { " ×" } else { "" };
        let wanted = match self.bound {
            Bound::AtLeast(least) => format!("≥ {least}{times}"),
            Bound::AtMost(most) => format!("≤ {most}{times}"),
            Bound::MoreBy(Some(most)) => format!("≤ +{most} {}", self.unit),
            Bound::MoreBy(None) | Bound::Open => String::new(),
        };
        let mark = match self.passes() {
            Some(true) => "pass",
            Some(false) => "short",
            None => "",
        };
        let against = format!("{against} {yardstick}").trim().to_owned();
        [
            self.what.clone(),
            format!("{} {}", rounded(self.value), self.unit),
            against,
            compared,
            wanted,
            mark.to_owned(),
        ]
    }

    fn json(&self) -> Value {
        let (against, yardstick) = self.against.as_ref().map(|(name, yardstick)| (name, yardstick)).unzip();
        let (least, most, more_by) = match self.bound {
            Bound::AtLeast(least) => (Some(least), None, None),
            Bound::AtMost(most) => (None, Some(most), None),
            Bound::MoreBy(more) => (None, None, more),
            Bound::Open => (None, None, None),
        };
        let compared = self.against.as_ref().map(|_| self.figure());
        let (ratio, more) = if matches!(self.bound, Bound::MoreBy(_)) { (None, compared) } else { (compared, None) };
        json!({
            "what": self.what, "value": self.value, "unit": self.unit, "against": against,
            "against_value": yardstick, "ratio": ratio, "more": more,
            "at_least": least, "at_most": most, "more_by_at_most": more_by, "pass": self.passes(),
        })
    }
}

const HEAD: [&str; 6] = ["what", "measured", "against, same run", "compared", "wanted", ""];

impl Report {
    /// `versions` names what else took part, as in `nginx/1.22.1`.
    pub(crate) fn new(name: &'static str, versions: &[String], rows: Vec<Row>) -> Self {
        let place = [machine(), versions.join(", ")].into_iter().filter(|part| !part.is_empty());
        Self { name, place: place.collect::<Vec<_>>().join("; "), rows }
    }

    pub(crate) fn print(&self) {
        let cells: Vec<[String; 6]> = self.rows.iter().map(Row::cells).collect();
        let heads = HEAD.map(str::to_owned);
        let lines = std::iter::once(&heads).chain(&cells);
        let widths: [usize; 6] =
            std::array::from_fn(|column| lines.clone().map(|line| width(line, column)).max().unwrap_or(0));
        println!("\n{}", self.place);
        for line in lines {
            let padded = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
            println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
        }
    }

    /// As `target/bench/NAME.json`.
    pub(crate) fn save(&self) -> Outcome {
        let file = target().join("bench").join(format!("{}.json", self.name));
        fs::create_dir_all(file.parent().unwrap_or(&file))?;
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let report = json!({"bench": self.name, "place": self.place, "rows": rows});
        fs::write(&file, serde_json::to_string_pretty(&report)? + "\n")?;
        println!("\nwritten to {}", file.display());
        Ok(())
    }

    /// Between this bench's two markers in `docs/benchmarks.md`; what stands around them stays.
    pub(crate) fn write_to_docs(&self) -> Outcome {
        let file = root().join("docs/benchmarks.md");
        let text = fs::read_to_string(&file)?;
        let (open, close) = (format!("<!-- {} -->", self.name), format!("<!-- /{} -->", self.name));
        let (Some((before, _)), Some((_, after))) = (text.split_once(&open), text.split_once(&close)) else {
            return Err(format!("{} lacks {open} … {close}", file.display()).into());
        };
        fs::write(&file, format!("{before}{open}\n{}{close}{after}", self.markdown()))?;
        println!("written to {}", file.display());
        Ok(())
    }

    fn markdown(&self) -> String {
        let mut text = format!("{}\n\n| {} |\n|{}\n", self.place, HEAD.join(" | "), "---|".repeat(HEAD.len()));
        for row in &self.rows {
            // Writing to a String does not fail.
            let _ = writeln!(text, "| {} |", row.cells().join(" | "));
        }
        text
    }
}

fn width(line: &[String; 6], column: usize) -> usize {
    line.get(column).map_or(0, |cell| cell.chars().count())
}

/// Three digits that say something.
fn rounded(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// Processor, number of cores and kernel.
fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = Program::new("uname").arg("-sr").read().unwrap_or_default();
    format!("{}, {cores} cores, {}", model.map_or("unknown processor", |(_, name)| name), kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_for_ratio_or_difference_where_there_is_a_yardstick() {
        let row = |against: Option<f64>, bound| Row {
            what: "w".into(),
            value: 80.0,
            unit: "µs",
            against: against.map(|yardstick| ("y".to_owned(), yardstick)),
            rounds: Vec::new(),
            bound,
        };
        assert_eq!(row(Some(100.0), Bound::AtLeast(0.7)).passes(), Some(true));
        assert_eq!(row(Some(100.0), Bound::AtMost(0.7)).passes(), Some(false));
        assert_eq!(row(None, Bound::AtMost(50.0)).passes(), Some(false));
        assert_eq!(row(None, Bound::Open).passes(), None);
        assert_eq!(row(Some(78.0), Bound::MoreBy(Some(5.0))).passes(), Some(true));
        assert_eq!(row(Some(70.0), Bound::MoreBy(Some(5.0))).passes(), Some(false));
        assert_eq!(row(Some(70.0), Bound::MoreBy(None)).passes(), None);
        assert_eq!(
            row(Some(100.0), Bound::AtLeast(0.7)).cells(),
            ["w", "80.0 µs", "y 100", "0.80 ×", "≥ 0.7 ×", "pass"]
        );
        assert_eq!(
            row(Some(70.0), Bound::MoreBy(Some(5.0))).cells(),
            ["w", "80.0 µs", "y 70.0", "+10.00 µs", "≤ +5 µs", "short"]
        );
    }

    #[test]
    fn what_was_measured_in_pairs_is_compared_in_pairs() {
        let row = |bound| Row {
            what: "w".into(),
            value: 20.0,
            unit: "µs",
            against: Some(("y".to_owned(), 20.0)),
            rounds: vec![(12.0, 10.0), (22.0, 20.0), (20.0, 40.0)],
            bound,
        };
        assert_eq!(row(Bound::AtMost(1.0)).cells()[3], "1.10 ×");
        assert_eq!(row(Bound::MoreBy(Some(1.0))).cells()[3], "+2.00 µs");
        assert_eq!(row(Bound::MoreBy(Some(1.0))).passes(), Some(false));
    }
}
