//! The agents that files define, made ready to work.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatehook_agent::agents::{Agent, Agents};
use gatehook_agent::approval::{Rule, StandingRules};
use gatehook_agent::mcp::Servers;
use gatehook_agent::model::Model;
use gatehook_agent::team::{AgentDefinition, ROOT, Team, Tools};
use gatehook_agent::tools::{
    Sandboxing, Tool, ToolSettings, as_docker_agent, builtin_tools, name_in_docker_agent, toolset,
};
use gatehook_engine::client::Reach;
use gatehook_engine::{HookDefinition, HookGroup};
use gatehook_events::{Event, Profile};

use super::remembered;
use crate::args::AgentArgs;
use crate::failure::Failure;
use crate::models::AgentModels;
use crate::policy::Policy;

/// What an agent is told that no file tells anything.
const INSTRUCTION: &str = "You are an agent that works in the user's folder with the tools you are given. Look before you \
change anything, do what was asked and no more, and say in a few words what you did.";

/// Of the model's window so much may be full.
const COMPACT_AT: f64 = 0.9;

/// The same calls so many times in a row end a run.
const REPEATS: usize = 5;

/// What the agents are made of.
pub(super) struct Making<'a> {
    pub(super) args: &'a AgentArgs,
    pub(super) policy: &'a Policy,
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) team: &'a Team,
    pub(super) servers: &'a Servers,
}

impl Making<'_> {
    /// All agents, the one that begins first.
    pub(super) fn agents(&self) -> Result<Agents, Failure> {
        let models = self.policy.models(self.env);
        let replay = self.args.replay.as_deref().map(|file| models.replayed(file)).transpose()?;
        let root = self.root()?;
        let tools = self.tools();
        let make = |definition: &AgentDefinition| {
            let (model, summariser) = match &replay {
                Some(replay) => (replay.of_agent(&definition.name), None),
                None => self.models(definition, definition.name == root.name, &models)?,
            };
            let (model, summariser) = (Arc::new(model), summariser.map(Arc::new));
            self.agent(definition, &tools, summariser.unwrap_or_else(|| model.clone()), model)
        };
        let others = self.team.agents.iter().filter(|agent| agent.name != root.name);
        Ok(Agents::new(make(&root)?, others.map(make).collect::<Result<_, _>>()?))
    }

    fn root(&self) -> Result<AgentDefinition, Failure> {
        let Some(name) = &self.args.agent else {
            return Ok(self.team.root().cloned().unwrap_or_else(|| AgentDefinition::new(ROOT)));
        };
        self.team.agent(name).cloned().ok_or_else(|| {
            let known = self.team.agents.iter().map(|agent| &*agent.name);
            let help = gatehook_engine::config::did_you_mean(name, known);
            Failure::usage(format!("there is no agent `{name}`"), help)
        })
    }

    fn agent(
        &self,
        definition: &AgentDefinition,
        tools: &[Arc<dyn Tool>],
        summariser: Arc<Model>,
        model: Arc<Model>,
    ) -> Result<Agent, Failure> {
        let mut own = definition.clone();
        own.hooks.groups.extend(own_hooks());
        let defaults = &self.team.defaults;
        let cap = self.args.max_iterations.or(definition.max_iterations).or(defaults.max_iterations);
        let threshold = definition.compaction_threshold.or(defaults.compaction_threshold).unwrap_or(COMPACT_AT);
        Ok(Agent {
            name: definition.name.clone(),
            description: definition.description.clone(),
            welcome: definition.welcome.clone(),
            instruction: instruction(definition).into(),
            model,
            summariser,
            tools: of_toolsets(definition, tools),
            shelves: if self.servers.is_empty() { Vec::new() } else { vec![self.servers.shelf(definition)] },
            sub_agents: definition.sub_agents.clone(),
            handoffs: definition.handoffs.clone(),
            force_handoff: definition.force_handoff.clone(),
            commands: definition.commands.clone(),
            skills: definition.skills.clone(),
            executor: self.policy.executor_of(&own, self.env, &BTreeMap::new())?,
            rules: self.rules(definition)?,
            max_iterations: cap.filter(|cap| *cap > 0),
            max_repeats: definition.max_consecutive_tool_calls.unwrap_or(REPEATS),
            compact_at: definition.compacts.then_some(threshold),
        })
    }

    /// The agents' own tools, shared by all of them.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let defaults = &self.team.defaults;
        let mut settings = ToolSettings::default();
        if defaults.sandbox == Some(false) {
            settings.sandbox = Sandboxing::Off;
        }
        if defaults.private_addresses == Some(true) {
            settings.reach = Reach::Any;
        }
        builtin_tools(&settings)
    }

    /// An agent's model, and that of its summaries where it has another. The command line names the model of who begins,
    /// and of those that name none.
    fn models(
        &self,
        definition: &AgentDefinition,
        begins: bool,
        models: &AgentModels<'_>,
    ) -> Result<(Model, Option<Model>), Failure> {
        let (said, own) = (self.args.model.as_deref(), definition.model.as_deref());
        let said = if begins { said.or(own) } else { own.or(said) };
        let model = models.meant(said, self.team.defaults.model.as_deref())?;
        let summariser =
            definition.compaction_model.as_deref().map(|name| models.meant(Some(name), None)).transpose()?;
        let own = |model: Model| model.of_agent(&definition.name);
        Ok((own(model), summariser.map(own)))
    }

    /// What files permit, and the command line as the user's own rules.
    fn rules(&self, definition: &AgentDefinition) -> Result<StandingRules, Failure> {
        let read = |rules: &[String]| -> Result<Vec<Rule>, Failure> {
            let rule = |text: &String| text.parse::<Rule>().map_err(|error| Failure::usage(error.to_string(), None));
            rules.iter().map(rule).collect()
        };
        let mut rules = self.team.rules.clone();
        rules.user.allow.extend(read(&self.args.allow)?);
        rules.user.allow.extend(remembered::here(self.env)?);
        rules.user.deny.extend(read(&self.args.deny)?);
        let own = &definition.permissions;
        rules.workspace.allow.extend(own.allow.iter().cloned());
        rules.workspace.ask.extend(own.ask.iter().cloned());
        rules.workspace.deny.extend(own.deny.iter().cloned());
        Ok(rules)
    }
}

