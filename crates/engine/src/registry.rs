//! Which handler types and which builtins there are.
//!
//! A registry is a value: an embedder makes one, adds to it and hands it to
//! [`Executor::with_registry`](crate::Executor::with_registry). There is no process-wide one.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};

use gatehook_events::{Dialect, Event, Input, Output, Profile};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::builtins;
use crate::definition::{HandlerDefinition, HookDefinition};
use crate::handler::{DefinitionError, Handler, HandlerEnv, HandlerError, HandlerFactory, HookCall, Reply, Run};
use crate::handlers;
use crate::handlers::model::{ModelClient, ModelFactory, ResponseSchema, Shape, Shapes};

/// Handler types and builtins by name, shared across threads.
///
/// ```
/// use gatehook_engine::{Registry, events::Output};
///
/// let registry = Registry::with_defaults();
/// registry.register_builtin("no_friday", |_context, input, _args| {
///     let friday = input.prompt.as_deref().is_some_and(|prompt| prompt.contains("friday"));
///     Ok(friday.then(|| Output::block("not on a friday")))
/// })?;
/// assert!(registry.lookup_builtin("no_friday").is_some());
/// assert!(registry.lookup_builtin("no_monday").is_none());
/// # Ok::<(), gatehook_engine::registry::EmptyName>(())
/// ```
#[derive(Default)]
pub struct Registry {
    types: RwLock<Factories>,
    builtins: RwLock<Factories>,
    shapes: Arc<Shapes>,
    dialects: RwLock<Vec<Arc<dyn Dialect>>>,
}

type Factories = BTreeMap<String, Arc<dyn HandlerFactory>>;

/// A handler type, a builtin or the shape of a reply was registered without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a handler type, a builtin and the shape of a reply need a name")]
pub struct EmptyName;

/// What a builtin is told besides the input.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinContext<'a> {
    /// The event.
    pub event: Event,
    /// The hook's working directory.
    pub working_dir: &'a Path,
    /// The environment, with the hook's own variables in it.
    pub env: &'a BTreeMap<String, String>,
    /// The caller gives up.
    pub cancel: &'a CancellationToken,
    /// When the hook must have answered.
    pub deadline: Instant,
}

/// What a builtin answers; `None` is no opinion.
pub type BuiltinResult = Result<Option<Output>, HandlerError>;

/// The future of an asynchronous builtin.
pub type BuiltinFuture<'a> = Pin<Box<dyn Future<Output = BuiltinResult> + Send + 'a>>;

impl Registry {
    /// A registry without anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// The handler types and builtins of the engine.
    pub fn with_defaults() -> Self {
        let registry = Self::new();
        handlers::register(&mut registry.types.write().unwrap_or_else(PoisonError::into_inner));
        builtins::register(&mut registry.builtins.write().unwrap_or_else(PoisonError::into_inner));
        registry.register_models(None);
        registry
    }

    /// Says who asks models for `type: model` hooks, in place of who did before. Without one, such a hook is an error at
    /// load; docker-agent's fail when they should run. [`ModelClient`] shows one.
    pub fn register_model_client(&self, client: Arc<dyn ModelClient>) {
        self.register_models(Some(client));
    }

    fn register_models(&self, client: Option<Arc<dyn ModelClient>>) {
        let factory = ModelFactory { client, shapes: self.shapes.clone() };
        let mut types = self.types.write().unwrap_or_else(PoisonError::into_inner);
        types.insert("model".to_owned(), Arc::new(factory));
    }

    /// Says what becomes of a model's reply under `schema: NAME`, and what the model is asked to answer; in place of what
    /// was said before. Hooks that were made before find it too. The empty name is that of plain text, and cannot be
    /// taken.
    ///
    /// ```
    /// use gatehook_engine::events::{FailureKind, Output};
    /// use gatehook_engine::{HandlerError, Registry};
    /// use serde_json::json;
    ///
    /// let registry = Registry::with_defaults();
    /// let schema = json!({"type": "object", "properties": {"safe": {"type": "boolean"}}, "required": ["safe"]});
    /// let is_safe = |_event, reply: &str| {
    ///     match serde_json::from_str::<serde_json::Value>(reply).ok().and_then(|reply| reply["safe"].as_bool()) {
    ///         Some(true) => Ok(None),
    ///         Some(false) => Ok(Some(Output::block("the judge says it is not safe"))),
    ///         None => Err(HandlerError::new(FailureKind::MalformedJson, "its reply is no verdict")),
    ///     }
    /// };
    /// registry.register_response_shape("safe", is_safe, Some(schema))?;
    /// assert_eq!(registry.response_shape_names(), ["pre_tool_use_decision", "safe"]);
    /// assert!(registry.register_response_shape("", is_safe, None).is_err());
    /// # Ok::<(), gatehook_engine::registry::EmptyName>(())
    /// ```
    pub fn register_response_shape<F>(&self, name: &str, shape: F, schema: Option<Value>) -> Result<(), EmptyName>
    where
        F: Fn(Event, &str) -> BuiltinResult + Send + Sync + 'static,
    {
        if name.is_empty() {
            return Err(EmptyName);
        }
        let schema = schema.map(|schema| ResponseSchema { name: name.to_owned(), schema });
        self.shapes.insert(name, Shape { read: Arc::new(shape), schema });
        Ok(())
    }

