//! OLLM CLI, hook protocol 1.0.0 (<https://github.com/Tecet/OLLM-CLI>, `docs/Hooks/Protocol.md`).
//!
//! A hook reads `{"event", "context": {…}, "metadata": {"timestamp", "hookName", "hookVersion", "sessionId"}}` and answers
//! `{"allow": bool, "message", "metadata"}`. No answer is a no, and so is every other exit code than 0. The older form
//! `{"continue": bool, "systemMessage", "data", "error"}`, which its program reads, is understood too.

use gatehook_events::dialect::{Occasion, PayloadError, Printed, Said};
use gatehook_events::input::{FIELDS, Scope};
use gatehook_events::{
    Block, Dialect, Event, FailureKind, HookSpecificOutput, Input, Message, Output, PermissionDecision, Profile,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::path;
use crate::reply::{self, Fault};

/// The contract.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ollm;

/// The version that a hook has whose file gives none.
pub const DEFAULT_VERSION: &str = "1.0.0";

/// A place in `context`, and the fact that stands there.
type Row = (&'static str, &'static str);

const ID: Row = ("session.id", "session_id");
const USER: Row = ("session.user", "user");
const STARTED: Row = ("session.startTime", "session_started_at");
const MODEL: Row = ("config.model", "model_id");
const TEMPERATURE: Row = ("config.temperature", "options.temperature");
const TOOL: Row = ("tool", "tool_name");
const ARGS: Row = ("args", "tool_input");
const DURATION: Row = ("metrics.duration", "duration");
const OPERATION: Row = ("operation", "operation");

/// `context` of each event, as it is documented.
const CONTEXTS: &[(Event, &[Row])] = &[
    (Event::BeforeLlmCall, &[("prompt", "prompt"), ID, USER, STARTED, MODEL, TEMPERATURE]),
    (
        Event::AfterLlmCall,
        &[("prompt", "prompt"), ("response", "stop_response"), ID, USER, DURATION, ("metrics.tokens", "tokens")],
    ),
    (Event::PreToolUse, &[TOOL, ARGS, ID, USER]),
    (Event::PostToolUse, &[TOOL, ARGS, ("result", "tool_response"), DURATION, ("metrics.success", "success"), ID]),
    (Event::OnError, &[("error", "error"), OPERATION, ID]),
    (Event::OnFileChange, &[("file", "file"), ("changes", "changes"), ID]),
    (Event::OnGitCommit, &[("files", "files"), ("message", "message"), ("branch", "branch"), ID]),
    (
        Event::SessionStart,
        &[
            ID,
            USER,
            STARTED,
            ("session.config.model", "model_id"),
            ("session.config.temperature", "options.temperature"),
        ],
    ),
    (
        Event::SessionEnd,
        &[
            ID,
            USER,
            STARTED,
            ("session.endTime", "timestamp"),
            ("session.duration", "duration"),
            ("session.messageCount", "message_count"),
        ],
    ),
    (
        Event::OnContextOverflow,
        &[
            ("context.size", "context.size"),
            ("context.maxSize", "context.max_size"),
            ("context.utilization", "context.utilization"),
            ID,
        ],
    ),
    (Event::PermissionRequest, &[OPERATION, ("details", "details"), ("requester", "requester"), ID]),
    (Event::Custom, &[("eventName", "event_name"), ("data", "data"), ("source", "source"), ID]),
];

/// Where facts of an event stand in its `context`: the place, and the field of a native payload.
pub fn places(event: Event) -> impl Iterator<Item = (&'static str, &'static str)> {
    rows(event).iter().copied()
}

/// What callers may say of the session on any event, and what hooks are told of it on those that are not documented.
const SESSION: &[Row] = &[ID, USER, STARTED];

fn rows(event: Event) -> &'static [Row] {
    CONTEXTS.iter().find(|(of, _)| *of == event).map_or(SESSION, |(_, rows)| rows)
}

#[derive(Serialize)]
struct Payload<'a> {
    event: &'a str,
    context: Map<String, Value>,
    metadata: Metadata<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    timestamp: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_version: Option<&'a str>,
    session_id: &'a str,
}

impl Dialect for Ollm {
    fn profile(&self) -> Profile {
        Profile::Ollm
    }

    fn names_hook(&self) -> bool {
        true
    }

