//! The agent of `run` and `chat`: from configuration and command line to a session that can begin.
//!
//! `headless`: what `run` prints. `leading`: signals, and the end of all that a session started.

pub(crate) mod headless;
mod kept;
mod leading;
pub(crate) mod remembered;

use std::collections::BTreeMap;
use std::sync::Arc;

use gatehook_agent::agents::{Agent, Agents};
use gatehook_agent::approval::{Rule, Rules, SafetyMode, StandingRules};
use gatehook_agent::model::{Model, Replay};
use gatehook_agent::report::Watches;
use gatehook_agent::session::{Beginning, Person, Session, Setup};
use gatehook_agent::tools::{Scene, ToolSettings, builtin_tools};
use gatehook_engine::{HookDefinition, HookGroup};
use gatehook_events::journal::{Forgets, Journal};
use gatehook_events::{Event, Input};
use gatehook_store::Sessions;

use crate::args::AgentArgs;
use crate::commands::list;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{self, Reading};
use crate::print::Printer;
use crate::recording::Recording;
use crate::sessions;

pub(crate) use leading::{alone, lead};

/// How full the model's window may be.
const COMPACT_AT: f64 = 0.9;

/// What a model is told that nobody else gives an instruction.
const INSTRUCTION: &str = "You are an agent that works in the user's folder with the tools you are given. Look before you \
change anything, do what was asked and no more, and say in a few words what you did.";

/// An agent that can begin.
pub(crate) struct Ready {
    setup: Setup,
    beginning: Beginning,
    recording: Recording,
}

/// Who looks on, and who is asked.
pub(crate) struct Audience {
    pub(crate) watcher: Arc<dyn Watches>,
    pub(crate) person: Option<Arc<dyn Person>>,
}

/// Reads the configuration, and puts an agent together.
pub(crate) fn ready(args: &AgentArgs, audience: Audience, printer: &mut Printer) -> Result<Ready, Failure> {
    let env = policy::environment();
    let mut reading = Reading::of(&[], "native", &env)?;
    reading.also(args.config.as_deref());
    let policy = reading.policy()?;
    list::waiting(&policy).into_iter().for_each(|note| printer.note(&note));
    let recording = Recording::of_agent(policy.traces(), &env);
    let executor = policy.agent_executor(&env, own_hooks())?;
    let model = model(args)?;
    let workspace = std::env::current_dir()?.canonicalize()?;
    let mut rules = standing(args)?;
    rules.user.allow.extend(remembered(&env, &workspace)?);
    let root = Agent {
        name: "root".into(),
        description: "".into(),
        instruction: INSTRUCTION.into(),
        model: Arc::new(model),
        tools: builtin_tools(&ToolSettings::default()),
        sub_agents: Vec::new(),
        handoffs: Vec::new(),
        executor,
        rules,
        max_iterations: args.max_iterations,
    };
    let user = ["USER", "LOGNAME"].iter().find_map(|name| env.get(*name)).map(String::as_str).map(str::to_owned);
    let beginning = kept::beginning(args, &env, &workspace)?;
    let journal: Arc<dyn Journal> = match sessions::path(&env) {
        Some(path) => Arc::new(Sessions::new(path)),
        None => {
            printer.note("the session is not kept: neither XDG_STATE_HOME nor HOME is set");
            Arc::new(Forgets)
        }
    };
    let scene =
        Scene { session_id: "".into(), workspace: workspace.into(), allowed: folders(args)?, env: Arc::new(env) };
    let setup = Setup {
        agents: Agents::new(root, Vec::new()),
        scene,
        mode: mode(args)?,
        person: audience.person,
        watcher: audience.watcher,
        journal,
        recorder: recording.recorder(),
        standing: "".into(),
        about: Arc::new(Input { user: user.map(Into::into), ..Input::default() }),
        compact_at: COMPACT_AT,
    };
    Ok(Ready { setup, beginning, recording })
}

