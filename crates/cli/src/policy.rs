//! From configuration files to hooks in force: what all of them say together, and all that is wrong with them at once.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatehook_agent::skills::Skills;
use gatehook_agent::team::{self, AgentDefinition, Team, TeamError, TeamFile, is_part};
use gatehook_engine::config::ollm::{self, OllmOptions};
use gatehook_engine::config::{
    self, ConfigError, Diagnostic, DiagnosticKind, Diagnostics, Document, ReadOptions, TraceSettings,
};
use gatehook_engine::definition::{HookDefinition, Source};
use gatehook_engine::trust::{Ground, Judged, Judgement, PROJECT_DIR, Project, Required, judge, of_right};
use gatehook_engine::{BuildError, Executor, HandlerEnv, HookGroup, HooksConfig, Options, Registry};
use gatehook_events::profile::NAMES;
use gatehook_events::{Event, Profile};
use gatehook_gateway::ModelConfig;
use gatehook_gateway::config::Config;
use gatehook_gateway::settings::{self, Settings};

use crate::failure::Failure;
use crate::models::{self, AgentModels};
use crate::owned::{Other, by_others};
use crate::places::{Place, not_a_file, usual_places};
use crate::skills::{self, Found};
use crate::trust;
use crate::variables::{self, Variables, VariablesError};

/// What files and environment say together.
#[derive(Debug)]
pub(crate) struct Policy {
    /// All hooks, and whether each is in force; but for those of single agents.
    pub(crate) judgement: Judgement,
    /// Hooks of single agents, and what else of an agents' file needs an approval.
    of_agents: Vec<Judged>,
    /// What the hooks of a project were judged by.
    pub(crate) ground: Option<Ground>,
    skills: Vec<Found>,
    said: Said,
}

/// What files and environment say, hooks not judged yet.
#[derive(Debug, Default)]
struct Said {
    hooks: HooksConfig,
    required: Vec<Required>,
    max_concurrent_hooks: Option<NonZeroUsize>,
    settings: Settings,
    /// What somebody should know who believes that all of a file is in force.
    notes: Vec<String>,
    traces: TraceSettings,
    /// What the administrator's files say, and the names of what nobody else changes of it.
    managed: Settings,
    locked: Vec<String>,
    /// What each file says of agents, from the weakest to the strongest.
    teams: Vec<TeamFile>,
}

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PolicyError {
    /// All that is wrong at once.
    #[error("the configuration cannot be used")]
    Unusable {
        /// Files, and the environment, that cannot be understood.
        files: Vec<ConfigError>,
        /// Hooks of the other files that cannot be put into force.
        hooks: Vec<BuildError>,
    },
    /// Agents name what is not there.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// `--dialect` names no profile.
    #[error("there is no profile `{0}`; profiles are {known}", known = NAMES.join(", "))]
    UnknownProfile(String),
    /// What setup hooks left to others cannot be had.
    #[error(transparent)]
    Variables(#[from] VariablesError),
    /// The working directory is gone.
    #[error("the working directory cannot be read: {0}")]
    WorkingDir(#[from] std::io::Error),
}

/// This process's environment; what is no UTF-8 is left out.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The profile of this name.
pub(crate) fn profile(name: &str) -> Result<Profile, PolicyError> {
    Profile::from_name(name).ok_or_else(|| PolicyError::UnknownProfile(name.to_owned()))
}

/// What is read, and how.
pub(crate) struct Reading<'a> {
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) profile: Profile,
    pub(crate) places: Vec<Place>,
    /// The project whose hooks its owner may have approved; `serve` has none.
    pub(crate) project: Option<Project>,
    /// Whether the variables of [`config::OLLAMA_VARIABLES`] speak too.
    pub(crate) environment: bool,
    /// Whether agents run: then docker-agent's own files are read as a whole, and hooks of their agents are theirs.
    pub(crate) agents: bool,
}

