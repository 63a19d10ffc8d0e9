//! Streams of blocks and items: Anthropic's Messages, OpenAI's Responses.

use serde_json::{Value, json};

use super::{Gathered, Say};

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    format!("event: {kind}\ndata: {data}\n\n")
}

/// Pieces of one kind that follow each other are one block.
fn blocks(says: &[Say]) -> Vec<Vec<&Say>> {
    let mut blocks: Vec<Vec<&Say>> = Vec::new();
    for say in says {
        let joins =
            |last: &&Say| matches!((last, say), (Say::Text(_), Say::Text(_)) | (Say::Thinking(_), Say::Thinking(_)));
        match blocks.last_mut().filter(|block| block.last().is_some_and(joins)) {
            Some(block) => block.push(say),
            None => blocks.push(vec![say]),
        }
    }
    blocks
}

pub(super) fn messages(says: &[Say]) -> Vec<String> {
    let message = json!({"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [],
                         "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    let mut frames = vec![event("message_start", json!({"message": message}))];
    let mut calls = false;
    for (index, block) in blocks(says).into_iter().enumerate() {
        let empty = match block[0] {
            Say::Text(_) => json!({"type": "text", "text": ""}),
            Say::Thinking(_) => json!({"type": "thinking", "thinking": ""}),
            Say::Call(id, name, _) => json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
        };
        frames.push(event("content_block_start", json!({"index": index, "content_block": empty})));
        let delta = |delta: Value| event("content_block_delta", json!({"index": index, "delta": delta}));
        for say in block {
            match say {
                Say::Text(text) => frames.push(delta(json!({"type": "text_delta", "text": text}))),
                Say::Thinking(text) => frames.push(delta(json!({"type": "thinking_delta", "thinking": text}))),
                Say::Call(_, _, arguments) => {
                    calls = true;
                    let piece = |piece: &String| delta(json!({"type": "input_json_delta", "partial_json": piece}));
                    frames.extend(arguments.iter().map(piece));
                }
            }
        }
        frames.push(event("content_block_stop", json!({"index": index})));
    }
    let stop = if calls { "tool_use" } else { "end_turn" };
    frames.push(event(
        "message_delta",
        json!({"delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 2}}),
    ));
    frames.push(event("message_stop", json!({})));
    frames
}

/// Name and data of each event.
fn events(text: &str) -> impl Iterator<Item = Value> {
    let events = text.split("\n\n").filter(|event| !event.is_empty() && !event.starts_with(": "));
    events.map(|event| {
        let (name, data) = event.split_once('\n').unwrap_or_else(|| panic!("{event}"));
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str(), "{event}");
        data
    })
}

pub(super) fn gather_messages(text: &str, gathered: &mut Gathered) {
    let (mut next, mut kinds) = (0, Vec::new());
    for event in events(text) {
        if !event["hook"].is_null() {
            gathered.hook = Some(event["hook"].clone());
        }
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!(event["index"], next, "a gap: {text}");
                next += 1;
                let block = &event["content_block"];
                kinds.push(block["type"].as_str().unwrap().to_owned());
                if block["type"] == "tool_use" {
                    let word = |key: &str| block[key].as_str().unwrap().to_owned();
                    gathered.calls.push((word("id"), word("name"), String::new()));
                }
            }
            "content_block_delta" => {
                assert_eq!(event["index"], next - 1, "{text}");
                let delta = &event["delta"];
                match delta["type"].as_str().unwrap() {
                    "text_delta" => gathered.text.push_str(delta["text"].as_str().unwrap()),
                    "thinking_delta" => gathered.thinking.push_str(delta["thinking"].as_str().unwrap()),
                    "input_json_delta" => {
                        gathered.calls.last_mut().unwrap().2.push_str(delta["partial_json"].as_str().unwrap());
                    }
                    _ => {}
                }
            }
            "message_delta" => gathered.stop = event["delta"]["stop_reason"].as_str().map(str::to_owned),
            "message_stop" => gathered.over = true,
            "error" => gathered.error = Some(event["error"].clone()),
            _ => {}
        }
    }
}

pub(super) fn responses(says: &[Say]) -> Vec<String> {
    let mut frames = Vec::new();
    let mut send = |kind: &str, mut data: Value| {
        data["sequence_number"] = frames.len().into();
        frames.push(event(kind, data));
    };
    let response = |status: &str, output: &[Value]| {
        json!({"response": {"id": "r", "object": "response", "created_at": 1, "status": status, "model": "m",
                            "output": output, "usage": {"total_tokens": 3}}})
    };
    send("response.created", response("in_progress", &[]));
    let mut output = Vec::new();
    for (index, block) in blocks(says).into_iter().enumerate() {
        let id = format!("item_{index}");
        let at = |mut data: Value| {
            (data["item_id"], data["output_index"]) = (id.as_str().into(), index.into());
            data
        };
        let whole: String = block
            .iter()
            .map(|say| match say {
                Say::Text(text) | Say::Thinking(text) => text.clone(),
                Say::Call(_, _, arguments) => arguments.concat(),
            })
            .collect();
        let item = |text: Option<&str>, status: &str| match block[0] {
            Say::Text(_) => json!({"type": "message", "id": id, "role": "assistant", "status": status, "content":
                text.map(|text| json!({"type": "output_text", "text": text, "annotations": []})).into_iter().collect::<Vec<_>>()}),
            Say::Thinking(_) => json!({"type": "reasoning", "id": id, "summary": [], "content":
                text.map(|text| json!({"type": "reasoning_text", "text": text})).into_iter().collect::<Vec<_>>()}),
            Say::Call(call_id, name, _) => json!({"type": "function_call", "id": id, "status": status,
                "call_id": call_id, "name": name, "arguments": text.unwrap_or_default()}),
        };
        let (part, said) = match block[0] {
            Say::Text(_) => ("output_text", "response.output_text"),
            Say::Thinking(_) => ("reasoning_text", "response.reasoning_text"),
            Say::Call(..) => ("", "response.function_call_arguments"),
        };
        let part = |text: &str| {
            let mut part = json!({"type": part, "text": text});
            if part["type"] == "output_text" {
                part["annotations"] = json!([]);
            }
            at(json!({"content_index": 0, "part": part}))
        };
        let is_call = matches!(block[0], Say::Call(..));
        send("response.output_item.added", json!({"output_index": index, "item": item(None, "in_progress")}));
        if !is_call {
            send("response.content_part.added", part(""));
        }
        for say in &block {
            match say {
                Say::Text(text) | Say::Thinking(text) => {
                    send(&format!("{said}.delta"), at(json!({"content_index": 0, "delta": text})));
                }
                Say::Call(_, _, arguments) => {
                    for piece in arguments {
                        send(&format!("{said}.delta"), at(json!({"delta": piece})));
                    }
                }
            }
        }
        if is_call {
            send(&format!("{said}.done"), at(json!({"arguments": whole})));
        } else {
            send(&format!("{said}.done"), at(json!({"content_index": 0, "text": whole})));
            send("response.content_part.done", part(&whole));
        }
        let done = item(Some(&whole), "completed");
        send("response.output_item.done", json!({"output_index": index, "item": done}));
        output.push(done);
    }
    send("response.completed", response("completed", &output));
    frames
}

pub(super) fn gather_responses(text: &str, gathered: &mut Gathered) {
    for (number, event) in events(text).enumerate() {
        if event["type"] != "error" {
            assert_eq!(event["sequence_number"], number, "{text}");
        }
        let delta = event["delta"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "response.output_text.delta" => gathered.text.push_str(delta),
            "response.reasoning_text.delta" => gathered.thinking.push_str(delta),
            "response.refusal.delta" => gathered.refusal.push_str(delta),
            "error" => gathered.error = Some(event.clone()),
            "response.failed" => gathered.error = Some(event["response"]["error"].clone()),
            "response.completed" | "response.incomplete" => {
                gathered.over = true;
                let response = &event["response"];
                gathered.hook = [&event["hook"], &response["hook"]].into_iter().find(|hook| !hook.is_null()).cloned();
                gathered.stop = response["status"].as_str().map(str::to_owned);
                repeats(response, gathered, text);
            }
            _ => {}
        }
    }
}

/// The whole at the end says what the deltas said.
fn repeats(response: &Value, gathered: &mut Gathered, text: &str) {
    let (mut said, mut thought) = (String::new(), String::new());
    for item in response["output"].as_array().unwrap() {
        let parts = || item["content"].as_array().into_iter().flatten();
        let texts: String = parts().filter_map(|part| part["text"].as_str()).collect();
        match item["type"].as_str().unwrap() {
            "message" => said.push_str(&texts),
            "reasoning" => thought.push_str(&texts),
            "function_call" => {
                let word = |key: &str| item[key].as_str().unwrap().to_owned();
                gathered.calls.push((word("call_id"), word("name"), word("arguments")));
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((&said, &thought), (&gathered.text, &gathered.thinking), "{text}");
}
