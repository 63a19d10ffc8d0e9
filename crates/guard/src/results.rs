//! Tool results in a request: each is shown to the hooks that transform it once, and keeps what they made of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatehook_engine::events::{Event, Input, Message, OutcomeKind, Verdict};
use serde_json::Value;

use crate::call::Call;
use crate::guard::Guard;
use crate::heed::witness;
use crate::remembered::{Key, Remembered, key_of};
use crate::tools::about;

/// What hooks made of a tool result: another text, or nothing.
pub(crate) type Results = Remembered<Option<Arc<str>>>;

/// How many results one generation remembers, and how many bytes of other texts.
const REMEMBERED: (usize, usize) = (4096, 8 * 1024 * 1024);

pub(crate) fn remembered() -> Results {
    Remembered::new(REMEMBERED.0, REMEMBERED.1)
}

impl Guard {
    /// The conversation with what hooks put in the place of tool results; `None` where they change nothing. A
    /// conversation is sent again with every turn: hooks see only what they have not seen in it.
    pub(crate) async fn transform_results(&self, call: &Call<'_>, exchange: &Input) -> Option<Arc<[Message]>> {
        let (results, messages) = (self.results.as_ref()?, exchange.messages.clone()?);
        let mut changed: Option<Vec<Message>> = None;
        let names = names(&messages);
        for (place, message) in messages.iter().enumerate().filter(|(_, message)| &*message.role == "tool") {
            let Some(content) = &message.content else { continue };
            let name = message.tool_call_id.as_ref().and_then(|id| names.get(id)).or(message.name.as_ref());
            let key = key(exchange, message, name, content);
            let text = match results.get(&key) {
                Some(known) => known,
                None => {
                    let verdict = self.transform(call, exchange, message, name, content).await;
                    let text = verdict.rewritten.tool_response.as_deref().map(text_of);
                    let text = text.filter(|text| text != content);
                    if verdict.outcomes.iter().all(|outcome| outcome.kind == OutcomeKind::Ok) {
                        results.put(key, text.clone(), text.as_ref().map_or(0, |text| text.len()));
                    }
                    text
                }
            };
            let Some(text) = text else { continue };
            if let Some(slot) = changed.get_or_insert_with(|| messages.to_vec()).get_mut(place) {
                slot.content = Some(text);
            }
        }
        changed.map(Into::into)
    }

    async fn transform(
        &self,
        call: &Call<'_>,
        exchange: &Input,
        message: &Message,
        name: Option<&Arc<str>>,
        content: &Arc<str>,
    ) -> Verdict {
        let failed = message.extra.get("is_error").and_then(Value::as_bool);
        let input = Input {
            tool_name: name.cloned(),
            tool_use_id: message.tool_call_id.clone(),
            tool_response: Some(Arc::new(Value::String(content.to_string()))),
            tool_error: failed,
            success: failed.map(|failed| !failed),
            ..about(exchange)
        };
        let verdict = self.executor.dispatch(Event::ToolResponseTransform, &input, call.cancel).await;
        witness(call, Event::ToolResponseTransform, &verdict);
        verdict
    }
}

/// Which tool each call is about.
fn names(messages: &[Message]) -> BTreeMap<Arc<str>, Arc<str>> {
    let calls = messages.iter().flat_map(|message| message.tool_calls.iter().flatten());
    calls.filter_map(|call| Some((call.id.clone()?, call.function.name.clone()))).collect()
}

/// All that hooks see, or choose by, of a tool result.
fn key(exchange: &Input, message: &Message, name: Option<&Arc<str>>, content: &str) -> Key {
    let client = exchange.client.as_deref().map(Value::to_string).unwrap_or_default();
    let extra = message.extra.get("is_error").map(Value::to_string).unwrap_or_default();
    let texts = [&exchange.session_id, &exchange.model_id, &exchange.route, &exchange.approval, &message.tool_call_id];
    let texts = texts.map(|text| text.as_deref().unwrap_or_default());
    let name = name.map_or("", |name| name);
    key_of(texts.into_iter().chain([name, &*client, &*extra, content]))
}

/// What a tool answers, as the text that the wire holds.
fn text_of(response: &Value) -> Arc<str> {
    match response {
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}
