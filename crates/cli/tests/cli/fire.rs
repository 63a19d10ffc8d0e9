//! `gatehook fire`: events from outside, with the hooks that are in force in a project.

use gatehook_events::Profile;
use serde_json::{Value, json};

use crate::support::{Home, Ran};

/// Hooks of the user's that keep what they are told of some events: native ones, and those of OLLM.
fn project() -> Home {
    let home = Home::new();
    let mut hooks = serde_json::Map::new();
    for event in ["custom", "pre_tool_use", "notification", "on_file_change", "user_prompt_submit"] {
        let native = json!({"type": "command", "command": "cat > \"$HOME/kept-native.json\""});
        hooks.insert(event.to_owned(), json!([native]));
    }
    let line = "cat > \"$HOME/kept-ollm.json\"; echo '{\"allow\": true}'";
    let ollm = json!({"name": "k", "type": "command", "command": "sh", "args": ["-c", line], "shell": false,
                      "dialect": "ollm"});
    hooks.get_mut("custom").and_then(Value::as_array_mut).unwrap().push(ollm);
    home.file("home/.config/gatehook/gatehook.yaml", &json!({"hooks": hooks}).to_string());
    home
}

fn kept(home: &Home, profile: Profile) -> Option<Value> {
    let path = home.path().join(format!("home/kept-{}.json", profile.name()));
    let text = std::fs::read_to_string(&path).ok()?;
    std::fs::remove_file(&path).unwrap();
    serde_json::from_str(&text).ok()
}

fn fired(home: &Home, args: &[&str]) -> (Ran, Value) {
    let ran = home.run(&[&["fire"], args].concat());
    (ran, kept(home, Profile::Native).unwrap_or_default())
}

#[test]
fn a_custom_event_has_a_name_and_any_data() {
    let home = project();
    for (data, expected) in [
        (r#"{"env": "prod"}"#, json!({"env": "prod"})),
        ("[1, 2]", json!([1, 2])),
        ("\"text\"", json!("text")),
        ("@data.json", json!({"from": "file"})),
    ] {
        home.file("data.json", r#"{"from": "file"}"#);
        let (ran, told) = fired(&home, &["custom", "deploy", "--data", data]);
        assert_eq!(ran.code, 0, "{}", ran.shown());
        assert_eq!((&told["event_name"], &told["data"], &told["source"]), (&json!("deploy"), &expected, &json!("cli")));
    }
    let ollm = {
        kept(&home, Profile::Ollm);
        fired(&home, &["custom", "deploy", "--set", "source=ci"]);
        kept(&home, Profile::Ollm).unwrap()
    };
    assert_eq!((&ollm["context"]["eventName"], &ollm["context"]["source"]), (&json!("deploy"), &json!("ci")));
}

#[test]
fn fields_are_given_by_data_or_one_by_one() {
    let home = project();
    let (_, told) = fired(&home, &["pre_tool_use", "--set", "tool_name=shell", "--set", "cmd=ls"]);
    assert_eq!((&told["tool_name"], &told["tool_input"]), (&json!("shell"), &json!({"cmd": "ls"})));
    let (_, told) = fired(&home, &["pre_tool_use", "--set", "tool_name=shell"]);
    assert!(told.get("tool_input").is_none(), "{told}");
    let (_, told) = fired(
        &home,
        &["notification", "--data", r#"{"notification_message": "hi"}"#, "--set", "notification_level=info"],
    );
    assert_eq!((&told["notification_message"], &told["notification_level"]), (&json!("hi"), &json!("info")));
    let (_, told) =
        fired(&home, &["on-file-change", "--dialect", "ollm", "--data", r#"{"context": {"file": "a.rs"}}"#]);
    assert_eq!(told["file"], "a.rs");
    // Nothing is made up.
    let (_, told) = fired(&home, &["user_prompt_submit"]);
    assert!(told.get("prompt").is_none(), "{told}");
}

#[test]
fn what_is_no_event_is_wrong_usage() {
    let home = Home::new();
    for (args, message) in [
        (&["pre_tool_usee"][..], "did you mean `pre_tool_use`?"),
        (&["custom"], "needs a name"),
        (&["stop", "now"], "one word too many"),
        (&["custom", "x", "--data", "{"], "is no JSON"),
        (&["stop", "--data", "[]"], "no JSON object"),
        (&["stop", "--data", "@none.json"], "none.json cannot be read"),
        (&["stop", "--data", "{}", "--input", "-"], "both give"),
        (&["stop", "--set", "x"], "has no `=`"),
        (&["stop", "--dialect", "none"], "no profile `none`"),
        (&["pre_tool_use", "--data", r#"{"tool_name": 5}"#], "field `tool_name` cannot be read"),
    ] {
        let ran = home.run(&[&["fire"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.shown());
        assert!(
            ran.err.split_whitespace().collect::<Vec<_>>().join(" ").contains(message),
            "{args:?}: {}",
            ran.shown()
        );
    }
}

#[test]
fn a_denied_event_exits_with_1_and_only_hooks_that_are_in_force_say_so() {
    let home = Home::new();
    home.file(
        "gatehook.yaml",
        "hooks: {custom: [{matcher: 'deploy', hooks: [{type: command, command: 'echo not today >&2; exit 2'}]}]}",
    );
    let untrusted = home.run(&["fire", "custom", "deploy"]);
    assert_eq!(untrusted.code, 0, "{}", untrusted.shown());
    assert!(untrusted.err.contains("1 hook is not in force"), "{}", untrusted.shown());
    home.run(&["hooks", "trust", "--yes"]);
    let denied = home.run(&["fire", "custom", "deploy"]);
    assert_eq!(denied.code, 1, "{}", denied.shown());
    assert!(denied.out.contains("not today"), "{}", denied.shown());
    assert_eq!(home.run(&["fire", "custom", "build"]).code, 0);
    let json = home.run(&["fire", "custom", "deploy", "--json"]);
    assert_eq!((json.code, &json.json()["allowed"]), (1, &json!(false)));
}

#[test]
fn a_bad_configuration_is_not_a_denial() {
    let home = Home::new();
    home.file("gatehook.yaml", "hooks: 3\n");
    assert_eq!(home.run(&["fire", "stop"]).code, 3);
}
