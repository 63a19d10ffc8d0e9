//! The top level of a request, as a table: what each field of each path is to a hook.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::RequestView;
use crate::error::ReadError;
use crate::json::{At, Document, Kind};
use crate::route::{Path, Route, TextRoute};
use crate::view::fields;

/// What a field is to a hook. One that is in no table is shown among the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Model,
    Stream,
    /// The route's file reads it into messages.
    Messages,
    Tools,
    /// Tools in the form before `tools`.
    Functions,
    /// Native `options`: its members are shown beside the other fields.
    Options,
    Format,
    Suffix,
    Template,
    Context,
}

use Field::{Context, Format, Functions, Messages, Model, Options, Stream, Suffix, Template, Tools};

type Table = &'static [(&'static str, Field)];

const CHAT: Table = &[
    ("model", Model),
    ("messages", Messages),
    ("stream", Stream),
    ("tools", Tools),
    ("options", Options),
    ("format", Format),
];
const GENERATE: Table = &[
    ("model", Model),
    ("system", Messages),
    ("prompt", Messages),
    ("images", Messages),
    ("stream", Stream),
    ("options", Options),
    ("format", Format),
    ("suffix", Suffix),
    ("template", Template),
    ("context", Context),
];
const CHAT_COMPLETIONS: Table = &[
    ("model", Model),
    ("messages", Messages),
    ("stream", Stream),
    ("tools", Tools),
    ("functions", Functions),
    ("response_format", Format),
];
const COMPLETIONS: Table =
    &[("model", Model), ("prompt", Messages), ("stream", Stream), ("suffix", Suffix), ("response_format", Format)];
const RESPONSES: Table =
    &[("model", Model), ("instructions", Messages), ("input", Messages), ("stream", Stream), ("tools", Tools)];
const MESSAGES: Table = &[
    ("model", Model),
    ("system", Messages),
    ("messages", Messages),
    ("stream", Stream),
    ("tools", Tools),
    ("output_format", Format),
];
const EMBED: Table = &[("model", Model), ("input", Messages), ("options", Options)];
const EMBEDDINGS: Table = &[("model", Model), ("prompt", Messages), ("options", Options)];
const OPENAI_EMBEDDINGS: Table = &[("model", Model), ("input", Messages)];

fn table(path: Path) -> Table {
    match path {
        Path::Route(Route::Chat) => CHAT,
        Path::Route(Route::Generate) => GENERATE,
        Path::Route(Route::ChatCompletions) => CHAT_COMPLETIONS,
        Path::Route(Route::Completions) => COMPLETIONS,
        Path::Route(Route::Responses) => RESPONSES,
        Path::Route(Route::Messages) | Path::Text(TextRoute::CountTokens) => MESSAGES,
        Path::Text(TextRoute::Embed) => EMBED,
        Path::Text(TextRoute::Embeddings) => EMBEDDINGS,
        Path::Text(TextRoute::OpenAiEmbeddings) => OPENAI_EMBEDDINGS,
    }
}

/// Fields that carry the conversation on one path or another. Where they do not belong, a lenient server could run
/// them in place of what the hook sees.
const CONVERSATION: &[&str] = &["messages", "prompt", "input", "instructions", "system"];

/// Every name that any path knows, for the look at keys in other case.
const KNOWN: &[&str] = &[
    "model",
    "messages",
    "prompt",
    "input",
    "instructions",
    "system",
    "stream",
    "tools",
    "functions",
    "options",
    "format",
    "response_format",
    "output_format",
    "suffix",
    "template",
    "context",
    "images",
    "raw",
    "think",
    "tool_choice",
    "function_call",
    "text",
    "conversation",
    "previous_response_id",
    "documents",
    "chat_template",
    "chat_template_kwargs",
    "prompt_embeds",
];

/// The top level as it was read.
pub(super) struct Top<'d> {
    pub(super) document: &'d Document,
    /// What the route's file reads.
    conversation: Vec<(Cow<'d, str>, At)>,
    /// Native `options.hook_approval`: the object, and the value in it.
    pub(super) approval: Option<(At, At)>,
}

impl Top<'_> {
    /// A field of the conversation, unless it is absent or null.
    pub(super) fn get(&self, key: &str) -> Option<At> {
        let found = self.conversation.iter().find(|(name, _)| name == key).map(|(_, at)| *at);
        found.filter(|at| self.document.kind(*at) != Kind::Null)
    }
}

