//! Hooks of foreign contracts, from their own files.

use gatehook_events::{Event, Profile};
use serde_json::{Value, json};

use crate::support::{Home, Ran};

/// A hook for each event of a contract that keeps what it is told, under the contract's own name of the event.
fn keepers(profile: Profile) -> String {
    let mut hooks = serde_json::Map::new();
    for name in Event::all().filter_map(|event| event.name_in(profile)) {
        let line = format!("cat > kept-{name}.json; echo '{{\"allow\": true}}'");
        let entry = match profile {
            Profile::Ollm => json!([{"name": "keeper", "command": "sh", "args": ["-c", line]}]),
            _ => json!([{"matcher": "", "hooks": [{"type": "command", "command": line}]}]),
        };
        hooks.insert(name.to_owned(), entry);
    }
    json!({"hooks": hooks}).to_string()
}

fn test(home: &Home, dialect: &str, args: &[&str]) -> Ran {
    home.run(&[&["hooks", "test", "--dialect", dialect, "--config", "settings.json"], args].concat())
}

fn kept(home: &Home, name: &str) -> Value {
    let text = std::fs::read_to_string(home.path().join(format!("kept-{name}.json")));
    serde_json::from_str(&text.unwrap_or_else(|error| panic!("{name}: {error}"))).unwrap()
}

#[test]
fn every_event_of_every_dialect_reaches_its_hooks_under_its_own_name() {
    for (profile, key) in [(Profile::OllamaCli, "hook"), (Profile::Ollm, "event")] {
        let home = Home::new();
        home.file("settings.json", &keepers(profile));
        for event in Event::all() {
            let Some(name) = event.name_in(profile) else { continue };
            for spelled in [name, event.name()] {
                let ran = test(&home, profile.name(), &[spelled, "--json"]);
                assert_eq!(ran.json()["outcomes"].as_array().map(Vec::len), Some(1), "{spelled}: {}", ran.shown());
                assert_eq!(kept(&home, name)[key], name, "{spelled}");
                std::fs::remove_file(home.path().join(format!("kept-{name}.json"))).unwrap();
            }
        }
    }
}

#[test]
fn a_payload_of_the_dialect_is_taken_as_input() {
    let home = Home::new();
    home.file("settings.json", &keepers(Profile::Ollm));
    let context = json!({"file": "src/a.ts", "changes": {"type": "modified", "size": 10}, "session": {"id": "s"}});
    home.file("input.json", &json!({"event": "on-file-change", "context": context}).to_string());
    test(&home, "ollm", &["on-file-change", "--input", "input.json"]);
    let payload = kept(&home, "on-file-change");
    assert_eq!((&payload["context"], &payload["metadata"]["hookName"]), (&context, &json!("keeper")));
}

#[test]
fn hooks_of_ollama_cli_are_told_where_they_are() {
    let home = Home::new();
    let line =
        "echo \"{\\\"dir\\\": \\\"$OLLAMA_PROJECT_DIR\\\", \\\"id\\\": \\\"$OLLAMA_SESSION_ID\\\"}\" > seen.json";
    let hooks = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}});
    home.file("settings.json", &hooks.to_string());
    test(&home, "ollama-cli", &["Stop"]);
    let seen: Value = serde_json::from_str(&std::fs::read_to_string(home.path().join("seen.json")).unwrap()).unwrap();
    let dir = home.path().canonicalize().unwrap();
    assert_eq!(seen, json!({"dir": dir.to_str().unwrap(), "id": "sample-session"}));
}

#[test]
fn the_published_policy_hook_denies_under_its_own_file() {
    let home = Home::new();
    let policy = r#"
import json

def on_pre_tool_use(payload: dict) -> dict:
    if payload.get("tool") == "bash" and "rm -rf" in payload.get("command", ""):
        return {"permissionDecision": "deny", "reason": "this removes everything"}
    return {"permissionDecision": "allow"}

if __name__ == "__main__":
    print(json.dumps(on_pre_tool_use(json.loads(input()))))
"#;
    home.file("policy.py", policy);
    let hooks = json!([{"matcher": "Bash", "hooks": [{"type": "command", "command": "python3 policy.py"}]}]);
    home.file("settings.json", &json!({"agent_models": {}, "hooks": {"PreToolUse": hooks}}).to_string());
    for (command, code) in [("rm -rf build", 1), ("ls", 0)] {
        let ran = test(&home, "ollama-cli", &["PreToolUse", "--tool", "bash", "--set", &format!("command={command}")]);
        assert_eq!(ran.code, code, "{command}: {}", ran.shown());
    }
}

#[test]
fn a_file_of_a_dialect_is_checked_with_its_place() {
    let home = Home::new();
    home.file("settings.json", "{\"hooks\": {\n  \"PreTooluse\": []}}");
    let ran = home.run(&["hooks", "check", "--dialect", "ollama-cli", "settings.json"]);
    assert_eq!(ran.code, 1);
    assert!(ran.shown().contains("did you mean `PreToolUse`?"), "{}", ran.shown());
}

#[test]
fn an_unknown_event_of_a_dialect_is_wrong_usage() {
    let home = Home::new();
    home.file("settings.json", "{}");
    let ran = test(&home, "ollm", &["pre-toolcall"]);
    assert_eq!(ran.code, 2);
    assert!(ran.shown().contains("pre-tool-call"), "{}", ran.shown());
}
