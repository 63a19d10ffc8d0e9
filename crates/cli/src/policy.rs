//! From configuration files to hooks in force: what all of them say together, and all that is wrong with them at once.

mod reading;
mod said;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use gatehook_agent::skills::Skills;
use gatehook_agent::team::{AgentDefinition, Team, TeamError, is_part};
use gatehook_engine::config::{ConfigError, TraceSettings};
use gatehook_engine::definition::HookDefinition;
use gatehook_engine::trust::{Ground, Judged, Judgement, PROJECT_DIR, of_right};
use gatehook_engine::{BuildError, Executor, HandlerEnv, HookGroup, HooksConfig, Options, Registry};
use gatehook_events::profile::NAMES;
use gatehook_events::{Event, Profile};
use gatehook_gateway::ModelConfig;
use gatehook_gateway::config::Config;
use gatehook_gateway::settings::{self, Settings};

pub(crate) use self::reading::Reading;
use self::said::Said;
use crate::failure::Failure;
use crate::models::{self, AgentModels};
use crate::skills::Found;
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
mod tests;
