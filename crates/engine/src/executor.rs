//! The executor: hooks that were checked and compiled once, ready for events.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use gatehook_events::catalogue::CATALOGUE;
use gatehook_events::{Event, Input, Recorder, Rewritten, Trace, Verdict};
use tokio_util::sync::CancellationToken;

pub use crate::compiled::{BuildCause, BuildError};
use crate::compiled::{EventHooks, Fit, Hook};
use crate::definition::{HookDefinition, HooksConfig};
use crate::dispatch::{Dispatch, Hold};
use crate::handler::{Handler, HandlerEnv};
use crate::observers::Observers;
use crate::registry::Registry;
use crate::streaming::{Policy, Scan, Streaming};

/// Runs the hooks of a configuration on events. A clone is another handle of the same executor.
///
/// ```
/// use gatehook_engine::events::{Event, Input, Output};
/// use gatehook_engine::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig, Registry};
/// use tokio_util::sync::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::with_defaults();
/// registry.register_builtin("no_rm", |_context, input, _args| {
///     Ok((input.tool_name.as_deref() == Some("rm")).then(|| Output::block("rm is not for you")))
/// })?;
/// let hooks = vec![HookDefinition::builtin("no_rm", &[])];
/// let config = HooksConfig { groups: vec![HookGroup { event: Event::PreToolUse, matcher: "*".into(), hooks }] };
/// let executor = Executor::with_registry(config, HandlerEnv::current()?, &registry)?;
///
/// assert!(executor.has(Event::PreToolUse));
/// let input = Input { tool_name: Some("rm".into()), ..Input::default() };
/// let verdict = executor.dispatch(Event::PreToolUse, &input, &CancellationToken::new()).await;
/// assert!(!verdict.allowed);
/// assert_eq!(verdict.message, "rm is not for you");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Executor {
    inner: Arc<Inner>,
    recorder: Option<Arc<dyn Recorder>>,
}

/// Limits of an executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How many judging hooks of one dispatch run side by side. Default: twice the processors.
    pub max_concurrent_hooks: NonZeroUsize,
    /// How many events may wait for `async: true` hooks; beyond it they are dropped, counted and warned about.
    /// Default: 1024.
    pub observer_queue: NonZeroUsize,
}

impl Default for Options {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            max_concurrent_hooks: NonZeroUsize::MIN.saturating_add(processors * 2 - 1),
            observer_queue: NonZeroUsize::MIN.saturating_add(1023),
        }
    }
}

/// One hook in force, as `hooks list` shows it.
#[derive(Debug, Clone, Copy)]
pub struct HookInfo<'a> {
    /// Its event.
    pub event: Event,
    /// Its group's matcher.
    pub matcher: &'a str,
    /// The hook.
    pub definition: &'a HookDefinition,
    /// Its place among the hooks of its event, from 0.
    pub order: usize,
    /// How it is shown a streamed answer, with every default in its place.
    pub policy: Policy,
}

/// One hook that fits an input.
#[derive(Clone, Copy)]
pub struct Selected<'a> {
    /// The hook.
    pub definition: &'a HookDefinition,
    /// Its display name.
    pub name: &'a Arc<str>,
    handler: &'a dyn Handler,
}

impl<'a> Selected<'a> {
    fn of(hook: &'a Hook) -> Self {
        Self { definition: &hook.definition, name: &hook.name, handler: &*hook.handler }
    }

    /// What its handler does with a streamed answer.
    pub fn streams(&self) -> Streaming {
        self.handler.streams()
    }

    /// How it is shown a streamed answer, with every default in its place.
    pub fn policy(&self) -> Policy {
        Policy::of(self.definition, self.handler.streams())
    }

    /// A scan of one growing text, where its handler has one.
    pub fn scan(&self) -> Option<Box<dyn Scan>> {
        self.handler.scan()
    }
}

impl std::fmt::Debug for Selected<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Selected").field(self.name).finish()
    }
}

