//! The functions that the engine brings, one file each: typed input, no JSON in between. A new one is a row of
//! [`BUILTINS`].

mod add_context;
mod add_date;
mod add_directory_listing;
mod add_environment_info;
mod add_git_diff;
mod add_git_status;
mod add_prompt_files;
mod add_recent_commits;
mod add_user_info;
mod allow_tools;
mod audit_log;
mod block_patterns;
pub mod cache_response;
mod git;
pub(crate) mod globs;
mod http_post;
mod limit_large_tool_results;
mod load_context_files;
mod loop_guard;
mod max_cost;
mod max_iterations;
pub(crate) mod place;
pub mod protect_files;
mod rate_limit;
mod redact_pii;
mod redact_secrets;
mod redaction;
pub mod safer_shell;
mod sessions;
mod shell;
pub mod snapshot;
mod table;
mod texts;
mod unload;

use std::collections::BTreeMap;
use std::sync::Arc;

use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Decides, Event, FailureKind, Input, Output, Permission, PermissionDecision, Profile};

use crate::definition::{HandlerDefinition, HookDefinition};
use crate::event_class::is_inference;
use crate::find::{Find, Others};
use crate::handler::{DefinitionError, Handler, HandlerEnv, HandlerError, HandlerFactory, HookCall, Reply, Run};
use crate::handlers::command::describe;
use crate::handlers::stopped;
use crate::registry::BuiltinResult;
use crate::streaming::{Scan, Settled, Streaming};

pub use self::table::{BUILTINS, Builtin};

/// Makes a builtin of a definition, or says what is wrong with it.
pub type Make = fn(&Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError>;

/// What a builtin is made of.
pub struct Arguments<'a> {
    /// As configured.
    pub args: &'a [String],
    /// The whole definition.
    pub definition: &'a HookDefinition,
    /// Where it runs.
    pub env: &'a HandlerEnv,
    /// What the builtins of one registry remember together.
    memory: &'a Memory,
}

/// What hooks of several events remember together.
#[derive(Debug, Default)]
struct Memory {
    costs: Arc<max_cost::Ledger>,
}

impl Arguments<'_> {
    /// What is wrong with the arguments. docker-agent's builtins take no notice of bad ones, native ones refuse them.
    fn wrong(message: impl Into<String>, help: &str) -> DefinitionError {
        DefinitionError { field: "args", message: message.into(), help: Some(help.to_owned()) }
    }

    /// Says what becomes of a builtin that rewrites where it only may judge.
    fn warn_if_concurrent(&self, name: &str) {
        if self.definition.concurrent {
            tracing::warn!("`{name}` is `concurrent` and so cannot rewrite: what it would replace is refused");
        }
    }

    fn is_native(&self) -> bool {
        self.definition.profile == Profile::Native
    }

    /// Refuses arguments.
    fn none(&self, name: &str) -> Result<(), DefinitionError> {
        if self.args.is_empty() || !self.is_native() {
            return Ok(());
        }
        Err(Self::wrong(format!("`{name}` takes no arguments"), "remove `args`"))
    }
}

struct Row(Make, Arc<Memory>);

impl HandlerFactory for Row {
    fn create(&self, definition: &HookDefinition, env: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
        let args = match &definition.handler {
            HandlerDefinition::Builtin { args, .. } => args.as_slice(),
            _ => &[],
        };
        (self.0)(&Arguments { args, definition, env, memory: &self.1 })
    }
}

/// Adds them all.
pub(crate) fn register(builtins: &mut BTreeMap<String, Arc<dyn HandlerFactory>>) {
    let memory = Arc::new(Memory::default());
    for builtin in BUILTINS {
        builtins.insert(builtin.name.to_owned(), Arc::new(Row(builtin.make, Arc::clone(&memory))));
    }
}

/// A builtin that computes, and waits for nothing but files.
trait Judge: Send + Sync + 'static {
    /// It reads or writes files, and never runs where others would wait for it.
    const READS_FILES: bool = false;

    /// What it says of a message, or of a tool result, depends on that alone.
    const BY_CONTENT: bool = false;

    /// What it does with a streamed answer.
    const STREAMS: Streaming = Streaming::Whole;

    /// A scan of one growing text, where it scans.
    fn scan(&self) -> Option<Box<dyn Scan>> {
        None
    }

    /// What it finds in texts, where it redacts.
    fn finds(&self) -> Option<Arc<dyn Find>> {
        None
    }

    /// What it says to an event, beside others that redact.
    fn judge(&self, event: Event, input: &Input, others: &Others) -> BuiltinResult;
}

/// Runs a [`Judge`]: on the spot, or, where there is much to read, on a thread that may be busy for a while.
struct Judging<J>(Arc<J>);

/// How many bytes of text are read on the spot; some hundred microseconds at most.
const ON_THE_SPOT: usize = 64 * 1024;

impl<J: Judge> Judging<J> {
    fn handler(judge: J) -> Arc<dyn Handler> {
        Arc::new(Self(Arc::new(judge)))
    }
}

impl<J: Judge> Handler for Judging<J> {
    fn judges_by_content(&self) -> bool {
        J::BY_CONTENT
    }

    fn streams(&self) -> Streaming {
        J::STREAMS
    }

    fn scan(&self) -> Option<Box<dyn Scan>> {
        self.0.scan()
    }

    fn finds(&self) -> Option<Arc<dyn Find>> {
        self.0.finds()
    }

    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(async move {
            if !J::READS_FILES && texts::size(call.input) <= ON_THE_SPOT {
                return self.0.judge(call.event, call.input, call.others).map(Reply::Direct);
            }
            let (judge, event, input, others) = (self.0.clone(), call.event, call.input.clone(), call.others.clone());
            aside(call, move || judge.judge(event, &input, &others)).await?.map(Reply::Direct)
        })
    }
}

/// Does something on a thread that may wait, for no longer than the hook may.
async fn aside<T: Send + 'static>(
    call: HookCall<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HandlerError> {
    let work = tokio::task::spawn_blocking(work);
    tokio::select! {
        biased;
        done = work => done.map_err(|_| HandlerError::new(FailureKind::HandlerError, "it panicked")),
        kind = stopped(call.cancel, call.deadline) => Err(HandlerError::new(kind, describe(kind))),
    }
}

/// The scan of a builtin that judges calls alone: of a streamed answer all text is settled as it comes.
#[derive(Default)]
struct NoText {
    len: usize,
}

impl Scan for NoText {
    fn push(&mut self, more: &str, _ended: bool) -> Settled {
        self.len += more.len();
        Settled { upto: self.len, clean: true, too_long: false }
    }
}

/// A denial in the words of its event.
fn deny(event: Event, reason: String) -> Output {
    let decides = event.capabilities(Profile::Native).map_or(Decides::No, |able| able.decides);
    match decides {
        _ if is_inference(event) => Output {
            permission: Some(Permission::Deny),
            user_message: Some(reason.clone()),
            reason: Some(reason),
            ..Output::default()
        },
        Decides::No => Output::block(reason),
        Decides::TriState | Decides::Consent => Output::specific(HookSpecificOutput {
            permission_decision: Some(PermissionDecision::Deny),
            permission_decision_reason: Some(reason),
            ..HookSpecificOutput::default()
        }),
    }
}

#[cfg(test)]
mod tests;
