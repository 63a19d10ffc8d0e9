//! `/api/chat` (<https://docs.ollama.com/api/chat>).

use std::borrow::Cow;

use gatehook_engine::events::{Message, ToolCall};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Chat, Offered, Picture, arguments_object, functions, pictures};
use crate::model::names::on_wire;

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    messages: Vec<Line<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Offered<'a>>,
    stream: bool,
    /// A conversation that is too long is to be refused, not to lose its beginning.
    truncate: bool,
    shift: bool,
    #[serde(skip_serializing_if = "Map::is_empty")]
    options: Map<String, Value>,
    #[serde(flatten)]
    top: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Written(&'a RawValue),
    New(Said<'a>),
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'a str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Called<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Called<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: Map<String, Value>,
}

/// Options that stand beside `options`.
const TOP: &[&str] = &["think", "keep_alive", "format"];

pub(super) fn write(chat: &Chat<'_>) -> serde_json::Result<Vec<u8>> {
    let (top, mut options): (Map<_, _>, Map<_, _>) =
        chat.options.clone().into_owned().into_iter().partition(|(key, _)| TOP.contains(&key.as_str()));
    let number = |key: &str, value: Option<u64>| value.map(|value| (key.to_owned(), value.into()));
    let window = number("num_ctx", chat.model.window.is_said());
    let most = number("num_predict", chat.most.map(u64::from));
    for (key, value) in window.into_iter().chain(most) {
        options.entry(key).or_insert(value);
    }
    let written = |place: usize, message, goes_back| {
        let before = chat.messages.get(..place).unwrap_or_default();
        vec![said(message, goes_back, before)]
    };
    let pieces = chat.model.written.bring(chat, written)?;
    let system = chat.system.as_deref().map(|content| Line::New(Said { content, ..plain("system") }));
    let others = pieces.iter().flat_map(|piece| &piece.json).map(|json| Line::Written(json));
    let messages = system.into_iter().chain(others).collect();
    let tools = functions(chat.ask);
    let model = chat.model.name();
    serde_json::to_vec(&Question { model, messages, tools, stream: true, truncate: false, shift: false, options, top })
}

fn plain(role: &str) -> Said<'_> {
    Said {
        role,
        content: "",
        thinking: None,
        images: Vec::new(),
        tool_calls: Vec::new(),
        tool_name: None,
        tool_call_id: None,
    }
}

fn said<'a>(message: &'a Message, goes_back: bool, before: &'a [Message]) -> Said<'a> {
    let answers = message.tool_call_id.as_deref().filter(|_| &*message.role == "tool");
    let tool = answers.and_then(|id| called_by(id, before).or(message.name.as_deref()));
    let data = |picture| match picture {
        Picture::Data(_, base64) => Some(base64),
        Picture::Address(_) => None,
    };
    Said {
        content: message.content.as_deref().unwrap_or_default(),
        thinking: message.thinking.as_deref().filter(|thinking| goes_back && !thinking.is_empty()),
        images: pictures(message).filter_map(data).collect(),
        tool_calls: message.tool_calls.iter().flatten().map(called).collect(),
        tool_name: tool.map(on_wire),
        tool_call_id: answers,
        ..plain(&message.role)
    }
}

/// The tool of the call that bears this identity.
fn called_by<'a>(id: &str, before: &'a [Message]) -> Option<&'a str> {
    let mut calls = before.iter().rev().flat_map(|message| message.tool_calls.iter().flatten().rev());
    calls.find(|call| call.id.as_deref() == Some(id)).map(|call| &*call.function.name)
}

fn called(call: &ToolCall) -> Called<'_> {
    let function = Function { name: on_wire(&call.function.name), arguments: arguments_object(call) };
    Called { id: call.id.as_deref(), function }
}