impl<'a> Reading<'a> {
    /// The files that the user named, else all there is: the usual places, the project around the working directory,
    /// `GATEHOOK_CONFIG`, and the environment.
    pub(crate) fn of(named: &[PathBuf], dialect: &str, env: &'a BTreeMap<String, String>) -> Result<Self, PolicyError> {
        let named_profile = profile(dialect)?;
        if named.is_empty() {
            // Every contract has files of its own, which say it themselves.
            let profile = Profile::Native;
            let config = env.get("GATEHOOK_CONFIG").filter(|path| !path.is_empty()).map(Path::new);
            let project = Project::around(&std::env::current_dir()?, env)?;
            let places = usual_places(env, config, Some(project.root()));
            return Ok(Self { env, profile, places, project: Some(project), environment: true, agents: false });
        }
        let places = named.iter().map(|path| Place::named(path)).collect();
        Ok(Self { env, profile: named_profile, places, project: None, environment: false, agents: false })
    }

    /// The same for agents that run, and a file of agents that the user named beside all others.
    pub(crate) fn of_agents(
        named: &[PathBuf],
        agents: Option<&Path>,
        dialect: &str,
        env: &'a BTreeMap<String, String>,
    ) -> Result<Self, PolicyError> {
        let mut reading = Self { agents: true, ..Self::of(named, dialect, env)? };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(file) = agents {
            // Who names a file answers for it, wherever it lies.
            reading.places.retain(|place| real(&place.path) != real(file));
            reading.places.push(Place::named(file));
        }
        Ok(reading)
    }

    /// What all of it says, or everything that is wrong with any of it.
    pub(crate) fn policy(&self) -> Result<Policy, PolicyError> {
        let mut said = Said::default();
        let (mut files, mut errors) = (Vec::new(), Vec::new());
        self.places.iter().for_each(|place| self.read(place.clone(), &mut files, &mut errors));
        obey_ollm(&mut files);
        // Hooks add up, in falling order of authority; of plain settings the strongest place's stands.
        said.hooks.groups.extend(files.iter().flat_map(|(_, read)| read.file.hooks.groups.clone()));
        let mut of_agents = HooksConfig::default();
        for (_, read) in &mut files {
            of_agents.append(read.team.take_hooks());
            of_agents.append(read.team.parts());
        }
        let extensions = self.extensions(files.iter().map(|(place, _)| place));
        files.sort_by_key(|(place, _)| strength(place));
        files.into_iter().for_each(|(place, read)| said.take(&place, read));
        match if self.environment { config::ollama_env(self.env) } else { Ok(None) } {
            Ok(hooks) => said.user_hooks(hooks.unwrap_or_default()),
            Err(error) => errors.push(error),
        }
        if !errors.is_empty() {
            let env = handler_env(self.env)?;
            let hooks = faults(&said.hooks, &env, &said.registry(&env));
            return Err(PolicyError::Unusable { files: errors, hooks });
        }
        let ground = self.project.clone().map(|project| trust::ground(project, extensions, self.env));
        let skills = self.skills(&mut said);
        let mut hooks = std::mem::take(&mut said.hooks);
        hooks.append(of_agents);
        // All at once: the hash that somebody names as trusted is over all that a project brings.
        let mut judgement = match &ground {
            Some(ground) => judge(hooks, ground),
            None => of_right(hooks),
        };
        trust::switch_off(&mut judgement, self.env);
        let is_of_agents = |judged: &Judged| judged.definition.origin.agent.is_some() || is_part(&judged.definition);
        let (of_agents, hooks) = judgement.hooks.into_iter().partition(is_of_agents);
        judgement.hooks = hooks;
        let mut policy = Policy { judgement, of_agents, ground, skills, said };
        policy.settle_teams();
        Ok(policy)
    }

    /// The skills of the user and of the project. Their hooks are judged as all others are.
    fn skills(&self, said: &mut Said) -> Vec<Found> {
        let Some(project) = &self.project else { return Vec::new() };
        let builtins = registry().builtin_names();
        let builtins: Vec<&str> = builtins.iter().map(String::as_str).collect();
        let (found, notes) = skills::find(self.env, project.root(), &builtins);
        said.notes.extend(notes);
        said.hooks.groups.extend(found.iter().flat_map(|skill| skill.file.hooks.groups.clone()));
        found
    }

    /// Reads a file, and behind it what it imports.
    fn read(&self, place: Place, files: &mut Vec<(Place, Read)>, errors: &mut Vec<ConfigError>) {
        match self.file(&place) {
            Ok(file) => {
                let imports = file.file.imports.clone();
                files.push((place.clone(), file));
                for import in imports {
                    self.read(place.import(import.file, import.profile.name()), files, errors);
                }
            }
            Err(error) => errors.push(error),
        }
    }

