//! `redact_pii`: personal data never reaches the model or a tool, and the caller gets it back.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gatehook_events::{Event, Input, Message, Output, Permission};
use gatehook_scan::pii::{self, KINDS, Kind, Kinds};

use super::redaction::{self, Redaction};
use super::{Arguments, Judge, Judging, texts};
use crate::config::suggest;
use crate::content::{Digests, Recall};
use crate::definition::Patch;
use crate::event_class::is_inference;
use crate::find::{Find, Found, Others};
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;
use crate::streaming::{Scan, Streaming};

struct RedactPii {
    kinds: Kinds,
    /// Messages that hold none. What is put into the others depends on all of them.
    clean: Recall,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    if arguments.definition.patch == Patch::MergePatch {
        let message = "`redact_pii` gives whole values, which a merge patch would thin out".to_owned();
        return Err(DefinitionError { field: "patch", message, help: Some("remove `patch`".to_owned()) });
    }
    arguments.warn_if_concurrent("redact_pii");
    let mut kinds = Kinds::NONE;
    for name in arguments.args {
        kinds = match kinds.with(name) {
            Some(kinds) => kinds,
            None if arguments.is_native() => {
                let known = KINDS.each_ref().map(Kind::name);
                let message = format!("`redact_pii` knows no kind `{name}`");
                return Err(Arguments::wrong(message, &suggest::one_of(name, &known)));
            }
            None => kinds,
        };
    }
    arguments.warn_if_concurrent("redact_pii");
    let kinds = if kinds == Kinds::NONE { Kinds::ALL } else { kinds };
    Ok(Judging::handler(RedactPii { kinds, clean: Recall::by_content() }))
}

impl Judge for RedactPii {
    const STREAMS: Streaming = Streaming::Scan;

    fn scan(&self) -> Option<Box<dyn Scan>> {
        Some(Box::new(pii::Growing::new(self.kinds)))
    }

    fn finds(&self) -> Option<Arc<dyn Find>> {
        Some(Arc::new(Values(self.kinds)))
    }

    fn judge(&self, event: Event, input: &Input, others: &Others) -> BuiltinResult {
        let values = Values(self.kinds);
        let mut plain = Redaction::new(&values, others).with_numbers();
        Ok(match event {
            Event::ToolInputTransform | Event::PreToolUse => {
                redaction::tool_input(input, &mut plain, "personal data was")
            }
            Event::BeforeLlmCall | Event::PreInference => self.messages(event, input, others),
            Event::ToolResponseTransform | Event::PostToolUse => redaction::tool_response(input, &mut plain),
            Event::PostInference => redaction::answer(input, &mut plain),
            _ => {
                tracing::debug!(event = event.name(), "redact_pii has nothing to rewrite here");
                None
            }
        })
    }
}

impl RedactPii {
    fn messages(&self, event: Event, input: &Input, others: &Others) -> Option<Output> {
        let mut numbered = Numbered { event, input, taken: None, pairs: Vec::new(), known: HashMap::new(), last: 0 };
        let values = Values(self.kinds);
        let instead = |found: &Found, value: &str| numbered.placeholder(&found.word, value).to_string();
        let mut redact = Redaction::with(&values, others, instead).with_numbers();
        let mut known = self.clean.look_up(event, input, &Digests::default());
        let mut places = 0..;
        let redacted = redaction::each(input.messages.as_deref()?, |message| {
            let place = places.next()?;
            if known.as_ref().is_some_and(|known| known.is_known(place)) {
                return None;
            }
            let redacted = redaction::message(message, &mut redact);
            if let (None, Some(known)) = (&redacted, &mut known) {
                known.passes(place);
            }
            redacted
        });
        if let Some(known) = known {
            known.remember();
        }
        drop(redact);
        let permission = is_inference(event).then_some(Permission::Modify);
        Some(Output { permission, messages: Some(redacted?), placeholders: numbered.pairs, ..Output::default() })
    }
}

/// Finds values of these kinds.
struct Values(Kinds);

impl Find for Values {
    fn find(&self, _: Option<&str>, text: &str) -> Vec<Found> {
        let word = |kind: &Kind| format!("<{}>", kind.word()).into();
        let found = pii::find(text, self.0).into_iter();
        found.map(|found| Found { range: found.range, word: word(found.kind) }).collect()
    }
}

/// Puts a numbered placeholder in the place of each value: numbered by first appearance, so that a conversation that
/// goes on keeps its numbers, and with them the provider's cache of its beginning.
struct Numbered<'a> {
    event: Event,
    input: &'a Input,
    /// Numbers that stand in the conversation as if they were of a placeholder; looked for when the first is needed.
    taken: Option<HashSet<u32>>,
    /// Placeholders and values, in the order of the numbers.
    pairs: Vec<(Arc<str>, Arc<str>)>,
    /// The placeholders by value.
    known: HashMap<Arc<str>, Arc<str>>,
    last: u32,
}

impl Numbered<'_> {
    /// That of a value, which by itself would become `word`.
    fn placeholder(&mut self, word: &str, value: &str) -> Arc<str> {
        if let Some(placeholder) = self.known.get(value) {
            return placeholder.clone();
        }
        let placeholder: Arc<str> = format!("{}_{}>", word.trim_end_matches('>'), self.next()).into();
        let value: Arc<str> = value.into();
        self.pairs.push((placeholder.clone(), value.clone()));
        self.known.insert(value, placeholder.clone());
        placeholder
    }

    /// The next number that nobody can take for another.
    fn next(&mut self) -> u32 {
        let taken = self.taken.get_or_insert_with(|| taken(self.event, self.input));
        self.last += 1;
        while taken.contains(&self.last) {
            self.last += 1;
        }
        self.last
    }
}

/// The numbers that stand in an input behind the word of a kind, as in `EMAIL_7`. Those in thinking are our own: signed
/// thinking comes back as the model wrote it, with our placeholders, and they go on to mean what they meant.
fn taken(event: Event, input: &Input) -> HashSet<u32> {
    let without_thinking = |message: &Message| Message { thinking: None, ..message.clone() };
    let messages = input.messages.as_deref().map(|messages| messages.iter().map(without_thinking).collect());
    let mut taken = HashSet::new();
    texts::any(event, &Input { messages, ..input.clone() }, &mut |text| {
        taken.extend(text.match_indices('_').filter_map(|(at, _)| number(text, at)));
        false
    });
    taken
}

/// The number behind the `_` at `at`, if the word of a kind stands before it.
fn number(text: &str, at: usize) -> Option<u32> {
    let before = text.get(..at)?;
    KINDS.iter().find(|kind| before.ends_with(kind.word()))?;
    let digits = text.get(at + 1..)?;
    digits.get(..digits.find(|char: char| !char.is_ascii_digit()).unwrap_or(digits.len()))?.parse().ok()
}

#[cfg(test)]
mod tests;
