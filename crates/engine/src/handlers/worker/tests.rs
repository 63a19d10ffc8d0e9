use std::num::NonZeroUsize;
use std::time::Duration;

use futures_util::future::join_all;
use gatehook_events::{Event, Input, Profile};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::definition::{CommandDefinition, WorkerDefinition};
use crate::find::Others;
use crate::handler::Payload;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);
const MARKER: &str = "GATEHOOK_TEST_MARKER";

/// Says which process answers, and what it was told.
const ECHO: &str = r#"while read -r line; do printf '{"reason":"%s","event":%s}\n' $$ "$line"; done"#;

/// A worker hook, with a marker in its environment that all its processes inherit.
struct Hook {
    handler: Option<Arc<dyn Handler>>,
    marker: String,
    folder: tempfile::TempDir,
}

impl Hook {
    fn new(script: &str) -> Self {
        Self::with(script, |_| {})
    }

    fn with(script: &str, change: impl FnOnce(&mut WorkerDefinition)) -> Self {
        let command = CommandDefinition { command: script.to_owned(), args: Vec::new(), shell: true };
        let mut worker = WorkerDefinition::new(command);
        change(&mut worker);
        let mut definition = HookDefinition::new(Profile::Native, HandlerDefinition::Worker(worker));
        let marker = uuid::Uuid::new_v4().to_string();
        definition.env.insert(MARKER.to_owned(), marker.clone());
        let folder = tempfile::tempdir().unwrap();
        let env = HandlerEnv { working_dir: folder.path().to_owned(), env: std::env::vars().collect() };
        Self { handler: Some(WorkerFactory.create(&definition, &env).unwrap()), marker, folder }
    }

    async fn run(&self, prompt: &str, timeout: Duration) -> Result<Reply, HandlerError> {
        let input = Input { prompt: Some(prompt.into()), ..Input::default() };
        self.run_until(&input, timeout, &CancellationToken::new()).await
    }

