//! The last events of a stream that a hook has blocked, or that has failed.

use serde_json::{Value, json};

use super::Responses;
use super::events::REFUSAL;
use super::items::ItemKind;
use crate::refusal::{ErrorKind, refusal_body};
use crate::route::Wire;
use crate::stream::format::set;
use crate::stream::said::Said;
use crate::stream::{Block, Ending};

impl Responses {
    /// Ends what is open with what was let go; then a refusal, or the word of a filter.
    pub(super) fn blocked(&mut self, said: &Said, block: &Block<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        self.begin(&mut out);
        let (name, status, details) = match block.ending {
            Ending::Refusal => ("response.completed", "completed", Value::Null),
            Ending::ContentFilter => ("response.incomplete", "incomplete", json!({ "reason": "content_filter" })),
        };
        let open = self.cut();
        let is_message = |at: &usize| self.items.get(*at).is_some_and(|item| item.kind == ItemKind::Message);
        let last = open.iter().copied().rfind(is_message).filter(|_| block.ending == Ending::Refusal);
        for index in open {
            self.end_parts(index, said, &mut out);
            if last == Some(index) {
                self.add_part(index, &REFUSAL, block.message, &mut out);
                self.end_parts(index, said, &mut out);
            }
            let Some(item) = self.items.get(index) else { continue };
            let word = if item.call().is_some() { "incomplete" } else { status };
            let whole = item.ended(said, word);
            self.end_item(index, whole, &mut out);
        }
        if last.is_none() && block.ending == Ending::Refusal {
            self.add_message(&REFUSAL, block.message, status, said, &mut out);
        }
        let hook = block.hook.told(ErrorKind::Denied);
        let mut response = self.response(said, status);
        set(&mut response, "incomplete_details", details);
        set(&mut response, "hook", hook.clone());
        self.make(name, json!({ "response": response, "hook": hook }), &mut out);
        out
    }

    /// An error, flat as it is documented and nested as SDKs raise it; then a response that failed, for those who wait for
    /// the last event.
    pub(super) fn failed(&mut self, said: &Said, kind: ErrorKind, message: &str, request_id: &str) -> Vec<u8> {
        let body = refusal_body(Wire::OpenAi, kind, message, request_id, None);
        let error = serde_json::from_slice::<Value>(&body).ok().and_then(|body| body.get("error").cloned());
        let error = error.unwrap_or_default();
        let mut event = error.clone();
        set(&mut event, "error", error.clone());
        set(&mut event, "request_id", request_id);
        let mut out = Vec::new();
        self.make("error", event, &mut out);
        if self.opened {
            self.cut();
            let mut response = self.response(said, "failed");
            set(&mut response, "error", error);
            self.make("response.failed", json!({ "response": response }), &mut out);
        }
        out
    }

    /// Items that stand open end with what has left.
    fn cut(&mut self) -> Vec<usize> {
        let open = self.open_items();
        for index in &open {
            if let Some(item) = self.items.get_mut(*index) {
                item.cut = true;
                item.parts.retain(|part| part.opened);
            }
        }
        open
    }

    /// The first event, where the client has none.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if !self.opened {
            self.opened = true;
            let response = self.head("in_progress");
            self.make("response.created", json!({ "response": response }), out);
        }
    }

    /// The response as it began.
    fn head(&self, status: &str) -> Value {
        let opening = self.opening.as_ref().and_then(|opening| serde_json::from_slice(opening).ok());
        let mut head = opening
            .filter(Value::is_object)
            .unwrap_or_else(|| json!({ "id": "resp_gatehook", "object": "response", "created_at": 0, "model": "" }));
        set(&mut head, "status", status);
        set(&mut head, "output", json!([]));
        head
    }

    /// The response with all that the client has.
    fn response(&self, said: &Said, status: &str) -> Value {
        let mut response = self.head(status);
        let mut left: Vec<_> = self.items.iter().filter(|item| item.left.is_some()).collect();
        left.sort_by_key(|item| item.left);
        let whole = |done: &[u8]| serde_json::from_slice(done).unwrap_or_default();
        let output: Value = left
            .into_iter()
            .map(|item| item.done.as_deref().map_or_else(|| item.ended(said, "incomplete"), whole))
            .collect();
        set(&mut response, "output", output);
        set(&mut response, "usage", said.usage.clone().unwrap_or_default());
        response
    }
}
