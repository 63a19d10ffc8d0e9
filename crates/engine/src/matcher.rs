//! Which hooks of an event fit an input: matchers, compiled into one automaton for each event, and conditions.

mod re2;

use std::borrow::Cow;

use gatehook_events::profile::Matching;
use gatehook_events::{Input, Subject};
use regex_automata::PatternSet;
use regex_automata::meta::Regex;
use serde_json::Value;

pub(crate) use re2::respelled;

/// A matcher or condition that is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no regular expression: {message}")]
pub struct PatternError {
    /// As configured.
    pub pattern: String,
    /// What is wrong with it.
    pub message: String,
}

/// Whether a matcher selects everything.
pub fn matches_all(matcher: &str) -> bool {
    matcher.is_empty() || matcher == "*"
}

/// Checks a matcher over `subject` and anchors it at both ends. Paths are matched by glob, all else by expression.
pub fn anchored(matcher: &str, subject: Option<Subject>) -> Result<String, PatternError> {
    let expression = match subject {
        Some(Subject::Path) => glob(matcher),
        _ => re2::respelled(matcher),
    };
    let error = |error: regex_automata::meta::BuildError| PatternError {
        pattern: matcher.to_owned(),
        message: match error.syntax_error() {
            Some(syntax) => syntax.to_string(),
            None => error.to_string(),
        },
    };
    // Alone first: `a)(b` must not become valid by what is put around it.
    Regex::new(&expression).map_err(error)?;
    let anchored = format!("^(?:{expression})$");
    Regex::new(&anchored).map_err(error)?;
    Ok(anchored)
}

/// Checks a matcher that is searched for in `subject`; a tool's name has no case there.
fn searched(matcher: &str, subject: Subject) -> Result<String, PatternError> {
    // What can be anchored is an expression, and can be searched for.
    anchored(matcher, Some(subject))?;
    let case = if subject == Subject::Tool { "i" } else { "" };
    Ok(format!("(?{case}:{})", re2::respelled(matcher)))
}

/// A glob as an expression: `*` and `?` stay within a path segment, `**` does not, `{a,b}` is either.
fn glob(pattern: &str) -> String {
    let mut expression = String::with_capacity(pattern.len() * 2);
    let mut chars = pattern.chars().peekable();
    let mut depth = 0_usize;
    while let Some(char) = chars.next() {
        match char {
            '*' if chars.next_if_eq(&'*').is_some() => {
                // `a/**/b` also means `a/b`.
                expression.push_str(if chars.next_if_eq(&'/').is_some() { "(?:.*/)?" } else { ".*" });
            }
            '*' => expression.push_str("[^/]*"),
            '?' => expression.push_str("[^/]"),
            '{' => {
                depth += 1;
                expression.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth -= 1;
                expression.push(')');
            }
            ',' if depth > 0 => expression.push('|'),
            '[' | ']' | '-' => expression.push(char),
            char => expression.push_str(&regex::escape(char.encode_utf8(&mut [0; 4]))),
        }
    }
    expression
}

/// What matchers are held against, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Held {
    subject: Subject,
    /// They are found anywhere in it, a tool's name in any case and under each of its names.
    search: bool,
    tool_names: ToolNames,
}

/// The matchers of one event that are held against the same.
#[derive(Debug)]
struct SubjectSet {
    held: Held,
    regex: Regex,
    /// Which hooks stand behind each pattern.
    hooks: Vec<Vec<usize>>,
}

/// The matchers of one event: hooks are numbered in configuration order.
#[derive(Debug, Default)]
pub(crate) struct Matchers {
    /// Hooks that fit whatever happens, ascending.
    always: Vec<usize>,
    sets: Vec<SubjectSet>,
}

/// One hook's matcher.
pub(crate) struct Rule<'a> {
    /// As configured.
    pub(crate) matcher: &'a str,
    /// What it is held against; `None` where this hook's profile takes no matcher.
    pub(crate) subject: Option<Subject>,
    /// How it is held against it.
    pub(crate) matching: Matching,
    /// Tools that have several names for it.
    pub(crate) tool_names: ToolNames,
}

