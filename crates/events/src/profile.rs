//! A profile says whose contract a hook was written for: it sets defaults and narrows or widens the catalogue's cells.

use crate::catalogue::{Capabilities, Decides, Event, EventSpec, Subject};

/// The contract a hook was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// Gatehook's own.
    #[default]
    Native,
    /// docker-agent's newest hook engine.
    DockerAgent,
    /// docker-agent as released in v1.58: 23 events, lenient reading, first rewrite wins.
    DockerAgentV158,
    /// Ollama CLI: <https://github.com/muah1987/ollama-cli>, `docs/hooks.md`.
    OllamaCli,
    /// OLLM CLI, hook protocol 1.0.0: <https://github.com/Tecet/OLLM-CLI>, `docs/Hooks/Protocol.md`.
    Ollm,
}

/// Which shell runs a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// `/bin/sh`.
    Posix,
    /// The user's `$SHELL`, else `/bin/sh`.
    Users,
    /// None: a command is a program, and its arguments stand beside it.
    None,
}

/// How a matcher is held against its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Matching {
    /// It fits the whole of it, in its own case.
    Anchored,
    /// It is found anywhere in it; a tool's name in any case, and under each name that the tool has elsewhere.
    Search,
    /// Hooks have no matcher.
    None,
}

/// What a failing hook means where `on_error` says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    /// It blocks what can be blocked.
    Blocks,
    /// It blocks these events, and warns elsewhere.
    BlocksOn(&'static [Event]),
    /// It warns.
    Warns,
}

/// How a profile's numbers and habits differ from the others'.
#[derive(Debug, Clone, Copy)]
pub struct ProfileSpec {
    /// The profile.
    pub profile: Profile,
    /// Its name in `dialect:`.
    pub name: &'static str,
    /// Default timeout of a hook, in seconds.
    pub timeout_secs: u64,
    /// Default timeout of a model judge, in seconds.
    pub judge_timeout_secs: u64,
    /// Which shell runs a command line.
    pub shell: Shell,
    /// What a failing hook means where `on_error` is silent and its event does not fail closed.
    pub failing: Failing,
    /// Whether the engine needs a [`Dialect`](crate::dialect::Dialect) to speak with its hooks, whose events have names
    /// of their own.
    pub is_foreign: bool,
    /// Whether its hooks run one after another on every event.
    pub sequential: bool,
    /// Whether a hook that says nothing has failed, where others have no opinion.
    pub silence_fails: bool,
    /// How its matchers are held against their subject.
    pub matching: Matching,
    /// What hooks of an event may do; `None` where it has no such event.
    pub(crate) able: fn(&EventSpec) -> Option<Capabilities>,
    /// Whether only tool events take a matcher.
    pub tool_matchers_only: bool,
    /// Whether undecodable replies and unknown verdict values are no failure, and context is taken on every event,
    /// reasons for an allow included.
    pub lenient_replies: bool,
    /// Whether warnings about hooks go to the log alone, where others also tell the user.
    pub logs_warnings: bool,
    /// Whether hooks that run the same command are one hook, whatever else differs.
    pub identity_by_command: bool,
    /// Whether `${env.NAME}` in variables, and `~` and `$NAME` in a working directory, are expanded.
    pub expands_references: bool,
    /// Whether the first rewrite stands and replaces the arguments, where others patch and the last one stands.
    pub first_rewrite_wins: bool,
}

/// One row for each profile.
pub const PROFILES: &[ProfileSpec] = &[
    ProfileSpec {
        profile: Profile::Native,
        name: "native",
        timeout_secs: 10,
        judge_timeout_secs: 30,
        shell: Shell::Posix,
        failing: Failing::Blocks,
        is_foreign: false,
        sequential: false,
        silence_fails: false,
        matching: Matching::Anchored,
        able: |spec| spec.native,
        tool_matchers_only: false,
        lenient_replies: false,
        expands_references: true,
        logs_warnings: false,
        identity_by_command: false,
        first_rewrite_wins: false,
    },
    ProfileSpec {
        profile: Profile::DockerAgent,
        name: "docker-agent",
        timeout_secs: 60,
        judge_timeout_secs: 60,
        shell: Shell::Users,
        failing: Failing::Warns,
        is_foreign: false,
        sequential: false,
        silence_fails: false,
        matching: Matching::Anchored,
        able: |spec| spec.docker_agent,
        tool_matchers_only: true,
        lenient_replies: false,
        expands_references: true,
        logs_warnings: false,
        identity_by_command: false,
        first_rewrite_wins: false,
    },
    ProfileSpec {
        profile: Profile::DockerAgentV158,
        name: "docker-agent@v1.58",
        timeout_secs: 60,
        judge_timeout_secs: 60,
        shell: Shell::Users,
        failing: Failing::Warns,
        is_foreign: false,
        sequential: false,
        silence_fails: false,
        matching: Matching::Anchored,
        able: docker_agent_v158,
        tool_matchers_only: true,
        lenient_replies: true,
        expands_references: false,
        logs_warnings: true,
        identity_by_command: true,
        first_rewrite_wins: true,
    },
    ProfileSpec {
        profile: Profile::OllamaCli,
        name: "ollama-cli",
        timeout_secs: 60,
        judge_timeout_secs: 60,
        shell: Shell::Posix,
        failing: Failing::BlocksOn(&[Event::PreToolUse, Event::PermissionRequest, Event::UserPromptSubmit]),
        is_foreign: true,
        sequential: true,
        silence_fails: false,
        matching: Matching::Search,
        able: ollama_cli,
        tool_matchers_only: false,
        lenient_replies: false,
        expands_references: true,
        logs_warnings: false,
        identity_by_command: false,
        first_rewrite_wins: false,
    },
    ProfileSpec {
        profile: Profile::Ollm,
        name: "ollm",
        timeout_secs: 5,
        judge_timeout_secs: 5,
        shell: Shell::None,
        failing: Failing::Blocks,
        is_foreign: true,
        sequential: true,
        silence_fails: true,
        matching: Matching::None,
        able: ollm,
        tool_matchers_only: false,
        lenient_replies: false,
        expands_references: true,
        logs_warnings: false,
        identity_by_command: false,
        first_rewrite_wins: false,
    },
];

