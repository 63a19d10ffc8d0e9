//! Whether a tool call runs: hooks, rules, the safety mode and a person have their say, in this order.
//!
//! 1. `tool_input_transform` may rewrite the arguments; `tool_guard` and the preempting lane of `pre_tool_use` judge
//!    them, whatever is permitted.
//! 2. [`Rules`] and the [`SafetyMode`] say what stands: run, deny, ask.
//! 3. `pre_tool_use` runs: all of its hooks where it is still open, else those whose contract says always. Where they
//!    rewrite, steps 1 and 2 are taken once more.
//! 4. What is to be asked goes to `permission_request`, and then to the person ([`Asks`]).
//! 5. `on_tool_approval_decision` is told, once, what came of it and by whom ([`Source`]).
//!
//! The stages and sources are those of docker-agent's runtime: <https://github.com/docker/docker-agent>.

mod asks;
mod chain;
mod glob;
mod mode;
mod rules;
mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatehook_engine::Executor;
use gatehook_engine::events::Input;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use self::chain::Chain;

pub use asks::{Answer, Asking, Asks, Question};
pub use mode::SafetyMode;
pub use rules::{Rule, RuleError, Rules, StandingRules};
pub use source::{SOURCES, Source, SourceSpec};

/// What is known of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tool {
    /// Its name.
    pub name: Arc<str>,
    /// As in `filesystem`, `shell` or `mcp`.
    pub category: Option<Arc<str>>,
    /// It says of itself that it changes nothing.
    pub read_only: bool,
    /// It says of itself that it takes something away.
    pub destructive: bool,
    /// What the person is told of it.
    pub metadata: BTreeMap<String, String>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    /// Its identity.
    pub id: Option<Arc<str>>,
    /// The tool.
    pub tool: Tool,
    /// As the model gave them.
    pub arguments: Arc<Map<String, Value>>,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// It runs.
    Run {
        /// With these arguments.
        input: Arc<Map<String, Value>>,
        /// Who settled it.
        source: Source,
    },
    /// It does not run.
    Deny {
        /// What the model is told instead of a result.
        reason: String,
        /// Who settled it.
        source: Source,
    },
    /// The caller gave up; nobody has denied it.
    Canceled,
}

/// What may change while a session lasts.
#[derive(Debug, Clone, Default)]
struct Session {
    mode: Option<SafetyMode>,
    rules: Rules,
}

/// The approval of one session's tool calls.
///
/// ```
/// use std::sync::Arc;
///
/// use gatehook_agent::approval::{Approvals, Settled, Source, StandingRules, Tool, ToolUse};
/// use gatehook_engine::events::Input;
/// use gatehook_engine::{Executor, HandlerEnv, HooksConfig};
/// use tokio_util::sync::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let executor = Executor::new(HooksConfig::default(), HandlerEnv::current()?)?;
/// let approvals = Approvals::new(executor, StandingRules::default());
/// let read = Tool { name: "read_file".into(), read_only: true, ..Tool::default() };
/// let call = ToolUse { id: None, tool: read, arguments: Arc::default() };
/// let settled = approvals.settle(&call, &Input::default(), &CancellationToken::new()).await;
/// assert_eq!(settled, Settled::Run { input: Arc::default(), source: Source::ReadOnlyHint });
/// # Ok(())
/// # }
/// ```
pub struct Approvals {
    executor: Executor,
    standing: StandingRules,
    session: Mutex<Session>,
    person: Option<Arc<dyn Asks>>,
    /// One question at a time: a person answers what they see.
    asking: tokio::sync::Mutex<()>,
}

impl Approvals {
    /// A session without a mode, without rules of its own, and with nobody to ask.
    pub fn new(executor: Executor, standing: StandingRules) -> Self {
        Self { executor, standing, session: Mutex::default(), person: None, asking: tokio::sync::Mutex::new(()) }
    }

    /// The same with somebody to ask.
    #[must_use]
    pub fn asking(mut self, person: Arc<dyn Asks>) -> Self {
        self.person = Some(person);
        self
    }

    /// The session's mode.
    pub fn mode(&self) -> Option<SafetyMode> {
        self.session().mode
    }

    /// Changes the session's mode, for calls that are not settled yet too.
    pub fn set_mode(&self, mode: Option<SafetyMode>) {
        self.session().mode = mode;
    }

    /// The session's rules, with what the person allowed meanwhile.
    pub fn session_rules(&self) -> Rules {
        self.session().rules.clone()
    }

    /// Replaces the session's rules, for calls that are not settled yet too.
    pub fn set_session_rules(&self, rules: Rules) {
        self.session().rules = rules;
    }

    /// Leads one call through all stages. `about` is what hooks are told of the session; the call's own fields are
    /// filled in. Several calls may be settled side by side.
    ///
    /// On `cancel` hooks and questions end, and the call is [`Settled::Canceled`]. Dropping the future leaves nothing
    /// behind, and tells nobody.
    pub async fn settle(&self, call: &ToolUse, about: &Input, cancel: &CancellationToken) -> Settled {
        Box::pin(Chain::new(self, call, about, cancel).settle()).await
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals").field("standing", &self.standing).field("session", &*self.session()).finish()
    }
}

#[cfg(test)]
mod tests;
