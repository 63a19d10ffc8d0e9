//! Ollama CLI (<https://github.com/muah1987/ollama-cli>, `docs/hooks.md`).
//!
//! A hook reads the documented envelope `{"hook", "timestamp", "session_id", "model", "provider", "data": {…}}`, and beside
//! it, flat, what stands in `data`, as the published example hooks read it; a flat key never hides one of the envelope.
//! It answers `permissionDecision` (allow, deny, ask) with `reason`, `additionalContext`, `updatedInput` or
//! `updatedOutput`, at the top or under `hookSpecificOutput`. Anything else is kept as metadata.

use std::sync::Arc;

use gatehook_events::dialect::{Occasion, PayloadError, Printed, Said};
use gatehook_events::input::FIELDS;
use gatehook_events::{
    Block, Decides, Dialect, Event, FailureKind, HookSpecificOutput, Input, Output, PermissionDecision, Profile,
    Rewrite,
};
use serde_json::{Map, Value, json};

use crate::path;
use crate::reply::{self, Fault};

/// The contract.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OllamaCli;

/// How many messages a payload shows: the last ones.
pub const MESSAGES: usize = 50;

/// Keys that no fact hides.
const ENVELOPE: &[&str] = &["hook", "timestamp", "session_id", "model", "provider", "data"];

/// A key beside the envelope, and the fact that stands there. Of several keys with one fact, a reader takes the first.
type Row = (&'static str, &'static str);

/// What its scripts read on tool events.
const TOOL: &[Row] = &[
    ("tool", "tool_name"),
    ("tool_name", "tool_name"),
    ("tool_input", "tool_input"),
    ("arguments", "tool_input"),
    ("tool_inputs", "tool_input"),
    ("tool_use_id", "tool_use_id"),
];
const DONE: &[Row] =
    &[("result", "tool_response"), ("tool_output", "tool_response"), ("success", "success"), ("duration", "duration")];
const FAILED: &[Row] = &[("error", "error"), ("error_kind", "error_kind"), ("duration", "duration")];
const ASKED: &[Row] = &[("operation", "operation"), ("details", "details"), ("requester", "requester")];

/// The facts of each event.
const FACTS: &[(Event, &[&[Row]])] = &[
    (Event::Setup, &[&[("trigger", "trigger"), ("env_file", "env_file")]]),
    (Event::SessionStart, &[&[("source", "source")]]),
    (
        Event::SessionEnd,
        &[&[
            ("reason", "reason"),
            ("duration", "duration"),
            ("message_count", "message_count"),
            ("summary", "summary"),
            ("total_tokens", "summary.total_tokens"),
            ("cost", "summary.cost"),
        ]],
    ),
    (Event::UserPromptSubmit, &[&[("prompt", "prompt")]]),
    (Event::PreToolUse, &[TOOL]),
    (Event::PermissionRequest, &[TOOL, ASKED]),
    (Event::PostToolUse, &[TOOL, DONE]),
    (Event::PostToolUseFailure, &[TOOL, FAILED]),
    (Event::Stop, &[&[("response", "stop_response"), ("prompt", "last_user_message")]]),
    (Event::PreCompact, &[&[("trigger", "source")]]),
    (
        Event::SubagentStart,
        &[&[("agent_type", "agent_name"), ("prompt", "prompt"), ("parent_session_id", "parent_session_id")]],
    ),
    (
        Event::SubagentStop,
        &[&[("agent_type", "agent_name"), ("response", "stop_response"), ("parent_session_id", "parent_session_id")]],
    ),
    (
        Event::SkillTrigger,
        &[&[("skill_name", "skill_name"), ("skill_path", "skill_path"), ("skill_params", "skill_args")]],
    ),
    (
        Event::Notification,
        &[&[
            ("type", "notification_level"),
            ("notification_type", "notification_level"),
            ("message", "notification_message"),
        ]],
    ),
];

/// Events that show the conversation and where it happens.
const CONVERSATION: &[Event] =
    &[Event::Setup, Event::SessionStart, Event::SessionEnd, Event::UserPromptSubmit, Event::PreCompact, Event::Stop];

/// Where facts of `data.context` are known from.
const CONTEXT: &[Row] =
    &[("context.cwd", "cwd"), ("context.git_branch", "branch"), ("context.context_files", "context_files")];

/// Names that one tool has in its scripts, in its program and elsewhere.
const TOOL_NAMES: &[&[&str]] = &[
    &["Read", "View", "read_file", "file_read"],
    &["Write", "write_file", "file_write"],
    &["Edit", "edit_file", "file_edit"],
    &["Bash", "Shell", "run_command", "shell_exec"],
    &["Grep", "Search", "grep_search"],
    &["Glob", "list_files"],
    &["WebFetch", "fetch", "web_fetch"],
    &["WebSearch", "web_search"],
];

