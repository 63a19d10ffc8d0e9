//! `kind: approval`: one tool call through all stages of its approval.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gatehook_agent::approval::{
    Answer, Approvals, Asking, Asks, Question, RuleError, Rules, SafetyMode, Settled, StandingRules, Tool, ToolUse,
};
use gatehook_engine::{Executor, HookDefinition, HookGroup, Registry};
use gatehook_events::{Event, Input, Profile, Recorder, Trace};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::actual::Actual;
use crate::vector::Vector;

/// The call, and what stands around it.
#[derive(Debug, Deserialize)]
struct Given {
    tool_name: String,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(default)]
    tool_input: Map<String, Value>,
    #[serde(default)]
    safety_mode: Option<String>,
    #[serde(default)]
    session_rules: GivenRules,
    #[serde(default)]
    team_rules: GivenRules,
    #[serde(default)]
    user_answer: Option<String>,
    #[serde(default)]
    interactive: Option<bool>,
    #[serde(default)]
    tool: GivenTool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GivenRules {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GivenTool {
    category: Option<String>,
    read_only: bool,
    destructive: bool,
    metadata: BTreeMap<String, String>,
}

/// Gives one answer to every question; without one, the caller gives up.
struct Person {
    answer: Option<String>,
    questions: Mutex<Vec<Question>>,
    given_up: CancellationToken,
    misspoken: AtomicBool,
}

impl Asks for Person {
    fn ask<'a>(&'a self, question: &'a Question) -> Asking<'a> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).push(question.clone());
        Box::pin(async {
            match self.answer.as_deref().map(read) {
                Some(Some(answer)) => answer,
                other => {
                    self.misspoken.store(other.is_some(), Ordering::Relaxed);
                    self.given_up.cancel();
                    std::future::pending().await
                }
            }
        })
    }
}

/// An answer as it is written, as in `approve` or `reject:not now`.
fn read(text: &str) -> Option<Answer> {
    let (verb, rest) = text.split_once(':').unwrap_or((text, ""));
    match verb.replace('_', "-").as_str() {
        "approve" => Some(Answer::Approve),
        "approve-balanced" => Some(Answer::ApproveBalanced),
        "approve-autonomous" | "approve-session" => Some(Answer::ApproveAutonomous),
        "approve-tool" if rest.is_empty() => Some(Answer::ApproveTool(None)),
        "approve-tool" => Some(Answer::ApproveTool(Some(rest.parse().ok()?))),
        "reject" => Some(Answer::Reject { reason: rest.to_owned() }),
        _ => None,
    }
}

/// Remembers every dispatch that a hook saw.
#[derive(Debug, Default)]
struct Seen(Mutex<Vec<Trace>>);

impl Recorder for Seen {
    fn record(&self, trace: Trace) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(trace);
    }
}

impl GivenRules {
    fn read(&self) -> Result<Rules, RuleError> {
        let texts = |rules: &[String]| rules.iter().map(|rule| rule.parse()).collect::<Result<Vec<_>, _>>();
        Ok(Rules { allow: texts(&self.allow)?, ask: texts(&self.ask)?, deny: texts(&self.deny)? })
    }
}

/// Runs a vector.
pub(crate) async fn run(vector: &Vector, profile: Profile) -> Result<Actual, String> {
    let given = Given::deserialize(&vector.input).map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let registry = Registry::with_defaults();
    registry.register_builtin("looks_on", |_, _, _| Ok(None)).map_err(|error| error.to_string())?;
    let mut hooks = vector.hooks(profile, folder.path())?;
    // Without a hook nobody would see the decision.
    let witness = vec![HookDefinition::builtin("looks_on", &[])];
    hooks.groups.push(HookGroup { event: Event::OnToolApprovalDecision, matcher: String::new(), hooks: witness });
    let env = vector.surroundings(folder.path());
    let executor = Executor::with_registry(hooks, env, &registry).map_err(|error| error.to_string())?;
    let seen = Arc::new(Seen::default());
    let workspace = given.team_rules.read().map_err(|error| error.to_string())?;
    let standing = StandingRules { workspace, ..StandingRules::default() };
    let mut approvals = Approvals::new(executor.recorded(seen.clone()), standing);
    approvals.set_mode(given.mode()?);
    approvals.set_session_rules(given.session_rules.read().map_err(|error| error.to_string())?);
    let cancel = CancellationToken::new();
    let person = Arc::new(Person {
        answer: given.user_answer.clone(),
        questions: Mutex::default(),
        given_up: cancel.clone(),
        misspoken: AtomicBool::new(false),
    });
    if given.interactive != Some(false) {
        approvals = approvals.asking(person.clone());
    }
    let settled = approvals.settle(&given.call(), &Input::default(), &cancel).await;
    if person.misspoken.load(Ordering::Relaxed) {
        return Err(format!("`{}` is no answer", given.user_answer.unwrap_or_default()));
    }
    let questions = std::mem::take(&mut *person.questions.lock().unwrap_or_else(PoisonError::into_inner));
    let traces = std::mem::take(&mut *seen.0.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(facts(&settled, &questions, &traces, approvals.mode()))
}

impl Given {
    fn mode(&self) -> Result<Option<SafetyMode>, String> {
        match self.safety_mode.as_deref() {
            None | Some("" | "legacy") => Ok(None),
            Some(name) => SafetyMode::from_name(name).map(Some).ok_or_else(|| format!("`{name}` is no safety mode")),
        }
    }

    fn call(&self) -> ToolUse {
        let GivenTool { category, read_only, destructive, metadata } = &self.tool;
        let tool = Tool {
            name: self.tool_name.as_str().into(),
            category: category.as_deref().map(Into::into),
            read_only: *read_only,
            destructive: *destructive,
            metadata: metadata.clone(),
        };
        ToolUse { id: self.tool_use_id.as_deref().map(Into::into), tool, arguments: self.tool_input.clone().into() }
    }
}

fn facts(settled: &Settled, questions: &[Question], traces: &[Trace], mode: Option<SafetyMode>) -> Actual {
    let mut dispatches: BTreeMap<&str, u64> = BTreeMap::new();
    for trace in traces {
        *dispatches.entry(trace.event.name()).or_default() += 1;
    }
    let decisions: Vec<&Input> =
        traces.iter().filter(|trace| trace.event == Event::OnToolApprovalDecision).map(|trace| &trace.input).collect();
    // Whatever is not told exactly once is no decision.
    let decision = match decisions.as_slice() {
        [one] => json!([one.approval_decision, one.approval_source]),
        _ => Value::Null,
    };
    let (ran, error) = match settled {
        Settled::Run { input, .. } => (vec![input], String::new()),
        Settled::Deny { reason, .. } => (Vec::new(), reason.clone()),
        Settled::Canceled => (Vec::new(), "The tool call was canceled.".to_owned()),
    };
    let blocked = match settled {
        Settled::Deny { source, .. } => source.spec().hooks.is_some_and(|event| event != Event::PermissionRequest),
        _ => false,
    };
    let last = questions.last();
    Actual::of(json!({
        "ran": ran,
        "prompts": questions.len(),
        "prompt_args": last.map(|question| &question.tool_input),
        "prompt_metadata": last.map(|question| &question.metadata),
        "approval": decision,
        "approvals": decisions.len(),
        "safety_label": decisions.last().map(|decision| &decision.safety_label),
        "safety_mode": mode.map(SafetyMode::name),
        "tool_error": error,
        "hook_blocked_events": u8::from(blocked),
        "dispatches": dispatches,
    }))
}
