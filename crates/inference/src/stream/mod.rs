//! A streamed answer on its way from an upstream to a client.
//!
//! A [`Relay`] knows the wire and nothing of hooks: bytes come in, split anywhere; it shows what the model says so far
//! ([`Track`], [`Call`]); its owner says what of that may leave; bytes come out. What nobody changes leaves as the bytes
//! it came in.
//!
//! - `lines`: bytes to frames (events of SSE, lines of NDJSON).
//! - `format`: what a route has to know; a file for each family of routes reads its frames and writes its endings
//!   (`chat`, `native`, of which `delta`, `calls` and `tokens` are shared; `responses`, `messages`).
//! - `mend`: characters that a server has cut in two.
//! - `frame`: one frame, what it holds and what it waits for.
//! - `alike`: frames that need not be read anew.
//! - `said`: the tracks and calls, and what is decided about them.
//! - `leave`: a frame with what was decided put into it.
//! - `queue`: the frames that are held.
//! - `relay`: from bytes to bytes.
//! - `completion`: a relay for streams that nobody judges.

mod alike;
mod calls;
mod chat;
mod completion;
mod delta;
mod format;
mod frame;
mod leave;
mod lines;
mod mend;
mod messages;
mod native;
mod queue;
mod relay;
mod responses;
mod said;
mod tokens;

use std::ops::Range;
use std::sync::Arc;

use gatehook_events::ToolCall;
use serde_json::Value;
use thiserror::Error;

pub use completion::Completion;
pub use lines::{FRAME_LIMIT, Framing};
pub use relay::Relay;
pub use said::LOOK_BACK;
pub(crate) use tokens::spelled;

use crate::error::ReadError;
use crate::refusal::HookNote;
use crate::route::{Route, Wire};

/// Why a stream cannot be read on. What came before stays as it is: [`Relay::fail`] tells the client.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// A frame that a hook cannot be shown truly.
    #[error("a frame of the stream: {0}")]
    Read(#[from] ReadError),
    /// A frame is longer than [`FRAME_LIMIT`].
    #[error("a frame of the stream is longer than {FRAME_LIMIT} bytes")]
    TooLarge,
    /// There are more than 1,024 choices or tool calls.
    #[error("the stream has too many choices or tool calls")]
    TooMany,
    /// The upstream has closed the stream before its end.
    #[error("the stream broke off before its end")]
    Cut,
    /// More came of something that was over: of a choice that had its stop reason, or of a call whose arguments were
    /// whole.
    #[error("the stream went on with what was over: {0}")]
    WentOn(&'static str),
}

/// What kind of text a track is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TrackKind {
    /// What the model says to the client, refusals included.
    Text,
    /// What it says to itself.
    Thinking,
}

/// Which of [`Relay::tracks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub usize);

/// Which of [`Relay::calls`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub usize);

/// All text of one kind in one choice, over all of its blocks, items and parts, as [`crate::Response`] shows a whole
/// answer. Offsets are bytes from the beginning of the stream, of what the upstream said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// The choice's index; 0 where a route has only one.
    pub choice: u32,
    /// What kind of text.
    pub kind: TrackKind,
    /// What came from `base` on.
    pub text: String,
    /// Older text that has left may be dropped; at least 4 KiB before `allowed` stay.
    pub base: usize,
    /// Up to here it may leave.
    pub allowed: usize,
    /// Nothing more comes on it; or something else of its choice has followed, text of another kind or a tool call: then
    /// more may still come later and make this false again.
    pub ended: bool,
    /// It was text of the other kind that followed, not only tool calls.
    pub turned: bool,
    /// The block in which it ended is over: what comes later stands in another one. Never so where a route has no blocks.
    pub closed: bool,
}

impl Track {
    /// How much came in all.
    pub fn len_total(&self) -> usize {
        self.base + self.text.len()
    }

    /// What came from `offset` on, as far as it is still there; nothing for an offset inside of a character.
    pub fn since(&self, offset: usize) -> &str {
        self.text.get(offset.saturating_sub(self.base)..).unwrap_or_default()
    }

    /// What came in `range`, where all of it is still there.
    pub fn part(&self, range: Range<usize>) -> Option<&str> {
        self.text.get(range.start.checked_sub(self.base)?..range.end.checked_sub(self.base)?)
    }
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The choice's index; 0 where a route has only one.
    pub choice: u32,
    /// As it has come so far, in the shape in which [`crate::Response::choices`] shows it.
    pub call: ToolCall,
    /// All of it has come.
    pub complete: bool,
    /// [`Relay::decide`] was told.
    pub decided: bool,
}

/// What is to become of a call.
#[derive(Debug, Clone, Copy)]
pub enum Fate<'a> {
    /// It leaves as it came (and may be kept before it is complete: then the rest leaves as it comes).
    Keep,
    /// It leaves with another id, name or arguments. An absent id stays.
    Rewrite(&'a ToolCall),
    /// It does not leave.
    Remove,
}

/// How a stream ends that a hook has blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// As the model's own refusal: every SDK's helpers take it for a finished answer.
    #[default]
    Refusal,
    /// As an answer that a filter cut: some helpers raise on it, some agents try again.
    ContentFilter,
}

/// A block in mid-stream.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// What is said where the protocol has a place for a refusal's text.
    pub message: &'a str,
    /// The `hook` object of the last event.
    pub hook: &'a HookNote,
    /// How it ends.
    pub ending: Ending,
}

/// What a stream tells whoever asked, beside what the model says: [`Relay::noting`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Notes {
    /// Thinking that the server wants back as it came, in order.
    pub seals: Vec<Seal>,
    /// The error that the upstream ended the stream with, as it is spelled.
    pub error: Option<Value>,
    /// What a gateway's hook did to the answer: the `hook` object of its last event.
    pub hook: Option<Value>,
}

/// A block of thinking that is signed, or that is shown to nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seal {
    /// Text of the thinking's track, in bytes, and its signature.
    Signed(Range<usize>, String),
    /// `redacted_thinking`: all there is of it.
    Hidden(String),
}

/// What may be sent between two frames while a client waits, so that it does not give up; none on NDJSON, where a blank
/// line breaks readers.
pub fn keep_alive(route: Route) -> Option<&'static [u8]> {
    match (route, route.wire()) {
        (_, Wire::Ollama) => None,
        (_, Wire::OpenAi) => Some(b": ping\n\n"),
        (_, Wire::Anthropic) => Some(b"event: ping\ndata: {\"type\": \"ping\"}\n\n"),
    }
}

/// A name that a call or choice bears.
type Name = Arc<str>;
