//! The texts of an event in order, as vendors judge them, and the way of changed ones back to where they stood.

use std::borrow::Cow;
use std::sync::Arc;

use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Event, FailureKind, Input, Message, Output, Permission, Profile, Rewrite, ToolCall};
use serde_json::{Map, Value};

use super::Stage;
use crate::event_class::is_inference;
use crate::handler::HandlerError;

/// Keys of what is no text to a model, in what a message has besides its content: kinds, keys, addresses, ciphers.
const NO_TEXT: &[&str] =
    &["type", "part", "media_type", "cache_control", "signature", "encrypted_content", "url", "image_url", "sha256"];

/// Between texts that are shown as one.
const BETWEEN: &str = "\n\n";

/// One text.
pub(super) struct Text<'a> {
    /// Who said it, as in `user`.
    pub(super) role: &'a str,
    pub(super) text: Cow<'a, str>,
    place: Place,
}

/// Where a text stands.
#[derive(Debug, Clone, PartialEq)]
enum Place {
    /// Where it cannot be changed.
    Fixed,
    /// In a message.
    Message(usize, Part),
    /// In the answer.
    Answer(Part),
    /// In a tool's arguments or result, by JSON pointer.
    Leaf(String),
}

/// What of a message or of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Content,
    Thinking,
    /// The arguments of the nth tool call, as JSON text.
    Call(usize),
}

/// All texts of one event; none is empty.
pub(super) struct Texts<'a> {
    event: Event,
    input: &'a Input,
    /// What the answer answers; it cannot be changed any more.
    pub(super) context: Vec<Text<'a>>,
    /// What is to be judged.
    pub(super) judged: Vec<Text<'a>>,
}

impl<'a> Texts<'a> {
    pub(super) fn of(event: Event, stage: Stage, input: &'a Input) -> Self {
        let (mut context, mut judged) = (Vec::new(), Vec::new());
        match stage {
            Stage::Prompt => conversation(input, &mut judged),
            Stage::Answer => {
                conversation(input, &mut context);
                answer(input, &mut judged);
            }
            Stage::ToolCall => {
                let arguments = input.tool_input.as_deref().into_iter().flatten();
                arguments.for_each(|(key, value)| leaves("assistant", value, &below("", key), &mut judged));
            }
            Stage::ToolResult => {
                input.tool_response.iter().for_each(|response| leaves("tool", response, "", &mut judged));
            }
            Stage::Other => {}
        }
        for list in [&mut context, &mut judged] {
            list.retain(|text| !text.text.is_empty());
        }
        Self { event, input, context, judged }
    }

    /// Everything that is to be judged, as one text.
    pub(super) fn joined(&self) -> String {
        joined(&self.judged)
    }

    /// Whether hooks of this event may change texts.
    pub(super) fn can_change(&self) -> bool {
        self.rewrites().is_some()
    }

    fn rewrites(&self) -> Option<Rewrite> {
        self.event.capabilities(Profile::Native).and_then(|able| able.rewrites)
    }

    /// The judged texts, one after another, that `new` is in the place of [`joined`](Self::joined).
    pub(super) fn parted(&self, new: &str) -> Result<Vec<String>, HandlerError> {
        parted(&self.judged, new)
    }

    /// An output that puts `new` in the places of all judged texts; of no effect where none differs.
    pub(super) fn rewrite(&self, new: &[String]) -> Result<Output, HandlerError> {
        if new.len() != self.judged.len() {
            return Err(unsupported("it gave another number of texts than it was shown"));
        }
        let pairs = self.judged.iter().zip(new).filter(|(old, new)| old.text != **new);
        let changed: Vec<(&Place, &str)> = pairs.map(|(old, new)| (&old.place, new.as_str())).collect();
        if changed.is_empty() {
            return Ok(Output::default());
        }
        let mut output = match self.rewrites() {
            Some(Rewrite::Messages) => self.messages(&changed),
            Some(Rewrite::Output) => self.answer(&changed),
            Some(Rewrite::ToolInput) => self.arguments(&changed),
            Some(Rewrite::ToolResponse) => self.response(&changed),
            _ => None,
        }
        .ok_or_else(|| {
            unsupported("it changed a text that cannot be changed, or made no JSON of a tool's arguments")
        })?;
        output.permission = is_inference(self.event).then_some(Permission::Modify);
        Ok(output)
    }

