//! What hooks are told of a person at the terminal, and how their verdicts are obeyed.

use std::fs::{File, OpenOptions};
use std::io::Write as _;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use super::terminal::Terminal;
use crate::agent::driven::{Driven, Drove, call, text};
use crate::support::Home;

const ASK: [&str; 3] = ["turn_start", "before_llm_call", "pre_inference"];
const ANSWERED: [&str; 2] = ["post_inference", "after_llm_call"];

fn block(reason: &str) -> Value {
    json!({"decision": "block", "reason": reason})
}

fn context(text: &str) -> Value {
    json!({"hook_specific_output": {"additional_context": text}})
}

/// The events behind the last one of this name.
fn behind<'a>(events: &[&'a str], name: &str) -> Vec<&'a str> {
    let at = events.iter().rposition(|event| *event == name).unwrap_or_else(|| panic!("no {name} in {events:?}"));
    events[at + 1..].to_vec()
}

/// Keeps a tool at work, and so a turn, until it is opened.
struct Gate(File);

/// The call that waits at the gate.
fn waits() -> Value {
    call("bash", json!({"command": "read word < home/gate"}))
}

impl Gate {
    fn of(driven: &Driven) -> Self {
        let path = driven.home.path().join("home/gate");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // With both ends here nobody waits for the other, and nothing is lost.
        Self(OpenOptions::new().read(true).write(true).open(path).unwrap())
    }

    fn opens(&mut self) {
        self.0.write_all(b"open\n").unwrap();
    }
}

/// A terminal with a turn that runs, and what ends its tool.
fn at_work(driven: &Driven) -> (Terminal, Gate) {
    let gate = Gate::of(driven);
    let mut terminal = driven.chat(&["--mode", "autonomous"]);
    terminal.types("work\r");
    terminal.sees("read word < home/gate");
    (terminal, gate)
}

#[test]
fn what_is_said_while_a_turn_runs_is_told_before_the_next_question() {
    let script = [waits(), call("read", json!({"path": "a.txt"})), text("Compris.")];
    let driven = Driven::new(script)
        .file("a.txt", "the file's text")
        .answers("user_steering_messages_submit", context("they mean it"));
    let (mut terminal, mut gate) = at_work(&driven);
    for said in ["in French", "and briefly"] {
        terminal.types(&format!("{said}\r"));
        terminal.sees(&format!("↳ {said}"));
    }
    gate.opens();
    terminal.sees("Compris.");
    terminal.loses("↳");
    let drove = driven.left(terminal);
    assert_eq!(drove.one("user_steering_messages_submit")["steering_messages"], json!(["in French", "and briefly"]));
    let events = behind(&drove.events(), "user_steering_messages_submit");
    assert_eq!(events[..3], ASK, "{events:?}");
    let before = drove.events().iter().rposition(|event| *event == "user_steering_messages_submit").unwrap() - 1;
    assert_eq!(
        (&drove.told[before]["hook_event_name"], &drove.told[before]["reason"]),
        (&json!("turn_end"), &json!("steered"))
    );
    let asked: Vec<String> = drove.of("pre_inference").iter().map(|told| told["messages"].to_string()).collect();
    let heard = |text: &str| asked.iter().map(|asked| asked.contains(text)).collect::<Vec<_>>();
    assert_eq!(heard("in French"), [false, true, true]);
    assert_eq!(heard("and briefly"), [false, true, true]);
    assert_eq!(heard("they mean it"), [false, true, false], "context of a turn is told in it alone");
}

#[test]
fn a_block_of_what_is_said_ends_the_run_and_the_model_never_hears_it() {
    let driven =
        Driven::new([waits(), text("Here.")]).answers("user_steering_messages_submit", block("not while it works"));
    let (mut terminal, mut gate) = at_work(&driven);
    terminal.types("stop that\r");
    terminal.sees("↳ stop that");
    gate.opens();
    terminal.sees("not while it works");
    terminal.sees("Ask for something");
    terminal.types("are you there?\r");
    terminal.sees("Here.");
    let drove = driven.left(terminal);
    let events = drove.events();
    let blocked = events.iter().position(|event| *event == "user_steering_messages_submit").unwrap();
    assert_eq!(events[blocked + 1..blocked + 5], ["notification", "on_error", "on_user_input", "user_prompt_submit"]);
    assert_eq!(drove.one("notification")["notification_message"], "not while it works");
    assert_eq!(drove.one("on_error")["operation"], "user_steering_messages_submit");
    assert!(!drove.asked().contains("stop that"), "{}", drove.asked());
}

