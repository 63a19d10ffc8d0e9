//! Putting something else in the place of what must not pass, wherever texts stand in an input.

mod edited;
pub(super) mod json;

use std::sync::Arc;

use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Before, Event, FunctionCall, Input, Message, Output, Permission, ToolCall};

use crate::event_class::is_inference;
use crate::find::{Find, Found, Others};
use edited::{Edited, merged};

/// How often a redacted text is looked through again, at most: what stood beside a value may show only without it.
const PASSES: usize = 8;

/// What finds it, and what is put in its place. Asked for one text after another, in the order of the conversation.
pub(super) struct Redaction<'a> {
    own: &'a dyn Find,
    /// What stands in the place of what `own` finds.
    instead: Instead<'a>,
    others: &'a Others,
    /// Numbers in JSON are looked at too.
    numbers: bool,
    /// What came before the text, where it is a segment.
    before: Option<&'a Before>,
}

/// What is put in the place of a value.
type Instead<'a> = Box<dyn FnMut(&Found, &str) -> String + 'a>;

impl<'a> Redaction<'a> {
    /// Puts the finder's own words in the place of what it finds.
    pub(super) fn new(own: &'a dyn Find, others: &'a Others) -> Self {
        Self::with(own, others, |found, _| found.word.clone().into_owned())
    }

    /// Puts there what `instead` says of a value.
    pub(super) fn with(
        own: &'a dyn Find,
        others: &'a Others,
        instead: impl FnMut(&Found, &str) -> String + 'a,
    ) -> Self {
        Self { own, instead: Box::new(instead), others, numbers: false, before: None }
    }

    /// Looks at numbers in JSON too.
    pub(super) fn with_numbers(self) -> Self {
        Self { numbers: true, ..self }
    }

    /// A text without it; `None` where there is none in it.
    pub(super) fn text(&mut self, text: &str) -> Option<String> {
        self.named(None, None, text)
    }

    /// The same for a string that stands in JSON under the key `name`, which has become `renamed`.
    pub(super) fn named(&mut self, name: Option<&str>, renamed: Option<&str>, text: &str) -> Option<String> {
        let mut edits = self.found(self.own, name, text);
        let may_hide = renamed.is_some() && !self.others.is_empty();
        if edits.is_empty() && !may_hide {
            return None;
        }
        let (mut now, mut now_named, mut is_own) = (text.to_owned(), name, true);
        for _ in 0..PASSES {
            let next = Edited::new(&now, &edits, |found, value| match is_own {
                true => (self.instead)(found, value),
                false => found.word.clone().into_owned(),
            });
            let next_named = renamed.or(name);
            let hidden = self.hidden((now_named, &now), &edits, (next_named, &next));
            is_own = hidden.is_empty();
            edits = if is_own { self.found(self.own, next_named, &next.text) } else { hidden };
            (now, now_named) = (next.text, next_named);
            if edits.is_empty() {
                break;
            }
        }
        (now != text).then_some(now)
    }

    /// The text to stand in the place of a number in JSON, which is given as it is written.
    pub(super) fn number(&mut self, number: &str) -> Option<String> {
        self.text(number).filter(|_| self.numbers)
    }

    /// What a finder finds in a text; of a segment, in what is new of it: behind what has left, and behind what came, for
    /// what was taken out may have been the name of what follows.
    fn found(&self, finder: &dyn Find, name: Option<&str>, text: &str) -> Vec<Found> {
        let found = finder.find(name, text);
        let segment = self.before.and_then(|before| Some((before, text.strip_prefix(&*before.left)?)));
        let Some((Before { left, came }, new)) = segment else { return found };
        let behind = |found: Found, from: usize| {
            let start = found.range.start.max(from) - from;
            let end = found.range.end.checked_sub(from).filter(|end| start < *end)?;
            Some(Found { range: start + left.len()..end + left.len(), ..found })
        };
        let found = found.into_iter().filter_map(|found| behind(found, left.len()));
        if came == left {
            return found.collect();
        }
        let as_came = finder.find(name, &[&**came, new].concat());
        merged(found.chain(as_came.into_iter().filter_map(|found| behind(found, came.len()))).collect())
    }

    /// What the others would have found in a text and do not find any more, now that it has become another; and what those
    /// would find in it that do not see it again.
    fn hidden(
        &self,
        (name, text): (Option<&str>, &str),
        edits: &[Found],
        (next_name, next): (Option<&str>, &Edited),
    ) -> Vec<Found> {
        let mut hidden = Vec::new();
        if self.others.is_empty() {
            return hidden;
        }
        let all = self.others.before.iter().map(|other| (&**other, true));
        let all = all.chain(self.others.after.iter().map(|other| (&**other, false))).chain([(self.own, false)]);
        for (finder, is_done) in all {
            let still = self.found(finder, next_name, &next.text);
            let were = self.found(finder, name, text);
            let left = || were.iter().flat_map(|found| next.left_of(found, edits));
            hidden.extend(left().filter(|rest| !still.iter().any(|found| covers(found, rest))));
            if is_done {
                let known: Vec<Found> = left().collect();
                hidden.extend(still.into_iter().filter(|found| !known.iter().any(|rest| covers(rest, found))));
            }
        }
        merged(hidden)
    }
}

