//! What runs a hook: the traits that command, webhook and builtin handlers implement, and embedders may.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use gatehook_events::dialect::{HookName, Occasion};
use gatehook_events::input::SCHEMA_VERSION;
use gatehook_events::{Dialect, Event, FailureKind, Input, Output, TokenUsage};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::definition::HookDefinition;
use crate::find::{Find, Others};
use crate::streaming::{Scan, Streaming};

/// The future of one run.
pub type Run<'a> = Pin<Box<dyn Future<Output = Result<Reply, HandlerError>> + Send + 'a>>;

/// Runs one hook, and answers in one of two [protocols](Reply).
///
/// ```
/// use std::sync::Arc;
///
/// use gatehook_engine::events::{Event, Input, Output, Profile};
/// use gatehook_engine::handler::{DefinitionError, Run};
/// use gatehook_engine::{
///     Executor, Handler, HandlerDefinition, HandlerEnv, HandlerFactory, HookCall, HookDefinition, HookGroup,
///     HooksConfig, Registry, Reply,
/// };
/// use tokio_util::sync::CancellationToken;
///
/// /// `type: curfew`: nothing happens from `hour` on.
/// struct Curfew {
///     hour: u64,
/// }
///
/// impl Handler for Curfew {
///     fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
///         Box::pin(async move {
///             let now = call.input.timestamp.as_deref().and_then(|time| time.get(11..13)?.parse().ok());
///             let is_late = now.is_some_and(|now: u64| now >= self.hour);
///             Ok(Reply::Direct(is_late.then(|| Output::block("it is late"))))
///         })
///     }
/// }
///
/// struct CurfewFactory;
///
/// impl HandlerFactory for CurfewFactory {
///     fn create(&self, definition: &HookDefinition, _env: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
///         let hour = match &definition.handler {
///             HandlerDefinition::Other { fields, .. } => fields.get("hour").and_then(|hour| hour.as_u64()),
///             _ => None,
///         };
///         let message = || DefinitionError { field: "hour", message: "a curfew needs an `hour`".into(), help: None };
///         Ok(Arc::new(Curfew { hour: hour.ok_or_else(message)? }))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::new();
/// registry.register("curfew", Arc::new(CurfewFactory))?;
/// let curfew = |fields: serde_json::Value| {
///     let fields = fields.as_object().cloned().unwrap_or_default();
///     let hook = HookDefinition::new(Profile::Native, HandlerDefinition::Other { kind: "curfew".into(), fields });
///     let group = HookGroup { event: Event::UserPromptSubmit, matcher: String::new(), hooks: vec![hook] };
///     Executor::with_registry(HooksConfig { groups: vec![group] }, HandlerEnv::current()?, &registry)
///         .map_err(Box::<dyn std::error::Error>::from)
/// };
///
/// let refused = curfew(serde_json::json!({})).unwrap_err();
/// assert_eq!(refused.to_string(), "user_prompt_submit hook \"curfew\": a curfew needs an `hour`");
///
/// let executor = curfew(serde_json::json!({"hour": 22}))?;
/// let input = Input { timestamp: Some("2026-01-01T23:30:00Z".into()), ..Input::default() };
/// let verdict = executor.dispatch(Event::UserPromptSubmit, &input, &CancellationToken::new()).await;
/// assert_eq!((verdict.allowed, verdict.message.as_str()), (false, "it is late"));
/// # Ok(())
/// # }
/// ```
///
/// A handler ends its own work at `call.deadline` with [`FailureKind::Timeout`] and on `call.cancel` with
/// [`FailureKind::Cancelled`]. Dropping the future leaves nothing behind.
pub trait Handler: Send + Sync {
    /// Runs the hook on one event.
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a>;

    /// Whether what it says of a message, or of a tool result, depends on that alone. Then what it has let pass before is
    /// left out of the messages it is shown, and what it rewrote before is rewritten again without it.
    fn judges_by_content(&self) -> bool {
        false
    }

    /// What it does with a streamed answer, where the definition says nothing.
    fn streams(&self) -> Streaming {
        Streaming::Whole
    }

    /// A scan of one growing text; `Some` where [`streams`](Self::streams) says [`Streaming::Scan`].
    fn scan(&self) -> Option<Box<dyn Scan>> {
        None
    }

    /// What it finds in texts and puts something else in the place of, where it redacts. Hooks beside it that redact take
    /// out of a text what it could not find any more behind them.
    fn finds(&self) -> Option<Arc<dyn Find>> {
        None
    }
}