#[test]
fn a_follow_up_is_submitted_when_the_model_is_done() {
    let driven = Driven::new([waits(), text("First."), call("read", json!({"path": "a.txt"})), text("Second.")])
        .file("a.txt", "the file's text")
        .answers("user_followup_submit", context("in passing"));
    let (mut terminal, mut gate) = at_work(&driven);
    terminal.types("and then that\t");
    terminal.sees("↳ later: and then that");
    gate.opens();
    terminal.sees("Second.");
    terminal.loses("↳");
    let drove = driven.left(terminal);
    assert_eq!(drove.one("user_followup_submit")["prompt"], "and then that");
    let events = drove.events();
    let at = events.iter().position(|event| *event == "user_followup_submit").unwrap();
    let around = [&["stop", "user_followup_submit", "turn_end"], &ASK[..], &ANSWERED].concat();
    assert_eq!(events[at - 1..at + 7], around);
    assert_eq!(drove.told[at + 1]["reason"], "continue");
    assert_eq!(drove.of("user_prompt_submit").len(), 1);
    let asked: Vec<String> = drove.of("pre_inference").iter().map(|told| told["messages"].to_string()).collect();
    let heard = |text: &str| asked.iter().map(|asked| asked.contains(text)).collect::<Vec<_>>();
    assert_eq!(heard("and then that"), [false, false, true, true]);
    assert_eq!(heard("in passing"), [false, false, true, true], "until the model is done");
}

#[test]
fn a_block_of_a_follow_up_drops_it_and_ends_the_run() {
    let driven =
        Driven::new([waits(), text("First."), text("Third.")]).answers("user_followup_submit", block("one thing only"));
    let (mut terminal, mut gate) = at_work(&driven);
    terminal.types("and then that\t");
    terminal.sees("↳ later: and then that");
    gate.opens();
    terminal.sees("one thing only");
    terminal.loses("↳");
    terminal.sees("Ask for something");
    terminal.types("something else\r");
    terminal.sees("Third.");
    let drove = driven.left(terminal);
    assert_eq!(drove.of("user_followup_submit").len(), 1);
    let reasons: Vec<&Value> = drove.of("turn_end").iter().map(|told| &told["reason"]).collect();
    assert_eq!(reasons, ["continue", "hook_blocked", "normal"]);
    assert!(!drove.asked().contains("and then that"), "{}", drove.asked());
}

/// A session that reaches its cap, and what the person says then.
fn capped(key: &str, then: &str) -> Drove {
    let driven = Driven::new([call("read", json!({"path": "a.txt"})), text("Done.")]).file("a.txt", "x");
    let mut terminal = driven.chat(&["--max-iterations", "1"]);
    terminal.types("read it\r");
    terminal.sees("1 model calls without an end");
    terminal.sees("y go on");
    terminal.types(key);
    terminal.sees(then);
    driven.left(terminal)
}

#[test]
fn the_person_lets_it_go_on_past_the_cap() {
    let drove = capped("y", "Done.");
    let expected = ["notification", "on_max_iterations", "on_user_input", "on_session_resume"];
    let events = behind(&drove.events()[..drove.events().len() - 1], "post_tool_use");
    let rest = [&ASK[..], &ANSWERED, &["stop", "turn_end", "on_user_input"]].concat();
    assert_eq!(events, [&["turn_end"], &expected[..], &rest].concat());
    let resumed = drove.one("on_session_resume");
    assert_eq!((&resumed["previous_max_iterations"], &resumed["new_max_iterations"]), (&json!(1), &json!(11)));
    for event in ["notification", "on_max_iterations"] {
        let told = drove.one(event);
        assert_eq!(told["notification_level"], "warning", "{told}");
        assert!(told["notification_message"].as_str().unwrap().contains("1 times"), "{told}");
    }
}

#[test]
fn the_person_stops_it_at_the_cap() {
    let drove = capped("n", "Ask for something");
    let events = behind(&drove.events(), "on_max_iterations");
    assert_eq!(events, ["on_user_input", "on_user_input", "session_end"], "asked, and done");
    assert_eq!(drove.of("pre_inference").len(), 1);
}