    fn messages(&self, changed: &[(&Place, &str)]) -> Option<Output> {
        let mut messages = self.input.messages.as_deref()?.to_vec();
        for (place, new) in changed {
            let Place::Message(at, part) = place else { return None };
            let message = messages.get_mut(*at)?;
            match part {
                Part::Content => message.content = Some((*new).into()),
                Part::Thinking => message.thinking = Some((*new).into()),
                Part::Call(at) => set_arguments(message.tool_calls.as_mut()?.get_mut(*at)?, new)?,
            }
        }
        Some(Output { messages: Some(messages), ..Output::default() })
    }

    fn answer(&self, changed: &[(&Place, &str)]) -> Option<Output> {
        let mut output = Output::default();
        for (place, new) in changed {
            match place {
                Place::Answer(Part::Content) => output.output_text = Some((*new).into()),
                Place::Answer(Part::Thinking) => output.output_thinking = Some((*new).into()),
                Place::Answer(Part::Call(at)) => {
                    let calls = output.tool_calls.get_or_insert(self.input.tool_calls.as_deref()?.to_vec());
                    set_arguments(calls.get_mut(*at)?, new)?;
                }
                _ => return None,
            }
        }
        Some(output)
    }

    fn arguments(&self, changed: &[(&Place, &str)]) -> Option<Output> {
        let old = self.input.tool_input.as_deref()?;
        let mut value = Value::Object(old.clone());
        set_leaves(&mut value, changed)?;
        let Value::Object(mut new) = value else { return None };
        new.retain(|key, value| old.get(key) != Some(value));
        Some(Output::specific(HookSpecificOutput { updated_input: Some(new), ..HookSpecificOutput::default() }))
    }

    fn response(&self, changed: &[(&Place, &str)]) -> Option<Output> {
        let mut value = Value::clone(self.input.tool_response.as_deref()?);
        set_leaves(&mut value, changed)?;
        let updated_tool_response = Some(value);
        Some(Output::specific(HookSpecificOutput { updated_tool_response, ..HookSpecificOutput::default() }))
    }

    /// The message that a text stands in.
    pub(super) fn message(&self, text: &Text<'_>) -> Option<&'a Message> {
        match text.place {
            Place::Message(at, _) => self.input.messages.as_deref()?.get(at),
            _ => None,
        }
    }
}

impl Text<'_> {
    /// Whether these are the arguments of a tool call.
    pub(super) fn is_call(&self) -> bool {
        matches!(self.place, Place::Message(_, Part::Call(_)) | Place::Answer(Part::Call(_)))
    }
}