    /// What one file says to the engine, to the gateway and of agents.
    fn file(&self, place: &Place) -> Result<Read, ConfigError> {
        let builtins = registry().builtin_names();
        let builtins: Vec<&str> = builtins.iter().map(String::as_str).collect();
        let folder = place.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Hooks of a project run in its folder, wherever their file is.
        let project = self.project.as_ref().filter(|_| place.source.needs_approval()).map(Project::root);
        let sections: Vec<&str> = team::sections().collect();
        let mut options = ReadOptions {
            profile: place.dialect.and_then(Profile::from_name).unwrap_or(self.profile),
            sections: &sections,
            source: place.source,
            working_dir: place.folder.as_deref().or(project).unwrap_or(folder).to_owned(),
            env: self.env,
            builtins: Some(&builtins),
            file: Some(Arc::new(place.path.clone())),
            ..ReadOptions::default()
        };
        let document = Self::open(place)?;
        if place.part.is_some_and(|part| document.root.get(part).is_none()) {
            return Ok(Read::of(config::File::new(&options)));
        }
        if options.profile == Profile::Ollm && !place.is_named && ollm::is_of_panel(&document) {
            let note = "a hook of `when` and `then` speaks no hook protocol, and is not run".to_owned();
            return Ok(Read::of(config::File { notes: vec![note], ..config::File::new(&options) }));
        }
        let is_own = match is_docker_agent(options.profile) {
            true => config::docker_agent::is_own(&document),
            false => place.is_named && team::is_own(&document),
        };
        // Files of other systems that are found or imported bring hooks alone.
        let is_team = is_own && self.agents && place.dialect.is_none();
        if is_team && !is_docker_agent(options.profile) {
            options.profile = Profile::DockerAgent;
        }
        let diagnostics = Diagnostics::new();
        // Its hooks are those of its agents: each has its own, and a host that runs none has those of the first.
        let mut read = match is_team {
            true => Read::of(config::File::new(&options)),
            false => {
                let (file, settings) = settings::read_parts(&document, &options, &diagnostics);
                Read { file, settings, team: TeamFile::default() }
            }
        };
        if is_team || (place.dialect.is_none() && !is_own) {
            read.team = team::read(&document, &options, &diagnostics);
        }
        let mut read = diagnostics.finish(&document, read)?;
        read.file.hooks.hooks_mut().for_each(|hook| settle(hook, place));
        read.team.agents.iter_mut().for_each(|agent| agent.hooks.hooks_mut().for_each(|hook| settle(hook, place)));
        Ok(read)
    }

    /// A file's content, where it is one. What somebody named may also be a pipe.
    fn open(place: &Place) -> Result<Document, ConfigError> {
        if let Some(other) = place.owner.and_then(|owner| by_others(&place.path, owner)) {
            return Err(refuse_others(place, &other));
        }
        let may_be_a_pipe = place.is_named && place.dialect.is_none();
        if let Some(why) = not_a_file(&place.path).filter(|_| !may_be_a_pipe) {
            let problem = Diagnostic::new(DiagnosticKind::Unreadable, "", why);
            let problem = problem.help("remove it, or put the file back that belongs there");
            return Err(ConfigError::one(&place.path.display().to_string(), "", problem));
        }
        let document = Document::open(&place.path)?;
        refuse_empty(&document)?;
        Ok(document)
    }

    /// The folders of installed extensions, each of which is approved by itself.
    fn extensions<'p>(&self, places: impl Iterator<Item = &'p Place>) -> Vec<Project> {
        let folders = places.filter(|place| place.is_installed).filter_map(|place| place.folder.as_deref());
        folders.filter_map(|folder| Project::at(folder, self.env).ok()).collect()
    }
}

/// What a file says to the engine, to the gateway, and of agents.
struct Read {
    file: config::File,
    settings: Settings,
    team: TeamFile,
}

impl Read {
    /// A file that says nothing but to the engine.
    fn of(file: config::File) -> Self {
        Self { file, settings: Settings::default(), team: TeamFile::default() }
    }
}