/// Makes handlers of one type; checks each definition, at load. [`Handler`] shows one.
pub trait HandlerFactory: Send + Sync {
    /// The handler of this definition, or what is wrong with it.
    fn create(&self, definition: &HookDefinition, env: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError>;
}

/// What is wrong with a definition, found by its factory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DefinitionError {
    /// The field at fault, as in `url`.
    pub field: &'static str,
    /// What is wrong, in a sentence fragment.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// Where handlers run.
///
/// ```
/// use gatehook_engine::HandlerEnv;
///
/// let mut env = HandlerEnv::current()?;
/// env.env.insert("PROJECT".into(), "gatehook".into());
/// env.env.remove("API_KEY"); // no hook of this executor inherits it
/// let elsewhere = HandlerEnv { working_dir: "/srv/project".into(), ..env };
/// assert_eq!(elsewhere.env["PROJECT"], "gatehook");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct HandlerEnv {
    /// The executor's working directory.
    pub working_dir: PathBuf,
    /// The environment that hooks inherit.
    pub env: BTreeMap<String, String>,
}

impl HandlerEnv {
    /// This process's working directory and environment.
    pub fn current() -> std::io::Result<Self> {
        // Variables that are no text are not for hooks: they could not be shown in a payload either.
        let env =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Ok(Self { working_dir: std::env::current_dir()?, env: env.collect() })
    }
}

/// One event, for one hook.
#[derive(Clone, Copy)]
pub struct HookCall<'a> {
    /// The event.
    pub event: Event,
    /// What the hook is told.
    pub input: &'a Input,
    /// The same as bytes, made on first use.
    pub payload: &'a Payload,
    /// The caller gives up.
    pub cancel: &'a CancellationToken,
    /// When the hook must have answered.
    pub deadline: Instant,
    /// The others of its event that redact; none for one that does not.
    pub others: &'a Others,
}

/// What a hook answered, in one of two protocols.
///
/// ```
/// use gatehook_engine::Reply;
/// use gatehook_engine::events::Output;
///
/// // As a program would say it: the engine reads stdout where the code is 0, and blocks where it is 2.
/// let said = Reply::Process { stdout: r#"{"decision":"block"}"#.into(), stderr: String::new(), exit_code: 0 };
/// let ended = Reply::Process { stdout: "".into(), stderr: "not here".into(), exit_code: 2 };
/// // As a function says it.
/// let answered = Reply::Direct(Some(Output::block("not here")));
/// let no_opinion = Reply::Direct(None);
/// # let _ = (said, ended, answered, no_opinion);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a reply lives for a moment, and a box would be one allocation more")]
pub enum Reply {
    /// Process protocol: what a program wrote, and how it ended (-1 by a signal).
    Process {
        /// Read by the engine when the code is 0.
        stdout: Bytes,
        /// The message when the code is 2.
        stderr: String,
        /// 0, 2, or a failure.
        exit_code: i32,
    },
    /// Direct protocol: the answer itself; `None` is no opinion.
    Direct(Option<Output>),
    /// The same of a model judge, with what it took.
    Judged(Box<Judgement>),
}

impl Reply {
    /// The reply, or why there is none though it was paid for.
    pub(crate) fn settled(self) -> Result<Self, HandlerError> {
        match self {
            Reply::Judged(judgement) => match judgement.answer {
                Err(error) => Err(error),
                answer => Ok(Reply::Judged(Box::new(Judgement { answer, ..*judgement }))),
            },
            reply => Ok(reply),
        }
    }
}

/// What a model judge answered, and what it took. A reply that nobody could read has cost as much as any other.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The answer, or why there is none.
    pub answer: Result<Option<Output>, HandlerError>,
    /// The tokens it used.
    pub usage: Option<TokenUsage>,
    /// What it cost; `None` where nobody knows.
    pub cost: Option<f64>,
    /// The model was not asked: it had judged the same before.
    pub recalled: bool,
}

impl Judgement {
    /// One of unknown cost.
    pub fn new(answer: Result<Option<Output>, HandlerError>) -> Self {
        Self { answer, usage: None, cost: None, recalled: false }
    }
}

/// Why a hook gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HandlerError {
    /// Its kind.
    pub kind: FailureKind,
    /// The cause in a sentence fragment, without command lines and addresses.
    pub message: String,
    /// What the hook wrote to stderr.
    pub stderr: String,
}

impl HandlerError {
    /// An error without stderr.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), stderr: String::new() }
    }
}

/// A variable's value, of what an event says.
type Variable = for<'a> fn(&'a Input) -> Option<&'a str>;

/// The variables that every command is given, and what they hold, where the event says it.
pub const VARIABLES: &[(&str, Variable)] = &[
    ("GATEHOOK_SESSION_ID", |input| input.session_id.as_deref()),
    ("GATEHOOK_ENV_FILE", |input| input.env_file.as_deref()),
];

/// Bytes of a variable's value. A system takes no more than some of a program's environment.
const MAX_VARIABLE: usize = 32 << 10;

