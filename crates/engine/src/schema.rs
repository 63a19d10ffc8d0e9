//! JSON Schema (draft 2020-12) of configuration, payloads and replies, made from the tables that the readers use.

use gatehook_events::input::{FIELDS, Scope};
use gatehook_events::{Event, Profile};
use serde_json::{Map, Value, json};

use crate::config::fields::{BUILTIN, COMMAND, FILE, GROUP, HOOK, MODEL, PYTHON, TYPE, WEBHOOK, WORKER};
use crate::config::{Field, Shape, size};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Go's notation of durations.
const DURATION: &str = r"^(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))*$";

/// What each type of hook must have.
const REQUIRED: &[(&str, &[&str])] = &[
    (COMMAND, &["command"]),
    (WORKER, &["command"]),
    (PYTHON, &["module"]),
    (WEBHOOK, &["url"]),
    (BUILTIN, &["command"]),
    (MODEL, &["model", "prompt"]),
];

/// A native configuration file, as far as the engine reads it. Callers add their sections to `properties`.
pub fn configuration() -> Value {
    let mut schema = section(FILE);
    let events: Map<String, Value> = Event::all().map(|event| (event.name().to_owned(), event_hooks(event))).collect();
    let hooks = json!({
        "type": "object",
        "description": "Events and their hooks.",
        "properties": events,
        "additionalProperties": false,
    });
    set(&mut schema, &["properties", "hooks"], hooks);
    set(&mut schema, &["$schema"], DIALECT.into());
    set(&mut schema, &["title"], "Gatehook configuration".into());
    set(&mut schema, &["$defs"], definitions());
    schema
}

/// A mapping of these fields.
pub fn section(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|field| (field.name.to_owned(), property(field))).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// What hooks of `event` are told under `profile`. Additions are free, so other fields are allowed.
pub fn payload(event: Event, profile: Profile) -> Value {
    let native = profile == Profile::Native;
    let fields = || FIELDS.iter().filter(|field| field.is_on(event) && (native || field.docker_agent));
    let properties: Map<String, Value> =
        fields().map(|field| (field.name.to_owned(), described(json_type(field.json), field.doc.trim()))).collect();
    let required: Vec<&str> =
        fields().filter(|field| matches!(field.scope, Scope::Always)).map(|field| field.name).collect();
    let mut schema = json!({
        "$schema": DIALECT,
        "title": format!("{} payload", event.public_name()),
        "description": event.spec().doc.trim(),
        "type": "object",
        "properties": properties,
        "required": required,
    });
    set(&mut schema, &["properties", "hook_event_name", "const"], event.public_name().into());
    schema
}

/// What a hook may answer on stdout, or a webhook in its reply.
pub fn output() -> Value {
    let mut schema = object(OUTPUT);
    set(&mut schema, &["properties", "hook_specific_output"], object(SPECIFIC));
    set(
        &mut schema,
        &["properties", "decision"],
        json!({ "enum": ["block"], "description": "Stop what was about to happen." }),
    );
    set(
        &mut schema,
        &["properties", "permission"],
        words(&["allow", "deny", "ask", "modify"], "The verdict on an inference event."),
    );
    let decision = words(&["allow", "ask", "deny"], "The verdict on a tool call.");
    set(&mut schema, &["properties", "hook_specific_output", "properties", "permission_decision"], decision);
    set(&mut schema, &["$schema"], DIALECT.into());
    set(&mut schema, &["title"], "Gatehook hook output".into());
    schema
}

