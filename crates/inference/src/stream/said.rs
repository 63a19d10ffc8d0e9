//! What the model has said so far, and what was decided about it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use gatehook_events::ToolCall;
use serde_json::Value;

use super::{Call, CallId, Fate, Fault, Name, Notes, Seal, Track, TrackId, TrackKind};
use crate::error::Unheld;
use crate::refusal::HookNote;
use crate::rewrite::object_of;

/// How many bytes of a [`Track`] stay before what may leave, for those who look back.
pub const LOOK_BACK: usize = 4 << 10;
/// How much more than that there must be before it is dropped.
const SLACK: usize = 64 << 10;

/// How many choices a stream may have, and how many tool calls.
pub(super) const MOST: usize = 1024;

/// A part of a track, by absolute offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) track: TrackId,
    pub(super) range: Range<usize>,
}

/// Other text for a part of a track.
#[derive(Debug, Clone)]
struct Edit {
    range: Range<usize>,
    text: String,
    /// Where the part begins that has carried it to the client.
    carrier: Option<usize>,
}

/// One choice.
#[derive(Debug, Clone, Default)]
pub(super) struct ChoiceState {
    /// Why the model stopped: nothing more comes.
    pub(super) stop: Option<Name>,
    pub(super) over: bool,
    /// The upstream has named its role.
    pub(super) role_came: bool,
    /// Sound goes with its text, and would still say what the text no longer does.
    pub(super) spoken: bool,
    /// The client has its role.
    pub(super) role_left: bool,
    /// The client has its stop reason.
    pub(super) stop_left: bool,
}

/// What belongs to a call and is no one else's business.
#[derive(Debug, Clone, Default)]
pub(super) struct CallState {
    pub(super) fate: Decided,
    /// By what number the upstream names it.
    pub(super) number: u64,
    /// Its arguments so far; [`Call::call`] has them once they are complete.
    pub(super) arguments: String,
    /// How many calls of its choice came before under a number that another call had taken.
    pub(super) lifted: u64,
    /// Its name or id came in several pieces or several times: it is told once.
    pub(super) uneven: bool,
    /// A frame with a part of it has left.
    pub(super) begun: bool,
    /// It is shown whole, in a form of its own: it can be taken out, not rewritten.
    pub(super) sealed: bool,
    /// Its arguments are a JSON object on the wire.
    pub(super) objects: bool,
}

/// What was decided about a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Decided {
    #[default]
    Open,
    Kept,
    Rewritten(Box<ToolCall>),
    Removed,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) tracks: Vec<Track>,
    edits: Vec<Vec<Edit>>,
    pub(super) calls: Vec<Call>,
    pub(super) call_states: Vec<CallState>,
    /// Bytes of arguments that were read to see whether they are whole.
    pub(super) looked: usize,
    pub(super) choices: BTreeMap<u32, ChoiceState>,
    pub(super) usage: Option<Value>,
    /// The protocol's own end has come, or the upstream's error.
    pub(super) over: bool,
    pub(super) error: bool,
    /// Something was changed: what repeats parts of the stream in a form of its own is dropped.
    pub(super) changed: bool,
    /// For the last event that the client gets.
    pub(super) note: Option<HookNote>,
    /// A format repeats its texts: they are kept as a whole.
    pub(super) keeps: bool,
    /// What else it tells, where somebody wants to know.
    pub(super) notes: Option<Box<Notes>>,
}

impl Said {
    pub(super) fn choice(&mut self, choice: u32) -> &mut ChoiceState {
        self.choices.entry(choice).or_default()
    }

    /// A choice that something comes of.
    pub(super) fn begin_choice(&mut self, choice: u32) -> Result<(), Fault> {
        self.choice(choice);
        if self.choices.len() > MOST { Err(Fault::TooMany) } else { Ok(()) }
    }

    /// The track of a choice and kind.
    pub(super) fn find(&self, choice: u32, kind: TrackKind) -> Option<TrackId> {
        self.tracks.iter().position(|track| track.choice == choice && track.kind == kind).map(TrackId)
    }

