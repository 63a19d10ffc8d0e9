//! What becomes of a model's reply.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use gatehook_events::{Event, FailureKind, HookSpecificOutput, Output, PermissionDecision};
use serde_json::{Map, Value, json};

use super::client::ResponseSchema;
use crate::handler::HandlerError;
use crate::registry::BuiltinResult;
use crate::unique;

/// Reads a reply as the answer to an event; `None` is no opinion, an error the hook's failure.
pub type ResponseShape = dyn Fn(Event, &str) -> BuiltinResult + Send + Sync;

/// The schema of a verdict: `{"decision": "allow" | "ask" | "deny", "reason": …}`.
pub const PRE_TOOL_USE_DECISION: &str = "pre_tool_use_decision";

/// The verdicts by the word a model says.
const DECISIONS: [(&str, PermissionDecision); 3] =
    [("allow", PermissionDecision::Allow), ("ask", PermissionDecision::Ask), ("deny", PermissionDecision::Deny)];

/// What stands where a model gave no reason.
const NO_REASON: &str = "no reason provided";

/// A shape, and what a reply is asked to look like for it.
pub(crate) struct Shape {
    pub(crate) read: Arc<ResponseShape>,
    pub(crate) schema: Option<ResponseSchema>,
}

/// All shapes by name. The empty name is that of plain text.
pub(crate) struct Shapes(RwLock<BTreeMap<String, Arc<Shape>>>);

impl Default for Shapes {
    fn default() -> Self {
        let decision = json!({
            "type": "object",
            "properties": {
                "decision": {"type": "string", "enum": DECISIONS.map(|(word, _)| word)},
                "reason": {"type": "string"},
            },
            "required": ["decision", "reason"],
            "additionalProperties": false,
        });
        let schema = ResponseSchema { name: PRE_TOOL_USE_DECISION.to_owned(), schema: decision };
        let plain = Shape { read: Arc::new(context), schema: None };
        let decision = Shape { read: Arc::new(decided), schema: Some(schema) };
        let shapes = [("", plain), (PRE_TOOL_USE_DECISION, decision)];
        Self(RwLock::new(shapes.map(|(name, shape)| (name.to_owned(), Arc::new(shape))).into()))
    }
}

impl Shapes {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Shape>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn insert(&self, name: &str, shape: Shape) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), Arc::new(shape));
    }

    /// All names but the empty one.
    pub(crate) fn names(&self) -> Vec<String> {
        let shapes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shapes.keys().filter(|name| !name.is_empty()).cloned().collect()
    }
}

/// The reply as text for the model that is worked with.
fn context(event: Event, reply: &str) -> BuiltinResult {
    let text = reply.trim();
    Ok((!text.is_empty()).then(|| Output::additional_context(event, text)))
}

/// The reply as a verdict on a tool call.
fn decided(event: Event, reply: &str) -> BuiltinResult {
    let fields = object(reply)?;
    let given = field(&fields, "decision")?.and_then(Value::as_str).unwrap_or_default().trim();
    let found = DECISIONS.iter().find(|(word, _)| word.eq_ignore_ascii_case(given));
    let (word, decision) = found.ok_or_else(|| {
        let kind = FailureKind::InvalidPermissionDecision;
        HandlerError::new(kind, format!("its verdict is `{}`, not allow, ask or deny", shortened(given)))
    })?;
    let reason = match field(&fields, "reason")? {
        None | Some(Value::Null) => "",
        Some(Value::String(reason)) => reason.trim(),
        Some(_) => return Err(malformed("its reason is no text")),
    };
    let reason = if reason.is_empty() { NO_REASON } else { reason };
    let specific = HookSpecificOutput {
        hook_event_name: Some(event.public_name().to_owned()),
        permission_decision: Some(*decision),
        permission_decision_reason: Some(reason.to_owned()),
        ..HookSpecificOutput::default()
    };
    let system_message = Some(format!("the judge says {word}: {reason}"));
    Ok(Some(Output { system_message, ..Output::specific(specific) }))
}

/// The one object in a reply. Models put fences and words around it.
fn object(reply: &str) -> Result<Map<String, Value>, HandlerError> {
    if reply.trim().is_empty() {
        return Err(malformed("its reply is empty"));
    }
    let inside = reply.find('{').zip(reply.rfind('}')).and_then(|(first, last)| reply.get(first..=last));
    let inside = inside.ok_or_else(|| malformed("its reply has no JSON object"))?;
    match unique::parse(inside.as_bytes()) {
        Ok(Value::Object(fields)) => Ok(fields),
        Err(FailureKind::DuplicateKey) => {
            Err(HandlerError::new(FailureKind::DuplicateKey, "a key stands twice in its reply"))
        }
        _ => Err(malformed("its reply is not one JSON object")),
    }
}

/// A field in whatever case; in two cases it says two things.
fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<Option<&'a Value>, HandlerError> {
    let mut found = fields.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
    match (found.next(), found.next()) {
        (_, Some(_)) => {
            Err(HandlerError::new(FailureKind::DuplicateKey, format!("`{name}` stands twice in its reply")))
        }
        (first, None) => Ok(first.map(|(_, value)| value)),
    }
}

fn malformed(message: &str) -> HandlerError {
    HandlerError::new(FailureKind::MalformedJson, message)
}

/// Enough of a word to recognise it.
fn shortened(word: &str) -> String {
    let shortened: String = word.chars().take(40).collect();
    if shortened.len() < word.len() { shortened + "…" } else { shortened }
}
