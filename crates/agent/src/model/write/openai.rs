//! `/v1/chat/completions` (<https://platform.openai.com/docs/api-reference/chat/create>).

use std::borrow::Cow;

use gatehook_engine::events::{Message, ToolCall};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::written::Piece;
use super::{Chat, Offered, Picture, arguments, functions, pictures};
use crate::model::names::on_wire;

/// The provider that knows `max_completion_tokens` and is told no thinking.
const OPENAI: &str = "openai";

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    messages: Vec<Line<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Offered<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(flatten)]
    options: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
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
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Called<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Address<'a> },
}

#[derive(Serialize)]
struct Address<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
struct Called<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
    /// As the server wrote it, for instance a signature of the thinking before it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    extra: Option<&'a Map<String, Value>>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

pub(super) fn write(chat: &Chat<'_>) -> serde_json::Result<Vec<u8>> {
    let is_openai = chat.model.provider() == OPENAI;
    let pieces = chat.model.written.bring(chat, |_, message, goes_back| {
        let thinks = goes_back && !is_openai;
        vec![said(message, thinks, goes_back)]
    })?;
    serde_json::to_vec(&Question {
        model: chat.model.name(),
        messages: messages(chat, &pieces),
        tools: functions(chat.ask),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: chat.most.filter(|_| !is_openai),
        max_completion_tokens: chat.most.filter(|_| is_openai),
        options: &chat.options,
    })
}

fn messages<'a>(chat: &'a Chat<'_>, pieces: &'a [Piece]) -> Vec<Line<'a>> {
    let mut messages = Vec::with_capacity(pieces.len() + 1);
    messages.extend(chat.system.as_deref().map(|text| Line::New(plain("system", Some(Content::Text(text))))));
    // A tool can only answer in words: its images follow when all tools of a round have answered.
    let mut images = Vec::new();
    for (message, piece) in chat.messages.iter().zip(pieces) {
        if &*message.role == "tool" {
            images.extend(pictures(message).map(image));
        } else {
            messages.extend(shown(&mut images));
        }
        messages.extend(piece.json.iter().map(|json| Line::Written(json)));
    }
    messages.extend(shown(&mut images));
    messages
}

fn plain<'a>(role: &'a str, content: Option<Content<'a>>) -> Said<'a> {
    Said { role, content, reasoning_content: None, tool_calls: Vec::new(), tool_call_id: None, name: None }
}

/// The images of tools, as the user would show them.
fn shown<'a>(images: &mut Vec<Part<'a>>) -> Option<Line<'a>> {
    if images.is_empty() {
        return None;
    }
    let mut parts = vec![Part::Text { text: "The images that the tools gave:" }];
    parts.append(images);
    Some(Line::New(plain("user", Some(Content::Parts(parts)))))
}

fn said(message: &Message, thinks: bool, goes_back: bool) -> Said<'_> {
    let is_tool = &*message.role == "tool";
    let tool_calls: Vec<_> = message.tool_calls.iter().flatten().map(|call| called(call, goes_back)).collect();
    Said {
        content: content(message, is_tool, !tool_calls.is_empty()),
        reasoning_content: message.thinking.as_deref().filter(|thinking| thinks && !thinking.is_empty()),
        tool_calls,
        tool_call_id: message.tool_call_id.as_deref().filter(|_| is_tool),
        name: message.name.as_deref().filter(|_| &*message.role == "user"),
        ..plain(&message.role, None)
    }
}

fn content(message: &Message, is_tool: bool, calls: bool) -> Option<Content<'_>> {
    let text = message.content.as_deref();
    let images: Vec<Part<'_>> = if is_tool { Vec::new() } else { pictures(message).map(image).collect() };
    if images.is_empty() {
        return match text.filter(|text| !text.is_empty()) {
            None if calls => None,
            text => Some(Content::Text(text.unwrap_or_default())),
        };
    }
    let text = text.filter(|text| !text.is_empty()).map(|text| Part::Text { text });
    Some(Content::Parts(text.into_iter().chain(images).collect()))
}

fn image(picture: Picture<'_>) -> Part<'_> {
    let url = match picture {
        Picture::Data(kind, base64) => Cow::Owned(format!("data:{kind};base64,{base64}")),
        Picture::Address(url) => Cow::Borrowed(url),
    };
    Part::ImageUrl { image_url: Address { url } }
}

fn called(call: &ToolCall, goes_back: bool) -> Called<'_> {
    Called {
        id: call.id.as_deref().unwrap_or_default(),
        kind: "function",
        function: Function { name: on_wire(&call.function.name), arguments: arguments(call) },
        extra: Some(&call.extra).filter(|extra| goes_back && !extra.is_empty()),
    }
}
