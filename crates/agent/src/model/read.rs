//! The answer's bytes, as hooks let them go, as what the model says.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use gatehook_engine::events::{Message, ToolCall};
use gatehook_inference::{CallId, Fate, Fault, Notes, Relay, Response, Route, Seal, Tokens, TrackId, TrackKind};
use serde_json::{Map, Value, json};

use super::exchange::Failed;
use super::write::BACK;
use super::{Ask, Model, ModelError, Reply, fault, names};

/// Bytes of an answer at most.
pub(super) const LONGEST: usize = 32 << 20;

/// Reads one answer.
pub(super) struct Reader {
    relay: Relay,
    route: Route,
    /// How much of each track was read.
    read: Vec<usize>,
    text: String,
    thinking: String,
    /// What has not been told yet, in order: whether it is thinking, and the piece.
    untold: Vec<(bool, String)>,
    bytes: usize,
    /// An answer that came as a whole.
    whole: Option<Response>,
}

impl Reader {
    pub(super) fn new(route: Route) -> Self {
        Self {
            relay: Relay::new(route).noting(),
            route,
            read: Vec::new(),
            text: String::new(),
            thinking: String::new(),
            untold: Vec::new(),
            bytes: 0,
            whole: None,
        }
    }

    /// Takes bytes of a stream, split anywhere.
    pub(super) fn push(&mut self, bytes: Bytes) -> Result<(), ModelError> {
        self.bytes += bytes.len();
        if self.bytes > LONGEST {
            return Err(ModelError::Broken(format!("is longer than {LONGEST} bytes")));
        }
        self.relay.put(bytes);
        while self.relay.advance().map_err(unreadable)? {
            self.listen();
        }
        Ok(())
    }

    /// The stream has been closed.
    pub(super) fn finish(&mut self) -> Result<(), ModelError> {
        self.relay.finish().map_err(unreadable)?;
        self.listen();
        Ok(())
    }

    /// Takes an answer that is no stream.
    pub(super) fn whole(&mut self, body: Bytes) -> Result<(), ModelError> {
        let response = Response::read(self.route, body);
        let response = response.map_err(|error| ModelError::Broken(format!("cannot be read: {error}")))?;
        if let Some(choice) = response.choices().first() {
            let (thinking, text) = (choice.output.thinking.clone(), choice.output.text.clone());
            self.hear(true, thinking.as_deref().unwrap_or_default());
            self.hear(false, text.as_deref().unwrap_or_default());
        }
        self.whole = Some(response);
        Ok(())
    }

    /// Whether nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        self.relay.is_over()
    }

    /// The error with which the server ended the stream.
    pub(super) fn failed(&self) -> Option<Failed> {
        let told = || self.relay.notes().and_then(|notes| notes.error.as_ref());
        self.relay.upstream_error().then(|| fault::of_event(told().unwrap_or(&Value::Null)))
    }

    /// Whether anything was said.
    pub(super) fn has_said(&self) -> bool {
        !self.text.is_empty() || !self.thinking.is_empty()
    }

    /// What was said since the last call, in order.
    pub(super) fn untold(&mut self) -> Vec<(bool, String)> {
        std::mem::take(&mut self.untold)
    }

    /// Hears what the last frame brought, and lets it go.
    fn listen(&mut self) {
        let tracks = self.relay.tracks();
        self.read.resize(tracks.len(), 0);
        let mut heard = Vec::new();
        for (track, read) in tracks.iter().zip(&mut self.read) {
            if track.choice == 0 && track.len_total() > *read {
                heard.push((track.kind == TrackKind::Thinking, track.since(*read).to_owned()));
            }
            *read = track.len_total();
        }
        for (place, read) in self.read.iter().enumerate() {
            self.relay.allow(TrackId(place), *read);
        }
        let open = self.relay.calls().iter().enumerate().filter(|(_, call)| !call.decided);
        for place in open.map(|(place, _)| place).collect::<Vec<_>>() {
            let _ = self.relay.decide(CallId(place), Fate::Keep);
        }
        while self.relay.take().is_some() {}
        heard.iter().for_each(|(thinking, piece)| self.hear(*thinking, piece));
    }

    fn hear(&mut self, thinking: bool, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if thinking { &mut self.thinking } else { &mut self.text }.push_str(piece);
        match self.untold.last_mut() {
            Some((last, before)) if *last == thinking => before.push_str(piece),
            _ => self.untold.push((thinking, piece.to_owned())),
        }
    }

    /// All of it.
    pub(super) fn reply(self, model: &Model, ask: &Ask<'_>) -> Reply {
        let whole = self.whole.as_ref().and_then(|response| response.choices().first());
        let (calls, done_reason, usage) = match (&self.whole, whole) {
            (Some(response), whole) => (
                whole.and_then(|choice| choice.output.tool_calls.as_deref()).unwrap_or_default().to_vec(),
                whole.and_then(|choice| choice.done_reason.clone()),
                response.usage().cloned(),
            ),
            (None, _) => {
                let own = self.relay.calls().iter().filter(|call| call.choice == 0 && call.complete);
                let calls = own.map(|call| call.call.clone()).collect();
                (calls, self.relay.done_reason(0).map(Arc::from), self.relay.usage().cloned())
            }
        };
        let tokens = usage.as_ref().map(|usage| Tokens::of(self.route, usage));
        let notes = self.relay.notes().cloned().unwrap_or_default();
        let calls = called(calls, ask);
        let text = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
        Reply {
            message: Message {
                role: "assistant".into(),
                content: text(&self.text),
                thinking: text(&self.thinking),
                extra: self.back(model, &notes, &calls),
                tool_calls: (!calls.is_empty()).then_some(calls),
                ..Message::default()
            },
            done_reason,
            input_tokens: tokens.map(|tokens| tokens.input),
            output_tokens: tokens.map(|tokens| tokens.output),
            cost: model.prices.zip(tokens).map(|(prices, tokens)| prices.cost(self.route, tokens)),
            usage: usage.map(|usage| told(usage, tokens)),
            note: notes.hook.as_ref().and_then(said_by_hook),
        }
    }

    /// What the server wants back with the answer.
    fn back(&self, model: &Model, notes: &Notes, calls: &[ToolCall]) -> Map<String, Value> {
        let mut back = Map::new();
        if self.thinking.is_empty() && notes.seals.is_empty() && calls.iter().all(|call| call.extra.is_empty()) {
            return back;
        }
        let mut wire = json!({ "model": &*model.id });
        if let (false, Some(wire)) = (notes.seals.is_empty(), wire.as_object_mut()) {
            let block = |seal: &Seal| match seal {
                Seal::Signed(range, signature) => {
                    let thinking = self.thinking.get(range.clone()).unwrap_or_default();
                    json!({ "type": "thinking", "thinking": thinking, "signature": signature })
                }
                Seal::Hidden(data) => json!({ "type": "redacted_thinking", "data": data }),
            };
            wire.insert("thinking".to_owned(), notes.seals.iter().map(block).collect());
        }
        back.insert(BACK.to_owned(), wire);
        back
    }
}

