//! The agent at work in a session: its hooks, as this session hears of them, its guard, its approvals.

use std::fmt;
use std::sync::Arc;

use gatehook_engine::events::{Input, Recorder, Trace};
use gatehook_engine::{BuildError, Executor};
use gatehook_guard::Guard;

use super::Setup;
use super::person::Asking;
use crate::agents::Agent;
use crate::approval::{Approvals, Rules, SafetyMode};
use crate::report::{Report, Watches};
use crate::tools::{Tool, ToolSpec};

/// One agent in one session.
pub(super) struct Cast {
    pub(super) agent: Arc<Agent>,
    pub(super) executor: Executor,
    pub(super) guard: Option<Arc<Guard>>,
    pub(super) approvals: Approvals,
}

impl Cast {
    /// The agent with what the person has allowed in this session so far.
    pub(super) fn new(agent: Arc<Agent>, setup: &Setup, mode: Option<SafetyMode>, rules: Rules, about: Input) -> Self {
        let told = Told { watcher: setup.watcher.clone(), recorder: setup.recorder.clone() };
        let executor = agent.executor.clone().recorded(Arc::new(told));
        Self::with_hooks(agent, setup, executor, (mode, rules), about)
    }

    fn with_hooks(
        agent: Arc<Agent>,
        setup: &Setup,
        executor: Executor,
        (mode, rules): (Option<SafetyMode>, Rules),
        about: Input,
    ) -> Self {
        let approvals = Approvals::new(executor.clone(), agent.rules.clone());
        let approvals = match &setup.person {
            Some(person) => approvals.asking(person.clone()),
            None => approvals,
        };
        approvals.set_mode(mode);
        approvals.set_session_rules(rules);
        Self { guard: guard(&executor, setup, about), agent, executor, approvals }
    }

    /// Puts a skill's hooks into force too, behind all others.
    pub(super) fn also(&mut self, hooks: &Executor, setup: &Setup, about: Input) -> Result<(), BuildError> {
        let executor = self.executor.joined(hooks)?;
        let allowed = (self.approvals.mode(), self.approvals.session_rules());
        *self = Self::with_hooks(self.agent.clone(), setup, executor, allowed, about);
        Ok(())
    }

    /// The tool of this name.
    pub(super) fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.agent.all_tools().into_iter().find(|tool| &*tool.spec().tool.name == name)
    }

    /// What its own tools are.
    pub(super) fn specs(&self) -> impl Iterator<Item = ToolSpec> {
        self.agent.all_tools().into_iter().map(|tool| tool.spec().clone())
    }
}

/// What stands around the calls of a model: hooks, and the person whom they want asked.
pub(super) fn guard(executor: &Executor, setup: &Setup, about: Input) -> Option<Arc<Guard>> {
    let guard = Guard::of_agent(executor.clone(), about.clone())?;
    Some(Arc::new(match setup.person.clone() {
        Some(person) => guard.asking(Arc::new(Asking { person, executor: executor.clone(), about })),
        None => guard,
    }))
}

/// Tells whoever looks on of hooks that ran, and then whoever remembers.
struct Told {
    watcher: Arc<dyn Watches>,
    recorder: Option<Arc<dyn Recorder>>,
}

impl Recorder for Told {
    fn record(&self, trace: Trace) {
        self.watcher.report(Report::Hooks {
            event: trace.event.public_name(),
            verdict: trace.verb,
            outcomes: trace.outcomes.clone(),
            message: trace.message.clone(),
            system_message: trace.system_message.clone(),
        });
        if let Some(recorder) = &self.recorder {
            recorder.record(trace);
        }
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").field("recorder", &self.recorder).finish_non_exhaustive()
    }
}