fn covers(found: &Found, other: &Found) -> bool {
    found.range.start <= other.range.start && other.range.end <= found.range.end
}

/// The arguments of a tool, those that change; `what` was redacted.
pub(super) fn tool_input(input: &Input, redact: &mut Redaction<'_>, what: &str) -> Option<Output> {
    let arguments = input.tool_input.as_deref()?;
    let changed =
        arguments.iter().filter_map(|(key, value)| Some((key.clone(), json::value(Some(key), None, value, redact)?)));
    let changed: serde_json::Map<_, _> = changed.collect();
    if changed.is_empty() {
        return None;
    }
    let tool = input.tool_name.as_deref().unwrap_or("a tool");
    Some(Output {
        system_message: Some(format!("{what} redacted in the arguments of {tool}")),
        ..Output::specific(HookSpecificOutput { updated_input: Some(changed), ..HookSpecificOutput::default() })
    })
}

/// What a tool answered.
pub(super) fn tool_response(input: &Input, redact: &mut Redaction<'_>) -> Option<Output> {
    let updated_tool_response = Some(json::value(None, None, input.tool_response.as_deref()?, redact)?);
    Some(Output::specific(HookSpecificOutput { updated_tool_response, ..HookSpecificOutput::default() }))
}

/// The conversation.
pub(super) fn messages(event: Event, input: &Input, redact: &mut Redaction<'_>) -> Option<Output> {
    let messages = each(input.messages.as_deref()?, |one| message(one, redact));
    let permission = is_inference(event).then_some(Permission::Modify);
    Some(Output { permission, messages: Some(messages?), ..Output::default() })
}

/// What the model answered.
pub(super) fn answer<'a>(input: &'a Input, redact: &mut Redaction<'a>) -> Option<Output> {
    redact.before = input.before.as_deref();
    let (output_text, output_thinking) = (shared(&input.output_text, redact), shared(&input.output_thinking, redact));
    redact.before = None;
    let output = Output {
        output_text,
        output_thinking,
        tool_calls: input.tool_calls.as_deref().and_then(|calls| each(calls, |call| tool_call(call, redact))),
        ..Output::default()
    };
    let changed = output != Output::default();
    changed.then_some(Output { permission: Some(Permission::Modify), ..output })
}

fn shared(text: &Option<Arc<str>>, redact: &mut Redaction<'_>) -> Option<Arc<str>> {
    redact.text(text.as_deref()?).map(Arc::from)
}

/// All items, the changed ones in their places; `None` where none is changed.
pub(super) fn each<T: Clone>(items: &[T], mut change: impl FnMut(&T) -> Option<T>) -> Option<Vec<T>> {
    let first = items.iter().enumerate().find_map(|(place, item)| Some((place, change(item)?)));
    let (place, changed) = first?;
    let (before, rest) = items.split_at(place);
    let after = rest.iter().skip(1).map(|item| change(item).unwrap_or_else(|| item.clone()));
    Some(before.iter().cloned().chain([changed]).chain(after).collect())
}

/// A message without it.
pub(super) fn message(message: &Message, redact: &mut Redaction<'_>) -> Option<Message> {
    let (content, thinking) = (shared(&message.content, redact), shared(&message.thinking, redact));
    let name = shared(&message.name, redact);
    let tool_calls = message.tool_calls.as_deref().and_then(|calls| each(calls, |call| tool_call(call, redact)));
    let extra = json::object(&message.extra, redact);
    if content.is_none() && thinking.is_none() && name.is_none() && tool_calls.is_none() && extra.is_none() {
        return None;
    }
    let old = message.clone();
    Some(Message {
        content: content.or(old.content),
        thinking: thinking.or(old.thinking),
        name: name.or(old.name),
        tool_calls: tool_calls.or(old.tool_calls),
        extra: extra.unwrap_or(old.extra),
        ..old
    })
}

/// A tool call without it.
fn tool_call(call: &ToolCall, redact: &mut Redaction<'_>) -> Option<ToolCall> {
    let (arguments, extra) = (json::text(&call.function.arguments, redact), json::object(&call.extra, redact));
    if arguments.is_none() && extra.is_none() {
        return None;
    }
    let old = call.clone();
    let arguments = arguments.map_or(old.function.arguments, Arc::from);
    Some(ToolCall { function: FunctionCall { arguments, ..old.function }, extra: extra.unwrap_or(old.extra), ..old })
}

#[cfg(test)]
mod tests;
