//! The API server of LLM Guard, `POST /analyze/prompt` and `/analyze/output`, or `/scan/…`:
//! <https://github.com/protectai/llm-guard/blob/main/llm_guard_api/app/schemas.py>.
//!
//! It judges one prompt: all texts are shown as one. Scanners that mask (`Anonymize`, `Secrets`) call what they masked
//! invalid; with their names in `mask` the masked text goes on instead of being refused.

use gatehook_events::Output;
use serde_json::{Map, Value};

use super::texts::joined;
use super::{Asked, Stage, flag, put, text};
use crate::handler::HandlerError;

pub(super) fn question(asked: &Asked<'_>) -> Option<Value> {
    if asked.texts.judged.is_empty() {
        return None;
    }
    let mut body = Map::new();
    if asked.stage == Stage::Answer {
        put(&mut body, "prompt", Some(joined(&asked.texts.context)));
        put(&mut body, "output", Some(asked.texts.joined()));
    } else {
        put(&mut body, "prompt", Some(asked.texts.joined()));
    }
    put(&mut body, "scanners_suppress", asked.parameter("scanners_suppress").cloned());
    Some(Value::Object(body))
}

pub(super) fn answer(asked: &Asked<'_>, reply: &Map<String, Value>) -> Result<Output, HandlerError> {
    let key = if asked.stage == Stage::Answer { "sanitized_output" } else { "sanitized_prompt" };
    let (is_valid, sanitized) = (flag(reply, "is_valid")?, text(reply, key)?);
    let found = found(reply);
    let mask = asked.parameter("mask").and_then(Value::as_array);
    let masks = |name: &&str| mask.is_some_and(|mask| mask.iter().any(|known| known.as_str() == Some(name)));
    let is_masked = !found.is_empty() && found.iter().all(masks) && sanitized.is_some();
    if !is_valid && !is_masked {
        let reason = if found.is_empty() { String::new() } else { format!("refused by {}", found.join(", ")) };
        return Ok(asked.deny(None, &reason));
    }
    match sanitized {
        Some(new) if new != asked.texts.joined() => asked.texts.rewrite(&asked.texts.parted(new)?),
        // An invalid text that stands as it was has not been masked.
        _ if !is_valid => Ok(asked.deny(None, &format!("refused by {}", found.join(", ")))),
        _ => Ok(asked.allow()),
    }
}

/// The scanners that found something: those with a risk above 0.
fn found(reply: &Map<String, Value>) -> Vec<&str> {
    let scanners = reply.get("scanners").and_then(Value::as_object).into_iter().flatten();
    scanners.filter(|(_, score)| score.as_f64().is_none_or(|score| score > 0.0)).map(|(name, _)| &**name).collect()
}
