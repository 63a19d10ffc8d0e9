//! Streams between an upstream and a client: what is seen of them, what leaves, and what a client makes of it.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "what tests share is test code too")]

mod calls;
mod client;
mod endings;
mod frames;
mod notes;
mod recorded;
mod texts;

use bytes::Bytes;
use gatehook_inference::{CallId, Fate, Fault, Relay, Route, TrackId, TrackKind};

/// Everything that has come may leave as it is.
fn allow_all(relay: &mut Relay) {
    for id in 0..relay.tracks().len() {
        relay.allow(TrackId(id), usize::MAX);
    }
    for id in 0..relay.calls().len() {
        if !relay.calls()[id].decided {
            relay.decide(CallId(id), Fate::Keep).unwrap();
        }
    }
}

/// What may leave.
fn drain(relay: &mut Relay) -> Vec<u8> {
    std::iter::from_fn(|| relay.take()).flatten().collect()
}

/// What may leave, as text.
fn left(relay: &mut Relay) -> String {
    String::from_utf8(drain(relay)).unwrap()
}

/// A stream that has come as a whole, with nothing decided.
fn came(route: Route, stream: &str) -> Relay {
    let mut relay = Relay::new(route);
    push(&mut relay, stream).unwrap();
    relay.finish().unwrap();
    relay
}

fn push(relay: &mut Relay, stream: &str) -> Result<(), Fault> {
    relay.push(Bytes::copy_from_slice(stream.as_bytes()))
}

/// The track of a kind in the first choice.
fn track(relay: &Relay, kind: TrackKind) -> TrackId {
    let found = relay.tracks().iter().position(|track| track.choice == 0 && track.kind == kind);
    TrackId(found.unwrap())
}

/// Chunks of chat completions in their frames, from the choices of each.
fn chunks(choices: &[&str]) -> String {
    let chunk =
        |choices: &&str| format!("data: {{\"id\":\"c\",\"created\":1,\"model\":\"m\",\"choices\":[{choices}]}}\n\n");
    choices.iter().map(chunk).collect::<String>() + "data: [DONE]\n\n"
}

/// A choice with such a delta.
fn delta(delta: &str) -> String {
    format!("{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}")
}

/// A choice with such a stop reason.
fn stop(reason: &str) -> String {
    format!("{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}")
}
