use std::time::Duration;

use bytes::Bytes;
use gatehook_events::{Event, Input};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::definition::{CommandDefinition, EnvPolicy};
use crate::find::Others;
use crate::handler::Payload;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);
const MARKER: &str = "GATEHOOK_TEST_MARKER";

/// A command hook, with a marker in its environment that all its processes inherit.
struct Hook {
    definition: HookDefinition,
    factory: CommandFactory,
    marker: String,
    timeout: Duration,
    input: Input,
    payload: Payload,
    cancel: CancellationToken,
    others: Others,
}

impl Hook {
    fn new(script: &str) -> Self {
        let command = CommandDefinition { command: script.to_owned(), args: Vec::new(), shell: true };
        let mut definition = HookDefinition::new(gatehook_events::Profile::Native, HandlerDefinition::Command(command));
        let marker = uuid::Uuid::new_v4().to_string();
        definition.env.insert(MARKER.to_owned(), marker.clone());
        Self {
            definition,
            factory: CommandFactory::bounded(64),
            marker,
            timeout: LONG,
            input: Input::default(),
            payload: Payload::default(),
            cancel: CancellationToken::new(),
            others: Others::default(),
        }
    }

    fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn prompt(mut self, prompt: &str) -> Self {
        self.input.prompt = Some(prompt.into());
        self
    }

    fn handler(&self) -> Arc<dyn Handler> {
        let env = HandlerEnv { working_dir: "/".into(), env: std::env::vars().collect() };
        self.factory.create(&self.definition, &env).unwrap()
    }

    fn call(&self) -> HookCall<'_> {
        HookCall {
            event: Event::UserPromptSubmit,
            input: &self.input,
            payload: &self.payload,
            cancel: &self.cancel,
            deadline: Instant::now() + self.timeout,
            others: &self.others,
        }
    }

    async fn run(&self) -> Result<Reply, HandlerError> {
        self.handler().run(self.call()).await
    }

    async fn answer(&self) -> (String, String, i32) {
        match self.run().await.unwrap() {
            Reply::Process { stdout, stderr, exit_code } => {
                (String::from_utf8_lossy(&stdout).into_owned(), stderr, exit_code)
            }
            other => panic!("a command gives no {other:?}"),
        }
    }

    async fn failure(&self) -> HandlerError {
        self.run().await.unwrap_err()
    }

    /// The processes of this hook that are alive.
    fn alive(&self) -> Vec<i32> {
        let variable = format!("{MARKER}={}", self.marker);
        let holds = |pid: &i32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|&byte| byte == 0).any(|entry| entry == variable.as_bytes())
        };
        let pids =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(holds).collect()
    }

    /// A killed process needs a moment to go.
    async fn is_gone(&self) {
        wait_until("a process of the hook is left", || self.alive().is_empty()).await;
    }
}

async fn wait_until(otherwise: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < LONG, "{otherwise}");
        tokio::task::yield_now().await;
    }
}

fn is_our_child(pid: i32) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_raw(pid).unwrap()), look).is_ok()
}

#[tokio::test]
async fn a_hook_reads_one_line_and_answers() {
    let hook = Hook::new("cat; echo note >&2; exit 0").prompt("hello");
    assert_eq!(hook.answer().await, ("{\"prompt\":\"hello\"}\n".to_owned(), "note\n".to_owned(), 0));
}

#[tokio::test]
async fn exit_codes_are_handed_on() {
    for code in [0, 1, 2, 3, 255] {
        assert_eq!(Hook::new(&format!("exit {code}")).answer().await.2, code);
    }
}

#[tokio::test]
async fn death_by_a_signal_is_minus_one() {
    assert_eq!(Hook::new("kill -9 $$").answer().await.2, -1);
    assert_eq!(Hook::new("kill -TERM $$").answer().await.2, -1);
}

#[tokio::test]
async fn a_program_runs_without_a_shell() {
    let mut hook = Hook::new("");
    let args = vec!["%s|".to_owned(), "a b".to_owned(), "$HOME".to_owned()];
    hook.definition.handler =
        HandlerDefinition::Command(CommandDefinition { command: "printf".to_owned(), args, shell: false });
    assert_eq!(hook.answer().await.0, "a b|$HOME|");
}

#[tokio::test]
async fn a_hook_sees_its_environment_and_working_directory() {
    let mut hook = Hook::new("echo $PWD $ADDED $HOME; [ -n \"$PATH\" ] && echo path");
    hook.definition.env.insert("ADDED".to_owned(), "<added>".to_owned());
    hook.definition.env.insert("HOME".to_owned(), "/new".to_owned());
    hook.definition.working_dir = Some("usr".to_owned());
    assert_eq!(hook.answer().await.0, "/usr <added> /new\npath\n");
}