/// The names of all profiles, in their order.
pub const NAMES: [&str; PROFILES.len()] = {
    let mut names = [""; PROFILES.len()];
    let mut at = 0;
    while at < names.len() {
        #[expect(clippy::indexing_slicing, reason = "both have as many rows, and a constant fails at compile time")]
        {
            names[at] = PROFILES[at].name;
        }
        at += 1;
    }
    names
};

/// Events that docker-agent got after v1.58.
const NEWER_THAN_V158: &[Event] = &[
    Event::UserSteeringMessagesSubmit,
    Event::UserFollowupSubmit,
    Event::ToolInputTransform,
    Event::ToolGuard,
    Event::PreToolUsePreempt,
    Event::WorktreeCreate,
];

/// Events whose plain output was context in v1.58.
const CONTEXT_IN_V158: &[Event] = &[
    Event::PostToolUse,
    Event::SessionStart,
    Event::UserPromptSubmit,
    Event::TurnStart,
    Event::PreCompact,
    Event::Stop,
];

/// What v1.58 has of an event.
fn docker_agent_v158(spec: &EventSpec) -> Option<Capabilities> {
    spec.docker_agent.filter(|_| !NEWER_THAN_V158.contains(&spec.event)).map(|newest| Capabilities {
        blocks: true,
        fails_closed: spec.event == Event::PreToolUse,
        context: CONTEXT_IN_V158.contains(&spec.event),
        instructions: false,
        metadata: false,
        ..newest
    })
}

/// The native powers, over the events that it has a name for.
fn ollama_cli(spec: &EventSpec) -> Option<Capabilities> {
    let native = spec.native.filter(|_| spec.is_named_by(Profile::OllamaCli))?;
    // Its replies have no place for instructions; what they hold besides is kept.
    Some(Capabilities { instructions: false, metadata: true, ..native })
}

/// Yes or no, on every event that it has a name for: its replies say nothing else.
fn ollm(spec: &EventSpec) -> Option<Capabilities> {
    let native = spec.native.filter(|_| spec.is_named_by(Profile::Ollm))?;
    let decides = if native.decides == Decides::Consent { Decides::Consent } else { Decides::No };
    Some(Capabilities {
        blocks: true,
        blocks_late: !native.blocks,
        fails_closed: true,
        decides,
        rewrites: None,
        context: false,
        instructions: false,
        metadata: true,
    })
}

impl Profile {
    /// This profile's row.
    pub fn spec(self) -> &'static ProfileSpec {
        // One row for each variant, in its order: a test holds it.
        #[expect(clippy::indexing_slicing, reason = "one row for each variant")]
        &PROFILES[self as usize]
    }

    /// The name in `dialect:`.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The profile of this name.
    pub fn from_name(name: &str) -> Option<Profile> {
        PROFILES.iter().find(|spec| spec.name == name).map(|spec| spec.profile)
    }

    /// What hooks of an event may do under this profile; `None` where it has no such event.
    pub(crate) fn capabilities(self, spec: &EventSpec) -> Option<Capabilities> {
        (self.spec().able)(spec)
    }

    /// What a matcher of `event` selects under this profile; `None` where hooks take no matcher.
    pub fn subject(self, event: Event) -> Option<Subject> {
        let subject = event.spec().subject.filter(|_| self.spec().matching != Matching::None);
        if self.spec().tool_matchers_only {
            subject.filter(|&subject| subject == Subject::Tool && event != Event::OnToolApprovalDecision)
        } else {
            subject
        }
    }

    /// Whether `event` honours `permission_decision` as allow, ask or deny.
    pub fn decides(self, event: Event) -> Decides {
        event.capabilities(self).map_or(Decides::No, |capabilities| capabilities.decides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_stands_at_its_place() {
        for (place, spec) in PROFILES.iter().enumerate() {
            assert_eq!(spec.profile as usize, place, "{}", spec.name);
            assert_eq!(Profile::from_name(spec.name), Some(spec.profile));
            assert_eq!(NAMES[place], spec.name);
        }
    }

    #[test]
    fn an_ollm_hook_blocks_late_where_nothing_can_be_undone() {
        let late = Event::all().filter(|event| event.capabilities(Profile::Ollm).is_some_and(|able| able.blocks_late));
        assert_eq!(late.collect::<Vec<_>>(), [Event::SessionEnd, Event::OnError, Event::OnFileChange]);
    }

    #[test]
    fn an_ollama_cli_guard_that_fails_blocks_prompts_and_tools() {
        let Failing::BlocksOn(events) = Profile::OllamaCli.spec().failing else { panic!("it blocks some") };
        for event in events {
            assert!(event.capabilities(Profile::OllamaCli).is_some_and(|able| able.blocks), "{}", event.name());
        }
    }

    #[test]
    fn v158_has_twenty_three_events() {
        let events = Event::all().filter(|event| event.capabilities(Profile::DockerAgentV158).is_some());
        assert_eq!(events.count(), 23);
    }
}
