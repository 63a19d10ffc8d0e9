//! A summary takes the place of what no longer fits the model's window.

use std::sync::Arc;

use gatehook_engine::events::{Entry, Event, Input, Message};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::context::{add, told};
use super::end::{End, pass, why};
use crate::model::{Ask, Saying, Says};
use crate::report::Report;

/// What a summary is asked for with.
const INSTRUCTION: &str = "Summarise the conversation below for whoever goes on with it and sees nothing else of it: what \
the user wants, what was decided and why, what was done (files, commands, results), what is open, and what comes next. \
Keep names, paths and numbers exactly. Answer with the summary alone.";

/// So much of the window may stay as it is.
const KEPT: f64 = 0.2;

/// So much of the window may be shown to whoever writes the summary.
const SHOWN: f64 = 0.6;

/// Bytes of a token, where nobody counts.
const TOKEN: usize = 4;

/// What wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The window is nearly full.
    Full,
    /// The model's server said that it does not fit.
    Overflow,
    /// The same, after tools had answered.
    ToolOverflow,
    /// The person.
    Manual,
}

impl Cause {
    /// `source` of `pre_compact`, and `compaction_reason`.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Full => ("auto", "threshold"),
            Self::Overflow => ("overflow", "overflow"),
            Self::ToolOverflow => ("tool_overflow", "overflow"),
            Self::Manual => ("manual", "manual"),
        }
    }
}

impl Session {
    /// Compacts the conversation, as the person wants it. Says whether it was done; where not, they have been told why.
    pub async fn compact(&mut self, cancel: &CancellationToken) -> bool {
        match Box::pin(self.compact_for(Cause::Manual, cancel)).await {
            Ok(done) => done,
            Err(end) => {
                if let Some((doing, said)) = end.said() {
                    self.notify("error", &said, doing).await;
                }
                false
            }
        }
    }

    pub(super) async fn compact_if_full(&mut self, cancel: &CancellationToken) -> Result<(), End> {
        let window = self.cast.agent.model.window();
        let most = self.cast.agent.compact_at.map(|part| window as f64 * part);
        let is_full = window > 0 && most.is_some_and(|most| self.context_used() as f64 > most);
        let cause = match self.inbox.take_compaction() {
            true => Cause::Manual,
            false if is_full => Cause::Full,
            false => return Ok(()),
        };
        Box::pin(self.compact_for(cause, cancel)).await.map(drop)
    }

    /// The server said that the conversation does not fit: it is compacted once, or that is the end.
    pub(super) async fn overflow(&mut self, cancel: &CancellationToken) -> Result<(), End> {
        let after_tools = self.conversation.messages().last().is_some_and(|message| &*message.role == "tool");
        let (size, window) = (self.context_used(), self.cast.agent.model.window());
        let utilization = if window == 0 { 1.0 } else { size as f64 / window as f64 };
        let context = json!({"size": size, "max_size": window, "utilization": utilization.min(1.0)});
        let event = Event::OnContextOverflow;
        let verdict = self.raise(event, cancel, |input| input.context = Some(Arc::new(context))).await;
        self.live(cancel)?;
        pass(event, verdict)?;
        let cause = if after_tools { Cause::ToolOverflow } else { Cause::Overflow };
        if self.cast.agent.compact_at.is_some() && Box::pin(self.compact_for(cause, cancel)).await? {
            return Ok(());
        }
        let why = "The conversation does not fit the model's window, and was not compacted.";
        Err(End::Failed("context_overflow", why.to_owned()))
    }

    /// Tokens in the window: counted by the server, else guessed.
    pub(super) fn context_used(&self) -> u64 {
        match self.conversation.spent().context {
            0 => tokens(self.conversation.messages()),
            counted => counted,
        }
    }

    async fn compact_for(&mut self, cause: Cause, cancel: &CancellationToken) -> Result<bool, End> {
        let (source, reason) = cause.names();
        let messages = self.last_messages();
        let verdict = self
            .raise(Event::PreCompact, cancel, |input| {
                input.source = Some(source.into());
                input.messages = Some(messages);
            })
            .await;
        self.live(cancel)?;
        if !verdict.allowed {
            let why = Some(why(&verdict)).filter(|why| !why.is_empty());
            let why = why.unwrap_or_else(|| "A pre_compact hook has kept the conversation as it is.".to_owned());
            self.notify("warning", &why, "compaction").await;
            return Ok(false);
        }
        let extra = told(&verdict);
        let (spent, window) = (self.conversation.spent(), self.cast.agent.model.window());
        let sized = move |input: &mut Input| {
            input.input_tokens = Some(spent.input_tokens);
            input.output_tokens = Some(spent.output_tokens);
            input.context_limit = Some(window);
            input.compaction_reason = Some(reason.into());
        };
        let verdict = self.raise(Event::BeforeCompaction, cancel, sized).await;
        self.live(cancel)?;
        if !verdict.allowed {
            return Ok(false);
        }
        let kept = self.kept_whole(window);
        let summary: Arc<str> = match verdict.summary.as_str() {
            "" => self.summary(kept, &extra, cancel).await?.into(),
            given => given.into(),
        };
        self.keep(vec![Entry::Compacted { summary: summary.clone(), kept: kept as u64, source: source.into() }])
            .await?;
        self.tell(Report::Compaction { source: source.into(), summary: summary.clone() });
        let compacted = |input: &mut Input| {
            sized(input);
            input.summary = Some((&*summary).into());
        };
        self.raise(Event::AfterCompaction, cancel, compacted).await;
        Ok(true)
    }

