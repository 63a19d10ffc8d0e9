//! What is remembered of a dispatch, who remembers it, and how it is asked for.
//!
//! An engine that has a [`Recorder`] hands it one [`Trace`] for each dispatch in which a hook ran. What keeps them
//! answers to [`Traces`]. Both are traits, so that an engine needs no database.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::catalogue::Event;
use crate::input::Input;
use crate::verdict::{Outcome, Rewritten, TokenUsage, Verb, Verdict};

/// One dispatch, as the engine saw it. What can be large is shared with the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// When it began.
    pub time: SystemTime,
    /// What happened.
    pub event: Event,
    /// What the hooks were told; the first of them, where they rewrite. Secrets are still in it.
    pub input: Input,
    /// Whether the host goes on.
    pub allowed: bool,
    /// The verdict in one word.
    pub verb: Verb,
    /// Why it was blocked.
    pub message: String,
    /// Notices for the user, a line for each.
    pub system_message: String,
    /// The names of what was rewritten, as [`Rewritten::names`] has them.
    pub rewritten: Vec<&'static str>,
    /// One record for each hook that ran, in configuration order. Observers leave none.
    pub outcomes: Vec<Outcome>,
    /// How long all of it took.
    pub duration: Duration,
}

impl Trace {
    /// What is remembered of a verdict.
    pub fn of(event: Event, input: &Input, verdict: &Verdict, time: SystemTime, duration: Duration) -> Self {
        Self {
            time,
            event,
            input: input.clone(),
            allowed: verdict.allowed,
            verb: verdict.verb,
            message: verdict.message.clone(),
            system_message: verdict.system_message.clone(),
            rewritten: verdict.rewritten.names(),
            outcomes: verdict.outcomes.clone(),
            duration,
        }
    }
}

impl Rewritten {
    /// What was rewritten, by the names of the payload's fields.
    pub fn names(&self) -> Vec<&'static str> {
        let output = self.output.as_ref();
        [
            ("tool_input", self.tool_input.is_some()),
            ("messages", self.messages.is_some()),
            ("tool_response", self.tool_response.is_some()),
            ("output_text", output.is_some_and(|output| output.text.is_some())),
            ("output_thinking", output.is_some_and(|output| output.thinking.is_some())),
            ("tool_calls", output.is_some_and(|output| output.tool_calls.is_some())),
            ("skill_args", self.skill_args.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_rewritten)| is_rewritten.then_some(name))
        .collect()
    }
}

/// Remembers dispatches.
pub trait Recorder: Send + Sync + fmt::Debug {
    /// Takes a trace. It is called between a verdict and its host: it must not block, and has no way to fail.
    fn record(&self, trace: Trace);
}

/// A trace as it was kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its number; a later trace has a higher one.
    pub id: i64,
    /// When the dispatch began, to the millisecond.
    pub time: SystemTime,
    /// The event's name, as in `pre_tool_use`.
    pub event: String,
    /// The contracts of the hooks that ran, each once.
    pub profiles: Vec<String>,
    /// The session, where the input named one.
    pub session: Option<String>,
    /// `agent`, `wire` or `adapter`.
    pub plane: String,
    /// What the hooks were told, without its secrets.
    pub input: Value,
    /// How many secrets were taken out of the input.
    pub secrets: u64,
    /// The input was larger than what is kept of one, or was not over: something is missing from it.
    pub cut: bool,
    /// Whether the host went on.
    pub allowed: bool,
    /// The verdict in one word.
    pub verb: String,
    /// Why it was blocked.
    pub message: String,
    /// What was rewritten, by the names of the payload's fields.
    pub rewritten: Vec<String>,
    /// One record for each hook that ran, in configuration order.
    pub outcomes: Vec<RecordedOutcome>,
    /// How long all of it took.
    pub duration: Duration,
}

/// What one hook did, as it was kept.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedOutcome {
    /// Its display name.
    pub hook: String,
    /// Its handler type, as in `command`.
    pub handler: String,
    /// The contract it was written for.
    pub profile: String,
    /// How long it took.
    pub duration: Duration,
    /// Its exit code; -1 for a failure without one.
    pub exit_code: i32,
    /// `ok`, `blocked` or `failed`.
    pub kind: String,
    /// Why it failed, as in `timeout`.
    pub failure: Option<String>,
    /// What it said in one word.
    pub verb: String,
    /// It was not run: it had judged all of this before.
    pub recalled: bool,
    /// Why, in a sentence.
    pub reason: String,
    /// The last bytes it wrote to stderr.
    pub stderr: String,
    /// The tokens of a model judge, where its server counts them.
    pub usage: Option<TokenUsage>,
    /// What its model call cost; absent is unpriced.
    pub cost: Option<f64>,
}

