//! `kind: run`: one event under a foreign contract, with hooks as that contract's own files list them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gatehook_engine::config::{Format, ReadOptions, ollama_cli, ollm};
use gatehook_engine::handler::{DefinitionError, Run};
use gatehook_engine::{
    Executor, Handler, HandlerDefinition, HandlerEnv, HandlerError, HandlerFactory, HookCall, HookDefinition,
    HooksConfig, Registry, Reply,
};
use gatehook_events::dialect::{Printed, Said};
use gatehook_events::{Dialect, Event, FailureKind, OutcomeKind, PermissionDecision, Profile, Verdict};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::actual::Actual;
use crate::reader::fill;
use crate::vector::Vector;

/// What one hook was told and left behind.
#[derive(Debug, Clone)]
struct Ran {
    label: String,
    payload: Value,
    reply: Result<Reply, HandlerError>,
}

type Runs = Arc<Mutex<Vec<Ran>>>;

/// Runs a vector under its dialect.
pub(crate) async fn run(vector: &Vector, dialect: &dyn Dialect) -> Result<Actual, String> {
    let name = vector.event.as_deref().ok_or("it names no event")?;
    let event = dialect.event(name).ok_or_else(|| format!("{} has no event `{name}`", dialect.profile().name()))?;
    let (_, input) = dialect.read_payload(Some(event), vector.input.clone()).map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let env = surroundings(vector);
    let runs = Runs::default();
    let registry = registry(vector, runs.clone())?;
    let hooks = hooks(vector, dialect.profile(), folder.path(), &env)?;
    let executor = Executor::with_registry(hooks, HandlerEnv { working_dir: folder.path().to_owned(), env }, &registry)
        .map_err(|error| error.to_string())?;
    let start = Instant::now();
    let verdict = executor.dispatch(event, &input, &CancellationToken::new()).await;
    let elapsed = start.elapsed();
    let runs = std::mem::take(&mut *runs.lock().unwrap_or_else(PoisonError::into_inner));
    let facts = facts(&runs, &verdict, dialect, event);
    Ok(Actual::new(verdict, elapsed, folder.path())?.with(facts))
}

fn surroundings(vector: &Vector) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = std::env::vars().collect();
    env.remove(ollama_cli::HOOKS_ENABLED);
    let given = vector.config.get("env").and_then(Value::as_object).into_iter().flatten();
    env.extend(given.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))));
    env
}

/// The hooks of a vector, by the reader of the contract's own files.
fn hooks(
    vector: &Vector,
    profile: Profile,
    folder: &Path,
    env: &BTreeMap<String, String>,
) -> Result<HooksConfig, String> {
    let options = ReadOptions { env, working_dir: folder.to_owned(), ..ReadOptions::default() };
    let hooks = match profile {
        Profile::OllamaCli => {
            let settings = fill(vector.config.get("settings").unwrap_or(&json!({})), &|text| vector.filled(text));
            ollama_cli::parse("settings.json", &settings.to_string(), &options)
        }
        _ => {
            let event = vector.event.as_deref().unwrap_or_default();
            let manifest = json!({"hooks": {(event): records(vector)?}}).to_string();
            ollm::parse("hooks.json", &manifest, Format::Json, &options).map(|file| file.hooks)
        }
    };
    let mut hooks = hooks.map_err(|error| error.to_string())?;
    let limit = timeout(&vector.config);
    for hook in hooks.groups.iter_mut().flat_map(|group| &mut group.hooks) {
        hook.timeout = limit.or(hook.timeout);
    }
    Ok(hooks)
}

/// The records of a vector, whose `script` is the name of a text for `sh`.
fn records(vector: &Vector) -> Result<Value, String> {
    let mut records = vector.config.get("hooks").cloned().unwrap_or_else(|| json!([]));
    for record in records.as_array_mut().ok_or("`hooks` is no list")?.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(script) = record.remove("script") {
            let text = script.as_str().and_then(|name| vector.hook_scripts.get(name));
            record.insert("command".to_owned(), "sh".into());
            record.insert("args".to_owned(), json!(["-c", text.ok_or("a record names no script")?]));
        }
    }
    Ok(records)
}

