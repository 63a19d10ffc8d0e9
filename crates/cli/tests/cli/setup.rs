//! `gatehook setup`: what its hooks write becomes the environment of later hooks.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::{Home, Ran};

const STORE: &str = "home/.local/state/gatehook/variables.json";

/// A project whose setup hook writes these lines, and whose other hook keeps its environment.
fn project(lines: &str) -> Home {
    let home = Home::new();
    home.file("lines", lines);
    home.file("keep.sh", "env > env.txt; cat > told.json\n");
    home.file(
        "write.sh",
        "cat > told.json; cat lines >> \"$GATEHOOK_ENV_FILE\"; echo \"$GATEHOOK_ENV_FILE\" > where.txt\n",
    );
    home.file(
        "gatehook.yaml",
        "hooks:
  setup: [{type: command, command: sh write.sh}]
  stop: [{type: command, command: sh keep.sh}]
",
    );
    trust(&home);
    home
}

fn trust(home: &Home) {
    assert_eq!(home.run(&["hooks", "trust", "--yes"]).code, 0);
}

fn told(home: &Home) -> Value {
    serde_json::from_str(&std::fs::read_to_string(home.path().join("told.json")).unwrap()).unwrap()
}

/// The variables that a later hook has, of these names.
fn later(home: &Home, names: &[&str]) -> Vec<String> {
    let ran = home.run(&["fire", "stop"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let env = std::fs::read_to_string(home.path().join("env.txt")).unwrap();
    let is_one = |line: &&str| names.iter().any(|name| line.starts_with(&format!("{name}=")));
    let mut lines: Vec<String> = env.lines().filter(is_one).map(str::to_owned).collect();
    lines.sort();
    lines
}

fn setup(home: &Home, args: &[&str]) -> Ran {
    home.run(&[&["setup"], args].concat())
}

#[test]
fn what_a_hook_writes_is_the_environment_of_later_ones_and_is_shown() {
    let home = project("REGION=eu\nexport NAME='two words'\nAPI_KEY=hunter2\n");
    let ran = setup(&home, &[]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.out.contains("REGION=eu\n") && ran.out.contains("NAME=two words\n"), "{}", ran.shown());
    assert!(ran.err.contains("kept for later hooks of this project in"), "{}", ran.shown());
    assert!(!ran.shown().contains("hunter2"));
    let input = told(&home);
    let file = std::fs::read_to_string(home.path().join("where.txt")).unwrap();
    assert_eq!((&input["trigger"], &input["env_file"]), (&json!("init"), &json!(file.trim())));
    assert!(!std::path::Path::new(file.trim()).exists(), "the file is gone");
    assert_eq!(later(&home, &["REGION", "NAME", "API_KEY"]), ["API_KEY=hunter2", "NAME=two words", "REGION=eu"]);
    let mode = home.path().join(STORE).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "it is its owner's alone");
    // Another project has none of them.
    let other = home.path().join("home");
    let mut command = home.gatehook();
    let elsewhere = crate::support::ran(command.current_dir(other).args(["setup", "--json"]));
    assert_eq!(elsewhere.json()["variables"], json!({}));
}

#[test]
fn a_first_setup_replaces_and_maintenance_adds() {
    let home = project("A=1\nB=1\n");
    setup(&home, &[]);
    home.file("lines", "B=2\nC=2\n");
    let ran = setup(&home, &["--maintenance", "--json"]);
    assert_eq!(ran.json()["variables"], json!({"A": "1", "B": "2", "C": "2"}));
    assert_eq!(told(&home)["trigger"], "maintenance");
    assert_eq!(later(&home, &["A", "B", "C"]), ["A=1", "B=2", "C=2"]);
    home.file("lines", "C=3\n");
    setup(&home, &[]);
    assert_eq!(later(&home, &["A", "B", "C"]), ["C=3"]);
    home.file("lines", "");
    assert!(setup(&home, &[]).err.contains("no variables are kept"));
    assert!(later(&home, &["A", "B", "C"]).is_empty());
}

#[test]
fn what_is_wrong_is_named_by_its_line_and_nothing_is_lost() {
    let home = project("A=1\n");
    setup(&home, &[]);
    home.file("lines", "A=2\nhunter2\nPATH=/evil\nLD_PRELOAD=/evil.so\n");
    let ran = setup(&home, &[]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    for part in ["line 2", "line 3", "`PATH`", "line 4", "`LD_PRELOAD`"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.shown());
    }
    assert!(!ran.shown().contains("hunter2") && !ran.shown().contains("/evil"), "{}", ran.shown());
    assert_eq!(later(&home, &["A"]), ["A=1"]);
}

#[test]
fn a_hook_that_is_not_trusted_sets_nothing() {
    let home = project("A=1\n");
    home.file("write.sh", "echo A=evil >> \"$GATEHOOK_ENV_FILE\"\n");
    let ran = setup(&home, &[]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.err.contains("1 hook is not in force"), "{}", ran.shown());
    assert!(later(&home, &["A"]).is_empty());
}

#[test]
fn hooks_of_the_user_are_not_told_what_a_project_wrote() {
    let home = project("A=project\n");
    home.file("home/.config/gatehook/gatehook.yaml", "hooks: {stop: [{type: command, command: 'env > user-env.txt'}]}");
    setup(&home, &[]);
    assert_eq!(later(&home, &["A"]), ["A=project"]);
    let user = std::fs::read_to_string(home.path().join("user-env.txt"));
    // It runs beside its file's folder where it stands.
    let user =
        user.or_else(|_| std::fs::read_to_string(home.path().join("home/.config/gatehook/user-env.txt"))).unwrap();
    assert!(!user.contains("A=project"), "{user}");
}

#[test]
fn a_store_that_cannot_be_read_closes_and_stays_as_it_is() {
    let home = project("A=1\n");
    setup(&home, &[]);
    for bad in ["{", "{\"version\": 2, \"projects\": {}}"] {
        home.file(STORE, bad);
        for args in [&["fire", "stop"][..], &["setup"]] {
            let ran = home.run(args);
            assert_eq!(ran.code, 3, "{bad} {args:?}: {}", ran.shown());
            assert!(ran.err.contains("variables.json") && ran.err.contains("gatehook setup"), "{}", ran.shown());
        }
        assert_eq!(std::fs::read_to_string(home.path().join(STORE)).unwrap(), bad);
    }
}

#[test]
fn hooks_of_ollama_cli_write_where_their_variable_says() {
    let home = Home::new();
    home.file(
        "gatehook.yaml",
        "hooks:
  setup: [{type: command, dialect: ollama-cli, command: 'echo A=1 >> \"$OLLAMA_ENV_FILE\"'}]
  stop: [{type: command, dialect: ollama-cli, command: sh keep.sh}]
",
    );
    home.file("keep.sh", "env > env.txt; cat > told.json\n");
    trust(&home);
    assert_eq!(setup(&home, &[]).code, 0);
    assert_eq!(later(&home, &["A"]), ["A=1"]);
}

#[test]
fn a_file_that_a_hook_swapped_is_not_read() {
    let home = project("");
    home.file("secret", "A=hunter2\n");
    home.file("write.sh", "rm \"$GATEHOOK_ENV_FILE\"; ln -s \"$PWD/secret\" \"$GATEHOOK_ENV_FILE\"\n");
    trust(&home);
    let ran = setup(&home, &[]);
    assert_eq!(ran.code, 1, "{}", ran.shown());
    assert!(ran.err.contains("no file any more"), "{}", ran.shown());
    home.file("write.sh", "rm \"$GATEHOOK_ENV_FILE\"\n");
    trust(&home);
    assert_eq!(setup(&home, &[]).code, 0);
}