    /// How many messages at the end stay as they are: no call is parted from its result, and what was asked last stays.
    fn kept_whole(&self, window: u64) -> usize {
        let messages = self.conversation.messages();
        let room = if window == 0 { 2048 } else { (window as f64 * KEPT) as u64 };
        let begins = |at: &usize| messages.get(*at).is_some_and(|message| &*message.role != "tool");
        let fits = |at: &usize| messages.get(*at..).is_some_and(|kept| tokens(kept) <= room);
        let at = (1..messages.len()).filter(begins).find(fits).unwrap_or(messages.len());
        let asked = messages.last().is_some_and(|message| &*message.role == "user");
        (messages.len() - at).max(usize::from(asked && messages.len() > 1))
    }

    /// The model's own summary of all but the last `kept` messages.
    async fn summary(&mut self, kept: usize, extra: &str, cancel: &CancellationToken) -> Result<String, End> {
        let messages = self.conversation.messages();
        let gone = messages.get(..messages.len().saturating_sub(kept)).unwrap_or_default();
        let mut instruction = INSTRUCTION.to_owned();
        add(&mut instruction, extra);
        let model = &self.cast.agent.summariser;
        let question = [Message::new("user", &transcript(gone, model.window()))];
        let model_id = Some(model.id().clone());
        let about = Input { model_id, provider: Some(model.provider().into()), ..self.about() };
        let guard = super::cast::guard(&self.cast.executor, &self.setup, about);
        let ask = Ask {
            system: Some(&instruction),
            messages: &question,
            tools: &[],
            guard: guard.as_ref(),
            session_id: &self.id,
            says: &Silent,
            cancel,
        };
        let reply = Box::pin(model.ask(&ask)).await.map_err(super::ask::ended)?;
        let (input_tokens, output_tokens) = (reply.input_tokens.unwrap_or(0), reply.output_tokens.unwrap_or(0));
        self.keep(vec![Entry::Spent { input_tokens, output_tokens, cost: reply.cost }]).await?;
        let summary = reply.message.content.as_deref().unwrap_or_default().trim().to_owned();
        if summary.is_empty() {
            return Err(End::Failed("compaction", "The model gave no summary of the conversation.".to_owned()));
        }
        Ok(summary)
    }
}

/// A guess.
fn tokens(messages: &[Message]) -> u64 {
    let size = |message: &Message| {
        let calls =
            message.tool_calls.iter().flatten().map(|call| call.function.arguments.len() + call.function.name.len());
        message.content.as_deref().map_or(0, str::len) + calls.sum::<usize>() + 4 * TOKEN
    };
    (messages.iter().map(size).sum::<usize>() / TOKEN) as u64
}

/// A conversation as one text that fits a window: of messages that are too long their middle is left out.
fn transcript(messages: &[Message], window: u64) -> String {
    let room = if window == 0 { usize::MAX } else { (window as f64 * SHOWN) as usize * TOKEN };
    let each = (room / messages.len().max(1)).max(64);
    let mut text = String::new();
    for message in messages {
        let mut said = message.content.as_deref().unwrap_or_default().to_owned();
        for call in message.tool_calls.iter().flatten() {
            add(&mut said, &format!("calls {} with {}", call.function.name, call.function.arguments));
        }
        add(&mut text, &format!("{}: {}", message.role, shortened(&said, each)));
    }
    text
}

fn shortened(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let (head, tail) = (text.floor_char_boundary(bytes / 2), text.ceil_char_boundary(text.len() - bytes / 2));
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head} […] {tail}")
}

/// Nobody is told.
struct Silent;

impl Says for Silent {
    fn says<'a>(&'a self, _thinking: bool, _piece: &'a str) -> Saying<'a> {
        Box::pin(std::future::ready(()))
    }
}
