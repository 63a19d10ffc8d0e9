//! `gatehook hooks trust` and what is in force without it: a project in `home.path()`, its owner's approvals in its home.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::{Home, Ran, ran};

const POLICY: &str = "hooks:
  pre_tool_use:
    - { name: guard, type: command, command: sh hooks/guard.sh }
    - { name: python, type: command, command: python3 hooks/check.py }
";

const STORE: &str = "home/.local/state/gatehook/trust.json";

/// A project with two hooks that note their runs and let everything pass.
fn project() -> Home {
    let home = Home::new();
    home.file("gatehook.yaml", POLICY);
    home.file("hooks/guard.sh", "echo guard >> ran\n");
    home.file("hooks/check.py", "import rules\nrules.note()\n");
    home.file("hooks/rules.py", "def note():\n    open('ran', 'a').write('python\\n')\n");
    home
}

fn trusted() -> Home {
    let home = project();
    assert_eq!(home.run(&["hooks", "trust", "--yes"]).code, 0);
    home
}

/// Fires an event, and says which hooks ran.
fn fired(home: &Home) -> (Ran, Vec<String>) {
    let _ = std::fs::remove_file(home.path().join("ran"));
    let ran = home.run(&["hooks", "test", "pre_tool_use", "--tool", "shell"]);
    let mut names: Vec<String> =
        std::fs::read_to_string(home.path().join("ran")).unwrap_or_default().lines().map(str::to_owned).collect();
    names.sort();
    (ran, names)
}

/// Name, state and reason of every hook.
fn states(home: &Home) -> Vec<(String, String, Option<String>)> {
    let rows = home.run(&["hooks", "list", "--json"]).json();
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().map(str::to_owned);
    let state = |row| (text(row, "name").unwrap(), text(row, "state").unwrap(), text(row, "why"));
    rows.as_array().unwrap().iter().map(state).collect()
}

fn state(home: &Home, name: &str) -> (String, String) {
    let found = states(home).into_iter().find(|(known, ..)| known == name);
    found.map(|(_, state, why)| (state, why.unwrap_or_default())).unwrap()
}