/// The calls that a client is to make, by the names of its tools, each with an identity that no other has.
fn called(calls: Vec<ToolCall>, ask: &Ask<'_>) -> Vec<ToolCall> {
    let mut taken = HashSet::new();
    let is_older = |id: &Arc<str>| {
        let mut before = ask.messages.iter().flat_map(|message| message.tool_calls.iter().flatten());
        before.any(|call| call.id.as_ref() == Some(id))
    };
    // A server's own tools have run already.
    let own = calls.into_iter().filter(|call| !call.extra.contains_key("part"));
    own.map(|mut call| {
        call.function.name = names::from_wire(&call.function.name, ask.tools);
        call.extra.remove("index");
        let id = call.id.filter(|id| !id.is_empty() && !taken.contains(id) && !is_older(id));
        let id = id.unwrap_or_else(|| format!("call_{}", uuid::Uuid::new_v4().simple()).into());
        taken.insert(id.clone());
        ToolCall { id: Some(id), ..call }
    })
    .collect()
}

/// What a hook of a gateway says of an answer that it changed.
fn said_by_hook(hook: &Value) -> Option<String> {
    let texts = ["user_message", "agent_message"];
    texts.iter().find_map(|key| hook.get(*key)?.as_str()).filter(|text| !text.is_empty()).map(fault::plain)
}

fn unreadable(fault: Fault) -> ModelError {
    match fault {
        Fault::Cut => ModelError::Broken("broke off before its end".to_owned()),
        fault => ModelError::Broken(format!("cannot be read: {fault}")),
    }
}

/// A server's own counters, and beside them those that hooks read of every server, by docker-agent's names. Unlike some
/// servers' these do not count a token twice.
fn told(mut usage: Value, tokens: Option<Tokens>) -> Value {
    let (Some(counters), Some(Tokens { input, output, cached, recalled })) = (usage.as_object_mut(), tokens) else {
        return usage;
    };
    let of_cache = cached.saturating_add(recalled);
    counters.entry("input_tokens").or_insert(input.saturating_sub(of_cache).into());
    counters.entry("output_tokens").or_insert(output.into());
    let thought = counters.get("completion_tokens_details").and_then(|details| details.get("reasoning_tokens"));
    let thought = thought.and_then(Value::as_u64).unwrap_or(0);
    for (name, count) in
        [("cached_input_tokens", recalled), ("cached_write_tokens", cached), ("reasoning_tokens", thought)]
    {
        if count > 0 {
            counters.entry(name).or_insert(count.into());
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_servers_tokens_are_told_by_the_same_names_and_none_twice() {
        for (route, usage, expected) in [
            (
                Route::ChatCompletions,
                json!({"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5},
                       "completion_tokens_details": {"reasoning_tokens": 3}}),
                json!({"input_tokens": 4, "output_tokens": 4, "cached_input_tokens": 5, "reasoning_tokens": 3}),
            ),
            (
                Route::Messages,
                json!({"input_tokens": 4, "output_tokens": 2, "cache_creation_input_tokens": 1,
                       "cache_read_input_tokens": 7}),
                json!({"input_tokens": 4, "output_tokens": 2, "cached_input_tokens": 7, "cached_write_tokens": 1}),
            ),
            (
                Route::Chat,
                json!({"prompt_eval_count": 9, "eval_count": 4}),
                json!({"input_tokens": 9, "output_tokens": 4, "cached_input_tokens": null}),
            ),
        ] {
            let told = told(usage.clone(), Some(Tokens::of(route, &usage)));
            for (name, count) in expected.as_object().unwrap() {
                assert_eq!(told.get(name).unwrap_or(&Value::Null), count, "{name} of {usage}");
            }
            assert!(usage.as_object().unwrap().iter().all(|(name, count)| told.get(name) == Some(count)), "{told}");
        }
        assert_eq!(told(json!("many"), Some(Tokens::default())), json!("many"));
    }
}
