//! The queue of frames between an upstream and a client.
//!
//! - `settling`: what leaves, and in what order.

mod settling;

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use self::settling::Out;
use super::alike::Run;
use super::chat::DONE;
use super::format::{self, Format};
use super::frame::{Data, Event, Frame, Lane};
use super::lines::{Fields, Framing, Raw, Splitter};
use super::mend::Mender;
use super::queue::Queue;
use super::said::{Said, Span};
use super::{Block, Call, CallId, Fate, Fault, Notes, Track, TrackId, TrackKind};
use crate::alternatives;
use crate::error::{ReadError, Unheld};
use crate::json::{Document, NO_CHARACTER};
use crate::refusal::{ErrorKind, HookNote, plain};
use crate::route::Route;

/// One streamed answer between an upstream and a client.
///
/// Nothing leaves before it is allowed: text by [`Relay::allow`], tool calls by [`Relay::decide`]. Frames whose content
/// is decided, and all that says nothing, come out of [`Relay::take`] in the order in which they came; only text,
/// thinking and calls of different choices may overtake each other, in formats whose readers keep them apart.
///
/// After [`Relay::block`] or [`Relay::fail`] nothing more is taken or given.
///
/// ```
/// use gatehook_inference::{Relay, Route, TrackId};
///
/// let mut relay = Relay::new(Route::Chat);
/// relay.push(r#"{"message":{"content":"my key is "},"done":false}"#.into())?;
/// relay.push("\n{\"message\":{\"content\":\"k-123.\"},\"done\":false}\n".into())?;
/// assert_eq!(relay.tracks()[0].text, "my key is k-123.");
/// assert_eq!(relay.take(), None);
///
/// relay.allow(TrackId(0), 10);
/// assert_eq!(relay.take().unwrap(), "{\"message\":{\"content\":\"my key is \"},\"done\":false}\n");
/// relay.replace(TrackId(0), 10..15, "[...]")?;
/// relay.allow(TrackId(0), 16);
/// assert_eq!(relay.take().unwrap(), "{\"message\":{\"content\":\"[...].\"},\"done\":false}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Relay {
    framing: Framing,
    format: Box<dyn Format>,
    splitter: Splitter,
    mender: Mender,
    said: Said,
    held: Queue,
    /// Frames like the one that was read last. They came behind all that is held, and leave as they came: where they might
    /// not, or might leave before what is held, they are [woven](Relay::weave) into it.
    run: Option<Run>,
    /// All that was put last is one of them.
    alike: bool,
    out: VecDeque<Out>,
    spoke: bool,
    /// The last frame that was taken in has no end of its own.
    torn: bool,
    closed: bool,
    /// Frames that cannot be read pass as they came.
    lenient: bool,
    /// Frames are read without alternatives to their tokens.
    alone: bool,
    /// No choice's end may leave.
    end_held: bool,
}

impl Relay {
    /// A stream that has not begun.
    pub fn new(route: Route) -> Self {
        let framing = Framing::of(route);
        Self {
            framing,
            format: format::of(route),
            splitter: Splitter::new(framing),
            mender: Mender::default(),
            said: Said::default(),
            held: Queue::default(),
            run: None,
            alike: false,
            out: VecDeque::new(),
            spoke: false,
            torn: false,
            closed: false,
            lenient: false,
            alone: false,
            end_held: false,
        }
    }

    /// The same for a stream whose text is judged: of log probabilities only the tokens themselves are taken in, and not what
    /// the model might have said instead (`top_logprobs`), which nobody is shown. Frames without any are as they came.
    #[must_use]
    pub fn without_alternatives(self) -> Self {
        Self { alone: true, ..self }
    }

    /// The same for whoever asked: what the stream tells beside what the model says is kept as [`Relay::notes`].
    #[must_use]
    pub fn noting(mut self) -> Self {
        self.said.notes = Some(Box::default());
        self
    }

    /// The same for a stream that nobody judges: frames that cannot be read pass as they came.
    pub(super) fn through(route: Route) -> Self {
        Self { lenient: true, ..Self::new(route) }
    }

