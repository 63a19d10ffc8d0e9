//! Work for others: subagents that do a task in a session of their own, and agents that take the conversation over.

use std::sync::Arc;

use gatehook_engine::events::{Entry, Event, Input, Message};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::context::told;
use super::end::{End, Reason, why};
use super::run::Progress;
use super::{Beginning, Session, Setup};
use crate::agents::Agent;
use crate::approval;
use crate::conversation::Conversation;
use crate::report::{Report, Watches};
use crate::skills::Skill;
use crate::tools::{ToolErrorKind, ToolOutput, ToolSpec};

/// How deep subagents may call subagents.
const DEPTH: usize = 8;

/// A tool that the session itself is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Managed {
    /// A subagent does a task, and its answer is the result.
    Task,
    /// The same, by docker-agent's name, with `on_agent_switch` around it.
    Transfer,
    /// Another agent goes on with the conversation.
    Handoff,
    /// What somebody wrote down for the agent is followed.
    Skill,
}

/// What a call changes of who works, once all calls of its batch are answered.
#[derive(Debug)]
pub(super) enum After {
    /// This agent takes over.
    Agent(Arc<Agent>),
    /// The agent follows this skill.
    Skill(Arc<Skill>),
}

/// Their names, and what a model is told of them.
const MANAGED: &[(Managed, &str, &str)] = &[
    (
        Managed::Task,
        "task",
        "Give a task to a subagent that works on its own and sees nothing of this conversation. Its last answer is the \
         result. Say in `prompt` all it needs to know.",
    ),
    (
        Managed::Transfer,
        "transfer_task",
        "Give a task to one of your agents. It works on its own, sees nothing of this conversation, and its last answer \
         is the result.",
    ),
    (Managed::Handoff, "handoff", "Hand the conversation to another agent, who goes on with it."),
    (Managed::Skill, "skill", "Be told how something is done here, before you do it. The result is what to follow."),
];

impl Managed {
    fn row(self) -> (&'static str, &'static str) {
        MANAGED.iter().find(|(managed, ..)| *managed == self).map_or(("", ""), |(_, name, doc)| (name, doc))
    }

    /// What is known of it.
    pub(super) fn tool(self) -> approval::Tool {
        let category = if self == Managed::Skill { "skills" } else { "agents" };
        // Whatever the other agent does, or the skill wants done, is settled call by call.
        approval::Tool {
            name: self.row().0.into(),
            category: Some(category.into()),
            read_only: true,
            ..approval::Tool::default()
        }
    }
}

impl Session {
    /// The tool of this name, where the agent at work has it.
    pub(super) fn managed(&self, name: &str) -> Option<Managed> {
        let found = MANAGED.iter().find(|(_, known, _)| *known == name).map(|(managed, ..)| *managed)?;
        self.has(found).then_some(found)
    }

    fn has(&self, managed: Managed) -> bool {
        match managed {
            Managed::Task => self.depth < DEPTH,
            Managed::Transfer => self.depth < DEPTH && !self.cast.agent.sub_agents.is_empty(),
            Managed::Handoff => !self.cast.agent.handoffs.is_empty(),
            Managed::Skill => self.skills().any(|skill| skill.is_listed),
        }
    }

    /// What a model is told of the tools that the session itself is.
    pub(super) fn managed_specs(&self) -> impl Iterator<Item = ToolSpec> {
        let there = MANAGED.iter().map(|(managed, ..)| *managed).filter(|managed| self.has(*managed));
        there.map(|managed| {
            if managed == Managed::Skill {
                return self.skill_spec(managed.tool(), managed.row().1);
            }
            let agents = self.whom(managed);
            let listed: Vec<String> =
                agents.iter().map(|agent| format!("{} ({})", agent.name, agent.description)).collect();
            let mut description = managed.row().1.to_owned();
            if !listed.is_empty() {
                description = format!("{description} Agents: {}.", listed.join(", "));
            }
            let names: Vec<Value> = agents.iter().map(|agent| json!(&*agent.name)).collect();
            ToolSpec {
                tool: managed.tool(),
                description: description.into(),
                parameters: Arc::new(parameters(managed, names)),
            }
        })
    }