    /// The names of all shapes but plain text, sorted.
    pub fn response_shape_names(&self) -> Vec<String> {
        self.shapes.names()
    }

    /// Adds a handler type, or puts it in the place of the one of that name.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use gatehook_engine::Registry;
    /// use gatehook_engine::handlers::CommandFactory;
    ///
    /// let registry = Registry::with_defaults();
    /// let bounded = Arc::new(CommandFactory::bounded(2)); // at most two processes at a time
    /// registry.register("command", bounded)?;
    /// assert!(registry.lookup("command").is_some());
    /// assert!(registry.register("", Arc::new(CommandFactory::default())).is_err());
    /// # Ok::<(), gatehook_engine::registry::EmptyName>(())
    /// ```
    pub fn register(&self, kind: &str, factory: Arc<dyn HandlerFactory>) -> Result<(), EmptyName> {
        insert(&self.types, kind, factory)
    }

    /// The handler type of this name; [`register`](Self::register) shows both.
    pub fn lookup(&self, kind: &str) -> Option<Arc<dyn HandlerFactory>> {
        get(&self.types, kind)
    }

    /// Adds a builtin, or puts it in the place of the one of that name.
    ///
    /// ```
    /// use gatehook_engine::events::{Event, Output};
    /// use gatehook_engine::{BuiltinContext, BuiltinResult, Registry, events::Input};
    ///
    /// /// `args`: folders that no tool may name.
    /// fn keep_out(context: &BuiltinContext<'_>, input: &Input, args: &[String]) -> BuiltinResult {
    ///     if context.cancel.is_cancelled() || context.event != Event::PreToolUse {
    ///         return Ok(None);
    ///     }
    ///     let path = input.tool_input.as_deref().and_then(|arguments| arguments.get("path")?.as_str());
    ///     let path = path.map(|path| context.working_dir.join(path));
    ///     let closed = path.filter(|path| args.iter().any(|folder| path.starts_with(folder)));
    ///     Ok(closed.map(|path| Output::block(format!("{} is closed", path.display()))))
    /// }
    ///
    /// let registry = Registry::new();
    /// registry.register_builtin("keep_out", keep_out)?;
    /// assert!(registry.lookup_builtin("keep_out").is_some());
    /// registry.register_builtin("keep_out", |_context, _input, _args| Ok(None))?; // in its place
    /// assert_eq!(registry.builtin_names(), ["keep_out"]);
    /// # Ok::<(), gatehook_engine::registry::EmptyName>(())
    /// ```
    ///
    /// It runs on the caller's thread: what takes
    /// longer than half a millisecond belongs into [`register_async_builtin`](Self::register_async_builtin).
    pub fn register_builtin<F>(&self, name: &str, run: F) -> Result<(), EmptyName>
    where
        F: Fn(&BuiltinContext<'_>, &Input, &[String]) -> BuiltinResult + Send + Sync + 'static,
    {
        insert(&self.builtins, name, Arc::new(Functions(Arc::new(Immediate(run)))))
    }

    /// Adds a builtin that waits for something.
    ///
    /// ```
    /// # use gatehook_engine::Registry;
    /// let registry = Registry::new();
    /// registry.register_async_builtin("patience", |context, _input, _args| {
    ///     Box::pin(async move {
    ///         tokio::time::timeout_at(context.deadline, tokio::task::yield_now()).await.ok();
    ///         Ok(None)
    ///     })
    /// })?;
    /// # Ok::<(), gatehook_engine::registry::EmptyName>(())
    /// ```
    pub fn register_async_builtin<F>(&self, name: &str, run: F) -> Result<(), EmptyName>
    where
        F: for<'a> Fn(BuiltinContext<'a>, &'a Input, &'a [String]) -> BuiltinFuture<'a> + Send + Sync,
        F: 'static,
    {
        insert(&self.builtins, name, Arc::new(Functions(Arc::new(Waiting(run)))))
    }

