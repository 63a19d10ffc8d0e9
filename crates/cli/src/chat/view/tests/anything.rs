//! Whatever a model, a tool or a person does: the screen stands, and no terminal is given a command.

use proptest::prelude::*;

use super::*;

#[test]
fn nothing_of_a_model_or_tool_reaches_the_terminal_as_a_command() {
    let mut screen = Screen::new(80, 24);
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}x\r\u{8}\u{7f}\u{0}";
    screen.report(Report::User { text: evil.into() });
    screen.report(Report::Text { delta: evil.into() });
    screen.report(Report::ToolCall { id: evil.into(), name: evil.into(), input: map(json!({evil: evil})) });
    screen.report(Report::ToolOutput { id: evil.into(), delta: evil.into() });
    screen.report(Report::Notice { level: "error", text: evil.into() });
    screen.fold(Happening::Told(Told::Asked(1, question(evil, json!({evil: evil}), evil, evil))));
    screen.shown();
    assert!(is_harmless(&screen.terminal), "{}", screen.shown());
}

fn is_harmless(terminal: &Terminal<TestBackend>) -> bool {
    let cells = terminal.backend().buffer().content();
    cells.iter().all(|cell| {
        !cell.symbol().contains(|char: char| char.is_control() || ('\u{202a}'..='\u{202e}').contains(&char))
    })
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z \n`*#|-]{0,40}",
        "(?s).{0,20}",
        "[\u{1b}\\[\\]0-9;m\r\n\t\u{7}\u{9b}日👩‍💻\u{301}\u{202e}]{0,30}",
        Just("x".repeat(5000)),
        Just("日本語 ".repeat(300)),
    ]
}

fn any_report() -> impl Strategy<Value = Report> {
    let id = || prop_oneof![Just("a"), Just("b")];
    let leaf = prop_oneof![
        any_text().prop_map(|text| Report::User { text: text.into() }),
        any_text().prop_map(|delta| Report::Text { delta: delta.into() }),
        any_text().prop_map(|delta| Report::Thinking { delta: delta.into() }),
        any_text().prop_map(|text| Report::Message { text: text.into() }),
        (id(), any_text()).prop_map(|(id, text)| Report::ToolCall {
            id: id.into(),
            name: text.clone().into(),
            input: map(json!({"command": text, "n": 1})),
        }),
        (id(), prop_oneof![Just("allow"), Just("deny"), Just("canceled")]).prop_map(|(id, decision)| {
            Report::Approval { id: id.into(), decision: decision.into(), source: "user_approved".into(), input: None }
        }),
        (id(), any_text()).prop_map(|(id, text)| Report::ToolOutput { id: id.into(), delta: text.into() }),
        (id(), any_text(), any::<bool>(), any::<f64>()).prop_map(|(id, text, fails, duration)| Report::ToolResult {
            id: id.into(),
            name: "t".into(),
            output: text.clone().into(),
            error: fails.then_some("not_found"),
            diff: (!fails).then(|| text.into()),
            duration,
        }),
        any_text().prop_map(|text| Report::Hooks {
            event: "pre_tool_use",
            verdict: Verb::Deny,
            outcomes: vec![outcome(&text, Verb::Deny, OutcomeKind::Blocked, &text)],
            message: String::new(),
            system_message: text,
        }),
        any_text().prop_map(|text| Report::Notice { level: "error", text: text.into() }),
        any_text().prop_map(|text| Report::Compaction { source: "auto".into(), summary: text.into() }),
        any_text().prop_map(|text| Report::AgentSwitch { from: "a".into(), to: text.into(), kind: "handoff" }),
        (any::<u64>(), any::<u64>()).prop_map(|(used, limit)| Report::Usage {
            input_tokens: used,
            output_tokens: limit,
            cost: Some(1e300),
            context_used: used,
            context_limit: limit,
        }),
        Just(session()),
        Just(Report::Session {
            session_id: "s".into(),
            source: "clear".into(),
            agent: "a".into(),
            model: "m".into(),
            workspace: "/".into()
        }),
        Just(Report::TurnEnd { reason: "canceled" }),
    ];
    leaf.prop_recursive(3, 8, 1, |inner| {
        (inner, any_text()).prop_map(|(report, agent)| Report::Subagent {
            agent: agent.into(),
            session_id: "child".into(),
            report: Box::new(report),
        })
    })
}

fn any_key() -> impl Strategy<Value = KeyEvent> {
    let code = prop_oneof![
        any::<char>().prop_map(KeyCode::Char),
        "[/@?ynsacdojruwkz ]".prop_map(|text| KeyCode::Char(text.chars().next().unwrap())),
        prop::sample::select(vec![
            KeyCode::Enter,
            KeyCode::Esc,
            KeyCode::Tab,
            KeyCode::Backspace,
            KeyCode::Delete,
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::Left,
            KeyCode::Right,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::PageUp,
            KeyCode::PageDown,
            KeyCode::F(1),
        ]),
    ];
    (code, 0u8..8).prop_map(|(code, modifiers)| KeyEvent::new(code, KeyModifiers::from_bits_truncate(modifiers)))
}

#[derive(Debug, Clone)]
enum Step {
    Happens(Happening),
    Resize(u16, u16),
    Waits(u16),
}

fn any_step() -> impl Strategy<Value = Step> {
    let told = |told| Step::Happens(Happening::Told(told));
    prop_oneof![
        4 => any_report().prop_map(move |report| told(Told::Report(report))),
        4 => any_key().prop_map(|key| Step::Happens(Happening::Key(key))),
        1 => any_text().prop_map(|text| Step::Happens(Happening::Paste(text))),
        1 => (0u64..4, any_text(), any_text()).prop_map(move |(number, name, text)| {
            told(Told::Asked(number, question(&name, json!({"command": text, "old": text, "new": name}), "safe", &text)))
        }),
        1 => (0u64..4).prop_map(move |number| told(Told::Unasked(number))),
        1 => (0u64..4).prop_map(move |number| told(Told::Asked(number, Ask::GoOn(number)))),
        1 => Just(told(Told::Ready(Vec::new()))),
        1 => Just(told(Told::Facts(facts()))),
        1 => prop::collection::vec(any_text(), 0..4).prop_map(move |files| told(Told::Files(files.into()))),
        2 => (0u16..90, 0u16..40).prop_map(|(width, height)| Step::Resize(width, height)),
        1 => (0u16..5000).prop_map(Step::Waits),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn nothing_that_happens_breaks_the_screen(steps in prop::collection::vec(any_step(), 0..40)) {
        let mut screen = Screen::coloured(40, 12, true);
        for step in steps {
            match step {
                Step::Happens(happening) => drop(screen.fold(happening)),
                Step::Resize(width, height) => screen.resize(width, height),
                Step::Waits(millis) => screen.wait(f64::from(millis) / 1000.0),
            }
            let view = &mut screen.view;
            screen.terminal.draw(|frame| draw(view, frame)).unwrap();
            prop_assert!(is_harmless(&screen.terminal));
            prop_assert!(screen.view.changes_at().is_none_or(|at| at < screen.now + MANY));
        }
    }
}
