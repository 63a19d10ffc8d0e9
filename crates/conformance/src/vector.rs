//! One vector: what it holds, and how it is run.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatehook_engine::executor::{BuildCause, BuildError};
use gatehook_engine::{Executor, HandlerEnv, Options as ExecutorOptions, Registry};
use gatehook_events::{Event, Input, Profile, Verdict};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::actual::Actual;
use crate::deviations::Deviations;
use crate::fixtures::Fixtures;
use crate::model::FakeModel;
use crate::report::Report;
use crate::{builtin, contract, expect, reader};

/// How many judging hooks of one dispatch may run at once.
const SIDE_BY_SIDE: NonZeroUsize = NonZeroUsize::new(32).unwrap();

/// One line of a file.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Vector {
    pub(crate) id: String,
    pub(crate) kind: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    pub(crate) config: Value,
    #[serde(default)]
    pub(crate) event: Option<String>,
    #[serde(default)]
    pub(crate) input: Value,
    #[serde(default)]
    pub(crate) hook_scripts: BTreeMap<String, String>,
    #[serde(default)]
    opts: Options,
    /// What the model says, where `kind` is `model`; nothing where it fails.
    #[serde(default)]
    model_reply: Option<String>,
    /// Why it fails.
    #[serde(default)]
    model_error: Option<String>,
    pub(crate) expect: Map<String, Value>,
    #[serde(default)]
    notes: String,
    expect_v158: Option<Map<String, Value>>,
    #[serde(default, rename = "_absent_in_v158")]
    absent_in_v158: Value,
    #[serde(default)]
    pub(crate) quirk: bool,
    /// The foreign contract, and which of its readings: `documented`, or what its program does instead.
    #[serde(default)]
    dialect: String,
    #[serde(default)]
    profile: String,
}

/// How a vector is run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Options {
    env: BTreeMap<String, String>,
    dirs: Vec<String>,
    dispatches: Option<usize>,
    parent_timeout_ms: Option<u64>,
}

/// Runs a vector under each profile that it has expectations for.
pub(crate) async fn run(vector: &Vector, deviations: &Deviations, report: &mut Report) {
    match vector.kind.as_str() {
        "dispatch" | "beyond" | "model" => verdicts(vector, None, deviations, report).await,
        "builtin" if builtin::is_known(&vector.config) && vector.expect.keys().all(|key| expect::knows(key)) => {
            match vector.filled_in() {
                Ok((vector, fixtures)) => verdicts(&vector, Some(&fixtures), deviations, report).await,
                Err(error) => report.failed(&vector.id, "any", &[error]),
            }
        }
        "config" => config(vector, report),
        "run" if vector.profile == "documented" => contract(vector, report).await,
        "run" => report.not_run(&format!("run, {}", vector.profile)),
        kind => report.not_run(kind),
    }
}

async fn verdicts(vector: &Vector, fixtures: Option<&Fixtures>, deviations: &Deviations, report: &mut Report) {
    for (profile, expected) in vector.expectations() {
        let differences = match vector.happened(profile, fixtures).await {
            Ok(actual) => {
                let differences = expect::compare(&expected, &actual);
                if let Some(deviation) = deviations.excuse(vector, profile, &actual, &differences) {
                    report.deviates(&vector.id, profile.name(), deviation);
                    continue;
                }
                differences.into_iter().map(|difference| difference.to_string()).collect()
            }
            Err(error) => vec![error],
        };
        conclude(vector, profile.name(), &differences, report);
    }
}

fn conclude(vector: &Vector, profile: &str, differences: &[String], report: &mut Report) {
    match differences {
        [] => report.passed(),
        differences => report.failed(&vector.id, profile, differences),
    }
}

/// Runs a vector under the foreign contract that it names.
async fn contract(vector: &Vector, report: &mut Report) {
    let spoken = gatehook_dialects::all().into_iter().find(|dialect| dialect.profile().name() == vector.dialect);
    let Some(dialect) = spoken else { return report.not_run(&format!("run, {}", vector.dialect)) };
    let differences = match contract::run(vector, &*dialect).await {
        Ok(actual) => expect::compare(&vector.expect, &actual).iter().map(ToString::to_string).collect(),
        Err(error) => vec![error],
    };
    conclude(vector, &vector.dialect, &differences, report);
}

fn config(vector: &Vector, report: &mut Report) {
    let profile = if vector.version == "v1.58" { Profile::DockerAgentV158 } else { Profile::DockerAgent };
    let found = reader::diagnose(&vector.config, profile);
    conclude(vector, profile.name(), &expect::compare_config(&vector.expect, &found), report);
}

impl Vector {
    fn expectations(&self) -> Vec<(Profile, Map<String, Value>)> {
        let mut all = vec![(Profile::DockerAgent, self.expect.clone())];
        if let Some(changes) = &self.expect_v158 {
            let mut expected = self.expect.clone();
            let absent = [&self.absent_in_v158, changes.get(ABSENT).unwrap_or(&Value::Null)];
            let absent: Vec<&str> =
                absent.into_iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect();
            expected.retain(|key, _| !absent.contains(&key.as_str()));
            for (key, value) in changes.iter().filter(|(key, _)| *key != ABSENT) {
                // An exact text takes the place of what was known about it.
                expected
                    .retain(|known, _| known.strip_prefix(key.as_str()).is_none_or(|rest| !SUFFIXES.contains(&rest)));
                expected.insert(key.clone(), value.clone());
            }
            all.push((Profile::DockerAgentV158, expected));
        }
        all
    }

