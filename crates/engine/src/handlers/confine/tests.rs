use std::fs;
use std::net::TcpListener;
use std::num::NonZeroU64;
use std::os::unix::process::CommandExt as _;
use std::time::Duration;

use gatehook_events::{Event, FailureKind, Input, OutcomeKind, Profile, Verdict};
use rustix::process::geteuid;
use tokio_util::sync::CancellationToken;

use crate::compiled::{BuildCause, BuildError};
use crate::definition::{
    CommandDefinition, Confinement, HandlerDefinition, HookDefinition, HookGroup, HooksConfig, PythonDefinition,
    Sandbox, WorkerDefinition,
};
use crate::executor::Executor;
use crate::handler::HandlerEnv;

/// What bounds a hook.
type Bounds = Confinement;

fn line(line: &str) -> CommandDefinition {
    CommandDefinition { command: line.to_owned(), args: Vec::new(), shell: true }
}

fn program(words: &[&str]) -> CommandDefinition {
    let (program, args) = words.split_first().unwrap();
    let args = args.iter().map(|&arg| arg.to_owned()).collect();
    CommandDefinition { command: (*program).to_owned(), args, shell: false }
}

fn hook(handler: HandlerDefinition, confinement: Bounds) -> HookDefinition {
    let timeout = Some(Duration::from_secs(60));
    HookDefinition { confinement, timeout, ..HookDefinition::new(Profile::Native, handler) }
}

fn executor(hook: HookDefinition) -> Result<Executor, BuildError> {
    let group = HookGroup { event: Event::ToolGuard, matcher: String::new(), hooks: vec![hook] };
    Executor::new(HooksConfig { groups: vec![group] }, HandlerEnv::current().unwrap())
}

/// One event, guarded by one hook.
async fn guarded(hook: HookDefinition) -> Verdict {
    let input = Input { tool_name: Some("bash".into()), ..Input::default() };
    let executor = executor(hook).unwrap_or_else(|error| panic!("{error}"));
    executor.dispatch(Event::ToolGuard, &input, &CancellationToken::new()).await
}

async fn command(command: CommandDefinition, bounds: &Bounds) -> Verdict {
    guarded(hook(HandlerDefinition::Command(command), bounds.clone())).await
}

async fn opens(command_line: CommandDefinition, bounds: &Bounds) {
    let what = command_line.command.clone();
    let verdict = command(command_line, bounds).await;
    assert!(verdict.allowed, "{what}: {verdict:?}");
}

/// It is the hook's failure, and the guard closes.
async fn closes(command_line: CommandDefinition, bounds: &Bounds) {
    let what = command_line.command.clone();
    is_closed(&what, &command(command_line, bounds).await, FailureKind::NonzeroExit);
}

fn is_closed(what: &str, verdict: &Verdict, kind: FailureKind) {
    assert!(!verdict.allowed, "{what}: {verdict:?}");
    assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Failed(kind), "{what}: {verdict:?}");
}

fn refused(hook: HookDefinition) -> (&'static str, String) {
    match executor(hook).map(|_| ()).unwrap_err().cause {
        BuildCause::Definition(error) => (error.field, error.message),
        other => panic!("{other}"),
    }
}

fn memory(bytes: u64) -> Bounds {
    Bounds { max_memory: Some(bytes), ..Bounds::default() }
}

fn file_size(bytes: u64) -> Bounds {
    Bounds { max_file_size: Some(bytes), ..Bounds::default() }
}

fn cpu(seconds: u64) -> Bounds {
    Bounds { max_cpu_seconds: NonZeroU64::new(seconds), ..Bounds::default() }
}

fn sandbox(no_network: bool, write: Option<&[&str]>) -> Bounds {
    let write = write.map(|write| write.iter().map(|&path| path.to_owned()).collect());
    Bounds { sandbox: Some(Sandbox { no_network, write, required: true }), ..Bounds::default() }
}