/// Tools that have several names, each row one tool.
type ToolNames = &'static [&'static [&'static str]];

impl Held {
    /// The names that the same tool has besides this one.
    fn other_names(&self, name: &str) -> &'static [&'static str] {
        let is_it = |names: &&&[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        self.tool_names.iter().find(is_it).filter(|_| self.subject == Subject::Tool).copied().unwrap_or_default()
    }
}

impl Matchers {
    /// Compiles the matchers of an event's hooks; an error comes with the number of its hook.
    pub(crate) fn compile(rules: &[Rule<'_>]) -> Result<Self, (usize, PatternError)> {
        let mut matchers = Self::default();
        let mut sources: Vec<(Held, Vec<String>, Vec<Vec<usize>>)> = Vec::new();
        for (number, rule) in rules.iter().enumerate() {
            let Some(subject) = rule.subject.filter(|_| !matches_all(rule.matcher)) else {
                matchers.always.push(number);
                continue;
            };
            let held = Held { subject, search: rule.matching == Matching::Search, tool_names: rule.tool_names };
            let pattern =
                if held.search { searched(rule.matcher, subject) } else { anchored(rule.matcher, Some(subject)) };
            let pattern = pattern.map_err(|error| (number, error))?;
            let place = match sources.iter().position(|(known, ..)| *known == held) {
                Some(place) => place,
                None => {
                    sources.push((held, Vec::new(), Vec::new()));
                    sources.len() - 1
                }
            };
            let Some((_, patterns, hooks)) = sources.get_mut(place) else { continue };
            match patterns.iter().rposition(|known| *known == pattern).and_then(|known| hooks.get_mut(known)) {
                Some(same) => same.push(number),
                None => {
                    patterns.push(pattern);
                    hooks.push(vec![number]);
                }
            }
        }
        for (held, patterns, hooks) in sources {
            let config = Regex::config().nfa_size_limit(None).match_kind(regex_automata::MatchKind::All);
            let regex = Regex::builder().configure(config).build_many(&patterns).map_err(|error| {
                let message = format!("the matchers of this event cannot be compiled together: {error}");
                (usize::MAX, PatternError { pattern: patterns.join(" "), message })
            })?;
            matchers.sets.push(SubjectSet { held, regex, hooks });
        }
        Ok(matchers)
    }

    /// The hooks that fit, in configuration order. Allocates nothing where none does.
    pub(crate) fn select(&self, input: &Input) -> Cow<'_, [usize]> {
        let mut selected = Cow::Borrowed(self.always.as_slice());
        for set in &self.sets {
            let subject = input.subject(set.held.subject).unwrap_or_default();
            let others = set.held.other_names(subject);
            if !set.regex.is_match(subject) && !others.iter().any(|name| set.regex.is_match(*name)) {
                continue;
            }
            let mut fitting = PatternSet::new(set.regex.pattern_len());
            for name in std::iter::once(subject).chain(others.iter().copied()) {
                set.regex.which_overlapping_matches(&regex_automata::Input::new(name), &mut fitting);
            }
            for pattern in fitting.iter() {
                selected.to_mut().extend(set.hooks.get(pattern.as_usize()).into_iter().flatten());
            }
        }
        if let Cow::Owned(selected) = &mut selected {
            selected.sort_unstable();
        }
        selected
    }
}

/// A compiled `when` condition.
#[derive(Debug, Clone)]
pub(crate) struct CompiledCondition {
    path: Vec<String>,
    regex: Regex,
}

impl CompiledCondition {
    /// Compiles a condition.
    pub(crate) fn compile(field: &str, pattern: &str) -> Result<Self, PatternError> {
        let anchored = anchored(pattern, None)?;
        let regex = Regex::new(&anchored)
            .map_err(|error| PatternError { pattern: pattern.to_owned(), message: error.to_string() })?;
        Ok(Self { path: field.split('.').map(str::to_owned).collect(), regex })
    }

    /// Whether the hook runs: the field matches, or there is no such field to tell by.
    pub(crate) fn holds(&self, input: &Input) -> bool {
        let value = match self.path.split_first() {
            Some((root, rest)) if root == "tool_input" => tool_argument(input, rest),
            Some((root, [])) if root == "key" => input.client.as_deref().and_then(|client| client.get("key_name")),
            Some((name, [])) => return text_field(input, name).is_none_or(|text| self.regex.is_match(text)),
            _ => None,
        };
        match value {
            Some(Value::String(text)) => self.regex.is_match(text.as_str()),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => self.regex.is_match(value.to_string().as_str()),
            // What has no text cannot be told apart: the hook judges for itself.
            _ => true,
        }
    }
}

fn text_field<'a>(input: &'a Input, name: &str) -> Option<&'a str> {
    let field = match name {
        "agent" => &input.agent_name,
        "model" => &input.model_id,
        "route" => &input.route,
        "plane" => &input.plane,
        _ => &None,
    };
    field.as_deref()
}

fn tool_argument<'a>(input: &'a Input, path: &[String]) -> Option<&'a Value> {
    let (name, rest) = path.split_first()?;
    walk(input.tool_input.as_deref()?.get(name)?, rest)
}

