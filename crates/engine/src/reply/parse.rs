//! One JSON object into an [`Output`]: keys matched exactly, none of them twice, nothing after it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Block, FailureKind, Message, Output, Permission, PermissionDecision, Profile};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::known::{INSTRUCTION, Known, MESSAGE, foreign_key};
use crate::unique::{Repeated, Unique};

/// Why a reply cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Its kind.
    pub kind: FailureKind,
    /// The cause in a sentence fragment, without the reply's own text.
    pub message: String,
}

impl Fault {
    pub(super) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Whether there was no object to be had at all.
    pub(super) fn is_undecodable(&self) -> bool {
        matches!(self.kind, FailureKind::MalformedJson | FailureKind::TrailingData)
    }
}

/// Fields that docker-agent does not know.
const NATIVE_ALONE: &[&str] = &[
    "user_message",
    "agent_message",
    "permission",
    "messages",
    "output_text",
    "output_thinking",
    "tool_calls",
    "holdback_chars",
];

/// Reads one reply that starts with `{`.
///
/// `strict` makes unknown fields failures. Values that are `null` are absent.
///
/// ```
/// use gatehook_engine::events::{FailureKind, Profile};
/// use gatehook_engine::reply::parse;
///
/// let output = parse(br#"{"decision":"block","reason":"no"}"#, Profile::Native, false)?;
/// assert_eq!(output.reason.as_deref(), Some("no"));
/// let fault = parse(br#"{"reason":"a","reason":"b"}"#, Profile::Native, false).unwrap_err();
/// assert_eq!(fault.kind, FailureKind::DuplicateKey);
/// # Ok::<(), gatehook_engine::reply::Fault>(())
/// ```
pub fn parse(text: &[u8], profile: Profile, strict: bool) -> Result<Output, Fault> {
    let Decoded { output, wrong } = decode(text, profile, strict)?;
    match wrong.decision.or(wrong.permission) {
        Some(fault) => Err(fault),
        None => Ok(output),
    }
}

/// A reply that could be decoded. Its verdicts may still be words that nobody knows.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) output: Output,
    pub(super) wrong: WrongWords,
}

/// Verdicts that are none.
#[derive(Debug, Default)]
pub(super) struct WrongWords {
    pub(super) decision: Option<Fault>,
    pub(super) permission: Option<Fault>,
}

/// Reads a reply as far as it can be read without judging its verdicts. Faults come in docker-agent's order: syntax;
/// the first wrong type, unknown or repeated field; what follows the object.
pub(super) fn decode(text: &[u8], profile: Profile, strict: bool) -> Result<Decoded, Fault> {
    let reading = Reading { profile, strict, ..Reading::default() };
    let mut json = serde_json::Deserializer::from_slice(text);
    let output = json.deserialize_map(Top(&reading)).map_err(|error| reading.fault_of(&error))?;
    if let Some(fault) = reading.first_fault() {
        return Err(fault);
    }
    json.end().map_err(|_| Fault::new(FailureKind::TrailingData, "something follows its JSON reply"))?;
    Ok(Decoded { output, wrong: reading.wrong.into_inner() })
}

/// What is known while a reply is read.
#[derive(Default)]
struct Reading {
    profile: Profile,
    strict: bool,
    /// The first fault that does not end the reading: a fault of syntax may follow, and goes before it.
    fault: RefCell<Option<Fault>>,
    wrong: RefCell<WrongWords>,
    repeated: Repeated,
    /// The field that is being read.
    field: RefCell<String>,
}

impl Reading {
    fn fault_of(&self, error: &serde_json::Error) -> Fault {
        if !error.is_data() {
            let message = format!("its reply is no JSON: line {}, column {}", error.line(), error.column());
            return Fault::new(FailureKind::MalformedJson, message);
        }
        self.first_fault().unwrap_or_else(|| {
            let message = format!("`{}` of its reply is of the wrong type", self.field.borrow());
            Fault::new(FailureKind::MalformedJson, message)
        })
    }

