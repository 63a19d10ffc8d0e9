//! What really happened, in the vectors' own words.

use std::path::Path;
use std::time::Duration;

use gatehook_events::{Decision, OutcomeKind, Verdict};
use serde_json::{Map, Value, json};

/// A verdict by the names that expectations use, and what hooks left behind.
#[derive(Debug)]
pub(crate) struct Actual {
    fields: Map<String, Value>,
    /// How the hooks ended, as in `nonzero_exit`.
    pub(crate) outcomes: Vec<String>,
}

impl Actual {
    /// A dispatch that could not be made, and why where that has a name.
    pub(crate) fn dispatch_error(why: Option<&str>) -> Self {
        let fields = Map::from_iter([("dispatch_error".to_owned(), Value::Bool(true))]);
        Self { fields, outcomes: why.map(str::to_owned).into_iter().collect() }
    }

    pub(crate) fn new(verdict: Verdict, elapsed: Duration, folder: &Path) -> Result<Self, String> {
        let kinds = |blocks| -> Vec<String> {
            verdict.notices.iter().filter(|notice| notice.blocks == blocks).map(|notice| notice.kind.name()).collect()
        };
        let decision = match verdict.decision {
            None => "",
            Some(Decision::Allow) => "allow",
            Some(Decision::Ask) => "ask",
            Some(Decision::Deny) => "deny",
        };
        let failure = verdict.outcomes.iter().find_map(|outcome| match outcome.kind {
            OutcomeKind::Failed(kind) => Some(kind.name()),
            _ => None,
        });
        let metadata = Some(&verdict.metadata).filter(|metadata| !metadata.is_empty());
        let instructions = Some(&verdict.instruction_context).filter(|instructions| !instructions.is_empty());
        let fields = json!({
            "allowed": verdict.allowed,
            "exit_code": verdict.exit_code,
            "permission_allowed": verdict.permission_allowed,
            "decision": decision,
            "decision_reason": verdict.decision_reason,
            "modified_input": verdict.rewritten.tool_input,
            "summary": verdict.summary,
            "updated_messages": verdict.rewritten.messages,
            "updated_tool_response": verdict.rewritten.tool_response,
            "metadata": metadata,
            "additional_context": verdict.additional_context,
            "additional_context_len": verdict.additional_context.chars().count(),
            "instruction_context": instructions,
            "stderr": verdict.stderr,
            "error_kind": failure,
            "message": verdict.message,
            "message_kinds": kinds(true),
            "system_message": verdict.system_message,
            "system_message_kinds": kinds(false),
            "elapsed_ms": u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            "files": files(folder)?,
        });
        let outcomes = verdict.outcomes.iter().map(|outcome| match outcome.kind {
            OutcomeKind::Ok => "ok".to_owned(),
            OutcomeKind::Blocked => "blocked".to_owned(),
            OutcomeKind::Failed(kind) => kind.name(),
        });
        let Value::Object(fields) = fields else { return Err("the verdict is no object".to_owned()) };
        Ok(Self { fields, outcomes: outcomes.collect() })
    }

    /// The same with more that was found, by name.
    pub(crate) fn with(mut self, more: Value) -> Self {
        if let Value::Object(more) = more {
            self.fields.extend(more);
        }
        self
    }

    pub(crate) fn get(&self, name: &str) -> &Value {
        self.fields.get(name).unwrap_or(&Value::Null)
    }
}

/// The files that hooks left in their folder, by name.
fn files(folder: &Path) -> Result<Map<String, Value>, String> {
    let mut files = Map::new();
    for entry in std::fs::read_dir(folder).map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        if entry.path().is_file() {
            let text = std::fs::read(entry.path()).map_err(|error| error.to_string())?;
            let text = String::from_utf8_lossy(&text).into_owned();
            files.insert(entry.file_name().to_string_lossy().into_owned(), text.into());
        }
    }
    Ok(files)
}
