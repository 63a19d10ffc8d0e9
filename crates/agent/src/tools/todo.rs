//! `todo`: what is to be done, a list for each session.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

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

#[derive(Debug, Clone, Deserialize)]
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
            lists.retain(|(of, _)| of != session);
            if lists.len() >= SESSIONS {
                lists.pop_front();
            }
            lists.push_back((Arc::clone(session), items));
        }
        let items = lists.iter().find(|(of, _)| of == session).map(|(_, items)| items.as_slice());
        Ok(ToolOutput::text(shown(items.unwrap_or_default())))
    }
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
        return "(the list is empty)".to_owned();
    }
    let line = |item: &Item| {
        let mark = match item.status {
            Status::Pending => ' ',
            Status::InProgress => '~',
            Status::Done => 'x',
        };
        format!("[{mark}] {}\n", item.text.trim())
    };
    items.iter().map(line).collect()
}

impl Tool for Todo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, call: Calling<'a>) -> Working<'a> {
        let listed = arguments::read(call.arguments).and_then(|given| self.list(&call.scene.session_id, given));
        Box::pin(std::future::ready(listed.unwrap_or_else(ToolOutput::from)))
    }
}
