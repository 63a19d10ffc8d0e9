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
}

/// Which shell runs a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// `/bin/sh`.
    Posix,
    /// The user's `$SHELL`, else `/bin/sh`.
    Users,
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
    /// Whether a failing hook blocks where it can and `on_error` is silent.
    pub blocks_on_failure: bool,
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
        blocks_on_failure: true,
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
        blocks_on_failure: false,
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
        blocks_on_failure: false,
        tool_matchers_only: true,
        lenient_replies: true,
        expands_references: false,
        logs_warnings: true,
        identity_by_command: true,
        first_rewrite_wins: true,
    },
];

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
        match self {
            Profile::Native => spec.native,
            Profile::DockerAgent => spec.docker_agent,
            Profile::DockerAgentV158 => {
                spec.docker_agent.filter(|_| !NEWER_THAN_V158.contains(&spec.event)).map(|newest| Capabilities {
                    blocks: true,
                    fails_closed: spec.event == Event::PreToolUse,
                    context: CONTEXT_IN_V158.contains(&spec.event),
                    instructions: false,
                    metadata: false,
                    ..newest
                })
            }
        }
    }

    /// What a matcher of `event` selects under this profile; `None` where hooks take no matcher.
    pub fn subject(self, event: Event) -> Option<Subject> {
        let subject = event.spec().subject;
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
        }
    }

    #[test]
    fn v158_has_twenty_three_events() {
        let events = Event::all().filter(|event| event.capabilities(Profile::DockerAgentV158).is_some());
        assert_eq!(events.count(), 23);
    }
}
