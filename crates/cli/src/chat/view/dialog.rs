//! A question to the person, and the keys that answer it.

use std::time::Duration;

use gatehook_agent::approval::{Answer, Rule};
use gatehook_events::Event;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};
use serde_json::Value;
use similar::TextDiff;

use super::super::clean;
use super::super::input::Input;
use super::super::theme::{Role, Theme};
use super::super::transcript::diff_lines;
use super::super::wire::{Ask, Permission, Reply};
use super::super::wrap::{Breaks, Lead, wrap};
use super::keys::edit;
use super::rules::rules;

/// For how long a person must not have typed before a key answers: what is typed while a question comes up is meant for
/// the input line.
pub(crate) const PAUSE: Duration = Duration::from_millis(600);

/// Arguments by which an edit says what stands in a file and what is to stand there.
const EDITS: [(&str, &str); 4] =
    [("old", "new"), ("old_text", "new_text"), ("old_string", "new_string"), ("oldText", "newText")];

/// What the dialog waits for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage {
    /// A key that answers.
    Choice,
    /// That a rule be remembered.
    Remember,
    /// Why not.
    Reason(Input),
}

/// A question that is being asked.
#[derive(Debug)]
pub(crate) struct Dialog {
    pub(crate) number: u64,
    pub(crate) ask: Ask,
    pub(crate) stage: Stage,
    /// When keys begin to answer it.
    pub(crate) armed: Duration,
    rules: Vec<Rule>,
    rule: usize,
    /// The first row of its body that is seen.
    pub(crate) top: usize,
}

/// What a key did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Done {
    Nothing,
    /// It is not one that answers.
    Unknown,
    Answered(Reply),
}

impl Dialog {
    pub(crate) fn new(number: u64, ask: Ask, armed: Duration) -> Self {
        let (rules, rule) = match &ask {
            Ask::Permission(permission) => rules(&permission.question),
            Ask::GoOn(_) | Ask::Doubt(_) => (Vec::new(), 0),
        };
        Self { number, ask, stage: Stage::Choice, armed, rules, rule, top: 0 }
    }

    /// The rule that an answer takes along.
    fn rule(&self) -> Option<&Rule> {
        self.rules.get(self.rule)
    }

    pub(crate) fn key(&mut self, key: KeyEvent, can_remember: bool) -> Done {
        match (&self.ask, &mut self.stage) {
            (Ask::GoOn(_) | Ask::Doubt(_), _) => match key.code {
                _ if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => Done::Unknown,
                KeyCode::Char('y' | 'Y') => Done::Answered(Reply::GoOn(true)),
                KeyCode::Char('n' | 'N') | KeyCode::Esc => Done::Answered(Reply::GoOn(false)),
                _ => self.scroll(key),
            },
            (Ask::Permission(_), Stage::Reason(reason)) => match key.code {
                KeyCode::Enter => {
                    let reason = reason.take().trim().to_owned();
                    permission(Answer::Reject { reason }, None)
                }
                KeyCode::Esc => {
                    self.stage = Stage::Choice;
                    Done::Nothing
                }
                _ => {
                    edit(reason, key);
                    Done::Nothing
                }
            },
            (Ask::Permission(_), Stage::Remember) => match key.code {
                KeyCode::Enter => match self.rule() {
                    Some(rule) => permission(Answer::ApproveTool(Some(rule.clone())), Some(rule.clone())),
                    None => Done::Unknown,
                },
                KeyCode::Tab => self.next_rule(),
                KeyCode::Esc => {
                    self.stage = Stage::Choice;
                    Done::Nothing
                }
                _ => Done::Unknown,
            },
            (Ask::Permission(_), Stage::Choice) => self.choice(key, can_remember),
        }
    }

