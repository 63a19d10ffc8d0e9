//! What a client makes of a stream: as the `openai` and `anthropic` packages gather it, with all that they check, and
//! stricter where they are lenient.

use gatehook_inference::Route;
use serde_json::Value;

/// A stream as a client has gathered it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gathered {
    /// Items, or blocks.
    pub(crate) content: Vec<Value>,
    pub(crate) stop: Option<String>,
    pub(crate) over: bool,
    pub(crate) error: Option<Value>,
    pub(crate) hook: Option<Value>,
    pub(crate) usage: Value,
}

impl Gathered {
    pub(crate) fn text(&self) -> String {
        self.words(&[("message", "content", "output_text", "text"), ("text", "", "", "text")])
    }

    pub(crate) fn refusal(&self) -> String {
        self.words(&[("message", "content", "refusal", "refusal")])
    }

    pub(crate) fn thinking(&self) -> String {
        self.words(&[
            ("reasoning", "summary", "summary_text", "text"),
            ("reasoning", "content", "reasoning_text", "text"),
            ("thinking", "", "", "thinking"),
        ])
    }

    fn words(&self, rows: &[(&str, &str, &str, &str)]) -> String {
        let mut words = String::new();
        for content in &self.content {
            // Responses shows the text of a message in parts, refusals among them.
            for (kind, list, part, key) in rows.iter().filter(|row| content["type"] == row.0) {
                match *list {
                    "" => words += content[key].as_str().unwrap(),
                    list => {
                        let parts = content[list].as_array().into_iter().flatten();
                        words.extend(parts.filter(|at| at["type"] == *part).map(|at| at[key].as_str().unwrap()));
                    }
                }
                assert!(!kind.is_empty());
            }
        }
        words
    }

    /// Text and refusals, in order.
    pub(crate) fn said(&self) -> String {
        let mut said = String::new();
        for content in &self.content {
            match content["type"].as_str().unwrap() {
                "text" => said += content["text"].as_str().unwrap(),
                "message" => {
                    for part in content["content"].as_array().unwrap() {
                        said += part["text"].as_str().or(part["refusal"].as_str()).unwrap();
                    }
                }
                _ => {}
            }
        }
        said
    }

    /// Id, name and arguments of each call of a tool.
    pub(crate) fn calls(&self) -> Vec<(String, String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let calls = self.content.iter().filter_map(|content| match content["type"].as_str()? {
            "function_call" => Some((&content["call_id"], &content["name"], text(&content["arguments"]))),
            "custom_tool_call" => Some((&content["call_id"], &content["name"], text(&content["input"]))),
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                Some((&content["id"], &content["name"], content["input"].to_string()))
            }
            _ => None,
        });
        calls.map(|(id, name, arguments)| (text(id), text(name), arguments)).collect()
    }

    pub(crate) fn kinds(&self) -> Vec<&str> {
        self.content.iter().map(|content| content["type"].as_str().unwrap()).collect()
    }
}

/// Reads a stream of `route`, which may break off.
pub(crate) fn gather(route: Route, stream: &str) -> Gathered {
    let mut gathered = Gathered::default();
    let mut number = None;
    let mut buffers: Vec<Buffer> = Vec::new();
    for event in stream.split("\n\n").filter(|event| !event.is_empty()) {
        let (name, data) = event.split_once('\n').unwrap_or_else(|| panic!("{event}"));
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str(), "{event}");
        assert!(!gathered.over, "after the end: {event}");
        if route == Route::Responses {
            let next = data["sequence_number"].as_u64().unwrap_or_else(|| panic!("no number: {event}"));
            assert!(number.is_none_or(|number| next == number + 1), "{number:?}, then {event}");
            number = Some(next);
            item_event(&data, &mut gathered);
        } else {
            block_event(&data, &mut gathered, &mut buffers);
        }
    }
    gathered
}

fn at<'v>(list: &'v mut Value, index: &Value, event: &Value) -> &'v mut Value {
    let place = index.as_u64().unwrap_or_else(|| panic!("no index: {event}")) as usize;
    list.as_array_mut().and_then(|list| list.get_mut(place)).unwrap_or_else(|| panic!("a wrong index: {event}"))
}