fn timeout(config: &Value) -> Option<Duration> {
    let number = |name| config.get(name).and_then(Value::as_f64).filter(|number| *number > 0.0);
    let seconds = number("timeout_s").or_else(|| number("timeout_ms").map(|millis| millis / 1000.0))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The engine's handlers, commands of which are recorded, and all contracts.
fn registry(vector: &Vector, runs: Runs) -> Result<Registry, String> {
    let registry = Registry::with_defaults();
    gatehook_dialects::all().into_iter().for_each(|dialect| registry.register_dialect(dialect));
    let factory = registry.lookup("command").ok_or("the engine runs no commands")?;
    let recorder = Recorder { factory, scripts: vector.hook_scripts.clone(), runs };
    registry.register("command", Arc::new(recorder)).map_err(|error| error.to_string())?;
    Ok(registry)
}

struct Recorder {
    factory: Arc<dyn HandlerFactory>,
    scripts: BTreeMap<String, String>,
    runs: Runs,
}

impl HandlerFactory for Recorder {
    fn create(&self, definition: &HookDefinition, env: &HandlerEnv) -> Result<Arc<dyn Handler>, DefinitionError> {
        let text = match &definition.handler {
            HandlerDefinition::Command(command) => command.args.last().unwrap_or(&command.command),
            _ => "",
        };
        let script = self.scripts.iter().find(|(_, script)| *script == text).map(|(name, _)| name.as_str());
        let label = script.unwrap_or(definition.display_name()).to_owned();
        Ok(Arc::new(Recorded { handler: self.factory.create(definition, env)?, label, runs: self.runs.clone() }))
    }
}

struct Recorded {
    handler: Arc<dyn Handler>,
    label: String,
    runs: Runs,
}

impl Handler for Recorded {
    fn run<'a>(&'a self, call: HookCall<'a>) -> Run<'a> {
        Box::pin(async move {
            let payload = call.payload.line(call.input).ok().and_then(|line| serde_json::from_slice(&line).ok());
            let reply = self.handler.run(call).await;
            let ran = Ran { label: self.label.clone(), payload: payload.unwrap_or_default(), reply: reply.clone() };
            self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(ran);
            reply
        })
    }
}

/// What expectations of this kind name, beside what any verdict has.
fn facts(runs: &[Ran], verdict: &Verdict, dialect: &dyn Dialect, event: Event) -> Value {
    let failed = |outcome: &gatehook_events::Outcome| match outcome.kind {
        OutcomeKind::Failed(kind) => Some(error_kind(kind)),
        _ => None,
    };
    let said: Vec<Said> = runs.iter().map(|ran| said(ran, dialect, event)).collect();
    // What hooks said counts as told where people see it.
    let told =
        |text: &String| verdict.message.contains(text.as_str()) || verdict.system_message.contains(text.as_str());
    let messages: Vec<String> = said.iter().filter_map(message).filter(told).collect();
    let results: Vec<Value> = runs
        .iter()
        .zip(&said)
        .zip(&verdict.outcomes)
        .map(|((ran, said), outcome)| {
            let (stdout, code) = match &ran.reply {
                Ok(Reply::Process { stdout, exit_code, .. }) => {
                    (String::from_utf8_lossy(stdout).into_owned(), *exit_code)
                }
                _ => (String::new(), -1),
            };
            let parsed = serde_json::from_str::<Value>(stdout.trim()).unwrap_or_default();
            let kind = failed(outcome);
            json!({
                "success": code == 0 && kind.is_none(), "parsed": parsed, "decision": decision(said), "stdout": stdout,
                "return_code": code, "error_kind": kind, "message": message(said), "name": ran.label,
                "stderr": outcome.stderr,
            })
        })
        .collect();
    let denied = !verdict.allowed || verdict.decision == Some(gatehook_events::Decision::Deny);
    json!({
        "blocked": denied, "denied": denied, "allowed": verdict.allowed, "messages": messages,
        "error_logged": verdict.outcomes.iter().any(|outcome| failed(outcome).is_some()),
        "terminated": verdict.outcomes.iter().any(|outcome| failed(outcome).as_deref() == Some("timeout")),
        "ran": runs.iter().map(|ran| &ran.label).collect::<Vec<_>>(),
        "payload": runs.first().map(|ran| &ran.payload),
        "payloads": runs.iter().map(|ran| &ran.payload).collect::<Vec<_>>(),
        "results": results, "result_count": results.len(),
    })
}

/// A failure by the word that vectors have for it.
fn error_kind(kind: FailureKind) -> String {
    const WORDS: &[(FailureKind, &str)] = &[
        (FailureKind::NonzeroExit, "exit_nonzero"),
        (FailureKind::NoReply, "no_output"),
        (FailureKind::OutputTooLarge, "output_limit"),
        (FailureKind::InvalidPermissionDecision, "invalid_structure"),
    ];
    WORDS.iter().find(|(known, _)| *known == kind).map_or_else(|| kind.name(), |(_, word)| (*word).to_owned())
}

fn said(ran: &Ran, dialect: &dyn Dialect, event: Event) -> Said {
    match &ran.reply {
        Ok(Reply::Process { stdout, stderr, exit_code }) => {
            dialect.read_reply(event, &Printed { stdout, stderr, exit_code: *exit_code })
        }
        Ok(Reply::Direct(_) | Reply::Judged(_)) => Said::Nothing,
        Err(error) => Said::Failed(error.kind, error.message.clone()),
    }
}

/// What a hook wants people to read.
fn message(said: &Said) -> Option<String> {
    match said {
        Said::Output(output) => output.reason.clone().or(output.system_message.clone()),
        Said::Block(Some(output)) => output.reason.clone(),
        // How it ended, and then its own words.
        Said::Failed(_, cause) => cause.split_once(": ").map(|(_, message)| message.to_owned()),
        _ => None,
    }
    .filter(|message| !message.is_empty())
}

/// The decision of a hook by the contract's word.
fn decision(said: &Said) -> Option<&'static str> {
    let Said::Output(output) = said else { return None };
    let specific = output.hook_specific_output.as_ref();
    match specific.and_then(|specific| specific.permission_decision) {
        Some(PermissionDecision::Allow) => Some("allow"),
        Some(PermissionDecision::Ask) => Some("ask"),
        Some(PermissionDecision::Deny) => Some("deny"),
        None => output.is_blocked().then_some("deny"),
    }
}
