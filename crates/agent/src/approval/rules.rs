//! Permission rules: `tool` or `tool:argument=pattern:argument=pattern`, each part a glob. They are written as
//! docker-agent's are: <https://docs.docker.com/ai/docker-agent/configuration/permissions/>.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use gatehook_engine::builtins::safer_shell::{self, FIELDS};
use serde_json::{Map, Value};

use super::glob::{Glob, GlobError, lower};
use super::mode::Ruling;
use super::{Source, Tool};

/// One rule over the calls of tools. It is read from its text, and shown as it.
///
/// ```
/// use gatehook_agent::approval::Rule;
///
/// let rule: Rule = "shell:cmd=git push*".parse()?;
/// assert_eq!(rule.to_string(), "shell:cmd=git push*");
/// assert!("shell:cmd=[]".parse::<Rule>().is_err());
/// # Ok::<(), gatehook_agent::approval::RuleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    text: String,
    tool: Glob,
    arguments: Vec<(String, Glob)>,
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{rule}` is no permission rule: {problem}")]
pub struct RuleError {
    /// As it was written.
    pub rule: String,
    /// What is wrong with it.
    pub problem: String,
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let error = |problem: String| RuleError { rule: text.to_owned(), problem };
        let glob = |part: &str| Glob::parse(part).map_err(|problem: GlobError| error(problem.to_string()));
        let (tool, arguments) = parts(text);
        if tool.is_empty() {
            return Err(error("it begins with the name of a tool, or `*`".to_owned()));
        }
        let arguments = arguments.into_iter().map(|(name, pattern)| Ok((name.to_owned(), glob(pattern)?)));
        Ok(Self { tool: glob(tool)?, arguments: arguments.collect::<Result<_, _>>()?, text: text.to_owned() })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The tool, and each argument with its pattern. Names and values may hold colons: only `:name=` begins an argument.
fn parts(text: &str) -> (&str, Vec<(&str, &str)>) {
    let (tool, mut rest) = split(text);
    let mut arguments = Vec::new();
    while let Some((name, value)) = rest {
        let (pattern, next) = split(value);
        arguments.push((name, pattern));
        rest = next;
    }
    (tool, arguments)
}

/// What stands before the next `:name=`, that name, and what stands behind it.
fn split(text: &str) -> (&str, Option<(&str, &str)>) {
    for (colon, _) in text.match_indices(':') {
        let Some((before, after)) = text.split_at_checked(colon) else { continue };
        let Some((name, value)) = after.strip_prefix(':').and_then(|after| after.split_once('=')) else { continue };
        if !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_') {
            return (before, Some((name, value)));
        }
    }
    (text, None)
}

/// What rules are held against.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) tool: &'a Tool,
    pub(super) arguments: &'a Map<String, Value>,
}

impl Subject<'_> {
    fn is_command(&self) -> bool {
        safer_shell::is_shell(&self.tool.name, self.tool.category.as_deref())
    }

    /// The one line that it runs.
    fn command(&self) -> Option<&str> {
        let mut lines = FIELDS.iter().filter_map(|field| self.arguments.get(*field));
        match (lines.next(), lines.next()) {
            (Some(Value::String(line)), None) => Some(line),
            _ => None,
        }
    }
}

impl Rule {
    /// Every call of one tool.
    pub(super) fn of_tool(name: &str) -> Self {
        Self { text: name.to_owned(), tool: Glob::of(name), arguments: Vec::new() }
    }

    fn fits(&self, subject: Subject<'_>) -> bool {
        self.tool.fits(&subject.tool.name)
            && self
                .arguments
                .iter()
                .all(|(name, pattern)| subject.arguments.get(name).is_some_and(|value| pattern.fits(&text(value))))
    }

    /// Whether it allows a call that it fits. An open end must not let a second command through: of a command tool
    /// `ls*` allows `ls -la`, and neither `lsof` nor `ls; rm -rf ~`.
    fn allows(&self, subject: Subject<'_>) -> bool {
        let of_command = |(name, _): &&(String, Glob)| subject.is_command() && FIELDS.contains(&name.as_str());
        self.arguments.iter().filter(of_command).all(|(name, pattern)| {
            let line = subject.arguments.get(name).map(text).unwrap_or_default();
            pattern.literal().is_some()
                || pattern.is_everything()
                || ((is_simple(&line) || pattern.names(joins)) && ends_a_word(pattern, &line))
        })
    }

    /// Whether it surely means this very call, so that it holds against a hook that asks. Of a command tool it must be
    /// the tool's name alone, or with one whole command or the first words of one; and the call one simple command.
    fn means(&self, subject: Subject<'_>) -> bool {
        if !subject.is_command() {
            return self.fits(subject);
        }
        let Some(line) = subject.command().filter(|line| is_simple(line)) else { return false };
        let is_named = self.tool.literal().is_some() && self.fits(subject);
        is_named
            && match self.arguments.as_slice() {
                [] => true,
                [(name, pattern)] if FIELDS.contains(&name.as_str()) => {
                    let words = pattern.prefix().is_some_and(|prefix| !prefix.trim().is_empty());
                    pattern.literal().is_some() || (words && ends_a_word(pattern, line))
                }
                _ => false,
            }
    }
}

/// A text as it is, everything else as JSON.
fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Characters that join commands, run one inside of another, or send its output elsewhere.
fn joins(char: char) -> bool {
    matches!(char, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '\\') || (char.is_control() && char != '\t')
}

/// Whether a line is one command, whoever reads it.
fn is_simple(line: &str) -> bool {
    !line.contains(joins)
}

/// Whether the open end of a pattern begins at the end of a word.
fn ends_a_word(pattern: &Glob, line: &str) -> bool {
    let Some(prefix) = pattern.prefix() else { return true };
    let line: String = lower(line).collect();
    let blank = |text: &str| text.is_empty() || text.starts_with([' ', '\t']);
    prefix.ends_with([' ', '\t']) || line.strip_prefix(&prefix).is_some_and(blank)
}

/// Rules of one tier. A `deny` is heard before an `allow`, and that before an `ask`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Calls that run unasked.
    pub allow: Vec<Rule>,
    /// Calls that the person is asked about.
    pub ask: Vec<Rule>,
    /// Calls that do not run.
    pub deny: Vec<Rule>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opinion {
    Deny,
    Allow,
    Ask,
}

impl Rules {
    /// Rules of their texts; the first one that is none is the error.
    pub fn parse<'a, T: IntoIterator<Item = &'a str>>(allow: T, ask: T, deny: T) -> Result<Self, RuleError> {
        let rules = |texts: T| texts.into_iter().map(Rule::from_str).collect::<Result<_, _>>();
        Ok(Self { allow: rules(allow)?, ask: rules(ask)?, deny: rules(deny)? })
    }

    /// Whether they surely allow this very call.
    pub(super) fn grant(&self, subject: Subject<'_>) -> bool {
        opinion(&[self], subject) == Some(Opinion::Allow) && self.allow.iter().any(|rule| rule.means(subject))
    }
}

/// What several sets of rules say as one.
fn opinion(rules: &[&Rules], subject: Subject<'_>) -> Option<Opinion> {
    let any = |of: fn(&Rules) -> &Vec<Rule>| rules.iter().flat_map(|rules| of(rules)).any(|rule| rule.fits(subject));
    let mut allow = rules.iter().flat_map(|rules| &rules.allow);
    if any(|rules| &rules.deny) {
        Some(Opinion::Deny)
    } else if allow.any(|rule| rule.fits(subject) && rule.allows(subject)) {
        Some(Opinion::Allow)
    } else {
        any(|rules| &rules.ask).then_some(Opinion::Ask)
    }
}

/// The rules that stand before a session begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandingRules {
    /// Those of whoever runs the machine.
    pub managed: Rules,
    /// Those of the user.
    pub user: Rules,
    /// Those of the workspace, which its team shares.
    pub workspace: Rules,
}

/// What rules say of a call. The tiers are heard in this order; the first with an opinion has the word.
pub(super) fn by_rules(standing: &StandingRules, session: &Rules, subject: Subject<'_>) -> Option<Ruling> {
    let StandingRules { managed, user, workspace } = standing;
    // What the user and the team want asked is a default: the session's mode may say otherwise.
    let tiers = [
        (&[managed][..], Source::ManagedAllow, Source::ManagedDeny, true),
        (&[session][..], Source::SessionAllow, Source::SessionDeny, true),
        (&[user, workspace][..], Source::TeamAllow, Source::TeamDeny, false),
    ];
    tiers.into_iter().find_map(|(rules, allow, deny, asks)| match opinion(rules, subject)? {
        Opinion::Deny => Some(Ruling::Deny(deny)),
        Opinion::Allow => Some(Ruling::Allow(allow)),
        Opinion::Ask => asks.then_some(Ruling::Ask),
    })
}

#[cfg(test)]
mod tests;
