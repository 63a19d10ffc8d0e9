mod anything;

use std::sync::Arc;

use gatehook_agent::approval::{Answer, Question};
use gatehook_events::{Outcome, OutcomeKind, Profile, Verb};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use serde_json::{Value, json};

use super::super::wire::{Ask, Choice, Permission};
use super::*;

const MANY: Duration = Duration::from_secs(3600);

/// A view, and the terminal it is drawn on.
struct Screen {
    view: View,
    terminal: Terminal<TestBackend>,
    now: Duration,
}

impl Screen {
    fn new(width: u16, height: u16) -> Self {
        Self::coloured(width, height, false)
    }

    fn coloured(width: u16, height: u16, colour: bool) -> Self {
        let history = History::new(vec!["cargo test".into(), "explain the gate".into()]);
        let view = View::new(Theme { colour }, (width, height), history);
        let terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        Self { view, terminal, now: Duration::ZERO }
    }

    fn fold(&mut self, happening: Happening) -> Vec<Effect> {
        self.view.fold(happening, self.now)
    }

    fn report(&mut self, report: Report) {
        self.fold(Happening::Told(Told::Report(report)));
    }

    fn wait(&mut self, seconds: f64) {
        self.now += Duration::from_secs_f64(seconds);
        self.view.tick(self.now);
    }

