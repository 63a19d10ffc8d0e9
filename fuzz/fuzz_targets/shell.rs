//! Shell lines and scripts, as the guards read them: nothing that stands in a line is overlooked, and a guard says of a
//! line no less when another stands before it or a shell around it.
//!
//! The first byte is `0` for a line and its words, `1` to `3` for a script of Python, JavaScript, sh, `4` and `5` for a
//! line and its guards.

#![no_main]

use std::path::PathBuf;

use gatehook_engine::config::{ReadOptions, hooks_from_json};
use gatehook_engine::trust::{imports, words};
use gatehook_engine::{Executor, HandlerEnv};
use gatehook_events::{Event, Input};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// How deep commands in commands are read for sure.
const DEPTH: usize = 8;

const NAMES: [&str; 3] = ["a.py", "a.mjs", "a.sh"];

fuzz_target!(|data: &[u8]| {
    let Some((first, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    match usize::from(first.wrapping_sub(b'0')) % (1 + NAMES.len() + 2) {
        0 => in_words(&text),
        at @ 1..=3 => assert!(imports(NAMES[at - 1], &text) <= text.len(), "it takes in more than it says"),
        at => GUARDS.with(|guards| guarded(&guards[at - 4], &text)),
    }
});

/// Each run of letters and digits is in some word, unless it stands too deep to be read, or for another character.
fn in_words(line: &str) {
    if line.matches(['(', '{', '`']).count() > DEPTH || line.contains("$'") {
        return;
    }
    let words = words(line);
    for run in line.split(|char: char| !char.is_ascii_alphanumeric()).filter(|run| !run.is_empty()) {
        assert!(words.iter().any(|word| word.contains(run)), "{run:?} of {line:?} is in none of {words:?}");
    }
}

fn guarded(guard: &Guard, line: &str) {
    let refused = guard.refused;
    // One of these each time: a dispatch takes long.
    let (stricter, milder) = match line.len() % 4 {
        0 => (Some(line.to_owned()), format!("ls\n{line}")),
        1 => (Some(line.to_owned()), format!("sh -c '{}'", line.replace('\'', r"'\''"))),
        2 => (None, format!("{refused}\n{line}")),
        _ => (None, format!("echo \"$({refused}\n)\"\n{line}")),
    };
    assert!(!guard.passes(&milder) || stricter.is_some_and(|line| guard.passes(&line)), "{milder:?} passes");
}

thread_local!(static GUARDS: [Guard; 2] = [
    Guard::new("safer_shell", "restricted", "rm -rf x"),
    Guard::new("protect_files", "secrets/**", "cat .env"),
]);

/// A guard of shell lines, and a line that it refuses.
struct Guard {
    executor: Executor,
    runtime: Runtime,
    refused: &'static str,
}

impl Guard {
    fn new(name: &str, argument: &str, refused: &'static str) -> Self {
        let hooks = json!({"pre_tool_use": [{"type": "builtin", "command": name, "args": [argument]}]});
        let hooks = hooks_from_json(&hooks, &ReadOptions::default()).expect("it is a hook");
        let env = HandlerEnv { working_dir: PathBuf::from("/proc/self/fdinfo"), env: [].into() };
        let executor = Executor::new(hooks, env).expect("it can be made");
        Self { executor, runtime: Builder::new_current_thread().enable_time().build().expect("a clock"), refused }
    }

    fn passes(&self, line: &str) -> bool {
        let arguments: Map<String, Value> = [("command".to_owned(), line.into())].into_iter().collect();
        let input = Input { tool_name: Some("shell".into()), tool_input: Some(arguments.into()), ..Input::default() };
        let never = CancellationToken::new();
        self.runtime.block_on(self.executor.dispatch(Event::PreToolUse, &input, &never)).allowed
    }
}
