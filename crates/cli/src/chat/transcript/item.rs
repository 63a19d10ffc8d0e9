//! One item of a transcript, and how it looks.

use std::sync::Arc;
use std::time::Duration;

use gatehook_agent::report::Report;
use gatehook_events::{Outcome, OutcomeKind, Verb};
use ratatui::text::{Line, Span};

use super::super::clean;
use super::super::markdown::Markdown;
use super::super::theme::{Role, Theme};
use super::super::wrap::{Breaks, Lead, clip, wrap};
use super::tool::Tool;

/// How items are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) width: u16,
    pub(crate) theme: Theme,
    /// Whether all is shown, thinking and hooks without objections too.
    pub(crate) details: bool,
}

#[derive(Debug)]
pub(super) struct Item {
    /// The subagents it comes from, the outermost first.
    pub(super) agents: Vec<Arc<str>>,
    pub(super) kind: Kind,
    pub(super) lines: Option<(Look, Vec<Line<'static>>)>,
    /// Whether it is known to have lines.
    pub(super) is_listed: bool,
}

#[derive(Debug, Default)]
pub(super) enum Kind {
    /// Nothing to be seen.
    #[default]
    Nothing,
    Session {
        source: Arc<str>,
        agent: Arc<str>,
        model: Arc<str>,
        workspace: Arc<str>,
    },
    User(Arc<str>),
    Answer {
        text: Markdown,
        is_open: bool,
    },
    Thinking {
        text: Markdown,
        began: Duration,
        took: Option<Duration>,
    },
    Tool(Box<Tool>),
    Hooks {
        event: &'static str,
        verdict: Verb,
        outcomes: Vec<Outcome>,
        told: String,
    },
    Notice {
        level: &'static str,
        text: Arc<str>,
    },
    Compaction {
        source: Arc<str>,
        summary: Arc<str>,
    },
    Switch {
        from: Arc<str>,
        to: Arc<str>,
        kind: &'static str,
    },
}

/// Lines of a summary that are seen without details.
const SUMMARY: usize = 4;

impl Kind {
    /// What a report is shown as; what goes on with another item, or is shown elsewhere, is none.
    pub(super) fn of(report: Report) -> Option<Self> {
        Some(match report {
            Report::Session { source, agent, model, workspace, .. } => {
                Self::Session { source, agent, model, workspace }
            }
            Report::User { text } => Self::User(text),
            Report::Hooks { event, verdict, outcomes, system_message, .. } => {
                Self::Hooks { event, verdict, outcomes, told: system_message }
            }
            Report::Notice { level, text } => Self::Notice { level, text },
            Report::Compaction { source, summary } => Self::Compaction { source, summary },
            Report::AgentSwitch { from, to, kind } => Self::Switch { from, to, kind },
            Report::TurnEnd { reason: "canceled" } => Self::Notice { level: "warning", text: "interrupted".into() },
            _ => return None,
        })
    }

    pub(super) fn said(text: &str, thinking: bool, now: Duration) -> Self {
        let text = Markdown::new(text);
        if thinking { Self::Thinking { text, began: now, took: None } } else { Self::Answer { text, is_open: true } }
    }

    /// One more piece of its text.
    pub(super) fn grow(&mut self, delta: &str) {
        if let Self::Answer { text, .. } | Self::Thinking { text, .. } = self {
            text.push(delta);
        }
    }

    /// Something else follows; whether that changes how it looks.
    pub(super) fn ends(&mut self, now: Duration) -> bool {
        match self {
            Self::Thinking { began, took: took @ None, .. } => {
                *took = Some(now.saturating_sub(*began));
                true
            }
            _ => false,
        }
    }

    pub(super) fn whole(&mut self, whole: &str) {
        if let Self::Answer { text, is_open } = self {
            *is_open = false;
            if text.source() != whole {
                *text = Markdown::new(whole);
            }
        }
    }

    /// Whether more of an answer, or of a thought, belongs here.
    pub(super) fn is_open(&self, thinking: bool) -> bool {
        match self {
            Self::Answer { is_open, .. } => *is_open && !thinking,
            Self::Thinking { took, .. } => took.is_none() && thinking,
            _ => false,
        }
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking { .. })
    }

    /// Told beside what is said and done.
    pub(super) fn is_aside(&self) -> bool {
        matches!(self, Self::Hooks { .. } | Self::Notice { .. } | Self::Nothing)
    }