    async fn run_until(
        &self,
        input: &Input,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<Reply, HandlerError> {
        let (payload, deadline) = (Payload::default(), Instant::now() + timeout);
        let (event, others) = (Event::UserPromptSubmit, &Others::default());
        let call = HookCall { event, input, payload: &payload, cancel, deadline, others };
        self.handler.as_ref().unwrap().run(call).await
    }

    async fn answer(&self, prompt: &str) -> String {
        match self.run(prompt, LONG).await {
            Ok(Reply::Process { stdout, exit_code: 0, .. }) => String::from_utf8(stdout.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    async fn failure(&self, prompt: &str) -> HandlerError {
        self.run(prompt, LONG).await.unwrap_err()
    }

    /// Which process answers, by what [`ECHO`] says.
    async fn process(&self) -> i32 {
        let answer: serde_json::Value = serde_json::from_str(&self.answer("who").await).unwrap();
        answer["reason"].as_str().unwrap().parse().unwrap()
    }

    fn alive(&self) -> Vec<i32> {
        alive(&self.marker)
    }

    async fn is_gone(&self) {
        until("a process of the hook is left", || self.alive().is_empty()).await;
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

fn alive(marker: &str) -> Vec<i32> {
    let variable = format!("{MARKER}={marker}");
    let holds = |pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|&byte| byte == 0).any(|entry| entry == variable.as_bytes())
    };
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(holds).collect()
}

async fn until(otherwise: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < LONG, "{otherwise}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_worker_starts_with_the_first_event_and_answers_all() {
    let hook = Hook::new(ECHO);
    assert!(hook.alive().is_empty());
    let first = hook.process().await;
    assert_eq!(hook.alive(), [first]);
    for prompt in ["a", "b \\ \" c", "ü\u{2028}"] {
        let answer: serde_json::Value = serde_json::from_str(&hook.answer(prompt).await).unwrap();
        assert_eq!(answer["event"]["prompt"], prompt);
        assert_eq!(answer["reason"], first.to_string());
    }
}

#[tokio::test]
async fn an_empty_line_and_null_are_no_opinion() {
    let hook = Hook::new("while read -r line; do echo; read -r line; echo null; read -r line; echo ' {} '; done");
    assert_eq!((hook.answer("").await, hook.answer("").await), (String::new(), String::new()));
    assert_eq!(hook.answer("").await.trim(), "{}");
}

#[tokio::test]
async fn a_worker_sees_its_environment_and_working_directory() {
    let hook = Hook::new(r#"read -r line; printf '{"reason":"%s"}\n' "$PWD""#);
    assert!(hook.answer("").await.contains(hook.folder.path().to_str().unwrap()));
}

#[tokio::test]
async fn large_events_and_answers_pass_whole_in_both_directions_at_once() {
    // `cat` writes before it has read all.
    let hook = Hook::new("exec cat");
    for bytes in [1_000_000, 70_000, 1, 1_000_000] {
        let prompt = "x".repeat(bytes);
        assert_eq!(hook.answer(&prompt).await, format!("{{\"prompt\":\"{prompt}\"}}"));
    }
    assert_eq!(hook.alive().len(), 1);
}

#[tokio::test]
async fn a_worker_that_dies_is_a_failure_and_another_answers() {
    let hook = Hook::new(
        r#"read -r line; case $line in *die*) echo why >&2; exit 3;; esac; echo '{"reason":"fine"}'; read -r line"#,
    );
    let failure = hook.failure("die").await;
    assert_eq!((failure.kind, failure.stderr.as_str()), (FailureKind::NonzeroExit, "why\n"));
    assert_eq!(hook.answer("live").await, r#"{"reason":"fine"}"#);
}

#[tokio::test]
async fn one_that_ended_while_it_stood_idle_costs_no_event() {
    let hook = Hook::new(ECHO);
    let first = hook.process().await;
    rustix::process::kill_process(rustix::process::Pid::from_raw(first).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
    hook.is_gone().await;
    assert_ne!(hook.process().await, first);
}

#[tokio::test]
async fn what_cannot_be_read_is_a_failure_and_ends_the_worker() {
    for (reply, kind) in [
        ("echo note", FailureKind::MalformedJson),
        ("echo '{'", FailureKind::MalformedJson),
        ("echo '[]'", FailureKind::MalformedJson),
        ("echo '{} {}'", FailureKind::MalformedJson),
        (r"printf '\377\n'", FailureKind::MalformedJson),
        (r"printf '{}\n{}\n'", FailureKind::TrailingData),
        ("head -c 1100000 /dev/zero; sleep 300", FailureKind::OutputTooLarge),
        ("yes | tr -d '\\n'", FailureKind::OutputTooLarge),
        ("exec >&-; sleep 300", FailureKind::NonzeroExit),
    ] {
        let script = format!("[ -e bad ] && {{ {ECHO}; exit; }}; touch bad; while read -r line; do {reply}; done");
        let hook = Hook::new(&script);
        assert_eq!(hook.failure("").await.kind, kind, "{reply}");
        until(reply, || hook.alive().is_empty()).await;
        assert!(hook.process().await > 0, "{reply}");
        assert_eq!(hook.alive().len(), 1, "{reply}");
    }
}

#[tokio::test]
async fn an_answer_may_be_as_large_as_its_bound() {
    let hook = Hook::new(
        "read -r line; printf '{\"reason\":\"'; head -c 1048563 /dev/zero | tr '\\0' x; echo '\"}'; read -r line",
    );
    assert_eq!(hook.answer("").await.len(), process::REPLY_LIMIT);
}

#[tokio::test]
async fn a_late_answer_is_never_taken_for_the_next_events() {
    let slow =
        r#"while read -r line; do case $line in *slow*) sleep 0.2;; esac; printf '{"event":%s}\n' "$line"; done"#;
    let hook = Hook::new(&format!("trap '' TERM; {slow}"));
    for _ in 0..3 {
        let failure = hook.run("slow", SHORT).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Timeout);
        assert_eq!(hook.answer("quick").await, r#"{"event":{"prompt":"quick"}}"#);
    }
    until("more than one is left", || hook.alive().len() == 1).await;
}

#[tokio::test]
async fn a_silent_worker_is_ended_with_all_of_its_group() {
    for script in ["trap '' TERM; while :; do sleep 300; done", "kill -STOP $$", "sleep 300 | sleep 300"] {
        let hook = Hook::new(script);
        assert_eq!(hook.run("", SHORT).await.unwrap_err().kind, FailureKind::Timeout, "{script}");
        hook.is_gone().await;
    }
}

#[tokio::test]
async fn cancelling_and_dropping_a_call_end_its_worker() {
    let hook = Hook::new("read -r line; touch asked; trap '' TERM; while :; do sleep 300; done");
    let (input, asked) = (Input::default(), hook.folder.path().join("asked"));
    for is_dropped in [false, true] {
        let cancel = CancellationToken::new();
        let mut run = Box::pin(hook.run_until(&input, LONG, &cancel));
        until("the worker was not asked", || {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(run.as_mut().poll(&mut context).is_pending());
            asked.exists()
        })
        .await;
        std::fs::remove_file(&asked).unwrap();
        if !is_dropped {
            cancel.cancel();
            assert_eq!(run.await.unwrap_err().kind, FailureKind::Cancelled);
        } else {
            drop(run);
        }
        hook.is_gone().await;
    }
}

#[tokio::test]
async fn a_dropped_hook_leaves_nothing_behind() {
    for script in [ECHO, "trap '' TERM; sleep 300 & while read -r line; do echo '{}'; done; wait"] {
        let mut hook = Hook::with(script, |worker| worker.workers = NonZeroUsize::new(3).unwrap());
        join_all((0..3).map(|_| hook.answer(""))).await;
        assert!(hook.alive().len() >= 2, "{script}");
        hook.handler = None;
        hook.is_gone().await;
    }
}

#[tokio::test]
async fn a_worker_is_told_before_it_is_killed() {
    let mut hook = Hook::new("trap 'echo bye > told; exit' TERM; while read -r line; do echo '{}'; done; wait");
    hook.answer("").await;
    hook.handler = None;
    hook.is_gone().await;
    assert_eq!(hook.file("told"), "bye\n");
}

#[tokio::test]
async fn one_that_stands_idle_is_ended_and_the_next_event_starts_another() {
    let hook = Hook::with(ECHO, |worker| worker.idle_timeout = Duration::from_millis(20));
    let first = hook.process().await;
    hook.is_gone().await;
    assert_ne!(hook.process().await, first);
    hook.is_gone().await;
}

#[tokio::test]
async fn events_wait_for_one_worker_and_are_answered_each_by_its_own_answer() {
    let hook = Hook::new(ECHO);
    let prompts: Vec<String> = (0..100).map(|number| format!("event {number}")).collect();
    let answers = join_all(prompts.iter().map(|prompt| hook.answer(prompt))).await;
    for (prompt, answer) in prompts.iter().zip(answers) {
        assert!(answer.contains(&format!("\"{prompt}\"")), "{prompt}: {answer}");
    }
    assert_eq!(hook.alive().len(), 1);
}

#[tokio::test]
async fn waiting_for_a_worker_counts_against_the_deadline() {
    let hook = Hook::new("while read -r line; do sleep 300; done");
    let (first, second) = tokio::join!(hook.run("", SHORT), hook.run("", SHORT));
    assert_eq!((first.unwrap_err().kind, second.unwrap_err().kind), (FailureKind::Timeout, FailureKind::Timeout));
    hook.is_gone().await;
}

#[tokio::test]
async fn as_many_workers_as_are_allowed_share_the_events() {
    let meet = "touch here.$$; while [ $(ls here.* | wc -l) -lt 2 ]; do :; done";
    let script = format!(r#"while read -r line; do {meet}; printf '{{"reason":"%s"}}\n' $$; done"#);
    let hook = Hook::with(&script, |worker| worker.workers = NonZeroUsize::new(2).unwrap());
    let answers = join_all((0..10).map(|_| hook.answer(""))).await;
    assert_eq!(answers.into_iter().collect::<std::collections::BTreeSet<_>>().len(), 2);
    assert_eq!(hook.alive().len(), 2);
}

#[tokio::test]
async fn events_in_flight_are_answered_in_order() {
    let both = r#"while read -r a && read -r b; do printf '{"event":%s}\n{"event":%s}\n' "$a" "$b"; done"#;
    let hook = Hook::with(both, |worker| worker.max_in_flight = NonZeroUsize::new(2).unwrap());
    for _ in 0..20 {
        let (a, b) = tokio::join!(hook.answer("a"), hook.answer("b"));
        assert_eq!((a.as_str(), b.as_str()), (r#"{"event":{"prompt":"a"}}"#, r#"{"event":{"prompt":"b"}}"#));
    }
}

#[tokio::test]
async fn an_event_in_flight_never_gets_the_answer_of_one_that_was_given_up() {
    let script = "trap '' TERM; read -r a; read -r b; touch both; sleep 0.1; echo '{\"reason\":\"a\"}'; echo '{\"reason\":\"b\"}'; read -r c";
    let hook = Hook::with(script, |worker| worker.max_in_flight = NonZeroUsize::new(2).unwrap());
    let (input, cancel) = (Input::default(), CancellationToken::new());
    let given_up = async {
        tokio::select! {
            _ = hook.run_until(&input, LONG, &cancel) => panic!("it was answered"),
            () = async {
                while !hook.folder.path().join("both").exists() {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
    };
    let ((), behind) = tokio::join!(given_up, hook.run("behind", LONG));
    assert_eq!(behind.unwrap_err().kind, FailureKind::NonzeroExit);
    hook.is_gone().await;
}

#[tokio::test]
async fn one_that_keeps_failing_is_started_ever_more_rarely() {
    let hook = Hook::new("echo x >> starts; read -r line; exit 1");
    let begin = std::time::Instant::now();
    for _ in 0..4 {
        assert_eq!(hook.failure("").await.kind, FailureKind::NonzeroExit);
    }
    assert!(begin.elapsed() >= Duration::from_millis(300), "{:?}", begin.elapsed());
    let failure = hook.run("", Duration::from_millis(1)).await.unwrap_err();
    assert!(matches!(failure.kind, FailureKind::SpawnFailed | FailureKind::Timeout), "{failure:?}");
    assert_eq!(hook.file("starts").lines().count(), 4);
}

#[tokio::test]
async fn a_flood_on_stderr_holds_nothing_up() {
    let hook = Hook::new("while read -r line; do head -c 1000000 /dev/zero | tr '\\0' x >&2; echo '{}'; done");
    for _ in 0..3 {
        assert_eq!(hook.answer("").await, "{}");
    }
}

#[tokio::test]
async fn a_missing_working_directory_is_a_failure() {
    let hook = Hook::new(ECHO);
    std::fs::remove_dir_all(hook.folder.path()).unwrap();
    let failure = hook.failure("").await;
    assert_eq!(failure.kind, FailureKind::SpawnFailed);
    assert!(failure.message.contains("working directory"), "{}", failure.message);
}

#[tokio::test]
async fn nothing_starts_for_a_caller_who_gave_up() {
    let hook = Hook::new(ECHO);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let failure = hook.run_until(&Input::default(), LONG, &cancel).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Cancelled);
    assert_eq!(hook.run("", Duration::ZERO).await.unwrap_err().kind, FailureKind::Timeout);
    assert!(hook.alive().is_empty());
}

#[test]
fn a_worker_outlives_the_runtime_that_asked_it() {
    let hook = Hook::new(ECHO);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (one, other) = (runtime(), runtime());
    let first = one.block_on(hook.process());
    assert_eq!(other.block_on(hook.process()), first);
    assert_eq!(one.block_on(hook.process()), first);
    drop(one);
    assert_eq!(other.block_on(hook.process()), first);
    drop(other);
    assert_eq!(runtime().block_on(hook.process()), first);
}

#[test]
fn runtimes_on_several_threads_share_the_workers() {
    let hook = Hook::with(ECHO, |worker| worker.workers = NonZeroUsize::new(2).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let hook = &hook;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    for number in 0..50 {
                        let prompt = format!("{thread} {number}");
                        assert!(hook.answer(&prompt).await.contains(&prompt));
                    }
                });
            });
        }
    });
    assert!(hook.alive().len() <= 2);
}
