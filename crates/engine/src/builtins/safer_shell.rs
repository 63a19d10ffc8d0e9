//! `safer_shell`: what a shell line would do, before it does it.
//!
//! A line is `safe` where every command of it is known to change nothing, `destructive` where one of them is known to
//! take something away, and `unknown` else. What its commands are is read by [`shell`](super::shell); what they do is
//! said by the tables of [`commands`].

mod classify;
mod commands;

use std::collections::BTreeMap;
use std::sync::Arc;

use gatehook_events::output::HookSpecificOutput;
use gatehook_events::{Decides, Event, Input, Output, PermissionDecision, Profile};
use serde_json::{Map, Value};

use self::classify::{Finding, Label, arguments, line};
use super::{Arguments, Judge, Judging};
use crate::find::Others;
use crate::handler::{DefinitionError, Handler};
use crate::registry::BuiltinResult;

/// Fields of a tool's arguments that hold a line or a list of words.
pub(super) const FIELDS: &[&str] = &["command", "cmd", "script", "commands", "shell_command", "command_line", "argv"];

/// Tools that run shell lines, where no category says so.
const TOOLS: &[&str] = &[
    "shell",
    "bash",
    "sh",
    "zsh",
    "terminal",
    "exec",
    "shell_exec",
    "run_shell",
    "run_shell_command",
    "run_command",
    "execute_command",
    "run_in_terminal",
    "run_terminal_cmd",
    "local_shell",
    "run_shell_background",
    "run_background_job",
];

/// What a label leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// Nothing.
    Label,
    /// Everything is asked about.
    Strict,
    /// What is not safe is asked about.
    Balanced,
    /// What is not safe is denied.
    Restricted,
    /// What is destructive is asked about.
    Destructive,
}

const POLICIES: &[(&str, Policy)] = &[
    ("label", Policy::Label),
    ("autonomous", Policy::Label),
    ("strict", Policy::Strict),
    ("balanced", Policy::Balanced),
    ("restricted", Policy::Restricted),
    ("destructive", Policy::Destructive),
];

struct SaferShell {
    policy: Option<Policy>,
    profile: Profile,
}

pub(super) fn make(arguments: &Arguments<'_>) -> Result<Arc<dyn Handler>, DefinitionError> {
    let policy = match arguments.args {
        [name] => policy(name),
        _ => None,
    };
    if policy.is_none() && !arguments.args.is_empty() && arguments.is_native() {
        let message = "`safer_shell` takes `label`, `strict`, `balanced`, `restricted`, `destructive` or nothing";
        return Err(Arguments::wrong(message, "as in `args: [restricted]`"));
    }
    Ok(Judging::handler(SaferShell { policy, profile: arguments.definition.profile }))
}

fn policy(name: &str) -> Option<Policy> {
    POLICIES.iter().find_map(|(known, policy)| (*known == name).then_some(*policy))
}

/// Whether a tool runs what its arguments name.
pub(super) fn is_shell(name: &str, category: Option<&str>) -> bool {
    category == Some("shell") || TOOLS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

impl SaferShell {
    /// The hook's own policy, else the session's, else that of its contract: docker-agent labels, and decides by modes.
    fn policy(&self, input: &Input) -> Policy {
        let default = if self.profile == Profile::Native { Policy::Balanced } else { Policy::Label };
        self.policy.or_else(|| policy(input.safety_policy.as_deref()?)).unwrap_or(default)
    }
}

impl Judge for SaferShell {
    fn judge(&self, event: Event, input: &Input, _: &Others) -> BuiltinResult {
        if event == Event::PostInference {
            let calls = input.tool_calls.iter().flat_map(|calls| calls.iter());
            let findings = calls.filter_map(|call| {
                let given = serde_json::from_str(&call.function.arguments).unwrap_or_default();
                call_of(&call.function.name, None, &given)
            });
            return Ok(findings.max_by_key(|finding| finding.label).and_then(|it| self.answer(event, input, &it)));
        }
        let given = input.tool_input.as_deref();
        let name = input.tool_name.as_deref().unwrap_or_default();
        let finding = call_of(name, input.tool_category.as_deref(), given.unwrap_or(&Map::new()));
        Ok(finding.and_then(|finding| self.answer(event, input, &finding)))
    }
}

/// What one call would do; `None` where it is none of a shell.
fn call_of(name: &str, category: Option<&str>, given: &Map<String, Value>) -> Option<Finding> {
    if !is_shell(name, category) {
        return None;
    }
    let mut findings = FIELDS.iter().filter_map(|field| given.get(*field)).map(|value| match value {
        Value::String(text) => line(text),
        Value::Array(words) => {
            let words: Option<Vec<_>> = words.iter().map(Value::as_str).collect();
            words.map_or_else(Finding::unread, |words| arguments(&words))
        }
        _ => Finding::unread(),
    });
    let first = findings.next().unwrap_or_else(Finding::unread);
    Some(findings.fold(first, Finding::or))
}

impl SaferShell {
    fn answer(&self, event: Event, input: &Input, finding: &Finding) -> Option<Output> {
        use PermissionDecision::{Allow, Ask, Deny};
        let decision = match (self.policy(input), finding.label) {
            (Policy::Label, _) => None,
            (Policy::Strict, _) | (Policy::Balanced, Label::Unknown | Label::Destructive) => Some(Ask),
            (Policy::Restricted, Label::Unknown | Label::Destructive) => Some(Deny),
            (Policy::Balanced | Policy::Restricted, Label::Safe) => Some(Allow),
            (Policy::Destructive, Label::Destructive) => Some(Ask),
            (Policy::Destructive, _) => None,
        };
        let able = event.capabilities(self.profile)?;
        let reason = format!("{}: {}", finding.label.name(), finding.reason);
        if matches!(able.decides, Decides::No) || event == Event::PostInference {
            return match decision {
                Some(Deny) => Some(super::deny(event, reason)),
                Some(Ask) if event == Event::PostInference => Some(Output {
                    permission: Some(gatehook_events::Permission::Ask),
                    reason: Some(reason.clone()),
                    user_message: Some(reason),
                    ..Output::default()
                }),
                // Nobody can be asked here.
                Some(Ask) => Some(super::deny(event, reason)),
                _ => None,
            };
        }
        let metadata = able.metadata.then(|| finding.metadata());
        if decision.is_none() && metadata.is_none() {
            return None;
        }
        Some(Output::specific(HookSpecificOutput {
            permission_decision: decision,
            permission_decision_reason: decision.map(|_| reason),
            metadata,
            ..HookSpecificOutput::default()
        }))
    }
}

impl Finding {
    fn metadata(&self) -> BTreeMap<String, String> {
        let facts = [
            ("safety_label", self.label.name()),
            ("blast_radius", self.radius.name()),
            ("category", self.category),
            ("reason", &self.reason),
        ];
        facts.into_iter().map(|(name, fact)| (name.to_owned(), fact.to_owned())).collect()
    }
}

#[cfg(test)]
mod tests;