/// What an agent's model is told first: about itself, and about its tools.
fn instruction(definition: &AgentDefinition) -> String {
    let own = if definition.instruction.is_empty() { INSTRUCTION } else { &definition.instruction };
    let of_tools = definition.toolsets.iter().flatten().filter_map(|set| set.instruction.as_deref());
    std::iter::once(own).chain(of_tools).collect::<Vec<_>>().join("\n\n")
}

/// Hooks that every agent has: its tools do not touch keys, nor what guards them.
fn own_hooks() -> Vec<HookGroup> {
    let hooks = vec![HookDefinition::builtin("protect_files", &[])];
    vec![HookGroup { event: Event::ToolGuard, matcher: String::new(), hooks }]
}

/// The tools that an agent is given; all of them where its file does not say.
fn of_toolsets(definition: &AgentDefinition, tools: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
    let is_docker_agents = definition.profile == Profile::DockerAgent;
    let is_given = |tool: &&Arc<dyn Tool>| {
        let known = &tool.spec().tool;
        let theirs = name_in_docker_agent(&known.name).filter(|_| is_docker_agents);
        let Some(sets) = &definition.toolsets else { return known.read_only || !definition.read_only };
        sets.iter().any(|set| match &set.tools {
            Tools::Builtin(name) => {
                let is_in = toolset(name).is_some_and(|tools| tools.contains(&&*known.name));
                let names = |only: &String| **only == *known.name || theirs == Some(only);
                let is_named = set.only.is_empty() || set.only.iter().any(names);
                is_in && is_named && (known.read_only || !(set.read_only || definition.read_only))
            }
            Tools::Server(_) => false,
        })
    };
    let given = tools.iter().filter(is_given).cloned();
    if is_docker_agents { given.map(as_docker_agent).collect() } else { given.collect() }
}
