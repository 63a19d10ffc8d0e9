//! A hook as it was configured and checked: what runs, when, and what its failure means.

mod confinement;
mod webhook;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gatehook_events::{Event, Profile};
use serde_json::{Map, Value};

pub use confinement::{Confinement, Sandbox};
pub use webhook::{Contract, Mapping, ReplyRules, RewriteFrom, Rule, Test, WebhookDefinition};

use crate::trust::Seal;

/// All hooks in force, in configuration order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HooksConfig {
    /// Groups of hooks, in the order of their files and places.
    pub groups: Vec<HookGroup>,
}

/// Hooks that share an event and a matcher.
#[derive(Debug, Clone, PartialEq)]
pub struct HookGroup {
    /// The event. A group marked `preempt_yolo: true` has [`Event::PreToolUsePreempt`].
    pub event: Event,
    /// A regular expression over the event's subject, anchored at both ends; empty and `*` select everything.
    pub matcher: String,
    /// The hooks.
    pub hooks: Vec<HookDefinition>,
}

/// One hook. Two definitions are equal when everything but their origin is.
#[derive(Debug, Clone)]
pub struct HookDefinition {
    /// A label for people; see [`HookDefinition::display_name`].
    pub name: Option<String>,
    /// The version that its file gives it, which some contracts tell it.
    pub version: Option<String>,
    /// The contract it was written for.
    pub profile: Profile,
    /// What runs.
    pub handler: HandlerDefinition,
    /// How long it may take; `None` is the profile's default.
    pub timeout: Option<Duration>,
    /// Extra or overriding variables, as they are: `${env.NAME}` in values has been expanded at load (v1.58 has none).
    pub env: BTreeMap<String, String>,
    /// What it inherits of the host's environment.
    pub env_policy: EnvPolicy,
    /// What its processes may do and use.
    pub confinement: Confinement,
    /// Its working directory as written; `None` is the executor's. A relative one is joined to the executor's, and
    /// docker-agent's `~`, `$V`, `${V}` and `${env.V}` are for the executor to expand.
    pub working_dir: Option<String>,
    /// What its failure means; `None` is the profile's default.
    pub on_error: Option<OnError>,
    /// Unknown fields, and fields the event does not honour, are failures.
    pub strict_output: bool,
    /// Nobody waits for it, and it decides nothing.
    pub observer: bool,
    /// It runs only where all of these hold.
    pub when: Vec<Condition>,
    /// How its `updated_input` is applied.
    pub patch: Patch,
    /// Image data is shown to it, not only its fingerprint.
    pub include_images: bool,
    /// How a streamed answer is shown to it; `None` is what its handler does.
    pub stream: Option<Stream>,
    /// The model is asked while it judges, and answers to nobody before: it cannot rewrite.
    pub concurrent: bool,
    /// What it has judged before is not shown to it again.
    pub cache: Option<Cache>,
    /// Fields that mean nothing to its type, as in `prompt` on a command, and variables as they are written where they
    /// refer to others. docker-agent takes them, and tells hooks apart by them; native hooks have none.
    pub ignored: Map<String, Value>,
    /// What switches it off, as in `OLLAMA_HOOKS_ENABLED`: such a hook is there to be looked at, and never runs.
    pub switched_off: Option<Arc<str>>,
    /// The hook as it is written in its file, which is what its owner approves: a hook that needs an approval is not in
    /// force without it.
    pub written: Option<Arc<Value>>,
    /// What must still hold when it runs, for a hook that somebody had to approve; see [`trust`](crate::trust).
    pub seal: Option<Seal>,
    /// Where it was configured.
    pub origin: Origin,
}

impl HooksConfig {
    /// Adds another source's hooks behind these: sources are read in falling order of authority.
    pub fn append(&mut self, other: HooksConfig) {
        self.groups.extend(other.groups);
    }

    /// Whether there is no hook.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.hooks.is_empty())
    }

    /// All hooks.
    pub fn hooks_mut(&mut self) -> impl Iterator<Item = &mut HookDefinition> {
        self.groups.iter_mut().flat_map(|group| &mut group.hooks)
    }
}

