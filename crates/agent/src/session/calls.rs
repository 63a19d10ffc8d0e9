//! The tool calls of one answer: each is settled, done, shown to hooks, and kept; side by side, and answered in order.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use gatehook_engine::Selected;
use gatehook_engine::events::{Entry, Event, Input, JournalError, Message, Profile, ToolCall, Verdict};
use gatehook_inference::arguments_of;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::Session;
use super::context::{add, told};
use super::delegation::{After, Managed};
use super::end::{End, why};
use crate::approval::{Settled, Source, Tool as Known, ToolUse};
use crate::report::Report;
use crate::tools::{Calling, Tool, ToolErrorKind, ToolOutput};

/// The contracts whose `post_tool_use` hooks hear of what tools did, and not of what the session did itself.
const ONLY_TOOLS: [Profile; 2] = [Profile::DockerAgent, Profile::DockerAgentV158];

/// What a tool is told to a model that was never run.
const SKIPPED: &str = "Skipped: a hook has ended the run.";

/// What became of one call.
struct Outcome {
    /// The message that answers it.
    message: Message,
    /// A hook wants the run ended, and says why.
    ends: Option<String>,
    /// What it changes of who works.
    after: Option<After>,
}

/// A tool that is there.
enum Found {
    Tool(Arc<dyn Tool>),
    Managed(Managed),
}

/// A call that is over, before hooks have seen its result.
struct Worked {
    known: Known,
    input: Arc<Map<String, Value>>,
    output: ToolOutput,
    seconds: f64,
    after: Option<After>,
    /// A tool of its own has run, and not the session itself.
    is_tools: bool,
}

impl Session {
    /// Answers all calls.
    pub(super) async fn batch(&mut self, calls: &[ToolCall], cancel: &CancellationToken) -> Result<(), End> {
        // Whoever ends the run ends the other calls of the batch.
        let siblings = cancel.child_token();
        let answers = join_all(calls.iter().map(|call| Box::pin(self.answer(call, &siblings)))).await;
        let (mut ends, mut all) = (None, Vec::new());
        for answer in answers {
            let Outcome { message, ends: end, after } = answer?;
            self.conversation.apply(&Entry::Message { message });
            ends = ends.or(end);
            all.extend(after);
        }
        self.live(cancel)?;
        if let Some(why) = ends {
            return Err(End::Blocked(Event::PostToolUse, why));
        }
        self.follow_after(all, cancel).await
    }

    async fn answer(&self, call: &ToolCall, siblings: &CancellationToken) -> Result<Outcome, JournalError> {
        let name = &call.function.name;
        let id = call.id.clone().unwrap_or_default();
        let found = self.found(name);
        let arguments = arguments_of(call).map(Arc::new);
        let input = arguments.as_ref().map(Arc::clone).unwrap_or_default();
        self.tell(Report::ToolCall { id: id.clone(), name: name.clone(), input: input.clone() });
        let known = match &found {
            Some(Found::Tool(tool)) => tool.spec().tool.clone(),
            Some(Found::Managed(managed)) => managed.tool(),
            None => Known { name: name.clone(), ..Known::default() },
        };
        let is_tools = matches!(found, Some(Found::Tool(_)));
        let failed = |kind, text: String| Worked {
            known: known.clone(),
            input: input.clone(),
            output: ToolOutput::error(kind, text),
            seconds: 0.0,
            after: None,
            is_tools,
        };
        let worked = match (found, arguments) {
            (None, _) => failed(ToolErrorKind::NotFound, self.unknown(name)),
            (Some(_), Err(error)) => {
                failed(ToolErrorKind::InvalidInput, format!("The arguments of {name} cannot be read: {error}"))
            }
            (Some(found), Ok(arguments)) => {
                let call = ToolUse { id: Some(id.clone()), tool: known.clone(), arguments };
                let settled = self.cast.approvals.settle(&call, &self.about(), siblings).await;
                match self.settled(&call, settled).await? {
                    Ok(input) => self.work(found, known, &id, input, siblings).await,
                    Err(refused) => return self.refused(&call, &refused, siblings).await,
                }
            }
        };
        self.finish(&id, worked, siblings).await
    }