/// An input as bytes, in the words of one profile: serialised at most once, and only if a hook outside the process needs
/// it.
#[derive(Debug, Default)]
pub struct Payload {
    line: OnceLock<Bytes>,
    event: Option<Event>,
    cwd: Option<Arc<str>>,
    foreign: Option<Foreign>,
}

/// A foreign contract, and the hook that its payload names.
#[derive(Debug, Clone)]
struct Foreign {
    dialect: Arc<dyn Dialect>,
    hook: Option<(Arc<str>, String)>,
}

impl Payload {
    /// The payload of an event that happened in this working directory.
    pub fn new(event: Event, cwd: Arc<str>) -> Self {
        Self { line: OnceLock::new(), event: Some(event), cwd: Some(cwd), foreign: None }
    }

    /// The same event's, of another input.
    pub(crate) fn afresh(&self) -> Self {
        Self { line: OnceLock::new(), event: self.event, cwd: self.cwd.clone(), foreign: self.foreign.clone() }
    }

    /// The same event's in the words of a foreign contract; for this hook, where its payload names the hook.
    pub fn spoken(&self, dialect: &Arc<dyn Dialect>, hook: Option<(Arc<str>, String)>) -> Self {
        Self { foreign: Some(Foreign { dialect: dialect.clone(), hook }), ..self.afresh() }
    }

    /// The variables that a command is given for this event: [`VARIABLES`], and what its contract gives.
    pub fn environment(&self, input: &Input) -> Vec<(&'static str, String)> {
        let own = VARIABLES.iter().filter_map(|(name, of)| Some((*name, of(input)?.to_owned())));
        let mut all: Vec<(&'static str, String)> = own.collect();
        if let (Some(foreign), Some(event)) = (&self.foreign, self.event) {
            all.extend(foreign.dialect.environment(&foreign.occasion(event, &self.filled(input))));
        }
        // What a caller made up must not keep a guard from being started.
        all.retain(|(_, value)| !value.is_empty() && value.len() <= MAX_VARIABLE && !value.contains('\0'));
        all
    }

    /// One line of JSON, without its end. `schema_version`, `hook_event_name`, `cwd` and `timestamp` are filled in
    /// where the host left them out.
    pub fn line(&self, input: &Input) -> Result<Bytes, HandlerError> {
        if let Some(line) = self.line.get() {
            return Ok(line.clone());
        }
        let filled = self.filled(input);
        let line = match (&self.foreign, self.event) {
            (Some(foreign), Some(event)) => foreign.dialect.payload(&foreign.occasion(event, &filled)),
            _ => serde_json::to_vec(&filled),
        };
        let line = line
            .map_err(|error| HandlerError::new(FailureKind::HandlerError, format!("the input has no JSON: {error}")))?;
        Ok(self.line.get_or_init(|| line.into()).clone())
    }

    /// The same as a value.
    pub(crate) fn value(&self, input: &Input) -> Result<Value, HandlerError> {
        serde_json::to_value(self.filled(input))
            .map_err(|error| HandlerError::new(FailureKind::HandlerError, format!("the input has no JSON: {error}")))
    }

    fn filled<'a>(&self, input: &'a Input) -> Cow<'a, Input> {
        let Some(event) = self.event else { return Cow::Borrowed(input) };
        let mut filled = input.clone();
        filled.schema_version.get_or_insert(SCHEMA_VERSION);
        // A lane inside the engine shows itself under its public name, whatever the host calls it. Foreign contracts have
        // names of their own.
        if self.foreign.is_none() {
            filled.hook_event_name = Some(event.public_name().into());
        }
        filled.cwd = filled.cwd.filter(|cwd| !cwd.is_empty()).or_else(|| self.cwd.clone());
        filled.session_id.get_or_insert_default();
        filled.timestamp.get_or_insert_with(|| crate::time::now().into());
        Cow::Owned(filled)
    }
}

impl Foreign {
    fn occasion<'a>(&'a self, event: Event, input: &'a Input) -> Occasion<'a> {
        let hook = self.hook.as_ref().map(|(name, version)| HookName { name, version });
        Occasion { event, input, hook }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_the_session_and_nothing_that_would_keep_them_from_starting() {
        let payload = Payload::new(Event::Setup, "/".into());
        let variables = |id: &str| {
            let env_file = Some("/tmp/x.env".into());
            payload.environment(&Input { session_id: Some(id.into()), env_file, ..Input::default() })
        };
        let file = ("GATEHOOK_ENV_FILE", "/tmp/x.env".to_owned());
        assert_eq!(variables("s1"), [("GATEHOOK_SESSION_ID", "s1".to_owned()), file.clone()]);
        for id in ["", "a\0b", &"x".repeat(MAX_VARIABLE + 1)] {
            assert_eq!(variables(id), [file.clone()]);
        }
    }
}