    /// The vector with fixtures in the place of their names.
    fn filled_in(&self) -> Result<(Vector, Fixtures), String> {
        let expect = Value::Object(self.expect.clone());
        let fixtures = Fixtures::new(&format!("{}{}{expect}", self.config, self.input), &self.notes)?;
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        let mut vector = self.clone();
        vector.config = fixtures.fill(&self.config);
        vector.input = fixtures.fill(&self.input);
        vector.expect = self.expect.iter().map(|(key, value)| (key.clone(), fixtures.named(value))).collect();
        vector.expect_v158 = self.expect_v158.clone().map(|expect| object(fixtures.named(&Value::Object(expect))));
        for (name, value) in fixtures.env() {
            vector.opts.env.entry(name).or_insert(value);
        }
        Ok((vector, fixtures))
    }

    /// The same surroundings, and another event.
    pub(crate) fn of(&self, event: &str, config: &Value, input: &Value) -> Self {
        Self { event: Some(event.to_owned()), config: config.clone(), input: input.clone(), ..self.clone() }
    }

    async fn happened(&self, profile: Profile, fixtures: Option<&Fixtures>) -> Result<Actual, String> {
        let Some(fixtures) = fixtures else { return self.dispatch(profile).await };
        builtin::prepare(self, profile, fixtures).await?;
        let actual = self.dispatch(profile).await?;
        let facts = builtin::facts(self, fixtures, &actual);
        Ok(actual.with(facts))
    }

    pub(crate) async fn dispatch(&self, profile: Profile) -> Result<Actual, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        for dir in &self.opts.dirs {
            std::fs::create_dir_all(folder.path().join(dir)).map_err(|error| error.to_string())?;
        }
        let Some((event, input)) = self.occasion(profile) else { return Ok(Actual::dispatch_error(None)) };
        let config = reader::hooks(&self.config, profile, &|text| self.filled(text), &self.opts.env, folder.path())?;
        // The same on every machine: how many hooks run side by side depends on its processors otherwise.
        let options = ExecutorOptions { max_concurrent_hooks: SIDE_BY_SIDE, ..ExecutorOptions::default() };
        let (env, registry) = (self.surroundings(folder.path()), Registry::with_defaults());
        let model = Arc::new(FakeModel::new(self.model_reply.clone(), self.model_error.clone()));
        registry.register_model_client(model.clone());
        let executor = match Executor::with_options(config, env, &registry, options) {
            Ok(executor) => executor,
            Err(BuildError { cause: BuildCause::Pattern(_), .. }) => {
                return Ok(Actual::dispatch_error(Some("invalid_matcher")));
            }
            Err(error) => return Err(error.to_string()),
        };
        let start = Instant::now();
        let verdict = self.run(&executor, event, &input).await;
        let actual = Actual::new(verdict, start.elapsed(), folder.path())?;
        Ok(actual.with(json!({ "rendered_prompt": model.last_prompt() })))
    }

    fn surroundings(&self, folder: &Path) -> HandlerEnv {
        let mut env: BTreeMap<String, String> = std::env::vars().collect();
        env.insert("SHELL".to_owned(), "/bin/sh".to_owned());
        env.extend(self.opts.env.clone());
        HandlerEnv { working_dir: folder.to_owned(), env }
    }

    async fn run(&self, executor: &Executor, event: Event, input: &Input) -> Verdict {
        let cancel = CancellationToken::new();
        let mut verdict = Verdict::allow();
        for _ in 0..self.opts.dispatches.unwrap_or(1) {
            verdict = match self.opts.parent_timeout_ms {
                Some(limit) => {
                    let expire = async {
                        tokio::time::sleep(Duration::from_millis(limit)).await;
                        cancel.cancel();
                        std::future::pending::<()>().await;
                    };
                    tokio::select! {
                        verdict = executor.dispatch(event, input, &cancel) => verdict,
                        () = expire => verdict,
                    }
                }
                None => executor.dispatch(event, input, &cancel).await,
            };
        }
        verdict
    }

    /// What is dispatched; `None` where the profile has no such event, or there is no input.
    fn occasion(&self, profile: Profile) -> Option<(Event, Input)> {
        let event = Event::from_name(self.event.as_deref()?)?;
        event.capabilities(profile)?;
        let mut input = repeated(&self.input);
        // The reference's messages need no role.
        for message in input.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(message) = message {
                message.entry("role").or_insert_with(|| "".into());
            }
        }
        Some((event, Input::deserialize(&input).ok()?))
    }

    /// A text with the scripts it names in it.
    pub(crate) fn filled(&self, text: &str) -> String {
        match text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) {
            Some(name) => self.hook_scripts.get(name).cloned().unwrap_or_else(|| text.to_owned()),
            None => text.to_owned(),
        }
    }
}

/// A value in which `{"$repeat": [text, count]}` is that text so many times.
pub(crate) fn repeated(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            match fields.get("$repeat").and_then(|repeat| <(String, usize)>::deserialize(repeat).ok()) {
                Some((text, count)) => text.repeat(count).into(),
                None => fields.iter().map(|(key, value)| (key.clone(), repeated(value))).collect(),
            }
        }
        Value::Array(items) => items.iter().map(repeated).collect(),
        other => other.clone(),
    }
}

/// Expectations that v1.58 does not have; it stands in a vector or in its `expect_v158`.
const ABSENT: &str = "_absent_in_v158";

/// What may stand behind the name of a text.
pub(crate) const SUFFIXES: [&str; 3] = ["_contains", "_kinds", "_len"];
