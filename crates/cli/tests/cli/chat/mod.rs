//! `gatehook chat` as a person meets it: in a terminal, with a model whose answers stand in a file.

mod defects;
mod hooks;
mod picture;
pub(crate) mod terminal;

use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use self::terminal::Terminal;
use crate::support::Home;

const SIZE: (u16, u16) = (80, 24);

/// A home whose model says these, in turn.
fn home(script: &[Value]) -> Home {
    let home = Home::new();
    let lines: String = script.iter().map(|answer| format!("{answer}\n")).collect();
    home.file("home/script.jsonl", &lines);
    home
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

fn text(text: &str) -> Value {
    json!({"text": text, "pieces": 3})
}

fn chat(home: &Home, args: &[&str]) -> Command {
    let script = home.path().join("home/script.jsonl");
    let mut command = home.gatehook();
    command.args(["chat", "--replay"]).arg(script).args(args);
    command.env("TERM", "xterm-256color");
    command
}

fn start(home: &Home) -> Terminal {
    let mut terminal = Terminal::start(&chat(home, &[]), SIZE);
    terminal.sees("Ask for something");
    terminal
}

#[test]
fn a_prompt_is_answered_once_a_call_is_permitted() {
    let home = home(&[
        call("write", json!({"path": "notes.txt", "content": "remember the milk\n"})),
        text("**Done**: I wrote `notes.txt`."),
    ]);
    let mut terminal = start(&home);
    terminal.types("write a note\r");
    terminal.sees("May write run?");
    terminal.sees("+remember the milk");
    terminal.sees("y yes, once");
    assert!(!home.path().join("notes.txt").exists());
    terminal.types("y");
    terminal.sees("Done: I wrote notes.txt.");
    terminal.sees("Ask for something");
    assert_eq!(std::fs::read_to_string(home.path().join("notes.txt")).unwrap(), "remember the milk\n");
    terminal.types("\u{4}");
    assert_eq!(terminal.ends(), 0, "{}", terminal.seen());
    terminal.is_given_back();
    assert!(terminal.seen().contains("goes on with this session"), "{}", terminal.seen());
}

#[test]
fn a_reason_not_to_reaches_the_model() {
    let home = home(&[
        call("write", json!({"path": "notes.txt", "content": "x"})),
        json!({"text": "Then not.", "match": "ask my sister"}),
    ]);
    let mut terminal = start(&home);
    terminal.types("write a note\r");
    terminal.sees("May write run?");
    terminal.sees("n no, with a reason");
    terminal.types("n");
    terminal.sees("why?");
    terminal.types("ask my sister\r");
    terminal.sees("Then not.");
    assert!(!home.path().join("notes.txt").exists());
}

#[test]
fn a_rule_that_is_remembered_holds_in_the_next_session() {
    let home = home(&[call("write", json!({"path": "notes.txt", "content": "x"})), text("Done.")]);
    for is_asked in [true, false] {
        let mut terminal = start(&home);
        terminal.types("write a note\r");
        if is_asked {
            terminal.sees("a always");
            terminal.types("a");
            terminal.sees("Remember write:path=notes.txt in");
            terminal.types("\r");
        }
        terminal.sees("Done.");
        terminal.types("\u{4}");
        assert_eq!(terminal.ends(), 0, "{}", terminal.seen());
    }
    let rules = std::fs::read_to_string(home.path().join("home/.config/gatehook/permissions.json")).unwrap();
    assert!(rules.contains("\"write:path=notes.txt\""), "{rules}");
}

#[test]
fn what_a_hook_denies_is_shown_and_does_not_run() {
    let home = home(&[call("bash", json!({"command": "touch made"})), text("I may not.")]);
    let hooks =
        "hooks:\n  pre_tool_use:\n    - {name: guard, type: command, command: \"echo no touching >&2; exit 2\"}\n";
    home.file("home/.config/gatehook/gatehook.yaml", hooks);
    let mut terminal = start(&home);
    terminal.types("touch it\r");
    terminal.sees("guard denies");
    terminal.sees("no touching");
    terminal.sees("I may not.");
    assert!(!home.path().join("made").exists());
}

#[test]
fn esc_stops_a_tool_and_the_session_goes_on() {
    let home = home(&[call("bash", json!({"command": "touch begun; sleep 600"})), text("Still here.")]);
    let mut terminal = Terminal::start(&chat(&home, &["--mode", "autonomous"]), SIZE);
    terminal.sees("Ask for something");
    terminal.types("sleep\r");
    // The time that has passed is drawn again and again, so this is looked at again.
    terminal.until("it is not begun", |_| home.path().join("begun").exists());
    terminal.types("\u{1b}");
    terminal.sees("interrupted");
    terminal.sees("Ask for something");
    terminal.types("are you there?\r");
    terminal.sees("Still here.");
}

#[test]
fn an_agent_greets_and_its_prompts_are_offered_by_name() {
    let home = home(&[json!({"text": "Looked over.", "match": "Review with care.\n\nthe tests"})]);
    let agent = "hooks: {}\nagents:\n  root:\n    welcome_message: Good to see you.\n    commands: {review: Review with care.}\n";
    home.file("home/.config/gatehook/gatehook.yaml", agent);
    let skill = "---\nname: rhyme\ndescription: says it in verse\n---\nRhyme.\n";
    home.file("home/.config/gatehook/skills/rhyme/SKILL.md", skill);
    let mut terminal = start(&home);
    terminal.sees("Good to see you.");
    terminal.types("/rh");
    terminal.sees("says it in verse");
    terminal.types("\u{15}/rev");
    terminal.sees("/review");
    terminal.types("iew the tests\r");
    terminal.sees("Looked over.");
}

#[test]
fn every_size_is_drawn() {
    let home = home(&[text("a line that is broken where the terminal is narrow, and then some")]);
    let mut terminal = start(&home);
    terminal.types("hello\r");
    terminal.sees("and then some");
    for (columns, rows) in [(200, 60), (20, 5), (3, 2), (1, 1), (80, 24)] {
        terminal.resizes(columns, rows);
    }
    terminal.sees("and then some");
    terminal.types("?");
    terminal.sees("Help");
    terminal.types("\u{1b}");
    terminal.loses("Help");
    assert!(terminal.seen().contains("F1 help"), "{}", terminal.seen());
}

#[test]
fn a_signal_gives_the_terminal_back() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let home = home(&[text("unsaid")]);
        let mut terminal = start(&home);
        assert!(terminal.screen().alternate_screen() && terminal.screen().bracketed_paste());
        terminal.signals(signal);
        assert_eq!(terminal.ends(), 130, "{signal:?}: {}", terminal.seen());
        terminal.is_given_back();
    }
}