    fn choice(&mut self, key: KeyEvent, can_remember: bool) -> Done {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Done::Unknown;
        }
        match key.code {
            KeyCode::Char('y' | 'Y') => permission(Answer::Approve, None),
            KeyCode::Char('s' | 'S') if self.rule().is_some() => {
                permission(Answer::ApproveTool(self.rule().cloned()), None)
            }
            KeyCode::Char('a' | 'A') if can_remember && self.rule().is_some() => {
                self.stage = Stage::Remember;
                Done::Nothing
            }
            KeyCode::Char('n' | 'N') => {
                self.stage = Stage::Reason(Input::default());
                Done::Nothing
            }
            KeyCode::Esc => permission(Answer::Reject { reason: String::new() }, None),
            KeyCode::Tab => self.next_rule(),
            _ => self.scroll(key),
        }
    }

    fn scroll(&mut self, key: KeyEvent) -> Done {
        self.top = match key.code {
            KeyCode::Up => self.top.saturating_sub(1),
            KeyCode::Down => self.top.saturating_add(1),
            KeyCode::PageUp => self.top.saturating_sub(10),
            KeyCode::PageDown => self.top.saturating_add(10),
            _ => return Done::Unknown,
        };
        Done::Nothing
    }

    fn next_rule(&mut self) -> Done {
        self.rule = self.rule.saturating_add(1).checked_rem(self.rules.len()).unwrap_or_default();
        Done::Nothing
    }

    /// What is asked, in few words, and how dangerous it is.
    pub(crate) fn title(&self) -> (String, Option<(String, Role)>) {
        match &self.ask {
            Ask::GoOn(cap) => (format!("{cap} model calls without an end"), None),
            Ask::Doubt(doubt) if doubt.event == Event::PreInference => {
                (format!("May this go to {}?", clean::line(&doubt.model)), None)
            }
            Ask::Doubt(doubt) => (format!("May this answer of {} be used?", clean::line(&doubt.model)), None),
            Ask::Permission(permission) => {
                let question = &permission.question;
                let label = question.metadata.get("safety_label").map(|label| {
                    let role = match label.as_str() {
                        "safe" => Role::Good,
                        "destructive" => Role::Bad,
                        _ => Role::Warning,
                    };
                    (clean::line(label).into_owned(), role)
                });
                (format!("May {} run?", clean::line(&question.tool_name)), label)
            }
        }
    }

    /// What the person has to know to answer.
    pub(crate) fn body(&self, width: u16, theme: Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        match &self.ask {
            Ask::GoOn(_) => {
                let text = "The agent has asked its model that often in this turn. It may be going round in circles.";
                wrap(&[Span::raw(text)], width, Breaks::Words, &Lead::default(), &mut lines);
            }
            Ask::Doubt(doubt) => {
                let hook = clean::line(&doubt.hook);
                because(&format!("{hook} asks: "), &doubt.reason, width, theme, &mut lines);
                for line in clean::shown(doubt.subject.trim()).lines() {
                    wrap(&[Span::raw(line)], width, Breaks::Anywhere, &Lead::of("│ ", theme.of(Role::Dim)), &mut lines);
                }
                known(doubt.metadata.iter(), width, theme, &mut lines);
            }
            Ask::Permission(permission) => describe(permission, width, theme, &mut lines),
        }
        lines
    }

    /// The keys that answer, and what they take along.
    pub(crate) fn choices(&self, width: u16, theme: Theme, rules_file: Option<&str>) -> Vec<Line<'static>> {
        let dim = theme.of(Role::Dim);
        let keys = |keys: &[(&'static str, &'static str)]| packed(keys, width, theme);
        let rule = self.rule().map(|rule| clean::line(&rule.to_string()).into_owned());
        match (&self.ask, &self.stage, rule) {
            (Ask::GoOn(_) | Ask::Doubt(_), _, _) => keys(&[("y", "go on"), ("n", "stop here")]),
            (_, Stage::Reason(_), _) => keys(&[("Enter", "says no"), ("Esc", "back")]),
            (_, Stage::Remember, rule) => {
                let mut lines = vec![Line::from(vec![
                    Span::raw("Remember "),
                    Span::styled(rule.unwrap_or_default(), theme.of(Role::Code)),
                    Span::styled(format!(" in {}", rules_file.unwrap_or_default()), dim),
                ])];
                lines.extend(keys(&[("Enter", "remembers it"), ("Tab", "another rule"), ("Esc", "back")]));
                lines
            }
            (_, Stage::Choice, None) => keys(&[("y", "yes, once"), ("n", "no, with a reason")]),
            (_, Stage::Choice, Some(rule)) => {
                let mut offered = vec![("y", "yes, once"), ("s", "for this session")];
                if rules_file.is_some() {
                    offered.push(("a", "always"));
                }
                offered.push(("n", "no, with a reason"));
                let other = if self.rules.len() > 1 {
                    format!("  Tab: another ({} of {})", self.rule.saturating_add(1), self.rules.len())
                } else {
                    String::new()
                };
                let mut lines = keys(&offered);
                lines.push(Line::from(vec![
                    Span::styled("  by the rule ", dim),
                    Span::styled(rule, theme.of(Role::Code)),
                    Span::styled(other, dim),
                ]));
                lines
            }
        }
    }
}

