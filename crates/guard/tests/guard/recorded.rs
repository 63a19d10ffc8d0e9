//! Recorded streams of all six routes, through gates of every kind, split anywhere.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use gatehook_engine::HookDefinition;
use gatehook_engine::definition::{Stream, StreamMode};
use gatehook_engine::events::Event;
use gatehook_inference::{CallId, Fate, Relay, Route, TrackId};
use proptest::prelude::*;

use crate::gate::{Came, Secrets, gate, send};
use crate::world::{Exchange, World};

const FOLDERS: &[(&str, Route)] = &[
    ("api-chat", Route::Chat),
    ("api-generate", Route::Generate),
    ("chat-completions", Route::ChatCompletions),
    ("completions", Route::Completions),
    ("messages", Route::Messages),
    ("responses", Route::Responses),
];

/// Route, name, and bytes of each stream.
fn streams() -> Vec<(Route, String, Vec<u8>)> {
    let bodies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../inference/tests/bodies");
    let mut streams = Vec::new();
    for (folder, route) in FOLDERS {
        for file in fs::read_dir(bodies.join(folder)).unwrap().map(|file| file.unwrap().path()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with("stream-") {
                streams.push((*route, format!("{folder}/{name}"), fs::read(&file).unwrap()));
            }
        }
    }
    assert!(streams.len() > 50, "{}", streams.len());
    streams
}

/// What leaves where everything may, at once; without alternatives to its tokens where its text is judged.
fn passed(route: Route, bytes: &[u8], is_judged: bool) -> Vec<u8> {
    let relay = Relay::new(route);
    let (mut relay, mut out) = (if is_judged { relay.without_alternatives() } else { relay }, Vec::new());
    relay.push(Bytes::copy_from_slice(bytes)).unwrap();
    relay.finish().unwrap();
    for id in (0..relay.tracks().len()).map(TrackId) {
        relay.allow(id, usize::MAX);
    }
    for id in (0..relay.calls().len()).map(CallId) {
        let complete = relay.calls()[id.0].complete;
        relay.decide(id, if complete { Fate::Keep } else { Fate::Remove }).unwrap();
    }
    while let Some(bytes) = relay.take() {
        out.extend_from_slice(&bytes);
    }
    out
}

/// Hooks that let everything pass, each in its own way.
fn worlds() -> Vec<(&'static str, World)> {
    let mode = |mode| move |hook| HookDefinition { stream: Some(mode), ..hook };
    let window = Stream { size: Some(5), ..Stream::new(StreamMode::Window) };
    let ok = |_: &_| Ok(None);
    vec![
        ("buffer", World::new().hook(Event::PostInference, |_| None)),
        ("window", World::new().hook_with(Event::PostInference, "", mode(window), ok)),
        ("observe", World::new().hook_with(Event::PostInference, "", mode(Stream::new(StreamMode::Observe)), ok)),
        ("scan", World::new().handler(Event::PostInference, "secrets", |hook| hook, Arc::new(Secrets))),
        ("redact_secrets", World::new().builtin(Event::PostInference, "redact_secrets", &[])),
        ("block_patterns", World::new().builtin(Event::PostInference, "block_patterns", &["nobody says this"])),
        ("calls", World::new().hook(Event::ToolGuard, |_| None)),
    ]
}

async fn through(world: World, route: Route, reads: Vec<Bytes>) -> (Exchange, Came) {
    let exchange = Exchange::from(world);
    let mut gate = gate(&exchange, route).await.unwrap();
    let came = send(&mut gate, reads).await;
    exchange.settle().await;
    (exchange, came)
}

/// The frames of several choices may overtake each other.
fn sorted(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let mut frames: Vec<String> = text.split_inclusive("\n\n").map(str::to_owned).collect();
    frames.sort();
    frames
}

#[tokio::test]
async fn what_no_hook_changes_leaves_as_it_came() {
    for (route, name, bytes) in streams() {
        for (how, world) in worlds() {
            let want = passed(route, &bytes, !matches!(how, "observe" | "calls"));
            let says_more = name == "responses/stream-openai-logprobs.txt" && !matches!(how, "observe" | "calls");
            assert_eq!(want == passed(route, &bytes, false), !says_more, "{name} {how}");
            let (_, came) = through(world, route, vec![bytes.clone().into()]).await;
            assert!(came.refusal.is_none(), "{name} {how}: {:?}", came.refusal);
            if name.contains("two-choices") {
                assert_eq!(sorted(&came.bytes), sorted(&want), "{name} {how}");
            } else {
                assert_eq!(came.text(), String::from_utf8_lossy(&want), "{name} {how}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn however_it_is_split(number in 0..1000_usize, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let streams = streams();
        let (route, name, bytes) = &streams[number % streams.len()];
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        let reads: Vec<Bytes> = cuts.windows(2).map(|cut| Bytes::copy_from_slice(&bytes[cut[0]..cut[1]])).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for ((how, whole), (_, split)) in worlds().into_iter().zip(worlds()) {
            runtime.block_on(async {
                let whole = through(whole, *route, vec![bytes.clone().into()]).await;
                let split = through(split, *route, reads.clone()).await;
                assert_eq!(sorted(&split.1.bytes), sorted(&whole.1.bytes), "{name} {how}");
                if !name.contains("two-choices") {
                    assert_eq!(split.1.bytes, whole.1.bytes, "{name} {how}");
                }
                if how != "window" {
                    // When a call is judged depends on what has come by then; what is judged does not.
                    let seen = |exchange: &Exchange, event| {
                        let inputs = exchange.seen.inputs(event).into_iter();
                        let mut seen: Vec<_> = inputs
                            .map(|input| (input.output_text, input.output_thinking, input.tool_calls, input.tool_input))
                            .map(|told| format!("{told:?}"))
                            .collect();
                        seen.sort();
                        seen
                    };
                    for event in [Event::PostInference, Event::ToolGuard] {
                        assert_eq!(seen(&split.0, event), seen(&whole.0, event), "{name} {how}");
                    }
                }
            });
        }
    }
}