#[test]
fn what_the_person_says_of_a_call_is_told_with_its_source() {
    for (keys, decision, source) in [
        (&["y"][..], "allow", "user_approved"),
        (&["s"], "allow", "user_approved_tool"),
        (&["a", "\r"], "allow", "user_approved_tool"),
        (&["n", "\r"], "deny", "user_rejected"),
        (&["\u{1b}"], "deny", "user_rejected"),
    ] {
        let driven = Driven::new([call("write", json!({"path": "notes.txt", "content": "x"})), text("Done.")]);
        let mut terminal = driven.chat(&[]);
        terminal.types("write it\r");
        terminal.sees("May write run?");
        for (key, shown) in keys.iter().zip(["y yes, once", "Enter"]) {
            terminal.sees(shown);
            terminal.types(key);
        }
        terminal.sees("Done.");
        let drove = driven.left(terminal);
        let told = drove.one("on_tool_approval_decision");
        assert_eq!(
            (&told["approval_decision"], &told["approval_source"]),
            (&json!(decision), &json!(source)),
            "{keys:?}"
        );
        let events = behind(&drove.events(), "pre_tool_use");
        assert_eq!(events[..3], ["permission_request", "on_user_input", "on_tool_approval_decision"], "{keys:?}");
        assert_eq!(drove.of("on_user_input").len(), 2, "{keys:?}: in the dialog, and at the end");
        assert_eq!(driven.home.path().join("notes.txt").exists(), decision == "allow", "{keys:?}");
    }
}

#[test]
fn a_compaction_by_hand_says_so() {
    let driven = Driven::new([text("Hello."), text("They greeted.")]);
    let mut terminal = driven.chat(&[]);
    terminal.types("say hello\r");
    terminal.sees("Hello.");
    terminal.sees("Ask for something");
    terminal.types("/compact\r");
    terminal.sees("the conversation was compacted (manual)");
    let drove = driven.left(terminal);
    assert_eq!(drove.one("pre_compact")["source"], "manual");
    for event in ["before_compaction", "after_compaction"] {
        assert_eq!(drove.one(event)["compaction_reason"], "manual", "{event}");
    }
    assert_eq!(drove.one("after_compaction")["summary"], "They greeted.");
}

#[test]
fn a_block_keeps_the_conversation_as_it_is() {
    let driven = Driven::new([text("Hello.")]).answers("pre_compact", block("keep every word"));
    let mut terminal = driven.chat(&[]);
    terminal.types("say hello\r");
    terminal.sees("Hello.");
    terminal.sees("Ask for something");
    terminal.types("/compact\r");
    terminal.sees("keep every word");
    let drove = driven.left(terminal);
    assert_eq!(drove.one("notification")["notification_level"], "warning");
    assert!(drove.of("before_compaction").is_empty() && drove.of("after_compaction").is_empty());
}

#[test]
fn every_session_of_a_terminal_begins_and_ends_with_its_reason() {
    let driven = Driven::new([text("One."), text("Two."), text("Three.")]);
    let mut terminal = driven.chat(&[]);
    terminal.types("first\r");
    terminal.sees("One.");
    terminal.sees("Ask for something");
    terminal.types("/clear\r");
    terminal.loses("One.");
    terminal.sees("Ask for something");
    terminal.types("second\r");
    terminal.sees("Two.");
    terminal.sees("Ask for something");
    let first = driven.told()[0]["session_id"].as_str().unwrap().to_owned();
    terminal.types(&format!("/resume {first}\r"));
    terminal.sees("One.");
    terminal.sees("Ask for something");
    terminal.types("third\r");
    terminal.sees("Three.");
    let drove = driven.left(terminal);
    let sources: Vec<_> = drove.of("session_start").iter().map(|told| told["source"].clone()).collect();
    assert_eq!(sources, ["startup", "clear", "resume"]);
    let reasons: Vec<_> = drove.of("session_end").iter().map(|told| told["reason"].clone()).collect();
    assert_eq!(reasons, ["clear", "other", "prompt_input_exit"]);
    for (start, end) in drove.of("session_start").iter().zip(drove.of("session_end")) {
        assert_eq!(start["session_id"], end["session_id"], "{start}");
    }
    assert_eq!(drove.of("session_start")[2]["session_id"], json!(first));
    let asked = drove.asked();
    assert!(asked.contains("first") && !asked.contains("second"), "{asked}");
}

