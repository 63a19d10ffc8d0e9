//! What is long: a session that goes on, and one that is stopped.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::driven::{Driven, call, text};

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

#[test]
fn a_session_that_goes_on_knows_its_list() {
    let items = json!([{"text": "look", "status": "done"}, {"text": "mend\nand test", "status": "in_progress"}, {"text": "tell"}]);
    let driven = Driven::new([call("todo", json!({"items": items})), text("Listed.")]);
    let first = driven.run_again(&["run", "Plan it.", "--json"]);
    let shown = "[x] look\n[~] mend\n    and test\n[ ] tell\n";
    assert_eq!(first.results()[0]["output"], shown, "{}", first.ran.shown());
    let denied =
        driven.saying([call("todo", json!({"items": [{"text": " "}]})), call("todo", json!({})), text("There.")]);
    let resumed = denied.run_again(&["run", "What is left?", "--json", "--continue"]);
    assert_eq!(resumed.results()[1]["output"], shown, "{}", resumed.ran.shown());
    let other = driven.saying([call("todo", json!({})), text("Nothing.")]).run_again(&["run", "And here?", "--json"]);
    assert_eq!(other.results()[0]["output"], "(the list is empty)", "{}", other.ran.shown());
}
