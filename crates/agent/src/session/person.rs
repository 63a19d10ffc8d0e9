//! The person at the terminal, where there is one.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use gatehook_engine::Executor;
use gatehook_engine::events::{Event, Input, ModelOutput, Verdict};
use gatehook_guard::{Permits, Permitting};
use tokio_util::sync::CancellationToken;

use crate::approval::Asks;

/// A yes or no to come.
pub type Deciding<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// Whom a session asks. The futures are dropped when the run is cancelled.
pub trait Person: Asks {
    /// Whether to go on past so many iterations.
    fn goes_on<'a>(&'a self, iterations: u64) -> Deciding<'a>;

    /// Whether what a hook doubts may pass.
    fn permits<'a>(&'a self, doubt: &'a Doubt) -> Deciding<'a>;
}

/// What a hook wants the person asked about, of what goes to a model or comes from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    /// `pre_inference` or `post_inference`.
    pub event: Event,
    /// The model, as in `ollama/llama3`.
    pub model: Arc<str>,
    /// The hook.
    pub hook: Arc<str>,
    /// Why it wants to ask; may be empty.
    pub reason: String,
    /// What is doubted: the last message of a question, an answer or a piece of it.
    pub subject: String,
    /// What hooks know of it.
    pub metadata: BTreeMap<String, String>,
}

impl Doubt {
    fn new(event: Event, input: &Input, verdict: &Verdict) -> Self {
        let hook = verdict.refusal.as_ref().map(|refusal| refusal.hook_name.clone());
        Self {
            event,
            model: input.model_id.clone().unwrap_or_default(),
            hook: hook.unwrap_or_default(),
            reason: verdict.decision_reason.clone(),
            subject: subject(event, input, verdict),
            metadata: verdict.metadata.clone(),
        }
    }
}

/// What would pass, as hooks have left it.
fn subject(event: Event, input: &Input, verdict: &Verdict) -> String {
    let rewritten = &verdict.rewritten;
    if event == Event::PreInference {
        let messages = rewritten.messages.as_ref().or(input.messages.as_ref());
        let said =
            messages.into_iter().flat_map(|messages| messages.iter().rev()).find_map(|last| last.content.clone());
        return said.unwrap_or_default().to_string();
    }
    let ModelOutput { text, thinking, tool_calls } = rewritten.output.clone().unwrap_or_default();
    let texts = [thinking.or_else(|| input.output_thinking.clone()), text.or_else(|| input.output_text.clone())];
    let calls = tool_calls.or_else(|| input.tool_calls.clone());
    let calls = calls.iter().flat_map(|calls| calls.iter());
    let calls = calls.map(|call| format!("{} {}", call.function.name, call.function.arguments));
    texts.into_iter().flatten().map(|text| text.to_string()).chain(calls).collect::<Vec<_>>().join("\n")
}

/// Asks the person what the hooks around a model call want asked; `on_user_input` is raised before.
pub(super) struct Asking {
    pub(super) person: Arc<dyn Person>,
    pub(super) executor: Executor,
    pub(super) about: Input,
}

impl Permits for Asking {
    fn permits<'a>(&'a self, event: Event, input: &'a Input, verdict: &'a Verdict) -> Permitting<'a> {
        Box::pin(async move {
            self.executor.dispatch(Event::OnUserInput, &self.about, &CancellationToken::new()).await;
            self.person.permits(&Doubt::new(event, input, verdict)).await
        })
    }
}
