//! A response that came as a whole: its bytes, what a hook sees of them, and the way back.

mod chat;
mod messages;
mod responses;
#[cfg(test)]
mod tests;
mod texts;

use std::sync::Arc;

use bytes::Bytes;
use gatehook_events::{Input, ModelOutput, ToolCall};
use serde_json::Value;

use crate::alternatives;
use crate::error::{ReadError, Unheld};
use crate::json::{At, Document, Edits};
use crate::refusal::{ErrorKind, HookNote};
use crate::rewrite::{edit_calls, same_calls};
use crate::route::Route;
use crate::view::Calls;
pub(crate) use chat::native_usage;
use texts::Texts;

pub(crate) use responses::shown_whole;

/// One answer of the model. A response has several where the request asked for `n > 1`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choice {
    /// Text, thinking and tool calls; absent where the answer has none. A text in several blocks is shown as one.
    pub output: ModelOutput,
    /// Why the model stopped, by the upstream's word.
    pub done_reason: Option<Arc<str>>,
}

impl Choice {
    /// Puts it into the payload of a `post_inference`.
    pub fn fill(&self, input: &mut Input) {
        input.output_text.clone_from(&self.output.text);
        input.output_thinking.clone_from(&self.output.thinking);
        input.tool_calls.clone_from(&self.output.tool_calls);
        input.done_reason.clone_from(&self.done_reason);
    }
}

/// Where one answer stands.
#[derive(Debug, Clone, Default)]
struct Answer {
    text: Texts,
    thinking: Texts,
    calls: Calls,
    shown: Vec<ToolCall>,
    /// The stop reason: a string.
    stop: Option<At>,
    /// What repeats parts of the answer (container and child): taken out when anything changes.
    echoes: Vec<(At, At)>,
}

/// A successful response body (2xx, not a stream) that was read.
#[derive(Debug, Clone)]
pub struct Response {
    route: Route,
    document: Document,
    choices: Vec<Choice>,
    answers: Vec<Answer>,
    usage: Option<Value>,
    /// As [`Answer::echoes`], of the response as a whole.
    echoes: Vec<(At, At)>,
}

/// Fields of a response that repeat what the model said, in tokens or for debugging.
pub(crate) const ECHOES: &[&str] =
    &["__verbose", "context", "logprobs", "prompt_logprobs", "token_ids", "prompt_token_ids"];

/// Stop reasons that speak of tool calls, and what they become without any.
pub(crate) const STOPS: &[(Route, &str, &str)] = &[
    (Route::Chat, "tool_calls", "stop"),
    (Route::Generate, "tool_calls", "stop"),
    (Route::ChatCompletions, "tool_calls", "stop"),
    (Route::ChatCompletions, "function_call", "stop"),
    (Route::Messages, "tool_use", "end_turn"),
];

impl Response {
    /// Reads the body of a response of `route`.
    pub fn read(route: Route, body: Bytes) -> Result<Self, ReadError> {
        let document = Document::read(body)?;
        let (answers, usage) = match route {
            Route::Chat => (chat::native(&document, Some("message"))?, native_usage(&document)),
            Route::Generate => (chat::native(&document, None)?, native_usage(&document)),
            Route::ChatCompletions => (chat::completions(&document)?, usage(&document)),
            Route::Completions => (chat::texts(&document)?, usage(&document)),
            Route::Responses => (responses::read(&document)?, usage(&document)),
            Route::Messages => (messages::read(&document)?, usage(&document)),
        };
        let choices = answers.iter().map(|answer| answer.choice(&document)).collect();
        let echoes = echoes(&document, Document::ROOT);
        Ok(Self { route, document, choices, answers, usage, echoes })
    }

    /// The same for an answer whose text is judged: without what the model might have said instead of its tokens
    /// (`top_logprobs`), which nobody is shown. The tokens themselves stay.
    pub fn read_alone(route: Route, body: Bytes) -> Result<Self, ReadError> {
        let response = Self::read(route, body)?;
        match alternatives::without(&response.document) {
            Some(body) => Self::read(route, body),
            None => Ok(response),
        }
    }

