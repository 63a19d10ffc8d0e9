//! A conversation as a request: what each format makes of messages, tools and images.
//!
//! - `openai`, `ollama`, `anthropic`: a format each.
//! - `written`: what was written for the last question.
//! - What an answer's server wants back with it stands in the message's `extra` under [`BACK`], and goes to that model
//!   alone, as long as the same round of tool calls lasts.

mod anthropic;
mod ollama;
mod openai;
mod written;

use std::borrow::Cow;

use bytes::Bytes;
use gatehook_engine::events::{Image, Message, ToolCall};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::{Ask, Format, Model, ModelError};

pub(super) use written::Written;

/// Where a message keeps what its model's server wants back: `{"model": "…", "thinking": [block, …]}`, the blocks as
/// Anthropic writes them.
pub(super) const BACK: &str = "wire";

/// The request.
pub(super) fn question(model: &Model, ask: &Ask<'_>) -> Result<Bytes, ModelError> {
    let chat = Chat::new(model, ask);
    let written = match model.format {
        Format::Ollama => ollama::write(&chat),
        Format::OpenAi => openai::write(&chat),
        Format::Anthropic => anthropic::write(&chat),
    };
    written
        .map(Bytes::from)
        .map_err(|error| ModelError::Unreachable(format!("the question cannot be written: {error}")))
}

/// What is to be written.
struct Chat<'a> {
    model: &'a Model,
    ask: &'a Ask<'a>,
    /// What the model is told before the conversation, and the system messages with which it begins, as one.
    system: Option<Cow<'a, str>>,
    /// The others.
    messages: &'a [Message],
    /// Behind this place thinking goes back: since then nobody but the model and its tools has spoken.
    round: usize,
    /// Tokens of the answer at most.
    most: Option<u32>,
    /// Further members of the request.
    options: Cow<'a, Map<String, Value>>,
}

/// Members that no option replaces.
const OWN: &[&str] = &["model", "messages", "system", "tools", "stream", "stream_options", "truncate", "shift"];

/// An answer's bound, under whatever name: it is said once.
const MOST: &[&str] = &["max_tokens", "max_completion_tokens", "num_predict"];

/// Options that Anthropic does not know, and refuses.
const NOT_ANTHROPIC: &[&str] = &["frequency_penalty", "presence_penalty", "seed", "reasoning_effort"];

impl<'a> Chat<'a> {
    fn new(model: &'a Model, ask: &'a Ask<'a>) -> Self {
        let begins = ask.messages.iter().position(|message| !is_system(message)).unwrap_or(ask.messages.len());
        let (system, messages) = ask.messages.split_at(begins);
        let system: Vec<&str> =
            ask.system.into_iter().chain(system.iter().filter_map(|message| message.content.as_deref())).collect();
        let system = match system.as_slice() {
            [] => None,
            [one] => Some(Cow::Borrowed(*one)),
            several => Some(Cow::Owned(several.join("\n\n"))),
        };
        let round = messages.iter().rposition(|message| &*message.role == "user").map_or(0, |place| place + 1);
        let (options, said) = (&*model.options, MOST.iter().find_map(|key| model.options.get(*key)?.as_u64()));
        let most = model.max_tokens.or_else(|| said.and_then(|most| u32::try_from(most).ok()));
        let foreign = if model.format == Format::Anthropic { NOT_ANTHROPIC } else { &[] };
        let is_own = |key: &String| [OWN, MOST, foreign].iter().all(|keys| !keys.contains(&key.as_str()));
        let options = match options.keys().all(is_own) {
            true => Cow::Borrowed(options),
            false => Cow::Owned(options.clone().into_iter().filter(|(key, _)| is_own(key)).collect()),
        };
        Self { model, ask, system, messages, round, most, options }
    }

    /// The messages behind the system's, and whether their thinking goes back.
    fn each(&self) -> impl Iterator<Item = (&'a Message, bool)> + '_ {
        let own = |message: &Message| {
            let wire = message.extra.get(BACK);
            wire.and_then(|wire| wire.get("model")).and_then(Value::as_str) == Some(&*self.model.id)
        };
        self.messages.iter().enumerate().map(move |(place, message)| (message, place >= self.round && own(message)))
    }
}

fn is_system(message: &Message) -> bool {
    matches!(&*message.role, "system" | "developer")
}

/// Tools as Ollama and OpenAI are told of them.
fn functions<'a>(ask: &Ask<'a>) -> Vec<Offered<'a>> {
    let function = |spec: &'a std::sync::Arc<crate::tools::ToolSpec>| Function {
        name: super::names::on_wire(&spec.tool.name),
        description: &spec.description,
        parameters: parameters(&spec.parameters),
    };
    ask.tools.iter().map(|spec| Offered { kind: "function", function: function(spec) }).collect()
}

#[derive(Serialize)]
struct Offered<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: Cow<'a, Value>,
}

/// A schema as every provider takes it: of an object, with its properties said.
fn parameters(schema: &Value) -> Cow<'_, Value> {
    match schema.as_object() {
        Some(object) if object.contains_key("type") && object.contains_key("properties") => Cow::Borrowed(schema),
        object => {
            let mut object = object.cloned().unwrap_or_default();
            object.entry("type").or_insert_with(|| "object".into());
            object.entry("properties").or_insert_with(|| Map::new().into());
            Cow::Owned(Value::Object(object))
        }
    }
}

/// Arguments as text. What is no object cannot be sent again: servers refuse the whole conversation for it.
fn arguments(call: &ToolCall) -> &str {
    let text = &*call.function.arguments;
    let is_object = text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_object { text } else { "{}" }
}

/// The same as an object.
fn arguments_object(call: &ToolCall) -> Map<String, Value> {
    serde_json::from_str(&call.function.arguments).unwrap_or_default()
}

/// An image whose data is at hand.
enum Picture<'a> {
    /// Base64, and its media type.
    Data(&'a str, &'a str),
    Address(&'a str),
}

/// The images of a message. Those without data cannot be shown.
fn pictures(message: &Message) -> impl Iterator<Item = Picture<'_>> {
    message.images.iter().flatten().filter_map(picture)
}

fn picture(image: &Image) -> Option<Picture<'_>> {
    let data = image.data.as_deref()?;
    if let Some((head, base64)) = data.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        let kind = head.split(';').next().filter(|kind| !kind.is_empty());
        return Some(Picture::Data(kind.unwrap_or(&image.media_type), base64));
    }
    if data.starts_with("http://") || data.starts_with("https://") {
        return Some(Picture::Address(data));
    }
    let kind = if image.media_type.is_empty() { "image/png" } else { &image.media_type };
    Some(Picture::Data(kind, data))
}
