//! What holds for every recorded stream: however it is split, the same is seen and the same leaves; nothing changed is
//! nothing changed; what leaves completed, and changed, is what a client can gather.

use std::ops::Range;

use bytes::Bytes;
use gatehook_inference::{Call, CallId, Fate, Relay, Route, TrackId, TrackKind};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use crate::client::{Gathered, gather};
use crate::{Stream, allow_all, came, drain, note, reads, streams, text, track};

fn any_stream() -> impl Strategy<Value = Stream> {
    proptest::sample::select(streams())
}

/// All that a guard is shown of a stream.
type Shown = (Vec<(TrackKind, String, bool)>, Vec<Call>, Option<String>, Option<Value>, bool);

fn shown(relay: &Relay) -> Shown {
    let tracks = relay.tracks().iter().map(|track| (track.kind, track.text.clone(), track.ended));
    let calls = relay.calls().iter().map(|call| Call { decided: false, ..call.clone() });
    let reason = relay.done_reason(0).map(str::to_owned);
    (tracks.collect(), calls.collect(), reason, relay.usage().cloned(), relay.upstream_error())
}

/// Feeds a stream and lets everything go, and takes it: as it comes, or at the end.
fn pass(route: Route, reads: &[Bytes], late: bool) -> (Vec<u8>, Shown) {
    let mut relay = Relay::new(route);
    let mut out = Vec::new();
    for read in reads {
        relay.push(read.clone()).unwrap();
        if !late {
            allow_all(&mut relay);
            out.extend(drain(&mut relay));
        }
    }
    relay.finish().unwrap();
    allow_all(&mut relay);
    out.extend(drain(&mut relay));
    assert!(relay.is_over());
    (out, shown(&relay))
}

fn gathered(stream: &Stream, out: &[u8]) -> Gathered {
    gather(stream.route, std::str::from_utf8(out).unwrap())
}

#[test]
fn a_complete_stream_leaves_as_the_same_bytes() {
    for stream in streams().into_iter().filter(Stream::is_complete) {
        for size in [1, 2, 3, 7, 64, 1000, stream.body.len()] {
            let reads: Vec<Bytes> = stream.body.chunks(size).map(Bytes::copy_from_slice).collect();
            for late in [false, true] {
                let (out, _) = pass(stream.route, &reads, late);
                let (out, body) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&stream.body));
                assert_eq!(out, body, "{} in reads of {size}", stream.file);
            }
        }
    }
}

#[test]
fn a_complete_stream_that_is_allowed_at_once_leaves_as_one_slice_of_its_read() {
    for stream in streams().into_iter().filter(Stream::is_complete) {
        let mut relay = came(&stream);
        allow_all(&mut relay);
        let out = relay.take().unwrap();
        assert_eq!((out.as_ptr(), out.len()), (stream.body.as_ptr(), stream.body.len()), "{}", stream.file);
        assert_eq!(relay.take(), None, "{}", stream.file);
    }
}