fn rows(event: Event) -> impl Iterator<Item = &'static Row> {
    let of_event = FACTS.iter().find(|(of, _)| *of == event).map_or(&[] as &[_], |(_, rows)| rows);
    of_event.iter().copied().flatten()
}

/// Where facts of an event stand in its `data`, and beside it: the key, and the field of a native payload.
pub fn places(event: Event) -> impl Iterator<Item = (&'static str, &'static str)> {
    rows(event).copied()
}

fn is_tool_event(event: Event) -> bool {
    rows(event).any(|(_, fact)| *fact == "tool_input")
}

impl Dialect for OllamaCli {
    fn profile(&self) -> Profile {
        Profile::OllamaCli
    }

    fn tool_names(&self) -> &'static [&'static [&'static str]] {
        TOOL_NAMES
    }

    fn payload(&self, occasion: &Occasion<'_>) -> serde_json::Result<Vec<u8>> {
        let Occasion { event, input, .. } = *occasion;
        let facts = facts(event, input)?;
        let mut data = facts.clone();
        if CONVERSATION.contains(&event) {
            conversation(&mut data, input)?;
        }
        // A caller that fires an event of its own name tells hooks that name.
        let own = input.hook_event_name.as_deref().filter(|name| Event::from_name(name).is_none());
        let hook = own.or(self.event_name(event)).unwrap_or(event.public_name());
        let mut line = vec![b'{'];
        let text = |text: &Option<Arc<str>>| Value::from(text.as_deref().unwrap_or_default());
        let envelope = [
            ("hook", Value::from(hook)),
            ("timestamp", text(&input.timestamp)),
            ("session_id", text(&input.session_id)),
            ("model", text(&input.model_id)),
            ("provider", text(&input.provider)),
            ("data", Value::Object(data)),
        ];
        let flat = facts.iter().filter(|(key, _)| !ENVELOPE.contains(&key.as_str()));
        // In the documented order, which a map would not keep.
        let envelope = envelope.iter().map(|(key, value)| (*key, value));
        for (key, value) in envelope.chain(flat.map(|(key, value)| (key.as_str(), value))) {
            if line.len() > 1 {
                line.push(b',');
            }
            serde_json::to_writer(&mut line, key)?;
            line.push(b':');
            serde_json::to_writer(&mut line, value)?;
        }
        line.push(b'}');
        Ok(line)
    }

    fn environment(&self, occasion: &Occasion<'_>) -> Vec<(&'static str, String)> {
        let input = occasion.input;
        let known = [
            ("OLLAMA_PROJECT_DIR", &input.cwd),
            ("OLLAMA_SESSION_ID", &input.session_id),
            ("OLLAMA_MODEL", &input.model_id),
            ("OLLAMA_PROVIDER", &input.provider),
            ("OLLAMA_ENV_FILE", &input.env_file),
        ];
        let known = known.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?.to_owned())));
        known.chain([("OLLAMA_HOOKS_ENABLED", "true".to_owned())]).collect()
    }

    fn read_reply(&self, event: Event, printed: &Printed<'_>) -> Said {
        let text = reply::trimmed(printed.stdout);
        let is_object = text.starts_with(b"{");
        let answer = is_object.then(|| reply::object(text).and_then(|reply| answer(event, reply)));
        match (printed.exit_code, answer) {
            (0, Some(Ok(output))) => Said::Output(Box::new(output)),
            (0, Some(Err(fault))) => reply::failed(fault),
            (0, None) if text.is_empty() => Said::Nothing,
            (0, None) => Said::Text(String::from_utf8_lossy(text).into_owned()),
            // A no is one, however the script that said it ended.
            (_, Some(Ok(output))) if is_no(&output) => Said::Output(Box::new(output)),
            (2, answer) => Said::Block(answer.and_then(Result::ok).map(|output| Box::new(without_verdict(output)))),
            (code, _) => Said::Failed(FailureKind::NonzeroExit, reply::ending(code)),
        }
    }

    fn read_payload(&self, event: Option<Event>, payload: Value) -> Result<(Event, Input), PayloadError> {
        let Value::Object(mut payload) = payload else { return Err(PayloadError::NotAnObject) };
        let named = match payload.remove("hook") {
            Some(Value::String(name)) => Some(name),
            _ => None,
        };
        let event = match (event, &named) {
            (Some(event), _) => event,
            (None, Some(name)) => self.event(name).ok_or_else(|| PayloadError::UnknownEvent(name.clone()))?,
            (None, None) => return Err(PayloadError::NoEvent),
        };
        let mut known = Map::new();
        // A name of the caller's own is told to hooks as it is.
        if let Some(name) = named.filter(|name| self.event(name).is_none() && Event::from_name(name).is_none()) {
            known.insert("hook_event_name".to_owned(), name.into());
        }
        for (key, field) in [("model", "model_id"), ("provider", "provider")] {
            if let Some(value) = path::take(&mut payload, key) {
                known.insert(field.to_owned(), value);
            }
        }
        if let Some(data) = payload.remove("data") {
            match data {
                Value::Object(data) => path::fill(&mut payload, &data),
                data => drop(payload.insert("data".to_owned(), data)),
            }
        }
        read_facts(event, payload, &mut known);
        Ok((event, Input::read(known)?))
    }
}