/// `gatehook` on a terminal where somebody has typed this.
fn on_terminal(home: &Home, args: &[&str], typed: &str) -> Ran {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let end = || Stdio::from(open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
    let mut terminal = File::from(terminal);
    let mut command = home.gatehook();
    command.args(args).stdin(end()).stdout(end()).stderr(end());
    let mut child = command.spawn().unwrap();
    drop(command);
    terminal.write_all(typed.as_bytes()).unwrap();
    let mut out = Vec::new();
    // The terminal's last end is closed when the program has ended: an error here.
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = terminal.read(&mut bytes) {
        out.extend_from_slice(&bytes[..read]);
    }
    let code = child.wait().unwrap().code().unwrap_or(-1);
    Ran { code, out: String::from_utf8(out).unwrap(), err: String::new() }
}

#[test]
fn a_projects_hooks_do_not_run_until_they_are_approved() {
    let home = project();
    let (first, names) = fired(&home);
    assert_eq!((first.code, names.len()), (0, 0), "{}", first.shown());
    assert!(first.err.contains("2 hooks are not in force; `gatehook hooks trust`"), "{}", first.shown());
    assert_eq!(state(&home, "guard"), ("not_trusted".into(), "not trusted".into()));

    let shown = home.run(&["hooks", "trust", "--yes"]);
    assert_eq!(shown.code, 0, "{}", shown.shown());
    for part in ["sh hooks/guard.sh", "echo guard >> ran", "hooks/rules.py", "def note():", "risk: medium", "sha256:"] {
        assert!(shown.out.contains(part), "{part}: {}", shown.shown());
    }
    let (second, names) = fired(&home);
    assert_eq!((second.code, names), (0, vec!["guard".to_owned(), "python".to_owned()]), "{}", second.shown());
    assert_eq!(second.err, "", "nothing waits any more");
    assert!(!home.path().join("hooks/__pycache__").exists(), "what Python compiles is not taken for what was approved");
    assert_eq!(state(&home, "guard").0, "in_force");
    assert!(home.run(&["hooks", "trust"]).err.contains("nothing to approve: 2 hooks are in force"));
}

#[test]
fn what_is_unchanged_stays_in_force_wherever_in_the_project_somebody_works() {
    let home = trusted();
    std::fs::create_dir(home.path().join(".git")).unwrap();
    std::fs::create_dir(home.path().join("sub")).unwrap();
    assert_eq!(fired(&home).1.len(), 2);
    let mut command = home.gatehook();
    let below = ran(command.current_dir(home.path().join("sub")).args(["hooks", "list", "--json"]));
    let rows = below.json();
    assert!(rows.as_array().unwrap().iter().all(|row| row["in_force"] == true), "{}", below.shown());
}

#[test]
fn every_change_asks_again_with_the_difference() {
    type Change = fn(&Home);
    let cases: [(Change, &str, &str, &str); 6] = [
        (|home| drop(home.file("hooks/guard.sh", "touch evil\n")), "guard", "hooks/guard.sh", "+touch evil"),
        (
            |home| drop(home.file("gatehook.yaml", &POLICY.replace("guard.sh", "guard.sh; touch evil"))),
            "guard",
            "the definition",
            "+    \"command\": \"sh hooks/guard.sh; touch evil\",",
        ),
        (
            |home| drop(home.file("hooks/rules.py", "def note():\n    open('evil', 'w')\n")),
            "python",
            "hooks/rules.py",
            "+    open('evil', 'w')",
        ),
        (
            |home| drop(home.file("hooks/rules/__init__.py", "def note():\n    open('evil', 'w')\n")),
            "python",
            "hooks/rules/__init__.py",
            "new: hooks/rules/__init__.py",
        ),
        (
            |home| {
                home.file("evil.sh", "echo guard >> ran\n");
                std::fs::remove_file(home.path().join("hooks/guard.sh")).unwrap();
                symlink("../evil.sh", home.path().join("hooks/guard.sh")).unwrap();
            },
            "guard",
            "hooks/guard.sh",
            "hooks/guard.sh leads to evil.sh instead of itself",
        ),
        (
            |home| std::fs::remove_file(home.path().join("hooks/guard.sh")).unwrap(),
            "guard",
            "hooks/guard.sh",
            "gone: hooks/guard.sh",
        ),
    ];
    for (change, hook, changed, difference) in cases {
        let home = trusted();
        change(&home);
        assert_eq!(state(&home, hook), ("changed".into(), format!("changed: {changed}")), "{difference}");
        let (after, names) = fired(&home);
        assert!(!names.contains(&hook.to_owned()), "{difference}: {}", after.shown());
        assert!(!home.path().join("evil").exists(), "{difference}");
        let shown = home.run(&["hooks", "trust"]);
        assert_eq!(shown.code, 1, "{}", shown.shown());
        assert!(shown.out.contains("approved before by user at 20"), "{}", shown.shown());
        assert!(shown.out.contains(difference), "{difference}: {}", shown.shown());
        assert_eq!(home.run(&["hooks", "trust", "--yes"]).code, 0);
        assert_eq!(state(&home, hook).0, "in_force", "{difference}");
    }
}

#[test]
fn a_link_out_of_the_project_is_refused() {
    let home = trusted();
    let elsewhere = tempfile::tempdir().unwrap();
    let evil = elsewhere.path().join("evil.sh");
    std::fs::write(&evil, "echo guard >> ran\n").unwrap();
    std::fs::remove_file(home.path().join("hooks/guard.sh")).unwrap();
    symlink(&evil, home.path().join("hooks/guard.sh")).unwrap();
    let (state, why) = state(&home, "guard");
    assert!(state == "refused" && why.contains("outside of the project"), "{why}");
    assert_eq!(fired(&home).1, ["python"]);
    let shown = home.run(&["hooks", "trust", "--yes"]);
    assert!(shown.code == 1 && shown.out.contains("cannot be approved: guard"), "{}", shown.shown());
}

#[test]
fn a_moved_project_asks_again() {
    let home = Home::new();
    for (name, text) in [("gatehook.yaml", POLICY), ("hooks/guard.sh", ""), ("hooks/check.py", "")] {
        home.file(&format!("here/{name}"), text);
    }
    let at = |folder: &str, args: &[&str]| ran(home.gatehook().current_dir(home.path().join(folder)).args(args));
    assert_eq!(at("here", &["hooks", "trust", "--yes"]).code, 0);
    std::fs::rename(home.path().join("here"), home.path().join("there")).unwrap();
    let rows = at("there", &["hooks", "list", "--json"]).json();
    assert!(rows.as_array().unwrap().iter().all(|row| row["state"] == "not_trusted"), "{rows}");
    std::fs::rename(home.path().join("there"), home.path().join("here")).unwrap();
    let rows = at("here", &["hooks", "list", "--json"]).json();
    assert!(rows.as_array().unwrap().iter().all(|row| row["in_force"] == true), "{rows}");
}

#[test]
fn without_a_terminal_nobody_approves_but_the_hash_of_all_hooks_can_be_named() {
    let home = project();
    let shown = home.run(&["hooks", "trust"]);
    assert_eq!(shown.code, 1);
    assert!(shown.err.contains("this is no terminal; `--yes`"), "{}", shown.shown());
    assert!(!home.path().join(STORE).exists());
    let json = home.run(&["hooks", "trust", "--json"]);
    assert_eq!(json.code, 1);
    let hash = json.json()["hash"].as_str().unwrap().to_owned();
    let with = |hash: &str| {
        let rows = ran(home.gatehook().args(["hooks", "list", "--json"]).env("GATEHOOK_TRUST_WORKSPACE", hash)).json();
        rows.as_array().unwrap().iter().filter(|row| row["in_force"] == true).count()
    };
    assert_eq!((with(&hash), with("sha256:00"), with("")), (2, 0, 0));
    home.file("hooks/rules.py", "changed = True\n");
    assert_eq!(with(&hash), 0);
}

#[test]
fn on_a_terminal_each_hook_is_asked_for() {
    let home = project();
    let asked = on_terminal(&home, &["hooks", "trust"], "y\nn\n");
    assert_eq!(asked.code, 1, "{}", asked.shown());
    assert_eq!(asked.out.matches("Approve this hook? [y/N]").count(), 2, "{}", asked.shown());
    assert_eq!((&*state(&home, "guard").0, &*state(&home, "python").0), ("in_force", "not_trusted"));
    let rest = on_terminal(&home, &["hooks", "trust"], "yes\n");
    assert_eq!(rest.code, 0, "{}", rest.shown());
    assert_eq!(state(&home, "python").0, "in_force");
}

#[test]
fn on_a_terminal_silence_and_anything_else_are_a_no() {
    let home = project();
    for typed in ["\n\n", "maybe\nyy\n", "\u{4}\u{4}"] {
        assert_eq!(on_terminal(&home, &["hooks", "trust"], typed).code, 1, "{typed:?}");
    }
    assert!(!home.path().join(STORE).exists());
    assert_eq!(on_terminal(&home, &["hooks", "trust", "--all"], "y\n").code, 0);
    assert_eq!(fired(&home).1.len(), 2);
}

#[test]
fn a_store_that_is_broken_lets_nothing_run_and_is_never_written_over() {
    let whole = trusted();
    let good = std::fs::read_to_string(whole.path().join(STORE)).unwrap();
    for broken in ["", "not json", "{\"version\": 9, \"approvals\": []}", &good[..good.len() / 2]] {
        let home = project();
        let path = home.file(STORE, broken);
        let (ran, names) = fired(&home);
        assert_eq!((ran.code, names.len()), (0, 0), "{broken}: {}", ran.shown());
        assert!(ran.err.contains("trust.json cannot be read"), "{}", ran.shown());
        assert!(ran.err.contains("moved away"), "{}", ran.shown());
        for args in [["hooks", "trust", "--yes"], ["hooks", "untrust", "--all"]] {
            let refused = home.run(&args);
            assert_eq!(refused.code, 3, "{broken}: {}", refused.shown());
            assert!(refused.err.contains("moved away"), "{}", refused.shown());
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), broken, "it is as it was");
        std::fs::rename(&path, path.with_extension("broken")).unwrap();
        assert_eq!(home.run(&["hooks", "trust", "--yes"]).code, 0);
    }
}

