//! Folds what hooks answered into one verdict, in configuration order.

use std::sync::atomic::Ordering;
use std::time::Duration;

use gatehook_events::profile::Failing;
use gatehook_events::{
    Decides, Decision, Event, FailureKind, HookSpecificOutput, Notice, Outcome, OutcomeKind, Output, Permission,
    PermissionDecision, Refusal, Rewrite, Rewritten, Verb, Verdict,
};

use crate::compiled::Hook;
use crate::content::Learned;
use crate::definition::OnError;
use crate::event_class::is_inference;
use crate::reply::{Answer, Said};
use crate::text::into_plain;

/// How much of a hook's stderr an outcome keeps, in bytes.
const STDERR_TAIL: usize = 4096;

/// One hook that ran.
pub(crate) struct Ran<'h> {
    pub(crate) hook: &'h Hook,
    pub(crate) answer: Answer,
    pub(crate) duration: Duration,
    /// It was not run: it had judged all of this before.
    pub(crate) recalled: bool,
    /// What it need not be asked again once its answer is taken.
    pub(crate) learned: Learned,
}

/// A verdict in the making.
pub(crate) struct Fold {
    event: Event,
    pub(crate) verdict: Verdict,
    last: Verb,
}

/// What one hook came to.
struct Came {
    kind: OutcomeKind,
    verb: Verb,
    reason: String,
    user_message: Option<String>,
    agent_message: Option<String>,
}

impl Came {
    fn to(verb: Verb, reason: String) -> Self {
        let kind = if verb == Verb::Deny { OutcomeKind::Blocked } else { OutcomeKind::Ok };
        Self { kind, verb, reason, user_message: None, agent_message: None }
    }
}

impl Fold {
    pub(crate) fn new(event: Event) -> Self {
        Self { event, verdict: Verdict::allow(), last: Verb::Allow }
    }

    /// Whether no later hook may see this event.
    pub(crate) fn ends_sequence(&self) -> bool {
        is_inference(self.event) && self.last == Verb::Deny
    }

    pub(crate) fn finish(self) -> Verdict {
        self.verdict
    }

    /// Adds the next hook in configuration order, with all rewrites up to its own if it made one.
    pub(crate) fn add(&mut self, ran: Ran<'_>, rewritten: Option<Rewritten>) {
        let Ran { hook, answer: Answer { said, exit_code, stderr, spent }, duration, recalled, learned } = ran;
        hook.learn(learned);
        let rewrote = rewritten.is_some();
        if let Some(rewritten) = rewritten {
            self.verdict.rewritten = rewritten;
        }
        let came = match said {
            Said::Nothing => Came::to(Verb::Allow, String::new()),
            Said::Text(text) => self.text(hook, &text),
            Said::Output(output) => self.output(hook, *output, rewrote),
            Said::Block(addition) => self.exit_two(hook, &stderr, addition.map(|output| *output)),
            Said::Failed(kind, cause) => self.failure(hook, kind, cause, &stderr),
        };
        self.last = came.verb;
        self.verdict.verb = self.verdict.verb.max(came.verb);
        self.refuse(hook, &came);
        self.verdict.outcomes.push(Outcome {
            name: hook.name.clone(),
            handler: hook.kind.clone(),
            profile: hook.definition.profile,
            duration,
            exit_code,
            kind: came.kind,
            verb: came.verb,
            recalled: recalled || spent.recalled,
            reason: came.reason,
            stderr: tail(stderr),
            usage: spent.usage,
            cost: spent.cost,
        });
    }

    /// The strictest hook refuses for all, the first one among equals.
    fn refuse(&mut self, hook: &Hook, came: &Came) {
        let stricter = self.verdict.refusal.as_ref().is_none_or(|refusal| came.verb > refusal.verb);
        if came.verb >= Verb::Ask && stricter {
            self.verdict.refusal = Some(Refusal {
                verb: came.verb,
                hook_name: hook.name.clone(),
                user_message: came.user_message.clone(),
                agent_message: came.agent_message.clone(),
            });
        }
    }

    fn text(&mut self, hook: &Hook, text: &str) -> Came {
        if hook.capabilities.context {
            line(&mut self.verdict.additional_context, text);
        }
        Came::to(Verb::Allow, String::new())
    }

    fn exit_two(&mut self, hook: &Hook, stderr: &str, addition: Option<Output>) -> Came {
        if !hook.capabilities.blocks {
            self.notice(hook, FailureKind::BlockUnsupported, "exit code 2 cannot block this event");
            return Came::to(Verb::Allow, String::new());
        }
        let mut reason = into_plain(stderr.trim().to_owned());
        let (mut user_message, mut agent_message) = (None, None);
        if let Some(mut output) = addition {
            user_message = output.user_message.take().map(into_plain);
            agent_message = output.agent_message.take().map(into_plain);
            line(&mut reason, &into_plain(output.reason.take().unwrap_or_default()));
            self.system_message(&mut output);
            let specific = output.hook_specific_output.take().unwrap_or_default();
            self.context(hook, specific.additional_context);
        }
        self.block(hook, &reason);
        self.exit(2, stderr);
        Came { user_message, agent_message, ..Came::to(Verb::Deny, reason) }
    }

