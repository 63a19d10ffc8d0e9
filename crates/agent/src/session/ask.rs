//! The question to the model, and what hooks make of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gatehook_engine::events::{Entry, Event, Journal, JournalError, Message};
use gatehook_inference::Phase;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::end::{End, pass};
use crate::model::{Ask, ModelError, Reply, Saying, Says};
use crate::report::{Report, Watches};
use crate::tools::ToolSpec;

impl Session {
    /// Asks until there is an answer that stands in the conversation; it is given back.
    pub(super) async fn ask(&mut self, iteration: u64, cancel: &CancellationToken) -> Result<Message, End> {
        let specs: Vec<Arc<ToolSpec>> = self.cast.specs().chain(self.managed_specs()).map(Arc::new).collect();
        let mut overflowed = false;
        loop {
            let begun = Instant::now();
            let outgoing = self.outgoing(iteration, cancel).await?;
            match self.asked(&outgoing, &specs, cancel).await {
                Ok(reply) => return self.answered(reply, begun, cancel).await,
                Err(ModelError::Overflow(_)) if !overflowed => {
                    overflowed = true;
                    self.overflow(cancel).await?;
                }
                Err(error) => return Err(ended(error)),
            }
        }
    }

    /// The conversation as it goes out.
    async fn outgoing(&self, iteration: u64, cancel: &CancellationToken) -> Result<Outgoing, End> {
        let mut instruction = self.cast.agent.instruction.to_string();
        super::context::add(&mut instruction, &self.setup.standing);
        let system = Some(self.contexts.system(&instruction)).filter(|system| !system.is_empty());
        let verdict = self
            .raise(Event::BeforeLlmCall, cancel, |input| {
                let first = system.as_deref().map(|system| Message::new("system", system));
                input.iteration = Some(iteration);
                input.messages = Some(first.into_iter().chain(self.conversation.messages().iter().cloned()).collect());
                input.options = self.options();
            })
            .await;
        self.live(cancel)?;
        let verdict = pass(Event::BeforeLlmCall, verdict)?;
        Ok(verdict.rewritten.messages.map_or(Outgoing::Own { system }, Outgoing::Rewritten))
    }

    /// One question. What was said before it failed stays said.
    async fn asked(
        &mut self,
        outgoing: &Outgoing,
        tools: &[Arc<ToolSpec>],
        cancel: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        let telling = Telling {
            journal: &*self.setup.journal,
            watcher: &*self.setup.watcher,
            session: &self.id,
            withholds: self.withholds(),
            said: Mutex::default(),
        };
        let (system, messages) = match outgoing {
            Outgoing::Own { system } => (system.as_deref(), self.conversation.messages()),
            Outgoing::Rewritten(messages) => (None, &**messages),
        };
        let guard = self.cast.guard.as_ref();
        let ask = Ask { system, messages, tools, guard, session_id: &self.id, says: &telling, cancel };
        let asked = Box::pin(self.cast.agent.model.ask(&ask)).await;
        let said = telling.said.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = said.lost {
            return Err(ModelError::Broken(format!("cannot be kept: {error}")));
        }
        if asked.is_err() && !self.withholds() {
            said.entries.iter().for_each(|entry| self.conversation.apply(entry));
        }
        asked
    }

