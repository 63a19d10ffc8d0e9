//! What is long: a conversation that does not fit, a session that goes on, and one that is stopped.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::driven::{Driven, call, text};

fn block(reason: &str) -> Value {
    json!({"decision": "block", "reason": reason})
}

/// What a server says of a conversation that is too long.
fn too_long() -> Value {
    json!({"status": 400, "error": "prompt is too long: 9000 tokens > 8192 maximum"})
}

#[test]
fn a_conversation_that_does_not_fit_is_compacted_and_asked_once_more() {
    let script = [too_long(), text("They want a greeting."), text("Hello.")];
    let drove = Driven::new(script).run("Say hello.");
    assert_eq!((drove.ran.code, drove.text()), (0, "Hello."), "{}", drove.ran.shown());
    let events = drove.events();
    let own: Vec<&str> =
        events.into_iter().filter(|event| event.contains("compact") || event.contains("overflow")).collect();
    assert_eq!(own, ["on_context_overflow", "pre_compact", "before_compaction", "after_compaction"]);
    assert_eq!(drove.one("pre_compact")["source"], "overflow");
    assert_eq!(drove.one("before_compaction")["compaction_reason"], "overflow");
    assert_eq!(drove.one("after_compaction")["summary"], "They want a greeting.");
    assert!(drove.asked().contains("They want a greeting."), "{}", drove.asked());
    assert_eq!(drove.of("turn_start").len(), 1, "it is one turn");
}

#[test]
fn hooks_keep_a_conversation_from_being_compacted() {
    for event in ["on_context_overflow", "pre_compact", "before_compaction"] {
        let drove =
            Driven::new([too_long(), text("Never."), text("Never.")]).answers(event, block("keep it")).run("Go.");
        assert_ne!(drove.ran.code, 0, "{event}: {}", drove.ran.shown());
        assert!(drove.of("after_compaction").is_empty(), "{event}");
        assert_eq!(drove.of("pre_inference").len(), 1, "{event}: nobody asked for a summary");
        assert_eq!(drove.of("turn_end").len(), 1, "{event}");
    }
}

#[test]
fn a_hook_writes_the_summary_in_the_models_place() {
    let summary = json!({"hook_specific_output": {"summary": "All that matters."}});
    let drove = Driven::new([too_long(), text("Hello.")]).answers("before_compaction", summary).run("Say hello.");
    assert_eq!((drove.ran.code, drove.text()), (0, "Hello."), "{}", drove.ran.shown());
    assert_eq!(drove.one("after_compaction")["summary"], "All that matters.");
    assert!(drove.asked().contains("All that matters."));
    assert_eq!(drove.of("pre_inference").len(), 2, "the model was asked for its answer alone");
}

#[test]
fn context_of_a_compaction_reaches_whoever_writes_the_summary() {
    let context = json!({"hook_specific_output": {"additional_context": "keep the names of files"}});
    let drove =
        Driven::new([too_long(), text("A summary."), text("Hello.")]).answers("pre_compact", context).run("Go.");
    assert_eq!(drove.ran.code, 0, "{}", drove.ran.shown());
    let asked = drove.of("pre_inference")[1].to_string();
    assert!(asked.contains("keep the names of files"), "{asked}");
}

#[test]
fn a_session_goes_on_with_all_that_was_said() {
    let driven = Driven::new([call("read", json!({"path": "a.txt"})), text("It says x."), text("Again: x.")])
        .file("a.txt", "the file's text");
    let first = driven.run_again(&["run", "Read a.txt.", "--json"]);
    assert_eq!(first.text(), "It says x.", "{}", first.ran.shown());
    let id = first.told[0]["session_id"].as_str().unwrap().to_owned();
    for again in [vec!["--resume", &id], vec!["--continue"]] {
        let resumed = driven.saying([text("Again: x.")]);
        let resumed = resumed.run_again(&[&["run", "And again?", "--json"], &again[..]].concat());
        assert_eq!(resumed.text(), "Again: x.", "{}", resumed.ran.shown());
        let told = resumed.told.iter().rfind(|told| told["hook_event_name"] == "session_start").unwrap();
        assert_eq!((told["source"].as_str(), told["session_id"].as_str()), (Some("resume"), Some(&*id)));
        for said in ["the file's text", "It says x.", "And again?"] {
            assert!(resumed.asked().contains(said), "{said} is not in {}", resumed.asked());
        }
    }
}

#[test]
fn what_was_shown_before_a_session_was_killed_is_there_when_it_goes_on() {
    let answers = [json!({"text": "One two three four.", "pieces": 4}), json!({"text": "never", "wait": 60000})];
    let driven = Driven::new([answers[0].clone(), call("read", json!({"path": "a.txt"})), answers[1].clone()])
        .file("a.txt", "the file's text");
    // The first prompt is answered; the second is killed while the model thinks about a result.
    let first = driven.run_again(&["run", "Count.", "--json"]);
    let id = first.told[0]["session_id"].as_str().unwrap().to_owned();
    let rest = driven.saying([call("read", json!({"path": "a.txt"})), answers[1].clone()]);
    let mut child =
        rest.command(&["run", "Read it.", "--json", "--resume", &id]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let seen = lines.map(Result::unwrap).find(|line| line.contains("\"tool_result\""));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(seen.is_some_and(|line| line.contains("the file's text")));
    let shown = driven.home.run(&["sessions", "export", &id]);
    for said in ["Count.", "One two three four.", "Read it.", "the file's text"] {
        assert!(shown.out.contains(said), "{said} is not in {}", shown.shown());
    }
    let resumed = driven.saying([text("Here we are.")]);
    let resumed = resumed.run_again(&["run", "Where were we?", "--json", "--resume", &id]);
    assert_eq!(resumed.text(), "Here we are.", "{}", resumed.ran.shown());
    assert!(resumed.asked().contains("the file's text"));
}

#[test]
fn ctrl_c_stops_a_tool_and_the_turn_ends_as_canceled() {
    let driven = Driven::new([call("bash", json!({"command": "echo $$ > pid; exec sleep 600"})), text("never")])
        .args(&["--mode", "autonomous"]);
    let mut child = driven.command(&["run", "Sleep.", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let pid = driven.home.path().join("pid");
    let sleeper = loop {
        if let Ok(Ok(pid)) = std::fs::read_to_string(&pid).map(|text| text.trim().parse::<i32>()) {
            break pid;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    };
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(!std::path::Path::new(&format!("/proc/{sleeper}")).exists(), "the tool still runs");
    let told = driven.told();
    let of = |event: &str| told.iter().filter(|told| told["hook_event_name"] == event).collect::<Vec<_>>();
    assert_eq!(of("turn_end").len(), 1, "{told:?}");
    assert_eq!(of("turn_end")[0]["reason"], "canceled");
    assert_eq!(of("session_end").len(), 1);
}