    fn failure(&mut self, hook: &Hook, kind: FailureKind, cause: String, stderr: &str) -> Came {
        let cause = into_plain(cause);
        let unheld = kind == FailureKind::UnsupportedRewrite && is_inference(self.event);
        let verb = match on_failure(hook, self.event) {
            _ if unheld => Verb::ModifyUnsupported,
            OnError::Block => Verb::Unavailable,
            OnError::Warn | OnError::Ignore => Verb::Allow,
        };
        log_failure(hook, self.event, kind, &cause, verb);
        if verb != Verb::Allow {
            let text = self.sentence(hook, &cause);
            self.block(hook, &text);
            self.exit(-1, stderr);
            self.verdict.notices.push(Notice { hook_name: hook.name.clone(), kind, blocks: true });
        } else if on_failure(hook, self.event) == OnError::Warn {
            self.notice(hook, kind, &cause);
        }
        Came { kind: OutcomeKind::Failed(kind), ..Came::to(verb, cause) }
    }

    fn output(&mut self, hook: &Hook, mut output: Output, rewrote: bool) -> Came {
        let specific = output.hook_specific_output.take().unwrap_or_default();
        let mut reason = String::new();
        let mut verb = if rewrote { Verb::Modify } else { Verb::Allow };
        if output.is_blocked() || !output.should_continue() {
            if hook.capabilities.blocks {
                let stop_reason = output.stop_reason.take().filter(|_| !output.should_continue());
                line(&mut reason, &into_plain(stop_reason.unwrap_or_default()));
                let why = output.reason.take().filter(|_| output.is_blocked());
                line(&mut reason, &into_plain(why.unwrap_or_default()));
                self.block(hook, &reason);
                verb = Verb::Deny;
            } else {
                self.notice(hook, FailureKind::BlockUnsupported, "this event cannot be blocked");
            }
        }
        self.system_message(&mut output);
        self.verdict.holdback_chars = self.verdict.holdback_chars.max(output.holdback_chars);
        if rewrote {
            self.verdict.placeholders.append(&mut output.placeholders);
        }
        let (decided, why) = self.decision(hook, &output, &specific);
        line(&mut reason, &why);
        let kept = (output.user_message.map(into_plain), output.agent_message.map(into_plain));
        self.honoured(hook, specific);
        Came { user_message: kept.0, agent_message: kept.1, ..Came::to(verb.max(decided), reason) }
    }

    /// Takes the decision of one hook; says what it comes to, and why.
    fn decision(&mut self, hook: &Hook, output: &Output, specific: &HookSpecificOutput) -> (Verb, String) {
        let Some(decision) = decision(output, specific) else { return (Verb::Allow, String::new()) };
        let texts = [&specific.permission_decision_reason, &output.reason, &output.user_message];
        let given = if output.permission.is_some() { &texts[..] } else { &texts[..1] };
        let why = given.iter().find_map(|text| text.as_deref().filter(|text| !text.is_empty()));
        let why = into_plain(why.unwrap_or_default().to_owned());
        match hook.capabilities.decides {
            Decides::No => {
                self.notice(hook, FailureKind::PermissionUnsupported, "this event takes no permission decision");
                return (Verb::Allow, String::new());
            }
            Decides::TriState => {
                if self.verdict.decision.is_none_or(|earlier| decision > earlier) {
                    self.verdict.decision = Some(decision);
                    self.verdict.decision_reason.clone_from(&why);
                }
            }
            Decides::Consent => self.consent(hook, decision, &why),
        }
        if decision == Decision::Allow && hook.definition.profile.spec().lenient_replies {
            line(&mut self.verdict.additional_context, &why);
        }
        match decision {
            Decision::Deny => {
                self.block(hook, &why);
                (Verb::Deny, why)
            }
            Decision::Ask if hook.capabilities.decides == Decides::TriState => (Verb::Ask, why),
            Decision::Ask | Decision::Allow => (Verb::Allow, String::new()),
        }
    }

    /// An explicit allow answers for the user; the first reason stands.
    fn consent(&mut self, hook: &Hook, decision: Decision, why: &str) {
        if decision == Decision::Allow {
            self.verdict.permission_allowed = true;
            if self.verdict.decision_reason.is_empty() && !hook.definition.profile.spec().lenient_replies {
                self.verdict.decision_reason = why.to_owned();
            }
        }
    }