/// What runs a hook.
#[derive(Debug, Clone, PartialEq)]
pub enum HandlerDefinition {
    /// A process.
    Command(CommandDefinition),
    /// A process that lives on, and answers one event after another.
    Worker(WorkerDefinition),
    /// A Python function.
    Python(PythonDefinition),
    /// An HTTP request.
    Webhook(WebhookDefinition),
    /// A function of the engine or of its embedder.
    Builtin {
        /// Its name in the registry.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// A model that judges.
    Model(ModelDefinition),
    /// A type that an embedder registered, or that a later version knows, with its fields as they stand.
    Other {
        /// As in `model`.
        kind: String,
        /// All fields that are not common to all hooks.
        fields: Map<String, Value>,
    },
}

/// A process for each event.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandDefinition {
    /// A shell line; where `shell` is off, the program's absolute path, resolved at load.
    pub command: String,
    /// The program's arguments, without a shell. docker-agent's command hooks ignore theirs.
    pub args: Vec<String>,
    /// Run `command` by the profile's shell.
    pub shell: bool,
}

/// A model that is asked about each event.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelDefinition {
    /// As in `provider/name`; what it means is its [`ModelClient`](crate::handlers::model::ModelClient)'s to say.
    pub model: String,
    /// A [template](crate::template) over the input.
    pub prompt: String,
    /// The name of the reply's shape; empty for plain text.
    pub schema: String,
}

/// A process that reads a line and writes a line for each event.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerDefinition {
    /// What is started.
    pub command: CommandDefinition,
    /// How many such processes there may be.
    pub workers: NonZeroUsize,
    /// How many events one of them is given before it has answered the first.
    pub max_in_flight: NonZeroUsize,
    /// How long one may stand idle; zero is for ever.
    pub idle_timeout: Duration,
}

impl WorkerDefinition {
    /// Default of `idle_timeout`.
    pub const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

    /// One process, one event at a time.
    pub fn new(command: CommandDefinition) -> Self {
        let one = NonZeroUsize::MIN;
        Self { command, workers: one, max_in_flight: one, idle_timeout: Self::IDLE_TIMEOUT }
    }
}

/// A Python function that is called with each event.
#[derive(Debug, Clone, PartialEq)]
pub struct PythonDefinition {
    /// `package.module`, or a file's path as in `.gatehook/guard.py`. Without `function`, `package.module.function`.
    pub module: String,
    /// The function's name in it.
    pub function: Option<String>,
    /// The interpreter, a name or a path; `None` is that of `VIRTUAL_ENV`, else `python3` on `PATH`.
    pub python: Option<String>,
    /// How many interpreters there may be.
    pub workers: NonZeroUsize,
    /// How long one may stand idle; zero is for ever.
    pub idle_timeout: Duration,
}

impl PythonDefinition {
    /// A function of a module, with up to two interpreters, no more than there are processors.
    pub fn new(module: &str, function: Option<&str>) -> Self {
        let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self {
            module: module.to_owned(),
            function: function.map(str::to_owned),
            python: None,
            workers: processors.min(NonZeroUsize::MIN.saturating_add(1)),
            idle_timeout: WorkerDefinition::IDLE_TIMEOUT,
        }
    }
}

/// What the failure of a hook means.
///
/// ```
/// # use gatehook_engine::events::{Event, Input};
/// # use gatehook_engine::handler::HandlerError;
/// # use gatehook_engine::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig, OnError, Registry};
/// # use tokio_util::sync::CancellationToken;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let registry = Registry::new();
/// # registry.register_builtin("broken", |_context, _input, _args| {
/// #     Err(HandlerError::new(gatehook_engine::events::FailureKind::HandlerError, "it is broken"))
/// # })?;
/// for (on_error, allowed) in [(None, false), (Some(OnError::Block), false), (Some(OnError::Warn), true)] {
///     let hook = HookDefinition { on_error, ..HookDefinition::builtin("broken", &[]) };
///     # let group = HookGroup { event: Event::UserPromptSubmit, matcher: "".into(), hooks: vec![hook] };
///     # let config = HooksConfig { groups: vec![group] };
///     # let executor = Executor::with_registry(config, HandlerEnv::current()?, &registry)?;
///     let verdict = executor.dispatch(Event::UserPromptSubmit, &Input::default(), &CancellationToken::new()).await;
///     assert_eq!(verdict.allowed, allowed);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// A notice for the user.
    Warn,
    /// Nothing.
    Ignore,
    /// What it guards is blocked.
    Block,
}