/// Reads the top level into `view`, all but the messages.
pub(super) fn read<'d>(path: Path, document: &'d Document, view: &mut RequestView) -> Result<Top<'d>, ReadError> {
    let table = table(path);
    let mut top = Top { document, conversation: Vec::new(), approval: None };
    let mut options = Map::new();
    let mut native = None;
    view.stream = matches!(path, Path::Route(route) if route.streams_by_default());
    for (key, at) in fields(document, Document::ROOT, KNOWN)? {
        let field = table.iter().find(|(name, _)| *name == key).map(|(_, field)| *field);
        let null = document.kind(at) == Kind::Null;
        match field {
            Some(Messages) => top.conversation.push((key, at)),
            Some(Options) => native = Some(at),
            Some(_) if null => {}
            Some(field) => named(document, field, at, view)?,
            None if key == "prompt_embeds" && !null => {
                let what = "a prompt in vectors cannot be read".to_owned();
                return Err(ReadError::Opaque { place: document.place(at), what });
            }
            // Hooks would take it for the one in `options`, and the upstream would see it.
            None if key == "hook_approval" || key == "options" && document.get(at, "hook_approval").is_some() => {
                return Err(document
                    .ambiguous(at, "an approval stands in the header X-Gatehook-Approval, or in native `options`"));
            }
            None if CONVERSATION.contains(&&*key) && !null && !stored_prompt(path, document, &key, at) => {
                return Err(document.ambiguous(at, format!("`{key}` is no field of {}", path.as_str())));
            }
            None => {
                options.insert(key.into_owned(), document.value(at));
            }
        }
    }
    if let Some(at) = native {
        native_options(&mut top, at, &mut options)?;
    }
    if path == Path::Route(Route::Responses)
        && let Some(text) = document.some(Document::ROOT, "text")
    {
        fields(document, text, &["format"])?;
        view.format = document.some(text, "format").map(|at| Arc::new(document.value(at)));
    }
    view.approval = top.approval.and_then(|(_, at)| document.text(at)).map(Arc::from);
    view.options = (!options.is_empty() || native.is_some()).then(|| Arc::new(Value::Object(options)));
    Ok(top)
}

/// Responses' `prompt` is an object that names a stored prompt; hooks see it among the options.
fn stored_prompt(path: Path, document: &Document, key: &str, at: At) -> bool {
    path == Path::Route(Route::Responses) && key == "prompt" && document.kind(at) == Kind::Object
}

fn named(document: &Document, field: Field, at: At, view: &mut RequestView) -> Result<(), ReadError> {
    let text = || match document.text(at) {
        Some(text) => Ok(Some(Arc::<str>::from(text))),
        None => Err(document.shape(at, "a string is expected")),
    };
    let value = || Some(Arc::new(document.value(at)));
    match field {
        Model => view.model = text()?,
        Suffix => view.suffix = text()?,
        Template => view.template = text()?,
        Format => view.format = value(),
        Context => view.context = value(),
        Stream => {
            view.stream = match document.kind(at) {
                Kind::True => true,
                Kind::False => false,
                _ => return Err(document.shape(at, "true or false is expected")),
            }
        }
        Tools | Functions => {
            let mut tools = view.tools.take().map(Arc::unwrap_or_clone).unwrap_or_else(|| Value::Array(Vec::new()));
            if let Value::Array(list) = &mut tools {
                list.extend(read_tools(document, at, field == Functions)?);
            }
            view.tools = Some(Arc::new(tools));
        }
        Messages | Options => {}
    }
    Ok(())
}

const TOOL: &[&str] = &["type", "function", "name", "description", "parameters", "input_schema", "strict"];

/// Tools as chat completions write them, whatever the caller spoke. Those of another type are shown as they are.
fn read_tools(document: &Document, at: At, bare: bool) -> Result<Vec<Value>, ReadError> {
    if document.kind(at) != Kind::Array {
        return Err(document.shape(at, "a list is expected"));
    }
    document
        .elements(at)
        .map(|tool| {
            let members = fields(document, tool, TOOL)?;
            if let Some(function) = document.some(tool, "function") {
                fields(document, function, TOOL)?;
                return Ok(document.value(tool));
            }
            let has = |key: &str| members.iter().any(|(name, _)| name == key);
            let flat = bare
                || has("input_schema")
                || (has("name") && document.string(tool, "type").is_some_and(|kind| kind == "function"));
            Ok(if flat { openai_tool(document.map(tool)) } else { document.value(tool) })
        })
        .collect()
}

/// `{"name", "description", "parameters" or "input_schema", …}` as `{"type": "function", "function": {…}, …}`.
fn openai_tool(mut tool: Map<String, Value>) -> Value {
    let mut function = Map::new();
    for (from, to) in [
        ("name", "name"),
        ("description", "description"),
        ("parameters", "parameters"),
        ("input_schema", "parameters"),
        ("strict", "strict"),
    ] {
        if !function.contains_key(to)
            && let Some(value) = tool.remove(from)
        {
            function.insert(to.into(), value);
        }
    }
    tool.entry("type").or_insert_with(|| "function".into());
    tool.insert("function".into(), Value::Object(function));
    Value::Object(tool)
}

const OPTIONS: &[&str] = &["hook_approval"];

/// Native options beside the other fields. One name for two values would show a hook the wrong one.
fn native_options(top: &mut Top<'_>, at: At, options: &mut Map<String, Value>) -> Result<(), ReadError> {
    let document = top.document;
    if document.kind(at) == Kind::Null {
        return Ok(());
    }
    for (key, value) in fields(document, at, OPTIONS)? {
        if key == "hook_approval" {
            if document.kind(value) != Kind::String {
                return Err(document.shape(value, "a string is expected"));
            }
            top.approval = Some((at, value));
        }
        let shown = document.value(value);
        match options.get(&*key) {
            Some(other) if *other != shown => {
                return Err(document.ambiguous(value, "it stands beside `options` with another value"));
            }
            _ => options.insert(key.into_owned(), shown),
        };
    }
    Ok(())
}
