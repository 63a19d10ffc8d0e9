//! One call's way through the stages.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatehook_engine::Pick;
use gatehook_engine::events::{Decision, Event, Input, Profile, Verdict};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::mode::{Ruling, Safety, by_mode};
use super::rules::{Subject, by_rules};
use super::{Answer, Approvals, Asks, Question, Rule, SafetyMode, Settled, Source, ToolUse};

/// The contracts by which `pre_tool_use` is silent where rules or the mode have settled a call. All others guard every
/// call that is to run.
const SILENT_WHEN_SETTLED: [Profile; 2] = [Profile::DockerAgent, Profile::DockerAgentV158];

/// What stands of a call so far.
#[derive(Debug, Clone, PartialEq)]
enum Standing {
    /// It runs.
    Holds(Source),
    /// `pre_tool_use` has the next word.
    Open,
    /// The person has the last word.
    Asked(Ask),
}

/// A question to come, and who wants it asked.
#[derive(Debug, Clone, PartialEq)]
struct Ask {
    by: By,
    /// What that hook said; empty where it is none.
    reason: String,
}

/// Who wants the person asked, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// The mode, a rule, or a `pre_tool_use` hook that agrees with them.
    Standing,
    /// A `pre_tool_use` hook, against what rules or the mode allow.
    Hook,
    /// The preempting lane.
    Preempt,
    /// A `tool_guard`.
    Guard,
    /// Whoever judged the arguments once more after a rewrite.
    Rewrite,
}

impl By {
    /// Whether `permission_request` hooks may answer for the person.
    fn hooks_may_answer(self) -> bool {
        matches!(self, By::Standing | By::Hook)
    }
}

/// How a call ends.
enum End {
    Run(Source),
    Deny(Source, String),
    Canceled,
}

pub(super) struct Chain<'a> {
    room: &'a Approvals,
    call: &'a ToolUse,
    about: &'a Input,
    cancel: &'a CancellationToken,
    /// The arguments as they stand now.
    arguments: Arc<Map<String, Value>>,
    safety: Safety,
    /// What the guards said of them: the preempting lane, then `tool_guard`.
    told: [BTreeMap<String, String>; 2],
}

impl<'a> Chain<'a> {
    pub(super) fn new(room: &'a Approvals, call: &'a ToolUse, about: &'a Input, cancel: &'a CancellationToken) -> Self {
        let arguments = call.arguments.clone();
        let safety = Safety::of(&call.tool, &arguments);
        Self { room, call, about, cancel, arguments, safety, told: Default::default() }
    }

    pub(super) async fn settle(mut self) -> Settled {
        let end = match self.walk().await {
            Ok(end) | Err(end) => end,
        };
        let (decision, source) = match &end {
            End::Run(source) => ("allow", *source),
            End::Deny(source, _) => ("deny", *source),
            End::Canceled => ("canceled", Source::ContextCanceled),
        };
        let input = Input {
            approval_decision: Some(decision.into()),
            approval_source: Some(source.name().into()),
            safety_label: Some(self.safety.label.name().into()),
            ..self.input()
        };
        // Told also of a call that was cancelled, hence not by its token.
        self.room.executor.dispatch(Event::OnToolApprovalDecision, &input, &CancellationToken::new()).await;
        match end {
            End::Run(source) => Settled::Run { input: self.arguments, source },
            End::Deny(source, reason) => Settled::Deny { reason, source },
            End::Canceled => Settled::Canceled,
        }
    }

    /// All stages in order; whichever ends the call does so as an error.
    async fn walk(&mut self) -> Result<End, End> {
        self.live()?;
        let verdict = self.barred(Event::ToolInputTransform, Source::ToolInputTransformDeny).await?;
        self.rewrite(&verdict);
        let mut standing = self.judge().await?;
        if let Standing::Asked(Ask { by: By::Preempt, .. }) = &standing
            && self.is_granted()
        {
            standing = Standing::Holds(Source::SessionAllow);
        }
        match self.default_lane(standing).await? {
            Standing::Holds(source) => Ok(End::Run(source)),
            Standing::Asked(ask) => self.confirm(&ask).await,
            Standing::Open => self.confirm(&Ask { by: By::Standing, reason: String::new() }).await,
        }
    }