#[test]
fn ctrl_z_stops_it_and_fg_goes_on() {
    let home = home(&[text("Back again.")]);
    let gatehook = chat(&home, &[]);
    let args: Vec<_> = gatehook.get_args().map(|arg| arg.to_str().unwrap().to_owned()).collect();
    let line = format!("set -m; gatehook {}; echo it stopped; fg", args.join(" "));
    let mut shell = home.command("bash");
    shell.args(["-c", &line]).env("TERM", "xterm-256color");
    let mut terminal = Terminal::start(&shell, SIZE);
    terminal.sees("Ask for something");
    terminal.types("\u{1a}");
    terminal.until("it does not stop", |terminal| String::from_utf8_lossy(&terminal.bytes).contains("it stopped"));
    terminal.until("it does not go on", |terminal| terminal.screen().alternate_screen());
    terminal.types("hello\r");
    terminal.sees("Back again.");
    terminal.types("\u{4}");
    assert_eq!(terminal.ends(), 0, "{}", terminal.seen());
    terminal.is_given_back();
}

#[test]
fn what_was_said_is_there_when_a_session_goes_on() {
    let home = home(&[text("The answer is 42.")]);
    let mut terminal = start(&home);
    terminal.types("what is it?\r");
    terminal.sees("The answer is 42.");
    terminal.types("\u{4}");
    terminal.ends();
    let mut terminal = Terminal::start(&chat(&home, &["--continue"]), SIZE);
    terminal.sees("what is it?");
    terminal.sees("The answer is 42.");
    terminal.sees("resumed");
    terminal.types("/clear\r");
    terminal.loses("The answer is 42.");
}

#[test]
fn another_model_goes_on() {
    let home = home(&[text("unsaid")]);
    let mut terminal = start(&home);
    terminal.types("/model llama3\r");
    terminal.sees("names no provider");
    terminal.types("/model ollama/llama3\r");
    terminal.sees("root · ollama/llama3");
    terminal.types("/mode balanced\r");
    terminal.sees("ollama/llama3 · root · balanced");
}

#[test]
fn a_session_goes_on_with_the_model_that_was_chosen_in_it() {
    let home = home(&[text("Hello.")]);
    let settings = |models: &str| format!("hooks: {{}}\nagent: {{model: ollama/llama3}}\n{models}");
    let configure = |models: &str| drop(home.file("home/.config/gatehook/gatehook.yaml", &settings(models)));
    configure("models: {mine/small: {kind: openai, base_url: \"http://127.0.0.1:9/v1\"}}");
    let mut terminal = start(&home);
    terminal.types("hello\r");
    terminal.sees("Hello.");
    terminal.sees("Ask for something");
    terminal.types("/model mine/small\r");
    terminal.sees("mine/small · root");
    terminal.types("\u{4}");
    assert_eq!(terminal.ends(), 0, "{}", terminal.seen());
    let goes_on = |args: &[&str], model: &str, said: &str| {
        let mut command = home.gatehook();
        command.args(["chat", "--continue"]).args(args).env("TERM", "xterm-256color");
        let mut terminal = Terminal::start(&command, SIZE);
        terminal.sees(&format!("{model} · root"));
        terminal.sees(said);
        terminal.types("\u{4}");
        assert_eq!(terminal.ends(), 0, "{}", terminal.seen());
    };
    goes_on(&[], "mine/small", "resumed");
    goes_on(&["--model", "ollama/qwen3"], "ollama/qwen3", "resumed");
    configure("");
    goes_on(&[], "ollama/llama3", "the model `mine/small` of this session cannot be had");
}

