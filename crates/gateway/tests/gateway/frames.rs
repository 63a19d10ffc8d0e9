//! Streams of the six routes, made of what a model says in pieces, and what a client makes of such a stream.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::feed::{NDJSON, SSE};

/// The six routes.
pub(crate) const ROUTES: [&str; 6] =
    ["/api/chat", "/api/generate", "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"];

/// A streamed request of a route.
pub(crate) fn request(route: &str) -> Vec<u8> {
    asking(route, "hi")
}

/// The same with this prompt, which stands in JSON as it is.
pub(crate) fn asking(route: &str, prompt: &str) -> Vec<u8> {
    let body = match route {
        "/api/generate" => r#"{"model":"m","prompt":"hi","stream":true}"#,
        "/v1/completions" => r#"{"model":"m","prompt":"hi","stream":true,"logprobs":1}"#,
        "/v1/responses" => r#"{"model":"m","input":"hi","stream":true}"#,
        "/v1/messages" => r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#,
        _ => r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#,
    };
    crate::support::post(route, &body.replace("\"hi\"", &format!("\"{prompt}\"")))
}

/// The type of a route's streams.
pub(crate) fn kind(route: &str) -> &'static str {
    if route.starts_with("/api/") { NDJSON } else { SSE }
}

/// What a model says, in the pieces it says it in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) thinking: Vec<String>,
    pub(crate) text: Vec<String>,
    /// The arguments of a tool call, in JSON.
    pub(crate) arguments: Vec<String>,
    /// More text, behind the call.
    pub(crate) after: Vec<String>,
    /// And from the beginning again: thinking, text, …
    pub(crate) then: Option<Box<Said>>,
}

impl Said {
    /// All that is said, turn by turn.
    fn turns(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |said| said.then.as_deref())
    }

    fn calls(&self) -> bool {
        self.turns().any(|turn| !turn.arguments.is_empty())
    }

    pub(crate) fn text(pieces: &[&str]) -> Self {
        Self { text: owned(pieces), ..Self::default() }
    }

    pub(crate) fn thinking(pieces: &[&str]) -> Self {
        Self { thinking: owned(pieces), ..Self::text(&["Well."]) }
    }
}

fn owned(pieces: &[&str]) -> Vec<String> {
    pieces.iter().map(|piece| (*piece).to_owned()).collect()
}

/// The frames of a stream: what comes before the first piece, one for each piece, and what comes after the last.
pub(crate) fn frames(route: &str, said: &Said) -> Vec<String> {
    match route {
        "/api/chat" => native(said, |thinking, text| match thinking {
            "" => json!({"message": {"role": "assistant", "content": text}}),
            _ => json!({"message": {"role": "assistant", "content": text, "thinking": thinking}}),
        }),
        "/api/generate" => native(said, |thinking, text| match thinking {
            "" => json!({"response": text}),
            _ => json!({"response": text, "thinking": thinking}),
        }),
        "/v1/chat/completions" => chat(said),
        "/v1/completions" => completions(said),
        "/v1/responses" => Responses::default().stream(said),
        _ => messages(said),
    }
}

/// All of a stream.
pub(crate) fn stream(route: &str, said: &Said) -> String {
    frames(route, said).concat()
}

fn native(said: &Said, line: impl Fn(&str, &str) -> Value) -> Vec<String> {
    let common = |mut line: Value, done: bool| {
        line["model"] = "m".into();
        line["created_at"] = "2026-01-01T00:00:00Z".into();
        line["done"] = done.into();
        if done {
            line["done_reason"] = "stop".into();
            line["eval_count"] = 7.into();
        }
        format!("{line}\n")
    };
    let spoken = |piece: &String| {
        let mut line = line("", piece);
        line["logprobs"] = json!([logprob(piece)]);
        common(line, false)
    };
    let mut lines = Vec::new();
    for turn in said.turns() {
        lines.extend(turn.thinking.iter().map(|piece| common(line(piece, ""), false)));
        lines.extend(turn.text.iter().map(spoken));
        if !turn.arguments.is_empty() {
            let arguments: Value = serde_json::from_str(&turn.arguments.concat()).unwrap();
            let calls = json!([{"function": {"name": "f", "arguments": arguments}}]);
            lines.push(common(json!({"message": {"role": "assistant", "content": "", "tool_calls": calls}}), false));
        }
        lines.extend(turn.after.iter().map(spoken));
    }
    lines.push(common(line("", ""), true));
    lines
}