    /// The same, made where there is none.
    pub(super) fn track(&mut self, choice: u32, kind: TrackKind) -> TrackId {
        self.find(choice, kind).unwrap_or_else(|| {
            self.choice(choice);
            self.tracks.push(Track {
                choice,
                kind,
                text: String::new(),
                base: 0,
                allowed: 0,
                ended: false,
                turned: false,
                closed: false,
            });
            self.edits.push(Vec::new());
            TrackId(self.tracks.len() - 1)
        })
    }

    /// More text.
    pub(super) fn append(&mut self, choice: u32, kind: TrackKind, text: &str) -> Result<Span, Fault> {
        if self.choice(choice).over {
            return Err(Fault::WentOn("text came after the stop reason"));
        }
        let track = self.track(choice, kind);
        Ok(Span { track, range: self.go_on(track, text) })
    }

    /// More text of a track whose choice is not over.
    pub(super) fn go_on(&mut self, track: TrackId, text: &str) -> Range<usize> {
        let Some(track) = self.tracks.get_mut(track.0) else { return 0..0 };
        let start = track.len_total();
        track.text.push_str(text);
        (track.ended, track.turned, track.closed) = (false, false, false);
        start..start + text.len()
    }

    /// Something that is no text of this kind follows in a choice: its other texts have ended for now.
    pub(super) fn turn(&mut self, choice: u32, kind: Option<TrackKind>) {
        for track in self.tracks.iter_mut().filter(|track| track.choice == choice && Some(track.kind) != kind) {
            track.ended = true;
            track.turned |= kind.is_some();
        }
    }

    /// A block is over whose text ends here: where its track does so too, more of it comes in another block.
    pub(super) fn close(&mut self, track: TrackId, end: usize) {
        if let Some(track) = self.tracks.get_mut(track.0).filter(|track| track.len_total() == end) {
            track.closed = true;
        }
    }

    pub(super) fn allowed(&self, track: TrackId) -> usize {
        self.tracks.get(track.0).map_or(0, |track| track.allowed)
    }

    /// How many ends have come: those of choices, and that of all.
    pub(super) fn ends(&self) -> usize {
        self.choices.values().filter(|choice| choice.over).count() + usize::from(self.over)
    }

    /// Nothing more comes of a choice: its texts have ended and its calls are complete.
    pub(super) fn end_choice(&mut self, choice: u32, stop: Option<&str>) {
        let state = self.choice(choice);
        state.over = true;
        state.stop = state.stop.take().or_else(|| stop.map(Name::from));
        self.tracks.iter_mut().filter(|track| track.choice == choice).for_each(|track| track.ended = true);
        self.complete(|call| call.choice == choice);
    }

    /// Calls have come as wholes.
    pub(super) fn complete(&mut self, which: impl Fn(&Call) -> bool) {
        let open = self.calls.iter_mut().zip(&mut self.call_states).filter(|(call, _)| !call.complete && which(call));
        for (call, state) in open {
            call.complete = true;
            call.call.function.arguments = std::mem::take(&mut state.arguments).into();
        }
    }

    /// Nothing more comes at all. Calls that an error cut off do not leave, unless they were kept before.
    pub(super) fn end(&mut self, error: bool) {
        self.over = true;
        self.error |= error;
        self.tracks.iter_mut().for_each(|track| track.ended = true);
        if !error {
            return self.complete(|_| true);
        }
        let open = self.calls.iter_mut().zip(&mut self.call_states).filter(|(call, _)| !call.complete && !call.decided);
        for (call, state) in open {
            call.decided = true;
            state.fate = Decided::Removed;
        }
    }

    /// A part of the thinking is signed, or its signature goes on.
    pub(super) fn seal(&mut self, text: Range<usize>, signature: &str, goes_on: bool) {
        let Some(notes) = &mut self.notes else { return };
        match notes.seals.last_mut() {
            Some(Seal::Signed(_, before)) if goes_on => before.push_str(signature),
            _ => notes.seals.push(Seal::Signed(text, signature.to_owned())),
        }
    }

    /// Says whether more is allowed than before.
    pub(super) fn allow(&mut self, track: TrackId, upto: usize) -> bool {
        let Some(track) = self.tracks.get_mut(track.0) else { return false };
        let mut upto = upto.min(track.len_total());
        while upto > track.base && !track.text.is_char_boundary(upto - track.base) {
            upto -= 1;
        }
        let more = upto > track.allowed;
        track.allowed = track.allowed.max(upto);
        more
    }

