use std::time::Instant as Clock;

use gatehook_engine::process::adopt_orphans;
use serde_json::Value;

use super::*;
use crate::tools::tests::Stage;

/// The processes that have this in their environment and are alive.
fn alive(marker: &str) -> Vec<i32> {
    let holds = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == format!("MARKER={marker}").as_bytes())
    };
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(holds).collect()
}

async fn until(otherwise: &str, mut holds: impl FnMut() -> bool) {
    let begin = Clock::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{otherwise}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A stage whose processes are known.
fn marked(marker: &str) -> Stage {
    let mut stage = Stage::new();
    stage.env("MARKER", marker);
    stage
}

fn line(command: &str) -> Value {
    json!({ "command": command })
}

#[tokio::test]
async fn a_line_runs_in_the_workspace_and_tells_what_it_writes() {
    let stage = marked("a line");
    let text = stage.done("bash", line("pwd; echo to stderr >&2; cat; echo $MARKER; env | sort | cut -d= -f1")).await;
    let workspace = stage.scene.workspace.display();
    assert!(text.starts_with(&format!("{workspace}\nto stderr\na line\n")), "{text}");
    assert!(!text.contains("CARGO"), "nothing of our own environment: {text}");
    assert_eq!(*stage.said.lock().unwrap(), text);
    assert_eq!(stage.done("bash", line("true")).await, "(no output)");
    assert_eq!(stage.done("bash", line("[[ ab == a* ]] && echo 'ü\nx'")).await, "ü\nx\n", "it is bash");
}

#[tokio::test]
async fn how_a_line_ended_is_told() {
    let stage = Stage::new();
    for (command, text) in [
        ("echo out; exit 3", "out\n(exit code 3)"),
        ("printf half; false", "half\n(exit code 1)"),
        ("kill -9 $$", "(ended by a signal)"),
    ] {
        assert_eq!(stage.refused("bash", line(command)).await, (ToolErrorKind::Other, text.to_owned()), "{command}");
    }
    for wrong in [
        json!({"command": ""}),
        json!({"command": "a\0b"}),
        json!({"command": "true", "timeout": 0}),
        json!({"command": "true", "timeout": 601}),
        json!({"command": "true", "timeout": "5"}),
        json!({"cmd": "true"}),
    ] {
        assert_eq!(stage.refused("bash", wrong.clone()).await.0, ToolErrorKind::InvalidInput, "{wrong}");
    }
}

#[tokio::test]
async fn what_takes_too_long_is_ended_with_all_that_it_started() {
    let stage = marked("too long");
    let call = json!({"command": "echo begun; (trap '' TERM; sleep 300) & sleep 300", "timeout": 1});
    let (kind, text) = stage.refused("bash", call).await;
    assert_eq!(kind, ToolErrorKind::Timeout);
    assert!(text.starts_with("begun\n(not done after 1 s"), "{text}");
    until("a process is left", || alive("too long").is_empty()).await;
}

#[tokio::test]
async fn a_line_that_is_given_up_leaves_nothing() {
    let stage = marked("given up");
    let calling = stage.call("bash", line("echo begun; sleep 300 & sleep 300"));
    let cancelling = async {
        until("it never began", || stage.said.lock().unwrap().contains("begun")).await;
        stage.cancel.cancel();
    };
    let (output, ()) = tokio::join!(calling, cancelling);
    assert_eq!(output.error, Some(ToolErrorKind::Cancelled));
    assert_eq!(output.text, "begun\n(cancelled: it was ended)");
    until("a process is left", || alive("given up").is_empty()).await;
}

#[tokio::test]
async fn a_line_that_is_dropped_leaves_nothing() {
    let stage = marked("dropped");
    {
        let calling = stage.call("bash", line("echo begun; sleep 300 & sleep 300"));
        let begun = until("it never began", || stage.said.lock().unwrap().contains("begun"));
        tokio::select! {
            output = calling => panic!("{}", output.text),
            () = begun => {}
        }
    }
    until("a process is left", || alive("dropped").is_empty()).await;
}

#[tokio::test]
async fn a_daemon_is_gone_after_the_call() {
    adopt_orphans().unwrap();
    let stage = marked("daemon");
    let daemon = "setsid sh -c 'trap \"\" TERM HUP; (setsid sleep 300 >/dev/null 2>&1 &) ; exec sleep 300' >/dev/null 2>&1 &\n\
                  nohup sleep 300 >/dev/null 2>&1 &\n\
                  while [ \"$(ps -e -o args | grep -c '[s]leep 300')\" -lt 3 ]; do :; done; echo done";
    assert_eq!(stage.done("bash", line(daemon)).await, "done\n");
    assert_eq!(alive("daemon"), [] as [i32; 0]);
}

#[tokio::test]
async fn of_a_long_output_front_and_end_come_back() {
    let stage = Stage::new();
    let text = stage.done("bash", line("seq 1 300000")).await;
    assert!(text.starts_with("1\n2\n") && text.ends_with("299999\n300000\n") && text.len() < 50 << 10);
    assert!(text.contains("bytes left out"));
    assert!(stage.said.lock().unwrap().len() > 1 << 20, "all of it is told while it comes");
}

/// What bash may write: a line, and whether it works.
const WRITES: [(&str, bool); 14] = [
    ("echo x > inside", true),
    ("mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && rm -r a", true),
    ("echo x > $TEMPORARY/x", true),
    ("t=$(mktemp) && echo x > $t && rm $t", true),
    ("echo x > /dev/null; echo x > /dev/stderr; : > /dev/shm/gatehook-test-$$ && rm /dev/shm/gatehook-test-$$", true),
    ("cat /etc/passwd ../outside/secret > /dev/null", true),
    ("echo x > $ALLOWED/x", true),
    ("echo x > ../outside/new", false),
    ("echo x >> ../outside/secret", false),
    (": > ../outside/secret", false),
    ("rm ../outside/secret", false),
    ("mv ../outside/secret .", false),
    ("ln ../outside/secret hard && echo x > hard", false),
    ("ln -s ../outside out; echo x > out/new", false),
];

#[tokio::test]
async fn files_outside_are_read_and_not_written() {
    let mut stage = Stage::new();
    let (temporary, allowed) = (stage.outside.join("../temporary"), stage.outside.join("../allowed"));
    std::fs::create_dir(&temporary).unwrap();
    std::fs::create_dir(&allowed).unwrap();
    let (temporary, allowed) = (temporary.canonicalize().unwrap(), allowed.canonicalize().unwrap());
    stage.env("TEMPORARY", &temporary.to_string_lossy());
    stage.env("TMPDIR", &temporary.to_string_lossy());
    stage.env("ALLOWED", &allowed.to_string_lossy());
    stage.scene.allowed = Arc::from([allowed]);
    let required = Bash::new(Sandboxing::Required);
    let first = stage.call_of(&required, line("true")).await;
    if first.error.is_some() {
        // A kernel without Landlock: nothing runs where it is required, and everything where it is not.
        assert!(first.text.contains("there is no sandbox") && first.text.contains("Landlock"), "{}", first.text);
        println!("this kernel has no Landlock: {}", first.text);
    } else {
        for (command, works) in WRITES {
            let output = stage.call_of(&required, line(command)).await;
            assert_eq!(output.error.is_none(), works, "{command}: {}", output.text);
        }
        let secret = stage.outside.join("secret");
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "the secret\n");
        assert_eq!(std::fs::read_dir(&stage.outside).unwrap().count(), 1);
        assert_eq!(stage.call("bash", line("echo x > ../outside/new")).await.error, Some(ToolErrorKind::Other));
    }
    let off = Bash::new(Sandboxing::Off);
    assert_eq!(stage.call_of(&off, line("echo x > ../outside/new")).await.error, None);
}

#[tokio::test]
async fn a_sandbox_is_that_of_the_workspace_that_is_worked_in() {
    let bash = Bash::new(Sandboxing::Auto);
    let (one, other) = (Stage::new(), Stage::new());
    for stage in [&one, &other, &one] {
        let output = stage.call_of(&bash, line("echo x > new && rm new")).await;
        assert_eq!(output.error, None, "{}", output.text);
    }
}

#[tokio::test]
async fn the_guards_own_files_are_put_back() {
    let stage = Stage::new();
    std::fs::write(stage.scene.workspace.join("gatehook.yaml"), "hooks: {}").unwrap();
    let command = "p=gate; echo 'hooks: false' > ${p}hook.yaml; echo '{}' > ${p}hook.json; echo done";
    let (kind, text) = stage.refused("bash", line(command)).await;
    assert_eq!(kind, ToolErrorKind::Permission);
    assert_eq!(text, "done\n(not for tools to change, and put back: gatehook.json, gatehook.yaml)");
    assert_eq!(std::fs::read_to_string(stage.scene.workspace.join("gatehook.yaml")).unwrap(), "hooks: {}");
    assert!(!stage.scene.workspace.join("gatehook.json").exists());
}