    /// Whom a tool may call.
    fn whom(&self, managed: Managed) -> Vec<&Arc<Agent>> {
        let agent = &self.cast.agent;
        let names = match managed {
            Managed::Task | Managed::Transfer => &agent.sub_agents,
            Managed::Handoff => &agent.handoffs,
            Managed::Skill => return Vec::new(),
        };
        names.iter().filter_map(|name| self.setup.agents.named(name)).collect()
    }

    /// Does what such a tool is for; its result, and the agent that takes over.
    pub(super) async fn manage(
        &self,
        managed: Managed,
        input: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> (ToolOutput, Option<After>) {
        if managed == Managed::Skill {
            return self.follow_for_model(input, cancel).await;
        }
        let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let named = text("agent");
        let known = named.map(|name| self.whom(managed).into_iter().find(|agent| &*agent.name == name).cloned());
        let agent = match (managed, known) {
            (_, Some(Some(agent))) => agent,
            (Managed::Task, None) => self.cast.agent.clone(),
            (_, Some(None)) => {
                let text = format!("There is no agent {:?} to work for this one.", named.unwrap_or_default());
                return (ToolOutput::error(ToolErrorKind::NotFound, text), None);
            }
            (_, None) => {
                return (ToolOutput::error(ToolErrorKind::InvalidInput, "`agent` is missing: say whose it is."), None);
            }
        };
        if managed == Managed::Handoff {
            let text = format!("The conversation is handed to {}.", agent.name);
            return (ToolOutput::text(text), Some(After::Agent(agent)));
        }
        let Some(prompt) = text("prompt").or(text("task")) else {
            return (
                ToolOutput::error(ToolErrorKind::InvalidInput, "`prompt` is missing: say what is to be done."),
                None,
            );
        };
        if managed == Managed::Transfer {
            self.switched(&self.cast.agent, &agent, "transfer_task", cancel).await;
        }
        let done = Box::pin(self.subagent(&agent, prompt, cancel)).await;
        if managed == Managed::Transfer {
            self.switched(&agent, &self.cast.agent, "transfer_task_return", &CancellationToken::new()).await;
        }
        let output = match done {
            Ok(text) => ToolOutput::text(text),
            Err(text) if cancel.is_cancelled() => ToolOutput::error(ToolErrorKind::Cancelled, text),
            Err(text) => ToolOutput::error(ToolErrorKind::Other, text),
        };
        (output, None)
    }

    /// A task in a session of its own. Its last text, or why there is none.
    async fn subagent(&self, agent: &Arc<Agent>, prompt: &str, cancel: &CancellationToken) -> Result<String, String> {
        let id: Arc<str> = uuid::Uuid::new_v4().to_string().into();
        let about = |input: &mut Input| {
            input.session_id = Some(id.clone());
            input.parent_session_id = Some(self.id.clone());
            input.agent_name = Some(agent.name.clone());
        };
        let verdict = self
            .raise(Event::SubagentStart, cancel, |input| {
                about(input);
                input.prompt = Some(prompt.into());
            })
            .await;
        if cancel.is_cancelled() {
            return Err("Cancelled.".to_owned());
        }
        if !verdict.allowed {
            let why = Some(why(&verdict)).filter(|why| !why.is_empty());
            return Err(why.unwrap_or_else(|| "A subagent_start hook does not let this agent start.".to_owned()));
        }
        let done = self.child(agent, &id, &told(&verdict), prompt, cancel).await;
        let said = done.as_ref().map(String::as_str).unwrap_or_default();
        let stopped = |input: &mut Input| {
            about(input);
            input.stop_response = Some(said.into());
        };
        // Told on success and failure, and whoever gave up.
        self.raise(Event::SubagentStop, &CancellationToken::new(), stopped).await;
        done
    }

    async fn child(
        &self,
        agent: &Arc<Agent>,
        id: &Arc<str>,
        context: &str,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let watcher = Below { watcher: self.setup.watcher.clone(), agent: agent.name.clone(), id: id.clone() };
        let approvals = &self.cast.approvals;
        let setup = Setup { watcher: Arc::new(watcher), mode: approvals.mode(), ..(*self.setup).clone() };
        let beginning =
            Beginning { id: id.clone(), source: "startup", conversation: Conversation::default(), model: None };
        let child =
            Session::with_parent(Arc::new(setup), beginning, Some(self.id.clone()), self.depth + 1, Some(agent));
        let mut child = child.await.map_err(|error| format!("The subagent's session cannot be kept: {error}"))?;
        child.cast.approvals.set_session_rules(approvals.session_rules());
        child.follow_as(self)?;
        child.contexts.run = context.to_owned();
        let done = child.task(prompt, cancel).await;
        child.end("other").await;
        match done.reason {
            Reason::Normal => Ok(done.text.to_string()),
            reason => Err(format!("The subagent {} did not finish: {}.", agent.name, reason.name())),
        }
    }

    /// Whom a prompt is for, as in `@reviewer look at this`, and what is to be done.
    pub(super) fn addressed(&self, text: &str) -> Option<(Arc<Agent>, String)> {
        let (name, task) = text.strip_prefix('@')?.split_once(char::is_whitespace)?;
        let agent = self.whom(Managed::Task).into_iter().find(|agent| &*agent.name == name)?;
        Some((agent.clone(), task.trim().to_owned())).filter(|(_, task)| !task.is_empty())
    }

    /// Lets a subagent answer the user.
    pub(super) async fn relay(
        &mut self,
        agent: &Arc<Agent>,
        task: &str,
        progress: &mut Progress,
        cancel: &CancellationToken,
    ) -> Result<(), End> {
        let done = Box::pin(self.subagent(agent, task, cancel)).await;
        self.live(cancel)?;
        let text = done.map_err(|why| End::Failed("subagent", why))?;
        progress.text = text.as_str().into();
        self.keep_message(Message::new("assistant", &text)).await?;
        self.tell(Report::Message { text: text.into() });
        Ok(())
    }

    /// Another agent takes the conversation over.
    pub(super) async fn hand_over(
        &mut self,
        agent: Arc<Agent>,
        kind: &'static str,
        cancel: &CancellationToken,
    ) -> Result<(), End> {
        self.keep(vec![Entry::Switched { agent: agent.name.clone() }]).await?;
        self.switched(&self.cast.agent, &agent, kind, cancel).await;
        self.cast_as(agent);
        self.put_into_force()
    }

    /// Raises `on_agent_switch`, with the hooks of the agent at work.
    async fn switched(&self, from: &Agent, to: &Agent, kind: &'static str, cancel: &CancellationToken) {
        let mut model = json!({"provider": from.model.provider(), "model": from.model.name()});
        if let (Some(url), Some(model)) = (from.model.server.base_url(), model.as_object_mut()) {
            model.insert("base_url".to_owned(), url.into());
        }
        let with = |input: &mut Input| {
            (input.from_agent, input.to_agent) = (Some(from.name.clone()), Some(to.name.clone()));
            input.agent_switch_kind = Some(kind.into());
            input.from_agent_models = Some(json!([model]));
        };
        self.raise(Event::OnAgentSwitch, cancel, with).await;
        self.tell(Report::AgentSwitch { from: from.name.clone(), to: to.name.clone(), kind });
    }
}

fn parameters(managed: Managed, names: Vec<Value>) -> Value {
    let mut agent = json!({"type": "string", "description": "Whose it is."});
    if let (Some(agent), false) = (agent.as_object_mut(), names.is_empty()) {
        agent.insert("enum".to_owned(), Value::Array(names.clone()));
    }
    let prompt = json!({"type": "string", "description": "What is to be done, and all that is needed for it."});
    match managed {
        Managed::Task if names.is_empty() => {
            json!({"type": "object", "properties": {"prompt": prompt}, "required": ["prompt"]})
        }
        Managed::Task => {
            json!({"type": "object", "properties": {"agent": agent, "prompt": prompt}, "required": ["prompt"]})
        }
        Managed::Transfer => {
            json!({"type": "object", "properties": {"agent": agent, "task": prompt}, "required": ["agent", "task"]})
        }
        Managed::Handoff | Managed::Skill => {
            json!({"type": "object", "properties": {"agent": agent}, "required": ["agent"]})
        }
    }
}

/// Tells what a subagent tells.
struct Below {
    watcher: Arc<dyn Watches>,
    agent: Arc<str>,
    id: Arc<str>,
}

impl Watches for Below {
    fn report(&self, report: Report) {
        let (agent, session_id) = (self.agent.clone(), self.id.clone());
        self.watcher.report(Report::Subagent { agent, session_id, report: Box::new(report) });
    }
}