    /// Takes what the event honours besides verdicts and rewrites.
    fn honoured(&mut self, hook: &Hook, specific: HookSpecificOutput) {
        let able = &hook.capabilities;
        self.context(hook, specific.additional_context);
        if able.instructions {
            self.verdict.instruction_context.extend(specific.instruction_context.unwrap_or_default());
        }
        if able.metadata {
            let plain = |(key, value)| (into_plain(key), into_plain(value));
            self.verdict.metadata.extend(specific.metadata.unwrap_or_default().into_iter().map(plain));
        }
        if able.rewrites == Some(Rewrite::Summary) && self.verdict.summary.is_empty() {
            self.verdict.summary = specific.summary.unwrap_or_default();
        }
    }

    fn context(&mut self, hook: &Hook, context: Option<String>) {
        if hook.capabilities.context || hook.definition.profile.spec().lenient_replies {
            line(&mut self.verdict.additional_context, &context.unwrap_or_default());
        }
    }

    fn system_message(&mut self, output: &mut Output) {
        if let Some(message) = output.system_message.take().filter(|_| !output.suppress_output) {
            line(&mut self.verdict.system_message, &into_plain(message));
        }
    }

    /// Where nothing can be undone any more, the user is told at least.
    fn block(&mut self, hook: &Hook, reason: &str) {
        self.verdict.allowed = false;
        line(&mut self.verdict.message, reason);
        if hook.capabilities.blocks_late {
            line(&mut self.verdict.system_message, reason);
        }
    }

    /// A warning of the engine about a hook.
    fn notice(&mut self, hook: &Hook, kind: FailureKind, cause: &str) {
        if hook.definition.profile.spec().logs_warnings {
            tracing::warn!(hook = %hook.name, event = self.event.name(), cause, "a hook was not heard");
            return;
        }
        let text = self.sentence(hook, cause);
        line(&mut self.verdict.system_message, &text);
        self.verdict.notices.push(Notice { hook_name: hook.name.clone(), kind, blocks: false });
    }

    fn sentence(&self, hook: &Hook, cause: &str) -> String {
        format!("{} hook \"{}\": {cause}", self.event.public_name(), into_plain(hook.name.to_string()))
    }

    /// The most severe exit code stands, the last one among equals, with stderr of that hook.
    fn exit(&mut self, code: i32, stderr: &str) {
        let severity = |code: i32| match code {
            2 => 2,
            0 => 0,
            _ => 1,
        };
        let (new, old) = (severity(code), severity(self.verdict.exit_code));
        if new < old || (new == old && code == 2 && stderr.is_empty()) {
            return;
        }
        self.verdict.exit_code = code;
        self.verdict.stderr = into_plain(stderr.to_owned());
    }
}

/// What the failure of a hook means.
fn on_failure(hook: &Hook, event: Event) -> OnError {
    let by_default = match hook.definition.profile.spec().failing {
        Failing::Blocks => OnError::Block,
        Failing::BlocksOn(events) if events.contains(&event) => OnError::Block,
        Failing::BlocksOn(_) | Failing::Warns => OnError::Warn,
    };
    match hook.definition.on_error.unwrap_or(by_default) {
        _ if hook.capabilities.fails_closed => OnError::Block,
        OnError::Block if !hook.capabilities.blocks => OnError::Warn,
        policy => policy,
    }
}

/// The stricter of a hook's `permission_decision` and `permission`. The latter is the inference events' word, but a
/// denial is one wherever it is said.
fn decision(output: &Output, specific: &HookSpecificOutput) -> Option<Decision> {
    let decided = specific.permission_decision.map(|decision| match decision {
        PermissionDecision::Allow => Decision::Allow,
        PermissionDecision::Ask => Decision::Ask,
        PermissionDecision::Deny => Decision::Deny,
    });
    let permitted = output.permission.and_then(|permission| match permission {
        Permission::Allow => Some(Decision::Allow),
        Permission::Ask => Some(Decision::Ask),
        Permission::Deny => Some(Decision::Deny),
        Permission::Modify => None,
    });
    decided.max(permitted)
}

/// Adds a line, unless there is nothing in it.
fn line(text: &mut String, line: &str) {
    if line.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// The end of a hook's stderr.
fn tail(stderr: String) -> String {
    let start = stderr.ceil_char_boundary(stderr.len().saturating_sub(STDERR_TAIL));
    into_plain(stderr.get(start..).unwrap_or_default().to_owned())
}

/// A failure that blocks is a warning each time. One that passes is a warning the first time, so that a guard that is
/// down does not fill the log.
fn log_failure(hook: &Hook, event: Event, kind: FailureKind, cause: &str, verb: Verb) {
    let (event, kind) = (event.name(), kind.name());
    if verb != Verb::Allow {
        tracing::warn!(hook = %hook.name, event, kind, cause, "a hook failed");
    } else if hook.has_warned.swap(true, Ordering::Relaxed) {
        tracing::debug!(hook = %hook.name, event, kind, cause, "a hook failed, and was passed over");
    } else {
        tracing::warn!(hook = %hook.name, event, kind, cause, "a hook failed, and was passed over; said once");
    }
}