    /// No answer from before it goes on behind it.
    pub(super) fn begins_anew(&self) -> bool {
        matches!(self, Self::User(_) | Self::Session { .. })
    }

    /// A blank row stands before it.
    pub(super) fn stands_apart(&self) -> bool {
        !self.is_aside()
    }

    /// The text that is laid out as it grows, where it is seen.
    fn text(&mut self, details: bool) -> Option<&mut Markdown> {
        match self {
            Self::Answer { text, .. } => Some(text),
            Self::Thinking { text, .. } if details => Some(text),
            _ => None,
        }
    }
}

impl Item {
    pub(super) fn new(agents: &[Arc<str>], kind: Kind) -> Self {
        Self { agents: agents.to_vec(), kind, lines: None, is_listed: false }
    }

    /// Its lines as they were laid out: the first ones, and its text.
    pub(super) fn laid(&self) -> (&[Line<'static>], &[Line<'static>]) {
        let Some((look, head)) = &self.lines else { return (&[], &[]) };
        let body = match &self.kind {
            Kind::Answer { text, .. } => text.laid(),
            Kind::Thinking { text, .. } if look.details => text.laid(),
            _ => &[],
        };
        (head, body)
    }

    pub(super) fn forget(&mut self) {
        self.lines = None;
        self.is_listed = false;
        if let Kind::Answer { text, .. } | Kind::Thinking { text, .. } = &mut self.kind {
            text.forget();
        }
    }

    /// Lays it out where it is not.
    pub(super) fn lay(&mut self, look: Look) {
        if self.lines.as_ref().is_some_and(|(laid, _)| *laid == look) {
            return;
        }
        let indent = u16::try_from(self.agents.len().saturating_mul(2)).unwrap_or(u16::MAX);
        let inner = Look { width: look.width.saturating_sub(indent).max(1), ..look };
        let mut head = Vec::new();
        self.head(inner, &mut head);
        if let Some(text) = self.kind.text(look.details) {
            text.lines(inner.width, inner.theme);
        }
        self.lines = Some((look, head));
    }

    fn head(&self, look: Look, lines: &mut Vec<Line<'static>>) {
        let style = |role| look.theme.of(role);
        let mut prose = |mark: &'static str, spans: &[Span<'_>], role: Role| {
            let first = vec![Span::styled(mark, style(role))];
            let lead = Lead { first, next: vec![Span::raw(" ".repeat(unicode_width::UnicodeWidthStr::width(mark)))] };
            wrap(spans, look.width, Breaks::Words, &lead, lines);
        };
        match &self.kind {
            Kind::Nothing | Kind::Answer { .. } => {}
            Kind::Session { source, agent, model, workspace } => {
                let source = match &**source {
                    "startup" => "",
                    "resume" => " · resumed",
                    _ => " · new session",
                };
                let text =
                    format!("{} · {} · {}{source}", clean::line(agent), clean::line(model), clean::line(workspace));
                prose(
                    "◆ ",
                    &[Span::styled("gatehook ", style(Role::Strong)), Span::styled(text, style(Role::Dim))],
                    Role::Name,
                );
            }
            Kind::User(text) => {
                let lead = Lead::of("▌ ", style(Role::Person));
                for line in clean::shown(text).lines() {
                    wrap(&[Span::styled(line, style(Role::Strong))], look.width, Breaks::Words, &lead, lines);
                }
            }
            Kind::Thinking { text, took, .. } => {
                let text = match took {
                    Some(took) => format!("thought for {}", seconds(took.as_secs_f64())),
                    None => {
                        let last = text.source().trim_end().rsplit('\n').next().unwrap_or_default();
                        format!("thinking: {}", clip(&clean::line(last), usize::from(look.width).saturating_sub(13)))
                    }
                };
                prose("✻ ", &[Span::styled(text, style(Role::Dim))], Role::Dim);
            }
            Kind::Tool(tool) => tool.lay(look, lines),
            Kind::Hooks { event, verdict, outcomes, told } => hooks(look, event, *verdict, outcomes, told, lines),
            Kind::Notice { level, text } => {
                let (mark, role) = match *level {
                    "error" => ("✗ ", Role::Bad),
                    "warning" => ("! ", Role::Warning),
                    _ => ("• ", Role::Dim),
                };
                let lead = Lead { first: vec![Span::styled(mark, style(role))], next: vec![Span::raw("  ")] };
                let text_role = if role == Role::Dim { Role::Dim } else { Role::Plain };
                let mut lead = lead;
                for line in clean::printed(text).lines() {
                    wrap(&[Span::styled(line, style(text_role))], look.width, Breaks::Words, &lead, lines);
                    lead.first = lead.next.clone();
                }
            }
            Kind::Compaction { source, summary } => {
                let text = format!("the conversation was compacted ({})", clean::line(source));
                prose("≡ ", &[Span::styled(text, style(Role::Name))], Role::Name);
                let summary = clean::printed(summary);
                let lead = Lead::of("  ", style(Role::Dim));
                let seen = if look.details { usize::MAX } else { SUMMARY };
                for line in summary.lines().take(seen) {
                    wrap(&[Span::styled(line, style(Role::Dim))], look.width, Breaks::Words, &lead, lines);
                }
                more(look, summary.lines().count().saturating_sub(seen), lines);
            }
            Kind::Switch { from, to, kind } => {
                let what = match *kind {
                    "transfer_task" => "gives a task to",
                    "transfer_task_return" => "returns to",
                    _ => "hands over to",
                };
                let text = format!("{} {what} {}", clean::line(from), clean::line(to));
                prose("→ ", &[Span::styled(text, style(Role::Name))], Role::Name);
            }
        }
    }
}

