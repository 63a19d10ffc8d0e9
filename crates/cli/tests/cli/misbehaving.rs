//! Hooks that misbehave, met through the binary: the verdict, how long it takes, and that nothing is left running.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Home, Serve, ran};

/// The deadline of each hook here.
const DEADLINE: Duration = Duration::from_secs(1);

/// What a command does, and whether the event passes after it.
const HOOKS: &[(&str, &str, bool)] = &[
    ("forks a child and exits", "sleep 600 & exit 0", true),
    ("leaves its group and exits", "setsid sleep 600 & sleep 0.3; exit 0", true),
    ("ignores SIGTERM", "trap '' TERM; while :; do sleep 0.1; done", false),
    ("prints without end", "exec cat /dev/zero", false),
    ("complains without end", "exec cat /dev/zero >&2", false),
    ("never reads", "exec sleep 600", false),
    ("sleeps past its deadline in a child", "sleep 600; echo done", false),
];

fn policy(event: &str, command: &str) -> String {
    let hook = serde_json::json!({"name": "h", "type": "command", "command": command, "timeout": DEADLINE.as_secs()});
    serde_json::json!({
        "upstreams": {"local": {"kind": "openai", "url": "replay:"}},
        "hooks": {event: [{"hooks": [hook]}]},
    })
    .to_string()
}

/// Asserts that nothing runs in this folder any more, where all hooks run.
fn nothing_runs_in(folder: &Path, what: &str) {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let running: Vec<String> = processes_in(folder).into_iter().map(|(_, line)| line).collect();
        if running.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "what {what} left running: {running:?}");
        std::thread::yield_now();
    }
}

/// Number and command line of the processes that work in a folder.
fn processes_in(folder: &Path) -> Vec<(i32, String)> {
    let folder = folder.canonicalize().unwrap();
    let process = |entry: std::fs::DirEntry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let is_here = std::fs::read_link(entry.path().join("cwd")).ok()? == folder;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        is_here.then(|| (number, String::from_utf8_lossy(&line).replace('\0', " ")))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(process).collect()
}

/// A payload that no pipe holds.
fn large() -> String {
    "x".repeat(1 << 20)
}

#[test]
fn hooks_test_ends_them_in_time_and_leaves_nothing() {
    for (what, command, allowed) in HOOKS {
        let home = Home::new();
        home.file("policy.json", &policy("pre_tool_use", command));
        let input = serde_json::json!({"tool_name": "shell", "tool_input": {"cmd": large()}}).to_string();
        let args = ["hooks", "test", "pre_tool_use", "--config", "policy.json", "--input", "-"];
        let start = Instant::now();
        let ran = home.run_with_input(&args, &input);
        let took = start.elapsed();
        assert_eq!(ran.code, if *allowed { 0 } else { 1 }, "a hook that {what}: {}", ran.shown());
        assert!(took < DEADLINE * 5, "a hook that {what} took {took:?}");
        nothing_runs_in(home.path(), what);
    }
}

#[test]
fn serve_refuses_what_they_guard_and_leaves_nothing() {
    for (what, command, allowed) in HOOKS {
        let home = Home::new();
        home.file("policy.json", &policy("pre_inference", command));
        let serve = Serve::start(&home, &["--config", "policy.json"]);
        let start = Instant::now();
        let (status, body) = serve.chat(&large());
        let took = start.elapsed();
        assert_eq!(status, if *allowed { 200 } else { 503 }, "a hook that {what}: {body:.300}");
        assert!(took < DEADLINE * 5, "a hook that {what} took {took:?}");
        let peak = serve.peak_memory();
        assert!(peak < 128 << 20, "a hook that {what} made serve hold {peak} bytes");
        let gateway = serve.number();
        let left = || processes_in(home.path()).into_iter().filter(|(number, _)| *number != gateway).count();
        let until = Instant::now() + Duration::from_secs(5);
        while left() > 0 {
            assert!(Instant::now() < until, "what {what} left: {:?}", processes_in(home.path()));
            std::thread::yield_now();
        }
        serve.signal(Signal::TERM);
        assert_eq!(serve.ended().0, 0, "a hook that {what}");
    }
}

/// As in a container, or under a supervisor that makes no session: its leader is outside of the PID namespace.
#[test]
fn a_session_that_began_outside_of_the_namespace_changes_nothing() {
    const NAMESPACE: [&str; 5] = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let home = Home::new();
    if !home.command("unshare").args(NAMESPACE).arg("true").status().is_ok_and(|status| status.success()) {
        return; // this system lets nobody make one
    }
    home.file("policy.json", &policy("pre_tool_use", "setsid sleep 600 & sleep 0.3; exit 0"));
    let args = ["gatehook", "hooks", "test", "pre_tool_use", "--config", "policy.json"];
    let ran = ran(home.command("unshare").args(NAMESPACE).args(args));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.shown());
    nothing_runs_in(home.path(), "a command in a namespace");
}

#[test]
fn hooks_test_that_is_told_to_stop_ends_its_hooks() {
    for signal in [Signal::INT, Signal::TERM] {
        for command in ["touch started; trap '' TERM; while :; do sleep 0.1; done", "touch started; setsid sleep 600"] {
            let home = Home::new();
            let long = policy("pre_tool_use", command).replace(r#""timeout":1"#, r#""timeout":600"#);
            home.file("policy.json", &long);
            stopped_once_started(&home, "pre_tool_use", signal);
        }
    }
}

/// Tells `hooks test` to stop as soon as its hook has made the file `started`.
fn stopped_once_started(home: &Home, event: &str, signal: Signal) {
    let mut child = home.gatehook().args(["hooks", "test", event, "--config", "policy.json"]).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while !home.path().join("started").exists() {
        assert!(Instant::now() < until, "the hook does not start");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), signal).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{signal:?}");
    nothing_runs_in(home.path(), "hooks test");
}

#[test]
fn an_observer_is_waited_for_and_ends_when_told_to_stop() {
    let home = Home::new();
    let hook = |command: &str| serde_json::json!({"type": "command", "command": command, "async": true}).to_string();
    home.file("policy.json", &format!(r#"{{"hooks":{{"turn_end":[{}]}}}}"#, hook("sleep 0.3; touch seen")));
    let ran = home.run(&["hooks", "test", "turn_end", "--config", "policy.json"]);
    assert!(ran.code == 0 && home.path().join("seen").exists(), "{}", ran.shown());

    home.file("policy.json", &format!(r#"{{"hooks":{{"turn_end":[{}]}}}}"#, hook("touch started; sleep 600")));
    stopped_once_started(&home, "turn_end", Signal::INT);
}
