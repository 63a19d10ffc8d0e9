//! A scenario, played by the program in a home of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use gatehook_engine::events::{Event, Profile};
use serde_json::{Map, Value, json};

use super::table::{Act, Row, Scene};
use crate::support::{Home, Ran, ran};

/// Writes down what it is told, and does what its event's file says.
const HOOK: &str = "IFS= read -r line\nprintf '%s\\n' \"$line\" >> \"$HOME/heard.jsonl\"\n. \"$HOME/does/$1\"\n";

/// Writes down what the model is asked.
const ASKED: &str = "{ cat; echo; } >> \"$HOME/asked.jsonl\"";

/// What came of it.
pub(super) struct Played {
    pub(super) home: Home,
    /// Where it worked.
    pub(super) here: PathBuf,
    pub(super) ran: Ran,
    pub(super) heard: Vec<Value>,
    /// The questions to the model.
    pub(super) asked: Vec<Value>,
    pub(super) reports: Vec<Value>,
}

/// Plays a row, whose own hook does this.
pub(super) fn play(profile: Profile, row: &Row, scene: &Scene, way: Option<&Act>) -> Played {
    let home = Home::new();
    // What hooks write down is no change of the workspace.
    home.file(".gitignore", "/home/\n");
    let mut does = row.does.clone();
    does.extend(way.map(|act| (row.event.clone(), act.clone())));
    let hook = home.file("home/hook.sh", HOOK);
    let heard = row.heard(profile);
    for event in &heard {
        home.file(&format!("home/does/{event}"), &script(profile, event, does.get(event)));
    }
    let hooks: Vec<_> =
        heard.iter().map(|event| (event.as_str(), does.get(event).cloned().unwrap_or_default())).collect();
    let mut own = json!({});
    if row.wants_questions() {
        own = json!({"pre_inference": [{"hooks": [{"type": "command", "name": "asked", "command": ASKED}]}]});
    }
    match file(profile, &hooks, &hook.display().to_string()) {
        (_, text) if profile == Profile::Native => {
            for (event, groups) in text["hooks"].as_object().unwrap() {
                let after = own.get(event).and_then(Value::as_array).cloned().unwrap_or_default();
                own[event] = Value::Array([groups.as_array().cloned().unwrap(), after].concat());
            }
        }
        (path, text) => drop(home.file(path, &text.to_string())),
    }
    let mut config = scene.config.clone();
    config.insert("hooks".to_owned(), own);
    home.file("home/.config/gatehook/gatehook.yaml", &Value::Object(config).to_string());
    home.file("home/.gitconfig", "[user]\n name = A\n email = a@example.com\n[init]\n defaultBranch = main\n");
    for (name, text) in &scene.files {
        home.file(name, &text.replace("<hook>", &format!("sh {}", hook.display())));
    }
    for line in &scene.before {
        let done = ran(home.command("sh").args(["-c", line]));
        assert_eq!(done.code, 0, "{line}: {}", done.shown());
    }
    if profile == Profile::OllamaCli {
        let approved = home.run(&["hooks", "trust", "--yes"]);
        assert_eq!(approved.code, 0, "{}", approved.shown());
    }
    let here = home.path().join(&scene.folder).canonicalize().unwrap();
    let mut last = prompt(&home, &here, scene, scene);
    for again in &scene.again {
        last = prompt(&home, &here, scene, again);
    }
    let reports = lines(&last.out);
    let kept = |name: &str| lines(&fs::read_to_string(home.path().join("home").join(name)).unwrap_or_default());
    Played { heard: kept("heard.jsonl"), asked: kept("asked.jsonl"), home, here, ran: last, reports }
}

fn prompt(home: &Home, here: &std::path::Path, scene: &Scene, now: &Scene) -> Ran {
    let mut gatehook = home.gatehook();
    gatehook.current_dir(here).env("USER", "tester");
    if !now.command.is_empty() {
        return ran(gatehook.args(&now.command));
    }
    let script: String = now.say.iter().map(|answer| format!("{answer}\n")).collect();
    let script = home.file("home/script.jsonl", &script);
    ran(gatehook.args(["run", &now.prompt, "--json", "--replay"]).arg(script).args(&scene.args).args(
        // What an earlier prompt had stays.
        if std::ptr::eq(scene, now) { &[] } else { now.args.as_slice() },
    ))
}

