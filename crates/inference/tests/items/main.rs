//! Streams of formats that number what they build: items of `/v1/responses`, blocks of `/v1/messages`.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "what tests share is test code too")]

mod calls;
mod client;
mod completion;
mod endings;
mod garbage;
mod recorded;
mod texts;

use std::path::Path as FilePath;

use bytes::Bytes;
use gatehook_inference::{CallId, Fate, HookNote, Relay, Route, TrackId, TrackKind};
use proptest::sample::Index;
use serde_json::{Value, json};

const FOLDERS: &[(&str, Route, usize)] = &[("messages", Route::Messages, 20), ("responses", Route::Responses, 25)];

/// Streams that leave something out: they leave completed.
const INCOMPLETE: &[&str] = &[
    "responses/stream-llamacpp",
    "responses/stream-ollama-thinking",
    "stream-ollama-calls",
    "stream-ollama-text-call",
];

/// A recorded stream.
#[derive(Debug, Clone)]
struct Stream {
    file: String,
    route: Route,
    body: Bytes,
}

impl Stream {
    fn is_complete(&self) -> bool {
        !INCOMPLETE.iter().any(|name| self.file.contains(name))
    }
}

fn streams() -> Vec<Stream> {
    let root = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/bodies");
    let mut found = Vec::new();
    for (folder, route, least) in FOLDERS {
        let before = found.len();
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let file = entry.unwrap().path();
            if file.file_name().unwrap().to_string_lossy().starts_with("stream") {
                let body = std::fs::read(&file).unwrap().into();
                found.push(Stream { file: file.display().to_string(), route: *route, body });
            }
        }
        assert!(found.len() - before >= *least, "{folder}");
    }
    found
}

/// A stream of these events.
fn events(route: Route, events: &[Value]) -> Stream {
    let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    Stream { file: "events".into(), route, body: events.iter().map(event).collect::<String>().into() }
}

/// Events of `/v1/responses`, numbered, between the first and the last; `output` is the last one's.
fn items(between: &[Value], output: Value) -> Stream {
    let head = json!({"id": "resp_1", "object": "response", "status": "in_progress", "output": []});
    let mut whole = head.clone();
    whole["status"] = "completed".into();
    whole["output"] = output;
    let mut all = vec![json!({"type": "response.created", "response": head})];
    all.extend_from_slice(between);
    all.push(json!({"type": "response.completed", "response": whole}));
    all.iter_mut().enumerate().for_each(|(number, event)| event["sequence_number"] = number.into());
    events(Route::Responses, &all)
}

/// Events of `/v1/messages` between the first and the last.
fn blocks(between: &[Value], stop: &str) -> Stream {
    let usage = json!({"input_tokens": 3, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage});
    let mut all = vec![json!({"type": "message_start", "message": message})];
    all.extend_from_slice(between);
    all.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}}));
    all.push(json!({"type": "message_stop"}));
    events(Route::Messages, &all)
}

fn stream(name: &str) -> Stream {
    streams().into_iter().find(|stream| stream.file.ends_with(&format!("{name}.txt"))).unwrap()
}

/// A body in reads that end where `cuts` say.
fn reads(body: &Bytes, cuts: &[Index]) -> Vec<Bytes> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len())).chain([body.len()]).collect();
    ends.sort_unstable();
    let mut start = 0;
    ends.into_iter().map(|end| body.slice(std::mem::replace(&mut start, end)..end)).collect()
}

/// A stream that has come as a whole, with nothing decided.
fn came(stream: &Stream) -> Relay {
    let mut relay = Relay::new(stream.route);
    relay.push(stream.body.clone()).unwrap();
    relay.finish().unwrap();
    relay
}

/// Everything that has come and is not decided otherwise may leave.
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

fn drain(relay: &mut Relay) -> Vec<u8> {
    std::iter::from_fn(|| relay.take()).flatten().collect()
}

fn left(relay: &mut Relay) -> String {
    String::from_utf8(drain(relay)).unwrap()
}

fn track(relay: &Relay, kind: TrackKind) -> Option<TrackId> {
    relay.tracks().iter().position(|track| track.kind == kind).map(TrackId)
}

fn text(relay: &Relay, kind: TrackKind) -> String {
    track(relay, kind).map(|id| relay.tracks()[id.0].text.clone()).unwrap_or_default()
}

fn note() -> HookNote {
    HookNote { hook_name: Some("no_shell".into()), ..HookNote::default() }
}