    fn press(&mut self, code: KeyCode) -> Vec<Effect> {
        self.fold(Happening::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn ctrl(&mut self, char: char) -> Vec<Effect> {
        self.fold(Happening::Key(KeyEvent::new(KeyCode::Char(char), KeyModifiers::CONTROL)))
    }

    fn write(&mut self, text: &str) -> Vec<Effect> {
        text.chars().flat_map(|char| self.press(KeyCode::Char(char))).collect()
    }

    /// What is seen.
    fn shown(&mut self) -> String {
        let view = &mut self.view;
        self.terminal.draw(|frame| draw(view, frame)).unwrap();
        let backend = self.terminal.backend().to_string();
        let lines = backend.lines().map(|line| line.split("\" Hidden by").next().unwrap());
        lines.map(|line| line.trim_matches('"').trim_end()).collect::<Vec<_>>().join("\n")
    }

    fn resize(&mut self, width: u16, height: u16) {
        self.terminal.backend_mut().resize(width, height);
    }
}

fn map(value: Value) -> Arc<serde_json::Map<String, Value>> {
    Arc::new(value.as_object().unwrap().clone())
}

fn outcome(name: &str, verb: Verb, kind: OutcomeKind, reason: &str) -> Outcome {
    Outcome {
        name: name.into(),
        handler: "command".into(),
        profile: Profile::Native,
        duration: Duration::from_micros(12_345),
        exit_code: 0,
        kind,
        verb,
        recalled: false,
        reason: reason.into(),
        stderr: String::new(),
        usage: None,
        cost: None,
    }
}

fn hooks(event: &'static str, verdict: Verb, outcomes: Vec<Outcome>) -> Report {
    Report::Hooks { event, verdict, outcomes, message: String::new(), system_message: String::new() }
}

fn question(tool: &str, input: Value, label: &str, reason: &str) -> Ask {
    let question = Question {
        tool_name: tool.into(),
        tool_use_id: Some("c1".into()),
        tool_input: map(input),
        reason: reason.into(),
        metadata: [("safety_label".to_owned(), label.to_owned())].into(),
    };
    Ask::Permission(Box::new(Permission { question, diff: None }))
}

fn facts() -> Facts {
    let choice = |name: &str, about: &str| Choice { name: name.into(), about: about.into() };
    Facts {
        hooks: vec!["pre_tool_use  guard.sh  command  in force  ./gatehook.yaml:4".into()],
        agents: vec![choice("root", "does all of it"), choice("coder", "writes code")],
        models: vec![choice("ollama/llama3", "8k"), choice("openai/gpt-x", "128k")],
        prompts: vec![choice("review", "looks over a change")],
        sessions: vec![],
        mode: "balanced".into(),
        rules_file: Some("~/.config/gatehook/rules.yaml".into()),
    }
}

fn session() -> Report {
    Report::Session {
        session_id: "s1".into(),
        source: "startup".into(),
        agent: "root".into(),
        model: "ollama/llama3".into(),
        workspace: "/home/ada/engine".into(),
    }
}

/// A turn with everything in it.
fn turn(screen: &mut Screen) {
    screen.fold(Happening::Told(Told::Facts(facts())));
    screen.report(session());
    screen.report(Report::User { text: "make the tests pass".into() });
    screen.report(Report::Thinking { delta: "They fail because\nthe gate is shut.".into() });
    screen.wait(3.2);
    screen.report(Report::Text { delta: "I will **look** at `gate.rs` first:\n\n1. read it\n2. men".into() });
    screen.report(Report::Text { delta: "d it\n\n```rust\nfn gate() -> bool {\n".into() });
    screen.report(Report::Text { delta: "    true\n}\n```\n".into() });
    let edit = map(json!({"path": "src/gate.rs", "old": "false", "new": "true"}));
    screen.report(Report::ToolCall { id: "c1".into(), name: "edit".into(), input: edit });
    screen.report(hooks("pre_tool_use", Verb::Allow, vec![outcome("guard.sh", Verb::Allow, OutcomeKind::Ok, "")]));
    screen.report(Report::Approval {
        id: "c1".into(),
        decision: "allow".into(),
        source: "user_approved".into(),
        input: None,
    });
    screen.report(Report::ToolResult {
        id: "c1".into(),
        name: "edit".into(),
        output: "edited src/gate.rs".into(),
        error: None,
        diff: Some(
            "--- a/src/gate.rs\n+++ b/src/gate.rs\n@@ -1,3 +1,3 @@\n fn gate() -> bool {\n-    false\n+    true\n }\n"
                .into(),
        ),
        duration: 0.04,
    });
    let rm = map(json!({"command": "rm -rf target"}));
    screen.report(Report::ToolCall { id: "c2".into(), name: "bash".into(), input: rm });
    screen.report(hooks(
        "pre_tool_use",
        Verb::Deny,
        vec![outcome("guard.sh", Verb::Deny, OutcomeKind::Blocked, "nothing is removed here")],
    ));
    screen.report(Report::Approval {
        id: "c2".into(),
        decision: "deny".into(),
        source: "pre_tool_use_hook_deny".into(),
        input: None,
    });
    screen.report(Report::ToolResult {
        id: "c2".into(),
        name: "bash".into(),
        output: "The tool call was rejected by a pre_tool_use hook. Reason: nothing is removed here".into(),
        error: Some("permission"),
        diff: None,
        duration: 0.0,
    });
    screen.report(Report::Usage {
        input_tokens: 3000,
        output_tokens: 200,
        cost: Some(0.0123),
        context_used: 3200,
        context_limit: 8192,
    });
    screen.report(Report::Text { delta: "Done.".into() });
    screen.report(Report::Message { text: "Done.".into() });
    screen.report(Report::TurnEnd { reason: "normal" });
    screen.fold(Happening::Told(Told::Ready(Vec::new())));
}

#[test]
fn a_turn_at_three_sizes() {
    for (width, height) in [(80, 24), (200, 60), (30, 12)] {
        let mut screen = Screen::new(width, height);
        turn(&mut screen);
        insta::assert_snapshot!(format!("turn_{width}x{height}"), screen.shown());
    }
}

#[test]
fn details_show_thinking_and_every_hook() {
    let mut screen = Screen::new(80, 50);
    turn(&mut screen);
    screen.ctrl('o');
    insta::assert_snapshot!("turn_details", screen.shown());
}

#[test]
fn colour_is_there_or_not() {
    for colour in [true, false] {
        let mut screen = Screen::coloured(80, 50, colour);
        turn(&mut screen);
        screen.shown();
        let cells = screen.terminal.backend().buffer().content();
        let has_colour = cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        assert_eq!(has_colour, colour);
    }
}

#[test]
fn a_prompt_is_sent_and_seen_to_arrive() {
    let mut screen = Screen::new(60, 12);
    screen.write("hello");
    assert_eq!(
        screen.press(KeyCode::Enter),
        [Effect::Remember("hello".into()), Effect::Command(Command::Prompt("hello".into()))]
    );
    assert!(screen.shown().contains("↳ hello"), "{}", screen.shown());
    screen.report(Report::User { text: "hello".into() });
    assert!(!screen.shown().contains("↳"), "{}", screen.shown());
    screen.write("not so fast");
    let sent = |effects: Vec<Effect>| effects.into_iter().find(|effect| matches!(effect, Effect::Command(_)));
    assert_eq!(sent(screen.press(KeyCode::Enter)), Some(Effect::Command(Command::Steer("not so fast".into()))));
    screen.write("then this");
    assert_eq!(sent(screen.press(KeyCode::Tab)), Some(Effect::Command(Command::FollowUp("then this".into()))));
    assert!(screen.shown().contains("later: then this"), "{}", screen.shown());
}

#[test]
fn a_permission_is_asked_for_with_all_that_it_is_about() {
    for (width, height) in [(80, 24), (40, 10)] {
        let mut screen = Screen::new(width, height);
        turn(&mut screen);
        let command = json!({"command": "git push --force origin \u{1b}[8mmain\u{202e}"});
        screen
            .fold(Happening::Told(Told::Asked(7, question("bash", command, "destructive", "it leaves this machine"))));
        insta::assert_snapshot!(format!("permission_{width}x{height}"), screen.shown());
    }
}

fn asked(tool: &str, input: Value, label: &str) -> Screen {
    let mut screen = Screen::new(80, 24);
    screen.fold(Happening::Told(Told::Facts(facts())));
    screen.fold(Happening::Told(Told::Asked(7, question(tool, input, label, ""))));
    screen
}

fn answer(answer: Answer) -> Vec<Effect> {
    vec![Effect::Answer(7, Reply::Permission { answer, remember: None })]
}

#[test]
fn keys_answer_a_permission() {
    let push = || asked("bash", json!({"command": "git push"}), "unknown");
    assert_eq!(push().press(KeyCode::Char('y')), answer(Answer::Approve));
    assert_eq!(push().press(KeyCode::Esc), answer(Answer::Reject { reason: String::new() }));
    assert_eq!(push().press(KeyCode::Enter), []);
    let rule = "bash:command=git push*".parse().unwrap();
    assert_eq!(push().press(KeyCode::Char('s')), answer(Answer::ApproveTool(Some(rule))));
    let mut screen = push();
    screen.press(KeyCode::Char('n'));
    screen.write("not today");
    assert!(screen.shown().contains("why? not today"), "{}", screen.shown());
    assert_eq!(screen.press(KeyCode::Enter), answer(Answer::Reject { reason: "not today".into() }));
}

#[test]
fn a_rule_is_shown_before_it_is_remembered() {
    let mut screen = asked("bash", json!({"command": "git push"}), "unknown");
    assert_eq!(screen.press(KeyCode::Char('a')), []);
    assert!(screen.shown().contains("Remember bash:command=git push* in ~/.config"), "{}", screen.shown());
    screen.press(KeyCode::Tab);
    assert!(screen.shown().contains("Remember bash in"), "{}", screen.shown());
    let rule: gatehook_agent::approval::Rule = "bash".parse().unwrap();
    let reply = Reply::Permission { answer: Answer::ApproveTool(Some(rule.clone())), remember: Some(rule) };
    assert_eq!(screen.press(KeyCode::Enter), [Effect::Answer(7, reply)]);
}

#[test]
fn what_is_typed_while_a_question_comes_up_is_no_answer() {
    let mut screen = Screen::new(80, 24);
    screen.wait(1.0);
    screen.write("he");
    screen.fold(Happening::Told(Told::Asked(7, question("bash", json!({"command": "x"}), "unknown", ""))));
    assert_eq!(screen.write("y"), []);
    assert!(screen.shown().contains("hey"), "{}", screen.shown());
    screen.wait(1.0);
    assert_eq!(screen.write("y"), answer(Answer::Approve));
    assert_eq!(screen.view.input.text(), "hey");
}

#[test]
fn the_key_that_answers_one_question_does_not_answer_the_next() {
    let mut screen = asked("bash", json!({"command": "one"}), "unknown");
    screen.fold(Happening::Told(Told::Asked(8, question("bash", json!({"command": "two"}), "unknown", ""))));
    assert_eq!(screen.write("yy"), answer(Answer::Approve));
    screen.fold(Happening::Told(Told::Unasked(8)));
    assert!(screen.view.dialogs.is_empty());
}

#[test]
fn an_edit_is_asked_for_with_its_difference() {
    let mut screen = asked("edit", json!({"path": "a.rs", "old": "one\ntwo\n", "new": "one\nTWO\n"}), "unknown");
    let shown = screen.shown();
    assert!(shown.contains("-two") && shown.contains("+TWO") && shown.contains("path: a.rs"), "{shown}");
}

#[test]
fn going_on_is_asked_for() {
    let mut screen = Screen::new(60, 12);
    screen.fold(Happening::Told(Told::Asked(3, Ask::GoOn(50))));
    assert!(screen.shown().contains("50 model calls"), "{}", screen.shown());
    assert_eq!(screen.write("y"), [Effect::Answer(3, Reply::GoOn(true))]);
}

#[test]
fn ctrl_c_interrupts_then_empties_then_quits() {
    let mut screen = Screen::new(60, 12);
    screen.write("x");
    screen.press(KeyCode::Enter);
    assert_eq!(screen.ctrl('c'), [Effect::Command(Command::Interrupt)]);
    assert_eq!(screen.ctrl('c'), [Effect::Quit]);
    screen.wait(5.0);
    screen.fold(Happening::Told(Told::Ready(Vec::new())));
    screen.write("y");
    assert_eq!(screen.ctrl('c'), []);
    assert!(screen.view.input.is_empty());
    screen.wait(5.0);
    assert_eq!(screen.ctrl('c'), []);
    assert_eq!(screen.ctrl('d'), [Effect::Quit]);
}

#[test]
fn esc_interrupts_and_never_quits() {
    let mut screen = Screen::new(60, 12);
    assert_eq!(screen.press(KeyCode::Esc), []);
    screen.write("x");
    screen.press(KeyCode::Enter);
    assert_eq!(screen.press(KeyCode::Esc), [Effect::Command(Command::Interrupt)]);
    assert_eq!(screen.press(KeyCode::Esc), [Effect::Command(Command::Interrupt)]);
}

#[test]
fn commands_are_completed_and_run() {
    let mut screen = Screen::new(80, 24);
    screen.fold(Happening::Told(Told::Facts(facts())));
    screen.write("/mo");
    insta::assert_snapshot!("popup", screen.shown());
    screen.press(KeyCode::Tab);
    assert_eq!(screen.view.input.text(), "/model ");
    screen.press(KeyCode::Down);
    assert_eq!(
        screen.press(KeyCode::Enter),
        [Effect::Remember("/model openai/gpt-x".into()), Effect::Command(Command::Model("openai/gpt-x".into()))]
    );
    screen.write("/compact");
    screen.press(KeyCode::Enter);
    assert!(screen.shown().contains("wait until the turn is over"), "{}", screen.shown());
    screen.fold(Happening::Told(Told::Ready(Vec::new())));
    assert_eq!(screen.press(KeyCode::Enter).last(), Some(&Effect::Command(Command::Compact)));
}

#[test]
fn every_command_is_understood() {
    for slash in slash::SLASHES {
        let mut screen = Screen::new(80, 24);
        screen.write(&format!("/{}", slash.name));
        screen.press(KeyCode::Enter);
        assert!(!screen.shown().contains("there is no /"), "{}", slash.name);
    }
    let mut screen = Screen::new(80, 24);
    screen.write("/nothing");
    assert_eq!(screen.press(KeyCode::Enter), []);
    assert!(screen.shown().contains("there is no /nothing"), "{}", screen.shown());
    screen.ctrl('u');
    screen.write("/etc/hosts is what?");
    assert_eq!(
        screen.press(KeyCode::Enter).last(),
        Some(&Effect::Command(Command::Prompt("/etc/hosts is what?".into())))
    );
}

#[test]
fn the_page_on_the_terminal_says_what_keys_and_commands_do() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/chat.md");
    let page = std::fs::read_to_string(page).unwrap();
    let keys = overlay::KEYS.iter().map(|(key, what)| format!("| {key} | {what} |"));
    for row in keys.chain(slash::SLASHES.iter().map(|slash| format!("| `/{}` | {} |", slash.name, slash.about))) {
        assert!(page.contains(&row), "docs/chat.md has no row {row}");
    }
}

#[test]
fn files_are_completed() {
    let mut screen = Screen::new(80, 24);
    assert_eq!(screen.write("see @"), [Effect::Files]);
    screen.fold(Happening::Told(Told::Files(["src/gate.rs", "docs/a.md"].map(str::to_owned).into())));
    screen.write("ga");
    screen.press(KeyCode::Enter);
    assert_eq!(screen.view.input.text(), "see @src/gate.rs ");
}

#[test]
fn help_is_one_key_away() {
    for (width, height) in [(80, 24), (200, 60)] {
        let mut screen = Screen::new(width, height);
        screen.write("?");
        insta::assert_snapshot!(format!("help_{width}x{height}"), screen.shown());
        screen.press(KeyCode::Esc);
        assert!(!screen.shown().contains("Esc closes"));
    }
    let mut screen = Screen::new(80, 24);
    screen.write("why");
    screen.press(KeyCode::F(1));
    assert!(screen.shown().contains("Esc closes"));
}

#[test]
fn what_was_written_before_comes_back() {
    let mut screen = Screen::new(60, 12);
    screen.press(KeyCode::Up);
    assert_eq!(screen.view.input.text(), "explain the gate");
    screen.press(KeyCode::Up);
    screen.press(KeyCode::Down);
    screen.press(KeyCode::Down);
    assert!(screen.view.input.is_empty());
    screen.ctrl('r');
    screen.write("test");
    assert!(screen.shown().contains("search: test"), "{}", screen.shown());
    screen.press(KeyCode::Enter);
    assert_eq!(screen.view.input.text(), "cargo test");
}

#[test]
fn lines_are_made_with_alt_enter_and_a_backslash() {
    let mut screen = Screen::new(60, 12);
    screen.write("one");
    screen.fold(Happening::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT)));
    screen.write("two\\");
    screen.press(KeyCode::Enter);
    screen.fold(Happening::Paste("three\r\nfour".into()));
    assert_eq!(screen.view.input.text(), "one\ntwo\nthree\nfour");
    assert!(matches!(screen.press(KeyCode::Enter).last(), Some(Effect::Command(Command::Prompt(_)))));
}