#[test]
fn a_store_that_others_can_write_counts_for_nothing() {
    let home = trusted();
    let path = home.path().join(STORE);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let (ran, names) = fired(&home);
    assert!(names.is_empty() && ran.err.contains("chmod 600"), "{}", ran.shown());
}

#[test]
fn an_approval_can_be_withdrawn() {
    let home = trusted();
    home.file(".gatehook/more.yaml", "hooks: { stop: [{ name: more, type: command, command: 'true' }] }\n");
    assert_eq!(home.run(&["hooks", "trust", ".gatehook/more.yaml", "--yes"]).code, 0);
    assert!(states(&home).iter().all(|(_, state, _)| state == "in_force"));
    assert!(home.run(&["hooks", "untrust", ".gatehook/more.yaml"]).err.contains("1 approval withdrawn"));
    assert_eq!((&*state(&home, "more").0, &*state(&home, "guard").0), ("not_trusted", "in_force"));
    assert!(home.run(&["hooks", "untrust"]).err.contains("2 approvals withdrawn"));
    assert!(states(&home).iter().all(|(_, state, _)| state == "not_trusted"));
    assert_eq!(home.run(&["hooks", "trust", "nowhere.yaml"]).code, 2);
}

#[test]
fn a_project_cannot_disable_or_loosen_the_users_hooks() {
    let home = project();
    let config = "home/.config/gatehook/gatehook.yaml";
    home.file(config, "hooks: { pre_tool_use: [{ name: mine, type: command, command: exit 2 }] }\n");
    for workspace in [
        "hooks: { pre_tool_use: [{ name: mine, type: command, command: exit 0 }] }\n",
        "defaults: { on_error: ignore }\nhooks: { pre_tool_use: [] }\n",
        "max_concurrent_hooks: 1\nhooks: {}\n",
    ] {
        home.file("gatehook.yaml", workspace);
        let _ = home.run(&["hooks", "trust", "--yes"]);
        assert_eq!(fired(&home).0.code, 1, "{workspace}");
        let switched =
            ran(home.gatehook().args(["hooks", "test", "pre_tool_use"]).env("OLLAMA_HOOKS_ENABLED", "false"));
        assert_eq!(switched.code, 1, "{workspace}: {}", switched.shown());
    }
    for workspace in ["hooks: { enabled: false }\n", "required: { pre_tool_use: [x] }\n", "locked: [listen]\n", ""] {
        home.file("gatehook.yaml", workspace);
        assert_eq!(fired(&home).0.code, 3, "nothing runs where the project's file is none: {workspace}");
    }
}

