//! Several files together, and whether what they say fits.

use std::path::PathBuf;
use std::sync::Arc;

use gatehook_engine::config::did_you_mean;
use gatehook_engine::definition::Origin;

use super::parts::tier;
use super::{AgentDefinition, Defaults, ROOT, Team, TeamFile, Tools};
use crate::approval::Rules;

/// Why files are no team: all that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct TeamError {
    /// Each by itself.
    pub problems: Vec<TeamProblem>,
}

/// A name that stands for nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}{}", self.place(), self.help.as_deref().map(|help| format!("; {help}")).unwrap_or_default())]
pub struct TeamProblem {
    /// The file.
    pub file: Option<Arc<PathBuf>>,
    /// The line in that file, from 1; 0 where there is none.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl TeamProblem {
    fn of(origin: &Origin, message: String, help: Option<String>) -> Self {
        Self { file: origin.file.clone(), line: origin.line, message, help }
    }

    fn place(&self) -> String {
        self.file.as_deref().map(|file| format!("{}:{}: ", file.display(), self.line)).unwrap_or_default()
    }
}

impl Team {
    /// What files say together, from the weakest to the strongest: of agents and servers with the same name the stronger
    /// file's stands, as each setting does; rules add up. The agent that begins is `root`, else the first of the
    /// strongest file that has agents. Where no file has any, there is one that has all tools.
    ///
    /// An error names agents and servers that are referred to and are not there.
    pub fn of(files: impl IntoIterator<Item = TeamFile>) -> Result<Self, TeamError> {
        let mut team = Self::default();
        for file in files {
            team.take(file);
        }
        if team.agents.is_empty() {
            team.agents.push(AgentDefinition::new(ROOT));
        }
        if let Some(at) = team.agents.iter().position(|agent| &*agent.name == ROOT) {
            let root = team.agents.remove(at);
            team.agents.insert(0, root);
        }
        let problems = team.problems();
        if problems.is_empty() { Ok(team) } else { Err(TeamError { problems }) }
    }

    fn take(&mut self, file: TeamFile) {
        self.defaults = file.defaults.or(std::mem::take(&mut self.defaults));
        let rules = match tier(file.origin.source) {
            0 => &mut self.rules.managed,
            1 => &mut self.rules.user,
            _ => &mut self.rules.workspace,
        };
        add(rules, file.permissions);
        self.servers.retain(|known| file.servers.iter().all(|server| server.name != known.name));
        self.servers.extend(file.servers);
        self.agents.retain(|known| file.agents.iter().all(|agent| agent.name != known.name));
        // The stronger file's come first.
        self.agents.splice(0..0, file.agents);
        self.models.splice(0..0, file.models);
    }

    fn problems(&self) -> Vec<TeamProblem> {
        let mut problems = Vec::new();
        for agent in &self.agents {
            let names = [("sub_agents", &agent.sub_agents), ("handoffs", &agent.handoffs)];
            let named = names.into_iter().flat_map(|(field, names)| names.iter().map(move |name| (field, name)));
            let named = named.chain(agent.force_handoff.iter().map(|name| ("force_handoff", name)));
            let named = named.chain(agent.commands.values().filter_map(|it| Some(("commands", it.agent.as_ref()?))));
            for (field, name) in named.filter(|(_, name)| self.agent(name).is_none()) {
                let message =
                    format!("`{field}` of the agent `{}` names `{name}`, and there is no such agent", agent.name);
                let help = did_you_mean(name, self.agents.iter().map(|agent| &*agent.name));
                problems.push(TeamProblem::of(&agent.origin, message, help));
            }
            if agent.force_handoff.as_ref().is_some_and(|_| self.never_ends(agent)) {
                let message = format!("`force_handoff` of the agent `{}` leads back to it", agent.name);
                let help = Some("let one of them be the last".to_owned());
                problems.push(TeamProblem::of(&agent.origin, message, help));
            }
            for toolset in agent.toolsets.iter().flatten() {
                let Tools::Server(name) = &toolset.tools else { continue };
                if !self.servers.iter().any(|server| server.name == *name) {
                    let message =
                        format!("a toolset of the agent `{}` names `{name}`, and there is no such server", agent.name);
                    let near = did_you_mean(name, self.servers.iter().map(|server| &*server.name));
                    let help = near.unwrap_or_else(|| "define it under `mcp_servers`".to_owned());
                    problems.push(TeamProblem::of(&agent.origin, message, Some(help)));
                }
            }
        }
        problems
    }

    /// Whether an agent is taken over from until it is its turn again.
    fn never_ends(&self, agent: &AgentDefinition) -> bool {
        let mut at = agent;
        for _ in 0..=self.agents.len() {
            let Some(next) = at.force_handoff.as_deref().and_then(|name| self.agent(name)) else { return false };
            if next.name == agent.name {
                return true;
            }
            at = next;
        }
        false
    }
}

fn add(rules: &mut Rules, more: Rules) {
    rules.allow.extend(more.allow);
    rules.ask.extend(more.ask);
    rules.deny.extend(more.deny);
}

impl Defaults {
    /// These, and where they are silent those of a weaker file.
    #[must_use]
    pub fn or(self, weaker: Self) -> Self {
        Self {
            model: self.model.or(weaker.model),
            mode: self.mode.or(weaker.mode),
            max_iterations: self.max_iterations.or(weaker.max_iterations),
            compaction_threshold: self.compaction_threshold.or(weaker.compaction_threshold),
            sandbox: self.sandbox.or(weaker.sandbox),
            folders: self.folders.or(weaker.folders),
            private_addresses: self.private_addresses.or(weaker.private_addresses),
            maintenance_interval: self.maintenance_interval.or(weaker.maintenance_interval),
        }
    }
}
