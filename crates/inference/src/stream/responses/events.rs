//! The events of a Responses stream, by name
//! (<https://platform.openai.com/docs/api-reference/responses-streaming>).

use crate::stream::TrackKind;

/// A kind of part that holds text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PartKind {
    /// Its `type`.
    pub(super) name: &'static str,
    /// The key of its text.
    pub(super) key: &'static str,
    /// What its events begin with.
    pub(super) event: &'static str,
    pub(super) list: List,
    pub(super) track: TrackKind,
}

/// Which list of an item a part stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Content,
    Summary,
}

impl List {
    /// Its key in the item.
    pub(super) fn key(self) -> &'static str {
        match self {
            List::Content => "content",
            List::Summary => "summary",
        }
    }

    /// How events name a place in it.
    pub(super) fn index(self) -> &'static str {
        match self {
            List::Content => "content_index",
            List::Summary => "summary_index",
        }
    }

    /// What the events of its parts begin with.
    pub(super) fn event(self) -> &'static str {
        match self {
            List::Content => "response.content_part",
            List::Summary => "response.reasoning_summary_part",
        }
    }
}

const fn part(name: &'static str, key: &'static str, event: &'static str, list: List, track: TrackKind) -> PartKind {
    PartKind { name, key, event, list, track }
}

pub(super) static TEXT: PartKind = part("output_text", "text", "response.output_text", List::Content, TrackKind::Text);
pub(super) static REFUSAL: PartKind = part("refusal", "refusal", "response.refusal", List::Content, TrackKind::Text);
pub(super) static REASONING: PartKind =
    part("reasoning_text", "text", "response.reasoning_text", List::Content, TrackKind::Thinking);
pub(super) static SUMMARY: PartKind =
    part("summary_text", "text", "response.reasoning_summary_text", List::Summary, TrackKind::Thinking);

/// A part that holds no text; it keeps its place.
pub(super) static OTHER: PartKind = part("", "", "", List::Content, TrackKind::Text);

/// What an event tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The response begins, or waits, or runs.
    Opening,
    ItemAdded,
    ItemDone,
    PartAdded(List),
    PartDone(List),
    TextDelta(&'static PartKind),
    TextDone(&'static PartKind),
    Annotation,
    /// A piece of a call's arguments, which stand under this key in the end.
    CallDelta,
    CallDone(&'static str),
    /// The response as a whole: the last event.
    End {
        failed: bool,
    },
    Error,
    Other,
}

/// Every event that is more than passed on.
const EVENTS: &[(&str, Event)] = &[
    ("response.created", Event::Opening),
    ("response.queued", Event::Opening),
    ("response.in_progress", Event::Opening),
    ("response.output_item.added", Event::ItemAdded),
    ("response.output_item.done", Event::ItemDone),
    ("response.content_part.added", Event::PartAdded(List::Content)),
    ("response.content_part.done", Event::PartDone(List::Content)),
    ("response.reasoning_summary_part.added", Event::PartAdded(List::Summary)),
    ("response.reasoning_summary_part.done", Event::PartDone(List::Summary)),
    ("response.output_text.delta", Event::TextDelta(&TEXT)),
    ("response.output_text.done", Event::TextDone(&TEXT)),
    ("response.output_text.annotation.added", Event::Annotation),
    ("response.refusal.delta", Event::TextDelta(&REFUSAL)),
    ("response.refusal.done", Event::TextDone(&REFUSAL)),
    ("response.reasoning_text.delta", Event::TextDelta(&REASONING)),
    ("response.reasoning_text.done", Event::TextDone(&REASONING)),
    ("response.reasoning_summary_text.delta", Event::TextDelta(&SUMMARY)),
    ("response.reasoning_summary_text.done", Event::TextDone(&SUMMARY)),
    ("response.function_call_arguments.delta", Event::CallDelta),
    ("response.function_call_arguments.done", Event::CallDone("arguments")),
    ("response.custom_tool_call_input.delta", Event::CallDelta),
    ("response.custom_tool_call_input.done", Event::CallDone("input")),
    ("response.completed", Event::End { failed: false }),
    ("response.incomplete", Event::End { failed: false }),
    ("response.failed", Event::End { failed: true }),
    ("error", Event::Error),
];

impl Event {
    pub(super) fn of(name: &str) -> Self {
        EVENTS.iter().find(|(known, _)| *known == name).map_or(Event::Other, |(_, event)| *event)
    }
}

impl PartKind {
    /// The one of a part with this `type`.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        [&TEXT, &REFUSAL, &REASONING, &SUMMARY].into_iter().find(|kind| kind.name == name)
    }
}