    /// Whose answer it is.
    pub fn route(&self) -> Route {
        self.route
    }

    /// The bytes as they came.
    pub fn body(&self) -> &Bytes {
        self.document.bytes()
    }

    /// The answers, in the order they stand; one `post_inference` each.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// Tokens used, by the upstream's names.
    pub fn usage(&self) -> Option<&Value> {
        self.usage.as_ref()
    }

    /// The bytes for the client with the changes of `outputs`, one for each choice in order (a missing one changes
    /// nothing): absent is unchanged, empty is emptied. Nothing to change gives the very same [`Bytes`].
    ///
    /// Of a text in several blocks, those at its beginning and end that the new text still has stay as they are, the
    /// first one between them takes what is new, and the others go. What repeats a changed answer (`logprobs`, tokens,
    /// citations) is dropped. Without tool calls the stop reason is that of a plain answer.
    pub fn rewrite(&self, outputs: &[ModelOutput]) -> Result<Bytes, Unheld> {
        self.rewrite_noted(outputs, None)
    }

    /// The same, and a top-level `hook` that says what a hook took out of an answer that goes on.
    pub fn rewrite_noted(&self, outputs: &[ModelOutput], note: Option<&HookNote>) -> Result<Bytes, Unheld> {
        let mut edits = Edits::default();
        let mut changed = false;
        for (answer, output) in self.answers.iter().zip(outputs) {
            changed |= answer.rewrite(self.route, &self.document, output, &mut edits)?;
        }
        if changed {
            self.echoes.iter().for_each(|(object, value)| edits.remove(*object, *value));
        }
        if let Some(note) = note {
            edits.add_member(&self.document, Document::ROOT, "hook", &note.told(ErrorKind::Denied).to_string());
        }
        Ok(edits.apply(&self.document))
    }
}

fn usage(document: &Document) -> Option<Value> {
    document.some(Document::ROOT, "usage").map(|at| document.value(at))
}

/// The members of an object that repeat the answer.
fn echoes(document: &Document, object: At) -> Vec<(At, At)> {
    ECHOES.iter().filter_map(|key| Some((object, document.some(object, key)?))).collect()
}

impl Answer {
    fn choice(&self, document: &Document) -> Choice {
        Choice {
            output: ModelOutput {
                text: self.text.text(),
                thinking: self.thinking.text(),
                tool_calls: (!self.shown.is_empty()).then(|| self.shown.clone().into()),
            },
            done_reason: self.stop.and_then(|at| document.text(at)).map(Arc::from),
        }
    }

    /// Says whether anything changed.
    fn rewrite(
        &self,
        route: Route,
        document: &Document,
        output: &ModelOutput,
        edits: &mut Edits,
    ) -> Result<bool, Unheld> {
        let mut changed = self.text.rewrite(document, output.text.as_deref(), edits)?;
        changed |= self.thinking.rewrite(document, output.thinking.as_deref(), edits)?;
        if let Some(calls) = output.tool_calls.as_deref().filter(|calls| !same_calls(&self.shown, calls)) {
            edit_calls(document, &self.calls, &self.shown, calls, edits)?;
            self.correct_stop(route, document, calls, edits);
            changed = true;
        }
        if changed {
            self.echoes.iter().for_each(|(container, child)| edits.remove(*container, *child));
        }
        Ok(changed)
    }

    /// The stop reason speaks of calls exactly where the client has some to make.
    fn correct_stop(&self, route: Route, document: &Document, calls: &[ToolCall], edits: &mut Edits) {
        let none = |calls: &[ToolCall]| calls.iter().all(|call| call.extra.contains_key("part"));
        let Some((at, word)) = self.stop.and_then(|at| Some((at, document.text(at)?))) else { return };
        let rows = STOPS.iter().filter(|(stop_route, _, _)| *stop_route == route);
        for (_, with, without) in rows {
            match none(calls) {
                true if word == *with => edits.set_text(at, without),
                false if none(&self.shown) && word == *without => return edits.set_text(at, with),
                _ => {}
            }
        }
    }
}
