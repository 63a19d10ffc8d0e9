//! The agent of `run` and `chat`: from configuration and command line to a session that can begin.
//!
//! `context`: what the project tells it. `worktree`: a working tree of its own. `headless`: what `run` prints. `leading`: signals, and the end of all that a session started.

mod agents;
mod context;
pub(crate) mod headless;
mod kept;
mod leading;
pub(crate) mod remembered;
mod worktree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_agent::agents::Agents;
use gatehook_agent::approval::SafetyMode;
use gatehook_agent::mcp::{Host, ServerDefinition, Servers};
use gatehook_agent::model::Model;
use gatehook_agent::report::{Report, Watches};
use gatehook_agent::session::{Beginning, Person, Session, Setup};
use gatehook_agent::team::{Team, Tools};
use gatehook_agent::tools::Scene;
use gatehook_agent::watch::{Changes, Watching};
use gatehook_events::journal::{Forgets, Journal};
use gatehook_gateway::ModelConfig;
use gatehook_store::Sessions;

use crate::args::AgentArgs;
use crate::commands::list;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::models::AgentModels;
use crate::policy::{self, Reading};
use crate::preparing::{MAINTENANCE, prepare_if_due};
use crate::print::Printer;
use crate::recording::Recording;
use crate::sessions;

use self::worktree::Worktree;

pub(crate) use leading::{alone, lead};

use self::agents::Making;

type Env = BTreeMap<String, String>;

/// An agent that can begin.
pub(crate) struct Ready {
    setup: Setup,
    beginning: Beginning,
    recording: Recording,
    servers: Servers,
    /// What files say of models.
    models: Vec<ModelConfig>,
    /// The command line says which model answers.
    is_model_said: bool,
    /// Who looks at files while it works.
    _watching: Option<Watching>,
}

/// A session that can begin, or go on.
pub(crate) struct Begun {
    pub(crate) session: Session,
    /// What the person is to know of it, behind what was said before.
    pub(crate) note: Option<Report>,
}

/// Who looks on, and who is asked.
pub(crate) struct Audience {
    pub(crate) watcher: Arc<dyn Watches>,
    pub(crate) person: Option<Arc<dyn Person>>,
}

/// Reads the configuration, and puts an agent together.
pub(crate) fn ready(args: &AgentArgs, audience: Audience, printer: &mut Printer) -> Result<Ready, Failure> {
    let env = policy::environment();
    let policy = Reading::of_agents(&[], args.config.as_deref(), "native", &env)?.policy()?;
    list::waiting(&policy).into_iter().for_each(|note| printer.note(&note));
    let recording = Recording::of_agent(policy.traces(), &env);
    let here = std::env::current_dir()?.canonicalize()?;
    let beginning = kept::beginning(args, &env, &here)?;
    let team = policy.team()?;
    let making = |workspace: &Arc<Path>, env_of_tools: &Env| -> Result<(Servers, Agents), Failure> {
        let watcher = audience.watcher.clone();
        let notices =
            Arc::new(move |text: String| watcher.report(Report::Notice { level: "warning", text: text.into() }));
        let host = Host { workspace: workspace.clone(), env: Arc::new(env_of_tools.clone()), notices };
        let servers = Servers::new(&used(&team), &host);
        let agents = Making { args, policy: &policy, env: &env, team: &team, servers: &servers }.agents()?;
        Ok((servers, agents))
    };
    let mut workspace: Arc<Path> = here.clone().into();
    let mut env_of_tools = context::environment(&policy, &env)?;
    let (mut servers, mut agents) = making(&workspace, &env_of_tools)?;
    let about = context::about(&env);
    let told_first = context::before(&about, &beginning, agents.root(), &here);
    let interval = team.defaults.maintenance_interval.unwrap_or(MAINTENANCE);
    let prepared = prepare_if_due(&policy, interval, context::of_folder(&told_first, &here), &env, printer)?;
    let skills = context::skills(&policy, &env, printer)?;
    let models = policy.known_models(&env);
    let journal: Arc<dyn Journal> = match sessions::path(&env) {
        Some(path) => Arc::new(Sessions::new(path)),
        None => {
            printer.note("the session is not kept: neither XDG_STATE_HOME nor HOME is set");
            Arc::new(Forgets)
        }
    };
    let (allowed, mode) = (folders(args, &team)?, mode(args)?);
    // Last, so that nothing keeps the session from beginning in it.
    let worktree = args.worktree.as_deref().map(|branch| Worktree::make(branch, &here)).transpose()?;
    let mut said = vec![prepared.clone().unwrap_or_default()];
    if let Some(tree) = &worktree {
        said.push(tree.told(&policy, agents.root().executor.clone(), told_first, printer)?);
        workspace = tree.workspace.as_path().into();
    }
    if prepared.is_some() || worktree.is_some() {
        // Hooks, tools and servers know now what was prepared, and where they work.
        env_of_tools = context::environment(&policy, &env)?;
        (servers, agents) = making(&workspace, &env_of_tools)?;
    }
    let context::Told { standing, about } = context::told(&workspace, about, &said);
    let changes = Changes::default();
    let watching = context::watching(&workspace, &agents, &skills, (&changes, &env), printer);
    let shared = worktree::shared(&workspace).unwrap_or_default().into();
    let scene = Scene { session_id: "".into(), workspace, allowed, shared, env: Arc::new(env_of_tools) };
    let setup = Setup {
        agents,
        scene,
        skills,
        changes,
        mode: mode.or(team.root().and_then(|root| root.mode)).or(team.defaults.mode),
        person: audience.person,
        watcher: audience.watcher,
        journal,
        recorder: recording.recorder(),
        standing: standing.into(),
        about: Arc::new(about),
    };
    let is_model_said = args.model.is_some() || args.replay.is_some();
    Ok(Ready { setup, beginning, recording, servers, models, is_model_said, _watching: watching })
}

