//! A session: what the user begins, turn by turn, with every event at its moment.
//!
//! - `run`: from a prompt to the model's last word. `turn`: one call of the model, and the tools that it calls.
//! - `ask`: the question to the model. `calls`: its tool calls, side by side. `compaction`: a summary for what is long.
//! - `commands`: prompts that have a name. `delegation`: subagents, and other agents that take over.
//! - `raise`: what hooks are told. `context`: what they tell the model.
//! - `skills`: what the agent follows when it is asked to. `changed`: what became of files meanwhile.
//! - `moments`: when each event happens, and what its verdict does.
//! - `cast`: the agent at work. `inbox`: what the user says meanwhile. `person`: whom it asks. `end`: how things end.
//!
//! What happens is kept ([`Journal`]) before it is told ([`Watches`]).

mod ask;
mod calls;
mod cast;
mod changed;
mod commands;
mod compaction;
mod context;
mod delegation;
mod end;
mod inbox;
mod moments;
mod person;
mod raise;
mod repeats;
mod run;
mod skills;
mod turn;

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use gatehook_engine::events::{Entry, Event, Input, Journal, JournalError, Message, Recorder, SessionHead};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::cast::Cast;
use self::context::Contexts;
use crate::agents::Agents;
use crate::approval::{Rules, SafetyMode};
use crate::conversation::Conversation;
use crate::model::Model;
use crate::report::{Report, Watches};
use crate::skills::{Skill, Skills};
use crate::tools::Scene;
use crate::watch::Changes;

pub use end::Reason;
pub use inbox::Inbox;
pub use moments::{MOMENTS, Moment};
pub use person::{Deciding, Doubt, Person};
pub use run::Done;

/// What a session is made of.
#[derive(Clone)]
pub struct Setup {
    /// Who works.
    pub agents: Agents,
    /// Where.
    pub scene: Scene,
    /// What the agents can follow.
    pub skills: Skills,
    /// Changes of files that others make.
    pub changes: Changes,
    /// How much runs unasked.
    pub mode: Option<SafetyMode>,
    /// Who is asked; nobody in a headless run.
    pub person: Option<Arc<dyn Person>>,
    /// Who looks on.
    pub watcher: Arc<dyn Watches>,
    /// Who keeps what happens.
    pub journal: Arc<dyn Journal>,
    /// Who remembers what hooks did.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// What is added to what each model is told first.
    pub standing: Arc<str>,
    /// What hooks are told besides.
    pub about: Arc<Input>,
}

/// Who the session is.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// Its identity.
    pub id: Arc<str>,
    /// `startup`, `resume` or `clear`.
    pub source: &'static str,
    /// What was kept of it, where it goes on.
    pub conversation: Conversation,
    /// What answers in place of the agent's own model.
    pub model: Option<Model>,
}

/// A conversation between a user and an agent.
pub struct Session {
    setup: Arc<Setup>,
    scene: Scene,
    id: Arc<str>,
    depth: usize,
    source: &'static str,
    /// `session_start` has been raised.
    begun: bool,
    started: SystemTime,
    since: Instant,
    cast: Cast,
    conversation: Conversation,
    contexts: Contexts,
    inbox: Inbox,
    /// The skills that are followed, whose hooks are in force.
    following: Vec<Arc<Skill>>,
    /// The branch that is checked out.
    branch: Option<Arc<str>>,
}

impl Session {
    /// A session that has not begun yet: that is raised with its first prompt.
    pub async fn new(setup: Setup, beginning: Beginning) -> Result<Self, JournalError> {
        Self::with_parent(Arc::new(setup), beginning, None, 0, None).await
    }

    async fn with_parent(
        setup: Arc<Setup>,
        beginning: Beginning,
        parent: Option<Arc<str>>,
        depth: usize,
        agent: Option<&Arc<crate::agents::Agent>>,
    ) -> Result<Self, JournalError> {
        let Beginning { id, source, conversation, model } = beginning;
        let known = setup.agents.named(conversation.agent());
        let agent = agent.or(known).unwrap_or_else(|| setup.agents.root());
        let agent = model.map_or_else(|| agent.clone(), |model| Arc::new(agent.with_model(model)));
        let started = SystemTime::now();
        let head = SessionHead {
            id: id.clone(),
            parent,
            workspace: setup.scene.workspace.to_string_lossy().into(),
            agent: agent.name.clone(),
            model: agent.model.id().clone(),
            started,
        };
        setup.journal.begin(head).await?;
        let mode = match conversation.mode() {
            Some(name) => SafetyMode::from_name(name),
            None => setup.mode,
        };
        let about = raise::about(&setup, &id, started, &agent);
        let cast = Cast::new(agent, &setup, mode, rules(&conversation), about);
        let (contexts, inbox, since) = (Contexts::default(), Inbox::default(), Instant::now());
        let begun = false;
        let scene = Scene { session_id: id.clone(), ..setup.scene.clone() };
        let session = Self {
            setup,
            scene,
            id,
            depth,
            source,
            begun,
            started,
            since,
            cast,
            conversation,
            contexts,
            inbox,
            following: Vec::new(),
            branch: None,
        };
        session.recall();
        session.tell_session();
        let greets = depth == 0 && source != "resume" && session.setup.person.is_some();
        if let Some(welcome) = session.cast.agent.welcome.clone().filter(|_| greets) {
            session.tell(Report::Notice { level: "info", text: welcome });
        }
        Ok(session)
    }

