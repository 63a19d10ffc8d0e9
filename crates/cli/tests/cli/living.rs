//! Workers and Python hooks, met through the binary: what they decide, and that nothing is left of them.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Home, Serve};

/// A worker that cannot be asked to go, with a child beside it.
const STUBBORN: &str = "trap '' TERM; sleep 600 & while read -r line; do echo '{}'; done; wait";

const GUARD: &str = r#"
import time
def check(event):
    print("looking")
    text = str(event.get("messages") or event.get("prompt"))
    if "raise" in text:
        raise ValueError("no such rule")
    if "hang" in text:
        time.sleep(600)
    return {"permission": "deny", "reason": "not that"} if "codes" in text else None
"#;

fn policy(guard: &str) -> String {
    let python =
        serde_json::json!({"type": "python", "module": guard, "function": "check", "timeout": 2, "name": "guard"});
    serde_json::json!({
        "upstreams": {"local": {"kind": "openai", "url": "replay:"}},
        "hooks": {"pre_inference": [{"type": "worker", "command": STUBBORN}, python]},
    })
    .to_string()
}

fn home() -> Home {
    let home = Home::new();
    home.file(".gatehook/guard.py", GUARD);
    home.file("policy.json", &policy(".gatehook/guard.py"));
    home
}

/// How many processes work in a folder.
fn processes_in(folder: &Path) -> usize {
    let folder = folder.canonicalize().unwrap();
    let works_here =
        |entry: &std::fs::DirEntry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place == folder);
    std::fs::read_dir("/proc").unwrap().flatten().filter(works_here).count()
}

fn until(otherwise: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{otherwise}");
        std::thread::yield_now();
    }
}

#[test]
fn hooks_test_runs_them_and_leaves_nothing() {
    for (prompt, code, says) in [
        ("hello", 0, "verdict: allow"),
        ("the launch codes", 1, "not that"),
        ("raise", 1, "it raised ValueError: no such rule"),
        ("hang", 1, "it did not answer in time"),
    ] {
        let home = home();
        let set = format!("prompt={prompt}");
        let ran = home.run(&["hooks", "test", "pre_inference", "--config", "policy.json", "--set", &set]);
        assert_eq!(ran.code, code, "{prompt}: {}", ran.shown());
        assert!(ran.shown().contains(says), "{prompt}: {}", ran.shown());
        assert!(!ran.shown().contains("Traceback"), "{prompt}: {}", ran.shown());
        // Not a moment later: they were waited for.
        assert_eq!(processes_in(home.path()), 0, "{prompt}");
    }
}

#[test]
fn serve_keeps_them_between_requests_and_ends_them_with_itself() {
    let home = home();
    let serve = Serve::start(&home, &["--config", "policy.json"]);
    assert_eq!(serve.chat("hello").0, 200);
    let running = processes_in(home.path());
    assert_eq!(serve.chat("the launch codes").0, 400);
    assert_eq!(serve.chat("raise").0, 503);
    assert_eq!(serve.chat("hello").0, 200);
    assert_eq!(processes_in(home.path()), running, "one worker with its child, one interpreter, and serve itself");
    serve.signal(Signal::TERM);
    assert_eq!(serve.ended().0, 0);
    assert_eq!(processes_in(home.path()), 0);
}

#[test]
fn a_changed_configuration_ends_those_of_the_old_one() {
    let home = home();
    let mut serve = Serve::start(&home, &["--config", "policy.json"]);
    assert_eq!(serve.chat("hello").0, 200);
    assert!(processes_in(home.path()) > 1);
    let without = r#"{"upstreams": {"local": {"kind": "openai", "url": "replay:"}}}"#;
    home.file("policy.json", without);
    serve.signal(Signal::HUP);
    serve.line("the changed configuration is in force");
    until("those of the old configuration are left", || processes_in(home.path()) == 1);
    assert_eq!(serve.chat("the launch codes").0, 200);
}

#[test]
fn a_module_that_cannot_be_is_said_at_load() {
    for (guard, says) in [
        (".gatehook/gard.py", ".gatehook/gard.py does not exist"),
        ("../guard.py", "`../guard.py` lies outside of"),
        (".gatehook", "`.gatehook` is no"),
    ] {
        let home = home();
        home.file("policy.json", &policy(guard));
        let ran = home.run(&["hooks", "check", "policy.json"]);
        assert_ne!(ran.code, 0, "{guard}: {}", ran.shown());
        assert!(ran.shown().contains(says), "{guard}: {}", ran.shown());
        assert!(ran.shown().contains("guard"), "{guard}: {}", ran.shown());
    }
}
