//! What is remembered of dispatches: `hooks trace`, `hooks stats`, and where nothing can be.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Home, Ran, Serve, ran};

const POLICY: &str = r#"hooks:
  pre_inference:
    - { type: builtin, command: redact_secrets }
    - { name: words, type: builtin, command: block_patterns, args: ["(?i)launch codes"] }
  pre_tool_use:
    - matcher: shell
      hooks:
        - { name: guard, type: command, command: "grep -q 'rm -rf' && { echo 'too dangerous' >&2; exit 2; }; exit 0" }
    - matcher: broken
      hooks:
        - { name: broken, type: command, command: "echo oh >&2; exit 3" }
"#;

const DENIED: &[&str] = &["pre_tool_use", "--tool", "shell", "--set", "cmd=rm -rf /"];

fn home() -> Home {
    let home = Home::new();
    home.file("home/.config/gatehook/gatehook.yaml", POLICY);
    home
}

fn database(home: &Home) -> PathBuf {
    home.path().join("home/.local/state/gatehook/gatehook.db")
}

fn test(home: &Home, args: &[&str]) -> Ran {
    home.run(&[&["hooks", "test"], args].concat())
}

fn trace(home: &Home, args: &[&str]) -> Ran {
    home.run(&[&["hooks", "trace"], args].concat())
}

/// The events of a list of traces.
fn events(home: &Home, args: &[&str]) -> Vec<String> {
    let listed = trace(home, &[args, &["--json"]].concat()).json();
    listed.as_array().unwrap().iter().map(|it| it["event"].as_str().unwrap().to_owned()).collect()
}

/// A home where three dispatches were recorded: one allowed, one denied, one that failed.
fn remembering() -> Home {
    let home = home();
    assert_eq!(test(&home, &["pre_inference", "--set", "session_id=first"]).code, 0);
    assert_eq!(test(&home, DENIED).code, 1);
    assert_eq!(test(&home, &["pre_tool_use", "--tool", "broken"]).code, 1);
    home
}

#[test]
fn what_was_dispatched_is_listed_the_newest_first() {
    let home = remembering();
    let listed = trace(&home, &[]);
    let lines: Vec<&str> = listed.out.lines().collect();
    assert_eq!((listed.code, lines.len(), listed.err.as_str()), (0, 4, ""), "{}", listed.shown());
    for (line, parts) in lines.iter().zip([
        &["ID", "WHEN", "EVENT", "SESSION", "VERDICT", "TIME", "HOOKS", "MESSAGE"][..],
        &["3 ", "pre_tool_use", "sample-session", "unavailable", "broken (failed: nonzero_exit)"],
        &["2 ", "pre_tool_use", "deny", "guard (blocked)", "too dangerous"],
        &["1 ", "pre_inference", "first", "allow", "redact_secrets, words"],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{parts:?} in {line}");
    }
    assert!(!listed.out.contains('\u{1b}'));
}

#[test]
fn a_list_is_of_what_was_asked_for() {
    let home = remembering();
    for (args, count) in [
        (&["--event", "pre_tool_use"][..], 2),
        (&["--hook", "guard"], 1),
        (&["--session", "first"], 1),
        (&["--failed"], 1),
        (&["--since", "1h"], 3),
        (&["--since", "0s"], 0),
        (&["--limit", "2"], 2),
        (&["--event", "stop"], 0),
    ] {
        assert_eq!(events(&home, args).len(), count, "{args:?}");
    }
    assert_eq!(trace(&home, &["--event", "stop"]).shown(), "exit 0\n--- stderr\nno recorded dispatch is like that\n");
    let unknown = trace(&home, &["--event", "pre_tool_usee"]);
    assert!(unknown.code == 2 && unknown.err.contains("did you mean `pre_tool_use`?"), "{}", unknown.shown());
    assert_eq!(trace(&home, &["--since", "soon"]).code, 2);
}

#[test]
fn one_trace_is_shown_whole() {
    let home = remembering();
    let shown = trace(&home, &["2"]);
    for part in [
        "trace: 2\n",
        "event: pre_tool_use\n",
        "plane: agent\n",
        "verdict: deny\n",
        "message: too dangerous\n",
        "\"cmd\": \"rm -rf /\"",
        "guard  command  native   blocked  2",
        "stderr of guard: too dangerous",
    ] {
        assert!(shown.out.contains(part), "{part:?} in {}", shown.shown());
    }
    let json = trace(&home, &["3", "--json"]).json();
    let outcome = &json["outcomes"][0];
    assert_eq!(
        (&json["verdict"]["verb"], &json["allowed"], &outcome["kind"], &outcome["failure"], &outcome["exit_code"]),
        (&"unavailable".into(), &false.into(), &"failed".into(), &"nonzero_exit".into(), &3.into()),
        "{json}"
    );
    let missing = trace(&home, &["99"]);
    assert!(missing.code == 2 && missing.err.contains("there is no trace 99"), "{}", missing.shown());
}

#[test]
fn no_secret_reaches_the_file() {
    let home = home();
    let key = format!("{}_{}", "ghp", "x7Qm2Zp9Lk4Vt8Rw3Ns6Yb1Hd5Jf0GcAe2Uo");
    test(&home, &["pre_inference", "--set", &format!("prompt=my key is {key}")]);
    test(&home, &["pre_tool_use", "--tool", "shell", "--set", &format!("cmd=curl -H 'x-token: {key}' rm -rf")]);
    for entry in std::fs::read_dir(database(&home).parent().unwrap()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()));
    }
    let json = trace(&home, &["1", "--json"]).json();
    assert_eq!(json["input"]["messages"][0]["content"], "my key is [REDACTED]");
    assert_eq!((&json["secrets"], &json["verdict"]["rewritten"][0]), (&1.into(), &"messages".into()));
}