fn grow(value: &mut Value, more: &Value) {
    *value = format!("{}{}", value.as_str().unwrap(), more.as_str().unwrap()).into();
}

fn item_event(event: &Value, gathered: &mut Gathered) {
    let kind = event["type"].as_str().unwrap();
    if let "response.created" | "response.in_progress" | "response.queued" = kind {
        assert_eq!(event["response"]["output"], Value::Array(Vec::new()), "{event}");
        return;
    }
    if kind == "error" {
        gathered.error = Some(event.clone());
        return;
    }
    if let "response.completed" | "response.incomplete" | "response.failed" = kind {
        return end_response(event, gathered);
    }
    let index = event["output_index"].as_u64().unwrap_or_else(|| panic!("no place: {event}")) as usize;
    if kind == "response.output_item.added" {
        assert_eq!(index, gathered.content.len(), "a gap before {event}");
        gathered.content.push(event["item"].clone());
        return;
    }
    let item = gathered.content.get_mut(index).unwrap_or_else(|| panic!("no such item: {event}"));
    if kind == "response.output_item.done" {
        for key in ["id", "call_id", "type"] {
            assert_eq!(item[key], event["item"][key], "another item: {event}");
        }
        assert_same(item, &event["item"], event);
        *item = event["item"].clone();
        return;
    }
    if item["id"].is_string() {
        assert_eq!(event["item_id"], item["id"], "{event}");
    }
    part_event(kind, event, item);
}

fn part_event(kind: &str, event: &Value, item: &mut Value) {
    let (list, index) = match kind.contains("reasoning_summary") {
        true => ("summary", &event["summary_index"]),
        false => ("content", &event["content_index"]),
    };
    match kind {
        "response.content_part.added" | "response.reasoning_summary_part.added" => {
            let parts = item[list].as_array_mut().unwrap_or_else(|| panic!("{event}"));
            assert_eq!(index.as_u64(), Some(parts.len() as u64), "a gap before {event}");
            parts.push(event["part"].clone());
        }
        "response.content_part.done" | "response.reasoning_summary_part.done" => {
            let part = at(&mut item[list], index, event);
            assert_eq!(words(part), words(&event["part"]), "{event}");
            *part = event["part"].clone();
        }
        "response.output_text.delta" | "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
            grow(&mut at(&mut item[list], index, event)["text"], &event["delta"]);
        }
        "response.output_text.done" | "response.reasoning_text.done" | "response.reasoning_summary_text.done" => {
            assert_eq!(at(&mut item[list], index, event)["text"], event["text"], "{event}");
        }
        "response.refusal.delta" => grow(&mut at(&mut item[list], index, event)["refusal"], &event["delta"]),
        "response.refusal.done" => {
            assert_eq!(at(&mut item[list], index, event)["refusal"], event["refusal"], "{event}")
        }
        "response.output_text.annotation.added" => {
            let part = at(&mut item[list], index, event);
            part["annotations"].as_array_mut().unwrap().push(event["annotation"].clone());
        }
        "response.function_call_arguments.delta" => grow(&mut item["arguments"], &event["delta"]),
        "response.custom_tool_call_input.delta" => grow(&mut item["input"], &event["delta"]),
        "response.function_call_arguments.done" => assert_eq!(item["arguments"], event["arguments"], "{event}"),
        "response.custom_tool_call_input.done" => assert_eq!(item["input"], event["input"], "{event}"),
        _ => {}
    }
}

fn words(part: &Value) -> Option<&str> {
    part["text"].as_str().or(part["refusal"].as_str())
}

/// What was told in pieces is what is told as a whole.
fn assert_same(item: &Value, whole: &Value, event: &Value) {
    for key in ["arguments", "input", "name"] {
        if item[key].as_str().is_some_and(|text| !text.is_empty()) {
            assert_eq!(item[key], whole[key], "{event}");
        }
    }
    for list in ["content", "summary"] {
        let told = item[list].as_array().map(Vec::as_slice).unwrap_or_default();
        let shown = whole[list].as_array().map(Vec::as_slice).unwrap_or_default();
        if !told.is_empty() {
            let texts = |parts: &[Value]| parts.iter().map(|part| words(part).map(str::to_owned)).collect::<Vec<_>>();
            assert_eq!(texts(told), texts(shown), "{event}");
        }
    }
}

