use std::num::NonZeroUsize;
use std::time::Duration;

use futures_util::future::join_all;
use gatehook_events::{Event, Input, Profile};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::definition::Source;
use crate::find::Others;
use crate::handler::Payload;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
const MARKER: &str = "GATEHOOK_TEST_MARKER";

/// A project with Python files, and a hook that names one of them.
struct Project {
    folder: Arc<tempfile::TempDir>,
    definition: HookDefinition,
    marker: String,
    env: BTreeMap<String, String>,
}

/// A hook that is ready.
struct Hook {
    handler: Arc<dyn Handler>,
    marker: String,
    _folder: Arc<tempfile::TempDir>,
}

impl Project {
    fn new(module: &str, function: Option<&str>) -> Self {
        let python = PythonDefinition { workers: NonZeroUsize::MIN, ..PythonDefinition::new(module, function) };
        let mut definition = HookDefinition::new(Profile::Native, HandlerDefinition::Python(python));
        let marker = uuid::Uuid::new_v4().to_string();
        definition.env.insert(MARKER.to_owned(), marker.clone());
        Self { folder: tempfile::tempdir().unwrap().into(), definition, marker, env: std::env::vars().collect() }
    }

    /// `guard.py` with this text, whose function is `hook`.
    fn of(text: &str) -> Self {
        Self::new("guard.hook", None).file("guard.py", text)
    }

    fn file(self, name: &str, text: &str) -> Self {
        self.write(name, text);
        self
    }

    /// In the place of what stood there, as an editor does it.
    fn write(&self, name: &str, text: &str) {
        let file = self.folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let draft = file.with_extension("draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, file).unwrap();
    }

    fn python(&mut self) -> &mut PythonDefinition {
        match &mut self.definition.handler {
            HandlerDefinition::Python(python) => python,
            other => panic!("{other:?}"),
        }
    }

    fn create(&self) -> Result<Arc<dyn Handler>, DefinitionError> {
        let env = HandlerEnv { working_dir: self.folder.path().to_owned(), env: self.env.clone() };
        PythonFactory.create(&self.definition, &env)
    }

    fn hook(&self) -> Hook {
        Hook { handler: self.create().unwrap(), marker: self.marker.clone(), _folder: self.folder.clone() }
    }
}

impl Hook {
    async fn run(&self, prompt: &str, timeout: Duration) -> Result<Reply, HandlerError> {
        let input = Input { prompt: Some(prompt.into()), ..Input::default() };
        let (payload, cancel) = (Payload::default(), CancellationToken::new());
        let deadline = Instant::now() + timeout;
        let call = HookCall {
            event: Event::UserPromptSubmit,
            input: &input,
            payload: &payload,
            cancel: &cancel,
            deadline,
            others: &Others::default(),
        };
        self.handler.run(call).await
    }

