use proptest::prelude::*;
use ratatui::style::Modifier;

use super::*;

const PLAIN: Theme = Theme { colour: false };

fn lines(text: &str, width: u16) -> Vec<String> {
    Markdown::new(text).lines(width, PLAIN).iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

#[test]
fn blocks_are_kept_apart() {
    assert_eq!(lines("# Title\ntext\n\nmore", 40), ["Title", "", "text", "", "more"]);
}

#[test]
fn lists_have_marks_and_hang() {
    let text = "before\n\n- one two three four\n- b\n  1. x\n  2. y\n\nafter";
    assert_eq!(lines(text, 12), ["before", "", "• one two", "  three four", "• b", "  1. x", "  2. y", "", "after"]);
}

#[test]
fn code_has_a_frame_and_is_shown_while_it_grows() {
    assert_eq!(lines("a\n```rust\nfn x() {}\n  y", 14), ["a", "", "╭─ rust ──────", "│ fn x() {}", "│   y"]);
    assert_eq!(lines("```\nx\n```\nafter", 6), ["╭─────", "│ x", "╰─────", "", "after"]);
}

#[test]
fn code_in_a_list_stands_in_the_list() {
    assert_eq!(lines("- a\n  ```\n  x\n  ```\n", 8), ["• a", "  ╭─────", "  │ x", "  ╰─────"]);
}

#[test]
fn quotes_tables_and_rules() {
    assert_eq!(lines("> a\n> b\n\n---", 10), ["▎ a b", "", "──────────"]);
    assert_eq!(lines("| a | bcd |\n|---|---|\n| 12 | e |", 20), ["a   bcd", "──  ───", "12  e"]);
}

#[test]
fn emphasis_is_weight() {
    let mut text = Markdown::new("*a* **b** ~~c~~ `d` [e](http://f)");
    let line = &text.lines(80, PLAIN)[0];
    let of = |text: &str| line.spans.iter().find(|span| span.content == text).unwrap().style.add_modifier;
    assert!(of("a").contains(Modifier::ITALIC));
    assert!(of("b").contains(Modifier::BOLD));
    assert!(of("c").contains(Modifier::CROSSED_OUT));
    assert_eq!(line.to_string(), "a b c d e (http://f)");
}

#[test]
fn an_entity_is_no_way_around() {
    assert_eq!(lines("&#27;[2J &#x9b;", 40), ["␛[2J <U+009B>"]);
}

#[test]
fn a_paragraph_without_end_is_settled_in_parts() {
    let mut text = Markdown::default();
    for _ in 0..4000 {
        text.push("some words ");
        text.lines(80, PLAIN);
    }
    let laid = text.laid.unwrap();
    assert!(text.source.len() - laid.settled.1 <= OPEN, "{:?}", laid.settled);
}

proptest! {
    #[test]
    fn pieces_make_the_same_lines_as_the_whole(
        parts in prop::collection::vec("[a-z*_#`>|\\-1. \n\\[\\]()]{0,12}|```[a-z]*\n|\n\n|- |# ", 0..24),
        width in 1u16..60,
    ) {
        let mut growing = Markdown::default();
        for part in &parts {
            growing.push(part);
            growing.lines(width, PLAIN);
        }
        let whole = parts.concat();
        let once = Markdown::new(whole.clone()).lines(width, PLAIN).to_vec();
        prop_assert_eq!(growing.lines(width, PLAIN), &once[..], "{:?}", whole);
    }

    #[test]
    fn nothing_panics_and_no_cell_is_obeyed(text in "(?s).{0,200}", width in 0u16..50) {
        let mut markdown = Markdown::new(text);
        let lines = markdown.lines(width, PLAIN);
        prop_assert!(lines.iter().all(|line| !line.to_string().contains(char::is_control)));
    }
}