/// Name, JSON type, meaning.
type Row = (&'static str, &'static str, &'static str);

const OUTPUT: &[Row] = &[
    ("continue", "boolean", "`false` stops the host."),
    ("stop_reason", "string", "Why it stops."),
    ("suppress_output", "boolean", "Keep this hook's text from transcript and screen."),
    ("system_message", "string", "A notice for the user."),
    ("decision", "string", ""),
    ("reason", "string", "Why it blocks."),
    ("hook_specific_output", "object", ""),
    ("user_message", "string", "For the person who waits for the answer."),
    ("agent_message", "string", "For the program or model that asked."),
    ("permission", "string", ""),
    ("messages", "array", "The conversation in its place; `[]` empties it."),
    ("output_text", "string", "The answer's text in its place; the empty text empties it."),
    ("output_thinking", "string", "The answer's thinking in its place; the empty text empties it."),
    ("tool_calls", "array", "The answer's tool calls in their place; `[]` empties them."),
    ("holdback_chars", "integer", "Characters at the end of a segment that stay held for the next."),
];

const SPECIFIC: &[Row] = &[
    ("hook_event_name", "string", "Which event this answers."),
    ("permission_decision", "string", ""),
    ("permission_decision_reason", "string", "Why."),
    ("updated_input", "object", "A patch of the tool's arguments."),
    ("additional_context", "string", "Text for the model."),
    ("instruction_context", "array", "Instructions for the model, each under a key."),
    ("summary", "string", "The summary of a compaction."),
    ("updated_messages", "array", "The conversation in its place; `[]` is no rewrite."),
    ("updated_tool_response", "any", "What the tool answered, in its place."),
    ("metadata", "object", "Facts for whoever reads the verdict."),
];

fn object(rows: &[Row]) -> Value {
    let properties: Map<String, Value> =
        rows.iter().map(|(name, json, doc)| ((*name).to_owned(), described(json_type(json), doc))).collect();
    json!({ "type": "object", "properties": properties })
}

/// One hook or group, or a list of them.
fn event_hooks(event: Event) -> Value {
    let has_matcher = Profile::Native.subject(event).is_some();
    let definition = if has_matcher { "#/$defs/matched" } else { "#/$defs/unmatched" };
    json!({ "description": event.spec().doc.trim(), "$ref": definition })
}

fn definitions() -> Value {
    let one_or_list = |item: Value| json!({ "anyOf": [item, { "type": "array", "items": item }] });
    let entries = |group: &str| one_or_list(json!({ "anyOf": [{ "$ref": "#/$defs/hook" }, { "$ref": group }] }));
    let mut group = section(GROUP);
    set(&mut group, &["required"], json!(["hooks"]));
    let without: Vec<Field> = GROUP.iter().filter(|field| field.name == "hooks").copied().collect();
    let mut plain_group = section(&without);
    set(&mut plain_group, &["required"], json!(["hooks"]));
    json!({
        "hook": hook(),
        "hooks": one_or_list(json!({ "$ref": "#/$defs/hook" })),
        "group": group,
        "plain_group": plain_group,
        "matched": entries("#/$defs/group"),
        "unmatched": entries("#/$defs/plain_group"),
    })
}

/// A hook: what each type needs, and what means nothing on it.
fn hook() -> Value {
    let mut schema = section(HOOK);
    let rules = TYPE.iter().map(|(kind, _)| {
        let required = REQUIRED.iter().find(|(name, _)| name == kind).map_or(&[][..], |(_, fields)| fields);
        let misplaced = HOOK.iter().filter(|field| !field.only.is_empty() && !field.only.contains(kind));
        let refused: Map<String, Value> = misplaced.map(|field| (field.name.to_owned(), false.into())).collect();
        json!({
            "if": { "properties": { "type": { "const": kind } }, "required": ["type"] },
            "then": { "required": required, "properties": refused },
        })
    });
    set(&mut schema, &["allOf"], rules.collect());
    set(&mut schema, &["required"], json!(["type"]));
    schema
}

fn property(field: &Field) -> Value {
    let mut doc = field.doc.to_owned();
    if !field.default.is_empty() {
        doc.push_str(&format!(" Default: {}.", field.default));
    }
    described(shape(field.shape), &doc)
}

fn shape(shape: Shape) -> Value {
    let texts = || json!({ "type": "array", "items": { "type": ["string", "number", "boolean"] } });
    match shape {
        Shape::Bool => json!({ "type": "boolean" }),
        Shape::Integer => json!({ "type": "integer", "minimum": 0 }),
        Shape::Number => json!({ "type": "number" }),
        Shape::Text => json!({ "type": "string" }),
        Shape::Name => json!({ "type": ["string", "integer"] }),
        Shape::Size => json!({ "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": size::PATTERN },
        ] }),
        Shape::Duration => json!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0 },
            { "type": "string", "pattern": DURATION },
        ] }),
        Shape::Age => json!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0 },
            { "type": "string", "pattern": DURATION },
            { "type": "string", "pattern": "^[0-9]+d$" },
        ] }),
        Shape::Word(words) => json!({ "enum": words }),
        Shape::Texts => texts(),
        Shape::TextOrTexts => json!({ "anyOf": [{ "type": "string" }, texts()] }),
        Shape::TextMap => map_of(json!({ "type": ["string", "number", "boolean"] })),
        Shape::PatternMap => map_of(json!({ "type": "string", "format": "regex" })),
        Shape::NumberMap => map_of(json!({ "type": "number" })),
        Shape::SecretMap => map_of(secret()),
        Shape::Secrets => json!({ "anyOf": [secret(), { "type": "array", "items": secret() }] }),
        Shape::WordOrTexts(words, key) => json!({ "anyOf": [
            { "enum": words },
            { "type": "object", "properties": { key: texts() }, "required": [key], "additionalProperties": false },
        ] }),
        Shape::Table(fields) => section(fields),
        Shape::Tables(fields) => json!({ "type": "array", "items": section(fields) }),
        Shape::NamedTables(fields) => map_of(section(fields)),
        Shape::Hooks => json!({ "$ref": "#/$defs/hooks" }),
        Shape::Any | Shape::Json => json!({}),
    }
}

/// Text, or a file that holds it.
fn secret() -> Value {
    let file = json!({ "file": { "type": "string" } });
    json!({ "anyOf": [
        { "type": "string" },
        { "type": "object", "properties": file, "required": ["file"], "additionalProperties": false },
    ] })
}

fn map_of(values: Value) -> Value {
    json!({ "type": "object", "additionalProperties": values })
}

fn words(words: &[&str], doc: &str) -> Value {
    described(json!({ "enum": words }), doc)
}

/// A type as the tables name it: one of JSON Schema's, or `any`.
fn json_type(name: &str) -> Value {
    if name == "any" { json!({}) } else { json!({ "type": name }) }
}

fn described(mut schema: Value, doc: &str) -> Value {
    if !doc.is_empty() {
        set(&mut schema, &["description"], doc.into());
    }
    schema
}

/// Sets a value at a path of keys; objects in between are made.
fn set(schema: &mut Value, path: &[&str], value: Value) {
    let mut at = schema;
    for key in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(map) = at else { return };
        at = map.entry(*key).or_insert(Value::Null);
    }
    *at = value;
}

#[cfg(test)]
mod tests;
