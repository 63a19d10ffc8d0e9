//! `/v1/messages` (<https://docs.anthropic.com/en/api/messages>).

use std::borrow::Cow;

use gatehook_engine::events::{Message, ToolCall};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::written::Piece;
use super::{BACK, Chat, Picture, arguments_object, is_system, parameters, pictures};
use crate::model::names::on_wire;
use crate::model::window::most_tokens;

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<'a>>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(flatten)]
    options: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Content<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    /// What a tool gave.
    Result(&'a RawValue),
    Written(&'a RawValue),
    New(Block<'a>),
    /// With a mark as that of [`Marked`].
    Remembered(Map<String, Value>),
}

/// A block, up to which the server is asked to remember the question.
#[derive(Serialize)]
struct Marked<'a> {
    #[serde(flatten)]
    block: Block<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Remember>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
struct Remember {}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: &'a str,
        name: Cow<'a, str>,
        input: Map<String, Value>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<Block<'a>>,
        is_error: bool,
    },
    #[serde(untagged)]
    Back(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

#[derive(Serialize)]
struct Tool<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    input_schema: Cow<'a, Value>,
}

/// Whoever is not the assistant.
const USER: &str = "user";

/// The words of a conversation that nobody begins: the server wants a user to.
const BEGINNING: &str = "(The conversation goes on.)";

pub(super) fn write(chat: &Chat<'_>) -> serde_json::Result<Vec<u8>> {
    let mut system: Vec<Marked<'_>> = chat.system.as_deref().and_then(text).into_iter().map(Marked::from).collect();
    let pieces =
        chat.model.written.bring(chat, |_, message, goes_back| blocks(message, goes_back).collect::<Vec<_>>())?;
    let mut messages = turns(chat, &pieces);
    remember(&mut system);
    if let Some(turn) = messages.last_mut() {
        remember_turn(turn)?;
    }
    let tools = chat.ask.tools.iter().map(|spec| Tool {
        name: on_wire(&spec.tool.name),
        description: &spec.description,
        input_schema: parameters(&spec.parameters),
    });
    serde_json::to_vec(&Question {
        model: chat.model.name(),
        max_tokens: chat.most.unwrap_or_else(|| most_tokens(chat.model.name())),
        system,
        messages,
        tools: tools.collect(),
        stream: true,
        options: &chat.options,
    })
}

impl<'a> From<Block<'a>> for Marked<'a> {
    fn from(block: Block<'a>) -> Self {
        Self { block, cache_control: None }
    }
}

/// The next question begins as this one does: what is remembered costs a tenth.
fn remember(system: &mut [Marked<'_>]) {
    if let Some(last) = system.last_mut() {
        last.cache_control = Some(Remember {});
    }
}

/// The same of the conversation. What an assistant said may be a block that cannot be marked.
fn remember_turn(turn: &mut Turn<'_>) -> serde_json::Result<()> {
    if let Some(last) = turn.content.last_mut().filter(|_| turn.role == USER)
        && let Content::Result(block) | Content::Written(block) = last
    {
        let mut block: Map<String, Value> = serde_json::from_str(block.get())?;
        block.insert("cache_control".to_owned(), serde_json::to_value(Remember {})?);
        *last = Content::Remembered(block);
    }
    Ok(())
}

/// Messages in a row of one side are one turn; the results of tools stand first in it.
fn turns<'a>(chat: &Chat<'_>, pieces: &'a [Piece]) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for (message, piece) in chat.messages.iter().zip(pieces) {
        let role = if &*message.role == "assistant" { "assistant" } else { USER };
        let written = if &*message.role == "tool" { Content::Result } else { Content::Written };
        let blocks = piece.json.iter().map(|json| written(json));
        match turns.last_mut().filter(|turn| turn.role == role) {
            _ if piece.json.is_empty() => {}
            Some(turn) => turn.content.extend(blocks),
            None => turns.push(Turn { role, content: blocks.collect() }),
        }
    }
    if turns.first().is_none_or(|turn| turn.role != USER) {
        let first = Content::New(Block::Text { text: BEGINNING.into() });
        turns.insert(0, Turn { role: USER, content: vec![first] });
    }
    for turn in turns.iter_mut().filter(|turn| turn.role == USER) {
        turn.content.sort_by_key(|content| !matches!(content, Content::Result(_)));
    }
    turns
}

fn blocks<'a>(message: &'a Message, goes_back: bool) -> impl Iterator<Item = Block<'a>> {
    let images = pictures(message).map(image);
    let said = message.content.as_deref().and_then(text);
    let own: Vec<Block<'a>> = match &*message.role {
        "tool" => {
            let content = said.into_iter().chain(images).collect();
            let is_error = message.extra.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            let tool_use_id = message.tool_call_id.as_deref().unwrap_or_default();
            vec![Block::ToolResult { tool_use_id, content, is_error }]
        }
        "assistant" => {
            let calls = message.tool_calls.iter().flatten().map(called);
            back(message).filter(|_| goes_back).chain(said).chain(calls).collect()
        }
        // There is one place for a system's words, before all others; those in between are told in the user's.
        _ if is_system(message) => {
            let told = message.content.as_deref().filter(|text| !text.trim().is_empty());
            told.map(|told| Block::Text { text: format!("<system>\n{told}\n</system>").into() }).into_iter().collect()
        }
        _ => images.chain(said).collect(),
    };
    own.into_iter()
}

/// Text that is not blank: blank blocks are refused.
fn text(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text { text: text.into() })
}

/// The thinking that is signed, as it came.
fn back(message: &Message) -> impl Iterator<Item = Block<'_>> {
    let blocks = message.extra.get(BACK).and_then(|wire| wire.get("thinking")).and_then(Value::as_array);
    blocks.into_iter().flatten().map(Block::Back)
}

fn image(picture: Picture<'_>) -> Block<'_> {
    let source = match picture {
        Picture::Data(media_type, data) => Source::Base64 { media_type, data },
        Picture::Address(url) => Source::Url { url },
    };
    Block::Image { source }
}

fn called(call: &ToolCall) -> Block<'_> {
    Block::ToolUse {
        id: call.id.as_deref().unwrap_or_default(),
        name: on_wire(&call.function.name),
        input: arguments_object(call),
    }
}
