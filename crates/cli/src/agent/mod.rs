//! The agent of `run` and `chat`: from configuration and command line to a session that can begin.
//!
//! `context`: what the project tells it. `worktree`: a working tree of its own. `headless`: what `run` prints. `leading`: signals, and the end of all that a session started.

mod context;
pub(crate) mod headless;
mod kept;
mod leading;
mod worktree;

use std::sync::Arc;

use gatehook_agent::agents::{Agent, Agents};
use gatehook_agent::approval::{Rule, Rules, SafetyMode, StandingRules};
use gatehook_agent::model::{Model, Replay};
use gatehook_agent::report::Watches;
use gatehook_agent::session::{Beginning, Person, Session, Setup};
use gatehook_agent::tools::{Scene, ToolSettings, builtin_tools};
use gatehook_agent::watch::{Changes, Watching};
use gatehook_engine::{HookDefinition, HookGroup};
use gatehook_events::Event;
use gatehook_events::journal::{Forgets, Journal};
use gatehook_store::Sessions;

use crate::args::AgentArgs;
use crate::commands::list;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::{self, Reading};
use crate::preparing::{MAINTENANCE, prepare_if_due};
use crate::print::Printer;
use crate::recording::Recording;
use crate::sessions;

use self::worktree::Worktree;

pub(crate) use leading::lead;

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
    /// Who looks at files while it works.
    _watching: Option<Watching>,
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
    let here = std::env::current_dir()?.canonicalize()?;
    let beginning = kept::beginning(args, &env, &here)?;
    let model = model(args)?;
    let about = context::about(&env);
    let told_first = context::before(&about, &beginning, &model, &here);
    let prepared = prepare_if_due(&policy, MAINTENANCE, context::of_folder(&told_first, &here), &env, printer)?;
    let executor = policy.agent_executor(&env, own_hooks())?;
    let skills = context::skills(&policy, &env, printer)?;
    let root = Agent {
        name: context::ROOT.into(),
        description: "".into(),
        instruction: INSTRUCTION.into(),
        model: Arc::new(model),
        tools: builtin_tools(&ToolSettings::default()),
        sub_agents: Vec::new(),
        handoffs: Vec::new(),
        executor: executor.clone(),
        rules: standing(args)?,
        max_iterations: args.max_iterations,
    };
    let journal: Arc<dyn Journal> = match sessions::path(&env) {
        Some(path) => Arc::new(Sessions::new(path)),
        None => {
            printer.note("the session is not kept: neither XDG_STATE_HOME nor HOME is set");
            Arc::new(Forgets)
        }
    };
    let (allowed, mode) = (folders(args)?, mode(args)?);
    let tools_env = context::environment(&policy, &env)?;
    // Last, so that nothing keeps the session from beginning in it.
    let worktree = args.worktree.as_deref().map(|branch| Worktree::make(branch, &here)).transpose()?;
    let created = worktree.as_ref().map(|tree| tree.told(&policy, executor, told_first, printer)).transpose()?;
    let workspace = worktree.map_or(here, |tree| tree.workspace);
    let context::Told { standing, about } = context::told(&workspace, about, &[prepared, created.unwrap_or_default()]);
    let agents = Agents::new(root, Vec::new());
    let changes = Changes::default();
    let watching = context::watching(&workspace, &agents, &skills, (&changes, &tools_env), printer);
    let scene = Scene { session_id: "".into(), workspace: workspace.into(), allowed, env: Arc::new(tools_env) };
    let setup = Setup {
        agents,
        scene,
        skills,
        changes,
        mode,
        person: audience.person,
        watcher: audience.watcher,
        journal,
        recorder: recording.recorder(),
        standing: standing.into(),
        about: Arc::new(about),
        compact_at: COMPACT_AT,
    };
    Ok(Ready { setup, beginning, recording, _watching: watching })
}

impl Ready {
    /// The session, not begun yet.
    pub(crate) async fn session(&self) -> Result<Session, Failure> {
        let session = Session::new(self.setup.clone(), self.beginning.clone()).await;
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
