//! The event catalogue: one row for each event, read by validation, dispatch, documentation and schema.
//!
//! A row holds what a matcher selects and, for each [`Profile`], what a hook may do. The native column is Gatehook's
//! own contract; the docker-agent column follows its package documentation
//! (<https://pkg.go.dev/github.com/docker/docker-agent/pkg/hooks>); foreign contracts are named by what they call an event,
//! and their powers are the native ones as far as their [profile](crate::profile) has them. To add an event, add a row.

use crate::profile::Profile;

/// What a `matcher` of an event is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// `trigger` of `setup`: `init` or `maintenance`.
    Trigger,
    /// `source`, as in `startup` or `auto`.
    Source,
    /// `reason`, or `compaction_reason` of a compaction.
    Reason,
    /// `route`, as in `/v1/messages`.
    Route,
    /// `tool_name`.
    Tool,
    /// `agent_name`.
    Agent,
    /// `agent_switch_kind`.
    SwitchKind,
    /// `skill_name`.
    Skill,
    /// `notification_level`.
    Level,
    /// `file`, by glob.
    Path,
    /// `branch`.
    Branch,
    /// `event_name` of a custom event.
    Name,
}

/// What hooks of an event may rewrite. Such hooks run one after another, each seeing the previous rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rewrite {
    /// The arguments of a tool call, as a patch.
    ToolInput,
    /// The conversation sent to the model, as a whole.
    Messages,
    /// What a tool answered.
    ToolResponse,
    /// What the model answered: text, thinking, tool calls.
    Output,
    /// The summary that replaces a compacted conversation; the first one stands.
    Summary,
    /// The arguments of a skill.
    SkillArgs,
}

/// What `permission_decision` means on an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decides {
    /// It is not honoured.
    No,
    /// allow, ask or deny; the most restrictive stands.
    TriState,
    /// An explicit allow answers for the user.
    Consent,
}

/// What hooks of one event may do under one profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The host can be blocked.
    pub blocks: bool,
    /// A block comes when nothing can be undone any more: the user is told, and the record says so.
    pub blocks_late: bool,
    /// A failing hook blocks, whatever `on_error` says.
    pub fails_closed: bool,
    /// What may be rewritten.
    pub rewrites: Option<Rewrite>,
    /// What `permission_decision` means.
    pub decides: Decides,
    /// `additional_context`, and plain text on stdout, reach the model.
    pub context: bool,
    /// `instruction_context` is honoured.
    pub instructions: bool,
    /// `metadata` is honoured.
    pub metadata: bool,
}

impl Capabilities {
    const NONE: Self = Self {
        blocks: false,
        blocks_late: false,
        fails_closed: false,
        rewrites: None,
        decides: Decides::No,
        context: false,
        instructions: false,
        metadata: false,
    };

    const fn blocks(mut self) -> Self {
        self.blocks = true;
        self
    }
    const fn closed(mut self) -> Self {
        self.fails_closed = true;
        self
    }
    const fn rewrites(mut self, what: Rewrite) -> Self {
        self.rewrites = Some(what);
        self
    }
    const fn decides(mut self, how: Decides) -> Self {
        self.decides = how;
        self
    }
    const fn context(mut self) -> Self {
        self.context = true;
        self
    }
    const fn instructions(mut self) -> Self {
        self.instructions = true;
        self
    }
    const fn metadata(mut self) -> Self {
        self.metadata = true;
        self
    }
}

/// One row of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct EventSpec {
    /// The event.
    pub event: Event,
    /// Its name in configuration and payloads.
    pub name: &'static str,
    /// What a matcher selects; `None` where hooks take no matcher.
    pub subject: Option<Subject>,
    /// The native contract; `None` for a lane that native files do not have.
    pub native: Option<Capabilities>,
    /// docker-agent's newest; `None` where it has no such event.
    pub docker_agent: Option<Capabilities>,
    /// What foreign contracts call it; one that is not here has no such event.
    pub names: &'static [(Profile, &'static str)],
    /// When it happens, in one sentence.
    pub doc: &'static str,
}

impl EventSpec {
    /// Whether this foreign contract has the event.
    pub(crate) fn is_named_by(&self, profile: Profile) -> bool {
        self.names.iter().any(|(of, _)| *of == profile)
    }
}

