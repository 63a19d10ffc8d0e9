//! `loop_guard`: a model that asks for the same again and again is stopped.

use std::sync::Arc;

use gatehook_events::{Event, Input, ToolCall};
use regex_automata::meta::Regex;
use serde_json::Value;

use super::sessions::Sessions;
use super::{Arguments, Judge, Judging, NoText, deny};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::matcher::anchored;
use crate::registry::BuiltinResult;
use crate::streaming::{Scan, Streaming};

const DEFAULT: usize = 5;

struct LoopGuard {
    /// How many identical batches one after another are too many.
    most: usize,
    /// Tools that are called again and again on purpose.
    polling: Option<Regex>,
    /// The last call of each session and how often it came, where calls are seen one by one.
    last: Sessions<(String, usize)>,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let help = "as in `args: [\"5\", \"wait_.*\"]`: how many are too many, then patterns of tools that poll";
    let (most, patterns) = match arguments.args.split_first() {
        Some((first, rest)) if first.trim().parse::<i64>().is_ok() => (first.trim().parse::<usize>().ok(), rest),
        _ => (Some(DEFAULT), arguments.args),
    };
    let most =
        most.filter(|most| *most >= 2).ok_or_else(|| Arguments::wrong("`loop_guard` takes a number above 1", help))?;
    let patterns: Result<Vec<_>, _> = patterns.iter().map(|pattern| anchored(pattern, None)).collect();
    let patterns = patterns.map_err(|error| Arguments::wrong(error.to_string(), help))?;
    let polling = match patterns.as_slice() {
        [] => None,
        patterns => Some(Regex::new_many(patterns).map_err(|error| Arguments::wrong(error.to_string(), help))?),
    };
    Ok(Judging::handler(LoopGuard { most, polling, last: Sessions::default() }))
}

impl Judge for LoopGuard {
    const STREAMS: Streaming = Streaming::Scan;

    fn scan(&self) -> Option<Box<dyn Scan>> {
        Some(Box::new(NoText::default()))
    }

    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        let times = match event {
            Event::PreInference | Event::BeforeLlmCall | Event::PostInference => self.in_history(input),
            _ => self.of_call(input),
        };
        let reason = || format!("the same tool calls were made {times} times in a row; try something else");
        Ok((times >= self.most).then(|| deny(event, reason())))
    }
}

impl LoopGuard {
    /// How often the last batch of calls stands at the end of the conversation. A word of the user begins anew.
    fn in_history(&self, input: &Input) -> usize {
        let messages = input.messages.iter().flat_map(|messages| messages.iter()).rev();
        let asked =
            messages.take_while(|message| &*message.role != "user").filter_map(|message| message.tool_calls.as_deref());
        let mut batches = input.tool_calls.as_deref().into_iter().chain(asked).filter(|calls| !calls.is_empty());
        let Some(last) = batches.next() else { return 0 };
        if self.polls(last.iter().map(|call| &*call.function.name)) {
            return 0;
        }
        let last = canonical(last);
        1 + batches.take_while(|calls| canonical(calls) == last).count()
    }

    /// How often this call came in a row in its session.
    fn of_call(&self, input: &Input) -> usize {
        let name = input.tool_name.as_deref().unwrap_or_default();
        if self.polls(std::iter::once(name)) {
            return 0;
        }
        let arguments = input.tool_input.as_deref().cloned().unwrap_or_default();
        let call = format!("{name} {}", sorted(&Value::Object(arguments)));
        self.last.with(input.session_id.as_deref().unwrap_or_default(), |(last, times)| {
            *times = if *last == call { *times + 1 } else { 1 };
            *last = call;
            *times
        })
    }

    fn polls<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> bool {
        self.polling.as_ref().is_some_and(|polling| names.all(|name| polling.is_match(name)))
    }
}

/// Names and arguments, whatever the order of keys and the blanks between them.
fn canonical(calls: &[ToolCall]) -> Vec<(String, String)> {
    let call = |call: &ToolCall| {
        let arguments = &*call.function.arguments;
        let arguments =
            serde_json::from_str::<Value>(arguments).map_or_else(|_| arguments.to_owned(), |it| sorted(&it));
        (call.function.name.to_string(), arguments)
    };
    calls.iter().map(call).collect()
}

/// JSON text with sorted keys.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            let fields =
                fields.into_iter().map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), sorted(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{executor, verdict_of};
    use super::*;

    fn asked(arguments: &str) -> Value {
        json!({"role": "assistant", "tool_calls": [{"function": {"name": "read", "arguments": arguments}}]})
    }

    async fn allowed(args: &[&str], messages: Vec<Value>) -> bool {
        let executor = executor(Event::PreInference, "loop_guard", args).unwrap();
        verdict_of(&executor, Event::PreInference, json!({"messages": messages})).await.allowed
    }

    #[tokio::test]
    async fn identical_batches_are_counted_whatever_their_spelling() {
        let same =
            [r#"{"a":1,"b":{"d":2,"c":3}}"#, r#"{ "b": {"c":3,"d":2}, "a": 1 }"#, r#"{"a":1,"b":{"c":3,"d":2}}"#];
        let batches = |count: usize| same.iter().cycle().take(count).map(|it| asked(it)).collect::<Vec<_>>();
        for (args, count, passes) in
            [(&["3"][..], 2, true), (&["3"], 3, false), (&[], 4, true), (&[], 5, false), (&["3", "re.*"], 9, true)]
        {
            assert_eq!(allowed(args, batches(count)).await, passes, "{args:?}, {count} times");
        }
        let mut broken = batches(2);
        broken.push(asked(r#"{"a":2}"#));
        broken.extend(batches(2));
        assert!(allowed(&["3"], broken).await, "another call stood between");
        let mut told = batches(2);
        told.push(json!({"role": "user", "content": "again"}));
        told.extend(batches(2));
        assert!(allowed(&["3"], told).await, "the user wants it again");
    }

    #[tokio::test]
    async fn the_answer_itself_counts() {
        let executor = executor(Event::PostInference, "loop_guard", &["3"]).unwrap();
        for (before, allowed) in [(1, true), (2, false)] {
            let messages: Vec<Value> = (0..before).map(|_| asked("{}")).collect();
            let input =
                json!({"messages": messages, "tool_calls": [{"function": {"name": "read", "arguments": "{}"}}]});
            assert_eq!(verdict_of(&executor, Event::PostInference, input).await.allowed, allowed, "{before} before");
        }
    }

    #[tokio::test]
    async fn single_calls_are_counted_per_session() {
        let executor = executor(Event::PreToolUse, "loop_guard", &["2"]).unwrap();
        let call = async |session: &str, path: &str| {
            let input = json!({"session_id": session, "tool_name": "read", "tool_input": {"path": path}});
            verdict_of(&executor, Event::PreToolUse, input).await.allowed
        };
        assert!(call("a", "x").await && call("b", "x").await && call("a", "y").await);
        assert!(!call("a", "y").await);
        assert!(call("a", "x").await && !call("a", "x").await);
    }
}
