//! The contracts that webhooks may speak: published ones of vendors, and one that the configuration spells out.
//!
//! [`CONTRACTS`] has a row for each: where it fits, what is sent, what a reply means. A vendor's file has two pure
//! functions, event to request and reply to output. What they do not know in a reply is a failure: a guard that cannot
//! be understood has not let anything pass.

mod agentgateway;
mod anthropic_inference;
mod body;
mod lakera;
mod litellm;
mod llm_guard;
pub(crate) mod mapped;
mod nemo;
mod ollama;
mod openai_moderation;
mod portkey;
mod table;
#[cfg(test)]
mod tests;
mod texts;

use bytes::Bytes;
use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Decides, Event, FailureKind, Input, Output, Permission, PermissionDecision, Profile};
use serde_json::{Map, Value};

use self::mapped::Mapped;
use self::table::Form;
pub use self::table::{CONTRACTS, Terms, terms};
use self::texts::Texts;
use crate::definition::{Contract, WebhookDefinition};
use crate::event_class::is_inference;
use crate::handler::{DefinitionError, HandlerError, Payload, Reply};
use crate::unique;

/// What of a turn an event shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// What goes to the model.
    Prompt,
    /// What the model said.
    Answer,
    /// A tool's arguments.
    ToolCall,
    /// What a tool answered.
    ToolResult,
    /// Something else.
    Other,
}

impl Stage {
    fn of(event: Event) -> Self {
        let lists = [
            (table::PROMPT, Self::Prompt),
            (table::ANSWER, Self::Answer),
            (table::TOOL_CALL, Self::ToolCall),
            (table::TOOL_RESULT, Self::ToolResult),
        ];
        lists.iter().find(|(events, _)| events.contains(&event)).map_or(Self::Other, |(_, stage)| *stage)
    }
}

/// What one webhook and its caller have agreed on.
pub struct Agreement {
    pub(super) terms: &'static Terms,
    parameters: Map<String, Value>,
    mapped: Option<Mapped>,
}

/// One event, as a contract sees it.
struct Asked<'a> {
    event: Event,
    stage: Stage,
    input: &'a Input,
    /// The exchange's identity, or that of this request.
    id: &'a str,
    parameters: &'a Map<String, Value>,
    texts: Texts<'a>,
}

impl Agreement {
    /// What a definition says, checked.
    pub fn of(definition: &WebhookDefinition) -> Result<Self, DefinitionError> {
        let mapped = match (definition.contract, &definition.mapping) {
            (Contract::Mapped, mapping) => Some(Mapped::of(mapping.as_deref())?),
            _ => None,
        };
        Ok(Self { terms: terms(definition.contract), parameters: definition.parameters.clone(), mapped })
    }

    /// The body of a request; `None` where the event has nothing that this contract judges. `id` is the request's.
    pub fn question(
        &self,
        event: Event,
        input: &Input,
        payload: &Payload,
        id: &str,
    ) -> Result<Option<Bytes>, HandlerError> {
        if !self.terms.knows(event) {
            let message = format!("its contract has no form for `{}`", event.name());
            return Err(HandlerError::new(FailureKind::HandlerError, message));
        }
        let body = match (self.terms.form, &self.mapped) {
            (Form::Native, _) => return payload.line(input).map(Some),
            (Form::Ollama, _) => return ollama::question(event, input).map(Some),
            (Form::Vendor { question, .. }, _) => question(&self.asked(event, input, id)),
            (Form::Mapped, Some(mapped)) => Some(mapped.question(&self.asked(event, input, id))?),
            (Form::Mapped, None) => None,
        };
        body.map(|body| serde_json::to_vec(&body).map(Bytes::from))
            .transpose()
            .map_err(|error| HandlerError::new(FailureKind::HandlerError, format!("the input has no JSON: {error}")))
    }

    /// What a reply means. A status that is none of this contract's is a failure, whatever the body says.
    pub fn read(&self, event: Event, input: &Input, status: u16, body: &Bytes) -> Result<Reply, HandlerError> {
        self.check(status)?;
        let mapped = self.mapped.as_ref().filter(|mapped| mapped.blocks_by(status));
        match self.terms.form {
            Form::Native => return native(body),
            Form::Ollama => return ollama::answer(event, body).map(|output| Reply::Direct(Some(output))),
            _ => {}
        }
        let asked = self.asked(event, input, "");
        let output = match (self.terms.form, mapped, &self.mapped) {
            (_, Some(mapped), _) => Ok(mapped.blocked(&asked, body)),
            (Form::Vendor { answer, .. }, ..) => answer(&asked, &object(body)?),
            (_, _, Some(mapped)) => mapped.answer(&asked, &value(body)?),
            _ => Err(unreadable("nobody can read its reply")),
        };
        output.map(|output| Reply::Direct(Some(output)))
    }