    fn payload(&self, occasion: &Occasion<'_>) -> serde_json::Result<Vec<u8>> {
        let Occasion { event, input, hook } = *occasion;
        let facts = facts(event, input)?;
        let mut context = Map::new();
        for (place, fact) in rows(event) {
            if let Some(value) = path::get(&facts, fact) {
                path::set(&mut context, place, value.clone());
            }
        }
        // A place of the contract is its fact's, whatever a caller calls so.
        let mut extra: Map<String, Value> = input.extra.clone().into_iter().collect();
        for (place, _) in rows(event).iter().chain(SESSION) {
            path::take(&mut extra, place);
        }
        path::fill(&mut context, &extra);
        let version = |hook: &str| if hook.is_empty() { DEFAULT_VERSION.to_owned() } else { hook.to_owned() };
        let version = hook.map(|hook| version(hook.version));
        serde_json::to_vec(&Payload {
            event: self.event_name(event).unwrap_or(event.public_name()),
            context,
            metadata: Metadata {
                timestamp: input.timestamp.as_deref().unwrap_or_default(),
                hook_name: hook.map(|hook| hook.name),
                hook_version: version.as_deref(),
                session_id: input.session_id.as_deref().unwrap_or_default(),
            },
        })
    }

    fn read_reply(&self, event: Event, printed: &Printed<'_>) -> Said {
        let text = reply::trimmed(printed.stdout);
        if printed.exit_code != 0 {
            let ending = reply::ending(printed.exit_code);
            let message = reply::object(text).ok().and_then(|reply| answer(event, reply).ok()).and_then(said);
            let cause = message.map_or(ending.clone(), |message| format!("{ending}: {message}"));
            return Said::Failed(FailureKind::NonzeroExit, cause);
        }
        if text.is_empty() {
            return Said::Failed(FailureKind::NoReply, "it said nothing, and an answer is due".to_owned());
        }
        match reply::object(text).and_then(|reply| answer(event, reply)) {
            Ok(output) => Said::Output(Box::new(output)),
            Err(fault) => reply::failed(fault),
        }
    }

    fn read_payload(&self, event: Option<Event>, payload: Value) -> Result<(Event, Input), PayloadError> {
        let Value::Object(mut payload) = payload else { return Err(PayloadError::NotAnObject) };
        let named = payload.get("event").and_then(Value::as_str);
        let event = match (event, named) {
            (Some(event), _) => event,
            (None, Some(name)) => self.event(name).ok_or_else(|| PayloadError::UnknownEvent(name.to_owned()))?,
            (None, None) => return Err(PayloadError::NoEvent),
        };
        let Some(Value::Object(mut context)) = payload.remove("context") else {
            // A native payload, or nothing that could be told from one.
            return Ok((event, Input::read(payload)?));
        };
        let mut known = Map::new();
        for (place, fact) in rows(event).iter().chain(SESSION) {
            if let Some(value) = path::take(&mut context, place) {
                path::set(&mut known, fact, value);
            }
        }
        for (place, field) in [("metadata.timestamp", "timestamp"), ("metadata.sessionId", "session_id")] {
            if let Some(value) = path::take(&mut payload, place)
                && !known.contains_key(field)
            {
                known.insert(field.to_owned(), value);
            }
        }
        settle(event, &mut known);
        // What stands there under the name of a field that is known already, or always will be, would be written twice.
        let always = FIELDS.iter().filter(|field| matches!(field.scope, Scope::Always)).map(|field| field.name);
        context.retain(|key, _| !known.contains_key(key) && !always.clone().any(|name| name == key));
        let mut input = Input::read(known)?;
        input.extra.extend(context);
        Ok((event, input))
    }
}

/// All that is known of an event, with what the contract calls by names of its own.
fn facts(event: Event, input: &Input) -> serde_json::Result<Map<String, Value>> {
    let bare = Input { messages: None, extra: Default::default(), ..input.clone() };
    let Value::Object(mut facts) = serde_json::to_value(bare)? else { return Ok(Map::new()) };
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|_| !facts.contains_key(name)) {
            facts.insert(name.to_owned(), value);
        }
    };
    let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(Value::from);
    match event {
        Event::BeforeLlmCall | Event::AfterLlmCall => {
            let asked = input.last_user_message.as_deref().or_else(|| last_prompt(input.messages.as_deref()?));
            add("prompt", Some(asked.unwrap_or_default().into()));
            add("stop_response", text(&input.output_text));
            add("tokens", tokens(input.usage.as_ref()));
        }
        Event::PreToolUse | Event::PostToolUse => {
            add("tool_input", Some(json!({})));
            add("success", Some(Value::from(!input.tool_error.unwrap_or(false))));
        }
        Event::OnError => {
            if let Some(Value::String(message)) = &input.error {
                facts.insert("error".to_owned(), json!({"message": message}));
            } else {
                let message = input.notification_message.as_deref();
                add("error", message.map(|message| json!({"message": message})));
            }
        }
        Event::PermissionRequest => {
            add("operation", text(&input.tool_name));
            let call = json!({"tool": input.tool_name, "args": input.tool_input});
            add("details", Some(call).filter(|_| input.tool_name.is_some()));
            add("requester", text(&input.agent_name));
        }
        Event::OnGitCommit => add("files", Some(json!([]))),
        _ => {}
    }
    Ok(facts)
}