    /// Takes an answer into the conversation, once hooks have heard of it.
    async fn answered(&mut self, reply: Reply, begun: Instant, cancel: &CancellationToken) -> Result<Message, End> {
        let Reply { message, usage, input_tokens, output_tokens, cost, note, .. } = reply;
        let text = message.content.clone();
        let shown = usage.unwrap_or_else(|| json!({"input_tokens": input_tokens, "output_tokens": output_tokens}));
        let verdict = self
            .raise(Event::AfterLlmCall, cancel, |input| {
                input.stop_response = Some(text.clone().unwrap_or_default());
                input.last_user_message = self.last_said();
                input.usage = (input_tokens.is_some() || output_tokens.is_some()).then_some(shown);
                input.cost = cost;
                input.options = self.options();
                input.duration = Some(begun.elapsed().as_secs_f64());
            })
            .await;
        if self.withholds() {
            self.live(cancel)?;
            pass(Event::AfterLlmCall, verdict.clone())?;
        }
        let (asked, answered) = (input_tokens.unwrap_or(0), output_tokens.unwrap_or(0));
        let spent = Entry::Spent { input_tokens: asked, output_tokens: answered, cost };
        self.keep(vec![Entry::Message { message: message.clone() }, spent]).await?;
        if self.withholds() {
            let thinking = message.thinking.clone().filter(|thinking| !thinking.is_empty());
            thinking.into_iter().for_each(|delta| self.tell(Report::Thinking { delta }));
            text.clone().into_iter().for_each(|delta| self.tell(Report::Text { delta }));
        }
        self.tell(Report::Message { text: text.unwrap_or_default() });
        if let Some(note) = note {
            self.tell(Report::Notice { level: "warning", text: note.into() });
        }
        self.tell_usage(asked, answered);
        self.live(cancel).and_then(|()| pass(Event::AfterLlmCall, verdict).map(drop))?;
        Ok(message)
    }

    /// Whether nobody is told what the model says before `after_llm_call` hooks have heard all of it: one of them may
    /// block.
    fn withholds(&self) -> bool {
        let event = Event::AfterLlmCall;
        let blocks = |profile| event.capabilities(profile).is_some_and(|able| able.blocks);
        let mut hooks = self.cast.executor.hooks().filter(|hook| hook.event == event && !hook.definition.observer);
        hooks.any(|hook| blocks(hook.definition.profile))
    }

    fn tell_usage(&self, input_tokens: u64, output_tokens: u64) {
        self.tell(Report::Usage {
            input_tokens,
            output_tokens,
            cost: self.conversation.spent().cost,
            context_used: self.context_used(),
            context_limit: self.cast.agent.model.window(),
        });
    }
}

/// What the model is asked.
enum Outgoing {
    /// The conversation as it stands, behind what the model is told before it.
    Own { system: Option<String> },
    /// What hooks put in the place of all of it.
    Rewritten(Arc<[Message]>),
}

pub(super) fn ended(error: ModelError) -> End {
    match error {
        ModelError::Cancelled => End::Canceled,
        ModelError::Refused(refusal) => {
            let said = Some(refusal.message.clone()).filter(|message| !message.is_empty());
            let phase = refusal.hook.as_ref().and_then(|hook| hook.phase);
            let event = if phase == Some(Phase::PostInference) { Event::PostInference } else { Event::PreInference };
            End::Blocked(event, said.unwrap_or_else(|| refusal.kind.sentence().to_owned()))
        }
        error => End::Failed("model_call", error.to_string()),
    }
}

/// Keeps what a model says, and then tells it.
struct Telling<'a> {
    journal: &'a dyn Journal,
    watcher: &'a dyn Watches,
    session: &'a Arc<str>,
    withholds: bool,
    said: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    entries: Vec<Entry>,
    lost: Option<JournalError>,
}

impl Says for Telling<'_> {
    fn says<'a>(&'a self, thinking: bool, piece: &'a str) -> Saying<'a> {
        Box::pin(async move {
            if self.withholds {
                return;
            }
            let delta: Arc<str> = piece.into();
            let entry = Entry::Said { thinking, text: delta.clone() };
            let kept = self.journal.append(self.session, vec![entry.clone()]).await;
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            match kept {
                Ok(()) => {
                    said.entries.push(entry);
                    let report = if thinking { Report::Thinking { delta } } else { Report::Text { delta } };
                    self.watcher.report(report);
                }
                Err(error) => said.lost = Some(error),
            }
        })
    }

    fn waits(&self, why: &ModelError, pause: Duration) {
        let text = format!("{why}; asked again in {} s", pause.as_secs());
        self.watcher.report(Report::Notice { level: "info", text: text.into() });
    }
}