#[tokio::test]
async fn an_environment_policy_leaves_out_the_rest() {
    for (policy, seen) in [
        (EnvPolicy::Inherit, "PATH SECRET LC_ALL "),
        (EnvPolicy::Minimal, "PATH LC_ALL "),
        (EnvPolicy::Only(vec!["SECRET".to_owned()]), "SECRET "),
    ] {
        let mut hook =
            Hook::new("for v in PATH SECRET LC_ALL; do /usr/bin/env | /bin/grep -q ^$v= && printf '%s ' $v; done");
        hook.definition.env_policy = policy;
        let vars = [("PATH", "/usr/bin:/bin"), ("SECRET", "s"), ("LC_ALL", "C")];
        let env = vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let env = HandlerEnv { working_dir: "/".into(), env };
        let handler = hook.factory.create(&hook.definition, &env).unwrap();
        let Reply::Process { stdout, .. } = handler.run(hook.call()).await.unwrap() else { panic!("{seen}") };
        assert_eq!(stdout, seen);
    }
}

#[test]
fn a_variable_that_cannot_be_is_refused() {
    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "\0")] {
        let mut hook = Hook::new("exit 0");
        hook.definition.env.insert(name.to_owned(), value.to_owned());
        let env = HandlerEnv { working_dir: "/".into(), env: BTreeMap::new() };
        let error = hook.factory.create(&hook.definition, &env).map(|_| ()).unwrap_err();
        assert_eq!(error.field, "env", "{name:?}={value:?}");
    }
}

#[tokio::test]
async fn a_shell_that_has_exited_is_done_and_its_children_are_ended() {
    let hook = Hook::new("(sleep 300; echo late) & sleep 300 & echo now");
    assert_eq!(hook.answer().await, ("now\n".to_owned(), String::new(), 0));
    hook.is_gone().await;
}

#[tokio::test]
async fn a_hook_that_sleeps_past_its_deadline_is_ended() {
    let hook = Hook::new("sleep 300 | sleep 300").timeout(SHORT);
    assert_eq!(hook.failure().await.kind, FailureKind::Timeout);
    hook.is_gone().await;
}

#[tokio::test]
async fn a_hook_that_ignores_sigterm_is_killed() {
    let hook = Hook::new("trap '' TERM; while :; do sleep 300; done").timeout(SHORT);
    assert_eq!(hook.failure().await.kind, FailureKind::Timeout);
    hook.is_gone().await;
}

#[tokio::test]
async fn a_hook_that_stopped_itself_is_ended() {
    let hook = Hook::new("kill -STOP $$; sleep 300").timeout(SHORT);
    assert_eq!(hook.failure().await.kind, FailureKind::Timeout);
    hook.is_gone().await;
}

#[tokio::test]
async fn a_stopped_hook_is_told_before_it_is_killed() {
    let hook = Hook::new("trap 'echo bye >&2; exit' TERM; echo hello >&2; kill -STOP $$; sleep 300 & wait");
    let handler = hook.handler();
    let mut run = handler.run(hook.call());
    assert!(futures_util::poll!(&mut run).is_pending());
    let stopped =
        |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "));
    wait_until("the hook did not stop", || hook.alive().into_iter().any(stopped)).await;
    hook.cancel.cancel();
    let failure = run.await.unwrap_err();
    assert_eq!((failure.kind, failure.stderr.as_str()), (FailureKind::Cancelled, "hello\nbye\n"));
    hook.is_gone().await;
}

#[tokio::test]
async fn printing_without_end_is_a_failure() {
    for script in ["yes", "yes >&2", "yes & sleep 300"] {
        let hook = Hook::new(script);
        let failure = hook.failure().await;
        assert_eq!(failure.kind, FailureKind::OutputTooLarge, "{script}");
        assert!(failure.stderr.len() <= STDERR_TAIL, "{script}");
        hook.is_gone().await;
    }
}

#[tokio::test]
async fn endless_output_is_kept_within_its_bound() {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "yes"]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let slot = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
    let mut process = Process::spawn(command, |mut command| command.spawn(), Bytes::new(), slot).unwrap();
    assert!(process.run().await.is_err());
    process.end().await;
    assert!(process.stdout.data.capacity() <= 2 * streams::OUTPUT_LIMIT, "{}", process.stdout.data.capacity());
}

#[tokio::test]
async fn output_up_to_the_limit_is_whole() {
    let hook = Hook::new("head -c 1048576 /dev/zero; head -c 1048576 /dev/zero >&2");
    let (stdout, stderr, code) = hook.answer().await;
    assert_eq!((stdout.len(), stderr.len(), code), (1 << 20, 1 << 20, 0));
}

#[tokio::test]
async fn a_hook_need_not_read_its_payload() {
    let large = "x".repeat(1 << 20);
    for (script, stdout) in
        [("echo ok", "ok\n"), ("exec <&-; echo ok", "ok\n"), ("head -c 12; echo", "{\"prompt\":\"x\n")]
    {
        assert_eq!(Hook::new(script).prompt(&large).answer().await, (stdout.to_owned(), String::new(), 0), "{script}");
    }
}

#[tokio::test]
async fn a_large_payload_arrives_whole_while_the_hook_writes() {
    let large = "x".repeat(900_000);
    let (stdout, ..) = Hook::new("tee /dev/stderr").prompt(&large).answer().await;
    assert_eq!(stdout, format!("{{\"prompt\":\"{large}\"}}\n"));
}