    pub(super) fn replace(&mut self, id: TrackId, range: Range<usize>, text: &str) -> Result<(), Unheld> {
        let (Some(track), Some(edits)) = (self.tracks.get(id.0), self.edits.get_mut(id.0)) else {
            return Err(Unheld::new("there is no such text"));
        };
        if self.choices.get(&track.choice).is_some_and(|choice| choice.stop_left) {
            return Err(Unheld::new("the answer has ended"));
        }
        if range.start < track.allowed {
            return Err(Unheld::new("the text has been let go"));
        }
        if track.part(range.clone()).is_none() {
            return Err(Unheld::new("the text has no such part"));
        }
        let same = |edit: &&mut Edit| range.is_empty() && edit.range == range && edit.carrier.is_none();
        if let Some(edit) = edits.iter_mut().find(same) {
            edit.text.push_str(text);
            return Ok(());
        }
        let at = edits.partition_point(|edit| (edit.range.start, edit.range.end) < (range.start, range.end));
        let clear = |edit: &Edit| edit.range.end <= range.start || edit.range.start >= range.end;
        let beside = [at.checked_sub(1), Some(at)].into_iter().flatten();
        if !beside.filter_map(|at| edits.get(at)).all(clear) {
            return Err(Unheld::new("two changes of a text overlap"));
        }
        edits.insert(at, Edit { range, text: text.to_owned(), carrier: None });
        self.changed = true;
        Ok(())
    }

    /// What a part of a track says to the client, where that is not what came. A change stands where it begins. An
    /// insertion between two parts stands in the first of them that leaves with it: those that nothing has carried yet
    /// are taken along if `carry`.
    pub(super) fn rendered(&mut self, span: &Span, carry: bool) -> Option<String> {
        let track = self.tracks.get(span.track.0)?;
        let edits = self.edits.get_mut(span.track.0).filter(|edits| !edits.is_empty())?;
        let Range { start, end } = span.range;
        let first = edits.partition_point(|edit| edit.range.end < start);
        let mut text = String::new();
        let (mut at, mut changed) = (start, false);
        for edit in edits.iter_mut().skip(first).take_while(|edit| edit.range.start <= end) {
            let own = match (edit.carrier, edit.range.is_empty()) {
                (Some(carrier), _) => span.range.contains(&carrier),
                (None, true) => carry && start < end,
                (None, false) => span.range.contains(&edit.range.start),
            };
            if !own && edit.range.start.max(start) >= edit.range.end.min(end) {
                continue;
            }
            changed = true;
            text.push_str(track.part(at..edit.range.start.max(at)).unwrap_or_default());
            if own {
                text.push_str(&edit.text);
                edit.carrier = edit.carrier.or(carry.then_some(start));
            }
            at = at.max(edit.range.end.min(end));
        }
        changed.then(|| {
            text.push_str(track.part(at..end).unwrap_or_default());
            text
        })
    }

