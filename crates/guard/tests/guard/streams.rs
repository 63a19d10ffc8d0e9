//! Streams as upstreams send them, and what a client gathers of them.

mod items;

use gatehook_inference::Route;
use serde_json::{Value, json};

/// All routes.
pub(crate) const ROUTES: &[Route] = Route::ALL;

/// Whether a route has thinking and tool calls beside text.
pub(crate) fn has_more(route: Route) -> bool {
    !matches!(route, Route::Completions | Route::Generate)
}

/// Why a model stops that has said all, by the word of its route.
pub(crate) fn stop(route: Route) -> &'static str {
    match route {
        Route::Messages => "end_turn",
        Route::Responses => "completed",
        _ => "stop",
    }
}

/// What a model says, piece by piece.
#[derive(Debug, Clone)]
pub(crate) enum Say {
    Text(String),
    Thinking(String),
    /// Id, name, and arguments in pieces.
    Call(&'static str, &'static str, Vec<String>),
}

pub(crate) fn text(text: &str) -> Say {
    Say::Text(text.to_owned())
}

pub(crate) fn thinking(text: &str) -> Say {
    Say::Thinking(text.to_owned())
}

pub(crate) fn call(id: &'static str, name: &'static str, arguments: &str) -> Say {
    Say::Call(id, name, arguments.chars().map(String::from).collect())
}

/// What a client has at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gathered {
    pub(crate) text: String,
    pub(crate) thinking: String,
    /// Id, name, arguments.
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) refusal: String,
    pub(crate) stop: Option<String>,
    pub(crate) hook: Option<Value>,
    pub(crate) error: Option<Value>,
    /// The protocol's end has come.
    pub(crate) over: bool,
}

/// The frames of one answer.
pub(crate) fn frames(route: Route, says: &[Say]) -> Vec<String> {
    match route {
        Route::ChatCompletions => chat(says),
        Route::Completions => completions(says),
        Route::Chat | Route::Generate => native(route, says),
        Route::Messages => items::messages(says),
        Route::Responses => items::responses(says),
    }
}

