//! `todo`: what is to be done, a list for each session.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use gatehook_engine::events::Message;
use serde::Deserialize;
use serde_json::json;

use super::builtin::spec;
use super::workspace::{Refused, Tried};
use super::{Calling, Tool, ToolErrorKind, ToolOutput, ToolSpec, Working, arguments};

/// Sessions whose lists are kept: those that wrote last.
const SESSIONS: usize = 256;
/// Items of a list, and bytes of each.
const ITEMS: usize = 200;
const TEXT: usize = 2000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    items: Option<Vec<Item>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    text: String,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    Pending,
    InProgress,
    Done,
}

/// What stands before an item of a list that is shown.
const MARKS: [(Status, &str); 3] = [(Status::Pending, "[ ] "), (Status::InProgress, "[~] "), (Status::Done, "[x] ")];
/// What stands before the further lines of an item.
const MORE: &str = "    ";
const EMPTY: &str = "(the list is empty)";

/// The tool, with all lists.
pub(super) struct Todo {
    spec: ToolSpec,
    /// The one that was written last is the last.
    lists: Mutex<VecDeque<(Arc<str>, Vec<Item>)>>,
}

impl Todo {
    pub(super) fn new() -> Self {
        let description = "Keeps the list of what is to be done. With `items` it is replaced as a whole; without, it is \
                           shown. Use it for work of several steps, and keep one item in progress.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "maxItems": ITEMS,
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string"},
                            "status": {"type": "string", "enum": ["pending", "in_progress", "done"]},
                        },
                        "required": ["text"],
                        "additionalProperties": false,
                    },
                },
            },
            "additionalProperties": false,
        });
        Self { spec: spec("todo", description, parameters), lists: Mutex::default() }
    }

    fn list(&self, session: &Arc<str>, given: Arguments) -> Tried<ToolOutput> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(items) = given.items {
            check(&items)?;
            put(&mut lists, session, items);
        }
        let items = lists.iter().find(|(of, _)| of == session).map(|(_, items)| items.as_slice());
        Ok(ToolOutput::text(shown(items.unwrap_or_default())))
    }
}

fn put(lists: &mut VecDeque<(Arc<str>, Vec<Item>)>, session: &Arc<str>, items: Vec<Item>) {
    lists.retain(|(of, _)| of != session);
    if items.is_empty() {
        return;
    }
    if lists.len() >= SESSIONS {
        lists.pop_front();
    }
    lists.push_back((Arc::clone(session), items));
}

fn check(items: &[Item]) -> Tried<()> {
    let invalid = |why: &str| Err(Refused::new(ToolErrorKind::InvalidInput, why));
    if items.len() > ITEMS {
        return invalid("200 items are the most");
    }
    if items.iter().any(|item| item.text.trim().is_empty() || item.text.len() > TEXT) {
        return invalid("an item is empty, or longer than 2000 bytes");
    }
    Ok(())
}

fn shown(items: &[Item]) -> String {
    if items.is_empty() {
        return EMPTY.to_owned();
    }
    let line = |item: &Item| {
        let mark = MARKS.iter().find(|(status, _)| *status == item.status).map_or("", |(_, mark)| mark);
        format!("{mark}{}\n", item.text.trim().replace('\n', &format!("\n{MORE}")))
    };
    items.iter().map(line).collect()
}

/// The list that was shown, whatever hooks have said behind it; `None` where none was.
fn read(shown: &str) -> Option<Vec<Item>> {
    let mut items: Vec<Item> = Vec::new();
    for line in shown.lines() {
        let begins = MARKS.iter().find_map(|(status, mark)| Some((*status, line.strip_prefix(mark)?)));
        match (begins, line.strip_prefix(MORE), items.last_mut()) {
            (Some((status, text)), ..) => items.push(Item { text: text.to_owned(), status }),
            (None, Some(more), Some(item)) => item.text.extend(["\n", more]),
            _ => break,
        }
    }
    (shown.starts_with(EMPTY) || !items.is_empty()).then_some(items)
}

impl Tool for Todo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, call: Calling<'a>) -> Working<'a> {
        let listed = arguments::read(call.arguments).and_then(|given| self.list(&call.scene.session_id, given));
        Box::pin(std::future::ready(listed.unwrap_or_else(ToolOutput::from)))
    }

    fn recall(&self, session: &Arc<str>, messages: &[Message]) {
        let name = &self.spec.tool.name;
        let results = messages.iter().rev().filter(|said| &*said.role == "tool" && said.name.as_ref() == Some(name));
        let last = results.filter_map(|said| read(said.content.as_deref()?)).find(|items| check(items).is_ok());
        put(&mut self.lists.lock().unwrap_or_else(PoisonError::into_inner), session, last.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn items() -> impl Strategy<Value = Vec<Item>> {
        let status = prop_oneof![Just(Status::Pending), Just(Status::InProgress), Just(Status::Done)];
        let text = "(\\[[ ~x]\\] |    |[a-z(]{0,3}|\n){1,6}"
            .prop_filter("an item says something", |text| !text.trim().is_empty());
        proptest::collection::vec((text, status).prop_map(|(text, status)| Item { text, status }), 0..5)
    }

    proptest! {
        #[test]
        fn a_list_is_read_as_it_was_shown(items in items(), hooks in prop_oneof![Just(""), Just("\n\n[ ] a hook's word")]) {
            let trimmed: Vec<Item> = items.iter().map(|item| Item { text: item.text.trim().to_owned(), ..item.clone() }).collect();
            prop_assert_eq!(read(&format!("{}{hooks}", shown(&items))), Some(trimmed));
        }

        #[test]
        fn what_is_no_list_is_none(text in "[^\\[(].{0,40}") {
            prop_assert_eq!(read(&text), None);
        }
    }
}