    /// The same without a note that it has left.
    pub(super) fn shown(&mut self, span: &Span) -> Cow<'_, str> {
        match self.rendered(span, false) {
            Some(text) => Cow::Owned(text),
            None => {
                let track = self.tracks.get(span.track.0);
                Cow::Borrowed(track.and_then(|track| track.part(span.range.clone())).unwrap_or_default())
            }
        }
    }

    /// Where the first insertion stands that may leave and that nothing has carried.
    pub(super) fn loose(&self, track: TrackId) -> Option<usize> {
        let allowed = self.allowed(track);
        let mut edits = self.edits.get(track.0)?.iter();
        let edit = edits.find(|edit| edit.range.is_empty() && edit.carrier.is_none())?;
        Some(edit.range.start).filter(|start| *start <= allowed)
    }

    /// Its text, for a frame that is made. `inside`: it goes on with what stands before it, so that what repeats that
    /// repeats it as well.
    pub(super) fn take_loose(&mut self, track: TrackId, offset: usize, inside: bool) -> Option<String> {
        let edits = self.edits.get_mut(track.0)?;
        let edit = edits.iter_mut().find(|edit| edit.range == (offset..offset) && edit.carrier.is_none())?;
        edit.carrier = Some(if inside { offset.saturating_sub(1) } else { usize::MAX });
        Some(edit.text.clone())
    }

    /// Whether any track has text that need not stay.
    pub(super) fn has_long(&self) -> bool {
        (0..self.tracks.len()).any(|id| self.is_long(TrackId(id)))
    }

    /// Whether a track has text that need not stay.
    pub(super) fn is_long(&self, id: TrackId) -> bool {
        !self.keeps && self.tracks.get(id.0).is_some_and(|track| track.allowed > track.base + LOOK_BACK + SLACK)
    }

    /// Drops text and edits that nobody needs any more; `held` is where the first held frame of the track begins.
    pub(super) fn forget(&mut self, id: TrackId, held: usize) {
        let Some(track) = self.tracks.get_mut(id.0).filter(|_| !self.keeps) else { return };
        let mut keep = track.allowed.saturating_sub(LOOK_BACK).min(held);
        if keep < track.base + SLACK / 2 {
            return;
        }
        while !track.text.is_char_boundary(keep - track.base) {
            keep -= 1;
        }
        track.text.drain(..keep - track.base);
        track.base = keep;
        if let Some(edits) = self.edits.get_mut(id.0) {
            edits.retain(|edit| edit.range.end >= keep);
        }
    }

    pub(super) fn decide(&mut self, id: CallId, fate: Fate<'_>) -> Result<(), Unheld> {
        let (Some(call), Some(state)) = (self.calls.get_mut(id.0), self.call_states.get_mut(id.0)) else {
            return Err(Unheld::new("there is no such tool call"));
        };
        if state.begun {
            return match fate {
                Fate::Keep => Ok(()),
                _ => Err(Unheld::new("the tool call has been let go")),
            };
        }
        state.fate = match fate {
            Fate::Keep => Decided::Kept,
            Fate::Remove => Decided::Removed,
            Fate::Rewrite(new) => {
                rewritable(call, state, new)?;
                let id = new.id.clone().or_else(|| call.call.id.clone());
                Decided::Rewritten(Box::new(ToolCall { id, ..new.clone() }))
            }
        };
        self.changed |= state.fate != Decided::Kept;
        call.decided = true;
        Ok(())
    }

    /// The number that the client is to see.
    pub(super) fn number(&self, id: CallId) -> u64 {
        let choice = self.calls.get(id.0).map(|call| call.choice);
        let earlier = self.calls.iter().zip(&self.call_states).take(id.0);
        let removed =
            earlier.filter(|(call, state)| Some(call.choice) == choice && state.fate == Decided::Removed).count();
        let state = self.call_states.get(id.0);
        state.map_or(0, |state| (state.number + state.lifted).saturating_sub(removed as u64))
    }

    /// Whether a choice had calls and has none any more.
    pub(super) fn all_removed(&self, choice: u32) -> bool {
        let mut fates = self.calls.iter().zip(&self.call_states).filter(|(call, _)| call.choice == choice).peekable();
        fates.peek().is_some() && fates.all(|(_, state)| state.fate == Decided::Removed)
    }

    /// Bytes of texts and calls that are kept.
    pub(super) fn held(&self) -> usize {
        let texts: usize = self.tracks.iter().map(|track| track.text.len()).sum();
        let calls = self.calls.iter().zip(&self.call_states);
        let arguments = calls.map(|(call, state)| call.call.function.arguments.len() + state.arguments.len());
        let seals = self.notes.iter().flat_map(|notes| &notes.seals).map(|seal| match seal {
            Seal::Signed(_, seal) | Seal::Hidden(seal) => seal.len() + size_of::<Seal>(),
        });
        texts
            + arguments.sum::<usize>()
            + seals.sum::<usize>()
            + self.calls.len() * (size_of::<Call>() + size_of::<CallState>())
    }
}

fn rewritable(call: &Call, state: &CallState, new: &ToolCall) -> Result<(), Unheld> {
    if !call.complete {
        return Err(Unheld::new("a tool call can be rewritten once it is complete"));
    }
    if state.sealed {
        return Err(Unheld::new("a call of this kind can be taken out, not rewritten"));
    }
    if new.kind != call.call.kind || new.extra.iter().any(|(key, value)| call.call.extra.get(key) != Some(value)) {
        return Err(Unheld::new("of a tool call, only id, name and arguments can be rewritten"));
    }
    match state.objects {
        true => object_of(&new.function.arguments).map(drop),
        false => Ok(()),
    }
}