fn walk<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| match value {
        Value::Object(map) => map.get(key),
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn selected(subject: Subject, matchers: &[&str], value: &str) -> Vec<usize> {
        held(subject, Matching::Anchored, matchers, value)
    }

    fn held(subject: Subject, matching: Matching, matchers: &[&str], value: &str) -> Vec<usize> {
        const NAMES: ToolNames = &[&["Read", "file_read"], &["Bash", "shell_exec"]];
        let tool_names = if matching == Matching::Search { NAMES } else { &[] };
        let rule = |matcher| Rule { matcher, subject: Some(subject), matching, tool_names };
        let rules: Vec<_> = matchers.iter().copied().map(rule).collect();
        let value = Some(value.into());
        let input = match subject {
            Subject::Path => Input { file: value, ..Input::default() },
            _ => Input { tool_name: value, ..Input::default() },
        };
        Matchers::compile(&rules).unwrap().select(&input).into_owned()
    }

    #[test]
    fn a_matcher_fits_the_whole_name_in_its_own_case() {
        for (matcher, name, fits) in [
            ("", "shell", true),
            ("*", "shell", true),
            ("shell", "shell", true),
            ("shell", "Shell", false),
            ("shell", "shell2", false),
            ("shell", "myshell", false),
            ("shell|edit_file", "edit_file", true),
            ("shell|edit_file", "shellx", false),
            ("mcp__.*", "mcp__a__b", true),
            ("shell", "shell\n", false),
            ("(?i)shell", "SHELL", true),
            ("", "", true),
            ("shell", "", false),
        ] {
            assert_eq!(!selected(Subject::Tool, &[matcher], name).is_empty(), fits, "{matcher:?} on {name:?}");
        }
    }

    #[test]
    fn a_matcher_that_is_searched_for_fits_any_case_and_each_name_of_the_tool() {
        for (matcher, name, fits) in [
            ("", "file_read", true),
            ("*", "file_read", true),
            (".*", "file_read", true),
            ("file", "file_read", true),
            ("FILE_", "file_read", true),
            ("Read", "file_read", true),
            ("^read$", "file_read", true),
            ("^read$", "file_readx", false),
            ("file_read|shell_exec", "Bash", true),
            ("bash", "shell_exec", true),
            ("bash", "file_read", false),
            ("shell", "", false),
        ] {
            let selected = held(Subject::Tool, Matching::Search, &["nothing", matcher], name);
            assert_eq!(selected == [1], fits, "{matcher:?} on {name:?}");
        }
        assert_eq!(held(Subject::Tool, Matching::Search, &["read", "exec", "e", "file"], "READ"), [0, 2, 3]);
    }

    #[test]
    fn hooks_are_selected_in_configuration_order() {
        assert_eq!(selected(Subject::Tool, &["b.*", "*", "a", "bc", "b.*", ""], "bc"), [0, 1, 3, 4, 5]);
    }

    #[test]
    fn a_bad_pattern_is_an_error_with_the_number_of_its_hook() {
        for bad in ["(", "a)(b", "[z-a]", "(?=x)"] {
            for matching in [Matching::Anchored, Matching::Search] {
                let rule = |matcher| Rule { matcher, subject: Some(Subject::Tool), matching, tool_names: &[] };
                let (hook, error) = Matchers::compile(&["ok", bad].map(rule)).unwrap_err();
                assert_eq!((hook, error.pattern.as_str()), (1, bad));
            }
        }
    }

    #[test]
    fn paths_are_matched_by_glob() {
        for (glob, path, fits) in [
            ("src/*.rs", "src/lib.rs", true),
            ("src/*.rs", "src/a/lib.rs", false),
            ("src/**/*.rs", "src/a/b/lib.rs", true),
            ("src/**/*.rs", "src/lib.rs", true),
            ("**", "any/thing", true),
            ("*.{rs,toml}", "Cargo.toml", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("a.c", "abc", false),
        ] {
            assert_eq!(!selected(Subject::Path, &[glob], path).is_empty(), fits, "{glob} on {path}");
        }
    }

    proptest! {
        #[test]
        fn one_automaton_selects_what_each_expression_would(
            matchers in prop::collection::vec("[ab.*|?]{0,4}|[ab]{1,3}", 0..12),
            name in "[abc]{0,4}",
        ) {
            let valid: Vec<&str> =
                matchers.iter().map(String::as_str).filter(|matcher| matches_all(matcher) || anchored(matcher, None).is_ok()).collect();
            let fits = |matcher: &&str| {
                matches_all(matcher) || regex::Regex::new(&anchored(matcher, None).unwrap()).unwrap().is_match(&name)
            };
            let want: Vec<usize> = valid.iter().enumerate().filter(|(_, matcher)| fits(matcher)).map(|(place, _)| place).collect();
            prop_assert_eq!(selected(Subject::Tool, &valid, &name), want, "{:?} on {:?}", valid, name);
        }
    }
}
