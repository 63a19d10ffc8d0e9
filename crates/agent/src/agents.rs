//! The agents of a session, ready to work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gatehook_engine::Executor;

use crate::approval::StandingRules;
use crate::model::Model;
use crate::team::{Command, Skills};
use crate::tools::{Shelf, Tool};

/// Somebody who asks a model and calls tools.
#[derive(Clone)]
pub struct Agent {
    /// Its name.
    pub name: Arc<str>,
    /// What it is good for, for whoever might hand it work.
    pub description: Arc<str>,
    /// What the person is told first.
    pub welcome: Option<Arc<str>>,
    /// What its model is told first.
    pub instruction: Arc<str>,
    /// Its model.
    pub model: Arc<Model>,
    /// The model that writes summaries.
    pub summariser: Arc<Model>,
    /// What its model may call.
    pub tools: Vec<Arc<dyn Tool>>,
    /// More of that, which comes and goes; what has the name of one before it is left out.
    pub shelves: Vec<Arc<dyn Shelf>>,
    /// Whom it may give a task.
    pub sub_agents: Vec<Arc<str>>,
    /// Whom it may hand the conversation to.
    pub handoffs: Vec<Arc<str>>,
    /// Who takes the conversation over whenever this one is done.
    pub force_handoff: Option<Arc<str>>,
    /// Prompts by name, as in `/name`.
    pub commands: BTreeMap<String, Command>,
    /// What it may follow, of the skills that there are.
    pub skills: Skills,
    /// Its hooks.
    pub executor: Executor,
    /// The rules that stand before a session begins.
    pub rules: StandingRules,
    /// How many times its model is asked before the person is; `None` is without end.
    pub max_iterations: Option<u64>,
    /// The same calls so many times in a row end the run.
    pub max_repeats: usize,
    /// Of the model's window so much may be full before the conversation is compacted, 0.9 for nine tenths; `None` never
    /// compacts it unasked.
    pub compact_at: Option<f64>,
}

impl Agent {
    /// The same with another model, which writes its own summaries.
    #[must_use]
    pub fn with_model(&self, model: Model) -> Self {
        let model = Arc::new(model.of_agent(&self.name));
        Self { summariser: model.clone(), model, ..self.clone() }
    }
}

/// All agents that there are, of which one begins.
#[derive(Clone)]
pub struct Agents {
    root: Arc<Agent>,
    others: Vec<Arc<Agent>>,
}

impl Agents {
    /// One that begins, and those it may meet. Of equal names the first is meant.
    pub fn new(root: Agent, others: Vec<Agent>) -> Self {
        Self { root: Arc::new(root), others: others.into_iter().map(Arc::new).collect() }
    }

    /// The one that begins.
    pub fn root(&self) -> &Arc<Agent> {
        &self.root
    }

    /// The one of this name.
    pub fn named(&self, name: &str) -> Option<&Arc<Agent>> {
        self.all().find(|agent| &*agent.name == name)
    }

    /// All of them, the one that begins first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Agent>> {
        std::iter::once(&self.root).chain(&self.others)
    }
}

impl Agent {
    /// All that its model may call now, each name once.
    pub fn all_tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut all = self.tools.clone();
        let mut names: BTreeSet<Arc<str>> = all.iter().map(|tool| tool.spec().tool.name.clone()).collect();
        for tool in self.shelves.iter().flat_map(|shelf| shelf.tools()) {
            if names.insert(tool.spec().tool.name.clone()) {
                all.push(tool);
            }
        }
        all
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Agents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}
