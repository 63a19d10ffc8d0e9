//! What hooks of every contract are told of every event: by `hooks test`, which makes a sample, and by `fire`, which is given
//! one. A snapshot holds each payload.

use gatehook_events::{Event, Profile};
use serde_json::{Value, json};

use crate::support::Home;

/// The events of a contract, each with its own name.
fn events(profile: Profile) -> impl Iterator<Item = (Event, &'static str)> {
    let events = Event::all().filter(move |event| event.capabilities(profile).is_some() && !event.is_lane());
    events.map(move |event| (event, event.name_in(profile).unwrap_or(event.name())))
}

/// The contract's own file, whose hooks keep what they are told.
fn own_file(profile: Profile) -> String {
    let mut hooks = serde_json::Map::new();
    for (event, name) in events(profile) {
        let command = json!({"type": "command", "command": "cat > kept.json"});
        let entry = match profile {
            Profile::Ollm => json!([{"name": "keeper", "command": "sh", "args": ["-c", LINE]}]),
            Profile::OllamaCli => json!([{"matcher": "", "hooks": [command]}]),
            _ if profile.subject(event).is_some() => json!([{"matcher": "*", "hooks": [command]}]),
            _ => json!([command]),
        };
        hooks.insert(name.to_owned(), entry);
    }
    json!({"hooks": hooks}).to_string()
}

/// What keeps the payload, and answers.
const LINE: &str = "cat > kept.json; echo '{\"allow\": true}'";

/// The same hooks in a native file.
fn native_file(profile: Profile) -> String {
    let hook = match profile {
        Profile::Ollm => {
            json!({"name": "keeper", "type": "command", "command": "sh", "args": ["-c", LINE], "shell": false})
        }
        _ => json!({"type": "command", "command": "cat > kept.json"}),
    };
    let mut hooks = serde_json::Map::new();
    for (event, _) in events(profile) {
        let mut hook = hook.clone();
        hook.as_object_mut().unwrap().insert("dialect".to_owned(), profile.name().into());
        hooks.insert(event.name().to_owned(), json!([hook]));
    }
    json!({"hooks": hooks}).to_string()
}

fn kept(home: &Home, what: &str) -> Value {
    let path = home.path().join("kept.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
    std::fs::remove_file(&path).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Reaches every event of a contract by its own name, in both ways.
fn reach(profile: Profile) {
    let home = Home::new();
    home.file("hooks.json", &own_file(profile));
    home.file("home/.config/gatehook/gatehook.yaml", &native_file(profile));
    let folder = home.path().canonicalize().unwrap();
    let mut payloads = String::new();
    for (event, name) in events(profile) {
        let ran = home.run(&["hooks", "test", name, "--dialect", profile.name(), "--config", "hooks.json"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.shown());
        let sample = kept(&home, name);
        let shown = serde_json::to_string_pretty(&sample).unwrap().replace(folder.to_str().unwrap(), "[FOLDER]");
        payloads.push_str(&format!("{name}\n{shown}\n\n"));

        home.file("input.json", &sample.to_string());
        let args = ["fire", name, "--dialect", profile.name(), "--input", "input.json"];
        let ran = home.run(&args);
        assert_eq!(ran.code, 0, "{name}: {}", ran.shown());
        assert_eq!(kept(&home, name), sample, "{name}, raised as {}", event.name());
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("payloads_{}", profile.name()), payloads);
    });
}

#[test]
fn native_hooks_are_told_of_every_event() {
    reach(Profile::Native);
}

#[test]
fn docker_agents_hooks_are_told_of_every_event() {
    reach(Profile::DockerAgent);
}

#[test]
fn docker_agents_older_hooks_are_told_of_every_event() {
    reach(Profile::DockerAgentV158);
}

#[test]
fn ollama_clis_hooks_are_told_of_every_event() {
    reach(Profile::OllamaCli);
}

#[test]
fn ollms_hooks_are_told_of_every_event() {
    reach(Profile::Ollm);
}
