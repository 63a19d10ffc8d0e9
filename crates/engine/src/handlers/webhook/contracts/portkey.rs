//! Portkey's webhook guardrails: <https://portkey.ai/docs/integrations/guardrails/bring-your-own-guardrails>.
//!
//! `json` is the exchange as chat completions has it. Of a `transformedData` the messages are taken, or the message of
//! the choice; whatever else it changes cannot be made, and that is a failure. A reply without a `verdict` passes there
//! as a failed check; here it is a failure.

use gatehook_events::{Message, Output, Permission, ToolCall};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::texts::unsupported;
use super::{Asked, Stage, flag, put, unreadable};
use crate::event_class::is_inference;
use crate::handler::HandlerError;

pub(super) fn question(asked: &Asked<'_>) -> Option<Value> {
    let is_answer = asked.stage == Stage::Answer;
    let texts = if is_answer { &asked.texts.context } else { &asked.texts.judged };
    let prompt = texts.last().map_or("", |text| &*text.text);
    let said = if is_answer { asked.texts.joined() } else { String::new() };
    let provider = asked.word("provider").or(asked.input.provider.as_deref()).unwrap_or("openai");
    Some(json!({
        "request": {
            "json": request(asked),
            "text": prompt,
            "isStreamingRequest": asked.input.stream.unwrap_or_default(),
            "isTransformed": false,
        },
        "response": {
            "json": if is_answer { response(asked) } else { json!({}) },
            "text": said,
            "statusCode": if is_answer { json!(200) } else { Value::Null },
            "isTransformed": false,
        },
        "provider": provider,
        "requestType": "chatComplete",
        "metadata": asked.parameter("metadata").cloned().unwrap_or_else(|| json!({})),
        "eventType": if is_answer { "afterRequestHook" } else { "beforeRequestHook" },
    }))
}

fn request(asked: &Asked<'_>) -> Value {
    let input = asked.input;
    let mut body = input.options.as_deref().and_then(Value::as_object).cloned().unwrap_or_default();
    put(&mut body, "model", asked.model());
    let prompt = input.prompt.as_deref().map(|prompt| json!([{"role": "user", "content": prompt}]));
    put(&mut body, "messages", input.messages.as_deref().map(|messages| json!(messages)).or(prompt));
    put(&mut body, "tools", input.tools.as_deref().cloned());
    put(&mut body, "stream", input.stream);
    Value::Object(body)
}

fn response(asked: &Asked<'_>) -> Value {
    let input = asked.input;
    let mut message = Map::new();
    put(&mut message, "role", Some("assistant"));
    let said = input.output_text.as_deref().or(input.stop_response.as_deref());
    put(&mut message, "content", Some(said.map_or(Value::Null, Value::from)));
    put(&mut message, "reasoning_content", input.output_thinking.as_deref());
    put(&mut message, "tool_calls", input.tool_calls.as_deref().map(|calls| json!(calls)));
    let finish = input.done_reason.as_deref().map_or(Value::Null, Value::from);
    let mut body = Map::new();
    put(&mut body, "object", Some("chat.completion"));
    put(&mut body, "model", asked.model());
    put(&mut body, "choices", Some(json!([{"index": 0, "message": message, "finish_reason": finish}])));
    put(&mut body, "usage", input.usage.clone());
    Value::Object(body)
}

pub(super) fn answer(asked: &Asked<'_>, reply: &Map<String, Value>) -> Result<Output, HandlerError> {
    if !flag(reply, "verdict")? {
        let data = reply.get("data").and_then(Value::as_object);
        let why = ["reason", "explanation", "message"].iter().find_map(|key| data?.get(*key)?.as_str());
        return Ok(asked.deny(None, why.unwrap_or_default()));
    }
    let Some(new) = reply.get("transformedData").filter(|new| !new.is_null()) else { return Ok(asked.allow()) };
    // A part that stands as it was sent has not been changed.
    let part = |key: &str, sent: &Value| new.get(key)?.get("json").filter(|json| !json.is_null() && *json != sent);
    let is_answer = asked.stage == Stage::Answer;
    let sent = if is_answer { response(asked) } else { json!({}) };
    match (part("request", &request(asked)), part("response", &sent)) {
        (None, None) => Ok(asked.allow()),
        (None, Some(new)) if is_answer => said(asked, new),
        (Some(new), None) if !is_answer => asked_for(asked, new),
        _ => Err(unsupported("it changed a part of the exchange that is not to be judged")),
    }
}

