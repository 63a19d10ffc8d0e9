//! `gatehook schema` and `gatehook completions`.

use crate::support::{Home, shows};

#[test]
fn the_schema_of_the_configuration_is_the_default() {
    let home = Home::new();
    let schema = home.run(&["schema"]);
    assert_eq!(schema.out, home.run(&["schema", "config"]).out);
    let schema = schema.json();
    for section in ["hooks", "defaults", "dialect", "upstreams", "listen", "keys", "limits", "streams"] {
        assert!(schema["properties"][section].is_object(), "{section} is missing");
    }
}

#[test]
fn every_event_and_the_output_have_a_schema() {
    let home = Home::new();
    for what in ["output", "pre_inference", "pre_tool_use", "session_start"] {
        let ran = home.run(&["schema", what]);
        assert_eq!((ran.code, &ran.json()["type"]), (0, &"object".into()), "{what}");
    }
}

#[test]
fn an_unknown_schema_is_wrong_usage_with_a_suggestion() {
    shows!("schema_unknown", Home::new().run(&["schema", "pre_inferense"]));
}

#[test]
fn every_shell_has_completions() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = home.run(&["completions", shell]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{shell}");
        for word in ["serve", "hooks", "completions", "upstream"] {
            assert!(ran.out.contains(word), "{shell} does not know {word}");
        }
    }
    assert_eq!(home.run(&["completions", "cmd.exe"]).code, 2);
}