#[test]
fn every_stream_leaves_so_that_a_strict_client_gathers_what_a_guard_was_shown() {
    for stream in streams() {
        let (out, (tracks, calls, reason, _, error)) = pass(stream.route, std::slice::from_ref(&stream.body), true);
        let gathered = gathered(&stream, &out);
        let said = |kind| tracks.iter().filter(|(is, ..)| *is == kind).map(|(_, text, _)| &**text).collect::<String>();
        assert_eq!(gathered.said(), said(TrackKind::Text), "{}", stream.file);
        assert_eq!(gathered.thinking(), said(TrackKind::Thinking), "{}", stream.file);
        assert_eq!(gathered.error.is_some(), error, "{}", stream.file);
        assert_eq!(gathered.stop.clone().filter(|_| !error), reason, "{}", stream.file);
        let own: Vec<&Call> = calls.iter().filter(|call| ["function", "custom"].contains(&&*call.call.kind)).collect();
        assert_eq!(gathered.calls().len(), own.len(), "{}", stream.file);
        for ((id, name, arguments), call) in gathered.calls().iter().zip(own) {
            assert_eq!(call.call.id.as_deref(), Some(&**id), "{}", stream.file);
            assert_eq!(*call.call.function.name, **name, "{}", stream.file);
            assert_eq!(json(arguments), json(&call.call.function.arguments), "{}", stream.file);
            assert!(call.complete, "{}", stream.file);
        }
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

#[test]
fn calls_are_shown_as_a_whole_answer_shows_them() {
    for stream in streams().into_iter().filter(|stream| stream.route == Route::Responses) {
        let body = String::from_utf8_lossy(&stream.body);
        let last = body.trim_end().rsplit("data: ").next().unwrap();
        let Value::Object(mut last) = serde_json::from_str(last).unwrap() else { panic!("{last}") };
        let Some(response) = last.remove("response").filter(|response| response["status"] == "completed") else {
            continue;
        };
        let whole = gatehook_inference::Response::read(stream.route, response.to_string().into()).unwrap();
        let whole = whole.choices()[0].output.tool_calls.clone().unwrap_or_default();
        let relay = came(&stream);
        // Wholes are spelled as they came, keys in their order; here only what they say counts.
        let said = |call: &gatehook_events::ToolCall| {
            let mut call = call.clone();
            call.function.arguments = json(&call.function.arguments).to_string().into();
            call
        };
        let shown: Vec<_> = relay.calls().iter().map(|call| said(&call.call)).collect();
        assert_eq!(shown, whole.iter().map(said).collect::<Vec<_>>(), "{}", stream.file);
    }
}

/// Replaces a part of a track as soon as it is there, holding back what is younger than `hold` bytes.
fn replaced(
    stream: &Stream,
    reads: &[Bytes],
    kind: TrackKind,
    part: &Range<usize>,
    with: &str,
    hold: usize,
) -> Vec<u8> {
    let mut relay = Relay::new(stream.route);
    let mut out = Vec::new();
    let mut done = false;
    for read in reads.iter().map(Some).chain([None]) {
        match read {
            Some(read) => relay.push(read.clone()).unwrap(),
            None => relay.finish().unwrap(),
        }
        let own = track(&relay, kind);
        if let Some(id) = own.filter(|id| !done && relay.tracks()[id.0].len_total() >= part.end) {
            relay.replace(id, part.clone(), with).unwrap();
            done = true;
        }
        for id in (0..relay.tracks().len()).map(TrackId) {
            let track = &relay.tracks()[id.0];
            let whole = if track.ended { track.len_total() } else { track.len_total().saturating_sub(hold) };
            let upto = if own == Some(id) && !done { whole.min(part.start) } else { whole };
            relay.allow(id, upto);
        }
        for id in (0..relay.calls().len()).map(CallId) {
            if relay.calls()[id.0].complete {
                relay.decide(id, Fate::Keep).unwrap();
            }
        }
        out.extend(drain(&mut relay));
    }
    assert!(done);
    out
}

/// Streams whose thinking is signed or encrypted: it cannot be changed.
fn is_sealed(stream: &Stream) -> bool {
    ["anthropic-thinking", "anthropic-redacted", "anthropic-interleaved", "reasoning-summary"]
        .iter()
        .any(|name| stream.file.contains(name))
}

proptest! {
    #[test]
    fn any_split_shows_and_sends_the_same(stream in any_stream(), cuts in vec(any::<Index>(), 0..40), late: bool) {
        let (out, seen) = pass(stream.route, &reads(&stream.body, &cuts), late);
        let (whole, shown) = pass(stream.route, std::slice::from_ref(&stream.body), late);
        prop_assert_eq!(seen, shown, "{}", stream.file);
        prop_assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole), "{}", stream.file);
        prop_assert!(!stream.is_complete() || out == stream.body, "{}", stream.file);
    }

    #[test]
    fn one_text_replaced_is_one_text_replaced_wherever_it_is_told(
        stream in any_stream(),
        kind in prop_oneof![3 => Just(TrackKind::Text), 1 => Just(TrackKind::Thinking)],
        cuts in vec(any::<Index>(), 0..40),
        from: Index,
        to: Index,
        with in "|x|[a-z \"\\\\üß🙂\n]{1,12}",
        hold in 0..64_usize,
    ) {
        let whole = text(&came(&stream), kind);
        if whole.is_empty() || kind == TrackKind::Thinking && is_sealed(&stream) {
            return Ok(());
        }
        let places: Vec<usize> = whole.char_indices().map(|(at, _)| at).chain([whole.len()]).collect();
        let (one, two) = (places[from.index(places.len())], places[to.index(places.len())]);
        let part = one.min(two)..one.max(two);
        // An insertion behind all text is its own test: here its place would depend on the split.
        if part.is_empty() && part.end == whole.len() {
            return Ok(());
        }
        let out = replaced(&stream, &reads(&stream.body, &cuts), kind, &part, &with, hold);
        let seen = gathered(&stream, &out);
        let mut expected = whole.clone();
        expected.replace_range(part.clone(), &with);
        let said = if kind == TrackKind::Text { seen.said() } else { seen.thinking() };
        prop_assert_eq!(said, expected, "{}", stream.file);
        let before = gathered(&stream, &pass(stream.route, std::slice::from_ref(&stream.body), true).0);
        prop_assert_eq!(seen.calls(), before.calls(), "{}", stream.file);
        prop_assert_eq!(seen.stop, before.stop, "{}", stream.file);
        prop_assert_eq!(seen.over, before.over, "{}", stream.file);
    }

    #[test]
    fn calls_taken_out_leave_no_gap(stream in any_stream(), cuts in vec(any::<Index>(), 0..20), removed: u8) {
        let is_removed = |call: usize| removed & (1 << call) != 0;
        let before = gathered(&stream, &pass(stream.route, std::slice::from_ref(&stream.body), true).0);
        let mut relay = Relay::new(stream.route);
        let mut out = Vec::new();
        for read in reads(&stream.body, &cuts) {
            relay.push(read).unwrap();
            for id in 0..relay.tracks().len() {
                relay.allow(TrackId(id), usize::MAX);
            }
            for id in 0..relay.calls().len() {
                if relay.calls()[id].complete && !relay.calls()[id].decided {
                    relay.decide(CallId(id), if is_removed(id) { Fate::Remove } else { Fate::Keep }).unwrap();
                }
            }
            out.extend(drain(&mut relay));
        }
        relay.note(note());
        out.extend(drain(&mut relay));
        let seen = gathered(&stream, &out);
        prop_assert_eq!(seen.said(), before.said(), "{}", stream.file);
        prop_assert_eq!(seen.thinking(), before.thinking(), "{}", stream.file);
        let kept: Vec<_> = {
            let ids = relay.calls().iter().enumerate().filter(|(id, _)| !is_removed(*id));
            let ids: Vec<_> = ids.filter_map(|(_, call)| call.call.id.as_deref()).collect();
            before.calls().into_iter().filter(|(id, ..)| ids.contains(&&**id)).collect()
        };
        prop_assert_eq!(seen.calls(), kept, "{}", stream.file);
        prop_assert_eq!(seen.over, before.over, "{}", stream.file);
    }

    #[test]
    fn a_block_ends_a_stream_with_exactly_what_was_let_go(
        stream in any_stream(),
        at: Index,
        cuts in vec(any::<Index>(), 0..20),
        hold in 0..16_usize,
        filter: bool,
    ) {
        let mut relay = Relay::new(stream.route);
        let mut out = Vec::new();
        let reads = reads(&stream.body, &cuts);
        for read in &reads[..at.index(reads.len())] {
            relay.push(read.clone()).unwrap();
            for id in 0..relay.tracks().len() {
                let upto = relay.tracks()[id].len_total().saturating_sub(hold);
                relay.allow(TrackId(id), upto);
            }
            for id in 0..relay.calls().len() {
                if relay.calls()[id].complete {
                    relay.decide(CallId(id), Fate::Keep).unwrap();
                }
            }
            out.extend(drain(&mut relay));
        }
        let before = gathered(&stream, &out);
        // With its stop reason an answer is whole.
        if before.stop.is_some() || before.error.is_some() {
            return Ok(());
        }
        let ending = if filter { gatehook_inference::Ending::ContentFilter } else { Default::default() };
        let note = note();
        out.extend(relay.block(&gatehook_inference::Block { message: "No.", hook: &note, ending }));
        let seen = gathered(&stream, &out);
        prop_assert_eq!(seen.text(), before.text(), "{}", stream.file);
        prop_assert_eq!(seen.thinking(), before.thinking(), "{}", stream.file);
        let (stop, refusal) = match (stream.route, filter) {
            (Route::Messages, _) => ("refusal", ""),
            (_, true) => ("incomplete", ""),
            (_, false) => ("completed", "No."),
        };
        prop_assert_eq!(seen.stop.as_deref(), Some(stop), "{}", stream.file);
        prop_assert_eq!(seen.refusal(), before.refusal() + refusal, "{}", stream.file);
        prop_assert_eq!(&seen.hook.unwrap()["hook_name"], "no_shell");
        prop_assert!(seen.over && seen.error.is_none(), "{}", stream.file);
    }

    #[test]
    fn a_failure_is_told_in_the_protocol(stream in any_stream(), at: Index, cuts in vec(any::<Index>(), 0..20)) {
        let mut relay = Relay::new(stream.route);
        let mut out = Vec::new();
        let reads = reads(&stream.body, &cuts);
        for read in &reads[..at.index(reads.len())] {
            relay.push(read.clone()).unwrap();
            allow_all(&mut relay);
            out.extend(drain(&mut relay));
        }
        let before = gathered(&stream, &out);
        if before.over || before.error.is_some() {
            return Ok(());
        }
        out.extend(relay.fail(gatehook_inference::ErrorKind::BadUpstream, "It broke.", "req_1"));
        let seen = gathered(&stream, &out);
        prop_assert_eq!(&seen.error.unwrap()["message"], "It broke.", "{}", stream.file);
        prop_assert_eq!(seen.content, before.content, "{}", stream.file);
    }
}
