//! What holds for every recorded stream: however it is split, the same is seen and the same leaves; nothing changed is
//! nothing changed, and one text changed is one text changed.

use std::ops::Range;
use std::path::Path as FilePath;

use bytes::Bytes;
use gatehook_inference::{Call, CallId, Fate, Relay, Route, TrackId, TrackKind};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::client::{Gathered, gather};
use crate::{allow_all, drain};

const FOLDERS: &[(&str, Route)] = &[
    ("api-chat", Route::Chat),
    ("api-generate", Route::Generate),
    ("chat-completions", Route::ChatCompletions),
    ("completions", Route::Completions),
];

/// File, route and bytes of each recorded stream.
pub(crate) fn streams() -> Vec<(String, Route, Bytes)> {
    let root = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/bodies");
    let mut found = Vec::new();
    for (folder, route) in FOLDERS {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let file = entry.unwrap().path();
            if file.file_name().unwrap().to_string_lossy().starts_with("stream") {
                found.push((file.display().to_string(), *route, std::fs::read(&file).unwrap().into()));
            }
        }
    }
    assert!(found.len() >= 20, "{found:?}");
    found
}

fn any_stream() -> impl Strategy<Value = (String, Route, Bytes)> {
    proptest::sample::select(streams())
}

/// A body in reads that end where `cuts` say.
fn reads(body: &Bytes, cuts: &[Index]) -> Vec<Bytes> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len())).chain([body.len()]).collect();
    ends.sort_unstable();
    let mut start = 0;
    ends.into_iter().map(|end| body.slice(std::mem::replace(&mut start, end)..end)).collect()
}

/// All that a guard is shown of a stream.
type Shown = (Vec<(u32, TrackKind, String, bool)>, Vec<Call>, Vec<Option<String>>, Option<serde_json::Value>, bool);

fn shown(relay: &Relay) -> Shown {
    let tracks = relay.tracks().iter().map(|track| (track.choice, track.kind, track.text.clone(), track.ended));
    let reasons = relay.choices().map(|choice| relay.done_reason(choice).map(str::to_owned)).collect();
    (tracks.collect(), relay.calls().to_vec(), reasons, relay.usage().cloned(), relay.upstream_error())
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
    let mut shown = shown(&relay);
    shown.1.iter_mut().for_each(|call| call.decided = false);
    allow_all(&mut relay);
    out.extend(drain(&mut relay));
    assert!(relay.is_over());
    (out, shown)
}

/// What a client gathers, each choice by itself.
fn gathered(route: Route, bytes: &[u8]) -> Gathered {
    Gathered { frames: Vec::new(), ..gather(route, std::str::from_utf8(bytes).unwrap()) }
}

#[test]
fn what_is_allowed_leaves_as_the_same_bytes() {
    for (file, route, body) in streams() {
        for size in [1, 2, 3, 7, 64, 1000, body.len()] {
            let reads: Vec<Bytes> = body.chunks(size).map(Bytes::copy_from_slice).collect();
            for late in [false, true] {
                let (out, _) = pass(route, &reads, late);
                let (out, body) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&body));
                assert_eq!(out, body, "{file} in reads of {size}");
            }
        }
    }
}

#[test]
fn a_stream_that_is_allowed_at_once_leaves_as_slices_of_its_read() {
    for (file, route, body) in streams() {
        let mut relay = Relay::new(route);
        relay.push(body.clone()).unwrap();
        allow_all(&mut relay);
        let out = relay.take().unwrap();
        assert_eq!(out.as_ptr(), body.as_ptr(), "{file}");
        assert!(out.len() == body.len() || file.contains("no-done"), "{file}");
        assert_eq!(relay.take(), None, "{file}");
    }
}

