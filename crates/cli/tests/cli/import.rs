//! `gatehook import`: hooks of other systems as native configuration, with the same verdicts.

use gatehook_events::dialect::Occasion;
use gatehook_events::{Event, Input, Profile};
use serde_json::{Value, json};

use crate::support::{Home, shows};

/// A hook for each event of a contract that refuses an event whose payload has a word, and keeps what it is told.
fn guards(profile: Profile) -> String {
    let mut hooks = serde_json::Map::new();
    for event in Event::all().filter(|event| event.capabilities(profile).is_some() && !event.is_lane()) {
        let name = event.name_in(profile).unwrap_or(event.name());
        let no = "{\"allow\": false, \"permissionDecision\": \"deny\", \"message\": \"no\"}";
        let line = match profile {
            Profile::Ollm => {
                format!("cat > kept.json; grep -q sesame kept.json && echo '{no}' || echo '{{\"allow\": true}}'")
            }
            Profile::OllamaCli => format!("cat > kept.json; if grep -q sesame kept.json; then echo '{no}'; fi"),
            _ => "cat > kept.json; if grep -q sesame kept.json; then echo no >&2; exit 2; fi".to_owned(),
        };
        let hook = json!({"type": "command", "command": line});
        let entry = match profile {
            Profile::Ollm => json!([{"name": "guard", "command": "sh", "args": ["-c", line]}]),
            Profile::OllamaCli => json!([{"matcher": "", "hooks": [hook]}]),
            _ if profile.subject(event).is_some() => json!([{"matcher": "*", "hooks": [hook]}]),
            _ => json!([hook]),
        };
        hooks.insert(name.to_owned(), entry);
    }
    json!({"hooks": hooks}).to_string()
}

/// What a policy says of an event, and what its hook was told.
fn verdict(home: &Home, args: &[&str], event: Event, input: &Value) -> (Value, Value) {
    let kept = home.path().join("kept.json");
    let _ = std::fs::remove_file(&kept);
    home.file("input.json", &input.to_string());
    let base = ["hooks", "test", event.name(), "--input", "input.json", "--json"];
    let ran = home.run(&[&base[..], args].concat());
    let mut verdict = ran.json();
    let outcomes = verdict["outcomes"].as_array_mut().unwrap().iter_mut().filter_map(Value::as_object_mut);
    outcomes.for_each(|outcome| outcome.retain(|key, _| !key.contains("duration")));
    let told =
        std::fs::read_to_string(&kept).unwrap_or_else(|error| panic!("{} {error}: {}", event.name(), ran.shown()));
    (verdict, serde_json::from_str(&told).unwrap())
}

/// A sample with a word in it: as a native hook is told of it, and in a contract's own words.
fn sample(profile: Profile, event: Event, word: &str) -> (Value, Value) {
    let mut sample = gatehook_events::sample::sample(event);
    for name in ["user", "model_id", "session_id"] {
        sample.insert(name.to_owned(), json!(word));
    }
    let native = Value::Object(sample.clone());
    let Some(dialect) = gatehook_dialects::all().into_iter().find(|it| it.profile() == profile) else {
        return (native.clone(), native);
    };
    let input = Input::read(sample).unwrap();
    let own = dialect.payload(&Occasion { event, input: &input, hook: None }).unwrap();
    (native, serde_json::from_slice(&own).unwrap())
}

/// Imports hooks of a contract, and holds what both files say of every event against each other.
fn compare(profile: Profile) {
    let home = Home::new();
    home.file("settings.json", &guards(profile));
    let imported = home.run(&["import", "settings.json", "--from", profile.name()]);
    assert_eq!(imported.code, 0, "{}", imported.shown());
    home.file("native.yaml", &imported.out);
    for event in Event::all().filter(|event| event.capabilities(profile).is_some() && !event.is_lane()) {
        for word in ["sesame", "hello"] {
            if word == "hello" && event != Event::PreToolUse {
                continue;
            }
            let (native, own) = sample(profile, event, word);
            let dialect = ["--config", "settings.json", "--dialect", profile.name()];
            let before = verdict(&home, &dialect, event, &own);
            let after = verdict(&home, &["--config", "native.yaml"], event, &native);
            assert_eq!(before, after, "{} {} {word}", profile.name(), event.name());
            let blocks = event.capabilities(profile).is_some_and(|capabilities| capabilities.blocks);
            assert_eq!(before.0["allowed"] == false, blocks && word == "sesame", "{} {word}: {before:?}", event.name());
        }
    }
}

#[test]
fn what_is_imported_from_docker_agent_gives_the_same_verdicts_on_every_event() {
    compare(Profile::DockerAgent);
}

#[test]
fn what_is_imported_from_ollama_cli_gives_the_same_verdicts_on_every_event() {
    compare(Profile::OllamaCli);
}

