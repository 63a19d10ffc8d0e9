//! A guard, a call, and a witness that remembers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatehook_engine::events::{Event, Input, Output, Profile, Verdict};
use gatehook_engine::{
    BuiltinContext, BuiltinResult, Executor, HandlerDefinition, HandlerEnv, HandlerFactory, HookDefinition, HookGroup,
    HooksConfig, Registry,
};
use gatehook_guard::{Admitted, Call, Caller, Guard, OwnedCall, Refusal, Witness};
use gatehook_inference::{Path, Route};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Hooks that are functions, by event.
#[derive(Default)]
pub(crate) struct World {
    registry: Registry,
    groups: Vec<HookGroup>,
    pub(crate) seen: Seen,
}

/// What hooks were shown, and what the witness was told.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<(Event, Input)>>>, Arc<Mutex<Vec<(Event, Verdict)>>>);

impl Seen {
    pub(crate) fn inputs(&self, event: Event) -> Vec<Input> {
        self.0.lock().unwrap().iter().filter(|(of, _)| *of == event).map(|(_, input)| input.clone()).collect()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().iter().map(|(event, _)| *event).collect()
    }

    pub(crate) fn verdicts(&self) -> Vec<(Event, Verdict)> {
        self.1.lock().unwrap().clone()
    }
}

impl Witness for Seen {
    fn judged(&self, event: Event, verdict: &Verdict) {
        self.1.lock().unwrap().push((event, verdict.clone()));
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self { registry: Registry::with_defaults(), ..Self::default() }
    }

    /// Adds a function as a hook of an event, behind those that are there.
    pub(crate) fn hook(self, event: Event, run: impl Fn(&Input) -> Option<Output> + Send + Sync + 'static) -> Self {
        self.hook_with(event, "", |hook| hook, move |input| Ok(run(input)))
    }

    /// The same with a matcher and more in its definition.
    pub(crate) fn hook_with(
        mut self,
        event: Event,
        matcher: &str,
        define: impl FnOnce(HookDefinition) -> HookDefinition,
        run: impl Fn(&Input) -> BuiltinResult + Send + Sync + 'static,
    ) -> Self {
        let name = format!("hook_{}", self.groups.len());
        let seen = self.seen.clone();
        let run = move |context: &BuiltinContext<'_>, input: &Input, _: &[String]| {
            seen.0.lock().unwrap().push((context.event, input.clone()));
            run(input)
        };
        self.registry.register_builtin(&name, run).unwrap();
        let hooks = vec![define(HookDefinition::builtin(&name, &[]))];
        self.groups.push(HookGroup { event, matcher: matcher.into(), hooks });
        self
    }

    /// The same, of a function that takes its time.
    pub(crate) fn slow_hook(
        mut self,
        event: Event,
        define: impl FnOnce(HookDefinition) -> HookDefinition,
        takes: Duration,
        run: impl Fn(&Input) -> Option<Output> + Send + Sync + 'static,
    ) -> Self {
        let name = format!("hook_{}", self.groups.len());
        let seen = self.seen.clone();
        let waits = self.registry.register_async_builtin(&name, move |context, input, _| {
            seen.0.lock().unwrap().push((context.event, input.clone()));
            let answer = run(input);
            Box::pin(async move {
                tokio::time::sleep(takes).await;
                Ok(answer)
            })
        });
        waits.unwrap();
        let hooks = vec![define(HookDefinition::builtin(&name, &[]))];
        self.groups.push(HookGroup { event, matcher: String::new(), hooks });
        self
    }

    /// Adds a handler of a type of its own.
    pub(crate) fn handler(
        mut self,
        event: Event,
        kind: &str,
        define: impl FnOnce(HookDefinition) -> HookDefinition,
        factory: Arc<dyn HandlerFactory>,
    ) -> Self {
        self.registry.register(kind, factory).unwrap();
        let handler = HandlerDefinition::Other { kind: kind.to_owned(), fields: Default::default() };
        let hooks = vec![define(HookDefinition::new(Profile::Native, handler))];
        self.groups.push(HookGroup { event, matcher: String::new(), hooks });
        self
    }

    /// Adds a builtin of the engine.
    pub(crate) fn builtin(mut self, event: Event, name: &str, args: &[&str]) -> Self {
        let hooks = vec![HookDefinition::builtin(name, args)];
        self.groups.push(HookGroup { event, matcher: String::new(), hooks });
        self
    }

    fn executor(self) -> Executor {
        let config = HooksConfig { groups: self.groups };
        Executor::with_registry(config, HandlerEnv::current().unwrap(), &self.registry).unwrap()
    }
}

/// A caller's exchange with a guard.
pub(crate) struct Exchange {
    pub(crate) guard: Guard,
    pub(crate) seen: Seen,
    executor: Executor,
    id: Arc<str>,
    caller: Caller,
    cancel: CancellationToken,
}

impl From<World> for Exchange {
    fn from(world: World) -> Self {
        let seen = world.seen.clone();
        let caller = Caller { address: Some(std::net::Ipv4Addr::LOCALHOST.into()), ..Caller::default() };
        let executor = world.executor();
        let guard = Guard::new(executor.clone()).expect("a hook around model calls");
        Self { guard, seen, executor, id: "r1".into(), caller, cancel: CancellationToken::new() }
    }
}

impl Exchange {
    /// Waits for the hooks in the background.
    pub(crate) async fn settle(&self) {
        self.executor.drain(Duration::from_secs(10)).await;
    }

    pub(crate) fn call(&self, route: Route) -> Call<'_> {
        Call {
            path: Path::Route(route),
            request_id: &self.id,
            caller: &self.caller,
            cancel: &self.cancel,
            witness: &self.seen,
        }
    }

    pub(crate) fn owned(&self, route: Route) -> OwnedCall {
        OwnedCall {
            path: Path::Route(route),
            request_id: self.id.clone(),
            caller: self.caller.clone().into(),
            cancel: self.cancel.clone(),
            witness: Arc::new(self.seen.clone()),
        }
    }

    pub(crate) async fn ask(&self, route: Route, body: &Value) -> Result<Admitted, Refusal> {
        self.guard.before(&self.call(route), body.to_string().into()).await
    }

    /// Asks with any request of the route, and takes this answer.
    pub(crate) async fn answer(&self, route: Route, body: &str) -> Result<String, Refusal> {
        let admitted = self.ask(route, &request(route)).await?;
        let after = self.guard.after(&self.call(route), &admitted, body.to_owned().into()).await?;
        Ok(String::from_utf8(after.to_vec()).unwrap())
    }
}

/// A request that the route takes.
pub(crate) fn request(route: Route) -> Value {
    match route {
        Route::Generate | Route::Completions => serde_json::json!({"model": "m", "prompt": "hi"}),
        Route::Responses => serde_json::json!({"model": "m", "input": "hi"}),
        _ => serde_json::json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
    }
}