/// What is told beside the envelope: the event's facts, the tool's arguments by their names, what a caller added.
fn facts(event: Event, input: &Input) -> serde_json::Result<Map<String, Value>> {
    // Where an event happens is told in its context, where it has one.
    let is_told_there = |name: &str| CONVERSATION.contains(&event) && CONTEXT.iter().any(|(_, fact)| *fact == name);
    let bare = Input { messages: None, extra: Default::default(), ..input.clone() };
    let Value::Object(mut known) = serde_json::to_value(bare)? else { return Ok(Map::new()) };
    if is_tool_event(event) {
        known.entry("tool_input").or_insert_with(|| json!({}));
    }
    let extra = input.extra.iter().filter(|(name, _)| !is_told_there(name));
    let mut facts: Map<String, Value> = extra.map(|(name, value)| (name.clone(), value.clone())).collect();
    for (key, fact) in rows(event) {
        // What a caller gave for arguments and is none stays; of everything else the fact goes before it.
        let is_given = |_: &&Value| *fact == "tool_input" && facts.contains_key(*key);
        if let Some(value) = path::get(&known, fact).filter(|value| !is_given(value)) {
            facts.insert((*key).to_owned(), value.clone());
        }
    }
    // What a caller gave though the event has no such field.
    let is_stray = |name: &str| FIELDS.iter().any(|field| field.name == name && !field.is_on(event));
    for (name, value) in &known {
        let is_told = facts.contains_key(name) || rows(event).any(|(_, fact)| fact.split('.').next() == Some(name));
        if is_stray(name) && !is_told && !is_told_there(name) {
            facts.insert(name.clone(), value.clone());
        }
    }
    if is_tool_event(event) {
        let mut arguments = input.tool_input.as_deref().cloned().unwrap_or_default();
        // None of them passes for a fact that nobody knows.
        arguments.retain(|name, _| rows(event).all(|(key, _)| key != name));
        path::fill(&mut facts, &arguments);
    }
    Ok(facts)
}

/// Adds the last messages, and where the conversation happens.
fn conversation(data: &mut Map<String, Value>, input: &Input) -> serde_json::Result<()> {
    let messages = input.messages.as_deref().unwrap_or_default();
    let last = messages.get(messages.len().saturating_sub(MESSAGES)..).unwrap_or_default();
    if !data.contains_key("messages") {
        data.insert("messages".to_owned(), serde_json::to_value(last)?);
    }
    let mut context = Map::new();
    path::set(&mut context, "context.cwd", input.cwd.as_deref().unwrap_or_default().into());
    if let Some(branch) = input.branch.as_deref() {
        path::set(&mut context, "context.git_branch", branch.into());
    }
    if let Some(files) = input.extra.get("context_files") {
        path::set(&mut context, "context.context_files", files.clone());
    }
    path::fill(data, &context);
    Ok(())
}

/// Sorts what stands beside the envelope into an input's fields; what has no place there stays as it is.
fn read_facts(event: Event, mut given: Map<String, Value>, known: &mut Map<String, Value>) {
    for (place, fact) in CONTEXT {
        if let Some(value) = path::take(&mut given, place) {
            known.insert((*fact).to_owned(), value);
        }
    }
    for (key, fact) in rows(event) {
        // Arguments that are a text are told as they are: no tool takes a text for its arguments.
        let fits = |value: &&Value| *fact != "tool_input" || value.is_object();
        if given.get(*key).filter(fits).is_none() {
            continue;
        }
        let value = given.remove(*key).unwrap_or_default();
        if !value.is_null() && path::get(known, fact).is_none() {
            path::set(known, fact, value);
        }
    }
    // How many there are, as its program tells it, and not the messages themselves.
    if event == Event::SessionEnd && given.get("messages").is_some_and(Value::is_number) {
        known.entry("message_count").or_insert(given.remove("messages").unwrap_or_default());
    }
    let is_field = |key: &str| FIELDS.iter().any(|field| field.name == key && field.is_on(event));
    let (fields, mut rest): (Map<_, _>, Map<_, _>) = given.into_iter().partition(|(key, _)| is_field(key));
    path::fill(known, &fields);
    if is_tool_event(event) {
        let told = ["tool_input", "arguments", "tool_inputs"].iter().any(|key| rest.contains_key(*key));
        match known.get("tool_input").and_then(Value::as_object) {
            // Copies of the arguments.
            Some(arguments) => rest.retain(|key, value| arguments.get(key) != Some(value)),
            None if told => {}
            None => drop(known.insert("tool_input".to_owned(), std::mem::take(&mut rest).into())),
        }
    }
    path::fill(known, &rest);
}