    fn first_fault(&self) -> Option<Fault> {
        self.note_repeated();
        self.fault.take()
    }

    /// Remembers a fault, unless there was one before.
    fn note(&self, kind: FailureKind, message: String) {
        self.fault.borrow_mut().get_or_insert_with(|| Fault::new(kind, message));
    }

    fn note_repeated(&self) {
        if let Some(key) = self.repeated.take() {
            self.note(FailureKind::DuplicateKey, format!("`{}` stands twice in its reply", short(&key)));
        }
    }

    fn key<'de, A: MapAccess<'de>>(
        &self,
        map: &mut A,
        seen: &mut BTreeSet<String>,
    ) -> Result<Option<String>, A::Error> {
        self.note_repeated();
        let Some(key) = map.next_key::<Cow<'_, str>>()?.map(Cow::into_owned) else { return Ok(None) };
        if !seen.insert(key.clone()) {
            self.repeated.borrow_mut().get_or_insert_with(|| key.clone());
        }
        short(&key).clone_into(&mut self.field.borrow_mut());
        Ok(Some(key))
    }

    fn knows(&self, key: &str) -> bool {
        self.profile == Profile::Native || !NATIVE_ALONE.contains(&key)
    }

    fn unknown<'de, A: MapAccess<'de>>(&self, map: &mut A, key: &str) -> Result<(), A::Error> {
        if self.strict {
            self.note_unknown(key);
        }
        map.next_value_seed(Unique(&self.repeated)).map(drop)
    }

    fn note_unknown(&self, key: &str) {
        self.note(FailureKind::UnknownField, format!("`strict_output` knows no field `{}`", short(key)));
    }

    /// One of a few words; `""` is none.
    fn word<'de, A: MapAccess<'de>, T: Copy>(
        &self,
        map: &mut A,
        words: &[(&str, T)],
        kind: FailureKind,
    ) -> Result<Option<T>, A::Error> {
        let Some(word) = map.next_value::<Option<Cow<'_, str>>>()?.filter(|word| !word.is_empty()) else {
            return Ok(None);
        };
        let found = words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
        if found.is_none() && !self.profile.spec().lenient_replies {
            let known: Vec<_> = words.iter().map(|(known, _)| format!("`{known}`")).collect();
            let fault = Fault::new(kind, format!("`{}` is none of {}", self.field.borrow(), known.join(", ")));
            let mut wrong = self.wrong.borrow_mut();
            let slot = if kind == FailureKind::InvalidDecision { &mut wrong.decision } else { &mut wrong.permission };
            slot.get_or_insert(fault);
        }
        Ok(found)
    }

    /// A value of this type.
    fn value<'de, A: MapAccess<'de>, T: DeserializeOwned>(&self, map: &mut A) -> Result<Option<T>, A::Error> {
        serde_json::from_value(map.next_value_seed(Unique(&self.repeated))?).map_err(A::Error::custom)
    }

    /// The conversation of a reply. docker-agent's messages need no role.
    fn messages<'de, A: MapAccess<'de>>(&self, map: &mut A) -> Result<Option<Vec<Message>>, A::Error> {
        let mut value = map.next_value_seed(Unique(&self.repeated))?;
        if self.profile != Profile::Native {
            self.note_foreign(&value, MESSAGE);
            for message in value.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
                message.entry("role").or_insert_with(|| "".into());
            }
        }
        serde_json::from_value(value).map_err(A::Error::custom)
    }

    fn instructions<'de, A: MapAccess<'de>>(&self, map: &mut A) -> Result<Option<Vec<Value>>, A::Error> {
        let items: Option<Vec<Map<String, Value>>> = self.value(map)?;
        let items = items.map(|items| items.into_iter().map(Value::Object).collect::<Vec<_>>());
        items.iter().flatten().for_each(|item| self.note_foreign(item, INSTRUCTION));
        Ok(items)
    }

    /// Under `strict`, that objects inside the reply have known fields alone.
    fn note_foreign(&self, value: &Value, known: Known) {
        if let Some(key) = foreign_key(value, known).filter(|_| self.strict) {
            self.note_unknown(key);
        }
    }
}