fn is_docker_agent(profile: Profile) -> bool {
    config::docker_agent::is_of(profile)
}

/// Lets a hook run where its program would run it.
fn settle(hook: &mut HookDefinition, place: &Place) {
    let Some(folder) = &place.folder else { return };
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let Some(folder) = folder.to_str() else { return };
    hook.working_dir.get_or_insert_with(|| folder.to_owned());
    if hook.profile == Profile::OllamaCli {
        hook.env.entry("OLLAMA_PROJECT_DIR".to_owned()).or_insert_with(|| folder.to_owned());
    }
}

/// Puts what OLLM's settings say of hooks upon those of its other files.
fn obey_ollm(files: &mut [(Place, Read)]) {
    let of_user = files.iter().filter(|(place, _)| place.source == Source::User && place.part.is_some());
    let said: Vec<(String, OllmOptions)> =
        of_user.map(|(place, read)| (place.path.display().to_string(), read.file.ollm.clone())).collect();
    for (path, options) in &said {
        files.iter_mut().for_each(|(_, read)| options.apply(&mut read.file.hooks, path));
        let note = "`trustWorkspace` is not followed: `gatehook hooks trust` approves what a workspace brings";
        for (place, Read { file, .. }) in
            files.iter_mut().map(|(place, read)| (&*place, read)).filter(|_| options.trust_workspace == Some(true))
        {
            file.notes.extend((place.path.display().to_string() == *path).then(|| note.to_owned()));
        }
    }
}

/// Whose plain settings stand, the weakest first: managed ones that are not locked, the user's, a project's, those of a
/// file that was named.
fn strength(place: &Place) -> u8 {
    match place.source {
        Source::Managed => 0,
        Source::User if place.is_named => 3,
        Source::User | Source::Builtin => 1,
        Source::Workspace | Source::Extension | Source::Downloaded => 2,
    }
}

impl Said {
    /// What runs hooks, and the models that judge.
    fn registry(&self, env: &HandlerEnv) -> Registry {
        let registry = registry();
        registry.register_model_client(Arc::new(models::known(self.models().to_vec(), &env.env)));
        registry
    }

    /// What files say of models.
    fn models(&self) -> &[ModelConfig] {
        if self.keeps_models() { self.managed.models() } else { self.settings.models() }
    }

    /// Whether nobody but the administrator says where models are.
    fn keeps_models(&self) -> bool {
        self.locked.iter().any(|name| name == "models")
    }

    /// Takes what a file says beside its hooks. What needs an approval may tighten, and says nothing to the gateway.
    fn take(&mut self, place: &Place, Read { file, settings, team }: Read) {
        self.teams.push(team);
        self.notes.extend(file.notes.iter().map(|note| format!("{}: {note}", place.path.display())));
        self.required.extend(file.required);
        self.locked.extend(file.locked);
        let is_locked = |name: &str| self.locked.iter().any(|locked| locked == name);
        self.max_concurrent_hooks = match (file.max_concurrent_hooks, self.max_concurrent_hooks) {
            (Some(_), before) if place.source != Source::Managed && is_locked("max_concurrent_hooks") => before,
            (Some(said), Some(before)) if place.source.needs_approval() => Some(said.min(before)),
            (said, before) => said.or(before),
        };
        if place.source == Source::Managed {
            self.managed = settings.clone().or(std::mem::take(&mut self.managed));
        }
        if !place.source.needs_approval() && (place.source == Source::Managed || !is_locked("traces")) {
            self.traces = file.traces.or(std::mem::take(&mut self.traces));
        }
        if !place.source.needs_approval() {
            self.settings = settings.or(std::mem::take(&mut self.settings));
        }
    }

    /// Adds hooks of the user behind all with as much authority.
    fn user_hooks(&mut self, hooks: HooksConfig) {
        let is_foreign = |group: &HookGroup| group.hooks.iter().any(|hook| hook.origin.source.needs_approval());
        let at = self.hooks.groups.iter().position(is_foreign).unwrap_or(self.hooks.groups.len());
        self.hooks.groups.splice(at..at, hooks.groups);
    }
}