/// How `updated_input` is applied to a tool's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patch {
    /// Its keys are copied over the top level.
    #[default]
    TopLevel,
    /// RFC 7386.
    MergePatch,
}

/// What a hook inherits of the host's environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EnvPolicy {
    /// All of it.
    #[default]
    Inherit,
    /// `PATH`, `HOME`, `USER`, `LANG`, `LC_*`, `TZ`, `TMPDIR`, `VIRTUAL_ENV` and the profile's own.
    Minimal,
    /// These names alone.
    Only(Vec<String>),
}

/// How a streamed answer is shown to a hook, as it is written; [`Policy`](crate::streaming::Policy) has the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// What is held.
    pub mode: StreamMode,
    /// What of the thinking is held; `None` is `mode`.
    pub thinking: Option<StreamMode>,
    /// Whether tool calls are held.
    pub tool_calls: ToolCalls,
    /// New bytes that make a window due.
    pub size: Option<usize>,
    /// How long the first byte of a window may wait for it to fill.
    pub max_wait: Option<Duration>,
    /// Bytes of what has left that are shown before a window; less than `size`.
    pub overlap: Option<usize>,
    /// Characters at the end of a window that stay held for the next.
    pub holdback: Option<usize>,
}

impl Stream {
    /// All of a stream by one mode.
    pub fn new(mode: StreamMode) -> Self {
        let tool_calls = ToolCalls::Hold;
        Self { mode, thinking: None, tool_calls, size: None, max_wait: None, overlap: None, holdback: None }
    }
}

/// What of a streamed answer is held until a hook has judged it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamMode {
    /// All of it.
    Buffer,
    /// A window that moves over it.
    Window,
    /// Nothing; the hook sees it at the end.
    Observe,
}

/// Whether the tool calls of a streamed answer are held until a hook has judged them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCalls {
    /// Each until it is complete and judged, also where text flows freely.
    Hold,
    /// They are not.
    Pass,
}

/// What a hook need not see again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Messages, and tool results, that it has let pass: each is judged by itself, whatever stands around it.
    Content,
}

/// A field of the input must match. A field that is missing makes the hook run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// As in `tool_input.path`, `agent`, `model`, `route`, `key`, `plane`.
    pub field: String,
    /// Anchored at both ends.
    pub pattern: String,
}

/// Where a hook was configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// Who answers for it.
    pub source: Source,
    /// Its file; `None` for the environment, flags and embedders.
    pub file: Option<Arc<PathBuf>>,
    /// The line in that file, from 1; 0 where there is none.
    pub line: usize,
    /// The agent that it belongs to; `None` for all of them.
    pub agent: Option<Arc<str>>,
    /// The skill that it came with: it is in force while an agent follows that skill, and at no other time.
    pub skill: Option<Arc<str>>,
}

/// Who answers for a hook, in falling order of authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Source {
    /// The machine's administrator.
    Managed,
    /// The user: files of the home directory, `--config`, environment, flags, an embedder.
    #[default]
    User,
    /// The program that runs the hooks.
    Builtin,
    /// The folder somebody works in; hostile until trusted.
    Workspace,
    /// A folder with a manifest, which somebody put there to be used.
    Extension,
    /// What came from elsewhere.
    Downloaded,
}

/// Sources by their names, in falling order of authority.
pub const SOURCES: [(&str, Source); 6] = [
    ("managed", Source::Managed),
    ("user", Source::User),
    ("builtin", Source::Builtin),
    ("workspace", Source::Workspace),
    ("extension", Source::Extension),
    ("downloaded", Source::Downloaded),
];

impl Source {
    /// As in `workspace`.
    pub fn name(self) -> &'static str {
        SOURCES.iter().find(|(_, source)| *source == self).map_or("", |(name, _)| name)
    }

    /// Whether its hooks are in force only with their owner's approval.
    pub fn needs_approval(self) -> bool {
        self >= Source::Workspace
    }
}

