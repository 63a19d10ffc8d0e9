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

use std::path::PathBuf;
use std::sync::Arc;

use gatehook_agent::approval::SafetyMode;
use gatehook_agent::report::Watches;
use gatehook_agent::session::{Beginning, Person, Session, Setup};
use gatehook_agent::team::Team;
use gatehook_agent::tools::Scene;
use gatehook_agent::watch::{Changes, Watching};
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

pub(crate) use leading::{alone, lead};

use self::agents::Making;

/// How full the model's window may be.
const COMPACT_AT: f64 = 0.9;

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
    let policy = Reading::of_agents(&[], args.config.as_deref(), "native", &env)?.policy()?;
    list::waiting(&policy).into_iter().for_each(|note| printer.note(&note));
    let recording = Recording::of_agent(policy.traces(), &env);
    let here = std::env::current_dir()?.canonicalize()?;
    let beginning = kept::beginning(args, &env, &here)?;
    let team = policy.team()?;
    let making = Making { args, policy: &policy, env: &env, team: &team };
    let mut agents = making.agents()?;
    let about = context::about(&env);
    let told_first = context::before(&about, &beginning, agents.root(), &here);
    let interval = team.defaults.maintenance_interval.unwrap_or(MAINTENANCE);
    let prepared = prepare_if_due(&policy, interval, context::of_folder(&told_first, &here), &env, printer)?;
    if prepared.is_some() {
        // Their hooks know now what was prepared.
        agents = making.agents()?;
    }
    let skills = context::skills(&policy, &env, printer)?;
    let journal: Arc<dyn Journal> = match sessions::path(&env) {
        Some(path) => Arc::new(Sessions::new(path)),
        None => {
            printer.note("the session is not kept: neither XDG_STATE_HOME nor HOME is set");
            Arc::new(Forgets)
        }
    };
    let (allowed, mode) = (folders(args, &team)?, mode(args)?);
    let tools_env = context::environment(&policy, &env)?;
    // Last, so that nothing keeps the session from beginning in it.
    let worktree = args.worktree.as_deref().map(|branch| Worktree::make(branch, &here)).transpose()?;
    let told = |tree: &Worktree| tree.told(&policy, agents.root().executor.clone(), told_first, printer);
    let created = worktree.as_ref().map(told).transpose()?;
    let workspace = worktree.map_or(here, |tree| tree.workspace);
    let said = [prepared.unwrap_or_default(), created.unwrap_or_default()];
    let context::Told { standing, about } = context::told(&workspace, about, &said);
    let changes = Changes::default();
    let watching = context::watching(&workspace, &agents, &skills, (&changes, &tools_env), printer);
    let scene = Scene { session_id: "".into(), workspace: workspace.into(), allowed, env: Arc::new(tools_env) };
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
        compact_at: team.defaults.compaction_threshold.unwrap_or(COMPACT_AT),
    };
    Ok(Ready { setup, beginning, recording, _watching: watching })
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