fn data(event: &Value) -> String {
    format!("data: {event}\n\n")
}

fn logprob(token: &str) -> Value {
    json!({"token": token, "logprob": -0.5, "bytes": token.as_bytes(),
        "top_logprobs": [{"token": token, "logprob": -0.5, "bytes": token.as_bytes()}]})
}

fn chat(said: &Said) -> Vec<String> {
    let chunk = |delta: Value, logprobs: Value, reason: Value| {
        data(&json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
            "choices": [{"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}]}))
    };
    let delta = |delta: Value| chunk(delta, Value::Null, Value::Null);
    let mut frames = vec![delta(json!({"role": "assistant", "content": ""}))];
    let spoken = |piece: &String| chunk(json!({"content": piece}), json!({"content": [logprob(piece)]}), Value::Null);
    let argued = |piece: &String| delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}));
    for turn in said.turns() {
        frames.extend(turn.thinking.iter().map(|piece| delta(json!({"reasoning_content": piece}))));
        frames.extend(turn.text.iter().map(spoken));
        if !turn.arguments.is_empty() {
            let function = json!({"name": "f", "arguments": ""});
            let begin = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
            frames.push(delta(json!({"tool_calls": [begin]})));
        }
        frames.extend(turn.arguments.iter().map(argued));
        frames.extend(turn.after.iter().map(spoken));
    }
    frames.push(chunk(json!({}), Value::Null, json!(if said.calls() { "tool_calls" } else { "stop" })));
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}