    /// The guards, then rules and mode, over the arguments as they are now.
    async fn judge(&mut self) -> Result<Standing, End> {
        let guard = self.barred(Event::ToolGuard, Source::ToolGuardDeny).await?;
        let preempt = self.barred(Event::PreToolUsePreempt, Source::PreToolUseDeny).await?;
        let ruling = self.ruling();
        // No question turns a denial into an approval.
        if let Ruling::Deny(source) = ruling {
            return Err(End::Deny(source, self.denied(source)));
        }
        let asked = |by, verdict: &Verdict| Standing::Asked(Ask { by, reason: verdict.decision_reason.clone() });
        let standing = match ruling {
            _ if asks(&guard) => asked(By::Guard, &guard),
            _ if asks(&preempt) => asked(By::Preempt, &preempt),
            Ruling::Allow(source) => Standing::Holds(source),
            Ruling::Ask => Standing::Asked(Ask { by: By::Standing, reason: String::new() }),
            Ruling::Open | Ruling::Deny(_) => Standing::Open,
        };
        self.told = [preempt.metadata, guard.metadata];
        Ok(standing)
    }

    /// `pre_tool_use`, and what it makes of what stood before.
    async fn default_lane(&mut self, before: Standing) -> Result<Standing, End> {
        let is_open = before == Standing::Open;
        let verdict = self
            .shown(Event::PreToolUse, &self.input(), &|hook| {
                is_open || !SILENT_WHEN_SETTLED.contains(&hook.definition.profile)
            })
            .await?;
        if is_refused(&verdict) {
            return Err(End::Deny(Source::PreToolUseDeny, rejected(Event::PreToolUse, &verdict)));
        }
        let is_changed = self.rewrite(&verdict);
        let standing = if is_changed { self.again(before).await? } else { before };
        let reason = || verdict.decision_reason.clone();
        Ok(match (standing, verdict.decision) {
            (Standing::Open | Standing::Holds(_), Some(Decision::Ask)) if is_changed => {
                Standing::Asked(Ask { by: By::Rewrite, reason: reason() })
            }
            (Standing::Open, Some(Decision::Ask)) => Standing::Asked(Ask { by: By::Standing, reason: reason() }),
            (Standing::Holds(_), Some(Decision::Ask)) if !self.is_granted() => {
                Standing::Asked(Ask { by: By::Hook, reason: reason() })
            }
            (Standing::Open, Some(Decision::Allow)) => Standing::Holds(Source::PreToolUseAllow),
            (Standing::Open, None) if self.only_reads() => Standing::Holds(Source::ReadOnlyHint),
            (standing, _) => standing,
        })
    }

    /// Judges rewritten arguments. That may deny or ask; it permits nothing that was not permitted before.
    async fn again(&mut self, before: Standing) -> Result<Standing, End> {
        let rewritten = |reason| Standing::Asked(Ask { by: By::Rewrite, reason });
        Ok(match (before, self.judge().await?) {
            (_, Standing::Asked(ask)) => rewritten(ask.reason),
            (Standing::Holds(_), Standing::Holds(source)) => Standing::Holds(source),
            (Standing::Holds(_), Standing::Open) => rewritten(String::new()),
            (Standing::Asked(ask), _) => rewritten(ask.reason),
            (Standing::Open, _) => Standing::Open,
        })
    }