/// Reads an answer. A no is a block where the event takes no decision.
fn answer(event: Event, mut reply: Map<String, Value>) -> Result<Output, Fault> {
    let mut inner = reply::nested(&mut reply, "hookSpecificOutput")?.unwrap_or_default();
    let decided = decision(&mut reply)?.max(decision(&mut inner)?);
    let mut text = |key: &str| -> Result<Option<String>, Fault> {
        let (top, nested) = (reply::text(&mut reply, key)?, reply::text(&mut inner, key)?);
        Ok(top.or(nested))
    };
    let (reason, given) = (text("reason")?, text("permissionDecisionReason")?);
    let (reason, context) = (reason.or(given), text("additionalContext")?);
    let mut either = |key: &str| reply.remove(key).or_else(|| inner.remove(key)).filter(|value| !value.is_null());
    let updated_input = either("updatedInput").map(|value| updated_input(event, value)).transpose()?;
    let updated_tool_response = either("updatedOutput");
    path::fill(&mut reply, &inner);
    let decides = event.capabilities(Profile::OllamaCli).is_some_and(|able| able.decides != Decides::No);
    let blocks = decided == Some(Strictness::Deny) && !decides;
    let decided = decided.filter(|decided| decides || *decided == Strictness::Ask);
    let specific = HookSpecificOutput {
        permission_decision: decided.map(|decided| match decided {
            Strictness::Allow => PermissionDecision::Allow,
            Strictness::Ask => PermissionDecision::Ask,
            Strictness::Deny => PermissionDecision::Deny,
        }),
        permission_decision_reason: reason.clone().filter(|_| decided.is_some()),
        updated_input,
        additional_context: context,
        updated_tool_response,
        metadata: reply::metadata(reply),
        ..HookSpecificOutput::default()
    };
    Ok(Output { decision: blocks.then_some(Block::Block), reason, ..Output::specific(specific) })
}

/// A decision, the mildest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strictness {
    Allow,
    Ask,
    Deny,
}

fn decision(reply: &mut Map<String, Value>) -> Result<Option<Strictness>, Fault> {
    let word = reply.remove("permissionDecision").filter(|word| !word.is_null());
    match word.as_ref().map(Value::as_str) {
        None | Some(Some("")) => Ok(None),
        Some(Some("allow")) => Ok(Some(Strictness::Allow)),
        Some(Some("ask")) => Ok(Some(Strictness::Ask)),
        Some(Some("deny")) => Ok(Some(Strictness::Deny)),
        Some(_) => {
            let message = "`permissionDecision` is none of `allow`, `ask`, `deny`";
            Err((FailureKind::InvalidPermissionDecision, message.to_owned()))
        }
    }
}

/// The changes to a tool's arguments; a skill's are one text.
fn updated_input(event: Event, value: Value) -> Result<Map<String, Value>, Fault> {
    let is_skill = event.capabilities(Profile::OllamaCli).is_some_and(|able| able.rewrites == Some(Rewrite::SkillArgs));
    match value {
        Value::String(_) if is_skill => Ok([("skill_args".to_owned(), value)].into_iter().collect()),
        Value::Object(mut changes) => {
            if is_skill && let Some(params) = changes.remove("skill_params") {
                changes.insert("skill_args".to_owned(), params);
            }
            Ok(changes)
        }
        _ => Err(reply::wrong_type("updatedInput")),
    }
}

fn is_no(output: &Output) -> bool {
    let specific = output.hook_specific_output.as_ref();
    output.is_blocked() || specific.and_then(|given| given.permission_decision) == Some(PermissionDecision::Deny)
}

/// What a hook adds that blocks by its exit code.
fn without_verdict(mut output: Output) -> Output {
    if let Some(specific) = &mut output.hook_specific_output {
        specific.permission_decision = None;
    }
    output
}

#[cfg(test)]
mod tests;