    /// What came and was not read: behind the end, or from a frame on that is too long.
    pub(super) fn unread(&mut self) -> Bytes {
        self.splitter.unread()
    }

    /// Takes bytes of the upstream, split anywhere. What comes behind the stream's end is dropped.
    ///
    /// # Errors
    ///
    /// A [`Fault`] where a frame cannot be shown truly, or a bound is passed. What came before it can still be let go.
    pub fn push(&mut self, bytes: Bytes) -> Result<(), Fault> {
        self.put(bytes);
        while self.advance()? {}
        Ok(())
    }

    /// [`Relay::push`] in steps: takes bytes whose frames [`Relay::advance`] reads.
    pub fn put(&mut self, bytes: Bytes) {
        if !self.closed && !self.said.over && !bytes.is_empty() {
            self.splitter.push(bytes);
            self.alike = false;
        }
    }

    /// Reads the next frame of what was put, and says whether there was one that has come as a whole.
    ///
    /// # Errors
    ///
    /// As those of [`Relay::push`].
    pub fn advance(&mut self) -> Result<bool, Fault> {
        if self.closed || self.said.over {
            return Ok(false);
        }
        if let Some(run) = &mut self.run
            && let Some(text) = self.splitter.whole_read().and_then(|read| run.text_of_event(read))
        {
            let range = run.say(text, &mut self.said);
            run.hold(self.splitter.take_read(), range);
            self.alike = true;
            return Ok(true);
        }
        if self.splitter.is_empty() { Ok(false) } else { self.read_next() }
    }

    /// The same of a frame that is to be looked for.
    #[inline(never)]
    fn read_next(&mut self) -> Result<bool, Fault> {
        let Some(came) = self.splitter.next()? else { return Ok(false) };
        let other = match &mut self.run {
            Some(run) => run.take(came, &mut self.said),
            None => Some(came),
        };
        if let Some(other) = other {
            self.read(other)?;
        }
        Ok(true)
    }

    /// The track that went on with what was put last, if that has done nothing else.
    pub fn grown(&self) -> Option<TrackId> {
        self.run.as_ref().filter(|_| self.alike).map(Run::track)
    }

    /// Bytes that were put last and have not been looked at.
    pub fn ahead(&self) -> usize {
        self.splitter.ahead()
    }

    /// The upstream has ended.
    ///
    /// Chat completions and completions without `data: [DONE]`, and Messages without `message_stop`, are taken for whole
    /// where each choice has its stop reason, as some servers end them; everything else without its end is
    /// [`Fault::Cut`]. Half a frame at the end is one too.
    pub fn finish(&mut self) -> Result<(), Fault> {
        if self.closed || self.said.over {
            return Ok(());
        }
        if let Some(raw) = self.splitter.finish() {
            // Half a frame cannot be read: it is the cut that is to blame.
            self.read(raw).map_err(|fault| if matches!(fault, Fault::Read(_)) { Fault::Cut } else { fault })?;
            self.torn = true;
        }
        if !self.said.over && !self.format.is_whole(&self.said) {
            return Err(Fault::Cut);
        }
        if !self.said.over {
            self.said.end(false);
            self.held.look_at_all();
        }
        Ok(())
    }

    fn read(&mut self, raw: (Raw, Fields)) -> Result<(), Fault> {
        self.weave();
        self.run = None;
        if !self.lenient {
            return self.read_frame(raw);
        }
        let (as_it_came, _) = Frame::new(self.framing, raw.clone());
        if self.read_frame(raw).is_err() {
            self.held.push(as_it_came);
        }
        Ok(())
    }

