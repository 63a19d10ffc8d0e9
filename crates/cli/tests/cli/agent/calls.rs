//! Calls that lead nowhere.

use serde_json::json;

use super::driven::{Driven, call, text};

#[test]
fn the_same_calls_five_times_in_a_row_are_a_loop() {
    let script: Vec<_> = (0..9).map(|_| call("read", json!({"path": "a.txt"}))).collect();
    let drove = Driven::new(script).file("a.txt", "x").run("Read for ever.");
    assert_eq!((drove.ran.code, drove.reason()), (1, "loop_detected"), "{}", drove.ran.shown());
    assert_eq!((drove.of("turn_end").len(), drove.of("on_error").len()), (5, 1));
}

#[test]
fn a_model_that_calls_what_is_not_there_or_cannot_be_read_is_told_so() {
    for (answer, said) in [
        (call("no_such_tool", json!({})), "There is no tool"),
        (json!({"tool_calls": [{"name": "read", "arguments": "{\"path\": "}]}), "cannot be read"),
    ] {
        let drove = Driven::new([answer, text("Done.")]).run("Go.");
        assert_eq!((drove.ran.code, drove.text()), (0, "Done."), "{}", drove.ran.shown());
        assert!(drove.asked().contains(said), "{}", drove.asked());
        assert!(drove.of("on_tool_approval_decision").is_empty());
    }
}
