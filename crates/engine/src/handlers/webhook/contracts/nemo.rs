//! The checks of a NeMo Guardrails server (0.24), `POST /v1/checks`:
//! <https://github.com/NVIDIA-NeMo/Guardrails/blob/develop/nemoguardrails/server/api.py>.
//!
//! Its input rails judge the last message of the user, its output rails that of the assistant. Texts of one role that
//! stand side by side are one message, so that all parts of such a message are judged.

use gatehook_events::Output;
use serde_json::{Map, Value, json};

use super::texts::{Text, joined, parted, unsupported};
use super::{Asked, Stage, put, text, unreadable};
use crate::handler::HandlerError;

pub(super) fn question(asked: &Asked<'_>) -> Option<Value> {
    let texts = &asked.texts;
    if texts.judged.is_empty() {
        return None;
    }
    let groups = groups(&texts.context).into_iter().chain(groups(&texts.judged));
    let messages = groups.map(|group| message(asked, group));
    let rail = if asked.stage == Stage::Answer { "output" } else { "input" };
    let mut guardrails = Map::new();
    put(&mut guardrails, "config_id", asked.word("config_id"));
    put(&mut guardrails, "config_ids", asked.parameter("config_ids").cloned());
    put(&mut guardrails, "rail_types", Some(json!([rail])));
    let model = asked.word("model").or(asked.model()).unwrap_or_default();
    Some(json!({"model": model, "messages": messages.collect::<Value>(), "guardrails": guardrails}))
}

/// Neighbours of one role; results of tools stand for themselves.
fn groups<'t, 'a>(texts: &'t [Text<'a>]) -> Vec<&'t [Text<'a>]> {
    texts.chunk_by(|one, next| one.role == next.role && one.role != "tool").collect()
}

fn message(asked: &Asked<'_>, group: &[Text<'_>]) -> Value {
    let role = match group.first().map_or("user", |text| text.role) {
        role @ ("system" | "developer" | "assistant" | "tool") => role,
        _ => "user",
    };
    let mut message = Map::new();
    put(&mut message, "role", Some(role));
    put(&mut message, "content", Some(joined(group)));
    if role == "tool" {
        let id = group.first().and_then(|text| asked.texts.message(text)?.tool_call_id.as_deref());
        put(&mut message, "tool_call_id", Some(id.unwrap_or_default()));
    }
    Value::Object(message)
}

pub(super) fn answer(asked: &Asked<'_>, reply: &Map<String, Value>) -> Result<Output, HandlerError> {
    match text(reply, "status")? {
        Some("passed") => Ok(asked.allow()),
        Some("blocked") => {
            let reason = text(reply, "rail")?.map(|rail| format!("blocked by the rail `{rail}`"));
            // It may be what was blocked, which is not to be said again.
            let shown = asked.texts.joined();
            let said = text(reply, "content")?.filter(|said| !said.trim().is_empty() && !shown.contains(said.trim()));
            Ok(asked.deny(said, &reason.unwrap_or_default()))
        }
        Some("modified") => {
            let content = text(reply, "content")?.ok_or_else(|| unreadable("it modified a text and gave none"))?;
            modified(asked, content)
        }
        _ => Err(unreadable("`status` of its reply is none of `passed`, `modified`, `blocked`")),
    }
}

fn modified(asked: &Asked<'_>, content: &str) -> Result<Output, HandlerError> {
    let role = if asked.stage == Stage::Answer { "assistant" } else { "user" };
    let groups = groups(&asked.texts.judged);
    let last = groups.iter().rposition(|group| group.first().is_some_and(|text| text.role == role));
    let last = last.ok_or_else(|| unsupported("it modified a message that nobody sent"))?;
    let mut new = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        match at == last {
            true => new.extend(parted(group, content)?),
            false => new.extend(group.iter().map(|text| text.text.to_string())),
        }
    }
    asked.texts.rewrite(&new)
}
