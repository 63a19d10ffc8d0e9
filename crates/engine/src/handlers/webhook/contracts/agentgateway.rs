//! The guardrail webhooks of agentgateway, kgateway and Gloo:
//! <https://github.com/agentgateway/agentgateway/blob/main/crates/agentgateway/src/llm/policy/webhook.rs>.
//!
//! Their `action` is told apart by its shape alone. There, a rejection without its status passes; here it rejects, and
//! what is neither a mask, nor a rejection, nor empty is a failure.

use gatehook_events::Output;
use serde_json::{Map, Value, json};

use super::{Asked, Stage, text, unreadable};
use crate::handler::HandlerError;

pub(super) fn question(asked: &Asked<'_>) -> Option<Value> {
    let texts = asked.texts.judged.iter();
    let messages = texts.map(|text| json!({"role": text.role, "content": text.text}));
    let body = match asked.stage {
        Stage::Answer => json!({"choices": messages.map(|message| json!({"message": message})).collect::<Value>()}),
        _ => json!({"messages": messages.collect::<Value>()}),
    };
    Some(json!({"body": body}))
}

pub(super) fn answer(asked: &Asked<'_>, reply: &Map<String, Value>) -> Result<Output, HandlerError> {
    let Some(Value::Object(action)) = reply.get("action") else {
        return Err(unreadable("`action` of its reply is no object"));
    };
    let reason = text(action, "reason")?.unwrap_or_default();
    match action.get("body") {
        Some(Value::String(said)) => Ok(asked.deny(Some(said), reason)),
        Some(Value::Object(body)) => asked.texts.rewrite(&masked(asked, body)?),
        Some(Value::Null) | None if !action.contains_key("status_code") => Ok(asked.allow()),
        _ => Err(unreadable("`action` of its reply is neither a mask, nor a rejection, nor empty")),
    }
}

/// The texts of a mask: as many as were shown, of the same roles.
fn masked(asked: &Asked<'_>, body: &Map<String, Value>) -> Result<Vec<String>, HandlerError> {
    let key = if asked.stage == Stage::Answer { "choices" } else { "messages" };
    let items = body.get(key).and_then(Value::as_array);
    let items = items.ok_or_else(|| unreadable(&format!("`action.body` of its reply has no `{key}`")))?;
    let mut roles = asked.texts.judged.iter().map(|text| text.role);
    let text = |item: &Value| {
        let message = if asked.stage == Stage::Answer { item.get("message")? } else { item };
        let role = message.get("role")?.as_str()?;
        let content = message.get("content")?.as_str()?;
        roles.next().is_none_or(|shown| shown == role).then(|| content.to_owned())
    };
    let texts: Option<Vec<String>> = items.iter().map(text).collect();
    texts.ok_or_else(|| unreadable("a message of its mask is not the one that it was shown"))
}