    /// Whether a reply of this status may hold a verdict; else what kind of failure it is.
    pub fn check(&self, status: u16) -> Result<(), HandlerError> {
        match self.mapped.as_ref().is_some_and(|mapped| mapped.blocks_by(status)) {
            true => Ok(()),
            false => self.terms.check(status),
        }
    }

    fn asked<'a>(&'a self, event: Event, input: &'a Input, id: &'a str) -> Asked<'a> {
        let stage = Stage::of(event);
        Asked { event, stage, input, id, parameters: &self.parameters, texts: Texts::of(event, stage, input) }
    }
}

impl Asked<'_> {
    /// No objection.
    fn allow(&self) -> Output {
        Output::default()
    }

    /// A denial; `said` is for the user.
    fn deny(&self, said: Option<&str>, reason: &str) -> Output {
        let reason = if reason.is_empty() { said.unwrap_or("the guard refused it") } else { reason };
        if !is_inference(self.event) {
            return Output::block(said.unwrap_or(reason));
        }
        Output {
            permission: Some(Permission::Deny),
            user_message: said.map(str::to_owned),
            reason: Some(reason.to_owned()),
            ..Output::default()
        }
    }

    /// A person decides; where nobody can be asked, it is a denial.
    fn ask(&self, reason: &str) -> Output {
        let decides = self.event.capabilities(Profile::Native).map(|able| able.decides);
        if decides != Some(Decides::TriState) {
            return self.deny(Some(reason).filter(|reason| !reason.is_empty()), "");
        }
        if is_inference(self.event) {
            let user_message = Some(reason.to_owned()).filter(|reason| !reason.is_empty());
            return Output { permission: Some(Permission::Ask), user_message, ..Output::default() };
        }
        Output::specific(HookSpecificOutput {
            permission_decision: Some(PermissionDecision::Ask),
            permission_decision_reason: Some(reason.to_owned()),
            ..HookSpecificOutput::default()
        })
    }

    fn parameter(&self, name: &str) -> Option<&Value> {
        self.parameters.get(name)
    }

    /// A parameter that is text.
    fn word(&self, name: &str) -> Option<&str> {
        self.parameter(name)?.as_str()
    }

    fn model(&self) -> Option<&str> {
        self.input.model_id.as_deref()
    }
}

/// A reply as a command hook would print it. Plain text, which a command may print, is an error page here.
fn native(reply: &Bytes) -> Result<Reply, HandlerError> {
    let trimmed = reply.trim_ascii();
    if !trimmed.is_empty() && !trimmed.starts_with(b"{") {
        return Err(unreadable("its reply is no JSON object"));
    }
    Ok(Reply::Process { stdout: reply.clone(), stderr: String::new(), exit_code: 0 })
}

fn value(body: &[u8]) -> Result<Value, HandlerError> {
    unique::parse(body).map_err(|kind| HandlerError::new(kind, "its reply is not one plain JSON value"))
}

fn object(body: &[u8]) -> Result<Map<String, Value>, HandlerError> {
    match value(body)? {
        Value::Object(object) => Ok(object),
        _ => Err(unreadable("its reply is no JSON object")),
    }
}

fn unreadable(message: &str) -> HandlerError {
    HandlerError::new(FailureKind::MalformedJson, message)
}

/// Adds a field that has a value.
fn put(body: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body.insert(key.to_owned(), value.into());
    }
}

/// A field that must be a boolean.
fn flag(reply: &Map<String, Value>, key: &str) -> Result<bool, HandlerError> {
    let value = reply.get(key).and_then(Value::as_bool);
    value.ok_or_else(|| unreadable(&format!("`{key}` of its reply is no boolean")))
}

/// A field that may be text; absent and null are the same.
fn text<'a>(reply: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, HandlerError> {
    match reply.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(unreadable(&format!("`{key}` of its reply is no text"))),
    }
}

/// A list of texts, or a failure that names its field.
fn texts(value: &Value, key: &str) -> Result<Vec<String>, HandlerError> {
    let items = value.as_array().map(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
    items.flatten().ok_or_else(|| unreadable(&format!("`{key}` of its reply is no list of texts")))
}
