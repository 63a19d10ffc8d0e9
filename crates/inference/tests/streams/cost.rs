//! What a frame costs. Run by hand, optimised: `cargo test --release -p gatehook-inference --test streams -- --ignored
//! --nocapture`.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gatehook_inference::{Relay, Route};

use crate::allow_all;

/// A chunk of 250 bytes, as llama.cpp writes it.
const CHUNK: &str = r#"data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":" my "}}],"created":1795278668,"id":"chatcmpl-leiVQO7RyJuAMHq78jvI0dtgyctauobw","model":"models/text.gguf","system_fingerprint":"b0-unknown","object":"chat.completion.chunk"}"#;
const LINE: &str = r#"{"model":"llama3.2","created_at":"2026-08-04T08:52:19.385406455Z","message":{"role":"assistant","content":" sky"},"done":false}"#;

#[test]
#[ignore = "a measurement, not a check"]
fn cost_of_a_frame_that_passes() {
    for (route, frame) in [(Route::ChatCompletions, format!("{CHUNK}\n\n")), (Route::Chat, format!("{LINE}\n"))] {
        for together in [1, 16] {
            let read = Bytes::from(frame.repeat(together));
            let best = (0..50).map(|_| pass(route, &read, 4000 / together)).min().unwrap_or_default();
            eprintln!("{}, {} bytes, {together} in a read: {:?}", route.path(), frame.len(), best / 4000);
        }
    }
}

/// Many reads in one stream: the best of several such passes is what other work on the machine has not slowed.
fn pass(route: Route, read: &Bytes, times: usize) -> Duration {
    let mut relay = Relay::new(route);
    let start = Instant::now();
    for _ in 0..times {
        relay.push(read.clone()).unwrap();
        allow_all(&mut relay);
        while relay.take().is_some() {}
    }
    start.elapsed()
}

#[test]
#[ignore = "a measurement, not a check"]
fn cost_of_a_frame_that_is_held() {
    for count in [2_000, 20_000] {
        let best = (0..20).map(|_| hold(count)).min().unwrap_or_default();
        eprintln!("{count} frames held until the end: {:?} each", best / count);
    }
}

fn hold(count: u32) -> Duration {
    let read = Bytes::from(format!("{CHUNK}\n\n"));
    let mut relay = Relay::new(Route::ChatCompletions);
    let start = Instant::now();
    for _ in 0..count {
        relay.push(read.clone()).unwrap();
        assert_eq!(relay.take(), None);
    }
    allow_all(&mut relay);
    while relay.take().is_some() {}
    start.elapsed()
}
