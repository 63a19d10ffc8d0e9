//! Hooks, checked and compiled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gatehook_events::{Capabilities, Dialect, Event, Input, Profile, Rewrite};

use crate::config::fields::PROCESSES;
use crate::content::Recall;
use crate::definition::{HandlerDefinition, HookDefinition, Origin};
use crate::find::{Find, Others};
use crate::handler::{DefinitionError, Handler, HandlerEnv};
use crate::identity::first_equal;
use crate::matcher::{CompiledCondition, Matchers, PatternError, Rule};
use crate::registry::Registry;
use crate::trust::{Seal, sealed};
use crate::unrunnable::Unrunnable;

/// A configuration that cannot be put into force.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event} hook \"{hook}\": {cause}", event = event.name())]
pub struct BuildError {
    /// The hook's event.
    pub event: Event,
    /// The hook's display name; empty where several hooks are at fault together.
    pub hook: String,
    /// Where it was configured.
    pub origin: Box<Origin>,
    /// What is wrong.
    #[source]
    pub cause: BuildCause,
}

/// What is wrong with a hook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildCause {
    /// Its profile has no such event.
    #[error("the profile `{0}` has no such event")]
    NoSuchEvent(&'static str),
    /// Nobody registered its foreign contract.
    #[error("nobody here speaks the dialect `{0}`")]
    NoDialect(&'static str),
    /// Its matcher or one of its conditions is no pattern.
    #[error(transparent)]
    Pattern(PatternError),
    /// Its handler refused the definition.
    #[error(transparent)]
    Definition(DefinitionError),
    /// Nobody registered its handler type.
    #[error("there is no handler type `{0}`")]
    UnknownType(String),
    /// Nobody registered its builtin.
    #[error("there is no builtin `{0}`")]
    UnknownBuiltin(String),
    /// A builtin hook names no builtin.
    #[error("a builtin hook needs `command`, the builtin's name")]
    BuiltinNameMissing,
}

/// A hook, compiled.
pub(crate) struct Hook {
    pub(crate) definition: HookDefinition,
    pub(crate) name: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) capabilities: Capabilities,
    pub(crate) timeout: Duration,
    pub(crate) handler: Arc<dyn Handler>,
    /// How to speak with it, where its profile is a foreign contract.
    pub(crate) dialect: Option<Arc<dyn Dialect>>,
    pub(crate) matcher: Arc<str>,
    /// What it has judged before.
    pub(crate) recall: Option<Arc<Recall>>,
    /// The others of its event that redact.
    pub(crate) others: Others,
    conditions: Vec<CompiledCondition>,
    /// The first hook of this event that is the same.
    same_as: usize,
    /// It was said that this hook fails and is passed over.
    pub(crate) has_warned: AtomicBool,
}

/// Whether a hook would run on an input, and if not why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// It would run.
    Runs,
    /// Its matcher does not fit.
    Matcher,
    /// Its condition over this field does not hold.
    Condition(String),
    /// It is the same hook as an earlier one of its event, by place from 0, and runs once.
    Duplicate(usize),
}

/// The hooks of one event.
pub(crate) struct EventHooks {
    pub(crate) hooks: Vec<Arc<Hook>>,
    matchers: Matchers,
    /// Hooks see each other's rewrites, or their profile wants it so: they run one after another.
    pub(crate) sequential: bool,
    /// All hooks are of a profile whose rewrites replace instead of patching.
    pub(crate) replaces: bool,
}

impl Hook {
    pub(crate) fn compile(
        event: Event,
        matcher: Arc<str>,
        definition: HookDefinition,
        env: &HandlerEnv,
        registry: &Registry,
    ) -> Result<Self, BuildCause> {
        let profile = definition.profile;
        let capabilities = event.capabilities(profile).ok_or(BuildCause::NoSuchEvent(profile.name()))?;
        let dialect = registry.dialect(profile).filter(|_| profile.spec().is_foreign);
        if profile.spec().is_foreign && dialect.is_none() {
            return Err(BuildCause::NoDialect(profile.name()));
        }
        let handler = sealed(handler(&definition, env, registry)?, definition.seal.as_ref());
        let conditions = definition.when.iter().map(|when| CompiledCondition::compile(&when.field, &when.pattern));
        Ok(Self {
            name: definition.display_name().into(),
            kind: definition.handler.kind().into(),
            capabilities,
            timeout: definition.timeout(),
            conditions: conditions.collect::<Result<_, _>>().map_err(BuildCause::Pattern)?,
            recall: Recall::of(event, &definition, &*handler).map(Arc::new),
            others: Others::default(),
            handler,
            dialect,
            matcher,
            definition,
            same_as: 0,
            has_warned: AtomicBool::new(false),
        })
    }

    /// The same hook, with what it remembers, to stand among others.
    fn again(&self) -> Self {
        Self {
            definition: self.definition.clone(),
            name: self.name.clone(),
            kind: self.kind.clone(),
            capabilities: self.capabilities,
            timeout: self.timeout,
            handler: self.handler.clone(),
            dialect: self.dialect.clone(),
            matcher: self.matcher.clone(),
            recall: self.recall.clone(),
            others: Others::default(),
            conditions: self.conditions.clone(),
            same_as: 0,
            has_warned: AtomicBool::new(self.has_warned.load(Ordering::Relaxed)),
        }
    }

    /// What it finds, where it may put something else in the place of it.
    fn finds(&self) -> Option<Arc<dyn Find>> {
        let rewrites = !self.definition.observer && !self.definition.concurrent;
        rewrites.then(|| self.handler.finds()).flatten()
    }