/// Whether this system has what a sandbox needs. Where it has not, such a hook is not put into force.
fn holds(sandbox: &Bounds) -> bool {
    match executor(hook(HandlerDefinition::Command(line("exit 0")), sandbox.clone())) {
        Ok(_) => true,
        Err(BuildError { cause: BuildCause::Definition(error), .. }) => {
            assert!(error.field == "sandbox" && error.message.contains("this system cannot hold"), "{error}");
            let open = Sandbox { required: false, ..sandbox.sandbox.clone().unwrap() };
            let open = Bounds { sandbox: Some(open), ..Bounds::default() };
            assert!(executor(hook(HandlerDefinition::Command(line("exit 0")), open)).is_ok());
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_hook_that_allocates_more_than_it_may_has_failed() {
    let allocating = |size: &str| line(&format!("dd if=/dev/zero of=/dev/null bs={size} count=1 2>&1"));
    closes(allocating("1G"), &memory(256 << 20)).await;
    opens(allocating("1M"), &memory(256 << 20)).await;
    closes(program(&["dd", "if=/dev/zero", "of=/dev/null", "bs=1G", "count=1"]), &memory(256 << 20)).await;
}

#[tokio::test]
async fn a_hook_that_spins_has_failed_when_its_time_is_used_up() {
    let begin = std::time::Instant::now();
    closes(line("while :; do :; done"), &cpu(1)).await;
    closes(line("trap '' XCPU; while :; do :; done"), &cpu(1)).await;
    assert!(begin.elapsed() < Duration::from_secs(50), "its deadline ended it");
}

#[tokio::test]
async fn a_hook_that_writes_a_larger_file_than_it_may_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let writing = |size: &str| line(&format!("head -c {size} /dev/zero > {}", file.display()));
    closes(writing("1G"), &file_size(1 << 20)).await;
    assert_eq!(fs::metadata(&file).unwrap().len(), 1 << 20);
    opens(writing("1M"), &file_size(1 << 20)).await;
    closes(writing("1"), &file_size(0)).await;
    opens(line("head -c 100000 /dev/zero | wc -c >/dev/null; cat >/dev/null"), &file_size(0)).await;
}

#[tokio::test]
async fn limits_hold_for_what_a_hook_starts_and_cannot_be_raised() {
    if !geteuid().is_root() {
        closes(line("ulimit -d 1048576 || exit 1"), &memory(64 << 20)).await;
    }
    opens(
        line("[ \"$(sh -c 'sh -c \"ulimit -d; ulimit -f\"' | tr '\\n' ' ')\" = '65536 2 ' ]"),
        &Bounds { max_file_size: Some(1024), ..memory(64 << 20) },
    )
    .await;
}

#[tokio::test]
async fn a_line_and_its_words_arrive_as_they_are() {
    opens(line("# a comment\n[ \"$0\" = /bin/sh ] || [ \"$0\" = sh ]"), &memory(64 << 20)).await;
    opens(program(&["/bin/sh", "-c", "[ \"$1$2\" = 'a  b$HOME' ]", "sh", "a  b", "$HOME"]), &memory(64 << 20)).await;
    let verdict = command(line("echo no >&2; exit 2"), &memory(64 << 20)).await;
    assert_eq!(verdict.outcomes[0].kind, OutcomeKind::Blocked);
}

#[tokio::test]
async fn a_sandboxed_hook_changes_nothing_outside() {
    if !holds(&sandbox(false, Some(&[]))) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let (inside, outside) = (place("inside"), place("outside"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    fs::write(place("log"), "").unwrap();
    let log = place("log");
    let bounds = sandbox(false, Some(&[inside.to_str().unwrap(), log.to_str().unwrap()]));
    let at = |script: &str| line(&format!("cd {} && {script}", folder.path().display()));
    for forbidden in [
        "echo x > outside/new",
        "echo x > outside/kept",
        "echo x >> outside/kept",
        "rm outside/kept",
        "mkdir outside/folder",
        "mv outside/kept inside/kept",
        "ln outside/kept inside/link",
        "rm log",
        "python3 -c 'import os; os.truncate(\"outside/kept\", 0)'",
        "sh -c 'sh -c \"echo x > outside/new\"'",
    ] {
        for started in [at(forbidden), program(&["/bin/sh", "-c", &at(forbidden).command])] {
            // Some shells end with 2 where they cannot open a file, which blocks as well.
            assert!(!command(started, &bounds).await.allowed, "{forbidden}");
        }
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    for allowed in [
        "echo x > inside/new",
        "echo x > /dev/null",
        "echo x >> log",
        "mkdir inside/folder",
        "mv inside/new inside/folder/old",
        "rm -r inside/folder",
        "cat outside/kept | tee /dev/stderr 2>/dev/null >/dev/null",
    ] {
        opens(at(allowed), &bounds).await;
    }
    opens(at("echo x > outside/new"), &sandbox(true, None)).await;
    closes(at("cp /dev/null log"), &sandbox(false, Some(&[]))).await;
}

#[tokio::test]
async fn a_sandboxed_hook_reaches_no_port() {
    if !holds(&sandbox(true, None)) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let python = |code: &str| program(&["python3", "-c", code]);
    let connecting = || python(&format!("import socket; socket.create_connection(('127.0.0.1', {port}), 5)"));
    let listening = || python("import socket; socket.create_server(('127.0.0.1', 0))");
    opens(connecting(), &Bounds::default()).await;
    opens(connecting(), &sandbox(false, Some(&[]))).await;
    opens(listening(), &Bounds::default()).await;
    closes(connecting(), &sandbox(true, None)).await;
    closes(listening(), &sandbox(true, None)).await;
}

#[tokio::test]
async fn workers_and_python_functions_have_the_same_bounds() {
    let has_landlock = holds(&sandbox(false, Some(&[])));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let guard = folder.path().join("guard.py");
    fs::write(
        &guard,
        format!(
            "def write(event):\n    with open({0:?}, 'w') as file: file.write('x' * 5000)\n\
             def allocate(event):\n    bytearray(1 << 30)\n",
            file.to_str().unwrap()
        ),
    )
    .unwrap();
    let python = |function: &str, bounds: Bounds| {
        let python = PythonDefinition::new(guard.to_str().unwrap(), Some(function));
        let definition = hook(HandlerDefinition::Python(python), bounds);
        HookDefinition { working_dir: Some(folder.path().to_str().unwrap().to_owned()), ..definition }
    };
    let worker = |script: &str, bounds: Bounds| {
        hook(
            HandlerDefinition::Worker(WorkerDefinition::new(line(&format!("read event; {script}; echo '{{}}'")))),
            bounds,
        )
    };
    let nowhere = || sandbox(false, Some(&[]));
    for (what, definition, kind) in [
        ("write", python("write", nowhere()), FailureKind::HandlerError),
        ("write", python("write", file_size(1000)), FailureKind::HandlerError),
        ("allocate", python("allocate", memory(256 << 20)), FailureKind::HandlerError),
        ("worker", worker(&format!("echo x > {} || exit 1", file.display()), nowhere()), FailureKind::NonzeroExit),
        ("worker", worker("while :; do :; done", cpu(1)), FailureKind::NonzeroExit),
    ] {
        if has_landlock || definition.confinement.sandbox.is_none() {
            is_closed(what, &guarded(definition).await, kind);
        }
    }
    assert!(!has_landlock || guarded(worker("echo x > /dev/null || exit 1", nowhere())).await.allowed);
    assert!(guarded(python("write", Bounds::default())).await.allowed);
}

#[test]
fn a_sandbox_that_names_what_is_not_there_is_refused() {
    let refusal = refused(hook(HandlerDefinition::Command(line("exit 0")), sandbox(false, Some(&["/no/such/place"]))));
    assert_eq!(refusal.0, "sandbox");
    assert!(refusal.1.contains("/no/such/place"), "{}", refusal.1);
}

#[test]
fn an_unknown_user_is_refused() {
    for user in ["no such account", "", "4294967294"] {
        let bounds = Bounds { user: Some(user.to_owned()), ..Bounds::default() };
        assert_eq!(refused(hook(HandlerDefinition::Command(line("exit 0")), bounds)).0, "user", "{user}");
    }
}

#[test]
fn another_user_is_for_root_alone() {
    if !geteuid().is_root() {
        let bounds = Bounds { user: Some("root".to_owned()), ..Bounds::default() };
        assert_eq!(refused(hook(HandlerDefinition::Command(line("exit 0")), bounds)).0, "user");
    }
}

#[tokio::test]
async fn our_own_user_needs_no_rights() {
    let bounds = Bounds { user: Some(geteuid().as_raw().to_string()), ..Bounds::default() };
    opens(line("exit 0"), &bounds).await;
}

#[tokio::test]
async fn another_user_has_its_own_rights_and_no_others() {
    if !geteuid().is_root() {
        return;
    }
    let nobody = |bounds: Bounds| Bounds { user: Some("nobody".to_owned()), ..bounds };
    let checks = [
        "[ \"$(id -un) $(id -rn -u)\" = 'nobody nobody' ]",
        "[ \"$(id -G)\" = \"$(id -g nobody)\" ]",
        "[ \"$(grep CapEff /proc/self/status | tr -d '\\t')\" = CapEff:0000000000000000 ]",
        "[ \"$(grep CapInh /proc/self/status | tr -d '\\t')\" = CapInh:0000000000000000 ]",
        "[ ! -r /etc/shadow ]",
        "[ \"${HOME:-none}\" != /root ]",
    ];
    let sandbox = sandbox(true, Some(&[]));
    let combined =
        if holds(&sandbox) { Bounds { sandbox: sandbox.sandbox, ..memory(64 << 20) } } else { memory(64 << 20) };
    for bounds in [nobody(Bounds::default()), nobody(combined)] {
        for check in checks {
            opens(line(check), &bounds).await;
            opens(program(&["/bin/sh", "-c", check]), &bounds).await;
        }
        closes(line("setpriv --reuid=0 true"), &bounds).await;
    }
    opens(line("[ $(ulimit -d) = 65536 ]"), &nobody(memory(64 << 20))).await;
}

#[test]
fn bounds_of_what_runs_no_process_are_refused() {
    let builtin = HookDefinition { confinement: memory(1 << 30), ..HookDefinition::builtin("redact_secrets", &[]) };
    assert_eq!(refused(builtin).0, "type");
}

/// After a fork each page that this process writes to faults, for both share it; after `posix_spawn` none does.
#[tokio::test]
async fn nothing_that_bounds_a_hook_makes_its_start_a_fork() {
    let mut pages = vec![1_u8; 64 << 20];
    // What asks for another user this way is forked.
    let forked = std::process::Command::new("/bin/true").uid(geteuid().as_raw()).status().unwrap();
    let many = faults(&mut pages);
    assert!(forked.success() && many >= 16, "{many} faults after a fork");
    let mut all = vec![Bounds::default(), memory(64 << 20)];
    all.extend(Some(sandbox(true, Some(&[]))).filter(holds));
    if geteuid().is_root() {
        all.push(Bounds { user: Some("nobody".to_owned()), ..Bounds::default() });
    }
    for bounds in all {
        let what = format!("{bounds:?}");
        opens(line("exit 0"), &bounds).await;
        let few = faults(&mut pages);
        assert!(few < many / 4, "{what}: {few} faults, {many} after a fork");
    }
}

/// Writes to each page, and counts how often this thread had to be given one.
fn faults(pages: &mut [u8]) -> u64 {
    let minor = || {
        let status = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = status.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(7).unwrap().parse::<u64>().unwrap()
    };
    let before = minor();
    pages.iter_mut().step_by(4096).for_each(|page| *page = page.wrapping_add(1));
    minor() - before
}