    fn found(&self, name: &str) -> Option<Found> {
        // A server's tool must not stand in the place of the session's own.
        self.managed(name).map(Found::Managed).or_else(|| self.cast.tool(name).map(Found::Tool))
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<Arc<str>> =
            self.cast.specs().chain(self.managed_specs()).map(|spec| spec.tool.name.clone()).collect();
        format!("There is no tool {name:?}. There are: {}.", known.join(", "))
    }

    /// Tells what was settled; the arguments to run with, or what the model is told instead of a result.
    async fn settled(
        &self,
        call: &ToolUse,
        settled: Settled,
    ) -> Result<Result<Arc<Map<String, Value>>, String>, JournalError> {
        let (decision, source, input) = match &settled {
            Settled::Run { input, source } => ("allow", *source, Some(input).filter(|input| **input != call.arguments)),
            Settled::Deny { source, .. } => ("deny", *source, None),
            Settled::Canceled => ("canceled", Source::ContextCanceled, None),
        };
        self.tell(Report::Approval {
            id: call.id.clone().unwrap_or_default(),
            decision: decision.into(),
            source: source.name().into(),
            input: input.cloned(),
        });
        self.keep_grants(source).await?;
        Ok(match settled {
            Settled::Run { input, .. } => Ok(input),
            Settled::Deny { reason, .. } => Err(reason),
            Settled::Canceled => Err(SKIPPED.to_owned()),
        })
    }

    /// Keeps what the person has allowed for the session.
    async fn keep_grants(&self, source: Source) -> Result<(), JournalError> {
        let approvals = &self.cast.approvals;
        let entry = match source {
            Source::UserApprovedBalanced | Source::UserApprovedAutonomous => {
                let mode = approvals.mode().map(|mode| mode.name().into());
                Entry::Granted { rule: None, mode }
            }
            Source::UserApprovedTool => {
                let rules = approvals.session_rules();
                Entry::Granted { rule: rules.allow.last().map(|rule| rule.to_string().into()), mode: None }
            }
            _ => return Ok(()),
        };
        self.setup.journal.append(&self.id, vec![entry]).await
    }

    async fn work(
        &self,
        found: Found,
        known: Known,
        id: &Arc<str>,
        input: Arc<Map<String, Value>>,
        cancel: &CancellationToken,
    ) -> Worked {
        let (begun, is_tools) = (Instant::now(), matches!(found, Found::Tool(_)));
        let (output, after) = match found {
            Found::Tool(tool) => {
                let said = |piece: &str| self.tell(Report::ToolOutput { id: id.clone(), delta: piece.into() });
                let call = Calling { id, arguments: &input, scene: &self.scene, output: &said, cancel };
                (tool.call(call).await, None)
            }
            Found::Managed(managed) => Box::pin(self.manage(managed, &input, cancel)).await,
        };
        Worked { known, input, output, seconds: begun.elapsed().as_secs_f64(), after, is_tools }
    }