#[test]
fn what_is_imported_from_ollm_gives_the_same_verdicts_on_every_event() {
    compare(Profile::Ollm);
}

#[test]
fn what_is_imported_says_what_it_leaves_out() {
    let home = Home::new();
    home.file(
        ".ollama/settings.json",
        r#"{
  "tui": {"theme": "dark"},
  "hooks": {
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "python3 .ollama/hooks/policy.py"}]}],
    "Stop": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "set -e\nnotify-send done\n"}]}]
  }
}"#,
    );
    shows!("import_ollama_cli", home.run(&["import", ".ollama/settings.json"]));
}

#[test]
fn variables_are_imported_from_this_environment_or_from_a_file() {
    let home = Home::new();
    let text = "OLLAMA_HOOK_PRE_INFERENCE_URL=http://127.0.0.1:9101/pre\nOLLAMA_HOOK_HEADERS='Authorization: Bearer hunter2'\n";
    home.file("ollama.env", text);
    let from_file = home.run(&["import", "ollama.env"]);
    shows!("import_environment", from_file);
    let mut command = home.gatehook();
    command.env("OLLAMA_HOOK_PRE_INFERENCE_URL", "http://127.0.0.1:9101/pre");
    command.env("OLLAMA_HOOK_HEADERS", "Authorization: Bearer hunter2");
    let own = crate::support::ran(command.args(["import", "--from", "environment"]));
    let hooks = |text: &str| text.split_once("hooks:").unwrap().1.to_owned();
    assert_eq!((own.code, hooks(&own.out)), (0, hooks(&from_file.out)));
}

#[test]
fn it_is_written_where_it_is_read_and_over_nothing() {
    let home = Home::new();
    std::fs::create_dir(home.path().join(".git")).unwrap();
    home.file(".ollm/hooks/guard.sh", "#!/bin/sh\ncat > /dev/null; echo '{\"allow\": false, \"message\": \"no\"}'\n");
    home.file(
        ".ollm/hooks/guard.json",
        r#"{"hooks": {"pre-tool-call": [{"name": "guard", "command": "sh", "args": [".ollm/hooks/guard.sh"]}]}}"#,
    );
    let written = home.run(&["import", ".ollm/hooks/guard.json", "--write"]);
    assert_eq!(written.code, 0, "{}", written.shown());
    assert!(written.out.ends_with("/.gatehook/ollm-guard.yaml\n"), "{}", written.shown());
    assert!(written.err.contains("gatehook hooks trust"), "{}", written.shown());
    assert_eq!(home.run(&["hooks", "trust", "--yes"]).code, 0);
    let denied = home.run(&["fire", "pre_tool_use", "--set", "tool_name=shell"]);
    assert_eq!(denied.code, 1, "{}", denied.shown());
    let again = home.run(&["import", ".ollm/hooks/guard.json", "--write"]);
    assert_eq!(again.code, 1, "{}", again.shown());
    // One of the user's goes to the user's.
    home.file("home/.ollm/hooks/mine.json", r#"{"hooks": {"custom": [{"name": "c", "command": "sh"}]}}"#);
    std::fs::remove_dir(home.path().join(".git")).unwrap();
    let project = home.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let mut command = home.gatehook();
    let mine =
        crate::support::ran(command.current_dir(&project).args(["import", "../home/.ollm/hooks/mine.json", "--write"]));
    assert_eq!(mine.code, 0, "{}", mine.shown());
    assert!(home.path().join("home/.config/gatehook/hooks.d/ollm-mine.yaml").is_file(), "{}", mine.shown());
}

#[test]
fn what_cannot_be_imported_says_why() {
    let home = Home::new();
    home.file("none.json", "{}");
    home.file("bad.json", r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "comand"}]}]}}"#);
    home.file("gone.json", r#"{"hooks": {"pre-tool-call": [{"name": "x", "command": "./gone.sh"}]}}"#);
    home.file(".claude/settings.json", r#"{"hooks": {"PreToolUse": []}}"#);
    for (args, code, message) in [
        (&["none.json"][..], 2, "whose hooks they are"),
        (&["missing.json"], 2, "cannot be read"),
        (&["bad.json"], 3, "did you mean `command`?"),
        (&["gone.json"], 3, "does not exist"),
        (&[".claude/settings.json"], 2, "are not known"),
        (&["none.json", "--from", "native"], 2, "needs no import"),
        (&["none.json", "--from", "environment"], 2, "sets none of"),
        (&["--from", "environment"], 2, "is set"),
        (&["none.json", "--from", "x"], 2, "docker-agent"),
    ] {
        let ran = home.run(&[&["import"], args].concat());
        assert_eq!(ran.code, code, "{args:?}: {}", ran.shown());
        assert!(
            ran.err.split_whitespace().collect::<Vec<_>>().join(" ").contains(message),
            "{args:?}: {}",
            ran.shown()
        );
    }
}
