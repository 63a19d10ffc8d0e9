//! Commands of the input line: one table, for the list, for completion, and for what they do.

use super::super::clean;
use super::super::wire::{Choice, Command, Facts};

/// What a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    Agent,
    Model,
    Mode,
    Session,
}

/// What a command does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Does {
    Hooks,
    Trust,
    Help,
    Quit,
    /// Is the session's to do.
    Asks(fn() -> Command),
    /// The same with one of several.
    Picks(fn(String) -> Command),
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slash {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) about: &'static str,
    pub(crate) does: Does,
    /// Whether it is done while a turn runs.
    pub(crate) any_time: bool,
}

macro_rules! row {
    ($name:literal, $takes:ident, $does:expr, $any_time:literal, $about:literal) => {
        Slash { name: $name, takes: Takes::$takes, about: $about, does: $does, any_time: $any_time }
    };
}

/// All commands, in the order of the list.
pub(crate) const SLASHES: [Slash; 11] = [
    row!("hooks", Nothing, Does::Hooks, true, "hooks that are in force here"),
    row!("trust", Nothing, Does::Trust, true, "how hooks of this project are approved"),
    row!("compact", Nothing, Does::Asks(|| Command::Compact), false, "a summary in place of the conversation so far"),
    row!("clear", Nothing, Does::Asks(|| Command::Clear), false, "a new session"),
    row!("resume", Session, Does::Picks(Command::Resume), false, "go on with a session from before"),
    row!("agents", Agent, Does::Picks(Command::Agent), false, "agents, and which one answers"),
    row!("model", Model, Does::Picks(Command::Model), false, "the model"),
    row!("mode", Mode, Does::Picks(Command::Mode), false, "how much runs unasked"),
    row!("undo", Nothing, Does::Asks(|| Command::Undo), false, "take the last turn out of the conversation"),
    row!("help", Nothing, Does::Help, true, "keys and commands"),
    row!("quit", Nothing, Does::Quit, true, "end the session"),
];

/// Safety modes, and what they mean.
const MODES: [(&str, &str); 5] = [
    ("none", "asks about everything but tools that only read"),
    ("strict", "asks about everything"),
    ("balanced", "runs what is safe, asks about the rest"),
    ("restricted", "runs what is safe, denies the rest"),
    ("autonomous", "runs everything"),
];

/// What a line means that begins with the mark of a command: the command, and what it is given. `None` where the line is
/// none, but a prompt, also one with a name.
pub(crate) fn read<'l>(line: &'l str, facts: &Facts) -> Option<Result<(&'static Slash, &'l str), String>> {
    let line = line.strip_prefix('/').filter(|line| !line.starts_with('/') && !line.contains('\n'))?;
    let (name, argument) = line.split_once(' ').unwrap_or((line, ""));
    let argument = argument.trim();
    Some(match find(name) {
        None if name.contains('/') || facts.prompts.iter().any(|prompt| prompt.name == name) => return None,
        None => Err(format!("there is no /{}; /help shows all", clean::line(name))),
        Some(slash) if slash.takes == Takes::Nothing && !argument.is_empty() => Err(format!("/{name} takes nothing")),
        Some(slash) => Ok((slash, argument)),
    })
}

/// What is said with a line that is no command: one that begins with a command's mark is written with two.
pub(crate) fn said(line: String) -> String {
    line.strip_prefix('/').filter(|rest| rest.starts_with('/')).map(str::to_owned).unwrap_or(line)
}

/// The command of this name.
pub(crate) fn find(name: &str) -> Option<&'static Slash> {
    SLASHES.iter().find(|slash| slash.name == name)
}

impl Takes {
    /// What there is to choose from.
    pub(crate) fn choices(self, facts: &Facts) -> Vec<Choice> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Agent => facts.agents.clone(),
            Self::Model => facts.models.clone(),
            Self::Session => facts.sessions.clone(),
            Self::Mode => MODES
                .map(|(name, about)| Choice {
                    name: name.to_owned(),
                    about: if name == facts.mode || (name == "none" && facts.mode.is_empty()) {
                        format!("{about} (now)")
                    } else {
                        about.to_owned()
                    },
                })
                .to_vec(),
        }
    }
}