/// What others could have written is not the administrator's word.
fn refuse_others(place: &Place, Other { path, why }: &Other) -> ConfigError {
    let what = if *path == place.path { String::new() } else { format!("{}: ", path.display()) };
    let problem = Diagnostic::new(DiagnosticKind::WritableByOthers, "", format!("{what}{why}"));
    let path = path.display();
    let problem = problem.help(format!(
        "look through it, then `chown root {path}` and `chmod go-w {path}`: what is managed must be root's alone"
    ));
    ConfigError::one(&place.path.display().to_string(), "", problem)
}

/// A file without a byte is one that was cut off, by a full disk or a broken copy: it must not open what it guarded.
fn refuse_empty(document: &Document) -> Result<(), ConfigError> {
    if !document.text.trim().is_empty() {
        return Ok(());
    }
    let problem = Diagnostic::new(DiagnosticKind::InvalidValue, "", "the file is empty");
    let problem = problem.help("write `hooks: {}` where nothing is meant, or remove the file");
    Err(ConfigError::one(&document.name, &document.text, problem))
}

impl Policy {
    /// Hooks that need no approval, and nothing else.
    pub(crate) fn of_right(hooks: HooksConfig) -> Self {
        Self {
            judgement: of_right(hooks),
            of_agents: Vec::new(),
            ground: None,
            skills: Vec::new(),
            said: Said::default(),
        }
    }

    /// Leaves in each agents' file what may be used of it.
    fn settle_teams(&mut self) {
        let Self { of_agents, said, .. } = self;
        let same = |judged: &&Judged, part: &HookDefinition| {
            let (known, origin) = (&judged.definition, &part.origin);
            is_part(known) && known.name == part.name && known.origin == *origin
        };
        for team in &mut said.teams {
            let notes = team.settle(|part| {
                let judged = of_agents.iter().find(|judged| same(judged, part)).ok_or("it was not looked at")?;
                match judged.standing.why() {
                    None => Ok(Judgement::seal(judged)),
                    Some(why) => Err(why),
                }
            });
            said.notes.extend(notes);
        }
        let agents = said.teams.iter_mut().flat_map(|team| &mut team.agents);
        agents.for_each(|agent| agent.hooks = hooks_of(of_agents, &agent.name, &agent.origin.file));
    }

    /// The agents that all files define together, each with those of its hooks that are in force.
    pub(crate) fn team(&self) -> Result<Team, PolicyError> {
        Ok(Team::of(self.said.teams.iter().cloned())?)
    }

