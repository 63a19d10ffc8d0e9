//! An answer as the bytes of a stream of chat completions
//! (<https://platform.openai.com/docs/api-reference/chat/streaming>).

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::{Value, json};

use super::script::{Scripted, ScriptedCall};

/// The pieces in which an answer comes. `place`: which answer of its file it is.
pub(super) fn pieces(answer: &Scripted, place: usize) -> VecDeque<Bytes> {
    if let Some(chunks) = &answer.chunks {
        return chunks.iter().map(|chunk| Bytes::from(chunk.clone())).collect();
    }
    let mut stream =
        Stream { id: format!("chatcmpl-replay-{}", place + 1), count: answer.pieces.get(), out: VecDeque::new() };
    stream.delta(json!({ "role": "assistant" }), None);
    stream.texts("reasoning_content", &answer.thinking);
    stream.texts("content", &answer.text);
    for (index, call) in answer.tool_calls.iter().enumerate() {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{}_{}", place + 1, index + 1));
        let is_cut = answer.breaks && index + 1 == answer.tool_calls.len();
        stream.call(index, &id, call, is_cut);
    }
    if answer.error.is_some() {
        stream.data(&answer.error_body());
    } else if !answer.breaks {
        stream.end(answer);
    }
    stream.out
}

struct Stream {
    id: String,
    count: usize,
    out: VecDeque<Bytes>,
}

impl Stream {
    fn data(&mut self, data: &str) {
        self.out.push_back(format!("data: {data}\n\n").into());
    }

    fn chunk(&mut self, choices: Value, usage: Option<Value>) {
        let mut chunk = json!({
            "id": &*self.id, "object": "chat.completion.chunk", "created": 0, "model": "replay", "choices": choices,
        });
        if let (Some(usage), Some(chunk)) = (usage, chunk.as_object_mut()) {
            chunk.insert("usage".to_owned(), usage);
        }
        self.data(&chunk.to_string());
    }

    fn delta(&mut self, delta: Value, stop: Option<&str>) {
        self.chunk(json!([{ "index": 0, "delta": delta, "finish_reason": stop }]), None);
    }

    fn texts(&mut self, key: &str, text: &str) {
        for piece in cut(text, self.count) {
            self.delta(json!({ key: piece }), None);
        }
    }

    /// A call; one that is cut lacks the second half of its arguments.
    fn call(&mut self, index: usize, id: &str, call: &ScriptedCall, is_cut: bool) {
        let function = json!({ "name": call.name, "arguments": "" });
        let begins = json!({ "index": index, "id": id, "type": "function", "function": function });
        self.delta(json!({ "tool_calls": [begins] }), None);
        let arguments = call.arguments();
        let told = if is_cut { cut(&arguments, 2).next().unwrap_or_default() } else { &*arguments };
        for piece in cut(told, self.count) {
            self.delta(json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] }), None);
        }
    }

    fn end(&mut self, answer: &Scripted) {
        let usual = if answer.tool_calls.is_empty() { "stop" } else { "tool_calls" };
        self.delta(json!({}), Some(answer.done_reason.as_deref().unwrap_or(usual)));
        if let Some(usage) = answer.usage {
            let (input, output) = (usage.input_tokens, usage.output_tokens);
            let total = input.saturating_add(output);
            let usage = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": total });
            self.chunk(json!([]), Some(usage));
        }
        self.data("[DONE]");
    }
}

/// A text in so many pieces of about the same length; in fewer where it has not so many characters.
fn cut(text: &str, count: usize) -> impl Iterator<Item = &str> {
    let each = text.chars().count().div_ceil(count.max(1)).max(1);
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(each).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at_checked(end)?;
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