#[test]
fn a_required_hook_that_is_not_approved_blocks_its_event() {
    let home = project();
    home.file("home/.config/gatehook/gatehook.yaml", "required: { pre_tool_use: [guard] }\n");
    let (ran, names) = fired(&home);
    assert_eq!((ran.code, names.len()), (1, 0), "{}", ran.shown());
    assert!(ran.out.contains("it is required and not in force: not trusted"), "{}", ran.shown());
    let row = states(&home).into_iter().find(|(_, state, _)| state == "required");
    assert_eq!(row.unwrap().0, "guard");
    assert_eq!(home.run(&["hooks", "trust", "--yes"]).code, 0);
    assert_eq!(fired(&home).0.code, 0);
    std::fs::remove_file(home.path().join("gatehook.yaml")).unwrap();
    assert!(fired(&home).0.out.contains("there is none"));
}

#[test]
fn what_comes_from_a_project_cannot_paint_on_the_screen() {
    let home = project();
    home.file("hooks/guard.sh", "echo \u{1b}[2Jgone \u{202e}drawkcab\n");
    let shown = home.run(&["hooks", "trust", "--yes"]);
    assert!(!shown.out.contains(['\u{1b}', '\u{202e}']), "{}", shown.shown());
}

#[test]
fn serve_reads_nothing_of_a_project() {
    let home = trusted();
    home.file("gatehook.yaml", "hooks: 3\n");
    let checked = home.run(&["serve", "--check"]);
    assert_eq!(checked.code, 0, "{}", checked.shown());
}

#[test]
fn as_json_a_look_says_what_would_run() {
    let home = project();
    let json = home.run(&["hooks", "trust", "--json"]).json();
    let rows = json["hooks"].as_array().unwrap();
    assert_eq!(json["project"], PathBuf::from(home.path()).canonicalize().unwrap().to_str().unwrap());
    assert_eq!((rows.len(), &rows[0]["state"], &rows[0]["risk"]), (2, &"not_trusted".into(), &"medium".into()));
    let files: Vec<&str> = rows[1]["files"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(files, ["hooks/check.py", "hooks/rules.py"]);
    let approved = home.run(&["hooks", "trust", "--json", "--yes"]);
    assert_eq!((approved.code, &approved.json()["approved"]), (0, &2.into()));
}