#[test]
fn escape_sequences_of_a_model_reach_no_terminal() {
    let home = home(&[text("before \u{1b}]0;owned\u{7} \u{1b}[2J\u{1b}[?1049l after")]);
    let mut terminal = start(&home);
    terminal.types("go\r");
    terminal.sees("after");
    assert!(terminal.screen().alternate_screen());
    assert!(!String::from_utf8_lossy(&terminal.bytes).contains("\u{1b}]0;"));
}

#[test]
fn without_colour_there_is_none() {
    let is_colour = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.split("\u{1b}[").skip(1).filter_map(|rest| rest.split_once('m')).any(|(codes, _)| {
            let mut codes = codes.split(';').filter_map(|code| code.parse::<u16>().ok());
            codes.any(|code| matches!(code, 30..=38 | 40..=48 | 90..=107))
        })
    };
    for (no_colour, expected) in [(None, true), (Some("1"), false)] {
        let home = home(&[text("# Title\n\n`code`")]);
        let mut command = chat(&home, &[]);
        if let Some(value) = no_colour {
            command.env("NO_COLOR", value);
        }
        let mut terminal = Terminal::start(&command, SIZE);
        terminal.sees("Ask for something");
        terminal.types("go\r");
        terminal.sees("Title");
        assert_eq!(is_colour(&terminal.bytes), expected);
    }
}

#[test]
fn a_dumb_terminal_gets_lines() {
    let home = home(&[call("write", json!({"path": "notes.txt", "content": "x"})), text("Done.")]);
    let mut command = chat(&home, &[]);
    command.env("TERM", "dumb");
    let mut terminal = Terminal::start(&command, SIZE);
    terminal.sees("you:");
    terminal.types("write a note\n");
    terminal.sees("May write run?");
    terminal.sees("y once");
    terminal.types("y\n");
    terminal.sees("Done.");
    terminal.types("/quit\n");
    assert_eq!(terminal.ends(), 0, "{}", terminal.seen());
    assert!(!terminal.bytes.contains(&0x1b), "{}", terminal.seen());
    assert!(home.path().join("notes.txt").exists());
}

#[test]
fn over_a_pipe_prompts_are_lines_and_what_would_be_asked_is_denied() {
    let home = home(&[text("Hello."), call("write", json!({"path": "notes.txt", "content": "x"})), text("So be it.")]);
    let input = home.file("input", "hello\nwrite a note\n");
    let mut command = chat(&home, &[]);
    let ran = crate::support::ran(command.stdin(std::fs::File::open(input).unwrap()));
    assert_eq!((ran.code, &*ran.out), (0, "Hello.\nSo be it.\n"), "{}", ran.shown());
    assert!(ran.err.contains("non_interactive_deny"), "{}", ran.shown());
    assert!(!ran.err.contains('\u{1b}') && !home.path().join("notes.txt").exists(), "{}", ran.shown());
}

#[test]
fn over_a_pipe_the_worst_prompt_is_the_exit_code() {
    let failing = json!({"status": 400, "error": "out of order"});
    let hooks = "hooks:\n  user_prompt_submit:\n    - matcher: \"\"\n      hooks:\n        - {type: command, command: \"grep -q secret && exit 2; exit 0\"}\n";
    for (prompts, script, code, said) in [
        ("one\ntwo\n", vec![text("First."), text("Second.")], 0, "First.\nSecond.\n"),
        ("a secret\ntwo\n", vec![text("Second.")], 1, "Second.\n"),
        ("one\ntwo\n", vec![failing.clone(), text("Second.")], 4, "Second.\n"),
        ("one\na secret\nthree\n", vec![failing, text("Third.")], 4, "Third.\n"),
        ("/nothing\n", vec![text("unsaid")], 0, ""),
    ] {
        let home = home(&script);
        home.file("home/.config/gatehook/gatehook.yaml", hooks);
        let input = home.file("input", prompts);
        let ran = crate::support::ran(chat(&home, &[]).stdin(std::fs::File::open(input).unwrap()));
        assert_eq!((ran.code, &*ran.out), (code, said), "{prompts:?}: {}", ran.shown());
    }
}