#[test]
fn scrolling_stays_where_it_is_until_the_end_is_reached() {
    let mut screen = Screen::new(60, 12);
    for number in 0..500 {
        screen.report(Report::User { text: format!("question {number}").into() });
        screen.report(Report::Text { delta: format!("answer {number}\n\nwith two parts").into() });
        screen.report(Report::Message { text: format!("answer {number}\n\nwith two parts").into() });
    }
    assert!(screen.shown().contains("answer 499"));
    screen.press(KeyCode::PageUp);
    let above = screen.shown();
    assert!(above.contains("more below") && !above.contains("answer 499"), "{above}");
    screen.report(Report::Text { delta: "something new".into() });
    assert_eq!(screen.shown(), above);
    screen.press(KeyCode::PageDown);
    screen.press(KeyCode::PageDown);
    assert!(screen.shown().contains("something new"), "{}", screen.shown());
    screen.fold(Happening::Key(KeyEvent::new(KeyCode::Home, KeyModifiers::CONTROL)));
    assert!(screen.shown().contains("question 0"));
    for _ in 0..2000 {
        screen.press(KeyCode::PageDown);
    }
    assert!(screen.shown().contains("something new"));
}

#[test]
fn a_command_that_was_given_while_another_one_was_at_work_is_at_work_behind_it() {
    let mut screen = Screen::new(60, 12);
    screen.write("one");
    screen.press(KeyCode::Enter);
    screen.write("two");
    screen.press(KeyCode::Enter);
    for told in [Told::Begun, Told::Ready(Vec::new()), Told::Begun] {
        screen.fold(Happening::Told(told));
    }
    screen.write("three");
    assert_eq!(screen.press(KeyCode::Enter).last(), Some(&Effect::Command(Command::Steer("three".into()))));
}