    fn read_frame(&mut self, raw: (Raw, Fields)) -> Result<(), Fault> {
        let (mut frame, name) = Frame::new(self.framing, raw);
        let data = frame.data().clone();
        let document = match data.trim_ascii_start().first() {
            Some(b'{' | b'[') if !data.trim_ascii_start().starts_with(DONE) => Some(self.parse(&mut frame)?),
            _ => None,
        };
        let data = match &document {
            Some(document) => Data::Json(document),
            None if data.is_empty() => Data::None,
            None => Data::Word(&data),
        };
        let before = self.said.ends();
        if !matches!(data, Data::None) {
            self.format.read(&Event { name: name.as_deref(), data }, &mut self.said, &mut frame)?;
        }
        frame.closes = self.said.ends() > before;
        if let (true, Some(notes), Some(document)) = (frame.closes, &mut self.said.notes, &document) {
            let told = |key| document.some(Document::ROOT, key).map(|at| document.value(at));
            let error = || told("error").unwrap_or_else(|| document.value(Document::ROOT));
            notes.error = notes.error.take().or_else(|| self.said.error.then(error));
            notes.hook = notes.hook.take().or_else(|| told("hook"));
        }
        if frame.wakes || self.said.over {
            self.held.look_at_all();
        }
        let is_like_others = name.is_none() && self.format.reads_alike();
        self.run = document.filter(|_| is_like_others).and_then(|document| Run::of(&frame, &document));
        self.held.push(frame);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn is_like_last(&self, data: &[u8]) -> bool {
        self.run.as_ref().is_some_and(|run| run.text(data).is_some())
    }

    /// The JSON of a frame. One with half a surrogate pair in it is made anew, and so is one with alternatives to its
    /// tokens, where they do not leave.
    fn parse(&mut self, frame: &mut Frame) -> Result<Document, Fault> {
        let document = match Document::read(frame.data().clone()) {
            Err(ReadError::Malformed { what: NO_CHARACTER, .. }) => {
                frame.remake(self.mender.mend(frame.data()));
                Document::read(frame.data().clone())?
            }
            read => read?,
        };
        match self.alone.then(|| alternatives::without(&document)).flatten() {
            Some(data) => {
                frame.remake(data);
                Ok(Document::read(frame.data().clone())?)
            }
            None => Ok(document),
        }
    }

    /// True once the protocol's own end, or the upstream's error event, has come.
    pub fn is_over(&self) -> bool {
        self.said.over
    }

    /// The upstream has told of an error of its own. Its event is a frame like others: it leaves behind what came
    /// before it.
    pub fn upstream_error(&self) -> bool {
        self.said.error
    }

    /// What it told so far beside what the model says; none without [`Relay::noting`].
    pub fn notes(&self) -> Option<&Notes> {
        self.said.notes.as_deref()
    }

    /// The texts; the index is the [`TrackId`]. A track is there once its first character has come.
    pub fn tracks(&self) -> &[Track] {
        &self.said.tracks
    }

    /// The tool calls; the index is the [`CallId`]. Arguments are shown once a call is complete.
    pub fn calls(&self) -> &[Call] {
        &self.said.calls
    }

    /// The indexes of the choices that have come.
    pub fn choices(&self) -> impl Iterator<Item = u32> + '_ {
        self.said.choices.keys().copied()
    }

    /// Why the model stopped, by the upstream's word.
    pub fn done_reason(&self, choice: u32) -> Option<&str> {
        self.said.choices.get(&choice)?.stop.as_deref()
    }

    /// Tokens used, by the upstream's names.
    pub fn usage(&self) -> Option<&Value> {
        self.said.usage.as_ref()
    }

    /// Text of the track up to `upto` may leave, as it came or was replaced. An offset inside of a character is that of
    /// its beginning.
    pub fn allow(&mut self, track: TrackId, upto: usize) {
        if self.said.allow(track, upto) && !self.held.is_empty() {
            self.look_at(track);
        }
    }

    /// Puts `text` in place of `range`, which must not have been allowed. An empty range inserts: into the frame that
    /// ends or begins there, or else into one that is made; it leaves as soon as its offset is allowed (again).
    ///
    /// # Errors
    ///
    /// Where the text has left, overlaps with another change, or is sealed: signed thinking is emptied as a whole or not
    /// at all.
    pub fn replace(&mut self, track: TrackId, range: Range<usize>, text: &str) -> Result<(), Unheld> {
        let span = Span { track, range };
        self.format.can_replace(&self.said, &span, text)?;
        self.said.replace(track, span.range, text)?;
        self.look_at(track);
        Ok(())
    }