    /// `permission_request`, then the person.
    async fn confirm(&self, ask: &Ask) -> Result<End, End> {
        let mut requested = BTreeMap::new();
        if ask.by.hooks_may_answer() {
            let verdict = self.shown(Event::PermissionRequest, &self.request(), &|_| true).await?;
            if !verdict.allowed {
                let reason = rejected(Event::PermissionRequest, &verdict);
                return Err(End::Deny(Source::PermissionRequestDeny, reason));
            }
            if verdict.permission_allowed {
                return Ok(End::Run(Source::PermissionRequestAllow));
            }
            requested = verdict.metadata;
        }
        let Some(person) = &self.room.person else {
            return Err(End::Deny(Source::NonInteractiveDeny, self.denied(Source::NonInteractiveDeny)));
        };
        // A rewrite may have made the call one that was permitted before; that does not count, only what comes now does.
        let stood = self.permitted(ask.by);
        let _turn = self.unless_canceled(self.room.asking.lock()).await?;
        match self.permitted(ask.by).filter(|_| stood.is_none()) {
            Some(source) => Ok(End::Run(source)),
            None => self.asked(&**person, ask, requested).await,
        }
    }

    async fn asked(&self, person: &dyn Asks, ask: &Ask, requested: BTreeMap<String, String>) -> Result<End, End> {
        let mut metadata = self.call.tool.metadata.clone();
        let [preempt, guard] = self.told.clone();
        for layer in [requested, self.safety.metadata.clone(), preempt, guard] {
            metadata.extend(layer);
        }
        let question = Question {
            tool_name: self.call.tool.name.clone(),
            tool_use_id: self.call.id.clone(),
            tool_input: self.arguments.clone(),
            reason: ask.reason.clone(),
            metadata,
        };
        self.shown(Event::OnUserInput, self.about, &|_| true).await?;
        let answer = self.unless_canceled(person.ask(&question)).await?;
        Ok(self.heed(answer))
    }

    /// What a person said, and what it means for later calls.
    fn heed(&self, answer: Answer) -> End {
        match answer {
            Answer::Approve => End::Run(Source::UserApproved),
            Answer::ApproveBalanced => {
                self.room.set_mode(Some(SafetyMode::Balanced));
                End::Run(Source::UserApprovedBalanced)
            }
            Answer::ApproveAutonomous => {
                self.room.set_mode(Some(SafetyMode::Autonomous));
                End::Run(Source::UserApprovedAutonomous)
            }
            Answer::ApproveTool(rule) => {
                let rule = rule.unwrap_or_else(|| Rule::of_tool(&self.call.tool.name));
                let mut session = self.room.session();
                if !session.rules.allow.contains(&rule) {
                    session.rules.allow.push(rule);
                }
                End::Run(Source::UserApprovedTool)
            }
            Answer::Reject { reason } => {
                End::Deny(Source::UserRejected, because("The user rejected the tool call.", &reason))
            }
        }
    }

    /// By what the call is permitted now, as far as that may count against whoever wants the person asked.
    fn permitted(&self, by: By) -> Option<Source> {
        match by {
            By::Standing => match self.ruling() {
                Ruling::Allow(source) => Some(source),
                _ => None,
            },
            By::Hook | By::Preempt => self.is_granted().then_some(Source::SessionAllow),
            By::Guard | By::Rewrite => None,
        }
    }

    fn ruling(&self) -> Ruling {
        let session = self.room.session();
        by_rules(&self.room.standing, &session.rules, self.subject())
            .unwrap_or_else(|| by_mode(session.mode, self.safety.label))
    }

    /// Whether the session's rules surely allow this very call, and no managed rule objects.
    fn is_granted(&self) -> bool {
        let is_ruled = self.ruling() == Ruling::Allow(Source::SessionAllow);
        is_ruled && self.room.session().rules.grant(self.subject())
    }

    /// Without a mode, what only reads is not asked about. Of a shell that is said by its line alone.
    fn only_reads(&self) -> bool {
        let tool = &self.call.tool;
        let is_shell = gatehook_engine::builtins::safer_shell::is_shell(&tool.name, tool.category.as_deref());
        self.room.mode().is_none() && tool.read_only && !tool.destructive && !is_shell
    }