/// A key as it may stand in a message.
fn short(key: &str) -> String {
    crate::text::plain(key).chars().take(64).collect()
}

struct Top<'a>(&'a Reading);

impl<'de> Visitor<'de> for Top<'_> {
    type Value = Output;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Output, A::Error> {
        let reading = self.0;
        let (mut output, mut seen) = (Output::default(), BTreeSet::new());
        while let Some(key) = reading.key(&mut map, &mut seen)? {
            match key.as_str() {
                "continue" => output.continue_ = map.next_value()?,
                "stop_reason" => output.stop_reason = map.next_value()?,
                "suppress_output" => output.suppress_output = map.next_value::<Option<bool>>()?.unwrap_or_default(),
                "system_message" => output.system_message = map.next_value()?,
                "decision" => {
                    output.decision = reading.word(&mut map, BLOCK, FailureKind::InvalidDecision)?;
                }
                "reason" => output.reason = map.next_value()?,
                "hook_specific_output" => output.hook_specific_output = map.next_value_seed(Specific(reading))?,
                key if !reading.knows(key) => reading.unknown(&mut map, key)?,
                "user_message" => output.user_message = map.next_value()?,
                "agent_message" => output.agent_message = map.next_value()?,
                "permission" => {
                    output.permission = reading.word(&mut map, PERMISSION, FailureKind::InvalidPermissionDecision)?;
                }
                "messages" => output.messages = reading.value(&mut map)?,
                "output_text" => output.output_text = map.next_value()?,
                "output_thinking" => output.output_thinking = map.next_value()?,
                "tool_calls" => output.tool_calls = reading.value(&mut map)?,
                "holdback_chars" => output.holdback_chars = map.next_value()?,
                key => reading.unknown(&mut map, key)?,
            }
        }
        Ok(output)
    }
}

const BLOCK: &[(&str, Block)] = &[("block", Block::Block)];

const PERMISSION: &[(&str, Permission)] = &[
    ("allow", Permission::Allow),
    ("deny", Permission::Deny),
    ("ask", Permission::Ask),
    ("modify", Permission::Modify),
];

const PERMISSION_DECISION: &[(&str, PermissionDecision)] =
    &[("allow", PermissionDecision::Allow), ("ask", PermissionDecision::Ask), ("deny", PermissionDecision::Deny)];

/// `hook_specific_output`, or `null`.
struct Specific<'a>(&'a Reading);

impl<'de> DeserializeSeed<'de> for Specific<'_> {
    type Value = Option<HookSpecificOutput>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Specific<'_> {
    type Value = Option<HookSpecificOutput>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let reading = self.0;
        let (mut output, mut seen) = (HookSpecificOutput::default(), BTreeSet::new());
        while let Some(key) = reading.key(&mut map, &mut seen)? {
            match key.as_str() {
                "hook_event_name" => output.hook_event_name = map.next_value()?,
                "permission_decision" => {
                    let kind = FailureKind::InvalidPermissionDecision;
                    output.permission_decision = reading.word(&mut map, PERMISSION_DECISION, kind)?;
                }
                "permission_decision_reason" => output.permission_decision_reason = map.next_value()?,
                "updated_input" => output.updated_input = reading.value(&mut map)?,
                "additional_context" => output.additional_context = map.next_value()?,
                "instruction_context" => output.instruction_context = reading.instructions(&mut map)?,
                "summary" => output.summary = map.next_value()?,
                "updated_messages" => output.updated_messages = reading.messages(&mut map)?,
                "updated_tool_response" if reading.profile == Profile::Native => {
                    output.updated_tool_response = reading.value(&mut map)?;
                }
                "updated_tool_response" => {
                    output.updated_tool_response = map.next_value::<Option<String>>()?.map(Value::String);
                }
                "metadata" => output.metadata = reading.value(&mut map)?,
                key => reading.unknown(&mut map, key)?,
            }
        }
        Ok(Some(output))
    }
}