impl HookDefinition {
    /// A hook that leaves all but its handler to its profile.
    ///
    /// ```
    /// # use gatehook_engine::{HandlerDefinition, HookDefinition};
    /// # use gatehook_events::Profile;
    /// let builtin = HandlerDefinition::Builtin { command: "redact_secrets".into(), args: vec![] };
    /// let hook = HookDefinition { strict_output: true, ..HookDefinition::new(Profile::Native, builtin) };
    /// assert_eq!(hook.display_name(), "redact_secrets");
    /// ```
    pub fn new(profile: Profile, handler: HandlerDefinition) -> Self {
        Self {
            name: None,
            version: None,
            profile,
            handler,
            timeout: None,
            env: BTreeMap::new(),
            env_policy: EnvPolicy::default(),
            confinement: Confinement::default(),
            working_dir: None,
            on_error: None,
            strict_output: false,
            observer: false,
            when: Vec::new(),
            patch: Patch::default(),
            include_images: false,
            stream: None,
            concurrent: false,
            cache: None,
            ignored: Map::new(),
            switched_off: None,
            written: None,
            seal: None,
            origin: Origin::default(),
        }
    }

    /// A native hook that runs a builtin.
    pub fn builtin(name: &str, args: &[&str]) -> Self {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        Self::new(Profile::Native, HandlerDefinition::Builtin { command: name.to_owned(), args })
    }

    /// Switches it off, where nothing does yet. What the administrator put into force stays.
    pub fn switch_off(&mut self, by: &str) {
        if self.origin.source != Source::Managed {
            self.switched_off.get_or_insert_with(|| by.into());
        }
    }

    /// Its name, else its command or address without credentials, else its type.
    pub fn display_name(&self) -> &str {
        if let Some(name) = self.name.as_deref().filter(|name| !name.is_empty()) {
            return name;
        }
        match &self.handler {
            HandlerDefinition::Builtin { command, .. } if !command.is_empty() => command,
            handler => handler.kind(),
        }
    }

    /// How long it may take.
    pub fn timeout(&self) -> Duration {
        let spec = self.profile.spec();
        let default = if self.handler.kind() == "model" { spec.judge_timeout_secs } else { spec.timeout_secs };
        self.timeout.filter(|timeout| !timeout.is_zero()).unwrap_or(Duration::from_secs(default))
    }
}

impl PartialEq for HookDefinition {
    fn eq(&self, other: &Self) -> bool {
        // All fields by name: a new one must be considered here.
        let Self {
            name,
            version,
            profile,
            handler,
            timeout,
            env,
            env_policy,
            confinement,
            working_dir,
            on_error,
            strict_output,
            observer,
            when,
            patch,
            include_images,
            stream,
            concurrent,
            cache,
            ignored,
            switched_off,
            written: _,
            seal: _,
            origin: _,
        } = self;
        *name == other.name
            && *version == other.version
            && *profile == other.profile
            && *handler == other.handler
            && *timeout == other.timeout
            && *env == other.env
            && *env_policy == other.env_policy
            && *confinement == other.confinement
            && *working_dir == other.working_dir
            && *on_error == other.on_error
            && *strict_output == other.strict_output
            && *observer == other.observer
            && *when == other.when
            && *patch == other.patch
            && *include_images == other.include_images
            && *stream == other.stream
            && *concurrent == other.concurrent
            && *cache == other.cache
            && *ignored == other.ignored
            && *switched_off == other.switched_off
    }
}

impl HandlerDefinition {
    /// The program or shell line that runs, of those that have one.
    pub fn command(&self) -> Option<&CommandDefinition> {
        match self {
            HandlerDefinition::Command(command) => Some(command),
            HandlerDefinition::Worker(worker) => Some(&worker.command),
            _ => None,
        }
    }

    /// As in `command`.
    pub fn kind(&self) -> &str {
        match self {
            HandlerDefinition::Command(_) => "command",
            HandlerDefinition::Worker(_) => "worker",
            HandlerDefinition::Python(_) => "python",
            HandlerDefinition::Webhook(_) => "webhook",
            HandlerDefinition::Builtin { .. } => "builtin",
            HandlerDefinition::Model(_) => "model",
            HandlerDefinition::Other { kind, .. } => kind,
        }
    }
}