fn completions(said: &Said) -> Vec<String> {
    let chunk = |text: &str, logprobs: Value, reason: Value| {
        data(&json!({"id": "c", "object": "text_completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "text": text, "logprobs": logprobs, "finish_reason": reason}]}))
    };
    let spoken = |piece: &String| {
        let logprobs = json!({"tokens": [piece], "token_logprobs": [-0.5], "top_logprobs": [{piece.as_str(): -0.5}], "text_offset": [0]});
        chunk(piece, logprobs, Value::Null)
    };
    let mut frames: Vec<_> = said.text.iter().map(spoken).collect();
    frames.extend([chunk("", Value::Null, json!("stop")), "data: [DONE]\n\n".to_owned()]);
    frames
}

fn event(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

/// The Responses format, which says everything three times.
#[derive(Default)]
struct Responses {
    frames: Vec<String>,
    output: Vec<Value>,
}

impl Responses {
    fn push(&mut self, kind: &str, mut fields: Value) {
        fields["type"] = format!("response.{kind}").into();
        fields["sequence_number"] = self.frames.len().into();
        self.frames.push(event(&fields));
    }

    fn response(&mut self, kind: &str, status: &str) {
        let response = json!({"id": "r", "object": "response", "created_at": 0, "status": status, "model": "m",
            "output": self.output, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []});
        self.push(kind, json!({"response": response}));
    }

    /// An item between its beginning and its end; `parts` are the events within.
    fn item(&mut self, begin: Value, whole: Value, parts: impl FnOnce(&mut dyn FnMut(&str, Value))) {
        let index = self.output.len();
        self.push("output_item.added", json!({"output_index": index, "item": begin}));
        parts(&mut |kind, mut fields| {
            fields["output_index"] = index.into();
            fields["item_id"] = whole["id"].clone();
            self.push(kind, fields);
        });
        self.push("output_item.done", json!({"output_index": index, "item": whole}));
        self.output.push(whole);
    }

    fn stream(mut self, said: &Said) -> Vec<String> {
        self.response("created", "in_progress");
        for (turn, number) in said.turns().zip(1..) {
            if !turn.thinking.is_empty() {
                self.reasoning(&format!("rs_{number}"), &turn.thinking);
            }
            if !turn.text.is_empty() {
                self.message(&format!("msg_{number}"), &turn.text);
            }
            if !turn.arguments.is_empty() {
                self.call(&turn.arguments);
            }
            if !turn.after.is_empty() {
                self.message(&format!("msg_after_{number}"), &turn.after);
            }
        }
        self.response("completed", "completed");
        self.frames
    }

    fn reasoning(&mut self, id: &str, pieces: &[String]) {
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        let item = |summary: Value| json!({"id": id, "type": "reasoning", "summary": summary});
        let whole = part(&pieces.concat());
        self.item(item(json!([])), item(json!([whole])), |push| {
            push("reasoning_summary_part.added", json!({"summary_index": 0, "part": part("")}));
            for piece in pieces {
                push("reasoning_summary_text.delta", json!({"summary_index": 0, "delta": piece}));
            }
            push("reasoning_summary_text.done", json!({"summary_index": 0, "text": pieces.concat()}));
            push("reasoning_summary_part.done", json!({"summary_index": 0, "part": whole}));
        });
    }

    fn message(&mut self, id: &str, pieces: &[String]) {
        let part = |text: &str, logprobs: &[Value]| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs});
        let item = |status: &str, content: Value| json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": content});
        let logprobs: Vec<_> = pieces.iter().map(|piece| logprob(piece)).collect();
        let whole = part(&pieces.concat(), &logprobs);
        self.item(item("in_progress", json!([])), item("completed", json!([whole])), |push| {
            push("content_part.added", json!({"content_index": 0, "part": part("", &[])}));
            for piece in pieces {
                let logprobs = [logprob(piece)];
                push("output_text.delta", json!({"content_index": 0, "delta": piece, "logprobs": logprobs}));
            }
            let done = json!({"content_index": 0, "text": pieces.concat(), "logprobs": logprobs});
            push("output_text.done", done);
            push("content_part.done", json!({"content_index": 0, "part": whole}));
        });
    }

    fn call(&mut self, pieces: &[String]) {
        let item = |status: &str, arguments: &str| {
            json!({"id": "fc", "type": "function_call", "call_id": "call_1", "name": "f", "status": status,
                "arguments": arguments})
        };
        self.item(item("in_progress", ""), item("completed", &pieces.concat()), |push| {
            for piece in pieces {
                push("function_call_arguments.delta", json!({"delta": piece}));
            }
            push("function_call_arguments.done", json!({"arguments": pieces.concat()}));
        });
    }
}

fn messages(said: &Said) -> Vec<String> {
    let start = json!({"type": "message_start", "message": {"id": "msg", "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 3, "output_tokens": 1}}});
    let mut frames = vec![event(&start)];
    let blocks = said.turns().flat_map(|turn| {
        let text = || json!({"type": "text", "text": ""});
        let call = json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}});
        [
            (json!({"type": "thinking", "thinking": ""}), "thinking_delta", "thinking", &turn.thinking),
            (text(), "text_delta", "text", &turn.text),
            (call, "input_json_delta", "partial_json", &turn.arguments),
            (text(), "text_delta", "text", &turn.after),
        ]
    });
    for (index, (block, delta, key, pieces)) in blocks.filter(|(.., pieces)| !pieces.is_empty()).enumerate() {
        frames.push(event(&json!({"type": "content_block_start", "index": index, "content_block": block})));
        for piece in pieces {
            let delta = json!({"type": delta, key: piece});
            frames.push(event(&json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        frames.push(event(&json!({"type": "content_block_stop", "index": index})));
    }
    let reason = if said.calls() { "tool_use" } else { "end_turn" };
    frames.push(event(&json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 7}})));
    frames.push(event(&json!({"type": "message_stop"})));
    frames
}

/// What a client makes of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) thinking: String,
    pub(crate) text: String,
    pub(crate) arguments: String,
    /// The last stop reason or status.
    pub(crate) reason: String,
    /// The protocol's own end has come.
    pub(crate) over: bool,
    /// An error has come.
    pub(crate) error: bool,
}

/// The events or lines of a body, which must be whole ones.
pub(crate) fn events(route: &str, body: &str) -> Vec<Value> {
    let read = |data: &str| serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"));
    if kind(route) == NDJSON {
        assert!(body.is_empty() || body.ends_with('\n'), "no line is cut: {body}");
        return body.lines().map(read).collect();
    }
    assert!(body.is_empty() || body.ends_with("\n\n"), "no event is cut: {body}");
    let data = body.split("\n\n").flat_map(|event| event.lines().filter_map(|line| line.strip_prefix("data: ")));
    data.filter(|data| *data != "[DONE]").map(read).collect()
}

/// Where a route's events say what, as JSON pointers.
const PLACES: [(&str, [&str; 4]); 6] = [
    ("/api/chat", ["/message/thinking", "/message/content", "", "/done_reason"]),
    ("/api/generate", ["/thinking", "/response", "", "/done_reason"]),
    (
        "/v1/chat/completions",
        [
            "/choices/0/delta/reasoning_content",
            "/choices/0/delta/content",
            "/choices/0/delta/tool_calls/0/function/arguments",
            "/choices/0/finish_reason",
        ],
    ),
    ("/v1/completions", ["/none", "/choices/0/text", "", "/choices/0/finish_reason"]),
    ("/v1/responses", ["", "", "", "/response/status"]),
    ("/v1/messages", ["/delta/thinking", "/delta/text", "/delta/partial_json", "/delta/stop_reason"]),
];

/// What a client makes of a route's stream.
pub(crate) fn heard(route: &str, body: &str) -> Heard {
    let mut heard = Heard { over: body.ends_with("data: [DONE]\n\n"), ..Heard::default() };
    let [thinking, text, arguments, reason] = PLACES.iter().find(|(name, _)| *name == route).unwrap().1;
    for event in events(route, body) {
        let kind = event["type"].as_str().unwrap_or_default();
        let said = |place: &str| event.pointer(place).filter(|_| !place.is_empty()).and_then(Value::as_str);
        heard.thinking += said(thinking).unwrap_or_default();
        heard.text += said(text).unwrap_or_default();
        heard.arguments += said(arguments).unwrap_or_default();
        let delta = event["delta"].as_str().unwrap_or_default();
        match kind {
            "response.reasoning_summary_text.delta" => heard.thinking += delta,
            "response.output_text.delta" => heard.text += delta,
            "response.function_call_arguments.delta" => heard.arguments += delta,
            _ => {}
        }
        if let Some(calls) = event.pointer("/message/tool_calls/0/function/arguments") {
            heard.arguments += &calls.to_string();
        }
        heard.reason = said(reason).map_or(heard.reason, str::to_owned);
        heard.over |=
            event["done"] == true || ["response.completed", "response.incomplete", "message_stop"].contains(&kind);
        heard.error |= kind == "error" || kind == "response.failed" || !event["error"].is_null();
    }
    heard
}

/// Everything that a body says, by where it says it: all strings at one place of the events, joined in their order, and
/// all bytes of tokens. What is not in one of them cannot be put together from the stream.
pub(crate) fn told(route: &str, body: &str) -> Vec<String> {
    let mut told = BTreeMap::new();
    for event in events(route, body) {
        tell(event["type"].as_str().unwrap_or_default().to_owned(), &event, &mut told);
    }
    told.into_values().chain([body.to_owned()]).collect()
}

fn tell(place: String, value: &Value, told: &mut BTreeMap<String, String>) {
    match value {
        Value::String(text) => *told.entry(place).or_default() += text,
        Value::Array(values) if values.iter().all(Value::is_u64) => {
            let bytes: Vec<u8> = values.iter().filter_map(|value| value.as_u64()?.try_into().ok()).collect();
            *told.entry(place).or_default() += &String::from_utf8_lossy(&bytes);
        }
        Value::Array(values) => values.iter().for_each(|value| tell(place.clone(), value, told)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            *told.entry(format!("{place} keys")).or_default() += key;
            tell(format!("{place}/{key}"), value, told);
        }),
        _ => {}
    }
}
