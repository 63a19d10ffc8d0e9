use std::time::Instant;

use super::super::theme::Theme;
use super::*;

const LOOK: Look = Look { width: 40, theme: Theme { colour: false }, details: false };

fn shown(transcript: &mut Transcript) -> Vec<String> {
    let line = |row: &Row<'_>| row.line.map(|line| line.to_string().trim_end().to_owned()).unwrap_or_default();
    transcript.rows(100, LOOK).iter().map(line).collect()
}

fn folded(reports: impl IntoIterator<Item = Report>) -> Vec<String> {
    let mut transcript = Transcript::default();
    reports.into_iter().for_each(|report| transcript.fold(report, Duration::ZERO));
    shown(&mut transcript)
}

fn text(delta: &str) -> Report {
    Report::Text { delta: delta.into() }
}

fn notice(text: &str) -> Report {
    Report::Notice { level: "info", text: text.into() }
}

fn of(agent: &str, report: Report) -> Report {
    Report::Subagent { agent: agent.into(), session_id: agent.into(), report: Box::new(report) }
}

#[test]
fn an_answer_goes_on_behind_what_is_told_beside_it() {
    assert_eq!(folded([text("one "), notice("hm"), text("two")]), ["one two", "• hm"]);
}

#[test]
fn what_hooks_changed_late_is_changed() {
    let whole = Report::Message { text: "the key is ***".into() };
    assert_eq!(folded([text("the key is 123"), whole, text("next")]), ["the key is ***", "", "next"]);
}

#[test]
fn answers_of_agents_that_work_side_by_side_are_kept_apart() {
    let reports = [of("a", text("one ")), of("b", text("x ")), of("a", text("two")), of("b", text("y"))];
    assert_eq!(folded(reports), ["one two", "", "x y"]);
}

#[test]
fn a_session_that_is_cleared_is_gone() {
    let session = |id: &str, source: &str| Report::Session {
        session_id: id.into(),
        source: source.into(),
        agent: "root".into(),
        model: "m".into(),
        workspace: "/w".into(),
    };
    let reports = [session("1", "startup"), text("old"), session("2", "clear")];
    assert_eq!(folded(reports), ["◆ gatehook root · m · /w · new session"]);
    let reports = [session("1", "resume"), text("old"), session("1", "resume")];
    assert_eq!(folded(reports).len(), 5);
}

#[test]
fn a_result_without_its_call_is_shown() {
    let result = Report::ToolResult {
        id: "1".into(),
        name: "read".into(),
        output: "a\nb\nc\nd\ne\nf\n".into(),
        error: None,
        diff: None,
        duration: 12.0,
    };
    assert_eq!(folded([result]), ["✓ read   12 s", "  │ a", "  │ b", "  │ c", "  │ d", "  … 2 more lines (Ctrl-O)"]);
}

#[test]
fn a_long_session_scrolls_as_fast_as_a_short_one() {
    let mut transcript = Transcript::default();
    for number in 0..2000 {
        transcript.fold(Report::User { text: format!("{number}").into() }, Duration::ZERO);
        let answer = "# Title\n\nwords and `code`\n\n```\nx\n```\n".repeat(20);
        transcript.fold(Report::Message { text: answer.into() }, Duration::ZERO);
    }
    let begun = Instant::now();
    for _ in 0..80 {
        transcript.up(20, 40, LOOK);
        transcript.rows(40, LOOK);
    }
    let took = begun.elapsed();
    assert!(transcript.laid.len() <= LAID + 1, "{}", transcript.laid.len());
    assert!(took < Duration::from_secs(5), "{took:?}");
}
