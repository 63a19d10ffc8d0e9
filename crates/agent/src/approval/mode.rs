//! Safety modes: what is asked about where no rule speaks.

use std::collections::BTreeMap;

use gatehook_engine::builtins::safer_shell::{self, Label};
use serde_json::{Map, Value};

use super::{Source, Tool};

/// How much runs unasked. A session without one asks about everything but tools that only read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SafetyMode {
    /// Everything is asked about.
    Strict,
    /// What is safe runs, the rest is asked about.
    Balanced,
    /// What is safe runs, the rest is denied.
    Restricted,
    /// Everything runs.
    Autonomous,
}

impl SafetyMode {
    /// All of them by their names.
    pub const ALL: [(&'static str, SafetyMode); 4] = [
        ("strict", SafetyMode::Strict),
        ("balanced", SafetyMode::Balanced),
        ("restricted", SafetyMode::Restricted),
        ("autonomous", SafetyMode::Autonomous),
    ];

    /// As in `balanced`, which is what hooks read in `safety_policy`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }

    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
    }
}

/// What a mode, or the rules before it, say of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ruling {
    Allow(Source),
    Deny(Source),
    /// A rule wants the person asked.
    Ask,
    /// No rule has an opinion, and the mode leaves it to hooks and the person.
    Open,
}

/// What a mode says of a label.
pub(super) fn by_mode(mode: Option<SafetyMode>, label: Label) -> Ruling {
    match (mode, label) {
        (Some(SafetyMode::Autonomous), _) => Ruling::Allow(Source::Yolo),
        (Some(SafetyMode::Balanced), Label::Safe) => Ruling::Allow(Source::ModeBalanced),
        (Some(SafetyMode::Restricted), Label::Safe) => Ruling::Allow(Source::ModeRestricted),
        (Some(SafetyMode::Restricted), _) => Ruling::Deny(Source::ModeRestricted),
        (Some(SafetyMode::Balanced | SafetyMode::Strict) | None, _) => Ruling::Open,
    }
}

/// What a call would do: by its command line where the tool is a shell, else by what the tool says of itself.
pub(super) struct Safety {
    pub(super) label: Label,
    /// What the person is told of it.
    pub(super) metadata: BTreeMap<String, String>,
}

impl Safety {
    pub(super) fn of(tool: &Tool, arguments: &Map<String, Value>) -> Self {
        if let Some(found) = safer_shell::classify(&tool.name, tool.category.as_deref(), arguments) {
            return Self { label: found.label, metadata: found.metadata };
        }
        let label = match (tool.destructive, tool.read_only) {
            (true, _) => Label::Destructive,
            (false, true) => Label::Safe,
            (false, false) => Label::Unknown,
        };
        Self { label, metadata: BTreeMap::from([("safety_label".to_owned(), label.name().to_owned())]) }
    }
}