/// The servers that an agent may call.
fn used(team: &Team) -> Vec<ServerDefinition> {
    let is_used = |server: &&ServerDefinition| {
        team.agents.iter().any(|agent| match &agent.toolsets {
            Some(sets) => sets.iter().any(|set| set.tools == Tools::Server(server.name.clone())),
            None => true,
        })
    };
    team.servers.iter().filter(is_used).cloned().collect()
}

impl Ready {
    /// The session, not begun yet.
    pub(crate) async fn session(&self) -> Result<Begun, Failure> {
        self.begun(self.beginning.clone()).await
    }

    /// What the session is made of.
    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The models that files name.
    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        self.models.iter().map(|model| &*model.name).filter(|name| !name.contains('*'))
    }

    /// The model of a name as in `ollama/llama3`.
    pub(crate) fn model(&self, name: &str) -> Result<Model, Failure> {
        AgentModels::new(self.models.clone(), &self.setup.scene.env).named(name)
    }

    /// A session of which nothing has been said.
    pub(crate) async fn cleared(&self) -> Result<Begun, Failure> {
        self.begun(kept::new("clear")).await
    }

    /// A session that was kept, by its identity or the beginning of it.
    pub(crate) async fn resumed(&self, id: &str) -> Result<Begun, Failure> {
        let (id, env) = (id.to_owned(), self.setup.scene.env.clone());
        let read = tokio::task::spawn_blocking(move || kept::resumed(&id, &env)).await;
        self.begun(read.map_err(|error| Failure::new(Exit::Defect, error.to_string(), None))??).await
    }

    async fn begun(&self, mut beginning: Beginning) -> Result<Begun, Failure> {
        self.servers.ready().await;
        let gone = self.choose(&mut beginning);
        let session = Session::new(self.setup.clone(), beginning).await;
        let session = session
            .map_err(|error| Failure::new(Exit::System, format!("the session cannot be kept: {error}"), None))?;
        let note = gone.map(|(name, why)| {
            let now = session.agent().model.id();
            let text = format!("the model `{name}` of this session cannot be had, and `{now}` answers: {why}").into();
            Report::Notice { level: "warning", text }
        });
        Ok(Begun { session, note })
    }

    /// A session goes on with the model that the person had chosen, unless the command line names one. What it was, and
    /// why not, where it cannot be had.
    fn choose(&self, beginning: &mut Beginning) -> Option<(Arc<str>, Failure)> {
        let name = beginning.conversation.chosen_model().filter(|_| !self.is_model_said)?.clone();
        match self.model(&name) {
            Ok(model) => {
                beginning.model = Some(model);
                None
            }
            Err(why) => Some((name, why)),
        }
    }

    /// Ends what the session was served by.
    pub(crate) async fn close(&self) {
        self.servers.close().await;
    }

    /// Writes what still waits to be remembered.
    pub(crate) fn finish(&self, printer: &mut Printer) {
        self.recording.finish(printer);
    }
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

/// Folders beside the workspace: of the configuration, and of the command line.
fn folders(args: &AgentArgs, team: &Team) -> Result<Arc<[PathBuf]>, Failure> {
    let folder = |path: &PathBuf| {
        let told = |error| Failure::usage(format!("the folder {} cannot be used: {error}", path.display()), None);
        path.canonicalize().map_err(told)
    };
    team.defaults.folders.iter().flatten().chain(&args.add_dir).map(folder).collect()
}
