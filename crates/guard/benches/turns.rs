//! `cargo xtask bench turns` runs this with the address of a webhook that allows everything, and reads lines of JSON:
//! `{"name":"hooks_50","value":12.3}`. Times are medians over many conversations, in microseconds.
//!
//! A conversation grows to 200 KiB over 50 turns and is sent anew with each, as chat clients do. `hooks_N` is what the
//! hooks took at turn N by their verdicts, `guard_N` the whole of [`Guard::before`] with reading the request, and each
//! hook stands beside them by its name.

#![allow(clippy::print_stdout, clippy::expect_used, clippy::panic, reason = "a bench answers its caller or stops")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use gatehook_engine::config::{Format, ReadOptions, parse};
use gatehook_engine::events::{Event, Verdict};
use gatehook_engine::{Executor, HandlerEnv};
use gatehook_guard::{Call, Caller, Guard, Witness};
use gatehook_inference::{Path, Route};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

/// The hooks of the bench, in the order in which they run; `HOOK` is the webhook's address.
const HOOKS: &str = r#"
hooks:
  pre_inference:
    - { name: redact_secrets, type: builtin, command: redact_secrets }
    - { name: redact_pii, type: builtin, command: redact_pii }
    - { name: block_patterns, type: builtin, command: block_patterns, args: ["(?i)for internal use only", "(?i)project falcon"] }
    - { name: webhook, type: webhook, url: "http://HOOK/", contract: ollama, cache: content }
"#;

const TURNS: usize = 50;
/// The turns that are compared.
const MEASURED: [usize; 2] = [2, TURNS];
const CONVERSATIONS: u64 = 40;

fn main() {
    // Cargo adds flags of its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let [webhook] = arguments.as_slice() else { panic!("usage: turns ADDRESS") };
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let guard = guard(webhook);
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for number in 0..CONVERSATIONS {
        let mut conversation = Conversation::new(number);
        for turn in 1..=TURNS {
            let measured = runtime.block_on(send(&guard, conversation.turn()));
            let measured = measured.into_iter().filter(|_| MEASURED.contains(&turn));
            for (name, time) in measured {
                times.entry(format!("{name}_{turn}")).or_default().push(time);
            }
        }
    }
    for (name, mut times) in times {
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied().expect("something was measured");
        println!(r#"{{"name":"{name}","value":{median:.2}}}"#);
    }
}

fn guard(webhook: &str) -> Guard {
    let hooks = HOOKS.replace("HOOK", webhook);
    let file = parse("hooks.yaml", &hooks, Format::Yaml, &ReadOptions::default()).expect("hooks that can be read");
    let env = HandlerEnv::current().expect("a working directory");
    let executor = Executor::new(file.hooks, env).expect("hooks that compile");
    Guard::new(executor).expect("hooks about inference")
}

/// Sends one request through the guard; what it took, by name.
async fn send(guard: &Guard, body: Bytes) -> BTreeMap<String, f64> {
    let (witness, cancel) = (Times::default(), CancellationToken::new());
    let caller = Caller { address: Some(std::net::Ipv4Addr::LOCALHOST.into()), ..Caller::default() };
    let request_id: Arc<str> = "bench".into();
    let path = Path::Route(Route::Chat);
    let call = Call { path, request_id: &request_id, caller: &caller, cancel: &cancel, witness: &witness };
    let start = Instant::now();
    let admitted = guard.before(&call, body).await;
    let whole = start.elapsed();
    assert!(admitted.is_ok_and(|admitted| !admitted.rewritten), "a hook refused or rewrote a clean conversation");
    let mut times = witness.hooks.into_inner().expect("no hook panicked");
    times.insert("hooks".to_owned(), times.values().sum());
    times.insert("guard".to_owned(), whole.as_secs_f64() * 1e6);
    times
}

/// What each hook took, in microseconds.
#[derive(Default)]
struct Times {
    hooks: Mutex<BTreeMap<String, f64>>,
}

impl Witness for Times {
    fn judged(&self, _: Event, verdict: &Verdict) {
        let mut hooks = self.hooks.lock().expect("no hook panicked");
        for outcome in &verdict.outcomes {
            *hooks.entry(outcome.name.to_string()).or_default() += outcome.duration.as_secs_f64() * 1e6;
        }
    }
}

/// A conversation with an agent: each turn adds some 4 KiB.
struct Conversation {
    messages: String,
    words: Words,
    turn: usize,
}

impl Conversation {
    fn new(number: u64) -> Self {
        let words = Words { state: number };
        let messages = r#"{"role":"system","content":"You are a careful engineer. Be brief."}"#.to_owned();
        Self { messages, words, turn: 0 }
    }

    /// The next request: all that was said, and a new question.
    fn turn(&mut self) -> Bytes {
        if self.turn > 0 {
            let (thought, file, answer) = (self.words.text(600), self.words.text(1800), self.words.text(900));
            let call = format!("call_{}", self.turn);
            // Writing to a String does not fail.
            let _ = write!(
                self.messages,
                r#",{{"role":"assistant","content":"{thought}","tool_calls":[{{"id":"{call}","type":"function","function":{{"name":"read_file","arguments":"{{\"path\":\"src/part_{}.rs\"}}"}}}}]}},{{"role":"tool","tool_call_id":"{call}","content":"{file}"}},{{"role":"assistant","content":"{answer}"}}"#,
                self.turn
            );
        }
        self.turn += 1;
        let question = self.words.text(400);
        let _ = write!(self.messages, r#",{{"role":"user","content":"{question}"}}"#);
        format!(r#"{{"model":"bench","messages":[{}],"stream":true}}"#, self.messages).into()
    }
}

/// English words in an order that does not repeat.
struct Words {
    state: u64,
}

const WORDS: &str = "the a of and to in is it that for on with as this was are be at by from or an have which not but \
    they we can will there when if each other about how many then them these so some her would make like him into time \
    has look two more write go see number no way could people my than first water been call who oil its now find long \
    down day did get come made may part over new sound take only little work know place years live me back give most \
    very after things our just name good sentence man think say great where help through much before line right too \
    means old any same tell boy follow came want show also around form three small set put end does another well large";

impl Words {
    /// At least so many bytes.
    fn text(&mut self, bytes: usize) -> String {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let picked = usize::try_from(self.state >> 33).unwrap_or_default() % words.len();
            text.extend([words.get(picked).copied().unwrap_or_default(), " "]);
        }
        text
    }
}