    /// Its identity.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Takes what the user says while a turn runs.
    pub fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// What was said so far.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// The agent at work.
    pub fn agent(&self) -> &Arc<crate::agents::Agent> {
        &self.cast.agent
    }

    /// How much runs unasked.
    pub fn mode(&self) -> Option<SafetyMode> {
        self.cast.approvals.mode()
    }

    /// Changes how much runs unasked.
    pub async fn set_mode(&mut self, mode: Option<SafetyMode>) -> Result<(), JournalError> {
        let name = mode.map_or("", SafetyMode::name);
        self.keep(vec![Entry::Granted { rule: None, mode: Some(name.into()) }]).await?;
        self.cast.approvals.set_mode(mode);
        Ok(())
    }

    /// Lets another agent go on with the conversation, as the user wants it. Says whether there is one of this name.
    pub async fn set_agent(&mut self, name: &str) -> Result<bool, JournalError> {
        let Some(agent) = self.setup.agents.named(name).cloned() else { return Ok(false) };
        self.keep(vec![Entry::Switched { agent: agent.name.clone() }]).await?;
        self.stop_following();
        self.cast_as(agent);
        self.tell_session();
        Ok(true)
    }

    /// Lets another model go on with the conversation, for as long as this agent is at work.
    pub async fn set_model(&mut self, model: Model) -> Result<(), JournalError> {
        self.keep(vec![Entry::Model { model: model.id().clone() }]).await?;
        self.cast_as(Arc::new(self.cast.agent.with_model(model)));
        self.tell_session();
        Ok(())
    }

    /// Forgets the last prompt and what followed, in the conversation alone. Says what was asked.
    pub async fn undo(&mut self) -> Result<Option<Arc<str>>, JournalError> {
        let Some(gone) = self.conversation.last_turn() else { return Ok(None) };
        let messages = self.conversation.all();
        let at = messages.len().saturating_sub(usize::try_from(gone).unwrap_or(usize::MAX));
        let prompt = messages.get(at).and_then(|message| message.content.clone());
        self.keep(vec![Entry::Undone { messages: gone }]).await?;
        self.recall();
        Ok(prompt)
    }

    /// Lets tools know what they have said in this session.
    fn recall(&self) {
        let messages = self.conversation.all();
        let tools = self.setup.agents.all().flat_map(|agent| &agent.tools);
        tools.for_each(|tool| tool.recall(&self.id, messages));
    }

    /// Raises `session_end`, also where the session never began to speak with a model but had begun.
    ///
    /// `reason`: `clear`, `logout`, `prompt_input_exit`, `error` or `other`.
    pub async fn end(mut self, reason: &str) {
        if !self.begun {
            return;
        }
        self.see_last_changes().await;
        let spent = self.conversation.spent();
        let total = spent.input_tokens.saturating_add(spent.output_tokens);
        let summary = json!({"total_tokens": total, "cost": spent.cost, "turns": self.conversation.turn()});
        let count = self.conversation.all().len() as u64;
        let input = |input: &mut Input| {
            input.reason = Some(reason.into());
            input.duration = Some(self.since.elapsed().as_secs_f64());
            input.message_count = Some(count);
            input.summary = Some(summary);
            input.messages = Some(self.last_messages());
        };
        // Told whatever else was given up.
        self.raise(Event::SessionEnd, &CancellationToken::new(), input).await;
    }

    fn cast_as(&mut self, agent: Arc<crate::agents::Agent>) {
        let approvals = &self.cast.approvals;
        let about = raise::about(&self.setup, &self.id, self.started, &agent);
        self.cast = Cast::new(agent, &self.setup, approvals.mode(), approvals.session_rules(), about);
    }

    /// Keeps entries, and then holds them true.
    async fn keep(&mut self, entries: Vec<Entry>) -> Result<(), JournalError> {
        self.setup.journal.append(&self.id, entries.clone()).await?;
        entries.iter().for_each(|entry| self.conversation.apply(entry));
        Ok(())
    }

    async fn keep_message(&mut self, message: Message) -> Result<(), JournalError> {
        self.keep(vec![Entry::Message { message }]).await
    }

    fn tell(&self, report: Report) {
        self.setup.watcher.report(report);
    }

    fn tell_session(&self) {
        self.tell(Report::Session {
            session_id: self.id.clone(),
            source: self.source.into(),
            agent: self.cast.agent.name.clone(),
            model: self.cast.agent.model.id().clone(),
            workspace: self.setup.scene.workspace.to_string_lossy().into(),
        });
    }
}

/// What the person has allowed for the session before; a rule that cannot be read any more allows nothing.
fn rules(conversation: &Conversation) -> Rules {
    let allow = conversation.rules().iter().filter_map(|rule| rule.parse().ok()).collect();
    Rules { allow, ..Rules::default() }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id).field("agent", &self.cast.agent).finish_non_exhaustive()
    }
}