    /// Adds a builtin that checks its arguments at load, or keeps state.
    pub fn register_builtin_factory(&self, name: &str, factory: Arc<dyn HandlerFactory>) -> Result<(), EmptyName> {
        insert(&self.builtins, name, factory)
    }

    /// Adds a foreign contract, or puts it in the place of the one of its profile. Hooks of a foreign profile without one
    /// cannot be put into force.
    pub fn register_dialect(&self, dialect: Arc<dyn Dialect>) {
        let mut dialects = self.dialects.write().unwrap_or_else(PoisonError::into_inner);
        dialects.retain(|known| known.profile() != dialect.profile());
        dialects.push(dialect);
    }

    /// The foreign contract of this profile.
    pub fn dialect(&self, profile: Profile) -> Option<Arc<dyn Dialect>> {
        let dialects = self.dialects.read().unwrap_or_else(PoisonError::into_inner);
        dialects.iter().find(|dialect| dialect.profile() == profile).cloned()
    }

    /// The names of all builtins, sorted.
    pub fn builtin_names(&self) -> Vec<String> {
        self.builtins.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// The builtin of this name.
    pub fn lookup_builtin(&self, name: &str) -> Option<Arc<dyn HandlerFactory>> {
        get(&self.builtins, name)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names =
            |map: &RwLock<Factories>| map.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
        let (types, builtins): (Vec<_>, Vec<_>) = (names(&self.types), names(&self.builtins));
        f.debug_struct("Registry").field("types", &types).field("builtins", &builtins).finish()
    }
}

fn insert(map: &RwLock<Factories>, name: &str, factory: Arc<dyn HandlerFactory>) -> Result<(), EmptyName> {
    if name.is_empty() {
        return Err(EmptyName);
    }
    map.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), factory);
    Ok(())
}

fn get(map: &RwLock<Factories>, name: &str) -> Option<Arc<dyn HandlerFactory>> {
    map.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// A builtin that is a function.
trait Function: Send + Sync {
    fn run<'a>(&'a self, context: BuiltinContext<'a>, input: &'a Input, args: &'a [String]) -> BuiltinFuture<'a>;
}

/// One that answers at once.
struct Immediate<F>(F);
/// One that waits for something.
struct Waiting<F>(F);

impl<F> Function for Immediate<F>
where
    F: Fn(&BuiltinContext<'_>, &Input, &[String]) -> BuiltinResult + Send + Sync,
{
    fn run<'a>(&'a self, context: BuiltinContext<'a>, input: &'a Input, args: &'a [String]) -> BuiltinFuture<'a> {
        Box::pin(async move { (self.0)(&context, input, args) })
    }
}

impl<F> Function for Waiting<F>
where
    F: for<'a> Fn(BuiltinContext<'a>, &'a Input, &'a [String]) -> BuiltinFuture<'a> + Send + Sync,
{
    fn run<'a>(&'a self, context: BuiltinContext<'a>, input: &'a Input, args: &'a [String]) -> BuiltinFuture<'a> {
        (self.0)(context, input, args)
    }
}

/// Binds a function to each definition that names it.
struct Functions(Arc<dyn Function>);

impl HandlerFactory for Functions {
    fn create(&self, definition: &HookDefinition, env: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
        let args = match &definition.handler {
            HandlerDefinition::Builtin { args, .. } => args.clone(),
            _ => Vec::new(),
        };
        let mut variables = env.env.clone();
        variables.extend(definition.env.clone());
        let working_dir = match definition.working_dir.as_deref() {
            Some(dir) => env.working_dir.join(dir),
            None => env.working_dir.clone(),
        };
        Ok(Arc::new(Bound { function: self.0.clone(), args, env: variables, working_dir }))
    }
}

/// A function with its arguments and surroundings.
struct Bound {
    function: Arc<dyn Function>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    working_dir: PathBuf,
}

impl Handler for Bound {
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        let context = BuiltinContext {
            event: call.event,
            working_dir: &self.working_dir,
            env: &self.env,
            cancel: call.cancel,
            deadline: call.deadline,
        };
        Box::pin(async move { self.function.run(context, call.input, &self.args).await.map(Reply::Direct) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_registered_without_a_name() {
        let registry = Registry::new();
        assert_eq!(registry.register_builtin("", |_, _, _| Ok(None)), Err(EmptyName));
    }

    #[test]
    fn a_second_registration_replaces_the_first() {
        let registry = Registry::new();
        registry.register_builtin("it", |_, _, _| Ok(None)).unwrap();
        let first = registry.lookup_builtin("it").unwrap();
        registry.register_builtin("it", |_, _, _| Ok(None)).unwrap();
        assert!(!Arc::ptr_eq(&first, &registry.lookup_builtin("it").unwrap()));
    }
}