/// A changed request: its messages.
fn asked_for(asked: &Asked<'_>, new: &Value) -> Result<Output, HandlerError> {
    let old = request(asked);
    let messages = differing(&old, new, "messages")?;
    let Some(messages) = messages else { return Ok(asked.allow()) };
    if asked.input.messages.is_none() || !asked.texts.can_change() {
        return Err(unsupported("this event's messages cannot be changed"));
    }
    let messages: Vec<Message> = read(messages, "messages")?;
    Ok(Output {
        permission: is_inference(asked.event).then_some(Permission::Modify),
        messages: Some(messages),
        ..Output::default()
    })
}

/// A changed answer: the message of its choice.
fn said(asked: &Asked<'_>, new: &Value) -> Result<Output, HandlerError> {
    let old = response(asked);
    let Some(choices) = differing(&old, new, "choices")? else { return Ok(asked.allow()) };
    let message = |response: &Value| response.pointer("/choices/0/message").cloned();
    let (Some(Value::Object(old_message)), Some(Value::Object(new_message))) = (message(&old), message(new)) else {
        return Err(unreadable("the changed answer of its reply has no message"));
    };
    let mut probe = old.clone();
    if let Some(slot) = probe.pointer_mut("/choices/0/message") {
        *slot = Value::Object(new_message.clone());
    }
    if probe.get("choices") != Some(choices) || !asked.texts.can_change() {
        return Err(unsupported("it changed more of the answer than its message"));
    }
    let changed = |key: &str| new_message.get(key).filter(|new| Some(*new) != old_message.get(key));
    let known = ["content", "reasoning_content", "tool_calls"];
    let keys = old_message.keys().chain(new_message.keys());
    if keys.filter(|key| !known.contains(&key.as_str())).any(|key| old_message.get(key) != new_message.get(key)) {
        return Err(unsupported("it changed more of the answer than its text, its thinking and its tool calls"));
    }
    let text = |key: &str| changed(key).map(|value| read::<Option<String>>(value, key)).transpose();
    let calls = changed("tool_calls").map(|value| read::<Option<Vec<ToolCall>>>(value, "tool_calls")).transpose()?;
    Ok(Output {
        permission: Some(Permission::Modify),
        output_text: text("content")?.map(Option::unwrap_or_default).map(Into::into),
        output_thinking: text("reasoning_content")?.map(Option::unwrap_or_default).map(Into::into),
        tool_calls: calls.map(Option::unwrap_or_default),
        ..Output::default()
    })
}

/// The value of the one key that may differ; `None` where it does not.
fn differing<'n>(old: &Value, new: &'n Value, key: &str) -> Result<Option<&'n Value>, HandlerError> {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return Err(unreadable("`json` of its `transformedData` is no object"));
    };
    if old.keys().chain(new.keys()).any(|each| each != key && old.get(each) != new.get(each)) {
        return Err(unsupported(&format!("it changed more than `{key}`")));
    }
    let given = new.get(key).ok_or_else(|| unsupported(&format!("it left out `{key}`")))?;
    Ok(Some(given).filter(|given| old.get(key) != Some(*given)))
}

fn read<T: DeserializeOwned>(value: &Value, key: &str) -> Result<T, HandlerError> {
    // The error of serde would show the reply's own text.
    T::deserialize(value).map_err(|_| unreadable(&format!("`{key}` of its reply is of the wrong type")))
}
