//! What a frame costs at a gate. Run by hand, optimised: `cargo test --release -p gatehook-guard --test guard --
//! --ignored --nocapture cost`.

use std::time::Instant;

use bytes::Bytes;
use gatehook_engine::HookDefinition;
use gatehook_engine::definition::{Stream, StreamMode};
use gatehook_engine::events::Event;
use gatehook_inference::Route;

use super::{GateSettings, SETTINGS, gate_with, send};
use crate::streams::{frames, text, thinking};
use crate::world::{Exchange, World};

#[tokio::test]
#[ignore = "a measurement, not a check"]
async fn cost_of_a_frame() {
    let settings = GateSettings { limit: usize::MAX, ..SETTINGS };
    for how in ["buffer", "window", "scan", "observe", "pii", "calls"] {
        for count in [5_000, 10_000, 20_000] {
            let mode = |mode| move |hook| HookDefinition { stream: Some(Stream::new(mode)), ..hook };
            let ok = |_: &_| Ok(None);
            let event = Event::PostInference;
            let world = match how {
                "buffer" => World::new().hook(event, |_| None),
                "window" => World::new().hook_with(event, "", mode(StreamMode::Window), ok),
                "scan" => World::new().builtin(event, "redact_secrets", &[]),
                "pii" => World::new().builtin(event, "redact_pii", &[]),
                "observe" => World::new().hook_with(event, "", mode(StreamMode::Observe), ok),
                _ => World::new().hook(Event::ToolGuard, |_| None),
            };
            let exchange = Exchange::from(world);
            let mut says = vec![thinking("Let me think. "); 100];
            says.extend((0..count).map(|number| text(if number % 7 == 0 { "word, " } else { "word " })));
            let frames: Vec<Bytes> = frames(Route::ChatCompletions, &says).into_iter().map(Bytes::from).collect();
            let mut gate = gate_with(&exchange, Route::ChatCompletions, settings).await.unwrap();
            let start = Instant::now();
            let came = send(&mut gate, frames).await;
            assert!(came.refusal.is_none(), "{how}: {:?}", came.refusal);
            eprintln!("{how}, {count} frames: {:?} each", start.elapsed() / count);
        }
    }
}