    /// The models that agents can be given.
    pub(crate) fn models<'e>(&self, env: &'e BTreeMap<String, String>) -> AgentModels<'e> {
        AgentModels::new(self.known_models(env), env)
    }

    /// What files say of models. A file that needs an approval does not say where one is: what is said to a model would go
    /// there, with a key.
    pub(crate) fn known_models(&self, env: &BTreeMap<String, String>) -> Vec<ModelConfig> {
        let said = self.said.teams.iter().filter(|team| !team.origin.source.needs_approval());
        let defined = said.filter(|_| !self.said.keeps_models()).flat_map(|team| &team.models);
        let defined = defined.map(|definition| models::defined(definition, env));
        defined.chain(self.said.models().iter().cloned()).collect()
    }

    /// Hooks of single agents.
    pub(crate) fn hooks_of_agents(&self) -> impl Iterator<Item = &Judged> {
        self.of_agents.iter().filter(|judged| !is_part(&judged.definition))
    }

    /// Puts the hooks that hold for everybody into force, and those of one agent behind them.
    pub(crate) fn executor_of(
        &self,
        agent: &AgentDefinition,
        env: &BTreeMap<String, String>,
        more: &BTreeMap<String, String>,
    ) -> Result<Executor, PolicyError> {
        self.executor_beside(agent.hooks.clone(), env, more)
    }

    /// Everything that its owner has to approve.
    pub(crate) fn approvable(&self) -> impl Iterator<Item = &Judged> {
        self.judgement.hooks.iter().chain(&self.of_agents)
    }

    /// Puts the hooks that may run into force, or says what is wrong with each that cannot be.
    pub(crate) fn executor(&self, env: &BTreeMap<String, String>) -> Result<Executor, PolicyError> {
        self.executor_with(env, &BTreeMap::new())
    }

    /// The same, and every hook has these variables too.
    pub(crate) fn executor_with(
        &self,
        env: &BTreeMap<String, String>,
        more: &BTreeMap<String, String>,
    ) -> Result<Executor, PolicyError> {
        self.executor_beside(HooksConfig::default(), env, more)
    }

    fn executor_beside(
        &self,
        own: HooksConfig,
        env: &BTreeMap<String, String>,
        more: &BTreeMap<String, String>,
    ) -> Result<Executor, PolicyError> {
        let mut hooks = self.judgement.in_force(&self.said.required);
        hooks.append(own);
        self.build(self.equipped(hooks, env, more)?, env)
    }

    /// Hooks with the variables that they are given.
    fn equipped(
        &self,
        mut hooks: HooksConfig,
        env: &BTreeMap<String, String>,
        more: &BTreeMap<String, String>,
    ) -> Result<HooksConfig, PolicyError> {
        let kept = self.variables(env)?;
        let root = self.ground.as_ref().and_then(|ground| ground.project.root().to_str());
        for hook in hooks.groups.iter_mut().flat_map(|group| &mut group.hooks) {
            kept.iter().for_each(|kept| kept.give(hook));
            if let Some(root) = root {
                hook.env.entry(PROJECT_DIR.to_owned()).or_insert_with(|| root.to_owned());
            }
            hook.env.extend(more.clone());
        }
        Ok(hooks)
    }

    /// What setup hooks of this project left.
    pub(crate) fn variables(&self, env: &BTreeMap<String, String>) -> Result<Option<Variables>, PolicyError> {
        let kept = self.ground.as_ref().map(|ground| variables::of_project(ground.project.root(), env));
        Ok(kept.transpose()?.flatten())
    }

    /// What an agent can follow; what is wrong with the others goes to `notes`.
    pub(crate) fn skills(
        &self,
        env: &BTreeMap<String, String>,
        notes: &mut Vec<String>,
    ) -> Result<Skills, PolicyError> {
        let mut skills = Vec::new();
        for found in &self.skills {
            let in_force = self.judgement.of_skill(&found.path);
            let own: Vec<&Judged> = self.judgement.hooks.iter().filter(|judged| found.has(judged)).collect();
            let why = own.iter().find_map(|judged| judged.standing.why());
            let hooks = self.equipped(in_force, env, &BTreeMap::new())?;
            let hooks = (!hooks.is_empty()).then(|| self.build(hooks, env)).transpose();
            match hooks {
                Ok(hooks) => skills.push(found.skill(hooks, why)),
                Err(error) => {
                    notes.push(format!("{}: it cannot be used: {}", found.path.display(), Failure::from(error)))
                }
            }
        }
        Ok(Skills::new(skills))
    }

    /// Whether a standing hook of this event is in force.
    pub(crate) fn raises(&self, event: Event) -> bool {
        let of_event = |judged: &&Judged| judged.event == event && judged.definition.origin.skill.is_none();
        self.judgement.hooks.iter().filter(of_event).any(|judged| judged.standing.is_in_force())
    }

    /// All hooks, those that are not in force too: to be looked at, not to be run.
    pub(crate) fn whole(&self, env: &BTreeMap<String, String>) -> Result<Executor, PolicyError> {
        let standing = self.judgement.hooks.iter().filter(|judged| judged.definition.origin.skill.is_none());
        let all = standing.chain(self.hooks_of_agents()).map(|judged| HookGroup {
            event: judged.event,
            matcher: judged.matcher.clone(),
            hooks: vec![judged.definition.clone()],
        });
        self.build(HooksConfig { groups: all.collect() }, env)
    }

    fn build(&self, hooks: HooksConfig, env: &BTreeMap<String, String>) -> Result<Executor, PolicyError> {
        let env = handler_env(env)?;
        let mut options = Options::default();
        options.max_concurrent_hooks = self.said.max_concurrent_hooks.unwrap_or(options.max_concurrent_hooks);
        let built = Executor::with_options(hooks.clone(), env.clone(), &self.said.registry(&env), options);
        built.map_err(|first| {
            let each = faults(&hooks, &env, &self.said.registry(&env));
            PolicyError::Unusable { files: Vec::new(), hooks: if each.is_empty() { vec![first] } else { each } }
        })
    }

    /// What somebody should know who believes that all of every file is in force.
    pub(crate) fn notes(&self) -> &[String] {
        &self.said.notes
    }

    /// What is said to the gateway.
    pub(crate) fn settings(&self) -> &Settings {
        &self.said.settings
    }

    /// Whether dispatches are remembered.
    pub(crate) fn traces(&self) -> &TraceSettings {
        &self.said.traces
    }

    /// Takes back what was changed of the settings that the administrator locked.
    pub(crate) fn lock(&self, config: &mut Config) {
        let mut locked = Config::default();
        self.said.managed.clone().apply(&mut locked);
        settings::restore(&self.said.locked, &locked, config);
    }
}

