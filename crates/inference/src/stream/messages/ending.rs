//! The last events of a stream that a hook has blocked, or that has failed.

use serde_json::{Value, json};

use super::Messages;
use super::leave::make;
use crate::refusal::{ErrorKind, refusal_body};
use crate::route::Wire;
use crate::stream::Block;
use crate::stream::said::Said;

impl Messages {
    /// Ends what is open, with the stop reason of a refusal. There is no other for a filter.
    pub(super) fn blocked(&mut self, said: &Said, block: &Block<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        let hook = block.hook.told(ErrorKind::Denied);
        if !self.begun {
            make("message_start", json!({ "message": begun(said) }), &mut out);
        }
        for place in self.blocks.iter().filter(|block| block.is_open()).filter_map(|block| block.left) {
            make("content_block_stop", json!({ "index": place }), &mut out);
        }
        if !self.stopped {
            let details = json!({ "type": "refusal", "category": null, "explanation": block.message });
            let delta = json!({ "stop_reason": "refusal", "stop_sequence": null, "stop_details": details });
            let usage = json!({ "output_tokens": count(said, "output_tokens") });
            make("message_delta", json!({ "delta": delta, "usage": usage, "hook": &hook }), &mut out);
        }
        make("message_stop", json!({ "hook": hook }), &mut out);
        out
    }
}

/// A message of which nothing has come.
fn begun(said: &Said) -> Value {
    let usage = json!({ "input_tokens": count(said, "input_tokens"), "output_tokens": 0 });
    json!({
        "id": "msg_gatehook",
        "type": "message",
        "role": "assistant",
        "model": "",
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn count(said: &Said, key: &str) -> u64 {
    said.usage.as_ref().and_then(|usage| usage.get(key)?.as_u64()).unwrap_or(0)
}

/// An error event.
pub(super) fn failed(kind: ErrorKind, message: &str, request_id: &str) -> Vec<u8> {
    let body = refusal_body(Wire::Anthropic, kind, message, request_id, None);
    let mut out = b"event: error\ndata: ".to_vec();
    out.extend(body);
    out.extend_from_slice(b"\n\n");
    out
}
