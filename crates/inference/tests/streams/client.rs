//! What a client makes of a stream: as the vendors' SDKs gather it, and stricter where they are lenient.

use std::collections::BTreeMap;

use gatehook_inference::Route;
use serde_json::Value;

/// One choice as a client has gathered it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) refusal: String,
    pub(crate) thinking: String,
    /// Id, name and arguments.
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) stop: Option<String>,
    pub(crate) role: Option<String>,
}

/// A stream as a client has gathered it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gathered {
    pub(crate) choices: BTreeMap<u64, Heard>,
    pub(crate) done: bool,
    pub(crate) error: Option<Value>,
    pub(crate) hook: Option<Value>,
    pub(crate) usage: Option<Value>,
    /// Every JSON object that came.
    pub(crate) frames: Vec<Value>,
}

impl Gathered {
    pub(crate) fn first(&self) -> &Heard {
        &self.choices[&0]
    }
}

/// Reads a stream of `route`.
pub(crate) fn gather(route: Route, stream: &str) -> Gathered {
    let mut gathered = Gathered::default();
    match route {
        Route::Chat | Route::Generate => {
            for line in stream.lines().filter(|line| !line.is_empty()) {
                let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                assert!(!gathered.done, "after the end: {line}");
                native(&line, &mut gathered);
                gathered.frames.push(line);
            }
        }
        _ => {
            for event in events(stream) {
                assert!(!gathered.done, "after the end: {event}");
                if event == "[DONE]" {
                    gathered.done = true;
                    continue;
                }
                let chunk: Value = serde_json::from_str(&event).unwrap_or_else(|error| panic!("{error}: {event}"));
                chat(&chunk, &mut gathered);
                gathered.frames.push(chunk);
            }
        }
    }
    gathered
}

/// The data of each event, by the standard. What has no blank line behind it is taken, too.
pub(crate) fn events(stream: &str) -> Vec<String> {
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    let data = |event: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        lines.join("\n")
    };
    stream.split("\n\n").map(data).filter(|data| !data.is_empty()).collect()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    match &value[key] {
        Value::String(text) => text,
        Value::Null => "",
        other => panic!("`{key}` is {other}"),
    }
}

fn native(line: &Value, gathered: &mut Gathered) {
    if !line["error"].is_null() {
        gathered.error = Some(line["error"].clone());
        return;
    }
    assert!(line["model"].is_string() && line["created_at"].is_string(), "{line}");
    let heard = gathered.choices.entry(0).or_default();
    let message = if line["message"].is_null() { line } else { &line["message"] };
    heard.text += text(message, if line["message"].is_null() { "response" } else { "content" });
    heard.thinking += text(message, "thinking");
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        assert!(function["arguments"].is_object(), "{line}");
        assert_eq!(function["index"].as_u64().unwrap_or(heard.calls.len() as u64), heard.calls.len() as u64, "{line}");
        heard.calls.push((text(call, "id").into(), text(function, "name").into(), function["arguments"].to_string()));
    }
    if line["done"] == true {
        gathered.done = true;
        heard.stop = Some(text(line, "done_reason").to_owned());
        gathered.usage = (!line["eval_count"].is_null()).then(|| line["eval_count"].clone());
        gathered.hook = (!line["hook"].is_null()).then(|| line["hook"].clone());
    }
}

fn chat(chunk: &Value, gathered: &mut Gathered) {
    if !chunk["error"].is_null() {
        gathered.error = Some(chunk["error"].clone());
        return;
    }
    if !chunk["usage"].is_null() {
        gathered.usage = Some(chunk["usage"].clone());
    }
    if !chunk["hook"].is_null() {
        gathered.hook = Some(chunk["hook"].clone());
    }
    assert!(chunk["id"].is_string() && chunk["model"].is_string(), "{chunk}");
    for choice in chunk["choices"].as_array().unwrap() {
        let heard = gathered.choices.entry(choice["index"].as_u64().unwrap_or(0)).or_default();
        assert!(heard.stop.is_none(), "after the stop reason: {chunk}");
        heard.text += text(choice, "text");
        if choice["delta"].is_object() {
            piece(&choice["delta"], heard);
        }
        heard.stop = choice["finish_reason"].as_str().map(str::to_owned);
    }
}

fn piece(delta: &Value, heard: &mut Heard) {
    if let Some(role) = delta["role"].as_str() {
        heard.role.get_or_insert_with(|| role.to_owned());
    }
    match &delta["content"] {
        Value::Array(parts) => {
            for part in parts {
                heard.text += text(part, "text");
                for step in part["thinking"].as_array().into_iter().flatten() {
                    heard.thinking += text(step, "text");
                }
            }
        }
        _ => heard.text += text(delta, "content"),
    }
    heard.refusal += text(delta, "refusal");
    heard.thinking += ["reasoning_content", "reasoning"]
        .map(|key| text(delta, key))
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or("");
    let calls = delta["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let single = delta["function_call"].is_object().then_some(&delta["function_call"]);
    for call in calls {
        let body = if call["custom"].is_object() { &call["custom"] } else { &call["function"] };
        add(heard, call["index"].as_u64(), text(call, "id"), body);
    }
    if let Some(call) = single {
        add(heard, Some(0), "", call);
    }
}

/// By index, each one more than the last; strings grow, as the SDKs' accumulators let them.
fn add(heard: &mut Heard, index: Option<u64>, id: &str, body: &Value) {
    let index = index.map_or(heard.calls.len(), |index| index as usize);
    assert!(index <= heard.calls.len(), "a gap before call {index}");
    if index == heard.calls.len() {
        heard.calls.push(Default::default());
    }
    let call = &mut heard.calls[index];
    call.0 += id;
    call.1 += text(body, "name");
    call.2 += text(body, if body["input"].is_string() { "input" } else { "arguments" });
}
