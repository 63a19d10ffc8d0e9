//! Upstreams that fail, and bounds.

use bytes::Bytes;
use gatehook_engine::HookDefinition;
use gatehook_engine::definition::{Stream, StreamMode};
use gatehook_engine::events::{Event, Output};
use gatehook_guard::UpstreamEnd;
use gatehook_inference::{ErrorKind, Route};

use super::{Came, drain, finish, gate, send};
use crate::streams::{ROUTES, frames, gather, text};
use crate::world::{Exchange, World};

fn window(hook: HookDefinition) -> HookDefinition {
    let stream = Stream { size: Some(1), overlap: Some(0), ..Stream::new(StreamMode::Window) };
    HookDefinition { stream: Some(stream), ..hook }
}

fn windowed() -> Exchange {
    Exchange::from(World::new().hook_with(Event::PostInference, "", window, |_| Ok(None)))
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_with_an_error_of_its_protocol() {
    for &route in ROUTES {
        let exchange = windowed();
        let mut gate = gate(&exchange, route).await.unwrap();
        let frames = frames(route, &[text("one "), text("two")]);
        let cut = frames.iter().position(|frame| frame.contains("two")).unwrap() + 1;
        let came = send(&mut gate, frames[..cut].iter().cloned().map(Bytes::from)).await;
        assert_eq!(came.refusal.as_ref().unwrap().kind, ErrorKind::BadUpstream, "{route:?}");
        let gathered = gather(route, &came.bytes);
        assert!(gathered.error.is_some() && gathered.text.starts_with("one"), "{route:?}: {}", came.text());
    }
}

#[tokio::test]
async fn before_anything_has_left_it_is_a_plain_error() {
    for &route in ROUTES {
        let exchange = Exchange::from(World::new().hook(Event::PostInference, |_| None));
        for end in [UpstreamEnd::Over, UpstreamEnd::Broke(ErrorKind::UpstreamTimeout)] {
            let mut gate = gate(&exchange, route).await.unwrap();
            gate.push(frames(route, &[text("one "), text("two")])[..2].concat().into());
            gate.end(end);
            let mut came = Came::default();
            finish(&mut gate, &mut came).await;
            assert!(came.bytes.is_empty(), "{route:?}");
            let want = if end == UpstreamEnd::Over { ErrorKind::BadUpstream } else { ErrorKind::UpstreamTimeout };
            assert_eq!(came.refusal.unwrap().kind, want, "{route:?}");
        }
    }
}

#[tokio::test]
async fn what_is_no_stream_of_its_route_never_passes() {
    for &route in ROUTES {
        for garbage in ["data: {\"choices\":[{]}\n\n", "{\"a\":1,\"a\":2}\n", "data: {\"a\":1,\"a\":2}\n\n"] {
            let mut gate = gate(&windowed(), route).await.unwrap();
            let came = send(&mut gate, [Bytes::from(garbage)]).await;
            assert!(came.bytes.is_empty(), "{route:?} {garbage}: {}", came.text());
            assert!(came.refusal.is_some(), "{route:?} {garbage}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_be_held_is_refused() {
    for &route in ROUTES {
        let exchange = Exchange::from(World::new().hook(Event::PostInference, |_| None));
        let mut gate = gate(&exchange, route).await.unwrap();
        let says: Vec<_> = (0..40).map(|_| text(&"x".repeat(40_000))).collect();
        let came = send(&mut gate, frames(route, &says).into_iter().map(Bytes::from)).await;
        assert!(came.bytes.is_empty(), "{route:?}");
        let refusal = came.refusal.unwrap();
        assert_eq!(refusal.kind, ErrorKind::BadUpstream, "{route:?}");
        assert!(refusal.message.contains("1048576"), "{refusal}");
    }
}

#[tokio::test]
async fn so_is_one_that_is_too_long_for_those_who_look_on() {
    for &route in ROUTES {
        let define = |hook| HookDefinition { stream: Some(Stream::new(StreamMode::Observe)), ..hook };
        let exchange = Exchange::from(World::new().hook_with(Event::PostInference, "", define, |_| Ok(None)));
        let mut gate = gate(&exchange, route).await.unwrap();
        let says: Vec<_> = (0..40).map(|_| text(&"x".repeat(40_000))).collect();
        let came = send(&mut gate, frames(route, &says).into_iter().map(Bytes::from)).await;
        assert_eq!(came.refusal.unwrap().kind, ErrorKind::BadUpstream, "{route:?}");
        assert!((500_000..1_600_000).contains(&came.bytes.len()), "{route:?}: {}", came.bytes.len());
        assert_eq!(exchange.seen.inputs(Event::PostInference).len(), 0, "{route:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_ends_at_its_deadline_and_blocks() {
    for &route in ROUTES {
        let hour = std::time::Duration::from_secs(3600);
        let exchange = Exchange::from(World::new().slow_hook(Event::PostInference, window, hour, |_| None));
        let mut gate = gate(&exchange, route).await.unwrap();
        gate.commit();
        let start = tokio::time::Instant::now();
        let came = send(&mut gate, frames(route, &[text("one")]).into_iter().map(Bytes::from)).await;
        assert_eq!(came.refusal.as_ref().unwrap().kind, ErrorKind::HookUnavailable, "{route:?}");
        assert!(start.elapsed().as_secs() < 15, "{route:?}");
        let gathered = gather(route, &came.bytes);
        assert_eq!((&*gathered.text, gathered.over), ("", true), "{route:?}: {}", came.text());
        assert_eq!(gathered.hook.unwrap()["permission"], "unavailable", "{route:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_gate_ends_the_hooks_that_run() {
    let world = World::new()
        .slow_hook(Event::PostInference, window, std::time::Duration::from_secs(5), |_| Some(Output::block("late")));
    let exchange = Exchange::from(world);
    let mut gate = gate(&exchange, Route::Chat).await.unwrap();
    gate.push(frames(Route::Chat, &[text("one")]).concat().into());
    drain(&mut gate, &mut Came::default()).await;
    assert_eq!(exchange.seen.events(), [Event::PostInference]);
    drop(gate);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(exchange.seen.verdicts().is_empty());
}

#[tokio::test]
async fn an_error_event_of_the_upstream_passes_behind_what_came_before_it() {
    let route = Route::ChatCompletions;
    for world in [
        World::new().hook(Event::PostInference, |_| None),
        World::new().hook_with(Event::PostInference, "", window, |_| Ok(None)),
    ] {
        let mut gate = gate(&Exchange::from(world), route).await.unwrap();
        let error = "data: {\"error\":{\"message\":\"out of memory\"}}\n\n".to_owned();
        let reads: Vec<String> = frames(route, &[text("one ")])[..2].iter().cloned().chain([error]).collect();
        let came = send(&mut gate, reads.iter().cloned().map(Bytes::from)).await;
        assert_eq!(came.text(), reads.concat());
        assert!(came.refusal.is_none());
    }
}