/// Which of the hooks that fit a host wants to run.
pub type Pick<'a> = dyn Fn(&Selected<'_>) -> bool + Send + Sync + 'a;

pub(crate) struct Inner {
    events: Vec<Option<Arc<EventHooks>>>,
    pub(crate) cwd: Arc<str>,
    pub(crate) options: Options,
    pub(crate) observers: Arc<Observers>,
}

impl Executor {
    /// An executor with the engine's own handlers and builtins.
    ///
    /// ```
    /// use gatehook_engine::config::{self, Format, ReadOptions};
    /// use gatehook_engine::events::{Decision, Event, Input};
    /// use gatehook_engine::{Executor, HandlerEnv};
    /// use tokio_util::sync::CancellationToken;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let text = r#"
    /// hooks:
    ///   tool_guard:
    ///     - matcher: shell
    ///       hooks:
    ///         - type: command
    ///           command: |
    ///             echo '{"hook_specific_output": {"permission_decision": "ask"}}'
    /// "#;
    /// let file = config::parse("policy.yaml", text, Format::Yaml, &ReadOptions::default())?;
    /// let executor = Executor::new(file.hooks, HandlerEnv::current()?)?;
    /// let input = Input { tool_name: Some("shell".into()), ..Input::default() };
    /// let verdict = executor.dispatch(Event::ToolGuard, &input, &CancellationToken::new()).await;
    /// assert_eq!((verdict.allowed, verdict.decision), (true, Some(Decision::Ask)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(config: HooksConfig, env: HandlerEnv) -> Result<Self, BuildError> {
        Self::with_registry(config, env, &Registry::with_defaults())
    }

    /// An executor with the handlers and builtins of a registry, as they stand now. Hooks that are
    /// [switched off](crate::HookDefinition::switched_off) are left out.
    pub fn with_registry(config: HooksConfig, env: HandlerEnv, registry: &Registry) -> Result<Self, BuildError> {
        Self::with_options(config, env, registry, Options::default())
    }

    /// An executor with limits of its own.
    pub fn with_options(
        config: HooksConfig,
        env: HandlerEnv,
        registry: &Registry,
        options: Options,
    ) -> Result<Self, BuildError> {
        let mut hooks: Vec<Vec<Hook>> = std::iter::repeat_with(Vec::new).take(Event::COUNT).collect();
        for group in config.groups {
            let matcher: Arc<str> = group.matcher.into();
            let Some(of_event) = hooks.get_mut(group.event as usize) else { continue };
            for definition in group.hooks.into_iter().filter(|hook| hook.switched_off.is_none()) {
                let (name, origin) = (definition.display_name().to_owned(), Box::new(definition.origin.clone()));
                let hook = Hook::compile(group.event, matcher.clone(), definition, &env, registry)
                    .map_err(|cause| BuildError { event: group.event, hook: name, origin, cause })?;
                of_event.push(hook);
            }
        }
        let events =
            CATALOGUE.iter().zip(hooks).map(|(spec, hooks)| EventHooks::compile(spec.event, hooks).map(shared));
        let inner = Inner {
            events: events.collect::<Result<_, _>>()?,
            cwd: env.working_dir.to_string_lossy().into(),
            observers: Arc::new(Observers::new(options.observer_queue)),
            options,
        };
        Ok(Self { inner: Arc::new(inner), recorder: None })
    }

    /// The hooks of this executor and behind them those of another, in one. Both stay as they are, and what a hook
    /// remembers it remembers in both. Limits, recorder, and the queue of hooks that nobody waits for are this one's.
    ///
    /// ```
    /// # use gatehook_engine::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig, events::Event};
    /// let executor = |event, name, args: &[&str]| {
    ///     let hooks = vec![HookDefinition::builtin(name, args)];
    ///     let groups = vec![HookGroup { event, matcher: "".into(), hooks }];
    ///     Executor::new(HooksConfig { groups }, HandlerEnv::current()?).map_err(Box::<dyn std::error::Error>::from)
    /// };
    /// let standing = executor(Event::TurnStart, "add_date", &[])?;
    /// let of_a_task = executor(Event::PreToolUse, "allow_tools", &["read"])?;
    /// let both = standing.joined(&of_a_task)?;
    /// assert!(both.has(Event::TurnStart) && both.has(Event::PreToolUse));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn joined(&self, others: &Executor) -> Result<Self, BuildError> {
        let pairs = CATALOGUE.iter().zip(self.inner.events.iter().zip(&others.inner.events));
        let events = pairs.map(|(spec, pair)| match pair {
            (Some(these), Some(those)) => these.joined(spec.event, those).map(shared),
            (these, those) => Ok(these.as_ref().or(those.as_ref()).cloned()),
        });
        let inner = Inner {
            events: events.collect::<Result<_, _>>()?,
            cwd: self.inner.cwd.clone(),
            options: self.inner.options,
            observers: self.inner.observers.clone(),
        };
        Ok(Self { inner: Arc::new(inner), recorder: self.recorder.clone() })
    }

    /// The same executor; what is dispatched by this handle of it, and its clones, is remembered. An event that no hook
    /// fits leaves no trace, and costs no more than without a recorder.
    #[must_use]
    pub fn recorded(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Whether any hook is configured for this event. A host that gets `false` need not build an input.
    ///
    /// ```
    /// # use gatehook_engine::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig, events::Event};
    /// let hooks = vec![HookDefinition::builtin("max_iterations", &["20"])];
    /// let config = HooksConfig { groups: vec![HookGroup { event: Event::BeforeLlmCall, matcher: "".into(), hooks }] };
    /// let executor = Executor::new(config, HandlerEnv::current()?)?;
    /// assert!(executor.has(Event::BeforeLlmCall));
    /// assert!(!executor.has(Event::AfterLlmCall));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn has(&self, event: Event) -> bool {
        self.inner.hooks(event).is_some()
    }

    /// Whether a hook of this event wants to be shown image data, so that the host has to bring it.
    pub fn wants_images(&self, event: Event) -> bool {
        self.inner.hooks(event).is_some_and(|hooks| hooks.hooks.iter().any(|hook| hook.definition.include_images))
    }

    /// All hooks, by event in catalogue order, and in configuration order within each.
    pub fn hooks(&self) -> impl Iterator<Item = HookInfo<'_>> {
        let events = CATALOGUE.iter().zip(&self.inner.events);
        events.filter_map(|(spec, hooks)| Some((spec.event, hooks.as_ref()?))).flat_map(|(event, hooks)| {
            hooks.hooks.iter().enumerate().map(move |(order, hook)| HookInfo {
                event,
                matcher: &hook.matcher,
                definition: &hook.definition,
                order,
                policy: Policy::of(&hook.definition, hook.handler.streams()),
            })
        })
    }

    /// Runs the hooks that fit, and folds what they answer into one verdict.
    ///
    /// ```
    /// # use gatehook_engine::events::{Event, Input, Output};
    /// # use gatehook_engine::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig, Registry};
    /// # use tokio_util::sync::CancellationToken;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let registry = Registry::new();
    /// registry.register_builtin("today", |context, _input, _args| {
    ///     Ok(Some(Output::additional_context(context.event, "it is Monday")))
    /// })?;
    /// # let hooks = vec![HookDefinition::builtin("today", &[])];
    /// # let config = HooksConfig { groups: vec![HookGroup { event: Event::TurnStart, matcher: "".into(), hooks }] };
    /// # let executor = Executor::with_registry(config, HandlerEnv::current()?, &registry)?;
    /// let verdict = executor.dispatch(Event::TurnStart, &Input::default(), &CancellationToken::new()).await;
    /// assert_eq!(verdict.additional_context, "it is Monday");
    /// assert_eq!(&*verdict.outcomes[0].name, "today");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// With no hook for the event it returns at once and allocates nothing. On `cancel` the hooks that still run end
    /// with [`FailureKind::Cancelled`](gatehook_events::FailureKind::Cancelled); so does an expired deadline of the
    /// caller, who cancels the token. Dropping the future leaves nothing behind.
    pub fn dispatch<'a>(
        &'a self,
        event: Event,
        input: &'a Input,
        cancel: &'a CancellationToken,
    ) -> impl Future<Output = Verdict> + Send + 'a {
        // Not a future around a future: each would move the verdict once more.
        self.dispatch_held(event, input, cancel, &holds_all)
    }

    /// The same for a host that cannot make every rewrite: `hold` is shown all rewrites up to and including a hook's
    /// own, and says why they cannot be held. Such a rewrite is not made. On the inference events it refuses, as
    /// [`Verb::ModifyUnsupported`](gatehook_events::Verb::ModifyUnsupported); elsewhere it is that hook's failure.
    ///
    /// ```
    /// # use gatehook_engine::events::{Event, Input, Message, Output, Permission, Verb};
    /// # use gatehook_engine::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig, Registry};
    /// # use tokio_util::sync::CancellationToken;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let registry = Registry::new();
    /// registry.register_builtin("twice", |_context, _input, _args| {
    ///     let messages = Some(vec![Message::new("user", "hi"), Message::new("user", "hi")]);
    ///     Ok(Some(Output { permission: Some(Permission::Modify), messages, ..Output::default() }))
    /// })?;
    /// # let hooks = vec![HookDefinition::builtin("twice", &[])];
    /// # let config = HooksConfig { groups: vec![HookGroup { event: Event::PreInference, matcher: "".into(), hooks }] };
    /// # let executor = Executor::with_registry(config, HandlerEnv::current()?, &registry)?;
    /// let one_message = |rewritten: &gatehook_engine::events::Rewritten| match rewritten.messages.as_deref() {
    ///     Some([_, _, ..]) => Err("this route takes one message".to_owned()),
    ///     _ => Ok(()),
    /// };
    /// let cancel = CancellationToken::new();
    /// let verdict = executor.dispatch_held(Event::PreInference, &Input::default(), &cancel, &one_message).await;
    /// assert_eq!(verdict.verb, Verb::ModifyUnsupported);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dispatch_held<'a>(
        &'a self,
        event: Event,
        input: &'a Input,
        cancel: &'a CancellationToken,
        hold: &'a Hold<'a>,
    ) -> impl Future<Output = Verdict> + Send + 'a {
        self.dispatch_some(event, input, cancel, hold, &|_| true)
    }

    /// The hooks that [`dispatch`](Self::dispatch) would run on this input, in configuration order, each definition
    /// once. A host learns from it how a streamed answer is to be held, before there is one.
    ///
    /// ```
    /// # use gatehook_engine::events::{Event, Input};
    /// # use gatehook_engine::{Executor, HandlerEnv, HookDefinition, HookGroup, HooksConfig, Held};
    /// let hooks = vec![HookDefinition::builtin("allow_tools", &["read_file"])];
    /// let config = HooksConfig { groups: vec![HookGroup { event: Event::PostInference, matcher: "".into(), hooks }] };
    /// let executor = Executor::new(config, HandlerEnv::current()?)?;
    /// let selected = executor.selected(Event::PostInference, &Input::default());
    /// assert_eq!(selected[0].policy().text, Held::Scan);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn selected(&self, event: Event, input: &Input) -> Vec<Selected<'_>> {
        let Some(hooks) = self.inner.hooks(event) else { return Vec::new() };
        hooks.select(input).into_iter().map(|hook| Selected::of(hook)).collect()
    }

    /// [`dispatch_held`](Self::dispatch_held) over the hooks that `pick` wants, out of those that fit. The others leave
    /// no trace in the verdict.
    pub async fn dispatch_some(
        &self,
        event: Event,
        input: &Input,
        cancel: &CancellationToken,
        hold: &Hold<'_>,
        pick: &Pick<'_>,
    ) -> Verdict {
        let Some(hooks) = self.inner.hooks(event) else { return Verdict::allow() };
        let mut selected = hooks.select(input);
        selected.retain(|hook| pick(&Selected::of(hook)));
        if selected.is_empty() {
            return Verdict::allow();
        }
        let start = self.recorder.as_deref().map(|recorder| (recorder, SystemTime::now(), Instant::now()));
        let verdict = Box::pin(Dispatch { inner: &self.inner, event, hooks, cancel, hold }.run(selected, input)).await;
        if let Some((recorder, time, start)) = start {
            recorder.record(Trace::of(event, input, &verdict, time, start.elapsed()));
        }
        verdict
    }

    /// Which hooks of an event [`dispatch`](Self::dispatch) would run on this input, in configuration order, and why it
    /// would not run the others.
    ///
    /// ```
    /// # use gatehook_engine::events::{Event, Input};
    /// # use gatehook_engine::{Executor, Fit, HandlerEnv, HookDefinition, HookGroup, HooksConfig};
    /// let hooks = vec![HookDefinition::builtin("redact_secrets", &[])];
    /// let config = HooksConfig { groups: vec![HookGroup { event: Event::PreToolUse, matcher: "bash".into(), hooks }] };
    /// let executor = Executor::new(config, HandlerEnv::current()?)?;
    /// let input = Input { tool_name: Some("read_file".into()), ..Input::default() };
    /// let (_, fit) = &executor.explain(Event::PreToolUse, &input)[0];
    /// assert_eq!(*fit, Fit::Matcher);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self, event: Event, input: &Input) -> Vec<(HookInfo<'_>, Fit)> {
        let fits = self.inner.hooks(event).map(|hooks| hooks.explain(input)).unwrap_or_default();
        self.hooks().filter(|hook| hook.event == event).zip(fits).collect()
    }

    /// Whether the hooks of a dispatch of these run one after another, because one of them may rewrite what the next sees.
    pub fn runs_in_turn(&self, event: Event, input: &Input) -> bool {
        let turn =
            |hooks: &EventHooks| hooks.sequential && !hooks.select(input).iter().all(|hook| hook.definition.concurrent);
        self.inner.hooks(event).is_some_and(turn)
    }

    /// Shows an event to the hooks that `pick` wants, out of those that fit, as `async: true` hooks are shown theirs: in
    /// the background, one after another from a bounded queue. Nobody waits for them, and they decide nothing.
    pub fn observe(&self, event: Event, input: &Input, pick: &Pick<'_>) {
        let Some(hooks) = self.inner.hooks(event) else { return };
        for hook in hooks.select(input).into_iter().filter(|hook| pick(&Selected::of(hook))) {
            self.inner.observers.push(hook, event, input, &self.inner.cwd);
        }
    }

    /// How many events hooks in the background have missed because their queue was full.
    pub fn dropped_observations(&self) -> u64 {
        self.inner.observers.dropped()
    }

    /// Waits for hooks in the background that still have events to see, but no longer than `grace`; what still runs then
    /// is cancelled. Events that come later are dropped and counted. An executor that is dropped undrained cancels them
    /// at once.
    pub async fn drain(&self, grace: Duration) {
        self.inner.observers.drain(grace).await;
    }
}

fn shared(hooks: Option<EventHooks>) -> Option<Arc<EventHooks>> {
    hooks.map(Arc::new)
}

fn holds_all(_: &Rewritten) -> Result<(), String> {
    Ok(())
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.hooks()).finish()
    }
}

impl Inner {
    fn hooks(&self, event: Event) -> Option<&EventHooks> {
        self.events.get(event as usize)?.as_deref()
    }
}