/// What a hook does, for the shell.
fn script(profile: Profile, event: &str, act: Option<&Act>) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let fine = if profile == Profile::Ollm { "printf '%s' '{\"allow\": true}'\n" } else { "" };
    let Some(act) = act else { return fine.to_owned() };
    let mut lines = String::new();
    if act.once {
        lines.push_str(&format!(
            "mkdir \"$HOME/done.{event}\" 2>/dev/null || {{ {} exit 0; }}\n",
            fine.replace('\n', ";")
        ));
    }
    let is_silent = act.says.is_none() && act.prints.is_none() && act.exit == 0;
    act.runs.iter().for_each(|line| lines.push_str(&format!("{line}\n")));
    act.errs.iter().for_each(|text| lines.push_str(&format!("printf '%s' {} >&2\n", quoted(text))));
    let printed = act.says.as_ref().map(Value::to_string).or(act.prints.clone());
    printed.iter().for_each(|text| lines.push_str(&format!("printf '%s' {}\n", quoted(text))));
    if is_silent {
        lines.push_str(fine);
    }
    lines.push_str(&format!("exit {}\n", act.exit));
    lines
}

/// Where a contract's hooks stand, and as what.
fn file(profile: Profile, hooks: &[(&str, Act)], script: &str) -> (&'static str, Value) {
    let mut events = Map::new();
    for (event, act) in hooks {
        let mut hook = match profile {
            Profile::Ollm => json!({"id": event, "name": event, "command": "sh", "args": [script, event]}),
            _ => json!({"type": "command", "command": format!("set -- {event}; . {script}")}),
        };
        hook.as_object_mut().unwrap().extend(act.hook.clone());
        let mut group = json!({"hooks": [hook]});
        group.as_object_mut().unwrap().extend(act.group.clone());
        let known = Event::from_name_in(profile, event).unwrap_or_else(|| panic!("there is no event {event}"));
        let is_flat = profile == Profile::Ollm || (profile == Profile::DockerAgent && profile.subject(known).is_none());
        events.insert((*event).to_owned(), json!([if is_flat { hook } else { group }]));
    }
    let path = match profile {
        Profile::OllamaCli => ".ollama/settings.json",
        Profile::Ollm => "home/.ollm/hooks/all.json",
        _ => "home/.config/cagent/hooks.d/all.yaml",
    };
    (path, json!({"hooks": events}))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

impl Played {
    /// The events that were heard, in order, by this contract's names.
    pub(super) fn events(&self) -> Vec<&str> {
        self.heard.iter().map(name).collect()
    }

    /// The payloads of one event.
    pub(super) fn of(&self, event: &str) -> Vec<&Value> {
        self.heard.iter().filter(|told| name(told) == event).collect()
    }

    fn report(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.reports.iter().filter(move |report| report["type"] == *kind)
    }

    /// How it was done.
    pub(super) fn done(&self, field: &str) -> &str {
        self.report("done").last().and_then(|done| done[field].as_str()).unwrap_or_default()
    }

    /// Results of tools, as text.
    pub(super) fn results(&self) -> String {
        self.report("tool_result")
            .map(|result| format!("{}\n", result["output"].as_str().unwrap_or_default()))
            .collect()
    }

    /// What the person was told.
    pub(super) fn noticed(&self) -> String {
        let text = |value: &Value| format!("{}\n", value.as_str().unwrap_or_default());
        let noticed = self.report("notice").map(|notice| text(&notice["text"]));
        let by_hooks = self.report("hooks").map(|hooks| text(&hooks["system_message"]));
        // Another command than `run` says it there.
        let out = self.reports.iter().all(|report| report["type"].is_null()).then(|| self.ran.out.clone());
        noticed.chain(by_hooks).chain([self.ran.err.clone()]).chain(out).collect()
    }

    /// The session.
    pub(super) fn session(&self) -> &str {
        self.report("session").next().and_then(|session| session["session_id"].as_str()).unwrap_or_default()
    }

    /// How often each event came.
    pub(super) fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        self.events().into_iter().for_each(|event| *counts.entry(event).or_default() += 1);
        counts
    }
}

/// The event of a payload, by whatever contract.
fn name(told: &Value) -> &str {
    ["hook_event_name", "hook", "event"].iter().find_map(|key| told[*key].as_str()).unwrap_or_default()
}
