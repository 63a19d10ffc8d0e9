//! A stream: however it is split, the same is seen and the same leaves; what leaves is read again as the same; and no
//! decision, in any order, breaks what a client gets.
//!
//! The first byte is the route, `0` to `5` in the order of the table; the rest of the first line decides where reads end
//! and what becomes of what they bring; the stream follows.

#![no_main]

use bytes::Bytes;
use gatehook_events::ToolCall;
use gatehook_inference::{Block, CallId, Ending, ErrorKind, Fate, Fault, HookNote, Relay, Route, TrackId, TrackKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let route = Route::ALL[usize::from(first.wrapping_sub(b'0')) % Route::ALL.len()];
    let line = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let (dice, stream) = (&rest[..line], rest.get(line + 1..).unwrap_or_default());
    same_however_split(route, dice, stream);
    decided(route, &mut Dice { bytes: dice, at: 0 }, stream);
});

/// The bytes of the first line, again and again.
struct Dice<'d> {
    bytes: &'d [u8],
    at: usize,
}

impl Dice<'_> {
    fn roll(&mut self, sides: usize) -> usize {
        self.at += 1;
        let byte = self.bytes.get(self.at % self.bytes.len().max(1)).copied().unwrap_or_default();
        (usize::from(byte) + self.at / 7) % sides.max(1)
    }
}

/// All that leaves of a stream in reads of such a size, let go once it has ended; and whether it ended as it should.
fn pass(route: Route, stream: &[u8], size: usize) -> (Result<(), Fault>, Relay, Vec<u8>) {
    let mut relay = Relay::new(route);
    let mut out = Vec::new();
    let pushed = stream.chunks(size.max(1)).try_for_each(|read| relay.push(Bytes::copy_from_slice(read)));
    let result = pushed.and_then(|()| relay.finish());
    let_go(&mut relay, &mut out);
    (result, relay, out)
}

fn let_go(relay: &mut Relay, out: &mut Vec<u8>) {
    (0..relay.tracks().len()).for_each(|id| relay.allow(TrackId(id), usize::MAX));
    for id in 0..relay.calls().len() {
        if !relay.calls()[id].decided {
            let _ = relay.decide(CallId(id), Fate::Keep);
        }
    }
    while let Some(bytes) = relay.take() {
        out.extend_from_slice(&bytes);
    }
}

fn same_however_split(route: Route, dice: &[u8], stream: &[u8]) {
    let (result, relay, out) = pass(route, stream, stream.len());
    let size = usize::from(dice.first().copied().unwrap_or_default() % 32) + 1;
    let (split_result, split, split_out) = pass(route, stream, size);
    if result.is_err() || split_result.is_err() {
        assert_eq!(result.is_err(), split_result.is_err(), "a split changes what is read");
        return;
    }
    assert_eq!(out, split_out, "a split changes what leaves: {}", out.escape_ascii());
    let texts = |relay: &Relay| relay.tracks().iter().map(|track| track.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&relay), texts(&split), "a split changes what is seen");
    let (again, second, out_again) = pass(route, &out, out.len());
    assert_eq!(again, Ok(()), "cannot be read again: {}", out.escape_ascii());
    assert_eq!(out_again, out, "is not left alone: {}", out.escape_ascii());
    assert_eq!(texts(&second), texts(&relay), "is not read as the same: {}", out.escape_ascii());
}

/// Anything may be decided of anything at any time.
fn decided(route: Route, dice: &mut Dice<'_>, stream: &[u8]) {
    let mut relay = Relay::new(route);
    let mut rest = stream;
    let mut out = Vec::new();
    let mut whole = true;
    while !rest.is_empty() {
        let (read, after) = rest.split_at((dice.roll(48) + 1).min(rest.len()));
        rest = after;
        if relay.push(Bytes::copy_from_slice(read)).is_err() {
            whole = false;
            break;
        }
        decide(&mut relay, dice);
        while let Some(bytes) = relay.take() {
            out.extend_from_slice(&bytes);
        }
    }
    whole = whole && relay.finish().is_ok();
    let note = HookNote::default();
    match dice.roll(4) {
        0 => out.extend_from_slice(&relay.block(&Block { message: "no", hook: &note, ending: Ending::Refusal })),
        1 => out.extend_from_slice(&relay.block(&Block { message: "no", hook: &note, ending: Ending::ContentFilter })),
        _ if whole => let_go(&mut relay, &mut out),
        _ => out.extend_from_slice(&relay.fail(ErrorKind::BadUpstream, "", "r")),
    }
    let (result, ..) = pass(route, &out, out.len().max(1));
    assert_eq!(result, Ok(()), "a client cannot read what was decided: {}", out.escape_ascii());
}

fn decide(relay: &mut Relay, dice: &mut Dice<'_>) {
    for id in 0..relay.tracks().len() {
        let (total, allowed) = (relay.tracks()[id].len_total(), relay.tracks()[id].allowed);
        let place = |dice: &mut Dice<'_>| allowed + dice.roll(total - allowed + 1);
        match dice.roll(5) {
            0 => {
                let (one, two) = (place(dice), place(dice));
                let _ = relay.replace(TrackId(id), one.min(two)..one.max(two), ["", "x", "\"ü\n"][dice.roll(3)]);
            }
            1 => {}
            _ => {
                let upto = place(dice);
                relay.allow(TrackId(id), upto);
            }
        }
    }
    for id in 0..relay.calls().len() {
        let call = relay.calls()[id].call.clone();
        let fate = match dice.roll(5) {
            0 => Fate::Remove,
            1 => Fate::Rewrite(&ToolCall { id: Some("new".into()), ..call }),
            2 | 3 => Fate::Keep,
            _ => continue,
        };
        let _ = relay.decide(CallId(id), fate);
    }
    if dice.roll(9) == 0 {
        let kind = [TrackKind::Text, TrackKind::Thinking][dice.roll(2)];
        let _ = relay.add_track(0, kind).and_then(|id| relay.replace(id, 0..0, "new"));
        relay.note(HookNote::default());
    }
    let _ = (relay.held(), relay.speaks(), relay.usage());
}
