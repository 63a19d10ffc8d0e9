//! Following a skill: the model wants to, or the user says so. Its hooks are in force until the agent is done.

use std::sync::Arc;

use gatehook_engine::events::Event;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::Session;
use super::context::{add, told};
use super::delegation::After;
use super::end::{End, why};
use crate::approval;
use crate::skills::Skill;
use crate::tools::{ToolErrorKind, ToolOutput, ToolSpec};

/// Characters of a description that a model is told, where there are many skills.
const DESCRIPTION: usize = 200;

/// What hooks made of a wish to follow a skill.
struct Triggered {
    args: String,
    context: String,
}

impl Session {
    /// What the agent at work may follow.
    pub(super) fn skills(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.setup.skills.all().filter(|skill| self.cast.agent.skills.has(&skill.name))
    }

    /// The skill that a prompt begins with, and its arguments.
    pub(super) fn called<'p>(&self, prompt: &'p str) -> Option<(Arc<Skill>, &'p str)> {
        let (skill, args) = self.setup.skills.called(prompt)?;
        self.cast.agent.skills.has(&skill.name).then(|| (skill.clone(), args))
    }

    /// What a model is told of the tool.
    pub(super) fn skill_spec(&self, tool: approval::Tool, description: &str) -> ToolSpec {
        let mut description = format!("{description} There are:");
        let mut names = Vec::new();
        for skill in self.skills().filter(|skill| skill.is_listed) {
            let about: String = skill.description.chars().take(DESCRIPTION).collect();
            description.push_str(&format!("\n- {}: {}", skill.name, about.replace('\n', " ")));
            names.push(json!(&*skill.name));
        }
        let parameters = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "description": "Which.", "enum": names},
            "args": {"type": "string", "description": "What it is to be applied to, in a few words."},
        }});
        ToolSpec { tool, description: description.into(), parameters: Arc::new(parameters) }
    }

    /// The tool's result, and the skill that is followed from then on.
    pub(super) async fn follow_for_model(
        &self,
        input: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> (ToolOutput, Option<After>) {
        let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::trim).unwrap_or_default();
        let name = text("name");
        let listed = || self.skills().filter(|skill| skill.is_listed);
        let Some(skill) = listed().find(|skill| &*skill.name == name) else {
            let known: Vec<&str> = listed().map(|skill| &*skill.name).collect();
            let text = format!("There is no skill {name:?}. There are: {}.", known.join(", "));
            return (ToolOutput::error(ToolErrorKind::NotFound, text), None);
        };
        match Box::pin(self.trigger(skill, text("args"), cancel)).await {
            Ok(Triggered { args, context }) => {
                let mut told = skill.told(&args);
                add(&mut told, &context);
                (ToolOutput::text(told), Some(After::Skill(skill.clone())))
            }
            Err(End::Canceled) => (ToolOutput::error(ToolErrorKind::Cancelled, "Cancelled."), None),
            Err(end) => {
                let said = end.said().map(|(_, said)| said).unwrap_or_default();
                (ToolOutput::error(ToolErrorKind::Permission, said), None)
            }
        }
    }

    /// The user's prompt, as it is said; what the skill says is in the prompt's context.
    pub(super) async fn follow_for_user(
        &mut self,
        skill: Arc<Skill>,
        args: &str,
        cancel: &CancellationToken,
    ) -> Result<String, End> {
        let Triggered { args, context } = Box::pin(self.trigger(&skill, args, cancel)).await?;
        add(&mut self.contexts.run, &skill.told(&args));
        add(&mut self.contexts.run, &context);
        let said = format!("/{} {args}", skill.name);
        self.follow(skill).await?;
        Ok(said.trim_end().to_owned())
    }

    /// Raises `skill_trigger`, with the skill's own hooks too.
    async fn trigger(&self, skill: &Skill, args: &str, cancel: &CancellationToken) -> Result<Triggered, End> {
        let is_followed = self.following.iter().any(|known| known.name == skill.name);
        let own = skill.hooks.as_ref().filter(|_| !is_followed);
        let joined = own.map(|hooks| self.cast.executor.joined(hooks)).transpose();
        let joined = joined.map_err(|error| End::Failed("skill", unusable(skill, &error)))?;
        let executor = joined.as_ref().unwrap_or(&self.cast.executor);
        let verdict = self
            .raise_with(executor, Event::SkillTrigger, cancel, |input| {
                input.skill_name = Some(skill.name.clone());
                input.skill_path = Some(skill.path.to_string_lossy().into());
                input.skill_args = Some(args.into());
            })
            .await;
        self.live(cancel)?;
        if !verdict.allowed {
            let why = Some(why(&verdict)).filter(|why| !why.is_empty());
            let why = why.unwrap_or_else(|| format!("A skill_trigger hook does not let {} be followed.", skill.name));
            return Err(End::Blocked(Event::SkillTrigger, why));
        }
        let context = told(&verdict);
        let args = verdict.rewritten.skill_args.as_deref().unwrap_or(args).trim().to_owned();
        Ok(Triggered { args, context })
    }

    /// What the calls of a batch change of who works.
    pub(super) async fn follow_after(&mut self, all: Vec<After>, cancel: &CancellationToken) -> Result<(), End> {
        let mut next = None;
        for after in all {
            match after {
                After::Skill(skill) => self.follow(skill).await?,
                After::Agent(agent) => next = next.or(Some(agent)),
            }
        }
        match next {
            Some(agent) => self.hand_over(agent, "handoff", cancel).await,
            None => Ok(()),
        }
    }

    /// Puts a skill's hooks into force, or says why they are not.
    async fn follow(&mut self, skill: Arc<Skill>) -> Result<(), End> {
        if self.following.iter().any(|known| known.name == skill.name) {
            return Ok(());
        }
        if let Some(note) = &skill.note {
            let text = format!("The skill {} is followed without its hooks: {note}", skill.name);
            self.notify("warning", &text, "skill").await;
        }
        self.also(&skill)?;
        self.following.push(skill);
        Ok(())
    }

    fn also(&mut self, skill: &Skill) -> Result<(), End> {
        let about = self.about();
        let also = skill.hooks.as_ref().map(|hooks| self.cast.also(hooks, &self.setup, about)).transpose();
        also.map(drop).map_err(|error| End::Failed("skill", unusable(skill, &error)))
    }

    /// Puts the hooks of all skills that are followed into force for an agent that takes over.
    pub(super) fn put_into_force(&mut self) -> Result<(), End> {
        let following = self.following.clone();
        following.iter().try_for_each(|skill| self.also(skill))
    }

    /// A subagent works under the hooks that its caller works under.
    pub(super) fn follow_as(&mut self, caller: &Session) -> Result<(), String> {
        self.following.clone_from(&caller.following);
        self.put_into_force().map_err(|end| end.said().map(|(_, said)| said).unwrap_or_default())
    }

    /// The agent is done: no skill is followed any more.
    pub(super) fn stop_following(&mut self) {
        if !self.following.is_empty() {
            self.following.clear();
            self.cast_as(self.cast.agent.clone());
        }
    }
}

fn unusable(skill: &Skill, error: &gatehook_engine::BuildError) -> String {
    format!("The skill {} cannot be followed: {error}", skill.name)
}