/// Says how many lines are not shown.
pub(super) fn more(look: Look, hidden: usize, lines: &mut Vec<Line<'static>>) {
    if hidden > 0 {
        let text = format!("  … {hidden} more {} (Ctrl-O)", if hidden == 1 { "line" } else { "lines" });
        lines.push(Line::from(Span::styled(
            clip(&text, usize::from(look.width)).into_owned(),
            look.theme.of(Role::Dim),
        )));
    }
}

/// Hooks that had an objection, changed or failed; all of them with details.
fn hooks(look: Look, event: &str, verdict: Verb, outcomes: &[Outcome], told: &str, lines: &mut Vec<Line<'static>>) {
    let style = |role| look.theme.of(role);
    let lead = Lead { first: vec![Span::styled("⚙ ", style(Role::Dim))], next: vec![Span::raw("  ")] };
    for outcome in outcomes {
        let (word, role) = match (&outcome.kind, outcome.verb) {
            (OutcomeKind::Failed(_), _) => ("failed", Role::Bad),
            (_, Verb::Deny) => ("denies", Role::Bad),
            (_, Verb::Unavailable) => ("cannot judge", Role::Bad),
            (_, Verb::Ask) => ("asks", Role::Warning),
            (_, Verb::ModifyUnsupported) => ("wants what cannot be changed", Role::Warning),
            (_, Verb::Modify) => ("changes", Role::Good),
            (_, Verb::Allow) => ("allows", Role::Dim),
        };
        if role == Role::Dim && !look.details {
            continue;
        }
        let reason = clean::printed(&outcome.reason).replace('\n', " ");
        let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
        let took = duration(outcome.duration);
        let spans = [
            Span::styled(format!("{event} "), style(Role::Dim)),
            Span::raw(format!("{} ", clean::line(&outcome.name))),
            Span::styled(word, style(role)),
            Span::styled(format!(" {took}{reason}"), style(Role::Dim)),
        ];
        wrap(&spans, look.width, Breaks::Words, &lead, lines);
    }
    let is_silent = lines.is_empty() && told.is_empty();
    if is_silent && verdict > Verb::Modify {
        let spans =
            [Span::styled(format!("{event} "), style(Role::Dim)), Span::styled(verdict.name(), style(Role::Bad))];
        wrap(&spans, look.width, Breaks::Words, &lead, lines);
    }
    for line in clean::printed(told).lines() {
        wrap(&[Span::raw(line)], look.width, Breaks::Words, &lead, lines);
    }
}

/// As in `12 ms`, for people.
pub(crate) fn duration(duration: Duration) -> String {
    let millis = duration.as_secs_f64() * 1000.0;
    if millis < 9.95 {
        format!("{millis:.1} ms")
    } else if millis < 999.5 {
        format!("{millis:.0} ms")
    } else {
        seconds(millis / 1000.0)
    }
}

/// As in `3.2 s` or `2 m 05 s`.
pub(crate) fn seconds(seconds: f64) -> String {
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let whole = duration.as_secs();
    match whole {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{whole} s"),
        _ => format!("{} m {:02} s", whole / 60, whole % 60),
    }
}