/// What a hook says that wants the person asked.
fn ask(reason: &str) -> Value {
    json!({"permission": "ask", "reason": reason})
}

#[test]
fn a_hook_of_the_wire_has_the_person_asked() {
    for (event, title, others) in [
        ("pre_inference", "May this go to replay/script?", "tell nobody"),
        ("post_inference", "May this answer of replay/script be used?", "Never told."),
    ] {
        for key in ["y", "n", "\u{1b}"] {
            let driven = Driven::new([text("Never told.")]).answers(event, ask("it names somebody"));
            let mut terminal = driven.chat(&[]);
            terminal.types("tell nobody\r");
            terminal.sees(title);
            terminal.sees("all asks: it names somebody");
            terminal.sees(&format!("│ {others}"));
            terminal.sees("y go on");
            terminal.types(key);
            terminal.sees(if key == "y" {
                "Never told."
            } else {
                "The user said no. A hook had asked: it names somebody"
            });
            let drove = driven.left(terminal);
            let of_dialog = behind(&drove.events()[..drove.events().len() - 2], event);
            assert_eq!(of_dialog[0], "on_user_input", "{event} {key:?}");
            let reason = if key == "y" { "normal" } else { "hook_blocked" };
            assert_eq!(drove.one("turn_end")["reason"], reason, "{event} {key:?}");
            assert_eq!(drove.of("after_llm_call").len(), usize::from(key == "y"), "{event} {key:?}");
            if key != "y" {
                assert_eq!(drove.one("on_error")["operation"], event, "{key:?}");
            }
        }
    }
}

#[test]
fn a_question_of_a_hook_is_taken_back_when_the_turn_is_interrupted() {
    let driven = Driven::new([text("Never told.")]).answers("pre_inference", ask("it names somebody"));
    let mut terminal = driven.chat(&[]);
    terminal.types("tell nobody\r");
    terminal.sees("y go on");
    terminal.types("\u{3}");
    terminal.loses("y go on");
    let drove = driven.left(terminal);
    assert_eq!(drove.one("turn_end")["reason"], "canceled");
}

#[test]
fn without_a_person_what_a_hook_of_the_wire_wants_asked_is_refused() {
    for event in ["pre_inference", "post_inference"] {
        let drove = Driven::new([text("Never told.")]).answers(event, ask("it names somebody")).run("Tell nobody.");
        assert_eq!((drove.ran.code, drove.reason()), (1, "hook_blocked"), "{event}: {}", drove.ran.shown());
        assert_eq!(drove.notices(), ["it names somebody"], "{event}");
        assert!(drove.of("on_user_input").is_empty() && drove.of("after_llm_call").is_empty(), "{event}");
        assert!(!drove.ran.out.contains("Never told."), "{event}: {}", drove.ran.shown());
    }
}

#[test]
fn other_hooks_of_a_turn_take_no_question_and_the_person_is_told_so() {
    for event in ["user_prompt_submit", "before_llm_call"] {
        let driven = Driven::new([text("Told.")]).answers(event, ask("it names somebody"));
        let mut terminal = driven.chat(&[]);
        terminal.types("tell\r");
        terminal.sees("this event takes no permission decision");
        terminal.sees("Told.");
        let drove = driven.left(terminal);
        assert_eq!(drove.of("on_user_input").len(), 1, "{event}: at the end alone");
    }
}

#[test]
fn that_a_workspace_is_too_large_to_be_looked_at_is_told_once() {
    let answers = (0..100).map(|number| text(&format!("Answer {number}.")));
    let driven = Driven::in_home(Home::in_memory(), answers);
    for number in 0..8200 {
        std::fs::create_dir(driven.home.path().join(format!("folder{number}"))).unwrap();
    }
    let mut terminal = driven.chat(&[]);
    let is_told = || driven.told().iter().any(|told| told["hook_event_name"] == "notification");
    let mut number = 0;
    let mut asks = || {
        terminal.types("go\r");
        terminal.sees(&format!("Answer {number}."));
        terminal.sees("Ask for something");
        number += 1;
    };
    // It is found out while the session has begun already.
    while !is_told() {
        asks();
    }
    asks();
    terminal.sees("more than 8192 folders");
    let drove = driven.left(terminal);
    let told = drove.one("notification");
    assert_eq!(told["notification_level"], "warning", "{told}");
    assert!(told["notification_message"].as_str().unwrap().contains("more than 8192 folders"), "{told}");
}
