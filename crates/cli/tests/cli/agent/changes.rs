//! Changes of files: those of the session's tools, and those of others.

use serde_json::{Value, json};

use super::driven::{Driven, Drove, call, text};

/// Each change that hooks were told of.
fn changes(drove: &Drove) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    drove.of("on_file_change").iter().map(|told| (word(&told["file"]), word(&told["changes"]["type"]))).collect()
}

fn shell(line: &str) -> Value {
    call("bash", json!({"command": line}))
}

#[test]
fn what_others_change_while_a_session_runs_is_raised_once_and_what_is_ignored_is_not() {
    let line = "echo x > new.txt; echo x > a.txt; rm b.txt; echo x > c.log";
    let drove = Driven::new([shell(line), text("Done.")])
        .file("a.txt", "1")
        .file("b.txt", "1")
        .file(".ollamaignore", "*.log\n")
        .args(&["--mode", "autonomous"])
        .run("Go.");
    let mut told = changes(&drove);
    told.sort();
    let expected = [("a.txt", "modified"), ("b.txt", "deleted"), ("new.txt", "created")];
    assert_eq!(told, expected.map(|(file, kind)| (file.to_owned(), kind.to_owned())), "{}", drove.ran.shown());
    assert_eq!(drove.events().last(), Some(&"session_end"));
}

#[test]
fn what_a_tool_of_the_session_writes_is_raised_once() {
    let write = call("write", json!({"path": "new.txt", "content": "x"}));
    let edit = call("edit", json!({"path": "new.txt", "old_string": "x", "new_string": "yy"}));
    let drove =
        Driven::new([write, edit, shell("sleep 0.4"), text("Done.")]).args(&["--mode", "autonomous"]).run("Go.");
    let expected = [("new.txt", "created"), ("new.txt", "modified")];
    assert_eq!(
        changes(&drove),
        expected.map(|(file, kind)| (file.to_owned(), kind.to_owned())),
        "{}",
        drove.ran.shown()
    );
}

#[test]
fn what_hooks_say_of_a_change_is_told_to_the_model_in_the_next_turn() {
    let answer = json!({"hook_specific_output": {"additional_context": "somebody touched it"}});
    let drove = Driven::new([shell("echo x > new.txt; sleep 0.4"), text("Done.")])
        .answers("on_file_change", answer)
        .args(&["--mode", "autonomous"])
        .run("Go.");
    assert!(drove.asked().contains("somebody touched it"), "{}", drove.ran.shown());
}