/// Keys and what they do, as many in a line as there is room for.
fn packed(keys: &[(&'static str, &'static str)], width: u16, theme: Theme) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (key, what) in keys {
        let spans = [Span::styled(format!("{key} "), theme.of(Role::Person)), Span::raw(format!("{what}   "))];
        let wide: usize = spans.iter().map(Span::width).sum();
        match lines.last_mut().filter(|line| line.width().saturating_add(wide) <= usize::from(width).saturating_add(3))
        {
            Some(line) => line.spans.extend(spans),
            None => lines.push(Line::from(spans.to_vec())),
        }
    }
    lines
}

fn permission(answer: Answer, remember: Option<Rule>) -> Done {
    Done::Answered(Reply::Permission { answer, remember })
}

/// Why it is asked, what is known of it, and all that it would do.
fn describe(permission: &Permission, width: u16, theme: Theme, lines: &mut Vec<Line<'static>>) {
    let question = &permission.question;
    because("a hook asks: ", &question.reason, width, theme, lines);
    let input = &question.tool_input;
    let own = EDITS.iter().find_map(|(old, new)| {
        let (old_text, new_text) = (input.get(*old)?.as_str()?, input.get(*new)?.as_str()?);
        Some((*old, *new, TextDiff::from_lines(old_text, new_text).unified_diff().context_radius(3).to_string()))
    });
    let (hidden, diff) = match (&permission.diff, own) {
        (Some(diff), Some((old, new, _))) => (vec![old, new, "content"], Some(diff.clone())),
        (Some(diff), None) => (vec!["content"], Some(diff.clone())),
        (None, Some((old, new, diff))) => (vec![old, new], Some(diff)),
        (None, None) => (Vec::new(), None),
    };
    for (name, value) in input.iter().filter(|(name, _)| !hidden.contains(&name.as_str())) {
        argument(name, value, width, theme, lines);
    }
    if let Some(diff) = diff {
        diff_lines(&diff, width, theme, lines);
    }
    known(question.metadata.iter().filter(|(name, _)| *name != "safety_label"), width, theme, lines);
}

/// Why it is asked, in a hook's words.
fn because(who: &str, reason: &str, width: u16, theme: Theme, lines: &mut Vec<Line<'static>>) {
    for line in clean::shown(reason.trim()).lines() {
        let spans = [Span::styled(who, theme.of(Role::Dim)), Span::styled(line, theme.of(Role::Warning))];
        wrap(&spans, width, Breaks::Words, &Lead::default(), lines);
    }
}

/// What else is known of it.
fn known<'a>(
    metadata: impl Iterator<Item = (&'a String, &'a String)>,
    width: u16,
    theme: Theme,
    lines: &mut Vec<Line<'static>>,
) {
    let known = metadata.filter(|(_, value)| !value.is_empty());
    let known: Vec<_> = known.map(|(name, value)| format!("{}: {}", name.replace('_', " "), value)).collect();
    if !known.is_empty() {
        let known = Span::styled(clean::line(&known.join(" · ")).into_owned(), theme.of(Role::Dim));
        wrap(&[known], width, Breaks::Words, &Lead::default(), lines);
    }
}

/// One argument, whole: a short one in a line, a long one under its name.
fn argument(name: &str, value: &Value, width: u16, theme: Theme, lines: &mut Vec<Line<'static>>) {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let text = clean::shown(&text);
    let name = Span::styled(format!("{}: ", clean::line(name)), theme.of(Role::Dim));
    if !text.contains('\n') {
        let value = Span::styled(text.into_owned(), theme.of(Role::Strong));
        return wrap(&[name, value], width, Breaks::Anywhere, &Lead::default(), lines);
    }
    lines.push(Line::from(name));
    for line in text.lines() {
        wrap(&[Span::raw(line)], width, Breaks::Anywhere, &Lead::of("│ ", theme.of(Role::Dim)), lines);
    }
}