#[test]
fn the_file_is_its_owners_alone_and_where_the_state_is() {
    let home = home();
    let mut command = home.gatehook();
    command.args(["hooks", "test", "pre_inference"]).env("XDG_STATE_HOME", home.path().join("state"));
    assert_eq!(ran(&mut command).code, 0);
    let path = home.path().join("state/gatehook/gatehook.db");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    let folder = std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode();
    assert_eq!((mode & 0o777, folder & 0o777), (0o600, 0o700));
}

#[test]
fn the_configuration_says_where_and_how_much_or_nothing() {
    let home = Home::new();
    home.file("off.yaml", &format!("traces: {{enabled: false}}\n{POLICY}"));
    home.file("here.yaml", &format!("traces: {{path: here/t.db, max_rows: 2, keep: 7d}}\n{POLICY}"));
    assert_eq!(test(&home, &["pre_inference", "--config", "off.yaml"]).err, "");
    assert!(!database(&home).exists());
    for _ in 0..4 {
        test(&home, &["pre_inference", "--config", "here.yaml"]);
    }
    assert!(!database(&home).exists());
    assert_eq!(events(&home, &["--config", "here.yaml"]).len(), 2);
}

#[test]
fn an_event_that_no_hook_fits_is_not_remembered() {
    let home = home();
    test(&home, &["pre_tool_use", "--tool", "read_file"]);
    assert!(!database(&home).exists());
}

#[test]
fn where_nothing_was_recorded_that_is_said() {
    let home = home();
    for command in ["trace", "stats"] {
        let said = home.run(&["hooks", command]);
        assert!(said.code == 0 && said.err.contains("no dispatch is recorded"), "{}", said.shown());
        assert_eq!(home.run(&["hooks", command, "--json"]).shown(), "exit 0\n--- stdout\n[]\n");
    }
    assert_eq!(trace(&home, &["1"]).code, 2);
    assert!(!database(&home).exists(), "to ask makes no file");
}

#[test]
fn the_statistics_count_each_hook_of_each_event() {
    let home = remembering();
    test(&home, &["pre_tool_use", "--tool", "shell", "--set", "cmd=ls"]);
    let stats = home.run(&["hooks", "stats", "--json"]).json();
    let rows: Vec<(&str, &str, u64, u64, u64)> = stats
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let count = |name: &str| it[name].as_u64().unwrap();
            (
                it["event"].as_str().unwrap(),
                it["name"].as_str().unwrap(),
                count("runs"),
                count("failures"),
                count("blocks"),
            )
        })
        .collect();
    let expected = [
        ("pre_inference", "redact_secrets", 1, 0, 0),
        ("pre_inference", "words", 1, 0, 0),
        ("pre_tool_use", "broken", 1, 1, 0),
        ("pre_tool_use", "guard", 2, 0, 1),
    ];
    assert_eq!(rows, expected);
    let guard = &stats[3];
    assert!(guard["p50_us"].as_u64() <= guard["max_us"].as_u64() && guard["max_us"] == guard["p99_us"], "{guard}");
    let table = home.run(&["hooks", "stats", "--since", "1d"]).out;
    assert!(
        table.starts_with("EVENT") && table.contains("pre_tool_use   guard           command  2     0         1"),
        "{table}"
    );
}

/// The verdicts stand, the commands end as they always do, and a word on standard error says what could not be kept.
fn is_guarded_still(home: &Home, word: &str) {
    for (args, code) in [(&["pre_inference"][..], 0), (DENIED, 1)] {
        let ran = test(home, args);
        assert_eq!(ran.code, code, "{}", ran.shown());
        assert!(ran.out.contains("verdict: "), "{}", ran.shown());
        assert!(ran.err.contains("1 dispatch is not recorded: ") && ran.err.contains(word), "{}", ran.shown());
    }
}