/// Which traces are wanted; an absent field wants all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Of this event, by name.
    pub event: Option<String>,
    /// In which a hook of this display name ran.
    pub hook: Option<String>,
    /// Of this session.
    pub session: Option<String>,
    /// In which a hook failed.
    pub failed: bool,
    /// Not older than this.
    pub since: Option<SystemTime>,
    /// At most so many, the newest.
    pub limit: usize,
}

/// The most traces that one question brings.
pub const MOST: usize = 10_000;

impl Default for Query {
    fn default() -> Self {
        Self { event: None, hook: None, session: None, failed: false, since: None, limit: 20 }
    }
}

/// What one hook did over a time. Runs that were not run, because the hook had judged it all before, do not count.
#[derive(Debug, Clone, PartialEq)]
pub struct HookStats {
    /// The event's name.
    pub event: String,
    /// The hook's display name.
    pub hook: String,
    /// Its handler type.
    pub handler: String,
    /// How often it ran.
    pub runs: u64,
    /// How often it failed.
    pub failures: u64,
    /// How often it blocked.
    pub blocks: u64,
    /// Half of its runs took no longer.
    pub p50: Duration,
    /// 95 of 100 took no longer.
    pub p95: Duration,
    /// 99 of 100 took no longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
    /// What its model calls cost together; absent where none had a price.
    pub cost: Option<f64>,
}

/// What was remembered.
pub trait Traces {
    /// One trace.
    fn trace(&self, id: i64) -> Result<Option<Recorded>, TraceError>;

    /// The newest traces that a query wants, the newest first.
    fn traces(&self, query: &Query) -> Result<Vec<Recorded>, TraceError>;

    /// Every hook that ran, by event and name.
    fn stats(&self, since: Option<SystemTime>) -> Result<Vec<HookStats>, TraceError>;
}

/// What keeps traces cannot do so. No hook and no verdict depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    /// What is wrong with it.
    pub fault: Fault,
    /// Where it is, as in a file's path.
    pub place: String,
    /// What it said.
    pub detail: String,
}

/// What is wrong with a place where traces are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Another program holds it.
    Locked,
    /// There is no room left.
    Full,
    /// It cannot be reached: a folder is gone, or may not be written.
    Unreachable,
    /// It is damaged, or something else.
    Corrupted,
    /// A newer version made it.
    Newer,
    /// It failed otherwise.
    Failed,
}

impl Fault {
    /// What is the case, and what to do about it.
    fn words(self) -> [&'static str; 2] {
        match self {
            Fault::Locked => ["is locked by another program", "end that program, or wait for it"],
            Fault::Full => ["has no room left", "make room, or keep less by `traces.keep` and `traces.max_rows`"],
            Fault::Unreachable => [
                "cannot be opened",
                "its folder must be yours to write; `traces.path` names another file, `traces.enabled: false` none",
            ],
            Fault::Corrupted => ["is damaged or no database", "move it away: a new one is begun"],
            Fault::Newer => ["was made by a newer gatehook", "use that one, or name another file by `traces.path`"],
            Fault::Failed => ["failed", "move it away if it does so again: a new one is begun"],
        }
    }
}

impl Fault {
    /// What is the case, as in `has no room left`.
    pub fn case(self) -> &'static str {
        let [case, _] = self.words();
        case
    }
}

impl TraceError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        let [_, remedy] = self.fault.words();
        remedy
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}: {}", self.place, self.fault.case(), self.detail)
    }
}

impl std::error::Error for TraceError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::ModelOutput;

    #[test]
    fn what_was_rewritten_is_named_as_the_payload_names_it() {
        let output = ModelOutput { thinking: Some("".into()), ..ModelOutput::default() };
        let rewritten = Rewritten { output: Some(output), skill_args: Some("-q".into()), ..Rewritten::default() };
        assert_eq!(rewritten.names(), ["output_thinking", "skill_args"]);
        assert!(Rewritten::default().names().is_empty());
    }

    #[test]
    fn a_trace_says_what_the_verdict_said() {
        let verdict = Verdict { allowed: false, verb: Verb::Deny, message: "no".into(), ..Verdict::allow() };
        let input = Input { tool_name: Some("rm".into()), ..Input::default() };
        let trace = Trace::of(Event::PreToolUse, &input, &verdict, SystemTime::UNIX_EPOCH, Duration::from_millis(2));
        assert_eq!((trace.allowed, trace.verb, &*trace.message), (false, Verb::Deny, "no"));
        assert_eq!(trace.input, input);
    }
}