macro_rules! catalogue {
    ($( $(#[doc = $doc:literal])+ $event:ident = $name:literal, $subject:expr, native $native:expr, docker $docker:expr
            $(, as [$($profile:ident $foreign:literal),+])?; )+) => {
        /// Something that happens, which hooks may judge, rewrite or observe.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Event { $( $(#[doc = $doc])+ $event, )+ }

        /// All events, in configuration order.
        pub const CATALOGUE: &[EventSpec] = &[
            $( EventSpec { event: Event::$event, name: $name, subject: $subject, native: $native, docker_agent: $docker,
                           names: &[$($((Profile::$profile, $foreign)),+)?], doc: concat!($($doc),+) }, )+
        ];
    };
}

use Decides::{Consent, TriState};
use Rewrite::{Messages, Output, SkillArgs, Summary, ToolInput, ToolResponse};
use Subject::{Agent, Branch, Level, Name, Path, Reason, Route, Skill, Source, SwitchKind, Tool, Trigger};

/// Observed only.
const SEE: Capabilities = Capabilities::NONE;

catalogue! {
    /// The project is being set up or maintained.
    Setup = "setup", Some(Trigger), native Some(SEE.context()), docker None,
        as [OllamaCli "Setup"];
    /// A session begins.
    SessionStart = "session_start", Some(Source),
        native Some(SEE.blocks().context().instructions()), docker Some(SEE.context().instructions()),
        as [OllamaCli "SessionStart", Ollm "on-session-start"];
    /// A session has ended.
    SessionEnd = "session_end", Some(Reason), native Some(SEE), docker Some(SEE),
        as [OllamaCli "SessionEnd", Ollm "on-session-end"];
    /// The user has sent a prompt, before the model sees it.
    UserPromptSubmit = "user_prompt_submit", None,
        native Some(SEE.blocks().context()), docker Some(SEE.blocks().context()),
        as [OllamaCli "UserPromptSubmit"];
    /// Messages that steer a running turn are about to be delivered.
    UserSteeringMessagesSubmit = "user_steering_messages_submit", None,
        native Some(SEE.blocks().context()), docker Some(SEE.blocks().context());
    /// A queued follow-up is about to be delivered.
    UserFollowupSubmit = "user_followup_submit", None,
        native Some(SEE.blocks().context()), docker Some(SEE.blocks().context());
    /// A turn begins, before its model call.
    TurnStart = "turn_start", None,
        native Some(SEE.context().instructions()), docker Some(SEE.context().instructions());
    /// A turn has ended, on whatever way.
    TurnEnd = "turn_end", Some(Reason), native Some(SEE), docker Some(SEE);
    /// The agent is about to call the model.
    BeforeLlmCall = "before_llm_call", None,
        native Some(SEE.blocks().rewrites(Messages)), docker Some(SEE.blocks().rewrites(Messages)),
        as [Ollm "pre-execution"];
    /// A request is about to reach a model, on the wire or from the agent.
    PreInference = "pre_inference", Some(Route),
        native Some(SEE.blocks().rewrites(Messages).decides(TriState).metadata()), docker None;
    /// A model has answered, before the caller sees it.
    PostInference = "post_inference", Some(Route),
        native Some(SEE.blocks().rewrites(Output).decides(TriState).metadata()), docker None;
    /// The model has answered the agent.
    AfterLlmCall = "after_llm_call", None, native Some(SEE.blocks()), docker Some(SEE),
        as [Ollm "post-execution"];
    /// The arguments of a tool call may be rewritten, before anything judges them.
    ToolInputTransform = "tool_input_transform", Some(Tool),
        native Some(SEE.blocks().rewrites(ToolInput)), docker Some(SEE.blocks().rewrites(ToolInput));
    /// A tool call is judged, after its arguments are final.
    ToolGuard = "tool_guard", Some(Tool),
        native Some(SEE.blocks().closed().decides(TriState).metadata()),
        docker Some(SEE.blocks().closed().decides(TriState).metadata());
    /// A tool call is about to run.
    PreToolUse = "pre_tool_use", Some(Tool),
        native Some(SEE.blocks().closed().rewrites(ToolInput).decides(TriState)),
        docker Some(SEE.blocks().closed().rewrites(ToolInput).decides(TriState)),
        as [OllamaCli "PreToolUse", Ollm "pre-tool-call"];
    /// The lane of `pre_tool_use` hooks marked `preempt_yolo`: judged before any standing permission.
    PreToolUsePreempt = "pre_tool_use_pre_yolo", Some(Tool),
        native Some(SEE.blocks().closed().decides(TriState).metadata()),
        docker Some(SEE.blocks().closed().decides(TriState).metadata());
    /// The user is about to be asked whether a tool call may run.
    PermissionRequest = "permission_request", Some(Tool),
        native Some(SEE.blocks().decides(Consent).metadata()),
        docker Some(SEE.blocks().decides(Consent).metadata()),
        as [OllamaCli "PermissionRequest", Ollm "on-approval-request"];
    /// It is settled whether a tool call runs.
    OnToolApprovalDecision = "on_tool_approval_decision", Some(Tool), native Some(SEE), docker Some(SEE);
    /// What a tool answered may be rewritten, before anyone sees it.
    ToolResponseTransform = "tool_response_transform", Some(Tool),
        native Some(SEE.rewrites(ToolResponse)), docker Some(SEE.rewrites(ToolResponse));
    /// A tool call has run.
    PostToolUse = "post_tool_use", Some(Tool),
        native Some(SEE.blocks().rewrites(ToolResponse).context()), docker Some(SEE.blocks()),
        as [OllamaCli "PostToolUse", Ollm "post-tool-call"];
    /// A tool call has failed.
    PostToolUseFailure = "post_tool_use_failure", Some(Tool), native Some(SEE.context()), docker None,
        as [OllamaCli "PostToolUseFailure"];
    /// The model has finished its work; a block says "keep working".
    Stop = "stop", None, native Some(SEE.blocks().context()), docker Some(SEE),
        as [OllamaCli "Stop"];
    /// The conversation no longer fits the model's window.
    OnContextOverflow = "on_context_overflow", None, native Some(SEE.blocks()), docker None,
        as [Ollm "on-context-overflow"];
    /// The conversation is about to be compacted.
    PreCompact = "pre_compact", Some(Source),
        native Some(SEE.blocks().context()), docker Some(SEE.blocks().context()),
        as [OllamaCli "PreCompact"];
    /// The summary of a compaction is about to be written.
    BeforeCompaction = "before_compaction", Some(Reason),
        native Some(SEE.blocks().rewrites(Summary)), docker Some(SEE.blocks().rewrites(Summary));
    /// A compaction has been applied.
    AfterCompaction = "after_compaction", Some(Reason), native Some(SEE), docker Some(SEE);
    /// A subagent is about to start.
    SubagentStart = "subagent_start", Some(Agent), native Some(SEE.blocks().context()), docker None,
        as [OllamaCli "SubagentStart"];
    /// A subagent has ended.
    SubagentStop = "subagent_stop", Some(Agent), native Some(SEE), docker Some(SEE),
        as [OllamaCli "SubagentStop"];
    /// The conversation moves to another agent.
    OnAgentSwitch = "on_agent_switch", Some(SwitchKind), native Some(SEE), docker Some(SEE);
    /// A skill is about to run.
    SkillTrigger = "skill_trigger", Some(Skill),
        native Some(SEE.blocks().rewrites(SkillArgs).context()), docker None,
        as [OllamaCli "SkillTrigger"];
    /// The agent waits for the user.
    OnUserInput = "on_user_input", None, native Some(SEE), docker Some(SEE);
    /// The user is told something.
    Notification = "notification", Some(Level), native Some(SEE), docker Some(SEE),
        as [OllamaCli "Notification"];
    /// Something has failed.
    OnError = "on_error", None, native Some(SEE), docker Some(SEE),
        as [Ollm "on-error"];
    /// The cap on iterations is reached.
    OnMaxIterations = "on_max_iterations", None, native Some(SEE), docker Some(SEE);
    /// The user lets a session go on past its cap.
    OnSessionResume = "on_session_resume", None, native Some(SEE), docker Some(SEE);
    /// A worktree has been created for the session.
    WorktreeCreate = "worktree_create", None,
        native Some(SEE.blocks().context()), docker Some(SEE.blocks().context());
    /// A watched file has changed.
    OnFileChange = "on_file_change", Some(Path), native Some(SEE.context()), docker None,
        as [Ollm "on-file-change"];
    /// A commit is about to be made.
    OnGitCommit = "on_git_commit", Some(Branch), native Some(SEE.blocks().context()), docker None,
        as [Ollm "on-git-commit"];
    /// An event of the user's own, fired by name.
    Custom = "custom", Some(Name), native Some(SEE.blocks().context()), docker None,
        as [Ollm "custom"];
}

impl Event {
    /// How many events there are.
    pub const COUNT: usize = CATALOGUE.len();

    /// The catalogue's row of this event.
    pub fn spec(self) -> &'static EventSpec {
        // The table is written by the same macro as the enum: row N is variant N.
        #[expect(clippy::indexing_slicing, reason = "one row for each variant")]
        &CATALOGUE[self as usize]
    }

    /// The name in configuration, as in `pre_tool_use`.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The name that hooks read in `hook_event_name`. The preempting lane shows itself as `pre_tool_use`.
    pub fn public_name(self) -> &'static str {
        match self {
            Event::PreToolUsePreempt => Event::PreToolUse.name(),
            event => event.name(),
        }
    }

    /// Whether this is a lane inside the engine, which no configuration names.
    pub fn is_lane(self) -> bool {
        self == Event::PreToolUsePreempt
    }

    /// The event of this configuration name, lanes included.
    pub fn from_name(name: &str) -> Option<Event> {
        CATALOGUE.iter().find(|spec| spec.name == name).map(|spec| spec.event)
    }

    /// The name under `profile`; `None` where that profile has no such event.
    ///
    /// ```
    /// use gatehook_events::{Event, Profile};
    ///
    /// assert_eq!(Event::PreToolUse.name_in(Profile::Ollm), Some("pre-tool-call"));
    /// assert_eq!(Event::PreToolUse.name_in(Profile::OllamaCli), Some("PreToolUse"));
    /// assert_eq!(Event::TurnStart.name_in(Profile::Ollm), None);
    /// assert_eq!(Event::from_name_in(Profile::Ollm, "pre-tool-call"), Some(Event::PreToolUse));
    /// ```
    pub fn name_in(self, profile: Profile) -> Option<&'static str> {
        if profile.spec().is_foreign {
            return self.spec().names.iter().find(|(of, _)| *of == profile).map(|(_, name)| *name);
        }
        self.capabilities(profile).map(|_| self.name())
    }

    /// The event of this name under `profile`.
    pub fn from_name_in(profile: Profile, name: &str) -> Option<Event> {
        Event::all().find(|event| event.name_in(profile) == Some(name))
    }

    /// All events that a configuration may name, in catalogue order.
    pub fn all() -> impl Iterator<Item = Event> {
        CATALOGUE.iter().map(|spec| spec.event).filter(|event| !event.is_lane())
    }

    /// What hooks of this event may do under `profile`; `None` where that profile has no such event.
    pub fn capabilities(self, profile: Profile) -> Option<Capabilities> {
        profile.capabilities(self.spec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::PROFILES;

    #[test]
    fn each_row_stands_at_its_events_place() {
        for (place, spec) in CATALOGUE.iter().enumerate() {
            assert_eq!(spec.event as usize, place, "{}", spec.name);
            assert_eq!(Event::from_name(spec.name), Some(spec.event));
        }
    }

    #[test]
    fn docker_agent_has_twenty_eight_events() {
        let events = Event::all().filter(|event| event.capabilities(Profile::DockerAgent).is_some());
        assert_eq!(events.count(), 28);
    }

    #[test]
    fn ollama_cli_has_fourteen_events_and_ollm_twelve() {
        for (profile, count) in [(Profile::OllamaCli, 14), (Profile::Ollm, 12)] {
            assert_eq!(Event::all().filter(|event| event.capabilities(profile).is_some()).count(), count);
            for event in Event::all() {
                let name = event.name_in(profile);
                assert_eq!(name.is_some(), event.capabilities(profile).is_some(), "{}", event.name());
                assert_eq!(name.and_then(|name| Event::from_name_in(profile, name)), name.map(|_| event));
            }
        }
    }

    #[test]
    fn what_fails_closed_can_block() {
        for spec in CATALOGUE {
            for capabilities in PROFILES.iter().filter_map(|row| spec.event.capabilities(row.profile)) {
                assert!(capabilities.blocks || !capabilities.fails_closed, "{}", spec.name);
            }
        }
    }
}
