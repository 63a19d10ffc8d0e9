//! When each event happens in an agent, and what its verdict does: the rows of `docs/events.md`.

use gatehook_engine::events::Event;
use gatehook_engine::events::input::{FIELDS, Field, Scope};

/// One event in an agent.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The event.
    pub event: Event,
    /// When it happens.
    pub when: &'static str,
    /// What the agent does with the verdict.
    pub obeyed: &'static str,
}

macro_rules! moments {
    ($($event:ident: $when:literal, $obeyed:literal;)+) => {
        /// Every event of the catalogue but lanes, in its order.
        pub const MOMENTS: &[Moment] = &[
            $(Moment { event: Event::$event, when: $when, obeyed: $obeyed }),+
        ];
    };
}

moments! {
    Setup: "Before a session: the first in its project (`init`), and once a day (`maintenance`); by `gatehook setup`.",
        "Variables that a hook writes to its `env_file` are in the environment of later hooks and of tools. Context is told \
         to the model in the whole session.";
    SessionStart: "Once, with the first prompt of a session, before anything else.",
        "A block ends what was begun, and the model is not asked. Context is told to the model in the whole session.";
    SessionEnd: "At the end of a session, whatever ended it.", "None: it is over.";
    UserPromptSubmit: "The user has sent a prompt, and nobody has seen it.",
        "A block drops the prompt. Context is told to the model until it is done.";
    UserSteeringMessagesSubmit: "The user has said something while a turn ran; before the next turn.",
        "A block ends the run. Context is told to the model in the next turn.";
    UserFollowupSubmit: "The model is done, and a prompt of the user's waits.",
        "A block drops the prompt and ends the run. Context is told to the model until it is done.";
    TurnStart: "A turn begins.", "Context is told to the model in this turn.";
    TurnEnd: "A turn that began has ended, on every way out, once.", "None: it is over.";
    BeforeLlmCall: "The conversation is about to go to the model.",
        "A block ends the run. A rewrite goes to the model in place of the conversation, this time.";
    PreInference: "The request has been written for the model's server.",
        "A block ends the run; `ask` asks the person. A rewrite goes to the server.";
    PostInference: "The model answers; piece by piece where it streams.",
        "A block ends the run, and what has not been shown never is; `ask` asks the person before that. A rewrite is what is \
         shown and kept.";
    AfterLlmCall: "The answer is whole, and before its tools are called.",
        "A block ends the run; no tool is called.";
    ToolInputTransform: "The model calls a tool, before anything judges the call.",
        "A rewrite is what is judged and run. A block denies the call.";
    ToolGuard: "The arguments of a call are final, whatever is permitted.",
        "A denial denies the call; `ask` asks the person, whom no rule and no mode replaces.";
    PreToolUse: "A call is about to run.",
        "A denial denies the call, `ask` asks the person, `allow` runs what would have been asked. A rewrite is judged \
         once more.";
    PermissionRequest: "The person is about to be asked about a call.",
        "`allow` and `deny` answer in their place.";
    OnToolApprovalDecision: "It is settled whether a call runs; once for each call.", "None.";
    ToolResponseTransform: "A tool has answered, or was denied, before anybody sees that.",
        "A rewrite is what hooks, the model and the session are told.";
    PostToolUse: "A tool has run, also where it failed.",
        "A block ends the run and the other calls of the answer. A rewrite and context are told to the model.";
    PostToolUseFailure: "A tool has failed, after `post_tool_use`.", "Context is told to the model with the result.";
    Stop: "The model is done.",
        "A block lets it go on, with the reason as its next instruction, 8 times in a row at most.";
    OnContextOverflow: "The model's server said that the conversation does not fit its window.",
        "A block ends the run. Otherwise the conversation is compacted, and the model is asked once more.";
    PreCompact: "The conversation is about to be compacted.",
        "A block leaves it as it is, and the person is told. Context is told to whoever writes the summary.";
    BeforeCompaction: "The summary is about to be written.",
        "A block leaves the conversation as it is. A summary is taken as it stands, and the model is not asked for one.";
    AfterCompaction: "The summary stands in place of the conversation.", "None.";
    SubagentStart: "A subagent is about to begin a task.",
        "A block fails the call that wanted it. Context is told to its model.";
    SubagentStop: "A subagent has ended, on success and failure.", "None: it is over.";
    OnAgentSwitch: "A task or the conversation goes to another agent, or a task comes back.", "None.";
    SkillTrigger: "A skill is about to be used.",
        "A block refuses it. Rewritten arguments are what it is used with. Context is told to the model.";
    OnUserInput: "The agent waits for the person: in a dialog, and when it is done.", "None.";
    Notification: "The person is told something.", "None: they have been told.";
    OnError: "Something has failed, after `notification`.", "None.";
    OnMaxIterations: "The model was asked as often as it may be, after `notification`.",
        "None: the person says whether it goes on.";
    OnSessionResume: "The person lets it go on past the cap.", "None.";
    WorktreeCreate: "A worktree was made for the session, which has not begun.",
        "A block removes it, and there is no session. Context is told to the model in the whole session.";
    OnFileChange: "A tool has changed a file of the workspace, or somebody else has.",
        "Context is told to the model.";
    OnGitCommit: "Somebody commits, in a repository with `gatehook git install`.",
        "A block refuses the commit.";
    Custom: "`gatehook fire custom NAME`.", "A block is its exit code.";
}

/// Fields of events that an agent has nothing for: those of requests and clients of a gateway, and some of hooks of other
/// contracts.
const UNTOLD: &[(&[Event], &[&str])] = &[
    (&[Event::BeforeLlmCall], &["duration"]),
    (&[Event::AfterLlmCall], &["messages"]),
    (&[Event::PreInference, Event::PostInference], &["format", "suffix", "template", "context", "client", "approval"]),
    (
        &[Event::ToolGuard, Event::PreToolUse, Event::ToolResponseTransform],
        &["request_id", "route", "client", "approval"],
    ),
];

impl Moment {
    /// The fields that the event alone has, or a few, as far as an agent has something for them.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        let event = self.event;
        let is_own = move |field: &&Field| matches!(field.scope, Scope::On(events) if events.contains(&event));
        let is_untold = move |field: &&Field| {
            UNTOLD.iter().any(|(events, names)| events.contains(&event) && names.contains(&field.name))
        };
        FIELDS.iter().filter(is_own).filter(move |field| !is_untold(field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_but_lanes_has_its_moment_in_order() {
        let known: Vec<Event> = MOMENTS.iter().map(|moment| moment.event).collect();
        assert_eq!(known, Event::all().filter(|event| !event.is_lane()).collect::<Vec<_>>());
    }
}
