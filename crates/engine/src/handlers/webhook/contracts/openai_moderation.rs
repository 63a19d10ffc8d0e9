//! OpenAI's moderation endpoint: <https://platform.openai.com/docs/api-reference/moderations>.
//!
//! One result for each text. `thresholds` adds scores that deny, beside what is flagged.

use gatehook_events::Output;
use serde_json::{Map, Value, json};

use super::{Asked, flag, unreadable};
use crate::handler::HandlerError;

pub(super) fn question(asked: &Asked<'_>) -> Option<Value> {
    let texts: Vec<&str> = asked.texts.judged.iter().map(|text| &*text.text).collect();
    let model = asked.word("model").unwrap_or("omni-moderation-latest");
    (!texts.is_empty()).then(|| json!({"model": model, "input": texts}))
}

pub(super) fn answer(asked: &Asked<'_>, reply: &Map<String, Value>) -> Result<Output, HandlerError> {
    let results = reply.get("results").and_then(Value::as_array);
    let results = results.filter(|results| results.len() == asked.texts.judged.len());
    let results = results.ok_or_else(|| unreadable("its reply has not one result for each text"))?;
    let (mut denied, mut categories) = (false, Vec::new());
    for result in results {
        let result = result.as_object().ok_or_else(|| unreadable("a result of its reply is no object"))?;
        let reached = reached(asked, result)?;
        let flagged = result.get("categories").and_then(Value::as_object).into_iter().flatten();
        let flagged = flagged.filter(|(_, flag)| flag.as_bool() == Some(true)).map(|(name, _)| name.as_str());
        denied |= flag(result, "flagged")? || !reached.is_empty();
        categories.extend(flagged.chain(reached));
    }
    if !denied {
        return Ok(asked.allow());
    }
    categories.sort_unstable();
    categories.dedup();
    let reason = if categories.is_empty() { String::new() } else { format!("flagged as {}", categories.join(", ")) };
    Ok(asked.deny(None, &reason))
}

/// The categories whose score has reached its threshold.
fn reached<'a>(asked: &'a Asked<'_>, result: &Map<String, Value>) -> Result<Vec<&'a str>, HandlerError> {
    let thresholds = asked.parameter("thresholds").and_then(Value::as_object).into_iter().flatten();
    let mut reached = Vec::new();
    for (category, threshold) in thresholds {
        let score = result.get("category_scores").and_then(|scores| scores.get(category)?.as_f64());
        let score = score.ok_or_else(|| unreadable("its reply has no score of a category with a threshold"))?;
        if threshold.as_f64().is_none_or(|threshold| score >= threshold) {
            reached.push(category.as_str());
        }
    }
    Ok(reached)
}