fn end_response(event: &Value, gathered: &mut Gathered) {
    let response = &event["response"];
    gathered.over = true;
    gathered.stop = response["status"].as_str().map(str::to_owned);
    gathered.usage = response["usage"].clone();
    assert_eq!(event["hook"], response["hook"], "{event}");
    gathered.hook = event.get("hook").cloned();
    if gathered.stop.as_deref() == Some("failed") {
        gathered.error = Some(response["error"].clone());
        return;
    }
    let output = response["output"].as_array().unwrap();
    assert_eq!(gathered.content.len(), output.len(), "{event}");
    for (item, whole) in gathered.content.iter_mut().zip(output) {
        for key in ["id", "call_id", "type", "arguments", "input", "content", "summary", "encrypted_content"] {
            assert_eq!(item[key], whole[key], "`{key}` of {event}");
        }
        *item = whole.clone();
    }
}

/// A block while it is built.
#[derive(Default)]
struct Buffer {
    json: String,
    over: bool,
}

fn block_event(event: &Value, gathered: &mut Gathered, buffers: &mut Vec<Buffer>) {
    let place = event["index"].as_u64().map(|place| place as usize);
    match event["type"].as_str().unwrap() {
        "message_start" => {
            assert_eq!(event["message"]["content"], Value::Array(Vec::new()));
            gathered.usage = event["message"]["usage"].clone();
        }
        "content_block_start" => {
            assert!(gathered.stop.is_none(), "{event}");
            assert_eq!(place, Some(gathered.content.len()), "a gap before {event}");
            gathered.content.push(event["content_block"].clone());
            buffers.push(Buffer::default());
        }
        "content_block_delta" => {
            let place = place.unwrap();
            let buffer = buffers.get_mut(place).unwrap_or_else(|| panic!("no such block: {event}"));
            assert!(!buffer.over, "after the end of its block: {event}");
            delta_event(event, &mut gathered.content[place], buffer);
        }
        "content_block_stop" => {
            let place = place.unwrap();
            let buffer = buffers.get_mut(place).unwrap_or_else(|| panic!("no such block: {event}"));
            assert!(!std::mem::replace(&mut buffer.over, true), "twice: {event}");
            if !buffer.json.is_empty()
                && let Ok(input) = serde_json::from_str(&buffer.json)
            {
                gathered.content[place]["input"] = input;
            }
        }
        "message_delta" => {
            gathered.stop = event["delta"]["stop_reason"].as_str().map(str::to_owned);
            gathered.usage["output_tokens"] = event["usage"]["output_tokens"].clone();
            gathered.hook = event.get("hook").cloned();
        }
        "message_stop" => {
            assert!(buffers.iter().all(|buffer| buffer.over), "a block stands open");
            assert_eq!(gathered.hook.as_ref(), event.get("hook"), "{event}");
            gathered.over = true;
        }
        "error" => gathered.error = Some(event["error"].clone()),
        _ => {}
    }
}

fn delta_event(event: &Value, block: &mut Value, buffer: &mut Buffer) {
    let delta = &event["delta"];
    match (delta["type"].as_str().unwrap(), block["type"].as_str().unwrap()) {
        ("text_delta", "text") => grow(&mut block["text"], &delta["text"]),
        ("thinking_delta", "thinking") => grow(&mut block["thinking"], &delta["thinking"]),
        ("signature_delta", "thinking") => block["signature"] = delta["signature"].clone(),
        ("citations_delta", "text") => match block["citations"].as_array_mut() {
            Some(list) => list.push(delta["citation"].clone()),
            None => block["citations"] = Value::Array(vec![delta["citation"].clone()]),
        },
        ("input_json_delta", _) => buffer.json += delta["partial_json"].as_str().unwrap(),
        pair => panic!("{pair:?}: {event}"),
    }
}