/// Texts as one.
pub(super) fn joined(texts: &[Text<'_>]) -> String {
    texts.iter().map(|text| &*text.text).collect::<Vec<_>>().join(BETWEEN)
}

/// What became of texts that were shown as one: it has as many parts as they had, or nobody can say which is which.
pub(super) fn parted(texts: &[Text<'_>], new: &str) -> Result<Vec<String>, HandlerError> {
    if let [_] = texts {
        return Ok(vec![new.to_owned()]);
    }
    let regroup = |whole: &str| {
        let mut parts = whole.split(BETWEEN);
        let groups = texts.iter().map(|text| {
            let group: Vec<&str> = parts.by_ref().take(text.text.split(BETWEEN).count()).collect();
            group.join(BETWEEN)
        });
        let groups: Vec<String> = groups.collect();
        parts.next().is_none().then_some(groups)
    };
    // What does not come back as it was cannot be told apart.
    let is_clear = regroup(&joined(texts)).is_some_and(|old| old.iter().eq(texts.iter().map(|text| &*text.text)));
    let parts = |whole: &str| whole.matches(BETWEEN).count();
    let is_whole = parts(new) == parts(&joined(texts));
    regroup(new)
        .filter(|_| is_clear && is_whole)
        .ok_or_else(|| unsupported("it gave one text for several, and nobody can tell what belongs where"))
}

/// A rewrite that cannot be made.
pub(super) fn unsupported(message: &str) -> HandlerError {
    HandlerError::new(FailureKind::UnsupportedRewrite, message)
}

fn conversation<'a>(input: &'a Input, texts: &mut Vec<Text<'a>>) {
    push(texts, "system", &input.template, Place::Fixed);
    for (at, message) in input.messages.iter().flat_map(|messages| messages.iter()).enumerate() {
        push(texts, &message.role, &message.thinking, Place::Message(at, Part::Thinking));
        push(texts, &message.role, &message.content, Place::Message(at, Part::Content));
        for (call, tool_call) in message.tool_calls.iter().flatten().enumerate() {
            let text = Cow::Borrowed(&*tool_call.function.arguments);
            texts.push(Text { role: &message.role, text, place: Place::Message(at, Part::Call(call)) });
            others(&message.role, &tool_call.extra, texts);
        }
        // Documents and other parts that are no text of their own.
        others(&message.role, &message.extra, texts);
    }
    push(texts, "user", &input.prompt, Place::Fixed);
    push(texts, "user", &input.suffix, Place::Fixed);
}

fn answer<'a>(input: &'a Input, texts: &mut Vec<Text<'a>>) {
    push(texts, "assistant", &input.output_thinking, Place::Answer(Part::Thinking));
    push(texts, "assistant", &input.output_text, Place::Answer(Part::Content));
    push(texts, "assistant", &input.stop_response, Place::Fixed);
    for (at, call) in input.tool_calls.iter().flat_map(|calls| calls.iter()).enumerate() {
        let text = Cow::Borrowed(&*call.function.arguments);
        texts.push(Text { role: "assistant", text, place: Place::Answer(Part::Call(at)) });
        others("assistant", &call.extra, texts);
    }
}

fn push<'a>(texts: &mut Vec<Text<'a>>, role: &'a str, text: &'a Option<Arc<str>>, place: Place) {
    texts.extend(text.as_deref().map(|text| Text { role, text: Cow::Borrowed(text), place }));
}

/// What stands beside the known fields: it is judged, and cannot be changed.
fn others<'a>(role: &'a str, fields: &'a Map<String, Value>, texts: &mut Vec<Text<'a>>) {
    let strings = spoken(fields).into_iter().map(Cow::Borrowed);
    texts.extend(strings.map(|text| Text { role, text, place: Place::Fixed }));
}

/// The strings in fields that a message has besides its content, but those that say nothing to a model.
pub(super) fn spoken(fields: &Map<String, Value>) -> Vec<&str> {
    fn add<'v>(value: &'v Value, strings: &mut Vec<&'v str>) {
        match value {
            Value::String(text) => strings.push(text),
            Value::Array(items) => items.iter().for_each(|item| add(item, strings)),
            Value::Object(map) => {
                map.iter()
                    .filter(|(key, _)| !NO_TEXT.contains(&key.as_str()))
                    .for_each(|(_, value)| add(value, strings));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut strings = Vec::new();
    let fields = fields.iter().filter(|(key, _)| !NO_TEXT.contains(&key.as_str()));
    fields.for_each(|(_, value)| add(value, &mut strings));
    strings
}

/// Every string in a value; numbers and keys are no texts.
fn leaves<'a>(role: &'a str, value: &'a Value, at: &str, texts: &mut Vec<Text<'a>>) {
    match value {
        Value::String(text) => {
            texts.push(Text { role, text: Cow::Borrowed(text), place: Place::Leaf(at.to_owned()) });
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| leaves(role, item, &below(at, &n.to_string()), texts));
        }
        Value::Object(map) => map.iter().for_each(|(key, value)| leaves(role, value, &below(at, key), texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The JSON pointer of a key below `at`.
fn below(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn set_leaves(value: &mut Value, changed: &[(&Place, &str)]) -> Option<()> {
    for (place, new) in changed {
        let Place::Leaf(pointer) = place else { return None };
        *value.pointer_mut(pointer)? = Value::from(*new);
    }
    Some(())
}

/// Arguments that are no JSON object are no arguments.
fn set_arguments(call: &mut ToolCall, new: &str) -> Option<()> {
    serde_json::from_str::<Map<String, Value>>(new).ok()?;
    call.function.arguments = new.into();
    Some(())
}