/// What a client makes of bytes.
pub(crate) fn gather(route: Route, bytes: &[u8]) -> Gathered {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut gathered = Gathered::default();
    match route {
        Route::ChatCompletions => gather_chat(text, &mut gathered),
        Route::Completions => gather_completions(text, &mut gathered),
        Route::Chat | Route::Generate => gather_native(route, text, &mut gathered),
        Route::Messages => items::gather_messages(text, &mut gathered),
        Route::Responses => items::gather_responses(text, &mut gathered),
    }
    gathered
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn events(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").filter_map(|event| event.strip_prefix("data: "))
}

fn chat(says: &[Say]) -> Vec<String> {
    let chunk = |delta: Value, stop: Value| {
        event(&json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                      "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}))
    };
    let mut frames = vec![chunk(json!({"role": "assistant"}), Value::Null)];
    let mut calls = 0;
    for say in says {
        match say {
            Say::Text(text) => frames.push(chunk(json!({"content": text}), Value::Null)),
            Say::Thinking(text) => frames.push(chunk(json!({"reasoning_content": text}), Value::Null)),
            Say::Call(id, name, arguments) => {
                let call = |function: Value| json!({"tool_calls": [{"index": calls, "function": function}]});
                let first = json!({"tool_calls": [{"index": calls, "id": id, "type": "function",
                                   "function": {"name": name, "arguments": ""}}]});
                frames.push(chunk(first, Value::Null));
                frames.extend(arguments.iter().map(|piece| chunk(call(json!({"arguments": piece})), Value::Null)));
                calls += 1;
            }
        }
    }
    frames.push(chunk(json!({}), if calls > 0 { "tool_calls".into() } else { "stop".into() }));
    frames
        .push(event(&json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
                              "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}})));
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}

fn gather_chat(text: &str, gathered: &mut Gathered) {
    for data in events(text) {
        if data == "[DONE]" {
            gathered.over = true;
            continue;
        }
        let chunk: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"));
        take(&chunk, gathered);
        let delta = &chunk["choices"][0]["delta"];
        gathered.text.push_str(delta["content"].as_str().unwrap_or_default());
        gathered.thinking.push_str(delta["reasoning_content"].as_str().unwrap_or_default());
        gathered.refusal.push_str(delta["refusal"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = call["index"].as_u64().unwrap() as usize;
            assert!(index <= gathered.calls.len(), "a gap: {text}");
            if index == gathered.calls.len() {
                gathered.calls.push(Default::default());
            }
            let slot = &mut gathered.calls[index];
            slot.0.push_str(call["id"].as_str().unwrap_or_default());
            slot.1.push_str(call["function"]["name"].as_str().unwrap_or_default());
            slot.2.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
        }
    }
}

fn completions(says: &[Say]) -> Vec<String> {
    let chunk = |text: &str, stop: Value| {
        event(&json!({"id": "c", "object": "text_completion", "created": 1, "model": "m",
                      "choices": [{"index": 0, "text": text, "logprobs": null, "finish_reason": stop}]}))
    };
    let mut frames: Vec<String> = Vec::new();
    for say in says {
        if let Say::Text(text) = say {
            frames.push(chunk(text, Value::Null));
        }
    }
    frames.push(chunk("", "stop".into()));
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}

fn gather_completions(text: &str, gathered: &mut Gathered) {
    for data in events(text) {
        if data == "[DONE]" {
            gathered.over = true;
            continue;
        }
        let chunk: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}"));
        take(&chunk, gathered);
        gathered.text.push_str(chunk["choices"][0]["text"].as_str().unwrap_or_default());
    }
}

/// What the chunks of OpenAI's two older routes share.
fn take(chunk: &Value, gathered: &mut Gathered) {
    let found = |value: &Value| Some(value.clone()).filter(|value| !value.is_null());
    gathered.error = gathered.error.take().or(found(&chunk["error"]));
    gathered.hook = gathered.hook.take().or(found(&chunk["hook"]));
    let stop = chunk["choices"][0]["finish_reason"].as_str().map(str::to_owned);
    gathered.stop = gathered.stop.take().or(stop);
}

fn native(route: Route, says: &[Say]) -> Vec<String> {
    let line = |field: &str, value: Value| {
        let (mut line, mut message) = (json!({"model": "m", "created_at": "t"}), json!({"role": "assistant"}));
        let object = if route == Route::Chat { &mut message } else { &mut line };
        object[if route == Route::Chat { "content" } else { "response" }] = "".into();
        object[field] = value;
        if route == Route::Chat {
            line["message"] = message;
        }
        line["done"] = false.into();
        format!("{line}\n")
    };
    let text = if route == Route::Chat { "content" } else { "response" };
    let mut frames: Vec<String> = says
        .iter()
        .filter_map(|say| match say {
            Say::Text(said) => Some(line(text, said.as_str().into())),
            Say::Thinking(said) => Some(line("thinking", said.as_str().into())),
            Say::Call(_, name, arguments) if route == Route::Chat => {
                let arguments: Value = serde_json::from_str(&arguments.concat()).unwrap();
                Some(line("tool_calls", json!([{"function": {"name": name, "arguments": arguments}}])))
            }
            Say::Call(..) => None,
        })
        .collect();
    let mut last: Value = serde_json::from_str(&line(text, "".into())).unwrap();
    (last["done"], last["done_reason"], last["eval_count"]) = (true.into(), "stop".into(), 2.into());
    frames.push(format!("{last}\n"));
    frames
}

fn gather_native(route: Route, text: &str, gathered: &mut Gathered) {
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let found = |value: &Value| Some(value.clone()).filter(|value| !value.is_null());
        gathered.error = gathered.error.take().or(found(&line["error"]));
        gathered.hook = gathered.hook.take().or(found(&line["hook"]));
        let (object, key) = if route == Route::Chat { (&line["message"], "content") } else { (&line, "response") };
        gathered.text.push_str(object[key].as_str().unwrap_or_default());
        gathered.thinking.push_str(object["thinking"].as_str().unwrap_or_default());
        for call in object["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            let name = function["name"].as_str().unwrap().to_owned();
            gathered.calls.push((String::new(), name, function["arguments"].to_string()));
        }
        if line["done"] == true {
            gathered.over = true;
            gathered.stop = line["done_reason"].as_str().map(str::to_owned);
        }
    }
}
