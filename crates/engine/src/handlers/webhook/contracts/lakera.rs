//! Lakera Guard, version 2: <https://docs.lakera.ai/docs/api/guard>.
//!
//! It has no verdict, only findings: what is flagged is refused, unless nothing but personal data was found and each
//! place of it is known; then those places are masked.

use std::ops::Range;

use gatehook_events::Output;
use serde_json::{Map, Value, json};

use super::{Asked, flag, put};
use crate::handler::HandlerError;

pub(super) fn question(asked: &Asked<'_>) -> Option<Value> {
    let texts = &asked.texts;
    if texts.judged.is_empty() {
        return None;
    }
    let messages = texts.context.iter().chain(&texts.judged);
    let messages = messages.map(|text| json!({"role": role(text.role), "content": text.text}));
    let mut body = Map::new();
    put(&mut body, "messages", Some(messages.collect::<Value>()));
    put(&mut body, "payload", Some(true));
    put(&mut body, "breakdown", Some(true));
    put(&mut body, "project_id", asked.word("project_id"));
    put(&mut body, "metadata", asked.parameter("metadata").cloned());
    Some(Value::Object(body))
}

fn role(role: &str) -> &str {
    match role {
        "user" | "assistant" | "tool" => role,
        "system" | "developer" => "system",
        _ => "user",
    }
}

pub(super) fn answer(asked: &Asked<'_>, reply: &Map<String, Value>) -> Result<Output, HandlerError> {
    if !flag(reply, "flagged")? {
        return Ok(asked.allow());
    }
    let detected = detected(reply);
    let is_personal = |detector: &&str| *detector == "pii" || detector.starts_with("pii/");
    if !detected.is_empty() && detected.iter().all(is_personal) {
        // What cannot be masked is refused: it was flagged.
        let masked = masked(asked, reply).and_then(|texts| asked.texts.rewrite(&texts).ok());
        if let Some(output) = masked {
            return Ok(output);
        }
    }
    let names = if detected.is_empty() { "its policy".to_owned() } else { detected.join(", ") };
    Ok(asked.deny(None, &format!("flagged by {names}")))
}

/// The detectors that found something.
fn detected(reply: &Map<String, Value>) -> Vec<&str> {
    let breakdown = reply.get("breakdown").and_then(Value::as_array).into_iter().flatten();
    let found = breakdown.filter(|one| one.get("detected").and_then(Value::as_bool) == Some(true));
    let mut names: Vec<&str> =
        found.map(|one| one.get("detector_type").and_then(Value::as_str).unwrap_or("a detector")).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The judged texts with every place of the payload masked; `None` where a place is none, or none is given.
fn masked(asked: &Asked<'_>, reply: &Map<String, Value>) -> Option<Vec<String>> {
    let payload = reply.get("payload")?.as_array().filter(|payload| !payload.is_empty())?;
    let context = asked.texts.context.len();
    let mut masks: Vec<Vec<Mask>> = asked.texts.judged.iter().map(|_| Vec::new()).collect();
    let mut places: Vec<Option<Vec<usize>>> = vec![None; masks.len()];
    for one in payload {
        let number = |key: &str| usize::try_from(one.get(key)?.as_u64()?).ok();
        let (message, start, end) = (number("message_id")?, number("start")?, number("end")?);
        let detector = one.get("detector_type")?.as_str()?;
        // What was asked before the answer cannot be changed any more.
        let Some(at) = message.checked_sub(context) else { continue };
        let text = asked.texts.judged.get(at)?;
        let places = places.get_mut(at)?.get_or_insert_with(|| boundaries(&text.text));
        let (first, last) = (*places.get(start)?, *places.get(end)?);
        let word = detector.rsplit('/').next()?.to_uppercase();
        masks.get_mut(at)?.push((first < last).then_some(Mask { place: first..last, word })?);
    }
    asked.texts.judged.iter().zip(masks).map(|(text, masks)| apply(&text.text, masks)).collect()
}

struct Mask {
    place: Range<usize>,
    word: String,
}

/// Where each character begins, and the end.
fn boundaries(text: &str) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()
}

/// Places that overlap are masked as one.
fn apply(text: &str, mut masks: Vec<Mask>) -> Option<String> {
    masks.sort_by_key(|mask| mask.place.start);
    let (mut masked, mut from) = (String::with_capacity(text.len()), 0);
    for mask in masks {
        if mask.place.start >= from {
            masked.push_str(text.get(from..mask.place.start)?);
            masked.push_str(&format!("[MASKED {}]", mask.word));
        }
        from = from.max(mask.place.end);
    }
    masked.push_str(text.get(from..)?);
    Some(masked)
}