/// The hooks in force of one file's agent.
fn hooks_of(judged: &[Judged], agent: &str, file: &Option<Arc<PathBuf>>) -> HooksConfig {
    let is_its = |judged: &&Judged| {
        let origin = &judged.definition.origin;
        origin.agent.as_deref() == Some(agent) && origin.file == *file && !is_part(&judged.definition)
    };
    let hooks = judged.iter().filter(is_its).cloned().collect();
    Judgement { hooks, hash: None }.in_force(&[])
}

/// What is wrong with each hook by itself.
fn faults(hooks: &HooksConfig, env: &HandlerEnv, registry: &Registry) -> Vec<BuildError> {
    let build = |hook| Executor::with_registry(hook, env.clone(), registry).err();
    each_hook(hooks).filter_map(build).collect()
}

/// Every hook as a configuration of its own.
fn each_hook(hooks: &HooksConfig) -> impl Iterator<Item = HooksConfig> {
    hooks.groups.iter().flat_map(|group| {
        group.hooks.iter().map(|hook| {
            let (matcher, hooks) = (group.matcher.clone(), vec![hook.clone()]);
            HooksConfig { groups: vec![HookGroup { event: group.event, matcher, hooks }] }
        })
    })
}

/// The engine's own handlers and builtins, and the foreign contracts.
pub(crate) fn registry() -> Registry {
    let registry = Registry::with_defaults();
    gatehook_dialects::all().into_iter().for_each(|dialect| registry.register_dialect(dialect));
    registry
}