    /// Shows a result to hooks, keeps what they leave of it, and tells it.
    async fn finish(
        &self,
        id: &Arc<str>,
        worked: Worked,
        siblings: &CancellationToken,
    ) -> Result<Outcome, JournalError> {
        let Worked { known, input, output, seconds, after, is_tools } = worked;
        output.changes.iter().for_each(|change| self.setup.changes.own(&change.path));
        // What has run is judged, whoever gave up meanwhile.
        let cancel = CancellationToken::new();
        let is_error = output.error.is_some();
        let with = |about: &mut Input| {
            self.about_call(about, &known, id, &input);
            about.tool_response = Some(Arc::new(Value::from(output.text.as_str())));
            about.tool_error = Some(is_error);
            about.success = Some(!is_error);
        };
        let transformed = self.raise(Event::ToolResponseTransform, &cancel, with).await;
        let mut text = rewritten(&transformed).unwrap_or_else(|| output.text.clone());
        let shown = text.clone();
        let done = |about: &mut Input| {
            with(about);
            about.tool_response = Some(Arc::new(Value::from(shown)));
            about.duration = Some(seconds);
        };
        let hears = |hook: &Selected<'_>| is_tools || !ONLY_TOOLS.contains(&hook.definition.profile);
        let verdict = self.raise_some(Event::PostToolUse, &cancel, &hears, done).await;
        if let Some(new) = rewritten(&verdict) {
            text = new;
        }
        let mut context = told(&verdict);
        if let Some(kind) = output.error {
            let error = text.clone();
            let failed = |about: &mut Input| {
                self.about_call(about, &known, id, &input);
                (about.error, about.error_kind) = (Some(error.into()), Some(kind.name().into()));
                about.duration = Some(seconds);
            };
            add(&mut context, &told(&self.raise(Event::PostToolUseFailure, &cancel, failed).await));
        }
        for change in &output.changes {
            add(&mut context, &told(&self.changed(change).await));
        }
        let ends = (!verdict.allowed).then(|| why(&verdict));
        if ends.is_some() {
            siblings.cancel();
        }
        let report = Report::ToolResult {
            id: id.clone(),
            name: known.name.clone(),
            output: text.as_str().into(),
            error: output.error.map(ToolErrorKind::name),
            diff: output.diff.map(Into::into),
            duration: seconds,
        };
        add(&mut text, &context);
        let message = self.keep_answer(id, &known, &text, report).await?;
        Ok(Outcome { message, ends, after })
    }

    /// A call that was not run: what the model is told passes the hooks that see all it is told.
    async fn refused(&self, call: &ToolUse, reason: &str, cancel: &CancellationToken) -> Result<Outcome, JournalError> {
        let id = call.id.clone().unwrap_or_default();
        let mut reason = reason.to_owned();
        gatehook_scan::redact_in_place(&mut reason);
        let with = |about: &mut Input| {
            self.about_call(about, &call.tool, &id, &call.arguments);
            about.tool_response = Some(Arc::new(Value::from(reason.as_str())));
            (about.tool_error, about.success) = (Some(true), Some(false));
        };
        let verdict = self.raise(Event::ToolResponseTransform, &CancellationToken::new(), with).await;
        let text = rewritten(&verdict).unwrap_or(reason);
        let kind = if cancel.is_cancelled() { ToolErrorKind::Cancelled } else { ToolErrorKind::Permission };
        let report = Report::ToolResult {
            id: id.clone(),
            name: call.tool.name.clone(),
            output: text.as_str().into(),
            error: Some(kind.name()),
            diff: None,
            duration: 0.0,
        };
        let message = self.keep_answer(&id, &call.tool, &text, report).await?;
        Ok(Outcome { message, ends: None, after: None })
    }

    /// Keeps the message that answers a call, and then tells it.
    async fn keep_answer(
        &self,
        id: &Arc<str>,
        known: &Known,
        text: &str,
        report: Report,
    ) -> Result<Message, JournalError> {
        let (tool_call_id, name) = (Some(id.clone()), Some(known.name.clone()));
        let message = Message { tool_call_id, name, ..Message::new("tool", text) };
        self.setup.journal.append(&self.id, vec![Entry::Message { message: message.clone() }]).await?;
        self.tell(report);
        Ok(message)
    }

    fn about_call(&self, about: &mut Input, known: &Known, id: &Arc<str>, input: &Arc<Map<String, Value>>) {
        about.tool_name = Some(known.name.clone());
        about.tool_use_id = Some(id.clone());
        about.tool_input = Some(input.clone());
        about.tool_category = known.category.clone();
        about.plane = Some("agent".into());
        about.safety_policy = self.cast.approvals.mode().map(|mode| mode.name().into());
    }
}

/// What hooks made of a result, as text.
fn rewritten(verdict: &Verdict) -> Option<String> {
    let response = verdict.rewritten.tool_response.as_deref()?;
    Some(response.as_str().map_or_else(|| response.to_string(), str::to_owned))
}