#[tokio::test]
async fn closed_outputs_are_no_end() {
    assert_eq!(Hook::new("exec >&- 2>&-; sleep 0.05; exit 2").answer().await, (String::new(), String::new(), 2));
}

#[tokio::test]
async fn invalid_utf8_is_read_lossily_on_stderr_and_kept_on_stdout() {
    let hook = Hook::new(r"printf 'a\377b'; printf 'c\377d' >&2");
    let reply = hook.run().await.unwrap();
    let stdout = Bytes::from_static(b"a\xffb");
    assert_eq!(reply, Reply::Process { stdout, stderr: "c\u{fffd}d".to_owned(), exit_code: 0 });
}

#[tokio::test]
async fn a_missing_working_directory_is_a_failure() {
    let mut hook = Hook::new("exit 0");
    hook.definition.working_dir = Some("/no/such/place".to_owned());
    let failure = hook.failure().await;
    assert_eq!(failure.kind, FailureKind::SpawnFailed);
    assert!(failure.message.contains("/no/such/place"), "{}", failure.message);
}

#[tokio::test]
async fn nothing_starts_for_a_caller_who_gave_up() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let hook = Hook::new(&format!("echo ran > {}", file.path().display()));
    hook.cancel.cancel();
    assert_eq!(hook.failure().await.kind, FailureKind::Cancelled);
    assert_eq!(Hook::new("exit 0").timeout(Duration::ZERO).failure().await.kind, FailureKind::Timeout);
    assert_eq!(std::fs::read(file.path()).unwrap(), b"");
}

#[tokio::test]
async fn cancelling_leaves_nothing_behind() {
    let hook = Hook::new("sleep 300 | sleep 300");
    let handler = hook.handler();
    let mut run = handler.run(hook.call());
    assert!(futures_util::poll!(&mut run).is_pending());
    hook.cancel.cancel();
    assert_eq!(run.await.unwrap_err().kind, FailureKind::Cancelled);
    hook.is_gone().await;
}

#[tokio::test]
async fn a_dropped_run_leaves_nothing_behind() {
    let hook = Hook::new("trap '' TERM; sleep 300 | sleep 300");
    let handler = hook.handler();
    let mut run = handler.run(hook.call());
    wait_until("the hook did not start", || {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(run.as_mut().poll(&mut context).is_pending());
        hook.alive().len() == 3
    })
    .await;
    let children: Vec<i32> = hook.alive().into_iter().filter(|&pid| is_our_child(pid)).collect();
    assert!(!children.is_empty());
    drop(run);
    hook.is_gone().await;
    wait_until("a zombie is left", || !children.iter().any(|&pid| is_our_child(pid))).await;
}

#[tokio::test]
async fn what_left_the_group_is_ended_where_orphans_are_adopted() {
    adopt_orphans().unwrap();
    for script in [
        "setsid sleep 300 >/dev/null 2>&1 & echo ok",
        "setsid sh -c 'setsid sleep 300 & sleep 300 & wait' >/dev/null 2>&1 </dev/null & echo ok",
    ] {
        let hook = Hook::new(script);
        assert_eq!(hook.answer().await.0, "ok\n", "{script}");
        hook.is_gone().await;
    }
}

#[tokio::test]
async fn a_helper_outside_the_group_lives_as_long_as_its_hook() {
    adopt_orphans().unwrap();
    let hook = Hook::new("(setsid sleep 300 >/dev/null 2>&1 &); read line; sleep 300").timeout(LONG);
    let handler = hook.handler();
    let mut run = handler.run(hook.call());
    assert!(futures_util::poll!(&mut run).is_pending());
    let sleeping = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    let sleepers = || hook.alive().into_iter().filter(sleeping).count();
    wait_until("the hook did not start", || sleepers() == 2).await;
    for _ in 0..3 {
        Hook::new("exit 0").answer().await;
    }
    assert_eq!(sleepers(), 2);
    drop(run);
    hook.is_gone().await;
}

#[tokio::test]
async fn waiting_for_a_place_counts_against_the_deadline() {
    let first = Hook { factory: CommandFactory::bounded(1), ..Hook::new("sleep 300") };
    let second = Hook { factory: first.factory.clone(), ..Hook::new("exit 0").timeout(SHORT) };
    let handler = first.handler();
    let mut run = handler.run(first.call());
    assert!(futures_util::poll!(&mut run).is_pending());
    assert_eq!(second.failure().await.kind, FailureKind::Timeout);
    drop(run);
    let third = Hook { factory: first.factory.clone(), ..Hook::new("exit 0") };
    assert_eq!(third.answer().await.2, 0);
}

#[tokio::test]
async fn hooks_run_side_by_side() {
    let hooks: Vec<Hook> = (0..32).map(|code| Hook::new(&format!("cat >/dev/null; exit {code}"))).collect();
    let codes = futures_util::future::join_all(hooks.iter().map(Hook::answer)).await;
    assert_eq!(codes.into_iter().map(|answer| answer.2).collect::<Vec<_>>(), (0..32).collect::<Vec<_>>());
}