fn handler_env(env: &BTreeMap<String, String>) -> std::io::Result<HandlerEnv> {
    Ok(HandlerEnv { working_dir: std::env::current_dir()?, env: env.clone() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use gatehook_events::{Event, Input};
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// What managed, user, workspace and named files of these texts say together.
    fn policy(texts: [&str; 4]) -> Result<Policy, PolicyError> {
        let folder = tempfile::tempdir().unwrap();
        let env = BTreeMap::from([("HOME".to_owned(), folder.path().display().to_string())]);
        let of = [("m", Source::Managed), ("u", Source::User), ("w", Source::Workspace), ("n", Source::User)];
        let places = of.into_iter().zip(texts).filter(|(_, text)| !text.is_empty()).map(|((name, source), text)| {
            let path = folder.path().join(format!("{name}.yaml"));
            std::fs::write(&path, text).unwrap();
            Place { source, is_named: name == "n", ..Place::named(&path) }
        });
        let places = places.collect();
        let project = Some(Project::at(folder.path(), &env).unwrap());
        Reading { env: &env, profile: Profile::Native, places, project, environment: false, agents: false }.policy()
    }

    fn count(policy: &Policy) -> Option<usize> {
        policy.said.max_concurrent_hooks.map(NonZeroUsize::get)
    }

    #[test]
    fn of_settings_the_strongest_stands_and_a_project_can_only_tighten() {
        let said = |number| format!("max_concurrent_hooks: {number}");
        for (texts, expected) in [
            ([&*said(1), &said(2), "", &said(4)], 4),
            ([&said(1), &said(2), "", ""], 2),
            ([&said(3), "", &said(9), ""], 3),
            ([&said(3), "", &said(2), ""], 2),
            ([&said(3), "", &said(2), &said(7)], 7),
            (["{max_concurrent_hooks: 5, locked: [max_concurrent_hooks]}", &said(9), &said(2), &said(7)], 5),
        ] {
            assert_eq!(count(&policy(texts).unwrap()), Some(expected), "{texts:?}");
        }
    }

    #[test]
    fn a_managed_file_that_others_could_have_written_stops_everything() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hooks: {}").unwrap();
        let me = file.path().metadata().unwrap().uid();
        let error = |owner| {
            let place = Place { source: Source::Managed, owner: Some(owner), ..Place::named(file.path()) };
            let env = BTreeMap::new();
            let (profile, places) = (Profile::Native, vec![place]);
            let reading = Reading { env: &env, profile, places, project: None, environment: false, agents: false };
            reading.policy().err().map(|error| match error {
                PolicyError::Unusable { files, .. } => files[0].to_string(),
                error => panic!("{error}"),
            })
        };
        assert_eq!(error(me), None);
        let (said, path) = (error(me + 1).unwrap(), file.path().display().to_string());
        for word in [&path, "it belongs to user", "[writable_by_others]", &format!("chown root {path}")] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }

    #[test]
    fn what_is_locked_is_the_administrators_whatever_was_set_since() {
        let policy =
            policy(["{management: closed, locked: [management, workers]}", "management: pass", "", ""]).unwrap();
        let mut config = Config::default();
        policy.settings().clone().apply(&mut config);
        config.workers = 77;
        policy.lock(&mut config);
        assert_eq!(config.management, gatehook_gateway::config::Door::Closed);
        assert_eq!(config.workers, Config::default().workers);
    }

    #[test]
    fn a_project_does_not_say_what_is_remembered_and_nobody_what_is_locked() {
        let said = |rows| format!("traces: {{max_rows: {rows}}}");
        let locked = "{traces: {max_rows: 1}, locked: [traces]}";
        for (texts, expected) in [
            (["", &*said(2), "traces: {max_rows: 3, enabled: false}", ""], 2),
            ([&said(1), &said(2), "", &said(4)], 4),
            ([locked, &said(2), "", &said(4)], 1),
        ] {
            let policy = policy(texts).unwrap();
            assert_eq!((policy.traces().max_rows, policy.traces().enabled), (Some(expected), None), "{texts:?}");
        }
    }

    #[test]
    fn a_project_says_nothing_to_the_gateway_and_requires_and_locks_nothing() {
        let policy = policy(["", "", "{upstreams: {x: {url: 'http://192.0.2.1'}}, management: closed}", ""]).unwrap();
        assert!(!policy.settings().names_upstreams());
        for refused in ["required: {pre_tool_use: [x]}", "locked: [listen]"] {
            assert!(super::tests::policy(["", "", refused, ""]).is_err(), "{refused}");
        }
    }

    #[tokio::test]
    async fn a_project_cannot_remove_loosen_or_disable_a_managed_hook() {
        let guard = "hooks: {pre_tool_use: [{name: guard, type: command, command: exit 2}]}";
        for workspace in [
            "hooks: {pre_tool_use: []}",
            "hooks: {pre_tool_use: [{name: guard, type: command, command: exit 0}]}",
            "hooks: {pre_tool_use: [{name: guard, type: command, command: exit 2, on_error: ignore}]}",
            "{defaults: {on_error: ignore, timeout: 1ms}, hooks: {}}",
            "{max_concurrent_hooks: 1, hooks: {}}",
        ] {
            let policy = policy([guard, "", workspace, ""]).unwrap();
            let executor = policy.executor(&BTreeMap::new()).unwrap();
            let cancel = CancellationToken::new();
            let verdict = executor.dispatch(Event::PreToolUse, &Input::default(), &cancel).await;
            assert!(!verdict.allowed, "{workspace}");
        }
        // What would switch all hooks off is no configuration, and nothing runs at all.
        for refused in ["hooks: {enabled: false}", "hooks: false", "hooks: {pre_tool_use: {enabled: false}}"] {
            assert!(policy([guard, "", refused, ""]).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_variable_switches_off_the_hooks_of_a_profile_but_for_managed_ones() {
        let hooks = "hooks: {stop: [{type: command, command: exit 0}]}";
        let mut judgement = policy([hooks, hooks, hooks, hooks]).unwrap().judgement;
        judgement.switch_off("native", "OLLAMA_HOOKS_ENABLED");
        let names: Vec<&str> = judgement.hooks.iter().map(|hook| hook.standing.name()).collect();
        assert_eq!(names, ["in_force", "switched_off", "switched_off", "switched_off"]);
    }
}
