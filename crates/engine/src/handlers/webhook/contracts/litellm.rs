//! LiteLLM's generic guardrail API: <https://docs.litellm.ai/docs/adding_provider/generic_guardrail_api>.
//!
//! `texts` are what may be rewritten; tool calls are shown in `tool_calls` and `structured_messages`. The strings of a
//! tool's arguments and of its result are texts, as LiteLLM shows those of MCP calls. An `action` that nobody knows
//! passes there, here it is a failure.

use gatehook_events::{Event, Output};
use serde_json::{Map, Value, json};

use super::texts::unsupported;
use super::{Asked, Stage, put, text, texts, unreadable};
use crate::handler::HandlerError;

pub(super) fn question(asked: &Asked<'_>) -> Option<Value> {
    let input = asked.input;
    let texts = asked.texts.judged.iter().filter(|text| !text.is_call()).map(|text| Value::from(&*text.text));
    let is_answer = matches!(asked.stage, Stage::Answer | Stage::ToolResult);
    let mut body = Map::new();
    put(&mut body, "input_type", Some(if is_answer { "response" } else { "request" }));
    put(&mut body, "texts", Some(texts.collect::<Value>()));
    put(&mut body, "litellm_call_id", input.request_id.as_deref());
    put(&mut body, "litellm_trace_id", input.session_id.as_deref());
    put(&mut body, "model", asked.model());
    let messages = input.messages.as_deref().filter(|_| asked.stage == Stage::Prompt);
    put(&mut body, "structured_messages", messages.map(|messages| json!(messages)));
    put(&mut body, "images", images(asked));
    put(&mut body, "tools", tools(asked));
    let calls = input.tool_calls.as_deref().filter(|calls| asked.stage == Stage::Answer && !calls.is_empty());
    put(&mut body, "tool_calls", calls.map(|calls| json!(calls)));
    let client = |key: &str| input.client.as_deref().and_then(|client| client.get(key)).filter(|it| !it.is_null());
    let mut caller = Map::new();
    put(&mut caller, "user_api_key_alias", client("key_name").cloned());
    put(&mut caller, "user_api_key_end_user_id", input.user.as_deref());
    put(&mut body, "request_data", Some(caller));
    put(&mut body, "request_headers", client("user_agent").map(|agent| json!({"user-agent": agent})));
    let more = asked.parameter("additional_provider_specific_params").cloned();
    put(&mut body, "additional_provider_specific_params", more.or(Some(json!({}))));
    Some(Value::Object(body))
}

fn images(asked: &Asked<'_>) -> Option<Value> {
    let messages = asked.input.messages.iter().filter(|_| asked.stage == Stage::Prompt);
    let images = messages.flat_map(|messages| messages.iter()).flat_map(|message| message.images.iter().flatten());
    let data: Vec<&str> = images.filter_map(|image| image.data.as_deref()).collect();
    (!data.is_empty()).then(|| json!(data))
}

/// The tools of the request, or the tool that is called.
fn tools(asked: &Asked<'_>) -> Option<Value> {
    match asked.stage {
        Stage::Prompt => asked.input.tools.as_deref().cloned(),
        Stage::ToolCall => {
            let parameters = json!({"type": "object", "properties": {}, "additionalProperties": false});
            let name = asked.input.tool_name.as_deref().unwrap_or_default();
            Some(json!([{
                "type": "function",
                "function": {"name": name, "description": "", "parameters": parameters},
            }]))
        }
        _ => None,
    }
}

pub(super) fn answer(asked: &Asked<'_>, reply: &Map<String, Value>) -> Result<Output, HandlerError> {
    let mut output = match text(reply, "action")? {
        Some("NONE") => asked.allow(),
        Some("BLOCKED") => asked.deny(text(reply, "blocked_reason")?, ""),
        Some("GUARDRAIL_INTERVENED") => intervened(asked, reply)?,
        _ => return Err(unreadable("`action` of its reply is none of `NONE`, `BLOCKED`, `GUARDRAIL_INTERVENED`")),
    };
    if asked.event == Event::PostInference {
        output.holdback_chars = holdback(reply.get("stream_holdback_chars"))?;
    }
    Ok(output)
}

fn intervened(asked: &Asked<'_>, reply: &Map<String, Value>) -> Result<Output, HandlerError> {
    for (key, shown) in [("images", images(asked)), ("tools", tools(asked))] {
        if reply.get(key).is_some_and(|given| !given.is_null() && shown.as_ref() != Some(given)) {
            return Err(unsupported(&format!("it changed `{key}`, and only texts can be changed")));
        }
    }
    let Some(given) = reply.get("texts").filter(|texts| !texts.is_null()) else {
        return Err(unsupported("it intervened and gave no `texts`"));
    };
    let mut given = texts(given, "texts")?.into_iter();
    let judged = &asked.texts.judged;
    let new = judged.iter().map_while(|old| if old.is_call() { Some(old.text.to_string()) } else { given.next() });
    let new: Vec<String> = new.collect();
    match given.next() {
        Some(_) => Err(unsupported("it gave more texts than it was shown")),
        None => asked.texts.rewrite(&new),
    }
}

/// How many characters stay held: the most of a list with one number for each text.
fn holdback(value: Option<&Value>) -> Result<Option<u32>, HandlerError> {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let most = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) => list.iter().map(number).try_fold(0, |most, next| Some(next?.max(most))),
        Some(one) => number(one),
    };
    most.map(Some).ok_or_else(|| unreadable("`stream_holdback_chars` of its reply is no list of whole numbers"))
}
