//! docs/protocol.md shows how one thing is said in several contracts: all of them come to the same verdict.

use gatehook_events::{Event, Profile};
use serde_json::{Value, json};

use crate::pages::root;
use crate::support::Home;

/// Each column of answers, and the contracts whose hooks give them.
const COLUMNS: [&[Profile]; 3] = [&[Profile::Native, Profile::DockerAgent], &[Profile::OllamaCli], &[Profile::Ollm]];

/// The cells of a table's rows, below its head.
fn rows(head: &str) -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(root().join("docs/protocol.md")).unwrap();
    let table = page.split_once(head).expect(head).1.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
    table.map(cells).collect()
}

/// What comes of an event on which the one hook runs this line.
fn verdict(profile: Profile, event: &str, line: &str) -> Value {
    let home = Home::new();
    let event = Event::from_name(event).expect(event);
    let name = event.name_in(profile).unwrap_or(event.name());
    let hook = match profile {
        Profile::Ollm => json!({"name": "says", "command": "sh", "args": ["-c", line]}),
        _ => json!({"type": "command", "command": line}),
    };
    let in_groups = profile == Profile::OllamaCli || profile != Profile::Ollm && event.spec().subject.is_some();
    let hook = if in_groups { json!({"hooks": [hook]}) } else { hook };
    home.file("hooks.json", &json!({"hooks": {name: [hook]}}).to_string());
    home.run(&["hooks", "test", name, "--dialect", profile.name(), "--config", "hooks.json", "--json"]).json()
}

/// What a verdict comes to, in whichever words it was said.
fn comes_to(verdict: &Value) -> [&Value; 6] {
    ["verb", "message", "rewritten", "additional_context", "system_message", "permission_allowed"]
        .map(|key| &verdict[key])
}

#[test]
fn one_thing_is_said_in_every_contract() {
    let rows = rows("| what is said | on | native and docker-agent | Ollama CLI | OLLM CLI |");
    assert!(rows.len() >= 8, "{rows:?}");
    for row in &rows {
        let [said, event, answers @ ..] = &row[..] else { panic!("{row:?}") };
        let line = |answer: &str| format!("printf '%s' '{answer}'");
        let native = verdict(Profile::Native, event, &line(&answers[0]));
        assert!(native["outcomes"][0]["kind"] != "failed", "{said}: {native}");
        for (profiles, answer) in COLUMNS.iter().zip(answers).filter(|(_, answer)| !answer.is_empty()) {
            for profile in *profiles {
                let verdict = verdict(*profile, event, &line(answer));
                assert_eq!(comes_to(&verdict), comes_to(&native), "{said}, {profile:?}: {verdict}");
                if answer.contains("rule") {
                    assert_eq!(verdict["metadata"]["rule"], "7", "{profile:?}: {verdict}");
                }
            }
        }
    }
}

#[test]
fn the_end_of_a_hook_means_what_the_page_says() {
    let rows = rows("| it ends with | native and docker-agent | Ollama CLI | OLLM CLI |");
    for (row, line) in rows.iter().zip(["exit 0", "echo no >&2; exit 2", "exit 3"]) {
        for (profiles, meaning) in COLUMNS.iter().zip(&row[1..]) {
            for profile in *profiles {
                let verdict = verdict(*profile, "pre_tool_use", line);
                let verb = if meaning == "no opinion" { "allow" } else { "deny" };
                let verb = if meaning == "a failure" { "unavailable" } else { verb };
                assert_eq!(verdict["verb"], verb, "{line}, {profile:?}: {verdict}");
            }
        }
    }
}