impl Ready {
    /// The session, not begun yet.
    pub(crate) async fn session(&self) -> Result<Session, Failure> {
        self.begun(self.beginning.clone()).await
    }

    /// What the session is made of.
    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// A session of which nothing has been said.
    pub(crate) async fn cleared(&self) -> Result<Session, Failure> {
        self.begun(kept::new("clear")).await
    }

    /// A session that was kept, by its identity or the beginning of it.
    pub(crate) async fn resumed(&self, id: &str) -> Result<Session, Failure> {
        let (id, env) = (id.to_owned(), self.setup.scene.env.clone());
        let read = tokio::task::spawn_blocking(move || kept::resumed(&id, &env)).await;
        self.begun(read.map_err(|error| Failure::new(Exit::Defect, error.to_string(), None))??).await
    }

    async fn begun(&self, beginning: Beginning) -> Result<Session, Failure> {
        let session = Session::new(self.setup.clone(), beginning).await;
        session.map_err(|error| Failure::new(Exit::System, format!("the session cannot be kept: {error}"), None))
    }

    /// Writes what still waits to be remembered.
    pub(crate) fn finish(&self, printer: &mut Printer) {
        self.recording.finish(printer);
    }
}

/// Hooks that every agent has: its tools do not touch keys, nor what guards them.
fn own_hooks() -> Vec<HookGroup> {
    let hooks = vec![HookDefinition::builtin("protect_files", &[])];
    vec![HookGroup { event: Event::ToolGuard, matcher: String::new(), hooks }]
}

fn mode(args: &AgentArgs) -> Result<Option<SafetyMode>, Failure> {
    let Some(name) = &args.mode else { return Ok(None) };
    let names = ["strict", "balanced", "restricted", "autonomous"];
    let unknown = || {
        let help = gatehook_engine::config::did_you_mean(name, names);
        let help = help.unwrap_or_else(|| format!("modes are {}", names.join(", ")));
        Failure::usage(format!("there is no safety mode `{name}`"), Some(help))
    };
    SafetyMode::from_name(name).map(Some).ok_or_else(unknown)
}

/// What the command line permits stands as the user's own rules.
fn standing(args: &AgentArgs) -> Result<StandingRules, Failure> {
    let read = |rules: &[String]| -> Result<Vec<Rule>, Failure> {
        let rule = |text: &String| text.parse::<Rule>().map_err(|error| Failure::usage(error.to_string(), None));
        rules.iter().map(rule).collect()
    };
    let user = Rules { allow: read(&args.allow)?, deny: read(&args.deny)?, ..Rules::default() };
    Ok(StandingRules { user, ..StandingRules::default() })
}

/// What the person took for good in this workspace.
fn remembered(env: &BTreeMap<String, String>, workspace: &std::path::Path) -> Result<Vec<Rule>, Failure> {
    let Some(path) = remembered::path(env) else { return Ok(Vec::new()) };
    remembered::read(&path, workspace).map_err(|error| {
        let help = format!("mend {}, or remove it", path.display());
        Failure::new(Exit::Configuration, format!("remembered permissions cannot be read: {error}"), Some(help))
    })
}

fn folders(args: &AgentArgs) -> Result<Arc<[std::path::PathBuf]>, Failure> {
    let folder = |path: &std::path::PathBuf| {
        let told = |error| Failure::usage(format!("--add-dir {}: {error}", path.display()), None);
        path.canonicalize().map_err(told)
    };
    args.add_dir.iter().map(folder).collect()
}

/// The model that the command line names, or the answers in a file.
fn model(args: &AgentArgs) -> Result<Model, Failure> {
    let Some(path) = &args.replay else {
        return Err(Failure::usage("no model", None));
    };
    let replay = Replay::open(path).map_err(|error| Failure::usage(error.to_string(), None))?;
    Ok(Model::replay(replay))
}