    /// What would stand on stdout.
    async fn text(&self, prompt: &str) -> String {
        match self.run(prompt, LONG).await {
            Ok(Reply::Process { stdout, exit_code: 0, .. }) => String::from_utf8(stdout.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    async fn json(&self, prompt: &str) -> Value {
        serde_json::from_str(&self.text(prompt).await).unwrap()
    }

    async fn failure(&self, prompt: &str) -> HandlerError {
        self.run(prompt, LONG).await.unwrap_err()
    }

    fn alive(&self) -> usize {
        let variable = format!("{MARKER}={}", self.marker);
        let environ = |pid: u32| std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let holds = |pid: &u32| environ(*pid).split(|&byte| byte == 0).any(|entry| entry == variable.as_bytes());
        let pids = std::fs::read_dir("/proc").unwrap().filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(holds).count()
    }

    /// After the hook itself is.
    async fn leaves_nothing(mut self) {
        self.handler = Project::of("").create().unwrap();
        self.is_gone().await;
    }

    async fn is_gone(&self) {
        let begin = Instant::now();
        while self.alive() > 0 {
            assert!(begin.elapsed() < LONG, "an interpreter is left");
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_function_answers_with_a_dict_a_text_or_nothing() {
    let hook = Project::of(
        r#"
def hook(event):
    answers = {"dict": {"decision": "block", "reason": "ü\n" + event["prompt"]}, "text": "two\nlines ü", "none": None}
    return answers[event["prompt"]]
"#,
    )
    .hook();
    assert_eq!(hook.json("dict").await, json!({"decision": "block", "reason": "ü\ndict"}));
    assert_eq!(hook.text("text").await, "two\nlines ü");
    assert_eq!(hook.text("none").await, "");
}

#[tokio::test]
async fn a_module_is_imported_once_and_keeps_its_state() {
    let project = Project::of("count = 0\ndef hook(event):\n    global count\n    count += 1\n    return str(count)\n");
    let hook = project.hook();
    for count in ["1", "2", "3"] {
        assert_eq!(hook.text("").await, count);
    }
    assert_eq!(hook.alive(), 1);
}

#[tokio::test]
async fn an_async_function_is_awaited_on_one_loop() {
    let text = r#"
import asyncio
async def hook(event):
    await asyncio.sleep(0)
    if event["prompt"] == "raise":
        raise ValueError("later")
    return {"metadata": {"loop": id(asyncio.get_running_loop())}}
"#;
    let hook = Project::of(text).hook();
    let first = hook.json("").await;
    assert_eq!(hook.failure("raise").await.message, "it raised ValueError: later");
    assert_eq!(hook.json("").await, first);
}

#[tokio::test]
async fn whatever_a_function_does_wrong_is_its_failure_and_not_the_drivers_end() {
    let text = r#"
import sys, os
print("imported")
class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")
def deep(n):
    return deep(n + 1)
def cycle():
    it = {}
    it["it"] = it
    return it
CASES = {
    "raise": lambda: 1 / 0,
    "exit": lambda: sys.exit(3),
    "quit": lambda: exit(),
    "interrupt": lambda: (_ for _ in ()).throw(KeyboardInterrupt),
    "generator": lambda: (_ for _ in ()).throw(GeneratorExit),
    "odd": lambda: (_ for _ in ()).throw(Odd()),
    "surrogate error": lambda: (_ for _ in ()).throw(ValueError("\ud800")),
    "long error": lambda: (_ for _ in ()).throw(ValueError("x" * 10_000_000)),
    "deep": lambda: deep(0),
    "set": lambda: {"metadata": {1, 2}},
    "bytes": lambda: b"x",
    "list": lambda: [],
    "true": lambda: True,
    "number": lambda: 1,
    "object": object,
    "nan": lambda: {"metadata": {"n": float("nan")}},
    "key": lambda: {("a", "b"): 1},
    "cycle": cycle,
    "surrogate": lambda: {"reason": "\ud800"},
    "surrogate text": lambda: "\udc80",
    "memory": lambda: "x" * (1 << 62),
    "generator function": lambda: (n for n in range(3)),
}
def hook(event):
    return CASES[event["prompt"]]() if event["prompt"] in CASES else {"reason": str(os.getpid())}
"#;
    let hook = Project::of(text).hook();
    let first = hook.json("who").await;
    for (case, message) in [
        ("raise", "ZeroDivisionError: division by zero"),
        ("exit", "SystemExit: 3"),
        ("quit", "SystemExit"),
        ("interrupt", "KeyboardInterrupt"),
        ("generator", "GeneratorExit"),
        ("odd", "Odd"),
        ("surrogate error", "ValueError: \\ud800"),
        ("long error", "ValueError: xxx"),
        ("deep", "RecursionError"),
        ("set", "TypeError: Object of type set is not JSON serializable"),
        ("bytes", "TypeError: a hook returns a dict, a str or None, not bytes"),
        ("list", "TypeError: a hook returns"),
        ("true", "TypeError: a hook returns"),
        ("number", "TypeError: a hook returns"),
        ("object", "TypeError: a hook returns"),
        ("nan", "ValueError"),
        ("key", "TypeError: keys must be"),
        ("cycle", "ValueError: Circular"),
        ("surrogate", "UnicodeEncodeError"),
        ("surrogate text", "UnicodeEncodeError"),
        ("memory", "MemoryError"),
        ("generator function", "TypeError: a hook returns a dict, a str or None, not generator"),
    ] {
        let failure = hook.failure(case).await;
        assert_eq!(failure.kind, FailureKind::HandlerError, "{case}");
        let raised = failure.message.strip_prefix("it raised ").unwrap();
        assert!(raised.starts_with(message) && raised.len() < 600, "{case}: {raised}");
        assert!(failure.stderr.len() <= 64 << 10, "{case}");
        assert!(!failure.stderr.contains("<string>"), "{case}: {}", failure.stderr);
    }
    let traceback = hook.failure("raise").await.stderr;
    assert!(traceback.contains("guard.py") && traceback.contains("1 / 0"), "{traceback}");
    assert_eq!(hook.json("who").await, first, "the interpreter is the same");
}

#[tokio::test]
async fn what_is_returned_has_a_bound() {
    let hook = Project::of("def hook(event):\n    return 'x' * int(event['prompt'])\n").hook();
    assert_eq!(hook.text("1000000").await.len(), 1_000_000);
    assert_eq!(hook.failure("1048576").await.kind, FailureKind::OutputTooLarge);
    assert_eq!(hook.failure("200000000").await.kind, FailureKind::OutputTooLarge);
    assert_eq!(hook.text("3").await, "xxx");
}

#[tokio::test]
async fn nothing_that_is_printed_or_read_touches_the_protocol() {
    let text = r#"
import os, subprocess, sys
def hook(event):
    print("{\"decision\":\"block\"}")
    sys.stdout.write("no end")
    sys.stdout.flush()
    print("\ud800")
    os.write(1, b"{}\n")
    subprocess.run(["echo", "{}"])
    read = sys.stdin.read()
    sys.stdout.close()
    return "read " + repr(read)
"#;
    let hook = Project::of(text).hook();
    assert_eq!(hook.text("").await, "read ''");
    // What is closed is the hook's own.
    assert!(hook.failure("").await.message.contains("ValueError: I/O operation on closed file"));
}

#[tokio::test]
async fn an_interpreter_that_ends_or_hangs_is_a_failure_and_another_answers() {
    let text = r#"
import os, signal, time
def hook(event):
    case = event["prompt"]
    if case == "exit":
        print("last words", flush=True)
        os._exit(0)
    elif case == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif case == "loop":
        while True: pass
    elif case == "sleep":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(300)
    return "fine"
"#;
    let hook = Project::of(text).hook();
    assert_eq!(hook.text("").await, "fine");
    for (case, timeout, kind) in [
        ("exit", LONG, FailureKind::NonzeroExit),
        ("kill", LONG, FailureKind::NonzeroExit),
        ("loop", SHORT, FailureKind::Timeout),
        ("sleep", SHORT, FailureKind::Timeout),
    ] {
        let failure = hook.run(case, timeout).await.unwrap_err();
        assert_eq!(failure.kind, kind, "{case}");
        assert_eq!(failure.stderr, if case == "exit" { "last words\n" } else { "" }, "{case}");
        hook.is_gone().await;
        assert_eq!(hook.text("").await, "fine", "{case}");
    }
}

#[tokio::test]
async fn threads_and_forks_of_a_hook_do_no_harm() {
    let text = r#"
import os, threading, time
def forever():
    while True:
        print("noise", flush=True)
        time.sleep(0.001)
def hook(event):
    if event["prompt"] == "fork":
        return "child" if os.fork() == 0 else "parent"
    threading.Thread(target=forever).start()
    return "started"
"#;
    let hook = Project::of(text).hook();
    for _ in 0..3 {
        assert_eq!(hook.text("").await, "started");
        assert_eq!(hook.text("fork").await, "parent");
    }
    hook.leaves_nothing().await;
}

#[tokio::test]
async fn a_changed_file_is_imported_anew_and_so_is_what_it_imports() {
    let project = Project::of("import rules.words as words\ndef hook(event):\n    return words.WORD + '1'\n")
        .file("rules/__init__.py", "")
        .file("rules/words.py", "WORD = 'a'\n");
    let hook = project.hook();
    assert_eq!(hook.text("").await, "a1");
    project.write("rules/words.py", "WORD = 'b'\n");
    assert_eq!(hook.text("").await, "b1");
    project.write("guard.py", "import rules.words as words\ndef hook(event):\n    return words.WORD + '2'\n");
    assert_eq!(hook.text("").await, "b2");
    project.write("rules/words.py", "WORD = \n");
    let failure = hook.failure("").await;
    assert!(failure.message.contains("SyntaxError"), "{}", failure.message);
    assert_eq!(hook.failure("").await.message, failure.message, "the old one is not used");
    project.write("rules/words.py", "WORD = 'c'\n");
    assert_eq!(hook.text("").await, "c2");
    std::fs::remove_file(project.folder.path().join("guard.py")).unwrap();
    assert!(hook.failure("").await.message.contains("FileNotFoundError"));
    assert_eq!(hook.alive(), 1);
}

#[tokio::test]
async fn a_module_imported_within_the_function_is_watched_too() {
    let project =
        Project::of("def hook(event):\n    import late\n    return late.WORD\n").file("late.py", "WORD = 'a'");
    let hook = project.hook();
    assert_eq!(hook.text("").await, "a");
    project.write("late.py", "WORD = 'b'");
    assert_eq!(hook.text("").await, "b");
}

#[tokio::test]
async fn no_compiled_file_decides_and_none_is_written() {
    let project = Project::of("import rules\ndef hook(event):\n    return rules.WORD\n").file("rules.py", "WORD = 'a'");
    // A compiled file that claims never to be stale.
    let planted = "import py_compile; py_compile.compile('planted.py', '__pycache__/rules.' + \
                   __import__('sys').implementation.cache_tag + '.pyc', \
                   invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)";
    let project = project.file("planted.py", "WORD = 'planted'");
    let ran = std::process::Command::new("python3").args(["-c", planted]).current_dir(project.folder.path()).status();
    assert!(ran.unwrap().success());
    assert_eq!(project.hook().text("").await, "a");
    assert_eq!(std::fs::read_dir(project.folder.path().join("__pycache__")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_name_of_the_standard_library_hides_nothing() {
    let guard = "import json, random, os\ndef hook(event):\n    return json.dumps(sorted(event)) + random.__name__\n";
    for (module, file) in
        [("json", "json.py"), (".gatehook/random.py", ".gatehook/random.py"), ("os", ".gatehook/os.py")]
    {
        let project = Project::new(module, Some("hook")).file(file, guard).file("traceback.py", "raise SystemExit");
        assert_eq!(project.hook().text("").await, "[\"prompt\"]random", "{module}");
    }
    let project = Project::new("email.guard.hook", None).file("email/guard.py", guard).file("email/__init__.py", "");
    let failure = project.hook().failure("").await;
    assert!(failure.message.contains("the package email has the name of one of Python's own"), "{}", failure.message);
}

#[tokio::test]
async fn a_module_is_named_in_several_ways() {
    let function = "def hook(event):\n    return __name__\nclass Guard:\n    @staticmethod\n    def check(event):\n        return 'check'\n";
    for (module, name, file, said) in [
        ("guard.hook", None, "guard.py", "guard"),
        ("guard", Some("hook"), ".gatehook/guard.py", "guard"),
        ("guard", Some("Guard.check"), ".ollama/hooks/guard.py", "check"),
        ("a.b.guard.hook", None, "a/b/guard.py", "a.b.guard"),
        ("a.b", Some("hook"), "a/b/__init__.py", "a.b"),
        ("a", Some("hook"), "a/__init__.py", "a"),
        (".gatehook/my-guard.py", Some("hook"), ".gatehook/my-guard.py", "my-guard"),
        ("guard.py", Some("hook"), "guard.py", "guard"),
    ] {
        let project = Project::new(module, name).file(file, function);
        assert_eq!(project.hook().text("").await, said, "{module}");
    }
}

#[tokio::test]
async fn a_file_finds_what_lies_beside_it_and_a_package_what_belongs_to_it() {
    let beside = Project::new("tools/guard.py", Some("hook"))
        .file("tools/guard.py", "import words\ndef hook(event):\n    return words.WORD\n")
        .file("tools/words.py", "WORD = 'beside'");
    assert_eq!(beside.hook().text("").await, "beside");
    let within = Project::new("rules.guard.hook", None)
        .file("rules/__init__.py", "")
        .file("rules/guard.py", "from . import words\ndef hook(event):\n    return words.WORD\n")
        .file("rules/words.py", "WORD = 'within'");
    assert_eq!(within.hook().text("").await, "within");
}

#[tokio::test]
async fn what_is_found_out_only_in_python_is_a_closed_guard() {
    for (text, function, message) in [
        ("raise ValueError('at import')", "hook", "ValueError: at import"),
        ("import sys; sys.exit(0)", "hook", "SystemExit: 0"),
        ("def hook(:", "hook", "SyntaxError"),
        ("", "hook", "AttributeError"),
        ("hook = 1", "hook", "TypeError: hook is no function"),
        ("import no_such_module", "hook", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def hook(): pass", "hook", "TypeError"),
    ] {
        let project = Project::new("guard", Some(function)).file("guard.py", text);
        let failure = project.hook().failure("").await;
        assert_eq!(failure.kind, FailureKind::HandlerError, "{text}");
        assert!(failure.message.contains(message), "{text}: {}", failure.message);
    }
    let failure = Project::new("no_such_package.guard.hook", None).hook().failure("").await;
    assert!(failure.message.contains("No module named 'no_such_package'"), "{}", failure.message);
}

#[test]
fn what_can_be_known_at_load_is_said_at_load() {
    let refused = |project: &Project| project.create().map(|_| ()).unwrap_err();
    assert_eq!(refused(&Project::new("missing.py", Some("hook"))).field, "module");
    assert_eq!(refused(&Project::new("../guard.py", Some("hook"))).field, "module");
    assert_eq!(refused(&Project::new("guard", None)).field, "function");

    let mut workspace = Project::new("/etc/passwd.py", Some("hook"));
    workspace.definition.origin.source = Source::Workspace;
    assert_eq!(refused(&workspace).field, "module");

    let mut project = Project::of("");
    project.env = [("PATH".to_owned(), "/nowhere".to_owned())].into();
    let error = refused(&project);
    assert_eq!((error.field, error.message.as_str()), ("python", "there is no `python3` on PATH"));
    project.env.insert("VIRTUAL_ENV".to_owned(), "/nowhere".to_owned());
    assert!(refused(&project).message.contains("VIRTUAL_ENV"));
    for named in ["python9", "./bin/python", "/etc/passwd"] {
        project.python().python = Some(named.to_owned());
        assert!(refused(&project).message.contains(named), "{named}");
    }
}

#[tokio::test]
async fn the_interpreter_is_the_named_one_or_that_of_the_virtual_environment() {
    let mut project = Project::of("import os\ndef hook(event):\n    return os.environ['WHICH']\n");
    for bin in ["bin", "env/bin"] {
        let script = format!("#!/bin/sh\nWHICH={bin} exec python3 \"$@\"\n");
        let file = project.folder.path().join(bin).join("python3");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        // A file that another thread's child holds open for writing cannot be run.
        let writes = format!("printf '%s' \"$0\" > {0} && chmod +x {0}", file.display());
        assert!(std::process::Command::new("sh").args(["-c", &writes, &script]).status().unwrap().success());
    }
    project.env.insert("VIRTUAL_ENV".to_owned(), "env".to_owned());
    assert_eq!(project.hook().text("").await, "env/bin");
    project.python().python = Some("bin/python3".to_owned());
    assert_eq!(project.hook().text("").await, "bin");
}

#[tokio::test]
async fn events_share_as_many_interpreters_as_are_allowed() {
    let mut project =
        Project::of("import os, time\ndef hook(event):\n    time.sleep(0.01)\n    return str(os.getpid())\n");
    project.python().workers = NonZeroUsize::new(2).unwrap();
    let hook = project.hook();
    let answers = join_all((0..20).map(|_| hook.text(""))).await;
    assert_eq!(answers.into_iter().collect::<std::collections::BTreeSet<_>>().len(), 2);
    assert_eq!(hook.alive(), 2);
    hook.leaves_nothing().await;
}

#[tokio::test]
async fn a_large_event_arrives_whole() {
    let hook = Project::of("def hook(event):\n    return str(len(event['prompt']))\n").hook();
    assert_eq!(hook.text(&"ü".repeat(1 << 20)).await, (1 << 20).to_string());
    assert_eq!(hook.text("").await, "0");
}