/// What was read under the contract's own names, under the names of an input.
fn settle(event: Event, known: &mut Map<String, Value>) {
    if let Some(prompt) = known.remove("prompt") {
        if event == Event::AfterLlmCall {
            known.insert("last_user_message".to_owned(), prompt);
        } else {
            known.insert("messages".to_owned(), json!([{"role": "user", "content": prompt}]));
        }
    }
    if let Some(tokens) = known.remove("tokens") {
        known.insert("usage".to_owned(), json!({"total_tokens": tokens}));
    }
    if event == Event::PermissionRequest
        && let Some(Value::Object(details)) = known.get("details")
    {
        let call = [("tool_name", details.get("tool").cloned()), ("tool_input", details.get("args").cloned())];
        for (field, value) in call {
            if let Some(value) = value.filter(|value| value.is_string() || value.is_object()) {
                known.insert(field.to_owned(), value);
            }
        }
    }
}

fn last_prompt(messages: &[Message]) -> Option<&str> {
    messages.iter().rfind(|message| &*message.role == "user")?.content.as_deref()
}

/// All tokens of a call, whatever its upstream calls them.
fn tokens(usage: Option<&Value>) -> Option<Value> {
    let usage = usage?.as_object()?;
    if let Some(total) = usage.get("total_tokens").filter(|total| total.is_number()) {
        return Some(total.clone());
    }
    // Upstreams' own names first: an agent adds the last ones to them.
    const PARTS: [[&str; 2]; 3] = [
        ["prompt_tokens", "completion_tokens"],
        ["prompt_eval_count", "eval_count"],
        ["input_tokens", "output_tokens"],
    ];
    let count = |names: &[&str; 2]| {
        let parts = names.iter().filter_map(|name| usage.get(*name)?.as_u64());
        parts.reduce(u64::saturating_add)
    };
    PARTS.iter().find_map(count).map(Value::from)
}

/// The answer in either form; `allow` goes before `continue`, and one `false` is a no.
fn answer(event: Event, mut reply: Map<String, Value>) -> Result<Output, Fault> {
    let allow = reply::truth(&mut reply, "allow")?;
    let goes_on = reply::truth(&mut reply, "continue")?;
    let Some(allowed) = allow.or(goes_on).map(|allowed| allowed && goes_on.unwrap_or(true)) else {
        let message = "`allow` is missing in its reply, and an answer is due";
        return Err((FailureKind::InvalidPermissionDecision, message.to_owned()));
    };
    let message = reply::text(&mut reply, "message")?;
    let metadata = reply::nested(&mut reply, "metadata")?;
    let (system, data, error) = match allow {
        Some(_) => (None, None, None),
        None => (
            reply::text(&mut reply, "systemMessage")?,
            reply::nested(&mut reply, "data")?,
            reply::text(&mut reply, "error")?,
        ),
    };
    let message = message.or(system).or(error);
    let mut facts = metadata.unwrap_or_default();
    facts.extend(data.unwrap_or_default());
    // On the event that asks for the user's consent, a yes is one.
    let consents = allowed && event == Event::PermissionRequest;
    let specific = HookSpecificOutput {
        permission_decision: consents.then_some(PermissionDecision::Allow),
        permission_decision_reason: message.clone().filter(|_| consents),
        metadata: reply::metadata(facts),
        ..HookSpecificOutput::default()
    };
    let mut output = Output::specific(specific);
    if allowed {
        output.system_message = message;
    } else {
        output.decision = Some(Block::Block);
        output.reason = message;
    }
    Ok(output)
}

/// What an answer says to people.
fn said(output: Output) -> Option<String> {
    output.reason.or(output.system_message).filter(|message| !message.is_empty())
}

#[cfg(test)]
mod tests;