#[test]
fn a_file_that_another_program_holds_changes_no_verdict() {
    let home = remembering();
    let other = Connection::open(database(&home)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    is_guarded_still(&home, "is locked by another program");
    assert_eq!(events(&home, &[]).len(), 3, "it can be asked meanwhile");
}

#[test]
fn a_damaged_file_changes_no_verdict() {
    let home = home();
    home.file("home/.local/state/gatehook/gatehook.db", &"no database\n".repeat(100));
    is_guarded_still(&home, "is damaged or no database");
    let asked = trace(&home, &[]);
    assert!(asked.code == 71 && asked.err.contains("move it away"), "{}", asked.shown());
}

#[test]
fn a_file_of_a_newer_version_changes_no_verdict() {
    let home = remembering();
    Connection::open(database(&home)).unwrap().pragma_update(None, "user_version", 1000).unwrap();
    is_guarded_still(&home, "was made by a newer gatehook");
    assert_eq!(home.run(&["hooks", "stats"]).code, 71);
}

#[test]
fn a_place_that_cannot_be_had_changes_no_verdict() {
    let home = home();
    home.file("home/.local", "a file where a folder should be");
    is_guarded_still(&home, "cannot be opened");
}

#[test]
fn a_disk_that_takes_no_more_changes_no_verdict() {
    let home = home();
    let run = |args: &str| {
        // Files may grow to 4 KiB: as on a full disk, writing fails, and no signal ends the program.
        let line = format!("trap '' XFSZ; ulimit -f 8; exec gatehook hooks test {args}");
        ran(home.command("sh").args(["-c", &line]))
    };
    for (args, code) in [("pre_inference", 0), ("pre_tool_use --tool shell --set 'cmd=rm -rf /'", 1)] {
        let ran = run(args);
        assert!(ran.code == code && ran.err.contains("1 dispatch is not recorded: "), "{}", ran.shown());
    }
}

#[test]
fn without_a_home_nothing_is_remembered_and_that_is_said() {
    let home = Home::new();
    home.file("policy.yaml", POLICY);
    let mut command = home.gatehook();
    command.args(["hooks", "test", "pre_inference", "--config", "policy.yaml"]).env_remove("HOME");
    let ran = ran(&mut command);
    assert_eq!(ran.code, 0);
    assert!(ran.err.contains("dispatches are not recorded: neither XDG_STATE_HOME nor HOME is set"), "{}", ran.shown());
}

#[test]
fn a_gateway_remembers_where_it_is_told_to() {
    let home = Home::new();
    home.file("plain.yaml", POLICY);
    let serve = Serve::start(&home, &["--config", "plain.yaml", "--upstream", "replay:"]);
    assert_eq!(serve.chat("launch codes").0, 400);
    serve.signal(Signal::TERM);
    assert_eq!(serve.ended().0, 0);
    assert!(!database(&home).exists());

    home.file("told.yaml", &format!("traces: {{enabled: true}}\n{POLICY}"));
    let serve = Serve::start(&home, &["--config", "told.yaml", "--upstream", "replay:"]);
    assert_eq!((serve.chat("hello").0, serve.chat("launch codes").0), (200, 400));
    serve.signal(Signal::TERM);
    let (code, log) = serve.ended();
    assert_eq!(code, 0, "{log}");
    let listed = trace(&home, &["--json"]).json();
    let said: Vec<(&Value, &Value, &Value)> =
        listed.as_array().unwrap().iter().map(|it| (&it["event"], &it["plane"], &it["verdict"]["verb"])).collect();
    let [event, wire] = ["pre_inference", "wire"].map(Value::from);
    assert_eq!(said, [(&event, &wire, &"deny".into()), (&event, &wire, &"allow".into())], "{listed}");
    assert_eq!(listed[0]["input"]["messages"][0]["content"], "launch codes");
}

#[test]
fn a_gateway_whose_traces_cannot_be_written_serves_all_the_same() {
    let home = Home::new();
    home.file("state", "a file where a folder should be");
    home.file("told.yaml", &format!("traces: {{enabled: true, path: state/t.db}}\n{POLICY}"));
    let mut serve = Serve::start(&home, &["--config", "told.yaml", "--upstream", "replay:"]);
    assert_eq!((serve.chat("hello").0, serve.chat("launch codes").0), (200, 400));
    let line = serve.line("traces are not recorded");
    assert!(line.contains("state/t.db cannot be opened"), "{line}");
    serve.signal(Signal::TERM);
    let (code, log) = serve.ended();
    assert!(code == 0 && log.contains("2 dispatches are not recorded"), "{log}");
}