    /// What its matcher is held against, and how.
    fn rule(&self, event: Event) -> Rule<'_> {
        let profile = self.definition.profile;
        Rule {
            matcher: &self.matcher,
            subject: profile.subject(event),
            matching: profile.spec().matching,
            tool_names: self.dialect.as_ref().map_or(&[], |dialect| dialect.tool_names()),
        }
    }

    /// Whether this hook's rewrites are seen by the hooks after it.
    fn chains(&self) -> bool {
        self.capabilities.rewrites.is_some_and(|what| what != Rewrite::Summary)
            && !self.definition.profile.spec().first_rewrite_wins
    }
}

/// The handler of a definition. docker-agent finds out that there is none when the hook should run, natively it is an
/// error at load.
fn handler(definition: &HookDefinition, env: &HandlerEnv, registry: &Registry) -> Result<Arc<dyn Handler>, BuildCause> {
    if let Some(why) = definition.seal.as_ref().and_then(Seal::absence) {
        return Ok(Arc::new(Unrunnable::not_trusted(why)));
    }
    let found = match &definition.handler {
        HandlerDefinition::Builtin { command, .. } if command.is_empty() => Err(BuildCause::BuiltinNameMissing),
        HandlerDefinition::Builtin { command, .. } => {
            registry.lookup_builtin(command).ok_or_else(|| BuildCause::UnknownBuiltin(command.clone()))
        }
        other => registry.lookup(other.kind()).ok_or_else(|| BuildCause::UnknownType(other.kind().to_owned())),
    };
    let runs_no_process = !PROCESSES.contains(&definition.handler.kind());
    if runs_no_process
        && !matches!(definition.handler, HandlerDefinition::Other { .. })
        && !definition.confinement.is_none()
    {
        return Err(BuildCause::Definition(DefinitionError {
            field: "type",
            message: "it runs no process, and bounds of one would hold nothing".to_owned(),
            help: Some("they belong to `command`, `worker` and `python` hooks".to_owned()),
        }));
    }
    match found {
        Ok(factory) => factory.create(definition, env).map_err(BuildCause::Definition),
        Err(cause) if definition.profile == Profile::Native => Err(cause),
        Err(cause) => Ok(Arc::new(Unrunnable::new(&cause))),
    }
}

impl EventHooks {
    pub(crate) fn compile(event: Event, mut hooks: Vec<Hook>) -> Result<Option<Self>, BuildError> {
        if hooks.is_empty() {
            return Ok(None);
        }
        let same_as = first_equal(hooks.iter().map(|hook| &hook.definition));
        hooks.iter_mut().zip(same_as).for_each(|(hook, same_as)| hook.same_as = same_as);
        let finders: Vec<_> = hooks.iter().map(Hook::finds).collect();
        for (place, hook) in hooks.iter_mut().enumerate() {
            hook.others = Others::around(&finders, place);
        }
        let rules = hooks.iter().map(|hook| hook.rule(event));
        let matchers = Matchers::compile(&rules.collect::<Vec<_>>()).map_err(|(at, error)| {
            let hook = hooks.get(at);
            BuildError {
                event,
                hook: hook.map(|hook| hook.name.to_string()).unwrap_or_default(),
                origin: hook.map(|hook| Box::new(hook.definition.origin.clone())).unwrap_or_default(),
                cause: BuildCause::Pattern(error),
            }
        })?;
        Ok(Some(Self {
            matchers,
            sequential: hooks.iter().any(|hook| hook.chains() || hook.definition.profile.spec().sequential),
            replaces: hooks.iter().all(|hook| hook.definition.profile.spec().first_rewrite_wins),
            hooks: hooks.into_iter().map(Arc::new).collect(),
        }))
    }

    /// These, and others of the same event behind them.
    pub(crate) fn joined(&self, event: Event, others: &Self) -> Result<Option<Self>, BuildError> {
        Self::compile(event, self.hooks.iter().chain(&others.hooks).map(|hook| hook.again()).collect())
    }

    /// The hooks that fit an input, each definition once, in configuration order.
    pub(crate) fn select(&self, input: &Input) -> Vec<&Arc<Hook>> {
        let mut selected: Vec<&Arc<Hook>> = Vec::new();
        for &number in self.matchers.select(input).iter() {
            let Some(hook) = self.hooks.get(number) else { continue };
            let again = hook.same_as != number && selected.iter().any(|earlier| earlier.same_as == hook.same_as);
            if !again && hook.conditions.iter().all(|condition| condition.holds(input)) {
                selected.push(hook);
            }
        }
        selected
    }

    /// Whether each hook fits an input, in configuration order.
    pub(crate) fn explain(&self, input: &Input) -> Vec<Fit> {
        let matching = self.matchers.select(input);
        let selected = self.select(input);
        let runs = |hook: &Arc<Hook>| selected.iter().any(|running| Arc::ptr_eq(running, hook));
        let is_first = |first: &Arc<Hook>, hook: &Hook| first.same_as == hook.same_as && runs(first);
        let fit = |(number, hook): (usize, &Arc<Hook>)| {
            if runs(hook) {
                return Fit::Runs;
            }
            if !matching.contains(&number) {
                return Fit::Matcher;
            }
            match hook.definition.when.iter().zip(&hook.conditions).find(|(_, condition)| !condition.holds(input)) {
                Some((when, _)) => Fit::Condition(when.field.clone()),
                None => Fit::Duplicate(self.hooks.iter().position(|first| is_first(first, hook)).unwrap_or(number)),
            }
        };
        self.hooks.iter().enumerate().map(fit).collect()
    }
}