    /// The track of a choice and kind, made where the answer has no such text. What is inserted into an empty track
    /// leaves in a frame that is made.
    ///
    /// # Errors
    ///
    /// Where the route has no place for such a text, or the choice has ended.
    pub fn add_track(&mut self, choice: u32, kind: TrackKind) -> Result<TrackId, Unheld> {
        self.format.can_add(&self.said, choice, kind)?;
        let ended = self.said.over || self.said.choice(choice).over;
        let id = self.said.track(choice, kind);
        if let Some(track) = self.said.tracks.get_mut(id.0) {
            track.ended |= ended;
        }
        Ok(id)
    }

    /// Decides on a call. It can be decided anew as long as no part of it has left.
    ///
    /// # Errors
    ///
    /// Where a part of it has left, or it is to be rewritten before it is complete or in a way that its form cannot hold.
    pub fn decide(&mut self, call: CallId, fate: Fate<'_>) -> Result<(), Unheld> {
        self.said.decide(call, fate)?;
        if let Some(call) = self.said.calls.get(call.0) {
            self.held.look_at(Lane::Calls(call.choice));
        }
        Ok(())
    }

    /// Puts a `hook` note into the event that ends a choice, of a stream that goes on. The first one stays.
    pub fn note(&mut self, hook: HookNote) {
        self.said.note.get_or_insert(hook);
    }

    /// Whether anything that the model said, or an end, has been let go or would be with the next [`Relay::take`]. What
    /// comes before it (roles, pings) is nothing to begin an answer with.
    pub fn speaks(&mut self) -> bool {
        if !self.spoke {
            self.settle();
        }
        self.spoke
    }

    /// Whether the end of each choice stays (its stop reason, and what came with it and behind it), whatever has been
    /// decided about its content.
    pub fn hold_end(&mut self, held: bool) {
        if self.end_held && !held {
            self.held.look_at_all();
        }
        self.end_held = held;
    }

    /// What may leave now, in order; as few pieces as there are without a copy. None: nothing may leave.
    pub fn take(&mut self) -> Option<Bytes> {
        if self.out.is_empty() && self.held.is_empty() && !self.said.changed && !self.closed {
            return self.take_of_run();
        }
        self.settle();
        self.next_out()
    }

    /// Bytes of frames and texts that are kept.
    pub fn held(&self) -> usize {
        let run = self.run.as_ref().map_or(0, Run::weight);
        self.held.weight() + run + self.splitter.held() + self.said.held()
    }

    /// Drops what has not left and ends the stream as its protocol does on a refusal, up to the protocol's last byte: the
    /// message that the client has gathered is what was let go. Nothing where the end has left already.
    pub fn block(&mut self, refusal: &Block<'_>) -> Bytes {
        let message = plain(refusal.message);
        self.close(|format, said| format.block(said, &Block { message: &message, ..*refusal }))
    }

    /// Drops what has not left and ends the stream with an error event of its protocol. Nothing where the end has left
    /// already.
    pub fn fail(&mut self, kind: ErrorKind, message: &str, request_id: &str) -> Bytes {
        self.close(|format, said| format.fail(said, kind, message, request_id))
    }

    fn close(&mut self, end: impl FnOnce(&mut dyn Format, &Said) -> Vec<u8>) -> Bytes {
        if self.closed {
            return Bytes::new();
        }
        self.weave();
        let mut bytes = Vec::new();
        for out in self.out.drain(..) {
            match out {
                Out::Came(raw) => bytes.extend_from_slice(raw.bytes()),
                Out::Made(made) => bytes.extend_from_slice(&made),
            }
        }
        let ended = self.said.over && self.held.is_empty();
        if !ended {
            if self.torn && self.held.is_empty() {
                bytes.extend_from_slice(if self.framing == Framing::Events { b"\n\n" } else { b"\n" });
            }
            bytes.extend(end(&mut *self.format, &self.said));
        }
        self.closed = true;
        self.held.clear();
        bytes.into()
    }
}