#[test]
fn what_a_guard_is_shown_is_what_a_client_gathers() {
    for (file, route, body) in streams() {
        let (_, (tracks, calls, reasons, _, error)) = pass(route, std::slice::from_ref(&body), true);
        let gathered = gathered(route, &body);
        assert_eq!(gathered.error.is_some(), error, "{file}");
        for (choice, heard) in &gathered.choices {
            let text = |kind| {
                let own = tracks.iter().filter(|(of, is, ..)| u64::from(*of) == *choice && *is == kind);
                own.map(|(_, _, text, _)| text.as_str()).collect::<String>()
            };
            assert_eq!(text(TrackKind::Text), format!("{}{}", heard.text, heard.refusal), "{file}");
            assert_eq!(text(TrackKind::Thinking), heard.thinking, "{file}");
            let calls: Vec<(String, String)> = calls
                .iter()
                .filter(|call| u64::from(call.choice) == *choice)
                .map(|call| (call.call.function.name.to_string(), call.call.function.arguments.to_string()))
                .collect();
            let names = |(name, arguments): &(String, String)| (name.clone(), arguments.split_whitespace().collect());
            let shown: Vec<(String, String)> = calls.iter().map(names).collect();
            let heard_calls: Vec<(String, String)> =
                heard.calls.iter().map(|(_, name, arguments)| names(&(name.clone(), arguments.clone()))).collect();
            assert_eq!(shown.len(), heard_calls.len(), "{file}");
            for (shown, heard) in shown.iter().zip(&heard_calls) {
                let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
                assert_eq!((&shown.0, json(&shown.1)), (&heard.0, json(&heard.1)), "{file}");
            }
        }
        let stops: Vec<Option<String>> = gathered.choices.values().map(|heard| heard.stop.clone()).collect();
        assert_eq!(reasons, stops, "{file}");
    }
}

/// Replaces a part of the first text as soon as it is there, holding back what is younger than `hold` bytes.
fn replaced(route: Route, reads: &[Bytes], part: &Range<usize>, with: &str, hold: usize) -> Gathered {
    let mut relay = Relay::new(route);
    let mut out = Vec::new();
    let mut done = false;
    for read in reads.iter().map(Some).chain([None]) {
        match read {
            Some(read) => relay.push(read.clone()).unwrap(),
            None => relay.finish().unwrap(),
        }
        if !done && relay.tracks().first().is_some_and(|first| first.len_total() >= part.end) {
            relay.replace(TrackId(0), part.clone(), with).unwrap();
            done = true;
        }
        for id in 0..relay.tracks().len() {
            let track = &relay.tracks()[id];
            let whole = if track.ended { track.len_total() } else { track.len_total().saturating_sub(hold) };
            let upto = if id == 0 && !done { whole.min(part.start) } else { whole };
            relay.allow(TrackId(id), upto);
        }
        for id in 0..relay.calls().len() {
            if relay.calls()[id].complete {
                relay.decide(CallId(id), Fate::Keep).unwrap();
            }
        }
        out.extend(drain(&mut relay));
    }
    assert!(done);
    gathered(route, &out)
}

proptest! {
    #[test]
    fn any_split_shows_and_sends_the_same((file, route, body) in any_stream(), cuts in vec(any::<Index>(), 0..40), late: bool) {
        let (out, seen) = pass(route, &reads(&body, &cuts), late);
        let (whole, shown) = pass(route, std::slice::from_ref(&body), late);
        prop_assert_eq!(seen, shown, "{}", file);
        prop_assert!(out == whole && out == body, "{}", file);
    }

    #[test]
    fn one_text_replaced_is_one_text_replaced(
        (file, route, body) in any_stream(),
        cuts in vec(any::<Index>(), 0..40),
        from: Index,
        to: Index,
        with in "|x|[a-z \"\\\\üß🙂\n]{1,12}",
        hold in 0..64_usize,
    ) {
        let (_, shown) = pass(route, std::slice::from_ref(&body), true);
        let Some((choice, kind, text, _)) = shown.0.first().cloned() else { return Ok(()) };
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let (one, two) = (places[from.index(places.len())], places[to.index(places.len())]);
        // An insertion behind all text is its own test: here its place would depend on the split.
        let part = one.min(two)..one.max(two);
        if part.is_empty() && part.end == text.len() {
            return Ok(());
        }
        let seen = replaced(route, &reads(&body, &cuts), &part, &with, hold);
        let mut expected = gathered(route, &body);
        let heard = expected.choices.get_mut(&u64::from(choice)).unwrap();
        let place = match kind {
            TrackKind::Thinking => &mut heard.thinking,
            TrackKind::Text if heard.text.is_empty() => &mut heard.refusal,
            TrackKind::Text => &mut heard.text,
        };
        place.replace_range(part, &with);
        prop_assert_eq!(seen, expected, "{}", file);
    }
}