    fn subject(&self) -> Subject<'_> {
        Subject { tool: &self.call.tool, arguments: &self.arguments }
    }

    fn input(&self) -> Input {
        let tool = &self.call.tool;
        Input {
            tool_name: Some(tool.name.clone()),
            tool_use_id: self.call.id.clone(),
            tool_input: Some(self.arguments.clone()),
            tool_category: tool.category.clone(),
            plane: Some("agent".into()),
            safety_policy: self.room.mode().map(|mode| mode.name().into()),
            ..self.about.clone()
        }
    }

    fn request(&self) -> Input {
        let name = &self.call.tool.name;
        Input {
            operation: Some(name.clone()),
            details: Some(json!({"tool": &**name, "args": &*self.arguments})),
            requester: self.about.agent_name.clone(),
            ..self.input()
        }
    }

    /// Takes a rewrite; says whether it changes anything.
    fn rewrite(&mut self, verdict: &Verdict) -> bool {
        match &verdict.rewritten.tool_input {
            Some(rewritten) if *rewritten != self.arguments => {
                self.arguments = rewritten.clone();
                self.safety = Safety::of(&self.call.tool, &self.arguments);
                true
            }
            _ => false,
        }
    }

    /// Shows the call to hooks that may end it.
    async fn barred(&self, event: Event, source: Source) -> Result<Verdict, End> {
        let verdict = self.shown(event, &self.input(), &|_| true).await?;
        if is_refused(&verdict) { Err(End::Deny(source, rejected(event, &verdict))) } else { Ok(verdict) }
    }

    /// Shows an event to the hooks that `pick` wants. A caller that gave up meanwhile was not denied by them: hooks that
    /// are cut short fail, and guards fail closed.
    async fn shown(&self, event: Event, input: &Input, pick: &Pick<'_>) -> Result<Verdict, End> {
        let verdict = self.room.executor.dispatch_some(event, input, self.cancel, &|_| Ok(()), pick).await;
        self.live()?;
        Ok(verdict)
    }

    fn live(&self) -> Result<(), End> {
        if self.cancel.is_cancelled() { Err(End::Canceled) } else { Ok(()) }
    }

    async fn unless_canceled<T>(&self, wait: impl Future<Output = T>) -> Result<T, End> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(End::Canceled),
            done = wait => Ok(done),
        }
    }

    /// What the model is told where no hook and no person said no.
    fn denied(&self, source: Source) -> String {
        let name = &self.call.tool.name;
        match source {
            Source::ManagedDeny => format!("Tool '{name}' is denied by managed permissions."),
            Source::SessionDeny => format!("Tool '{name}' is denied by session permissions."),
            Source::TeamDeny => format!("Tool '{name}' is denied by permissions configuration."),
            Source::ModeRestricted => format!(
                "Tool '{name}' is denied by the restricted safety mode: the call is not known to be safe, and nobody \
                 is asked."
            ),
            _ => format!("Tool '{name}' requires user confirmation but the session is non-interactive."),
        }
    }
}

fn asks(verdict: &Verdict) -> bool {
    verdict.decision == Some(Decision::Ask)
}

fn is_refused(verdict: &Verdict) -> bool {
    !verdict.allowed || verdict.decision == Some(Decision::Deny)
}

/// What the model is told of hooks that refused.
fn rejected(event: Event, verdict: &Verdict) -> String {
    let why = [&verdict.message, &verdict.decision_reason].into_iter().find(|why| !why.trim().is_empty());
    let rejected = format!("The tool call was rejected by a {} hook.", event.public_name());
    because(&rejected, why.map_or("", String::as_str))
}

fn because(what: &str, why: &str) -> String {
    match why.trim() {
        "" => what.to_owned(),
        why => format!("{what} Reason: {why}"),
    }
}
