//! The functions that the engine brings, one file each: typed input, no JSON in between. A new one is a row of
//! [`BUILTINS`].

mod allow_tools;
mod audit_log;
mod block_patterns;
mod max_iterations;
mod redact_pii;
mod redact_secrets;
mod redaction;
mod texts;

use std::collections::BTreeMap;
use std::sync::Arc;

use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Decides, Event, FailureKind, Input, Output, Permission, PermissionDecision, Profile};

use crate::definition::{HandlerDefinition, HookDefinition};
use crate::event_class::is_inference;
use crate::find::{Find, Others};
use crate::handler::{DefinitionError, Handler, HandlerEnv, HandlerError, HandlerFactory, HookCall, Reply, Run};
use crate::registry::BuiltinResult;
use crate::streaming::{Scan, Streaming};

/// All builtins: name, what makes one, what it does, and what its arguments are.
pub const BUILTINS: &[(&str, Make, &str, &str)] = &[
    (
        "allow_tools",
        allow_tools::make,
        "Denies every tool whose name fits none of its arguments.",
        "Patterns that must fit the whole name.",
    ),
    (
        "audit_log",
        audit_log::make,
        "Appends one JSON line for each event to a file; texts stand there as SHA-256.",
        "The file.",
    ),
    (
        "block_patterns",
        block_patterns::make,
        "Denies texts in which one of its arguments is found.",
        "Patterns; a first group with a name names one, as in `(?<codename>falcon)`.",
    ),
    ("max_iterations", max_iterations::make, "Blocks model calls of a run beyond a number.", "The number."),
    (
        "redact_pii",
        redact_pii::make,
        "Replaces personal data: in requests by `<EMAIL_1>`, `<CARD_2>` and so on, which become the values again in what \
         is answered; elsewhere by `<EMAIL>`.",
        "Kinds: `email`, `card`, `iban`, `ssn`, `phone`, `ip`; all by default.",
    ),
    ("redact_secrets", redact_secrets::make, "Replaces secrets by `[REDACTED]`.", "None."),
];

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
}

struct Row(Make);

impl HandlerFactory for Row {
    fn create(&self, definition: &HookDefinition, env: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
        let args = match &definition.handler {
            HandlerDefinition::Builtin { args, .. } => args.as_slice(),
            _ => &[],
        };
        (self.0)(&Arguments { args, definition, env })
    }
}

/// Adds them all.
pub(crate) fn register(builtins: &mut BTreeMap<String, Arc<dyn HandlerFactory>>) {
    for (name, make, ..) in BUILTINS {
        builtins.insert((*name).to_owned(), Arc::new(Row(*make)));
    }
}

/// A builtin that computes and waits for nothing.
trait Judge: Send + Sync + 'static {
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
            if texts::size(call.input) <= ON_THE_SPOT {
                return self.0.judge(call.event, call.input, call.others).map(Reply::Direct);
            }
            let (judge, event, input, others) = (self.0.clone(), call.event, call.input.clone(), call.others.clone());
            let answer = tokio::task::spawn_blocking(move || judge.judge(event, &input, &others)).await;
            let panicked = |_| HandlerError::new(FailureKind::HandlerError, "it panicked");
            answer.map_err(panicked)?.map(Reply::Direct)
        })
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
