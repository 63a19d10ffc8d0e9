//! A streamed answer in parts, as hooks see it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Which part of a streamed answer a `post_inference` hook is shown.
///
/// ```
/// use gatehook_events::{Segment, SegmentKind};
///
/// let segment = Segment { index: 0, final_: true, kind: SegmentKind::ToolCall };
/// assert_eq!(serde_json::to_string(&segment)?, r#"{"index":0,"final":true,"kind":"tool_call"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// Its place among the segments of this kind and choice, from 0.
    pub index: u32,
    /// No further segment of this kind and choice follows.
    #[serde(rename = "final")]
    pub final_: bool,
    /// What it holds.
    pub kind: SegmentKind,
}

/// What a segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// Text, in `output_text`.
    Text,
    /// Thinking, in `output_thinking`.
    Thinking,
    /// One complete call, in `tool_calls`.
    ToolCall,
}

/// What stands before the new part of a segment's text, for hooks in the host's process. It is not serialised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// What has left, as the text begins with it.
    pub left: Arc<str>,
    /// What the model said there.
    pub came: Arc<str>,
}
