//! Files of other systems, found where each keeps them: what is listed, and what runs.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::{Home, Ran, ran};

const OLLAMA: &str = r#"{"hooks": {"PreToolUse": [{"matcher": "", "hooks": [{"type": "command", "name": "policy",
    "command": "sh $OLLAMA_PROJECT_DIR/.ollama/hooks/policy.sh"}]}]}}"#;
const KEEPER: &str = "pwd -P > \"$1.dir\"; cat > \"$1.json\"; echo '{\"allow\": true}'\n";

fn ollm(event: &str, record: &str) -> String {
    format!(r#"{{"name": "x", "version": "1.2.3", "description": "d", "hooks": {{"{event}": [{record}]}}}}"#)
}

/// Each hook's name, state, source, profile and reason.
fn listed(home: &Home) -> Vec<(String, String, String, String, String)> {
    let ran = home.run(&["hooks", "list", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let row = |row: &Value| {
        (text(row, "name"), text(row, "state"), text(row, "source"), text(row, "profile"), text(row, "why"))
    };
    ran.json().as_array().unwrap().iter().map(row).collect()
}

fn state(home: &Home, name: &str) -> (String, String) {
    let row = listed(home).into_iter().find(|row| row.0 == name);
    row.map(|row| (row.1, row.4)).unwrap_or_else(|| panic!("{name} is not listed"))
}

fn fire(home: &Home, event: &str) -> Ran {
    home.run(&["hooks", "test", event, "--tool", "shell", "--json"])
}

fn names(ran: &Ran) -> Vec<String> {
    let verdict = ran.json();
    let outcomes = verdict["outcomes"].as_array().unwrap();
    outcomes.iter().map(|outcome| outcome["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_systems_files_are_found_and_listed_with_their_state() {
    let home = Home::new();
    home.file(".ollama/settings.json", OLLAMA);
    home.file(".ollm/hooks/a.json", &ollm("pre-tool-call", r#"{"name": "workspace", "command": "sh"}"#));
    home.file(".ollm/extensions/e/manifest.json", &ollm("custom", r#"{"name": "extension", "command": "sh"}"#));
    home.file("home/.ollm/hooks/b.json", &ollm("pre-tool-call", r#"{"name": "user", "command": "sh"}"#));
    home.file("home/.ollm/extensions/f/manifest.json", &ollm("custom", r#"{"name": "installed", "command": "sh"}"#));
    home.file("home/.config/cagent/config.yaml", "settings: {hooks: {stop: {name: own, type: command, command: ls}}}");
    home.file("home/.config/cagent/hooks.d/a.yaml", "stop: [{name: drop-in, type: command, command: ls}]");
    let mut rows = listed(&home);
    rows.sort();
    let rows: Vec<[&str; 4]> = rows.iter().map(|row| [&*row.0, &*row.1, &*row.2, &*row.3]).collect();
    assert_eq!(
        rows,
        [
            ["drop-in", "in_force", "user", "docker-agent"],
            ["extension", "not_trusted", "extension", "ollm"],
            ["installed", "not_trusted", "extension", "ollm"],
            ["own", "in_force", "user", "docker-agent"],
            ["policy", "not_trusted", "workspace", "ollama-cli"],
            ["user", "in_force", "user", "ollm"],
            ["workspace", "not_trusted", "workspace", "ollm"],
        ]
    );
}

#[test]
fn serve_takes_what_the_user_has_and_nothing_of_a_project_or_an_extension() {
    let home = Home::new();
    home.file(".ollama/settings.json", "{");
    home.file(".ollm/hooks/a.json", "{");
    home.file("home/.ollm/extensions/f/manifest.json", "{");
    home.file("home/.ollm/hooks/b.json", &ollm("pre-tool-call", r#"{"name": "user", "command": "sh"}"#));
    let checked = home.run(&["serve", "--check"]);
    assert_eq!(checked.code, 0, "{}", checked.shown());
    assert!(checked.out.contains("user") && checked.out.contains("b.json"), "{}", checked.shown());
}

#[test]
fn a_hook_of_a_project_runs_once_it_is_trusted_and_not_after_a_change() {
    let home = Home::new();
    home.file(".ollama/settings.json", OLLAMA);
    home.file(".ollama/hooks/policy.sh", "echo '{\"permissionDecision\": \"deny\", \"reason\": \"no\"}'\n");
    let before = fire(&home, "pre_tool_use");
    assert_eq!((before.code, names(&before).len()), (0, 0), "{}", before.shown());
    assert_eq!(home.run(&["hooks", "trust", "--yes"]).code, 0);
    assert_eq!(fire(&home, "pre_tool_use").code, 1);
    home.file(".ollama/hooks/policy.sh", "exit 0\n");
    assert_eq!(state(&home, "policy"), ("changed".to_owned(), "changed: .ollama/hooks/policy.sh".to_owned()));
    assert_eq!(names(&fire(&home, "pre_tool_use")).len(), 0);
}

#[test]
fn an_extension_is_approved_by_its_folder_and_runs_in_it_wherever_its_owner_works() {
    let home = Home::new();
    let record = r#"{"name": "e", "command": "sh", "args": ["scripts/keep.sh", "kept"]}"#;
    for folder in ["home/.ollm/extensions/far", ".ollm/extensions/near"] {
        home.file(&format!("{folder}/manifest.json"), &ollm("pre-tool-call", record));
        home.file(&format!("{folder}/scripts/keep.sh"), KEEPER);
    }
    assert_eq!(names(&fire(&home, "pre_tool_use")).len(), 0);
    let trusted = home.run(&["hooks", "trust", "--yes"]);
    assert_eq!(trusted.code, 0, "{}", trusted.shown());
    let ran = fire(&home, "pre_tool_use");
    assert_eq!((ran.code, names(&ran).len()), (0, 2), "{}", ran.shown());
    for folder in ["home/.ollm/extensions/far", ".ollm/extensions/near"] {
        let folder = home.path().join(folder).canonicalize().unwrap();
        let dir = std::fs::read_to_string(folder.join("kept.dir")).unwrap();
        assert_eq!(dir.trim(), folder.to_str().unwrap());
        let told: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("kept.json")).unwrap()).unwrap();
        assert_eq!((&told["event"], &told["metadata"]["hookVersion"]), (&json!("pre-tool-call"), &json!("1.2.3")));
    }
    // In another project the installed one is still approved.
    let other = home.path().join("other/.git");
    std::fs::create_dir_all(&other).unwrap();
    let args = ["hooks", "test", "pre_tool_use", "--json"];
    let elsewhere = ran_in(&home, "other", &args);
    assert_eq!(names(&elsewhere), ["e"], "{}", elsewhere.shown());
    home.file("home/.ollm/extensions/far/scripts/keep.sh", "exit 0\n");
    let elsewhere = ran_in(&home, "other", &args);
    assert_eq!(names(&elsewhere).len(), 0, "{}", elsewhere.shown());
    assert_eq!(home.run(&["hooks", "untrust"]).err.trim(), "2 approvals withdrawn");
}

fn ran_in(home: &Home, folder: &str, args: &[&str]) -> Ran {
    ran(home.gatehook().args(args).current_dir(home.path().join(folder)))
}

#[test]
fn what_ollms_settings_disable_is_listed_and_does_not_run() {
    let home = Home::new();
    let records = r#"{"id": "a", "name": "first", "command": "sh", "args": ["-c", "exit 1"]},
        {"name": "second", "command": "sh", "args": ["-c", "exit 1"], "enabled": false},
        {"name": "third", "command": "sh", "args": ["-c", "echo '{\"allow\": true}'"]}"#;
    home.file("home/.ollm/hooks/b.json", &ollm("pre-tool-call", records));
    home.file("home/.ollm/settings.json", r#"{"theme": "dark", "hooks": {"enabled": {"a": false, "third": true}}}"#);
    let (first, why) = state(&home, "first");
    assert!(first == "switched_off" && why.ends_with("home/.ollm/settings.json"), "{first}: {why}");
    assert_eq!(state(&home, "second").1, "switched off by its own `enabled`");
    let ran = fire(&home, "pre_tool_use");
    assert_eq!((ran.code, names(&ran)), (0, vec!["third".to_owned()]), "{}", ran.shown());
    home.file("home/.ollm/config.yaml", "hooks: {enabled: false, timeout: 30000, trustWorkspace: true}\n");
    assert_eq!(state(&home, "third").0, "switched_off");
    let shown = home.run(&["hooks", "list"]);
    assert!(shown.err.contains("`trustWorkspace` is not followed"), "{}", shown.shown());
    assert!(!shown.err.contains("not in force; `gatehook hooks trust`"), "{}", shown.shown());
}

#[test]
fn a_variable_switches_hooks_of_ollama_cli_off_and_the_list_says_so() {
    let home = Home::new();
    home.file(".ollama/settings.json", OLLAMA);
    home.file(".ollama/hooks/policy.sh", "exit 2\n");
    assert_eq!(home.run(&["hooks", "trust", "--yes"]).code, 0);
    assert_eq!(fire(&home, "pre_tool_use").code, 1);
    let off = |args: &[&str]| ran(home.gatehook().args(args).env("OLLAMA_HOOKS_ENABLED", "false"));
    assert_eq!(off(&["hooks", "test", "pre_tool_use"]).code, 0);
    let rows = off(&["hooks", "list", "--json"]).json();
    assert_eq!(
        (&rows[0]["state"], &rows[0]["why"]),
        (&json!("switched_off"), &json!("switched off by OLLAMA_HOOKS_ENABLED"))
    );
}

#[test]
fn ollama_clis_project_may_be_named_and_its_variable_leads_there() {
    let home = Home::new();
    std::fs::create_dir(home.path().join(".git")).unwrap();
    home.file("sub/.ollama/settings.json", OLLAMA);
    home.file("sub/.ollama/hooks/policy.sh", "echo \"$OLLAMA_PROJECT_DIR\" > where\n");
    // A script that nobody approved, where the variable would lead without a look at it.
    home.file(".ollama/hooks/policy.sh", "exit 2\n");
    let sub = home.path().join("sub").canonicalize().unwrap();
    let run = |args: &[&str]| ran(home.gatehook().args(args).env("OLLAMA_PROJECT_DIR", &sub));
    assert_eq!(run(&["hooks", "trust", "--yes"]).code, 0);
    let ran = run(&["hooks", "test", "pre_tool_use", "--json"]);
    assert_eq!((ran.code, names(&ran)), (0, vec!["policy".to_owned()]), "{}", ran.shown());
    assert_eq!(std::fs::read_to_string(sub.join("where")).unwrap().trim(), sub.to_str().unwrap());
}

#[test]
fn a_file_that_is_imported_runs_under_its_own_contract() {
    let home = Home::new();
    let agent = "agents: {root: {model: m, hooks: {pre_tool_use: {hooks: {name: imported, type: command, \
                 command: 'cat > told.json; exit 2'}}}}, other: {hooks: {stop: {type: command, command: ls}}}}\n";
    home.file("team/agent.yaml", agent);
    home.file(
        "home/.config/gatehook/gatehook.yaml",
        &format!("import: [{{file: {}/team/agent.yaml}}]\n", home.path().display()),
    );
    let ran = fire(&home, "pre_tool_use");
    assert_eq!((ran.code, names(&ran)), (1, vec!["imported".to_owned()]), "{}", ran.shown());
    assert!(ran.err.contains("hooks of the agent `other` are not read"), "{}", ran.shown());
    assert_eq!(listed(&home)[0].3, "docker-agent");
    let told: Value = serde_json::from_str(&std::fs::read_to_string(home.path().join("told.json")).unwrap()).unwrap();
    assert_eq!(told["hook_event_name"], "pre_tool_use");
    // A project's import is the project's, and waits for its approval.
    home.file("home/.config/gatehook/gatehook.yaml", "hooks: {}\n");
    home.file("gatehook.yaml", "import: [{file: team/agent.yaml}]\n");
    assert_eq!(state(&home, "imported").0, "not_trusted");
    assert_eq!(fire(&home, "pre_tool_use").code, 0);
    for (import, message) in [
        ("[{file: .claude/settings.json}]", "hooks of Claude Code are not read by this version"),
        ("[{file: missing/agent.yaml}]", "cannot be read"),
        ("[{file: ../agent.yaml}]", "leads out of the project"),
        ("[{file: gatehook.yaml}]", "nothing says whose hooks these are"),
        ("[{file: gatehook.yaml, dialect: docker-agent}]", "a file of another system imports nothing"),
    ] {
        home.file("gatehook.yaml", &format!("import: {import}\nhooks: {{}}\n"));
        let ran = home.run(&["hooks", "check"]);
        assert!(ran.code == 1 && ran.err.contains(message), "{import}: {}", ran.shown());
        assert_eq!(fire_code(&home), 3, "{import}");
    }
}

fn fire_code(home: &Home) -> i32 {
    home.run(&["hooks", "test", "pre_tool_use"]).code
}

#[test]
fn hostile_files_are_said_to_be_so_and_nothing_runs() {
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let huge = format!("{{\"x\": \"{}\"}}", "y".repeat(5 << 20));
    let command = |kind: &str| format!(r#"{{"hooks": {{"PreToolUse": [{{"hooks": [{kind}]}}]}}}}"#);
    let cases = [
        (".ollama/settings.json", deep.clone(), "levels of nesting"),
        (".ollama/settings.json", huge.clone(), "more than 4194304 bytes"),
        (".ollama/settings.json", command(r#"{"type": "rocket"}"#), "there is no type `rocket`"),
        (".ollama/settings.json", command(r#"{"type": "command"}"#), "a command hook needs a `command`"),
        (".ollama/settings.json", "{\"hooks\": 3}".to_owned(), "must be a mapping"),
        (".ollama/settings.json", "{\"hooks\": {}, \"hooks\": {}}".to_owned(), "stands twice"),
        (".ollama/settings.json", String::new(), ""),
        (".ollm/hooks/a.json", deep, "levels of nesting"),
        (".ollm/hooks/a.json", ollm("pre-tool-call", r#"{"name": "n", "command": "./gone.sh"}"#), "does not exist"),
        (".ollm/hooks/a.json", ollm("pre-tool-call", r#"{"name": "n", "command": "./folder"}"#), "is not executable"),
        (".ollm/hooks/a.json", ollm("pre-tool-call", r#"{"name": "n", "command": "./plain.sh"}"#), "is not executable"),
        (".ollm/hooks/a.json", ollm("pre-toolcall", ""), "has no event `pre-toolcall`"),
        (".ollm/extensions/e/manifest.json", huge, "more than 4194304 bytes"),
        ("home/.config/cagent/hooks.d/a.yaml", "stop: &a [*a]".to_owned(), ""),
        ("home/.config/cagent/hooks.d/a.yaml", "stop: {type: command, comand: ls}".to_owned(), "comand"),
        ("home/.config/cagent/config.yaml", "settings: {hooks: {stopp: []}}".to_owned(), "stopp"),
    ];
    for (name, text, message) in cases {
        let home = Home::new();
        std::fs::create_dir(home.path().join("folder")).unwrap();
        home.file("plain.sh", "exit 0\n");
        home.file(name, &text);
        let ran = home.run(&["hooks", "check"]);
        let shown = text.get(..60).unwrap_or(&text);
        assert!(ran.code == 1 && ran.err.contains(message), "{name} {shown}: {}", ran.shown());
        assert!(ran.err.contains(name.rsplit('/').next().unwrap()), "{name} {shown}: {}", ran.shown());
        assert_eq!(fire_code(&home), 3, "{name} {shown}");
    }
}

#[test]
fn what_stands_in_a_files_place_and_is_none_is_said_to_be_so() {
    let home = Home::new();
    let place = home.path().join(".ollama/settings.json");
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    let check = |message: &str| {
        let ran = home.run(&["hooks", "check"]);
        assert!(ran.code == 1 && ran.err.contains(message), "{message}: {}", ran.shown());
        assert_eq!(fire_code(&home), 3, "{message}");
    };
    symlink("settings.json", &place).unwrap();
    check("a link that leads nowhere");
    std::fs::remove_file(&place).unwrap();
    symlink("gone.json", &place).unwrap();
    check("a link that leads nowhere");
    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    check("it is a folder");
    std::fs::remove_dir(&place).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    check("it is no file");
    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir_all(home.path().join(".ollm")).unwrap();
    symlink("hooks", home.path().join(".ollm/hooks")).unwrap();
    check("a link that leads nowhere");
    std::fs::remove_file(home.path().join(".ollm/hooks")).unwrap();
    for number in 0..600 {
        home.file(&format!(".ollm/hooks/{number}.json"), "{}");
    }
    check("more than 512 files");
}

#[test]
fn a_script_that_cannot_run_closes_what_it_guards() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("folder")).unwrap();
    home.file("plain.sh", "exit 0\n");
    for command in ["./gone.sh", "sh gone.sh", "./folder", "./plain.sh", "python3 -c 'import nosuchmodule'"] {
        let hook = json!({"type": "command", "command": command});
        let settings = json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}});
        home.file(".ollama/settings.json", &settings.to_string());
        let trusted = home.run(&["hooks", "trust", "--yes"]);
        let ran = fire(&home, "pre_tool_use");
        assert_eq!(ran.code, 1, "{command}: {} {}", trusted.shown(), ran.shown());
    }
}

#[test]
fn a_hook_of_ollms_panel_is_no_fault_and_is_said_not_to_run() {
    let home = Home::new();
    let panel = r#"{"name": "n", "when": {"type": "promptSubmit"}, "then": {"type": "askAgent", "prompt": "p"}}"#;
    home.file("home/.ollm/hooks/panel.json", panel);
    let ran = home.run(&["hooks", "list"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.err.contains("panel.json") && ran.err.contains("speaks no hook protocol"), "{}", ran.shown());
}
